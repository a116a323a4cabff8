"""The experiment: a household behind an access link, which transfers, calls, browses and plays.

Data from the home crosses ``router_up`` and ``modem``, data to the home ``isp`` and
``router_down``. The router shapes where it is faster than the line, so that packets
wait in the router instead of in the FIFO buffer of the modem or of the provider.
"""

from collections.abc import Sequence
from typing import Any

from sojourn.advice.access import Access
from sojourn.advice.candidates import Candidate
from sojourn.advice.shaping import LAN_BITS_PER_S, LAN_FACTOR, NONE, rate
from sojourn.scenario import Arm, Change, Link, Scenario, Wifi
from sojourn.scenario.link import WifiStandard
from sojourn.traffic import (
    Exponential,
    Ping,
    Responsiveness,
    Tcp,
    Traffic,
    Voip,
    Web,
)

WARMUP_S = 8.0
# Measured time: longer on slow lines, which carry few packets per second.
LONGEST_S, SHORTEST_S, MEASURED_BITS = 30.0, 10.0, 5e9
# Cycles of a varying rate.
CYCLES = 3
# Successive reductions of a varying rate, as shares of the dip.
DIPS = (0.0, 1.0, 0.5)
UPLOADS, DOWNLOADS = 2, 4
PAGE = "objects50"
# Interval of the packets of a game.
TICK = "50ms"
# One in this many subscribers transfers data.
HEAVY = 10
# 802.11ac, 80 MHz, one spatial stream, MCS 9, short guard interval.
WIFI_RATE = "433250kbit"
WIFI_STANDARD: WifiStandard = "802.11ac"
# The highest limit of the airtime queues of Linux (AQL), per station.
WIFI_DRIVER = "12ms"
START, JITTER = "1s", "200ms"
# Names of the groups that are measured.
GAME, PAGES = "game", "pages"
CALLS = ("call up", "call down")
TESTS = ("responsiveness up", "responsiveness down")
UP, DOWN = "uploads", "downloads"


def experiment(
    access: Access, compared: Sequence[Candidate], *, replications: int, seed: int
) -> Scenario:
    """Compose the scenario, with an arm per candidate."""
    measured_s = _measured_s(access)
    return Scenario(
        name=f"advice for {access.title}",
        links=_links(access, WARMUP_S + measured_s),
        traffic=_traffic(access),
        arms=[Arm(name=one.name, set=one.changes) for one in compared],
        rtt=access.sourced["rtt"].value,
        duration=f"{WARMUP_S + measured_s:g}s",
        warmup=f"{WARMUP_S:g}s",
        replications=replications,
        seed=seed,
    )


def _measured_s(access: Access) -> float:
    fitting = MEASURED_BITS / (access.down + access.up)
    measured = round(min(max(fitting, SHORTEST_S), LONGEST_S))
    return max(measured, CYCLES * access.period_s) if access.dip else measured


def _links(access: Access, duration_s: float) -> dict[str, Link | str]:
    lan = rate(max(LAN_BITS_PER_S, LAN_FACTOR * max(access.down, access.up)))
    router = Link(rate=lan, qdisc=NONE.queue)
    links: dict[str, Link | str] = {
        "router_up": router,
        "modem": line(access, "up", duration_s),
        "isp": line(access, "down", duration_s),
        "router_down": router,
    }
    if access.wifi:
        medium = Wifi(name="home", standard=WIFI_STANDARD, driver=WIFI_DRIVER)
        air = Link(rate=WIFI_RATE, qdisc="fq_codel", medium=medium)
        links |= {"wifi_up": air, "wifi_down": air}
    return links


def line(access: Access, direction: str, duration_s: float) -> Link:
    """Return the line in one direction, with the buffer in front of it."""
    bits = access.down if direction == "down" else access.up
    changes = []
    if access.dip:
        count = int(duration_s / access.period_s)
        changes = [
            Change(
                at=f"{step * access.period_s:g}s",
                rate=rate(bits * (1.0 - access.dip * DIPS[step % len(DIPS)])),
            )
            for step in range(1, count + 1)
            if step * access.period_s < duration_s
        ]
    return Link(
        rate=rate(bits),
        qdisc=f"bfifo limit {access.buffer_bytes(direction)}b",
        changes=changes or None,
        **access.layer.of_link,  # type: ignore[arg-type]
    )


def _traffic(access: Access) -> list[Traffic]:
    """Compose the traffic of the measured household and of other subscribers."""
    air_up, air_down = (["wifi_up"], ["wifi_down"]) if access.wifi else ([], [])
    up, down = [*air_up, "router_up", "modem"], ["isp", "router_down", *air_down]
    outwards: dict[str, Any] = {"path": up, "reverse": down}
    inwards: dict[str, Any] = {"path": down, "reverse": up}
    begin: dict[str, Any] = {"start": START, "start_jitter": JITTER}
    is_home = access.subscribers == 1
    # A home has several devices; of a subscriber among many, the provider sees one address.
    pc, laptop, phone, console = (1, 2, 3, 4) if is_home else (1, 1, 1, 1)
    heavy = [pc] if is_home else range(2, 2 + max(access.subscribers // HEAVY, 1))
    light = [] if is_home else range(2 + len(heavy), access.subscribers + 1)
    return [
        *(
            Tcp(name=_named(UP, host, heavy), **outwards, **begin, count=UPLOADS, host=host)
            for host in heavy
        ),
        *(
            Tcp(name=_named(DOWN, host, heavy), **inwards, **begin, count=DOWNLOADS, host=host)
            for host in heavy
        ),
        *(
            Web(
                name=f"{PAGES} {host}",
                **inwards,
                **begin,
                page=PAGE,
                think=Exponential(mean="5s"),
                host=host,
            )
            for host in light
        ),
        *(
            Responsiveness(name=name, **path, **begin, connections=1, host=laptop)
            for name, path in zip(TESTS, (outwards, inwards), strict=True)
        ),
        Web(name=PAGES, **inwards, **begin, page=PAGE, think="1s", host=laptop),
        *(
            Voip(name=name, **path, **begin, host=phone)
            for name, path in zip(CALLS, (outwards, inwards), strict=True)
        ),
        Ping(name=GAME, **outwards, protocol="udp", interval=TICK, payload="100b", host=console),
    ]


def _named(name: str, host: int, hosts: Sequence[int]) -> str:
    return name if len(hosts) == 1 else f"{name} {host}"
