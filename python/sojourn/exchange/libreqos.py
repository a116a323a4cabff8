"""``network.json`` and ``ShapedDevices.csv`` of LibreQoS, as trees of ``htb`` of a scenario.

A node of ``network.json`` is a class whose rate is its bandwidth, at most that of its parent; a
circuit is a leaf class with the minimum of its rows as rate, the maximum as ceil, both at most the
bandwidth of its node, and ``cake diffserv4`` or the queue of the column ``sqm``. Each circuit is a
block of traffic of the same name, which the filters use.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from sojourn import _core, files
from sojourn.exchange.configuration import Configuration, Shaper, Source
from sojourn.traffic.block import Direction

MOST_BYTES = 10_000_000
_HEADER = "circuit id"
_DEFAULT_QUEUE = "cake diffserv4"
_QUEUES = {"cake": _DEFAULT_QUEUE, "fq_codel": "fq_codel", "none": "pfifo", "": _DEFAULT_QUEUE}
# Circuits of LibreQoS have this priority.
_PRIO = "3"
_DIRECTIONS: Mapping[Direction, str] = {"down": "Download", "up": "Upload"}
_COLUMNS = (
    "Circuit ID",
    *(f"{word} {end} Mbps" for end in ("Min", "Max") for word in _DIRECTIONS.values()),
)
_WITHOUT_PARENT = "no_parent_node"


@dataclass(frozen=True, slots=True)
class _Circuit:
    """A circuit with its rates in Mbit/s by direction: minimum and maximum."""

    name: str
    parent: str
    rates: Mapping[Direction, tuple[float, float]]
    queues: Mapping[str, str]


def are_files(paths: Sequence[str | Path]) -> bool:
    """Whether these are a ``network.json`` and a ``ShapedDevices.csv``."""
    return sorted(Path(path).suffix for path in paths) == [".csv", ".json"]


def is_one_of_two(begin: bytes) -> bool:
    """Whether the begin of a file is that of a ``network.json`` or ``ShapedDevices.csv``."""
    return b"BandwidthMbps" in begin or _HEADER.encode() in begin.lower()


def configuration(paths: Sequence[str | Path]) -> Configuration:
    """Read the trees of both directions."""
    network, devices = sorted(
        (Path(path) for path in paths), key=lambda path: path.suffix, reverse=True
    )
    notes: list[str] = []
    nodes = _nodes(network, notes)
    circuits = _circuits(devices, notes)
    limits = {name: rates for name, _, rates in nodes}
    known = {_WITHOUT_PARENT, *(name for name, _, _ in nodes)}
    for n, circuit in enumerate(circuits):
        if circuit.parent not in known:
            unknown = f"parent node {circuit.parent} is not in {network.name}"
            notes.append(
                f"circuit {circuit.name}: {unknown}, so it is read as one without a parent"
            )
            circuits[n] = replace(circuit, parent=_WITHOUT_PARENT)
        for direction, (least, most) in circuit.rates.items():
            if least > most:
                of = f"{_DIRECTIONS[direction].lower()} minimum {least:.15g} Mbit/s"
                above = f"is above its maximum {most:.15g} Mbit/s, which limits it"
                notes.append(f"circuit {circuit.name}: {of} {above}")
            limit = limits.get(circuit.parent, {}).get(direction, math.inf)
            if most > limit:
                of = f"{_DIRECTIONS[direction].lower()} maximum {most:.15g} Mbit/s"
                notes.append(
                    f"circuit {circuit.name}: {of} is limited to the {limit:.15g} Mbit/s of its "
                    f"parent {circuit.parent}"
                )
    if any(circuit.parent == _WITHOUT_PARENT for circuit in circuits):
        notes.append("circuits without a parent node are below a class that does not limit them")
    return Configuration(
        title=f"{network.name} and {devices.name}",
        source=Source("", f"{network}", "libreqos"),
        shapers={
            direction: Shaper(
                device=word.lower(),
                settings={"rate": "100gbit"},
                queue=_tree(direction, nodes, circuits),
            )
            for direction, word in _DIRECTIONS.items()
        },
        notes=notes,
        rtt="20ms",
        circuits=[circuit.name for circuit in circuits],
    )


def _tree(
    direction: Direction,
    nodes: list[tuple[str, str, Mapping[Direction, float]]],
    circuits: list[_Circuit],
) -> dict[str, Any]:
    """Return the tree of a direction as a table."""
    classes: list[dict[str, str]] = []
    for name, parent, rates in nodes:
        above = {"parent": parent} if parent else {}
        classes.append({"name": name, **above, "rate": f"{rates[direction]:.15g}mbit"})
    limits = {name: rates[direction] for name, _, rates in nodes}
    loose = [circuit for circuit in circuits if circuit.parent == _WITHOUT_PARENT]
    if loose:
        total = sum(circuit.rates[direction][1] for circuit in loose)
        classes.append({"name": _WITHOUT_PARENT, "rate": f"{total:.15g}mbit"})
    for circuit in circuits:
        limit = limits.get(circuit.parent, math.inf)
        least, most = (min(rate, limit) for rate in circuit.rates[direction])
        classes.append(
            {
                "name": circuit.name,
                "parent": circuit.parent,
                "rate": f"{least:.15g}mbit",
                "ceil": f"{most:.15g}mbit",
                "prio": _PRIO,
                "leaf": circuit.queues[direction],
            }
        )
    filters = [{"to": circuit.name, "traffic": circuit.name} for circuit in circuits]
    return {"kind": "htb", "classes": classes, "filters": filters}


def _text(path: Path) -> str:
    try:
        content = files.head(path, MOST_BYTES + 1)
    except OSError as error:
        _refuse(path, f"cannot read: {error.strerror}")
    if len(content) > MOST_BYTES:
        _refuse(path, f"too large; expected at most {MOST_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(path, f"not valid UTF-8 at byte {error.start}")


def _nodes(path: Path, notes: list[str]) -> list[tuple[str, str, Mapping[Direction, float]]]:
    """Return name, parent and rates of each node, parents first; note which rates are lowered."""
    try:
        tree = json.loads(_text(path))
    except (ValueError, RecursionError):
        _refuse(path, "not valid JSON")
    found: list[tuple[str, str, Mapping[Direction, float]]] = []
    names: set[str] = set()

    def add(children: object, parent: str, most: Mapping[Direction, float]) -> None:
        if not isinstance(children, dict):
            _refuse(path, f"the children of {parent or 'the network'} are not an object")
        for key, node in children.items():
            name = _word(key)
            if name in names:
                _refuse(path, f'two nodes have the name "{key}"')
            names.add(name)
            if not isinstance(node, dict):
                _refuse(path, f"node {key} is not an object")
            rates = _bandwidth(path, key, node)
            for direction, rate in rates.items():
                if rate > (limit := most[direction]):
                    rates[direction] = limit
                    of = f"{_DIRECTIONS[direction].lower()} is limited to the {limit:.15g} Mbit/s"
                    notes.append(f"node {key}: {of} of its parent {parent}")
            found.append((name, parent, rates))
            add(node.get("children") or {}, name, rates)

    try:
        add(tree, "", dict.fromkeys(_DIRECTIONS, math.inf))
    except RecursionError:
        _refuse(path, "nodes are nested too deeply")
    return found


def _bandwidth(path: Path, name: str, node: Mapping[str, object]) -> dict[Direction, float]:
    """Return the rates of a node in Mbit/s."""
    rates = {}
    for direction, word in _DIRECTIONS.items():
        rate = node.get(f"{word.lower()}BandwidthMbps")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0:
            _refuse(path, f"node {name}: {word.lower()}BandwidthMbps is not a number > 0")
        rates[direction] = float(rate)
    return rates


def _circuits(path: Path, notes: list[str]) -> list[_Circuit]:
    """Return the circuits: the first of the rows of a circuit, which are devices, has its rates."""
    found: dict[str, _Circuit] = {}
    lines: dict[str, int] = {}
    names: set[str] = set()
    for number, row in _rows(path):
        place = f"line {number}"
        own = row.get(_HEADER) or row.get("circuit name", "")
        if not own:
            _refuse(path, f"{place}: Circuit ID is missing")
        rates = {
            direction: (
                _rate(path, place, row, f"{word} Min"),
                _rate(path, place, row, f"{word} Max"),
            )
            for direction, word in _DIRECTIONS.items()
        }
        parent = row.get("parent node", "")
        down, slash, up = row.get("sqm", "").strip().partition("/")
        queues = {
            "down": _queue(path, place, down),
            "up": _queue(path, place, up if slash else down),
        }
        parent = _word(parent) if parent else _WITHOUT_PARENT
        if (first := found.get(own)) is not None:
            if replace(first, parent=parent, rates=rates, queues=queues) != first:
                notes.append(
                    f"circuit {first.name}: {place} has another rate, parent node or sqm than line "
                    f"{lines[own]}, which counts"
                )
            continue
        name = _word(row.get("circuit name") or own)
        if name in names:
            name = f"{name}_{_word(own)}"
        names.add(name)
        lines[own] = number
        found[own] = _Circuit(name, parent, rates, queues)
    if not found:
        _refuse(path, "no circuit")
    return [*found.values()]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows by the names of the columns in lower case, with their lines."""
    lines = _text(path).splitlines()
    numbered = [
        (n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")
    ]
    reader = csv.reader(io.StringIO("\n".join(line for _, line in numbered)))
    header: list[str] = []
    for (number, _), values in zip(numbered, reader, strict=False):
        if not header:
            header = [value.strip().lower() for value in values]
            missing = [name for name in _COLUMNS if name.lower() not in header]
            if missing:
                expected = f"expected those of ShapedDevices.csv: {', '.join(_COLUMNS)}"
                _refuse(path, f"line {number}: no column {', '.join(missing)}; {expected}")
            continue
        yield number, dict(zip(header, (value.strip() for value in values), strict=False))


def _rate(path: Path, place: str, row: Mapping[str, str], column: str) -> float:
    text = row.get(f"{column} mbps".lower(), "")
    try:
        rate = float(text)
    except ValueError:
        rate = 0
    if not 0 < rate < 1e6:  # noqa: PLR2004 - 1 Tbit/s
        _refuse(path, f'{place}: {column} Mbps "{text}" is not a rate in Mbit/s')
    return rate


def _queue(path: Path, place: str, name: str) -> str:
    if name not in _QUEUES:
        _refuse(path, f'{place}: sqm "{name}" is unknown; expected cake, fq_codel or none')
    return _QUEUES[name]


def _word(name: str) -> str:
    """Write a name as one word."""
    return re.sub(r"[^\w.:-]+", "_", name.strip()).strip("_") or "_"


def _refuse(path: Path, problem: str) -> NoReturn:
    message = f"{path}: {problem}"
    raise _core.ScenarioError(message) from None
