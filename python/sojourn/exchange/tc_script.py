"""Scripts of ``tc`` commands that make a queue or a tree of ``htb``, as queues of a scenario.

Each ``tc qdisc``, ``tc class`` and ``tc filter`` that adds, changes or replaces is read; what has
no counterpart is refused with its line. Other commands of a script are not executed: variables are
replaced if a line of the script sets them to a fixed value.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sojourn import _core
from sojourn.queues.queue_file import toml_string

_COMMAND = re.compile(
    r"^\s*(?:sudo\s+)?(?:\S*/)?(?:tc|\$TC|\$\{TC\})\s+(?:-\S+\s+)*"
    r"(?P<words>(?:qdisc|class|filter)\s.*)$"
)
_BATCH = re.compile(
    r"^\s*(?P<words>(?:qdisc|class|filter)\s+(?:add|replace|change|del|delete)\s.*)$"
)
_SETTING = re.compile(
    r"""^\s*(?:export\s+|local\s+)?(\w+)=("[^"`]*"|'[^']*'|[^\s"'`;]*)\s*;?\s*(?:#.*)?$"""
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_CONTROL = re.compile(r"^\s*(for|while|until|if|case|function)\b|^\s*\w+\s*\(\)")
_ADDING = frozenset({"add", "replace", "change"})
# Words of classes with their key in Sojourn; those of bursts have several names.
_OF_CLASS = {
    "rate": "rate",
    "ceil": "ceil",
    "burst": "burst",
    "buffer": "burst",
    "maxburst": "burst",
    "cburst": "cburst",
    "cbuffer": "cburst",
    "cmaxburst": "cburst",
    "prio": "prio",
    "quantum": "quantum",
    "overhead": "overhead",
    "mpu": "mpu",
    "linklayer": "linklayer",
}
_RATES = ("rate", "ceil")
_LINK_LAYERS = {"ethernet": "ethernet", "atm": "atm", "adsl": "atm"}
_PROTOCOLS = {"1": "icmp", "6": "tcp", "17": "udp", "icmp": "icmp", "tcp": "tcp", "udp": "udp"}
_FULL_PORT, _TOS_BITS = 0xFFFF, 0xFC


@dataclass(slots=True)
class _Class:
    parent: str
    words: dict[str, str]
    place: str
    leaf: str = ""


@dataclass(slots=True)
class _Device:
    """What the commands made at a device."""

    handle: str = ""
    queue: str = ""
    default: str = ""
    options: dict[str, str] = field(default_factory=dict)
    link_layer: dict[str, str] = field(default_factory=dict)
    classes: dict[str, _Class] = field(default_factory=dict)
    # Preference, order, conditions.
    filters: list[tuple[int, int, dict[str, str]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TcScript:
    """The queues that a script makes, by device, and what it has that is not modelled."""

    queues: dict[str, dict[str, Any]]
    notes: tuple[str, ...]


def is_script(text: str) -> bool:
    """Whether a text has a command of ``tc`` that makes a queue."""
    return any(
        words[:2] in (["qdisc", "add"], ["qdisc", "replace"]) for _, words in _commands(text, "")
    )


def of_text(text: str, place: str) -> TcScript:
    """Read the commands of a script; a queue is a table as in a scenario file."""
    reader = _Reader(place)
    for number, words in _commands(text, place):
        reader.take(number, words)
    queues = {
        name: reader.tree(name, device) for name, device in reader.devices.items() if device.handle
    }
    if not queues:
        message = (
            f"{place}: no queue at the root of a device; expected 'tc qdisc add dev DEVICE root …'"
        )
        raise _core.ScenarioError(message)
    return TcScript(queues, tuple(reader.notes))


def _commands(text: str, place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the commands with the numbers of their lines; in an empty place, nothing is refused."""
    values: dict[str, str] = {}
    for number, line in _lines(text):
        if (setting := _SETTING.match(line)) is not None:
            values[setting[1]] = _expanded(setting[2].strip("\"'"), values)
            continue
        if line.lstrip().startswith("#"):
            continue
        found = _COMMAND.match(line) or _BATCH.match(line)
        if found is None:
            control = _CONTROL.match(line)
            if place and control is not None and re.search(r"\btc\b", text):
                at = f"{place}: line {number}"
                word = control[0].strip()
                problem = "loops, conditions and functions are not read; expected tc commands"
                message = f'{at}: "{word}": {problem}'
                raise _core.ScenarioError(message)
            continue
        command = _expanded(found["words"], values)
        unset = _VARIABLE.search(command)
        if unset is not None and place:
            message = f"{place}: line {number}: no line sets {unset[0]} to a fixed value"
            raise _core.ScenarioError(message)
        try:
            words = shlex.split(command, comments=True)
        except ValueError as error:
            if place:
                message = f"{place}: line {number}: {error}"
                raise _core.ScenarioError(message) from None
            continue
        ends = [
            at for at, word in enumerate(words) if word in {";", "&&", "||", "|"} or ">" in word
        ]
        yield number, words[: min(ends, default=len(words))]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Join lines that end in a backslash."""
    whole, first = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        first = first if whole else number
        if line.endswith("\\"):
            whole += line[:-1] + " "
            continue
        yield first, whole + line
        whole = ""
    if whole:
        yield first, whole


def _expanded(text: str, values: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), text)


class _Reader:
    """Follows the commands."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.line = 0
        self.devices: dict[str, _Device] = {}
        self.notes: list[str] = []

    def refuse(self, problem: str) -> NoReturn:
        message = f"{self.place}: line {self.line}: {problem}"
        raise _core.ScenarioError(message)

    def note(self, text: str) -> None:
        written = f"{self.place}: line {self.line}: {text}"
        if written not in self.notes:
            self.notes.append(written)

    def take(self, number: int, words: list[str]) -> None:
        """Follow a command."""
        self.line = number
        what, action, *rest = [*words, "", ""]
        if action in {"del", "delete", "show", "list", "ls"}:
            return
        if action not in _ADDING:
            self.refuse(f'"{what} {action}" is not read; expected add, change, replace or del')
        rest = [word for word in rest if word]
        device = self.devices.setdefault(self._value(rest, "dev"), _Device())
        if what == "qdisc":
            self._qdisc(device, rest)
        elif what == "class":
            self._class(device, rest)
        else:
            self._filter(device, rest)

    def _value(self, words: list[str], key: str) -> str:
        """Remove a key that must be there with its value, and return the value."""
        value = self._optional(words, key)
        if value is None:
            self.refuse(f"{key} is missing")
        return value

    def _optional(self, words: list[str], key: str) -> str | None:
        if key not in words:
            return None
        at = words.index(key)
        if at + 1 >= len(words):
            self.refuse(f"{key} needs a value")
        value = words[at + 1]
        del words[at : at + 2]
        return value

    def _qdisc(self, device: _Device, words: list[str]) -> None:
        if {"ingress", "clsact"} & set(words):
            self.note("ingress: shape the device that it redirects to")
            return
        handle = self._optional(words, "handle") or "0:"
        if "root" in words:
            words.remove("root")
            self._stab(device, words)
            if not words:
                self.refuse("the kind of the queue is missing")
            kind, *options = words
            device.handle = f"{int(handle.partition(':')[0] or '0', 16):x}:"
            device.classes.clear()
            device.filters.clear()
            device.queue, device.default, device.options = kind, "", {}
            if kind != "htb":
                device.queue = self._queue(words)
                return
            self._htb(device, options)
            return
        parent = self._handle(self._value(words, "parent"))
        if parent not in device.classes:
            self.refuse(f"parent {parent} is not a class before it")
        device.classes[parent].leaf = self._queue(words)

    def _htb(self, device: _Device, options: list[str]) -> None:
        while options:
            key, *options = options
            if key == "offload":
                self.refuse("htb: offload is not modelled")
            if key not in {"default", "r2q", "direct_qlen"}:
                self.refuse(f'htb: "{key}" is unknown; expected default, r2q or direct_qlen')
            if not options:
                self.refuse(f"htb: {key} needs a value")
            value, *options = options
            if key == "default":
                device.default = f"{device.handle}{self._hexadecimal(value):x}"
            else:
                device.options[key] = value

    def _stab(self, device: _Device, words: list[str]) -> None:
        """Remove a size table, whose link layer the classes get."""
        if "stab" not in words:
            return
        at = words.index("stab")
        end = at + 1
        keys = {"overhead", "linklayer", "mpu", "mtu", "tsize"}
        while end + 1 < len(words) and words[end] in keys:
            key, value = words[end : end + 2]
            if key in {"overhead", "mpu"}:
                device.link_layer[key] = value
            elif key == "linklayer":
                device.link_layer[key] = self._link_layer(value)
            end += 2
        del words[at:end]
        if device.link_layer:
            self.note("stab: read as the link layer of every class")

    def _link_layer(self, name: str) -> str:
        if name not in _LINK_LAYERS:
            self.refuse(f'linklayer "{name}" is unknown; expected one of {", ".join(_LINK_LAYERS)}')
        return _LINK_LAYERS[name]

    def _queue(self, words: Sequence[str]) -> str:
        text = " ".join(words)
        try:
            whole: str = _core.parse_qdisc(text)
            # As given, unless tc reads it otherwise than other readers may expect.
            return whole if _core.qdisc_notes(text) else text
        except _core.ScenarioError as error:
            self.refuse(f"{error}")

    def _hexadecimal(self, text: str) -> int:
        try:
            return int(text, 16)
        except ValueError:
            self.refuse(f'"{text}" is not a hexadecimal number')

    def _handle(self, text: str) -> str:
        """Write a class id in the shortest form."""
        major, _, minor = text.partition(":")
        return f"{self._hexadecimal(major):x}:" + (f"{self._hexadecimal(minor):x}" if minor else "")

    def _class(self, device: _Device, words: list[str]) -> None:
        own = self._handle(self._value(words, "classid"))
        if "root" in words:
            words.remove("root")
            parent = device.handle
        else:
            parent = self._handle(self._value(words, "parent"))
        kind, *options = words or [""]
        if kind != "htb":
            self.refuse(f"classes of {kind or 'no kind'} are not read; expected htb")
        if parent != device.handle and parent not in device.classes:
            self.refuse(f"parent {parent} is not a class before it")
        found: dict[str, str] = dict(device.link_layer)
        while options:
            key, *options = options
            if not options:
                self.refuse(f"{key} needs a value")
            value, *options = options
            if key == "mtu":
                continue
            if key not in _OF_CLASS:
                self.refuse(
                    f'htb class: "{key}" is unknown; expected one of {", ".join(_OF_CLASS)}'
                )
            found[_OF_CLASS[key]] = self._of_class(_OF_CLASS[key], value)
        if "rate" not in found:
            self.refuse(f"class {own} has no rate")
        leaf = device.classes[own].leaf if own in device.classes else ""
        device.classes[own] = _Class("" if parent == device.handle else parent, found, own, leaf)

    def _of_class(self, key: str, value: str) -> str:
        if key in _RATES and re.fullmatch(r"[\d.]+", value):
            return f"{value}bit"
        if key in {"burst", "cburst"}:
            return value.partition("/")[0]
        return self._link_layer(value) if key == "linklayer" else value

    def _filter(self, device: _Device, words: list[str]) -> None:
        parent = self._optional(words, "parent")
        if "root" in words:
            words.remove("root")
        elif parent is not None and self._handle(parent).rstrip("0") != device.handle.rstrip("0"):
            if parent in {"ffff:", "ffff:fff2", "ffff:fff3"}:
                self.note("filters at the ingress are not read")
                return
            self.refuse(f"filters of {parent} are not read; expected those of {device.handle}")
        protocol = self._optional(words, "protocol") or "all"
        preference = self._optional(words, "prio") or self._optional(words, "pref") or "0"
        mark = self._optional(words, "handle")
        kind, *rest = words or [""]
        if protocol not in {"ip", "all", "ipv6", "0x0800", "0x800"}:
            self.note(f"filters of protocol {protocol} are not read")
            return
        if protocol == "ipv6":
            self.note("filters of protocol ipv6 are not read")
            return
        target = self._optional(rest, "flowid") or self._optional(rest, "classid")
        if target is None:
            self.refuse("flowid or classid is missing")
        readers: dict[str, Callable[[list[str]], dict[str, str]]] = {
            "u32": self._u32,
            "flower": self._flower,
            "matchall": self._nothing,
            "basic": self._nothing,
            "fw": lambda rest: self._fw(mark, rest),
        }
        if kind not in readers:
            self.refuse(f'filter "{kind}" is not read; expected one of {", ".join(readers)}')
        conditions = {"to": self._handle(target), **readers[kind](rest)}
        order = len(device.filters)
        # Filters without a number come before those that have been added.
        number = self._number(preference) or -order
        device.filters.append((number, order, conditions))

    def _nothing(self, words: list[str]) -> dict[str, str]:
        if words:
            self.refuse(f'filter: "{" ".join(words)}" is not read; expected no condition')
        return {}

    def _fw(self, mark: str | None, words: list[str]) -> dict[str, str]:
        if mark is None:
            self.refuse("filter fw: handle, the mark, is missing")
        self._nothing(words)
        name = f"mark_{self._number(mark.partition('/')[0])}"
        self.note(f"packets with mark {mark} are the block of traffic {name}")
        return {"traffic": name}

    def _u32(self, words: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        while words:
            key, *words = words
            if key != "match":
                self.refuse(f'filter u32: "{key}" is not read; expected match')
            what, field_, *words = [*words, "", ""]
            words = [word for word in words if word]
            if what == "u32" and [field_, *words[:1]] in (["0", "0"], ["0x0", "0x0"]):
                words = words[3:] if words[1:2] == ["at"] else words[1:]
                continue
            if what != "ip":
                self.refuse(f'filter u32: "match {what} {field_}" is not read; expected match ip')
            if field_ in {"src", "dst"}:
                address, *words = words or [""]
                found[{"src": "source", "dst": "destination"}[field_]] = address
                continue
            if len(words) < 2:  # noqa: PLR2004 - a value and a mask
                self.refuse(f"filter u32: match ip {field_} needs a value and a mask")
            value, mask, *words = words
            found |= self._ip_field(field_, value, self._number(mask))
        return found

    def _number(self, text: str) -> int:
        try:
            return int(text, 0)
        except ValueError:
            self.refuse(f'"{text}" is not a number')

    def _ip_field(self, name: str, value: str, mask: int) -> dict[str, str]:
        """Read a field of ``match ip``; a mask may make a range of ports."""
        if name in {"sport", "dport"}:
            key = {"sport": "source_port", "dport": "destination_port"}[name]
            free = ~mask & _FULL_PORT
            if free & (free + 1):
                self.refuse(f"filter u32: the mask {mask:#x} of {name} is no range of ports")
            first = self._number(value) & mask
            return {key: f"{first}" if free == 0 else f"{first}-{first | free}"}
        if mask == 0:
            return {}
        if name == "protocol" and mask == 0xFF:  # noqa: PLR2004 - the whole byte
            return self._protocol(value)
        if name in {"dsfield", "tos", "ds", "precedence"} and mask & _TOS_BITS == _TOS_BITS:
            return {"dscp": f"{self._number(value) >> 2}"}
        return self.refuse(f"filter u32: match ip {name} {value} {mask:#x} is not read")

    def _protocol(self, value: str) -> dict[str, str]:
        name = _PROTOCOLS.get(value) or _PROTOCOLS.get(f"{self._number(value)}")
        if name is None:
            self.refuse(f"filter: protocol {value} is not read; expected icmp, tcp or udp")
        return {"protocol": name}

    def _flower(self, words: list[str]) -> dict[str, str]:
        keys = {
            "src_ip": "source",
            "dst_ip": "destination",
            "src_port": "source_port",
            "dst_port": "destination_port",
        }
        found: dict[str, str] = {}
        while words:
            key, *words = words
            if key in {"skip_hw", "skip_sw"}:
                continue
            value, *words = words or [""]
            if key in keys:
                found[keys[key]] = value
            elif key == "ip_proto":
                found |= self._protocol(value)
            elif key == "ip_tos":
                number, _, mask = value.partition("/")
                if self._hexadecimal(mask or "fc") & _TOS_BITS != _TOS_BITS:
                    self.refuse(
                        f"filter flower: ip_tos {value} is not read; expected a mask with 0xfc"
                    )
                found["dscp"] = f"{self._hexadecimal(number) >> 2}"
            else:
                self.refuse(
                    f'filter flower: "{key}" is not read; expected one of '
                    f"{', '.join(keys)}, ip_proto or ip_tos"
                )
        return found

    def tree(self, name: str, device: _Device) -> dict[str, Any]:
        """Return the queue of a device as a table, and have the core check it."""
        if device.queue != "htb":
            return {"kind": device.queue.split()[0], "text": device.queue}
        classes = [_entry(own, one) for own, one in _ordered(device.classes)]
        parents = {one.parent for one in device.classes.values()}
        table: dict[str, Any] = {"kind": "htb"}
        if device.default in device.classes and device.default not in parents:
            table["default"] = device.default
        elif device.default:
            self.notes.append(
                f"{self.place}: default {device.default} of {name} is no leaf class: packets that "
                "no filter matches are not shaped"
            )
        table |= device.options
        table["classes"] = classes
        if device.filters:
            table["filters"] = [
                conditions for *_, conditions in sorted(device.filters, key=lambda one: one[:2])
            ]
        return table


def _ordered(classes: dict[str, _Class]) -> Iterator[tuple[str, _Class]]:
    """Return the classes by id, each after its parent."""
    left = dict(
        sorted(classes.items(), key=lambda item: [int(x or "0", 16) for x in item[0].split(":")])
    )
    placed: set[str] = {""}
    while left:
        own = next((own for own, one in left.items() if one.parent in placed), None)
        if own is None:
            return
        placed.add(own)
        yield own, left.pop(own)


def _entry(own: str, one: _Class) -> dict[str, str]:
    above = {"parent": one.parent} if one.parent else {}
    leaf = {"leaf": one.leaf} if one.leaf else {}
    return {"name": own, **above, **one.words, **leaf}


def scenario(script: TcScript, name: str) -> str:
    """Write a scenario file with the queues of a script and traffic for each direction."""
    links = _directions(script.queues)
    blocks = blocks_of(script.queues.values())
    lines = [
        f"# The queues of {name}. Replace the traffic by yours.",
        f"name = {toml_string(name)}",
        'duration = "30s"',
        'warmup = "5s"',
        'rtt = "40ms"',
    ]
    if "down" not in links:
        lines.append('links.down = "unlimited"')
    for direction, device in links.items():
        rate = ["", f"[links.{direction}] # {device}", 'rate = "1gbit"']
        lines += [*rate, *queue_lines(direction, script.queues[device])]
    for direction in (one for one in ("up", "down") if one in links):
        if direction == "down" and blocks:
            continue
        for block in blocks or [f"tcp_{direction}"]:
            lines += [
                "",
                "[[traffic]]",
                'type = "tcp"',
                f"name = {toml_string(block)}",
                f'direction = "{direction}"',
            ]
    lines += ["", "[[traffic]]", 'type = "ping"', 'direction = "up"', ""]
    return "\n".join(lines)


def _directions(queues: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the device of each direction: an ifb shapes what comes down."""
    down = [name for name in queues if name.startswith("ifb")]
    up = [name for name in queues if name not in down]
    if len(up) > 1 and not down:
        up, down = up[:1], up[1:]
    found = {"up": up[:1], "down": down[:1]}
    if not up:
        found = {"up": down[:1], "down": []}
    return {direction: names[0] for direction, names in found.items() if names}


def queue_lines(direction: str, queue: dict[str, Any]) -> list[str]:
    """Write the queue of a link for a scenario file."""
    if "text" in queue:
        return [f"qdisc = {toml_string(queue['text'])}"]
    lines = ["", f"[links.{direction}.qdisc]"]
    for key, value in queue.items():
        if isinstance(value, list):
            entries = (
                ", ".join(f"{name} = {toml_string(text)}" for name, text in entry.items())
                for entry in value
            )
            lines += [f"{key} = [", *(f"    {{ {entry} }}," for entry in entries), "]"]
        else:
            lines.append(f"{key} = {toml_string(f'{value}')}")
    return lines


def blocks_of(queues: Iterable[dict[str, Any]]) -> list[str]:
    """Return the blocks of traffic that filters name."""
    filters = (one for queue in queues for one in queue.get("filters", ()))
    return list(dict.fromkeys(one["traffic"] for one in filters if "traffic" in one))
