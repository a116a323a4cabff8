"""The configuration of a router as a scenario file: its queues, the line behind them, traffic."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sojourn import _core, files
from sojourn.errors import invalid
from sojourn.exchange.empty_classes import empty_classes
from sojourn.queues.queue_file import toml_string
from sojourn.scenario import Link, Scenario
from sojourn.traffic import Ping, Tcp, Traffic
from sojourn.traffic.block import Direction

STANDARD_INPUT = Path("-")
# Much more than the configuration of any router.
MOST_BYTES = 1_000_000
DIRECTIONS: tuple[Direction, Direction] = ("up", "down")
# The port of a router is faster than the line: at least this, and this many times.
PORT_BITS_PER_S, PORT_FACTOR = 1_000_000_000, 10
RTT = "40ms"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a configuration, the place that messages name, and the name of the scenario."""

    text: str
    place: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaper:
    """What a router has in one direction: its device, the settings of the link and the queue."""

    device: str
    settings: Mapping[str, str] = field(default_factory=dict)
    # ``{"text": "cake …"}``, or the table of a queue with classes.
    queue: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The shapers of a router by direction, and what was read that is not modelled."""

    title: str
    source: Source
    shapers: Mapping[Direction, Shaper]
    notes: Sequence[str] = ()
    rtt: str = RTT
    # Blocks of traffic that filters name: packets with a mark, or those of a circuit.
    marks: Sequence[str] = ()
    circuits: Sequence[str] = ()
    # By whose delay a controller decides.
    reflectors: Sequence[Ping] = ()
    # Lines of a comment.
    comment: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The line behind the router: the link of each direction, and the round-trip time."""

    links: Mapping[Direction, Link]
    rtt: str


def source_of(paths: Sequence[str | Path]) -> Source | None:
    """Read the text of one file, or of standard input; None: there are several, or no file."""
    if len(paths) != 1:
        return None
    path = Path(paths[0])
    try:
        if path == STANDARD_INPUT:
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                message = f"standard input: too large; expected at most {MOST_BYTES} bytes"
                raise _core.ScenarioError(message)
            return Source(content.decode(errors="replace"), "standard input", "router")
        content = files.head(path, MOST_BYTES)
    except OSError:
        # The readers of other formats say why.
        return None
    return Source(content.decode(errors="replace"), f"{path}", path.stem)


def scenario(
    found: Configuration,
    *,
    line: Line | None = None,
    rtt: str | None = None,
    traffic: Sequence[Traffic] | None = None,
) -> tuple[str, list[str]]:
    """Write a scenario file, and what to note about it.

    Without `traffic` there is an endless transfer for each block that filters name, or for each
    direction.
    """
    groups = _traffic(found, traffic)
    notes = list(found.notes)
    for direction, shaper in found.shapers.items():
        empty = empty_classes(shaper.queue, groups, direction)
        # A controller finds the rate of the line.
        faster = [] if line is None or found.reflectors else _faster(direction, shaper, line)
        notes += [f"{found.source.place}: {shaper.device}: {text}" for text in (*empty, *faster)]
    lines = [
        f"# {found.title}." + ("" if traffic else " Replace the traffic by yours."),
        *(f"# {text}".rstrip() for text in found.comment),
        f"name = {toml_string(found.source.name)}",
        'duration = "30s"',
        'warmup = "5s"',
        f"rtt = {toml_string(rtt or (found.rtt if line is None else line.rtt))}",
    ]
    if line is None and "down" not in found.shapers:
        rest: Any = "unlimited"
        if any(group.direction == "down" for group in groups):
            rate = _rate(found.shapers["up"], _port(line))
            rest = {"rate": f"{rate}bit", "qdisc": "pfifo"}
            notes.append(
                f"{found.source.place}: nothing shapes downloads, so links.down is a pfifo at the "
                f"rate of uploads, {rate / 1e6:.4g} Mbit/s; name a link or a preset to set "
                "the rates of the line"
            )
        lines.append(f"links.down = {_value(rest)}")
    port = _port(line)
    for direction, shaper in found.shapers.items():
        settings = {"rate": port, **shaper.settings}
        lines += ["", f"[links.{direction}] # {shaper.device}", *_keys(settings)]
        lines += _queue(direction, shaper.queue)
    for direction, link in () if line is None else line.links.items():
        lines += ["", f"[links.line_{direction}]", *_keys(link.document())]
    for group in groups:
        placed = group if line is None else _placed(group, found.shapers)
        lines += ["", "[[traffic]]", *_keys(placed.document())]
    written = "\n".join([*lines, ""])
    _check(written, found)
    return written, notes


def _check(written: str, found: Configuration) -> None:
    """Refuse a configuration whose scenario does not run; name the device, not a key of a link."""
    try:
        Scenario.from_toml(written)
    except _core.ScenarioError as error:
        for direction, shaper in found.shapers.items():
            place, within, key = (error.path or "").partition(f"links.{direction}.")
            if within and not place and error.problem is not None:
                # The line would be that of the scenario file, which is not printed.
                problem = re.sub(r" \(line \d+\)$", "", error.problem)
                of_device = f"{found.source.place}: {shaper.device}: {key}"
                raise invalid(of_device, problem) from None
        raise


def _traffic(found: Configuration, traffic: Sequence[Traffic] | None) -> list[Traffic]:
    """Return the traffic: as given, also for each circuit, and what filters name besides."""
    marked: list[Traffic] = [Tcp(name=mark, direction="up") for mark in found.marks]
    if found.circuits and traffic is None:
        return [Tcp(name=circuit, direction="down") for circuit in found.circuits]
    if found.circuits:
        return [
            # Filters by traffic take a block with this prefix, too.
            replace(group, name=f"{circuit}/{group.name}")
            for circuit in found.circuits
            for group in traffic or ()
        ]
    if traffic is not None:
        return [*marked, *traffic, *found.reflectors]
    plain: list[Traffic] = [
        Tcp(name=f"tcp_{direction}", direction=direction)
        for direction in DIRECTIONS
        if direction in found.shapers
    ]
    pings = found.reflectors or [Ping(name="ping", direction="up")]
    return [*(marked or plain), *pings]


def _placed(group: Traffic, shapers: Iterable[Direction]) -> Traffic:
    """Let traffic cross the router and the line."""
    up = [*(["up"] if "up" in shapers else []), "line_up"]
    down = ["line_down", *(["down"] if "down" in shapers else [])]
    path, back = (up, down) if group.direction == "up" else (down, up)
    return replace(group, direction=None, path=path, reverse=back)


def _rate(shaper: Shaper, port: str) -> int:
    """Return the rate at which a shaper sends, in bit/s: of its link, its queue or its tree."""
    rate = _core.parse_rate_bits_per_s(shaper.settings.get("rate", port))
    if "text" in shaper.queue:
        own = re.findall(r"\bbandwidth (\d\S*)", _core.parse_qdisc(shaper.queue["text"]))
    else:
        roots = (one for one in shaper.queue.get("classes", ()) if "parent" not in one)
        own = [one.get("ceil", one["rate"]) for one in roots]
    return min(rate, sum(map(_core.parse_rate_bits_per_s, own)) or rate)


def _faster(direction: Direction, shaper: Shaper, line: Line) -> Iterator[str]:
    """Say that packets wait in the line because the shaper is faster, or there is none."""
    port = _port(line)
    rates = _rate(shaper, port), line.links[direction].bits_per_s
    if rates[0] <= rates[1]:
        return
    own, of_line = (f"{rate / 1e6:.4g} Mbit/s" for rate in rates)
    wait = f"the line behind it has {of_line}, so packets wait in links.line_{direction}"
    if rates[0] < _core.parse_rate_bits_per_s(port):
        yield f"shapes at {own}, but {wait}; lower the rate to see the effect of this queue"
    else:
        yield f"has no rate below that of the port, and {wait}, not in this queue"


def _port(line: Line | None) -> str:
    """Return the rate of a port of the router."""
    fastest = max((link.bits_per_s for link in line.links.values()), default=0) if line else 0
    bits = max(PORT_BITS_PER_S, round(PORT_FACTOR * fastest))
    return "1gbit" if bits == PORT_BITS_PER_S else f"{bits}bit"


def _queue(direction: str, queue: Mapping[str, Any]) -> Iterator[str]:
    """Write the queue of a link; a list of classes or filters has an entry per line."""
    if "text" in queue:
        yield f"qdisc = {toml_string(queue['text'])}"
        return
    yield from ("", f"[links.{direction}.qdisc]")
    for key, value in queue.items():
        if isinstance(value, list):
            yield f"{key} = ["
            yield from (f"    {_value(entry)}," for entry in value)
            yield "]"
        else:
            yield f"{key} = {toml_string(f'{value}')}"


def _keys(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()]


def _value(value: Any) -> str:
    """Write a value of TOML on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return toml_string(value) if isinstance(value, str) else f"{value}"
