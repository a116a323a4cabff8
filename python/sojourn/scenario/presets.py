"""Named traffic, and presets of access lines, with the names of established tests.

Bulk transfers, floods and RRUL follow flent (https://flent.org): flows of ``rrul`` have its DSCPs
and the names of its series, with ICMP pings and periodic UDP pings as of irtt. The pings of other
traffic are ICMP, and all their packets are best effort. Names joined by ``+`` run together, as in
``web+tcp_1up``. ``responsiveness`` is the test of draft-ietf-ippm-responsiveness in both
directions at once.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments import NOT_GIVEN, Argument, ArgumentError, checked, common, in_argument
from sojourn.arguments.common import SCENARIO
from sojourn.errors import invalid, invalid_value
from sojourn.queues import Queue
from sojourn.scenario import Arm, Link, Scenario
from sojourn.scenario.link import Layer, layer
from sojourn.traffic import (
    Dash,
    Exponential,
    Incast,
    Media,
    Pareto,
    Ping,
    Quic,
    Responsiveness,
    Sessions,
    Tcp,
    Traffic,
    Udp,
    Voip,
    Web,
)
from sojourn.traffic.applications import Http
from sojourn.traffic.block import Direction

MARK = "[R]"
_FILE = Path(__file__).with_name("links.toml")


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and where it comes from."""

    value: Any
    source: str
    assumed: bool = False

    @property
    def mark(self) -> str:
        """``" [R]"`` if the value is assumed, else nothing."""
        return f" {MARK}" if self.assumed else ""


@dataclass(frozen=True, slots=True)
class LinkPreset:
    """An access link."""

    name: str
    title: str
    values: Mapping[str, Sourced]


@cache
def link_presets() -> dict[str, LinkPreset]:
    """Return the presets by name.

    Examples
    --------
    >>> link_presets()["adsl"].values["layer"].value
    'pppoe-llcsnap'
    """
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: _preset(name, table) for name, table in tables.items()}


def _preset(name: str, table: dict[str, Any]) -> LinkPreset:
    values = {
        key: Sourced(item["value"], item.get("source") or item["assumed"], "assumed" in item)
        for key, item in table.items()
        if key != "title"
    }
    return LinkPreset(name, table["title"], values)


def link_preset(name: str) -> LinkPreset:
    """Return a preset."""
    known = link_presets()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        instead = f'; did you mean "{near[0]}"?' if near else ""
        rule = "unknown; expected one of {known}{instead}"
        raise ArgumentError("preset", name, rule, known=", ".join(known), instead=instead)
    return known[name]


# An argument of functions that compose the scenario of an access line.
PRESET = Argument(
    help=f"Kind of access line: {', '.join(link_presets())}. Sets the values of the line that "
    "other options do not set.",
    metavar="NAME",
    heading=SCENARIO,
    completion="presets_of_lines",
)
Preset = Annotated[str | None, PRESET]


# As in flent, load starts 5 s after the pings.
START = "5s"
# Starts are delayed by up to this, so that replications differ.
JITTER = "50ms"
_BEGIN: dict[str, Any] = {"start": START, "start_jitter": JITTER}
PING_INTERVAL = "200ms"
# The DSCPs of RRUL's transfers and UDP pings, with their names in flent.
RRUL_MARKS = {"CS0": "BE", "CS1": "BK", "CS5": "CS5", "EF": "EF"}
RRUL_PING_MARKS = ("EF", "CS1", "CS0")
RRUL_SIDES: dict[Direction, str] = {"up": "upload", "down": "download"}
# The RTTs of the fairness test of "The Good, the Bad and the WiFi" (2015).
FAIRNESS_RTTS = ("10ms", "50ms", "200ms", "500ms")
# Rate of an unresponsive stream, relative to the link, that keeps the queue full.
FLOOD_PERCENT = 120
# Responses of sessions; their mean is 24 kB.
SESSION_BYTES = Pareto(least="4kb", shape=1.2)
SESSION_MEAN_BYTES = 24_000
# Offered load of sessions, relative to the downlink rate.
SESSION_LOAD = 0.5
# Minimum similarity, from 0 to 1, of an unknown name and a suggestion.
NEAR = 0.8

_BULK = re.compile(
    r"(?P<kind>tcp|quic|ledbat)(?:_(?P<up>[1-9]\d{0,4})up)?(?:_(?P<down>[1-9]\d{0,4})down)?"
)
_LINK = re.compile(
    r"(?P<down>[\d.]+)(?P<down_unit>[a-z]*)(?:/(?P<up>[\d.]+)(?P<unit>[a-z]+))?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of an access link."""

    down: str
    up: str
    layer: Layer | None = None


_TRACE = """-s 'links.up={trace="FILE", qdisc="QDISC"}'"""


def link_rates(text: str) -> Rates:
    """Parse the rates of a link, download first.

    Examples
    --------
    >>> link_rates("10/1mbit")
    Rates(down='10mbit', up='1mbit', layer=None)
    >>> link_rates("10 Mbit/s").up
    '10Mbit'
    """
    # Units as tables write them: 10 Mbit/s.
    found = _LINK.fullmatch(re.sub(r"(?i)(?<=bit)/s\b| ", "", text))
    if found is None or not (found["down_unit"] or found["unit"]):
        rule = "expected down/up with a unit, such as 10/1mbit, or one rate"
        # The name of a file is one of a trace.
        more = f"; a trace is set by {_TRACE}" if re.search(r"\.[a-z]", text) else ""
        raise ArgumentError("link", text, f"{rule}{{more}}", more=more)
    down = found["down"] + (found["down_unit"] or found["unit"])
    up = down if found["up"] is None else found["up"] + found["unit"]
    for rate in (down, up):
        with in_argument("link", text):
            _core.parse_rate_bits_per_s(rate)
    return Rates(down=down, up=up)


def check_link(link: str | None) -> None:
    """Refuse the name of a preset as rates."""
    if link in link_presets():
        rule = "a preset; expected rates such as 10/1mbit, or the preset as {preset}"
        raise ArgumentError("link", link, rule)


def line_rates(preset: str | None, link: str | None, default: str) -> Rates:
    """Return the rates of a line: those of `link`, of the preset, or else the default ones."""
    check_link(link)
    own = link_rates(default if link is None else link)
    if preset is None:
        return own
    of_preset = _preset_rates(preset)
    return of_preset if link is None else replace(of_preset, down=own.down, up=own.up)


def _preset_rates(name: str) -> Rates:
    """Return the rates and the link layer of a preset of a line."""
    values = link_preset(name).values
    down, up, layer_name = (values[key].value for key in ("down", "up", "layer"))
    return Rates(down=down, up=up, layer=layer(layer_name))


def traffic(
    name: str, rates: Rates | None, *, cc: str | None = None, ecn: bool | None = None
) -> list[Traffic]:
    """Compose a named traffic; `rates` may be unknown unless the load is relative to them.

    Examples
    --------
    >>> [group.kind for group in traffic("tcp_4up+web", link_rates("10mbit"))]
    ['tcp', 'web', 'ping']
    """
    parts = name.split("+")
    groups = [group for part in parts for group in _load(part, rates)]
    names = [group.name for group in groups]
    for group in names:
        if names.count(group) > 1:
            problem = f'"{group}" occurs in more than one part; expected each name once'
            place = f'traffic "{name}"'
            raise invalid(place, problem)
    for option, wanted in (("cc", cc), ("ecn", ecn)):
        if wanted is not None and not any(_takes(group, option) for group in groups):
            rule = 'no effect: traffic "{traffic_name}" has no connection that uses it'
            value = NOT_GIVEN if option == "ecn" else wanted
            raise ArgumentError(option, value, rule, traffic_name=name)
    groups = [_with_transport(group, cc=cc, ecn=ecn) for group in groups]
    ping = "Ping (ms) ICMP" if "rrul" in parts else "ping"
    return [*groups, Ping(name=ping, direction="up", interval=PING_INTERVAL)]


def _with_transport(group: Traffic, *, cc: str | None, ecn: bool | None) -> Traffic:
    # That of media has a name.
    mode = "classic" if ecn and isinstance(group, Media) else ecn
    wanted: dict[str, Any] = {"cc": cc, "ecn": mode}
    changes = {
        option: value
        for option, value in wanted.items()
        if value is not None and _takes(group, option)
    }
    return replace(group, **changes) if changes else group


def _takes(group: Traffic, option: str) -> bool:
    """Whether `group` has the option and does not set it, as LEDBAT sets its `cc`."""
    has = {field.name for field in fields(group)}
    return option in has and getattr(group, option) is None


def _load(name: str, rates: Rates | None) -> list[Traffic]:
    if name in _LOADS:
        return _LOADS[name]()
    if name in _RELATIVE:
        if rates is None:
            rule = "its load is relative to the rate of the line; expected {link} or {preset}"
            raise ArgumentError("traffic", name, rule)
        return _RELATIVE[name](rates)
    found = _BULK.fullmatch(name)
    if found is None or (found["up"] is None and found["down"] is None):
        near = nearest(name)
        names = f"expected one of {', '.join(TRAFFIC_NAMES)}"
        instead = names if near is None else f'did you mean "{near}"?'
        if re.search(r"[, ]", name):
            instead = f"join several with +, such as {'+'.join(re.split(r'[, ]+', name))}"
        raise invalid_value("traffic", name, instead)
    counts: dict[Direction, str | None] = {"up": found["up"], "down": found["down"]}
    return [
        _bulk(found["kind"], side, int(count))
        for side, count in counts.items()
        if count is not None
    ]


def nearest(name: str) -> str | None:
    """Return the known traffic that is most similar to `name`, with its numbers of flows."""
    numbers = re.findall(r"_(\d+)", name)
    near = difflib.get_close_matches(
        re.sub(r"_\d+", "_1", name), numbered_names(), n=1, cutoff=NEAR
    )
    if not near:
        return None
    given = iter(numbers)
    same = re.sub(r"_1", lambda _: f"_{next(given, '1')}", near[0])
    return same if _BULK.fullmatch(same) else near[0]


def _udp_flood(rates: Rates) -> list[Traffic]:
    flood = _core.parse_rate_bits_per_s(rates.up) * FLOOD_PERCENT // 100
    return [
        Udp(name="udp up", direction="up", rate=f"{flood // 1000}kbit", start=START, spread=0.1)
    ]


def _web(name: str, http: Http) -> list[Traffic]:
    think = Exponential(mean="5s")
    return [Web(name=name, direction="down", page="large", http=http, think=think, **_BEGIN)]


def _voip(name: str, dscp: str | None = None) -> list[Traffic]:
    return [
        Voip(name=f"{name} {side}", direction=side, dscp=dscp, start=START, start_jitter="20ms")
        for side in ("up", "down")
    ]


def _sessions(rates: Rates) -> list[Traffic]:
    bytes_per_s = _core.parse_rate_bits_per_s(rates.down) / 8 * SESSION_LOAD
    gap_us = max(round(SESSION_MEAN_BYTES / bytes_per_s * 1e6), 1)
    return [
        Sessions(
            name="sessions",
            direction="down",
            every=Exponential(mean=f"{gap_us}us"),
            bytes=SESSION_BYTES,
            start=START,
        )
    ]


def _rrul() -> list[Traffic]:
    """Compose flent's RRUL without its ICMP ping; flows have the names of flent's series."""
    loads = [
        Tcp(name=f"TCP {RRUL_SIDES[side]} {label}", direction=side, dscp=mark, **_BEGIN)
        for side in RRUL_SIDES
        for mark, label in RRUL_MARKS.items()
    ]
    pings = [
        Ping(
            name=f"Ping (ms) UDP {RRUL_MARKS[mark]}",
            direction="up",
            protocol="udp",
            interval=PING_INTERVAL,
            dscp=mark,
        )
        for mark in RRUL_PING_MARKS
    ]
    return [*loads, *pings]


def _bulk(kind: str, direction: Direction, count: int) -> Tcp | Quic:
    name = f"{kind} {direction}"
    if kind == "quic":
        return Quic(name=name, direction=direction, count=count, **_BEGIN)
    cc = "ledbat" if kind == "ledbat" else None
    return Tcp(name=name, direction=direction, count=count, cc=cc, **_BEGIN)


def _household() -> list[Traffic]:
    """Compose transfers of one host, pages of another and a call of a third."""
    bulk = [_bulk("tcp", "up", 2), _bulk("tcp", "down", 4)]
    hosts: list[tuple[int, list[Traffic]]] = [(1, [*bulk]), (2, _web("web", "2"))]
    hosts.append((3, _voip("voip")))
    return [replace(group, host=host) for host, groups in hosts for group in groups]


# All traffic but that of _BULK and that of _RELATIVE, by name.
_LOADS: dict[str, Callable[[], list[Traffic]]] = {
    "rrul": _rrul,
    "rrul_be": lambda: [_bulk("tcp", "up", 4), _bulk("tcp", "down", 4)],
    "household": _household,
    "rtt_fair": lambda: [replace(_bulk("tcp", "up", len(FAIRNESS_RTTS)), rtt=FAIRNESS_RTTS)],
    "web": lambda: _web("web", "2"),
    "web_http1": lambda: _web("web_http1", "1.1"),
    "web_http3": lambda: _web("web_http3", "3"),
    "dash": lambda: [Dash(name="dash", direction="down", **_BEGIN)],
    "responsiveness": lambda: [
        Responsiveness(name=f"responsiveness {side}", direction=side, **_BEGIN)
        for side in ("down", "up")
    ],
    "voip": lambda: _voip("voip"),
    "media": lambda: [
        Media(name=f"media {side}", direction=side, **_BEGIN) for side in ("up", "down")
    ],
    "voip_nqb": lambda: _voip("voip_nqb", "NQB"),
    "incast": lambda: [
        Incast(name="incast", direction="down", servers=32, bytes="32kb", think="1s", **_BEGIN)
    ],
}
# Traffic whose load is relative to the rates of the line.
_RELATIVE: dict[str, Callable[[Rates], list[Traffic]]] = {
    "udp_flood": _udp_flood,
    "sessions": _sessions,
}

# The traffic as messages name it; N and M stand for numbers.
TRAFFIC_NAMES = (
    *_LOADS,
    *_RELATIVE,
    *("tcp_Nup", "tcp_Ndown", "tcp_Nup_Mdown", "quic_Nup_Mdown", "ledbat_Nup_Mdown"),
)
# An argument of functions that compose the scenario of an access line.
TRAFFIC = Argument(
    help=f"One of {', '.join(TRAFFIC_NAMES)}, or several joined by +, such as web+tcp_1up. N and M "
    "are numbers of flows.",
    metavar="TRAFFIC",
    heading=SCENARIO,
    completion="traffic",
)


def numbered_names() -> list[str]:
    """Return the names of traffic with 1 for each number of flows."""
    return [name.replace("_N", "_1").replace("_M", "_1") for name in TRAFFIC_NAMES]


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
    """Compose a scenario that compares queues in both directions of an access link."""
    first = next(iter(queues.values()))
    arms = [
        Arm(name=arm, set={"links.up.qdisc": queue, "links.down.qdisc": queue})
        for arm, queue in queues.items()
    ]
    framed: dict[str, Any] = {} if rates.layer is None else rates.layer.of_link
    return Scenario(
        name=name,
        links={
            "up": Link(rate=rates.up, qdisc=first, **framed),
            "down": Link(rate=rates.down, qdisc=first, **framed),
        },
        traffic=groups,
        arms=arms,
        rtt=rtt,
        duration=duration,
        warmup=warmup,
        replications=replications,
        seed=seed,
    )


# Links of a parking lot.
_HOPS = Argument(help="Number of links.", least=2, most=1000)
_RATE = Argument(help="Rate of every link.", kind="rate")
_TIME = Argument(help="A time.", kind="time")


@checked
def parking_lot(
    *,
    rate: Annotated[str, _RATE],
    queues: Mapping[str, Queue],
    hops: Annotated[int, _HOPS] = 3,
    rtt: Annotated[str, common.RTT] = "50ms",
    duration: Annotated[str, _TIME] = "70s",
    warmup: Annotated[str, _TIME] = "15s",
    replications: common.OwnReplications = 10,
    seed: common.OwnSeed = 1,
) -> Scenario:
    """Compose a parking lot: bottlenecks in series, one flow over all and one over each.

    Parameters
    ----------
    rate
        Rate of every link, with its unit.
    queues
        The queue of each arm, by name; every link has it.
    hops
        Number of links, 2 to 1000.
    rtt
        Round-trip time of every flow with empty queues, with its unit.
    duration, warmup
        Simulated duration of a run, and the warm-up period excluded from totals, with units.
    replications, seed
        Runs per arm, and the seed of their random numbers.

    Returns
    -------
    Scenario
        The scenario, with the links ``hop1``, ``hop2`` … and the traffic ``through`` (all of
        them) and ``cross1``, ``cross2`` … (one each).

    Raises
    ------
    ScenarioError
        There are fewer than two hops or no queues, or a value is not valid.

    Examples
    --------
    >>> from sojourn import Pfifo
    >>> [group.name for group in parking_lot(rate="10mbit", queues={"a": Pfifo()}).traffic]
    ['through', 'cross1', 'cross2', 'cross3']
    """
    if not queues:
        raise ArgumentError("queues", rule="empty; expected at least one queue")
    names = [f"hop{number}" for number in range(1, hops + 1)]
    first = next(iter(queues.values()))

    def flow(name: str, path: list[str]) -> Tcp:
        return Tcp(name=name, path=path, start_jitter=JITTER)

    return Scenario(
        name=f"parking lot with {hops} hops",
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
