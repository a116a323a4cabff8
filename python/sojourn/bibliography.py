"""The works and RFCs behind queues, congestion controls, traffic, methods and studies.

``references.bib`` has the entries; ``references.toml`` names those of each queue, congestion
control and so on.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.errors import invalid_file

# The key of Sojourn itself.
TOOL = "sojourn"
# Keys of traffic whose values are rows of a section, and how their purpose is written.
_NAMED = {
    "type": ("traffic", "traffic {}"),
    "slow_start": ("slow_start", "{}"),
    "on_ce": ("on_ce", "on_ce {}"),
    "after_idle": ("after_idle", "after_idle {}"),
    "profile": ("profile", "TCP as in {}"),
    "http": ("http", "HTTP/{}"),
}
_ENTRY = re.compile(r"^@(\w+)\{([\w-]+),\n(.*?)\n\}$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+) = ", re.MULTILINE)
_LETTERS = {
    r"{\o}": "ø",
    r"{\"a}": "ä",
    r"{\"o}": "ö",
    r"{\"u}": "ü",
    r"\&": "&",
    r"\_": "_",
    "``": "“",
    "''": "”",
    "--": "–",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """An entry of a bibliography."""

    key: str
    kind: str
    fields: Mapping[str, str]

    @property
    def bibtex(self) -> str:
        """The entry in BibTeX."""
        lines = [f"  {name} = {_braced(name, value)}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])

    @property
    def document(self) -> dict[str, Any]:
        """The entry for JSON: plain text without the commands of BibTeX."""
        fields = {name: plain_text(value) for name, value in self.fields.items()}
        return {"key": self.key, "type": self.kind, "fields": fields}


@dataclass(slots=True)
class Uses:
    """Keys of works, each with what it is used for."""

    of: dict[str, list[str]] = field(default_factory=dict)

    def add(self, keys: Iterable[str], purpose: str) -> None:
        """Note that works are used for a purpose."""
        for key in keys:
            purposes = self.of.setdefault(key, [])
            if purpose not in purposes:
                purposes.append(purpose)

    def update(self, other: "Uses") -> None:
        """Add the uses of another collection."""
        for key, purposes in other.of.items():
            for purpose in purposes:
                self.add([key], purpose)


def _braced(name: str, value: str) -> str:
    """Write the value of a field; months are the macros of BibTeX."""
    return value if name == "month" else f"{{{value}}}"


def plain_text(value: str) -> str:
    r"""Convert a value of BibTeX to plain text.

    Examples
    --------
    >>> plain_text(r'J{\"a}rvinen, Ilpo and {De Schepper}, Koen')
    'Järvinen, Ilpo and De Schepper, Koen'
    """
    for command, letter in _LETTERS.items():
        value = value.replace(command, letter)
    return value.replace("{", "").replace("}", "")


@cache
def works() -> dict[str, Work]:
    """Read the bibliography: entries by their keys."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    return {
        key: Work(key=key, kind=kind, fields=dict(_fields(body)))
        for kind, key, body in _ENTRY.findall(text)
    }


def _fields(body: str) -> Iterator[tuple[str, str]]:
    _, *parts = _FIELD.split(body)
    for name, value in zip(parts[::2], parts[1::2], strict=True):
        joined = " ".join(value.split()).removesuffix(",")
        yield name, joined[1:-1] if joined.startswith("{") else joined


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """Read which works belong to each queue, congestion control, method and study."""
    text = Path(__file__).with_name("references.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def tool(builds: Sequence[str] = ()) -> Work:
    """Return the entry of Sojourn."""
    commit, mark, _ = _core.commit().partition("-dirty")
    this = f"{_core.version()} ({commit[:12]}{mark})"
    entry = works()[TOOL]
    note = f"Version {'; '.join(dict.fromkeys(builds or [this]))}"
    return Work(key=TOOL, kind=entry.kind, fields={**entry.fields, "note": note})


def of_queue(text: str) -> Uses:
    """Return the works behind a queue and its leaves.

    Examples
    --------
    >>> list(of_queue("prio leaf (drr leaf codel) / sfq").of)
    ['linux61', 'shreedhar1996drr', 'rfc8289', 'nichols2012codel', 'mckenney1990sfq']
    """
    uses = Uses()
    if text.startswith(_core.python_prefix()):
        return uses
    for words in _queues(_core.parse_qdisc(text)):
        # The canonical form omits the default profile.
        if "profile" not in words:
            words.extend(_profiles().get(words[0], ())[:1])
        for row, keys in table()["queue"].items():
            kind, *needed = row.split()
            if kind == words[0] and set(needed) <= set(words):
                uses.add(keys, f"queue {row}")
    return uses


@cache
def _profiles() -> dict[str, list[str]]:
    return {entry["name"]: entry["profiles"] for entry in json.loads(_core.qdisc_catalogue())}


def _queues(canonical: str) -> Iterator[list[str]]:
    """Split the canonical form of a queue into the words of the queue and of each leaf."""
    for part in re.split(r"[()]| / |\bleaf\b", canonical):
        if words := part.split():
            yield words


def of_control(text: str) -> Uses:
    """Return the works behind a congestion control."""
    name = _core.parse_cc(text).split()[0]
    uses = Uses()
    uses.add(table()["control"].get(name, ()), f"congestion control {name}")
    mode = {"required": "classic", "accurate": "accurate"}.get(_controls()[name]["ecn"])
    if mode is not None:
        uses.add(table()["ecn"][mode], f"{mode} ECN")
    return uses


@cache
def _controls() -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in json.loads(_core.cc_catalogue())}


def of_scenario(scenario: Mapping[str, Any]) -> Uses:
    """Return the works behind everything that a scenario uses."""
    uses = Uses()
    for place, value in _values(scenario):
        uses.update(_of_value(place, value))
    blocks = scenario["traffic"]
    protocols = {protocol for block in blocks if (protocol := _protocol(block)) is not None}
    for protocol in sorted(protocols, reverse=True):
        uses.add(table()["transport"][protocol], protocol.upper())
    if any("slow_start" not in block for block in blocks):
        for name in _control_names(scenario):
            for protocol in protocols:
                _add(uses, "slow_start", _default_slow_start(name, protocol))
    connections = (block["count"] for block in blocks if _is_connection(block["type"]))
    if sum(connections) > 1:
        _add(uses, "statistics", "Jain's index")
    if scenario["replications"] > 1:
        _add(uses, "statistics", "confidence intervals")
    return uses


def _add(uses: Uses, section: str, name: str, purpose: str | None = None) -> None:
    uses.add(table()[section].get(name, ()), name if purpose is None else purpose)


def _values(scenario: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of links, traffic and arms; of a path in an arm, its last key."""
    for link in scenario["links"].values():
        if isinstance(link, Mapping):
            yield from link.items()
    for block in scenario["traffic"]:
        yield from block.items()
    for arm in scenario.get("arms", ()):
        for path, value in arm["set"].items():
            yield path.rpartition(".")[2], value


def _of_value(key: str, value: Any) -> Uses:
    """Return the works behind one key of a link or a group of traffic."""
    uses = Uses()
    match key, value:
        case "qdisc", str():
            uses.update(of_queue(value))
        case "cc", str():
            uses.update(of_control(value))
        case "ecn", True | "accurate":
            mode = "classic" if value is True else value
            _add(uses, "ecn", mode, f"{mode} ECN")
        case "trace", Mapping():
            _add(uses, "link", "trace", "capacity trace")
        case "loss" | "medium", Mapping():
            name = value.get("model", value.get("type", ""))
            _add(uses, "link", name, f"{key} {name}")
        case _, str() if key in _NAMED:
            section, purpose = _NAMED[key]
            _add(uses, section, value, purpose.format(value))
    return uses


def _is_connection(kind: str) -> bool:
    return _core.traffic_types()[kind]["has_connection"]


def _protocol(block: Mapping[str, Any]) -> str | None:
    """Return the transport protocol of a group of traffic."""
    kind: str = block["type"]
    if _is_connection(kind):
        return kind
    if "transport" not in _core.scenario_keys().get(kind, ()):
        return None
    return "quic" if block.get("http") == "3" else str(block.get("transport", "tcp"))


def _control_names(scenario: Mapping[str, Any]) -> list[str]:
    found = (value for key, value in _values(scenario) if key == "cc" and isinstance(value, str))
    return sorted({_core.parse_cc(text).split()[0] for text in found})


def _default_slow_start(control: str, protocol: str) -> str:
    """Return the slow-start exit heuristic that a control has unless the scenario names one."""
    entry = _controls()[control]
    over_quic: str | None = entry["quic_slow_start"]
    if protocol == "quic" and over_quic is not None:
        return over_quic
    return next(iter(entry["slow_starts"]), "standard")


def of_study(name: str) -> Uses:
    """Return the works that a study of this name reproduces, if Sojourn knows them."""
    uses = Uses()
    uses.add(table()["study"].get(name, ()), f"study {name}")
    return uses


def citation(fields: Mapping[str, Any], place: str) -> Work:
    """Convert the citation of a study to an entry."""
    texts = {name: _core.printable(" ".join(str(value).split())) for name, value in fields.items()}
    key, kind = texts.pop("key", ""), texts.pop("type", "misc")
    if not re.fullmatch(r"[\w:.+-]+", key) or not re.fullmatch(r"[A-Za-z]+", kind):
        raise invalid_file(place, "citation: expected a key and a type of letters and digits")
    for name, value in texts.items():
        if not (re.fullmatch(r"[A-Za-z_-]+", name) and _balanced(value)):
            raise invalid_file(
                place, f"citation.{name}: expected a name of letters and balanced braces"
            )
    return Work(key=key, kind=kind, fields=texts)


def same(work: Work) -> Work:
    """Return the entry of the bibliography with the key or the title of a work, if there is one."""
    title = _letters(work)
    alike = (known for known in works().values() if title and _letters(known) == title)
    return works().get(work.key) or next(alike, work)


def _letters(work: Work) -> str:
    """Reduce a title to its letters and digits."""
    title = plain_text(work.fields.get("title", "")).lower()
    return "".join(letter for letter in title if letter.isalnum())


def _balanced(value: str) -> bool:
    """Whether every brace of a value is closed."""
    depth = 0
    for letter in re.sub(r"\\.", "", value):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            return False
    return depth == 0
