"""Named traffic and links: the tests of the field, by the names the field gives them.

The traffics are those of flent (https://flent.org), as far as their parts are modelled: pings
are ICMP, those of ``rrul`` that flent sends by UDP too, and all packets but those of ``rrul`` are
best effort.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sojourn import _core
from sojourn.qdiscs import Queue
from sojourn.scenario import Arm, Link, Scenario
from sojourn.traffic import Ping, Tcp, Traffic, Udp

# As in flent, load starts 5 s after the pings.
START = "5s"
# Starts are spread over this, so that replications differ.
JITTER = "50ms"
PING_INTERVAL = "200ms"
# The classes of RRUL's loads, and of its pings besides the best-effort one.
RRUL_MARKS = ("CS0", "CS1", "CS5", "EF")
RRUL_PING_MARKS = ("CS1", "EF")
# The RTTs of the fairness test of "The Good, the Bad and the WiFi" (2015).
FAIRNESS_RTTS = ("10ms", "50ms", "200ms", "500ms")
# An unresponsive stream this much faster than the link keeps its queue full.
FLOOD_PERCENT = 120

TRAFFIC_NAMES = (
    "rrul",
    "rrul_be",
    "rtt_fair",
    "udp_flood",
    "tcp_Nup",
    "tcp_Ndown",
    "tcp_Nup_Mdown",
)

_TCP = re.compile(r"tcp(?:_(?P<up>[1-9]\d{0,4})up)?(?:_(?P<down>[1-9]\d{0,4})down)?")
_LINK = re.compile(
    r"(?P<down>[\d.]+)(?P<down_unit>[a-z]*)(?:/(?P<up>[\d.]+)(?P<unit>[a-z]+))?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of an access link.

    Parameters
    ----------
    down, up
        Rates with their units.
    """

    down: str
    up: str


def link_rates(text: str) -> Rates:
    """Read the rates of a link as the field writes them, download first.

    Parameters
    ----------
    text
        ``"10/1mbit"``, ``"8mbit/768kbit"``, or one rate for both directions.

    Returns
    -------
    Rates
        The rates.

    Raises
    ------
    ScenarioError
        It is not a rate, or not two.

    Examples
    --------
    >>> link_rates("10/1mbit")
    Rates(down='10mbit', up='1mbit')
    """
    found = _LINK.fullmatch(text.strip())
    if found is None or not (found["down_unit"] or found["unit"]):
        message = f"link {text!r}: write down/up with a unit, such as 10/1mbit, or one rate"
        raise _core.ScenarioError(message)
    down = found["down"] + (found["down_unit"] or found["unit"])
    up = down if found["up"] is None else found["up"] + found["unit"]
    for rate in (down, up):
        try:
            _core.parse_rate_bits_per_s(rate)
        except _core.ScenarioError as error:
            message = f"link {text!r}: {error}"
            raise _core.ScenarioError(message) from None
    return Rates(down=down, up=up)


def traffic(name: str, rates: Rates) -> list[Traffic]:
    """Compose a named traffic.

    Parameters
    ----------
    name
        One of ``TRAFFIC_NAMES``, with numbers for N and M.
    rates
        The link it is for; only ``udp_flood`` depends on it.

    Returns
    -------
    list of Traffic
        The groups; always with a ping.

    Raises
    ------
    ScenarioError
        There is no such traffic.

    Examples
    --------
    >>> [group.kind for group in traffic("tcp_4up", link_rates("10mbit"))]
    ['tcp', 'ping']
    """
    return [*_load(name, rates), Ping(name="ping", direction="up", interval=PING_INTERVAL)]


def _load(name: str, rates: Rates) -> list[Traffic]:
    if name == "rrul":
        loads = [_tcp(side, 1, mark) for side in ("up", "down") for mark in RRUL_MARKS]
        return [*loads, *(_ping(mark) for mark in RRUL_PING_MARKS)]
    if name == "rrul_be":
        return [_tcp("up", 4), _tcp("down", 4)]
    if name == "rtt_fair":
        return [
            Tcp(
                name="tcp up",
                direction="up",
                count=len(FAIRNESS_RTTS),
                rtt=FAIRNESS_RTTS,
                start=START,
                start_jitter=JITTER,
            )
        ]
    if name == "udp_flood":
        flood = _core.parse_rate_bits_per_s(rates.up) * FLOOD_PERCENT // 100
        return [
            Udp(name="udp up", direction="up", rate=f"{flood // 1000}kbit", start=START, spread=0.1)
        ]
    found = _TCP.fullmatch(name)
    if found is None or (found["up"] is None and found["down"] is None):
        message = f"no traffic is called {name!r}; there are: {', '.join(TRAFFIC_NAMES)}"
        raise _core.ScenarioError(message)
    counts = {"up": found["up"], "down": found["down"]}
    return [_tcp(side, int(count)) for side, count in counts.items() if count is not None]


def _ping(mark: str) -> Ping:
    return Ping(name=f"ping {mark}", direction="up", interval=PING_INTERVAL, dscp=mark)


def _tcp(direction: str, count: int, mark: str | None = None) -> Tcp:
    return Tcp(
        name=f"tcp {direction}" if mark is None else f"tcp {direction} {mark}",
        dscp=mark,
        direction=direction,
        count=count,
        start=START,
        start_jitter=JITTER,
    )


def access_link(
    *,
    rates: Rates,
    groups: list[Traffic],
    queues: Mapping[str, Queue],
    rtt: str,
    duration: str,
    warmup: str,
    replications: int,
    seed: int,
    name: str,
) -> Scenario:
    """Compose a scenario that compares queues at both ends of an access link.

    Parameters
    ----------
    rates
        Rates of the link.
    groups
        What crosses it.
    queues
        One arm each, by its name: the queue is set at both ends.
    rtt
        Round-trip time with empty queues, with its unit.
    duration, warmup
        How long a run lasts, and from when on totals count, with units.
    replications, seed
        Runs an arm, and what their random numbers derive from.
    name
        What reports call it.

    Returns
    -------
    Scenario
        The scenario.
    """
    first = next(iter(queues.values()))
    arms = [
        Arm(name=arm, set={"links.up.qdisc": queue, "links.down.qdisc": queue})
        for arm, queue in queues.items()
    ]
    return Scenario(
        name=name,
        links={
            "up": Link(rate=rates.up, qdisc=first),
            "down": Link(rate=rates.down, qdisc=first),
        },
        traffic=groups,
        arms=arms,
        rtt=rtt,
        duration=duration,
        warmup=warmup,
        replications=replications,
        seed=seed,
    )


def parking_lot(
    *,
    rate: str,
    queues: Mapping[str, Queue],
    hops: int = 3,
    rtt: str = "50ms",
    duration: str = "70s",
    warmup: str = "15s",
    replications: int = 10,
    seed: int = 1,
) -> Scenario:
    """Compose a parking lot: bottlenecks in series, a flow across all and one across each.

    Parameters
    ----------
    rate
        Of every link, with its unit.
    queues
        One arm each, by its name: the queue is set at every link.
    hops
        How many links there are, 2 or more.
    rtt
        Round-trip time of every flow with empty queues, with its unit.
    duration, warmup
        How long a run lasts, and from when on totals count, with units.
    replications, seed
        Runs an arm, and what their random numbers derive from.

    Returns
    -------
    Scenario
        The scenario, with the links ``hop1``, ``hop2`` … and the traffic ``through`` (all of
        them) and ``cross1``, ``cross2`` … (one each).

    Raises
    ------
    ScenarioError
        There are fewer than two hops or no queues, or a value is not one.

    Examples
    --------
    >>> from sojourn import Pfifo
    >>> [group.name for group in parking_lot(rate="10mbit", queues={"a": Pfifo()}).traffic]
    ['through', 'cross1', 'cross2', 'cross3']
    """
    if hops < 2:  # noqa: PLR2004 - one bottleneck is not a series
        message = f"hops: {hops} is out of range: a parking lot has 2 or more"
        raise _core.ScenarioError(message)
    if not queues:
        message = "queues: at least one is needed"
        raise _core.ScenarioError(message)
    names = [f"hop{number}" for number in range(1, hops + 1)]
    first = next(iter(queues.values()))

    def flow(name: str, path: list[str]) -> Tcp:
        return Tcp(name=name, path=path, start_jitter=JITTER)

    return Scenario(
        name=f"parking lot of {hops}",
        links={name: Link(rate=rate, qdisc=first) for name in names},
        traffic=[
            flow("through", names),
            *(flow(f"cross{number}", [name]) for number, name in enumerate(names, start=1)),
        ],
        arms=[
            Arm(name=arm, set={f"links.{name}.qdisc": queue for name in names})
            for arm, queue in queues.items()
        ],
        rtt=rtt,
        duration=duration,
        warmup=warmup,
        replications=replications,
        seed=seed,
    )
