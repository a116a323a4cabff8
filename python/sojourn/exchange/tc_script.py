"""Scripts of ``tc`` commands that make a queue or a tree of ``htb``, as queues of a scenario.

Each ``tc qdisc``, ``tc class`` and ``tc filter`` that adds, changes or replaces is read; what has
no counterpart is refused with its line. Other commands of a script are not executed: variables are
replaced if a line of the script sets them to a fixed value, and arithmetic of whole numbers is
computed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sojourn import _core
from sojourn.document import check
from sojourn.exchange.configuration import DIRECTIONS, Configuration, Shaper, Source
from sojourn.exchange.tc_commands import commands, joined
from sojourn.scenario.link import ETHERNET_HEADER
from sojourn.traffic.block import Direction

_ADDS = re.compile(r"^\s*(?:sudo\s+)?(?:\S*/)?tc\s+\w+\s+(?:add|replace)\s+dev\s", re.MULTILINE)
# What sets the mark or the DSCP of packets outside tc.
_MARKING = re.compile(
    r"^(?!\s*#).*(?:(?:-j|--jump)\s+(?:MARK|CONNMARK|DSCP|TOS|CLASSIFY)\b|"
    r"\b(?:meta|ct)\s+(?:mark|priority)\s+set\b|\bip6?\s+dscp\s+set\b)"
)
_ADDING = frozenset({"add", "replace", "change"})
_SHOWING = frozenset({"get", "list", "show", "lst", "help"})
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
_PROTOCOLS = {
    "1": "icmp",
    "6": "tcp",
    "17": "udp",
    "58": "icmp",
    "icmp": "icmp",
    "icmpv6": "icmp",
    "tcp": "tcp",
    "udp": "udp",
}
# Versions of IP, by the protocol of a filter.
_VERSIONS = {"ip": "4", "0x0800": "4", "0x800": "4", "ipv6": "6", "0x86dd": "6", "all": ""}
_IPV6_NETWORK = re.compile(r"[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*/(?!128$)\d+")
# Units of sizes, in bytes.
_BITS = {"k": 1 << 7, "m": 1 << 17, "g": 1 << 27}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmg]?)(b|bit)?(?:/\d+)?", re.IGNORECASE)
_SECONDS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "ms": 1e-3, "msec": 1e-3, "msecs": 1e-3}
_MICROSECONDS = {"": 1e-6, "us": 1e-6, "usec": 1e-6, "usecs": 1e-6}
_TIME = re.compile(r"(\d+(?:\.\d+)?)([a-z]*)")
_BANDS = re.compile(r"\bbands (\d+)")
_WITH_LEAVES = ("prio", "red")
# Queues whose parameters tc sends as one structure: a change sets all of them.
_CHANGED_WHOLE = frozenset({"choke", "prio", "red", "sfb", "tbf"})
_FULL_PORT, _TOS_BITS = 0xFFFF, 0xFC
_FULL_BYTE = 0xFF
# The clock of a kernel with timers of high resolution, by which tc derives bursts.
_TICKS_PER_S = 1_000_000_000
# Devices by the side of a router on which they usually are.
_OF_LAN, _OF_WAN = re.compile(r"br|lan|wl|ap\d|phy"), re.compile(r"wan|ppp|wwan|pppoe")
_ECN = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")
# Filters at the ingress that match all packets.
_ALL_PACKETS = re.compile(
    r"\bmatchall\b|\bmatch u32 (?:0x)?0+ (?:0x)?0+\b|\bmatch ip (?:src|dst) 0\.0\.0\.0/0"
)


def _of_both_versions(filters: list[dict[str, str]]) -> list[dict[str, str]]:
    """Join filters that are equal for IPv4 and IPv6, unless another one decides between them."""
    joined: list[dict[str, str]] = []
    for conditions in filters:
        # Those before it that packets of its version do not match.
        others = 0
        while others < len(joined) and _is_of_other(joined[-1 - others], conditions):
            others += 1
        equal = {**conditions, "ip": {"4": "6", "6": "4"}.get(conditions.get("ip", ""), "")}
        if equal in joined[len(joined) - others :]:
            del joined[joined.index(equal)]["ip"]
        elif conditions not in joined:
            joined.append(conditions)
    return joined


def _is_of_other(one: dict[str, str], other: dict[str, str]) -> bool:
    """Return whether two filters are for different versions of IP."""
    return {one.get("ip"), other.get("ip")} == {"4", "6"}


@dataclass(slots=True)
class _Class:
    parent: str
    words: dict[str, str]
    place: str
    leaf: str = ""


@dataclass(frozen=True, slots=True)
class _Filter:
    preference: int
    order: int
    # Preference, protocol, kind and handle; None: the kernel chooses one of them.
    identity: tuple[int, str, str, str] | None
    conditions: dict[str, str]


@dataclass(slots=True)
class _Device:
    """What the commands made at a device."""

    handle: str = ""
    queue: str = ""
    # The last line that set it.
    line: int = 0
    default: str = ""
    options: dict[str, str] = field(default_factory=dict)
    link_layer: dict[str, str] = field(default_factory=dict)
    classes: dict[str, _Class] = field(default_factory=dict)
    filters: list[_Filter] = field(default_factory=list)
    # The last line that has a filter to a class.
    lines: dict[str, int] = field(default_factory=dict)
    # Rate and bucket of the link, of tbf; and the queues inside a root that is no tree, by number.
    link: dict[str, str] = field(default_factory=dict)
    leaves: dict[int, str] = field(default_factory=dict)
    # What arrives: the lines that say so, and the devices to which all packets are redirected.
    arriving: list[tuple[int, str]] = field(default_factory=list)
    redirects: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TcScript:
    """The queues that a script makes, by device, and what it has that is not modelled."""

    queues: dict[str, dict[str, Any]]
    notes: tuple[str, ...]


def is_script(text: str) -> bool:
    """Whether a text has a command of ``tc`` that makes a queue, or one that is misspelt."""
    return _ADDS.search(text) is not None or any(
        words[:2] in (["qdisc", "add"], ["qdisc", "replace"]) for _, words in commands(text, "")
    )


def of_text(text: str, place: str) -> TcScript:
    """Read the commands of a script; a queue is a table as in a scenario file."""
    reader = _Reader(place)
    for number, words in commands(text, place):
        reader.take(number, words)
    reader.note_arriving()
    marking = [f"{n}" for n, line in joined(text) if _MARKING.match(line)]
    if marking:
        lines = "line" if len(marking) == 1 else "lines"
        reader.notes.append(
            f"{place}: {lines} {', '.join(marking)}: marks and DSCPs that iptables and nft set are "
            "not read, although filters may use them; give traffic this dscp, or the name mark_n"
        )
    queues = {
        name: reader.tree(name, device) for name, device in reader.devices.items() if device.handle
    }
    if not queues:
        message = (
            f"{place}: no queue at the root of a device; expected 'tc qdisc add dev DEVICE root …'"
        )
        raise _core.ScenarioError(message)
    return TcScript(queues, tuple(reader.notes))


def size_bytes(text: str) -> int | None:
    """Read a size as tc does; None: it is none.

    Examples
    --------
    >>> size_bytes("15k"), size_bytes("32kbit"), size_bytes("1600/8")
    (15360, 4096, 1600)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    unit = found[2].lower()
    if (found[3] or "").lower() == "bit":
        return int(float(found[1]) * (_BITS[unit] if unit else 1 / 8))
    return int(float(found[1]) * _BYTES[unit])


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
        what, action, *rest = words
        if action in _SHOWING:
            return
        if action == "delete":
            self._delete(what, rest)
            return
        if action not in _ADDING:
            self.refuse(f'"{what} {action}" is not read; expected add, change, replace or del')
        device = self.devices.setdefault(self._value(rest, "dev"), _Device())
        if what in {"qdisc", "class"}:
            self._leave_out_estimator(rest)
        if what == "qdisc":
            self._qdisc(device, rest, action)
        elif what == "class":
            self._class(device, rest, action)
        else:
            self._filter(device, rest, action)

    def _leave_out_estimator(self, words: list[str]) -> None:
        """Remove a rate estimator: it counts, and does not queue."""
        for key in ("est", "estimator"):
            if key in words:
                at = words.index(key)
                del words[at : at + 3]
                self.note(f"{key}: rate estimators are left out")

    def _delete(self, what: str, words: list[str]) -> None:
        """Delete a queue, a class or filters; nothing if they are not there, as at first."""
        device = self.devices.get(self._value(words, "dev"))
        if device is None:
            return
        parent = self._optional(words, "parent")
        if what == "class":
            self._delete_class(device, self._handle(self._value(words, "classid")))
        elif what == "filter":
            self._delete_filters(device, parent, words)
        elif "root" in words:
            self._clear(device)
            device.handle = ""
        elif parent is not None:
            own = self._handle(parent)
            major, _, minor = own.partition(":")
            if own in device.classes:
                device.classes[own].leaf = ""
            elif f"{major}:" == device.handle:
                device.leaves.pop(int(minor or "1", 16), None)

    def _delete_class(self, device: _Device, own: str) -> None:
        if own not in device.classes:
            self.note(f"class {own} is not there, so nothing is deleted")
            return
        if any(one.parent == own for one in device.classes.values()):
            self.refuse(f"class {own} has classes below it; delete them first")
        if any(one.conditions["to"] == own for one in device.filters):
            self.refuse(f"filters lead to class {own}; delete them first")
        del device.classes[own]

    def _delete_filters(self, device: _Device, parent: str | None, words: list[str]) -> None:
        """Delete the filters of a preference, or all."""
        if {"ingress", "egress"} & set(words):
            return
        if parent is not None and self._handle(parent).rstrip("0") != device.handle.rstrip("0"):
            return
        self._optional(words, "protocol")
        preference = self._optional(words, "prio") or self._optional(words, "pref")
        if "handle" in words:
            self.note("single filters are not deleted; all of a preference are")
            return
        number = None if preference is None else self._number(preference)
        device.filters[:] = [one for one in device.filters if number not in {None, one.preference}]

    def _clear(self, device: _Device) -> None:
        for one in (device.classes, device.filters, device.link, device.leaves, device.link_layer):
            one.clear()

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

    def _refuse_second(self, what: str, action: str, *, is_there: bool) -> None:
        """Refuse to add what is there, and to change what is not, as Linux does."""
        if action == "add" and is_there:
            self.refuse(f"add: {what} is there already; expected replace, or del before it")
        if action == "change" and not is_there:
            self.refuse(f"change: {what} is not there; expected add or replace")

    def _qdisc(self, device: _Device, words: list[str], action: str) -> None:
        # Behind root or parent, ingress is a word of cake.
        if {"ingress", "clsact"} & set(words) and not {"root", "parent"} & set(words):
            if "ingress" in words:
                device.arriving.append((self.line, "ingress"))
            return
        is_change = action == "change"
        handle = self._optional(words, "handle")
        if "root" in words:
            words.remove("root")
            self._refuse_second("a queue at the root", action, is_there=device.handle != "")
            self._root(device, handle, words, is_change=is_change)
            return
        parent = self._handle(self._value(words, "parent"))
        major, _, minor = parent.partition(":")
        if f"{major}:" == device.handle and (device.link or device.queue.startswith(_WITH_LEAVES)):
            band = int(minor or "1", 16)
            self._refuse_second(f"a queue at {parent}", action, is_there=band in device.leaves)
            before = device.leaves.get(band, "") if is_change else ""
            device.leaves[band] = self._queue(words, before)
            return
        if parent not in device.classes:
            self.refuse(f"parent {parent} is not a class before it")
        leaf = device.classes[parent]
        self._refuse_second(f"a queue at {parent}", action, is_there=leaf.leaf != "")
        leaf.leaf = self._queue(words, leaf.leaf if is_change else "")

    def _root(
        self, device: _Device, handle: str | None, words: list[str], *, is_change: bool
    ) -> None:
        """Set or change the queue at the root of a device."""
        if not is_change:
            self._clear(device)
        self._stab(device, words)
        if not words:
            self.refuse("the kind of the queue is missing")
        kind, *options = words
        before = ""
        if is_change:
            if kind == "htb":
                self.refuse("change: Linux changes classes of htb, not the queue; use replace")
            before = "tbf" if device.link else device.queue
            self._check_kind(before, kind)
        else:
            device.handle = f"{int((handle or '0').partition(':')[0] or '0', 16):x}:"
        device.line = self.line
        device.link.clear()
        device.queue, device.default, device.options = kind, "", {}
        if kind == "tbf":
            device.queue = self._tbf(device, options)
        elif kind == "htb":
            self._htb(device, options)
        else:
            device.queue = self._queue([*words, *self._of_table(device, kind)], before)

    def _check_kind(self, before: str, kind: str) -> None:
        """Refuse to change a queue into one of another kind, as Linux does."""
        present = before.split(maxsplit=1)[0]
        if present != kind:
            self.refuse(f"change: the queue is {present}, not {kind}; use replace")

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

    def _tbf(self, device: _Device, options: list[str]) -> str:
        """Read tbf: its rate and bucket are those of the link; return the queue inside it."""
        found: dict[str, str] = {}
        names = {"burst": "burst", "buffer": "burst", "maxburst": "burst"}
        names |= {one: one for one in ("rate", "limit", "latency", "overhead", "mpu", "linklayer")}
        while options:
            key, *options = options
            if key not in names:
                known = ", ".join(dict.fromkeys(names.values()))
                self.refuse(f'tbf: "{key}" is not read; expected one of {known}')
            if not options:
                self.refuse(f"tbf: {key} needs a value")
            found[names[key]], *options = options
        for key in ("rate", "burst"):
            if key not in found:
                self.refuse(f"tbf: {key} is missing")
        return self._token_bucket(device, found)

    def _token_bucket(self, device: _Device, found: dict[str, str]) -> str:
        rate = _core.parse_rate_bits_per_s(self._of_class("rate", found["rate"]))
        burst = self._bytes(found["burst"])
        if "limit" in found:
            limit = self._bytes(found["limit"])
        elif "latency" in found:
            limit = int(rate / 8 * self._seconds(found["latency"])) + burst
        else:
            self.refuse("tbf: latency or limit is missing")
        device.link |= {"rate": f"{rate}bit", "burst": f"{burst}b", "bucket": "tbf"}
        for key in ("overhead", "mpu"):
            if key in found or key in device.link_layer:
                size = found.get(key, device.link_layer.get(key, "0"))
                device.link[key] = f"{size.removesuffix('b')}b"
        layer = device.link_layer.get("linklayer", "ethernet")
        if (self._link_layer(found["linklayer"]) if "linklayer" in found else layer) == "atm":
            device.link["framing"] = "atm"
        return f"bfifo limit {limit}b"

    def _bytes(self, text: str) -> int:
        size = size_bytes(text)
        if size is None:
            self.refuse(f'"{text}" is not a size; expected one such as 15k')
        return size

    def _seconds(self, text: str) -> float:
        found = _TIME.fullmatch(text)
        units = _SECONDS | _MICROSECONDS
        if found is None or found[2] not in units:
            self.refuse(f'"{text}" is not a time; expected one such as 50ms')
        return float(found[1]) * units[found[2]]

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
            self.note("stab: read as the link layer of the queue")

    def _of_table(self, device: _Device, kind: str) -> list[str]:
        """Return the words of cake for a size table, which counts from the Ethernet frame."""
        layer = device.link_layer
        if kind != "cake" or not layer:
            return []
        overhead = int(layer.get("overhead", "0")) + ETHERNET_HEADER
        framing = "atm" if layer.get("linklayer") == "atm" else "noatm"
        return ["overhead", f"{overhead}", "mpu", layer.get("mpu", "0"), framing]

    def _link_layer(self, name: str) -> str:
        if name not in _LINK_LAYERS:
            self.refuse(f'linklayer "{name}" is unknown; expected one of {", ".join(_LINK_LAYERS)}')
        return _LINK_LAYERS[name]

    def _queue(self, words: Sequence[str], before: str = "") -> str:
        """Read a queue; a change of the one `before` sets only the parameters that it names."""
        text = " ".join(words)
        if words[:1] == ["tbf"]:
            self.refuse("tbf inside another queue is not modelled; expected tbf only at the root")
        if before:
            self._check_kind(before, words[0] if words else "")
            if words[0] not in _CHANGED_WHOLE:
                text = " ".join([before, *words[1:]])
        try:
            whole: str = _core.parse_qdisc(text)
        except _core.ScenarioError as error:
            self.refuse(f"{error}")
        notes = _core.qdisc_notes(text)
        for note in notes:
            # Scripts of SQM rely on the last word.
            if not note.endswith("the last one counts"):
                self.note(note)
        # As given, unless tc reads it otherwise than other readers may expect.
        return whole if notes else text

    def _hexadecimal(self, text: str) -> int:
        try:
            return int(text, 16)
        except ValueError:
            self.refuse(f'"{text}" is not a hexadecimal number')

    def _handle(self, text: str) -> str:
        """Write a class id in the shortest form."""
        major, _, minor = text.partition(":")
        number = self._hexadecimal(minor or "0")
        return f"{self._hexadecimal(major):x}:" + (f"{number:x}" if number else "")

    def _class(self, device: _Device, words: list[str], action: str) -> None:
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
        self._refuse_second(f"class {own}", action, is_there=own in device.classes)
        self._check_loop(device, own, parent)
        mtu = ""
        found: dict[str, str] = dict(device.link_layer)
        while options:
            key, *options = options
            if not options:
                self.refuse(f"{key} needs a value")
            value, *options = options
            if key == "mtu":
                mtu = value
                continue
            if key not in _OF_CLASS:
                self.refuse(
                    f'htb class: "{key}" is unknown; expected one of {", ".join(_OF_CLASS)}'
                )
            found[_OF_CLASS[key]] = self._of_class(_OF_CLASS[key], value)
        if "rate" not in found:
            self.refuse(f"class {own} has no rate")
        if mtu:
            self._default_bursts(found, mtu)
        leaf = device.classes[own].leaf if own in device.classes else ""
        device.classes[own] = _Class("" if parent == device.handle else parent, found, own, leaf)

    def _default_bursts(self, found: dict[str, str], mtu: str) -> None:
        """Set the bursts that a class does not name: its MTU, and a tick at its rate."""
        if re.fullmatch(r"[0-9]+", mtu) is None:
            self.refuse(f'mtu "{mtu}" is not a whole number')
        for rate, burst in (("rate", "burst"), ("ceil", "cburst")):
            if burst not in found:
                bits_per_s = _core.parse_rate_bits_per_s(found.get(rate, found["rate"]))
                found[burst] = f"{int(mtu) + bits_per_s // (8 * _TICKS_PER_S)}b"

    def _check_loop(self, device: _Device, own: str, parent: str) -> None:
        """Refuse a class below itself."""
        path = [own]
        above = parent
        while above in device.classes and above not in path:
            path.append(above)
            above = device.classes[above].parent
        if above == own:
            loop = " below ".join([*path, own])
            self.refuse(f"the classes form a loop: {loop}; expected a tree below {device.handle}")

    def _of_class(self, key: str, value: str) -> str:
        if key in _RATES and re.fullmatch(r"[\d.]+", value):
            return f"{value}bit"
        if key in {"burst", "cburst"}:
            return value.partition("/")[0]
        return self._link_layer(value) if key == "linklayer" else value

    def _filter(self, device: _Device, words: list[str], action: str) -> None:
        if {"ingress", "egress"} & set(words[:1]):
            self._at_ingress(device, words)
            return
        parent = self._optional(words, "parent")
        if "root" in words:
            words.remove("root")
        elif parent is not None and self._handle(parent).rstrip("0") != device.handle.rstrip("0"):
            if parent in {"ffff:", "ffff:fff2", "ffff:fff3"}:
                self._at_ingress(device, words)
                return
            self.refuse(f"filters of {parent} are not read; expected those of {device.handle}")
        protocol = self._optional(words, "protocol") or "all"
        if protocol not in _VERSIONS:
            self.note(f"filters of protocol {protocol} are not read")
            return
        self._classify(device, protocol, words, action)

    def _at_ingress(self, device: _Device, words: list[str]) -> None:
        """Keep where a filter redirects all packets that arrive."""
        redirected = "redirect" in words and self._optional(words, "dev")
        if redirected and _ALL_PACKETS.search(" ".join(words)):
            device.redirects.append(redirected)
        else:
            device.arriving.append((self.line, "filters at the ingress"))

    def note_arriving(self) -> None:
        """Note what a script does with arriving packets, unless all reach a queue that it makes."""
        for device in self.devices.values():
            reached = any(self.devices.get(to, _Device()).handle for to in device.redirects)
            for self.line, what in device.arriving:
                if what != "ingress":
                    self.note(f"{what} are not read")
                elif not reached:
                    self.note(
                        "ingress: not modelled; a queue at a device to which it redirects all "
                        "packets is"
                    )

    def _classify(self, device: _Device, protocol: str, words: list[str], action: str) -> None:
        """Add a filter to a tree."""
        preference = self._optional(words, "prio") or self._optional(words, "pref") or "0"
        mark = self._optional(words, "handle")
        kind, *rest = words or [""]
        if device.queue != "htb":
            self.note(f"filters of {device.queue.split()[0]} are not read")
            return
        if any(_IPV6_NETWORK.fullmatch(word) for word in rest):
            self.note("filters by IPv6 network are not read; single addresses are")
            return
        target = self._optional(rest, "flowid") or self._optional(rest, "classid")
        if target is None and "action" in rest:
            action = " ".join(rest[rest.index("action") :])
            self.refuse(f'filter: "{action}" is not read; expected flowid or classid')
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
        # An address states its version.
        if (version := _VERSIONS[protocol]) and not {"source", "destination"} & conditions.keys():
            conditions["ip"] = version
        order = len(device.filters)
        # The kernel counts filters without a preference downwards from 0xC000: the last is first.
        number = self._number(preference) or 0xC000 - order
        identity = None
        if mark is not None and self._number(preference):
            identity = (number, protocol, kind, mark)
            before = [one for one in device.filters if one.identity == identity]
            self._refuse_second(f"a filter with handle {mark}", action, is_there=bool(before))
            for one in before:
                device.filters.remove(one)
                order = one.order
        device.filters.append(_Filter(number, order, identity, conditions))
        device.lines[conditions["to"]] = self.line

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
            if what == "u32" and words and self._hexadecimal(words[0]) == 0:
                words = words[3:] if words[1:2] == ["at"] else words[1:]
                continue
            if what not in {"ip", "ip6"}:
                expected = "expected match ip or match ip6"
                self.refuse(f'filter u32: "match {what} {field_}" is not read; {expected}')
            if field_ in {"src", "dst"}:
                address, *words = words or [""]
                self._add(found, {{"src": "source", "dst": "destination"}[field_]: address})
                continue
            if len(words) < 2:  # noqa: PLR2004 - a value and a mask
                self.refuse(f"filter u32: match ip {field_} needs a value and a mask")
            value, mask, *words = words
            # Masks are hexadecimal, with or without 0x.
            self._add(found, self._ip_field(field_, value, self._hexadecimal(mask)))
        return found

    def _add(self, found: dict[str, str], more: dict[str, str]) -> None:
        """Add conditions to those of a filter; refuse a second one of the same field."""
        for key, value in more.items():
            if found.setdefault(key, value) != value:
                self.refuse(
                    f"filter: {key} is {found[key]} and {value}; expected one condition for a field"
                )

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
                self.refuse(f"filter u32: the mask {mask:#x} of {name} is not a range of ports")
            first = self._number(value) & mask
            return {key: f"{first}" if free == 0 else f"{first}-{first | free}"}
        if mask == 0:
            return {}
        if name == "protocol" and mask == 0xFF:  # noqa: PLR2004 - the whole byte
            return self._protocol(value)
        names = {"dsfield", "tos", "ds", "precedence", "priority"}
        if name in names and mask & _TOS_BITS == _TOS_BITS:
            return self._dscp(self._number(value), mask)
        return self.refuse(f"filter u32: match ip {name} {value} {mask:#x} is not read")

    def _dscp(self, tos: int, mask: int) -> dict[str, str]:
        """Return the DSCP of a type-of-service byte; the ECN field is not a condition here."""
        if mask & ~_TOS_BITS:
            self.note(
                f"a filter with the mask {mask:#x} of the TOS byte is read as one of the DSCP "
                f"{tos >> 2}: in Linux, it also compares the ECN field, here with "
                f"{_ECN[tos & ~_TOS_BITS]}"
            )
        return {"dscp": f"{tos >> 2}"}

    def _protocol(self, value: str) -> dict[str, str]:
        name = _PROTOCOLS.get(value) or _PROTOCOLS.get(f"{self._number(value)}")
        if name is None:
            self.refuse(f"filter: protocol {value} is not read; expected icmp, tcp or udp")
        return {"protocol": name}

    def _byte(self, text: str) -> int:
        """Read a byte as flower does: as a decimal number and, if it is none, as hexadecimal."""
        is_decimal = re.fullmatch(r"[0-9]+", text) is not None and int(text) <= _FULL_BYTE
        value = int(text) if is_decimal else self._hexadecimal(text)
        if not 0 <= value <= _FULL_BYTE:
            self.refuse(f'filter flower: "{text}" is not a byte; expected 0 to 255 or 0x0 to 0xff')
        return value

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
                self._add(found, {keys[key]: value})
            elif key == "ip_proto":
                self._add(found, self._protocol(value))
            elif key == "ip_tos":
                number, slash, mask_text = value.partition("/")
                mask = self._byte(mask_text) if slash else _FULL_BYTE
                if mask & _TOS_BITS != _TOS_BITS:
                    self.refuse(
                        f"filter flower: ip_tos {value} is not read; expected a mask with 0xfc"
                    )
                self._add(found, self._dscp(self._byte(number), mask))
            else:
                self.refuse(
                    f'filter flower: "{key}" is not read; expected one of '
                    f"{', '.join(keys)}, ip_proto or ip_tos"
                )
        return found

    def tree(self, name: str, device: _Device) -> dict[str, Any]:
        """Return the queue of a device as a table, and have the core check it."""
        if device.queue != "htb":
            text = self._with_leaves(device)
            link = {"link": dict(device.link)} if device.link else {}
            return {"kind": text.split()[0], "text": text, **link}
        if not device.classes:
            self.line = device.line
            minor = device.default.partition(":")[2] or "1"
            command = (
                f"tc class add dev {name} parent {device.handle} classid {device.handle}{minor} "
                "htb rate 10mbit"
            )
            self.refuse(f"htb has no class; expected a command such as {command}")
        classes = [_entry(own, one) for own, one in _ordered(device.classes)]
        parents = {one.parent for one in device.classes.values()}
        table: dict[str, Any] = {"kind": "htb"}
        if device.default in device.classes and device.default not in parents:
            table["default"] = device.default
        elif device.default:
            self.notes.append(
                f"{self.place}: default {device.default} of {name} is not a leaf class: packets "
                "that no filter matches are not shaped"
            )
        table |= device.options
        table["classes"] = classes
        ordered = sorted(device.filters, key=lambda one: (one.preference, one.order))
        filters = [one.conditions for one in ordered]
        if filters:
            table["filters"] = _of_both_versions(filters)
        leaves = [own for own in device.classes if own not in parents]
        for one in device.filters:
            if leaves and (to := one.conditions["to"]) not in leaves:
                self.line = device.lines[to]
                known = f"expected a leaf class such as {leaves[0]}"
                self.refuse(f"{name}: filter to {to}, which is not a leaf class; {known}")
        try:
            check("link", {"rate": "1gbit", "qdisc": table})
        except _core.ScenarioError as error:
            message = f"{self.place}: {name}: {error.problem}"
            raise _core.ScenarioError(message) from None
        return table

    def _with_leaves(self, device: _Device) -> str:
        """Write a queue with the queues that were added inside it."""
        if not device.leaves:
            return device.queue
        if not device.queue.startswith("prio"):
            (last,) = list(device.leaves.values())[-1:]
            return last if device.link else self._queue([*device.queue.split(), "leaf", last])
        bands = int((_BANDS.search(_core.parse_qdisc(device.queue)) or ["", "3"])[1])
        if over := [band for band in device.leaves if not 0 < band <= bands]:
            self.refuse(f"{device.handle}{over[0]:x} is not a band of prio with {bands} bands")
        leaves = " / ".join(device.leaves.get(band, "pfifo") for band in range(1, bands + 1))
        return self._queue([*device.queue.split(), "leaf", *leaves.split()])


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


def configuration(script: TcScript, source: Source) -> Configuration:
    """Return the queues of a script by direction."""
    devices, notes = _directions(script.queues, source.place)
    shapers = {}
    for direction, device in devices.items():
        queue = dict(script.queues[device])
        settings = queue.pop("link", {})
        shapers[direction] = Shaper(device=device, settings=settings, queue=queue)
    return Configuration(
        title=f"The queues of {source.name}",
        source=source,
        shapers=shapers,
        notes=(*script.notes, *notes),
        marks=_marks(script.queues[device] for device in devices.values()),
    )


def _directions(
    queues: Mapping[str, Any], place: str
) -> tuple[dict[Direction, str], Sequence[str]]:
    """Return the device of each direction, and notes: an ifb shapes what comes down.

    Without an ifb, the device on the side of the LAN does.
    """
    down = [name for name in queues if name.startswith("ifb")]
    up = [name for name in queues if name not in down]
    notes: list[str] = []
    kept: list[str] = []
    for names, most in ((up, 1 if down else len(DIRECTIONS)), (down, 1)):
        shaped = [name for name in names if _shapes(queues[name])]
        left = names if len(names) <= most else shaped
        if len(left) > most or (names and not left):
            message = (
                f"{place}: {', '.join(names)} have queues for one direction; expected one device "
                "with a rate per direction: leave the others out of the script"
            )
            raise _core.ScenarioError(message)
        notes += [
            f"{place}: the queue of {name}, which has no rate, is left out: {', '.join(left)} has "
            "one"
            for name in names
            if name not in left
        ]
        kept += left
    if len(kept) == len(DIRECTIONS) and not down:
        # Packets leave to the LAN when they come down.
        first, second = kept
        is_swapped = bool(_OF_LAN.match(first)) > bool(_OF_LAN.match(second)) or bool(
            _OF_WAN.match(second)
        ) > bool(_OF_WAN.match(first))
        up_first = [second, first] if is_swapped else kept
        notes.append(
            f"{place}: {up_first[0]} is read as links.up, and {up_first[1]} as links.down; swap "
            "them in the scenario if the LAN is behind the other one"
        )
        kept = up_first
    # The only device is the one at which packets wait.
    return dict(zip(DIRECTIONS, kept, strict=False)), notes


def _shapes(queue: Mapping[str, Any]) -> bool:
    """Whether a queue has a rate: a tree, the bucket of tbf, or cake with a bandwidth."""
    return "text" not in queue or "link" in queue or " bandwidth " in f"{queue['text']} "


def _marks(queues: Iterable[dict[str, Any]]) -> list[str]:
    """Return the blocks of traffic that filters name."""
    filters = (one for queue in queues for one in queue.get("filters", ()))
    return list(dict.fromkeys(one["traffic"] for one in filters if "traffic" in one))
