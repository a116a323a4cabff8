"""Output of ``tc qdisc show`` and ``tc class show``, as text or JSON: queues and classes."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sojourn import _core

# `tc qdisc show dev DEVICE` does not print the device.
UNNAMED = "unnamed device"
_QUEUE = re.compile(
    r"qdisc (?P<kind>\S+) (?P<handle>\S+) (?:\[\S+\] )?(?:dev (?P<dev>\S+) )?"
    r"(?:(?P<root>root)\b|parent (?P<parent>\S+))?"
    r"(?: refcnt \d+)?(?: offloaded)?(?: (?:in|e)gress_block \d+)*(?P<options>.*)"
)
_CLASS = re.compile(
    r"class (?P<kind>\S+) (?P<handle>\S+) (?:dev (?P<dev>\S+) )?"
    r"(?:root|parent (?P<parent>\S+))(?: leaf (?P<leaf>\S+))?(?P<options>.*)"
)
_TABLE = re.compile(r"\s*linklayer \S+(?: (?:overhead|mpu|mtu|tsize) -?\d+)*\s*")
# The line of a command above its output, such as `root@OpenWrt:~# tc -d qdisc show dev eth1`.
_COMMAND = re.compile(r"\btc\s(?:.*\s)?(?:qdisc|class)\b(?:.*\bdev\s+(?P<dev>[^\s;]+))?")
# What only `tc -d` prints: in this order of htb, tbf, and red and choke.
_DETAILS = re.compile(r"\bver \d|\bburst \S+/|\bewma \d")
# First words of statistics, for text without its indentation.
_STATISTICS = frozenset(
    [
        "Sent",
        "backlog",
        "rate",
        "memory",
        "capacity",
        "min/max",
        "average",
        "thresh",
        "target",
        "interval",
        "pk_delay",
        "av_delay",
        "sp_delay",
        "pkts",
        "bytes",
        "way_inds",
        "way_miss",
        "way_cols",
        "drops",
        "marks",
        "ack_drop",
        "sp_flows",
        "bk_flows",
        "un_flows",
        "max_len",
        "quantum",
        "Tin",
        "Bulk",
        "Best",
        "maxpacket",
        "new_flows_len",
        "count",
        "ldelay",
        "lended:",
        "tokens:",
        "marked",
        "prob",
        "prob_mark",
        "flows",
        "avg_dq_rate",
        "earlydrop",
        "penalty_drop",
        "queue_full",
        "forced_mark",
        "backlog_bytes",
        "drop_overlimit",
        "gc",
        "highprio",
        "throttled",
        "bktlog",
        "credit",
    ]
)
# Options of JSON in microseconds, in bytes and in bytes per second.
_TIMES = frozenset(
    [
        "target",
        "interval",
        "ce_threshold",
        "lat",
        "tupdate",
        "rtt",
        "refill_delay",
        "horizon",
        "rehash",
        "db",
        "step_thresh",
        "reset_timeout",
        "evict_timeout",
    ]
)
_SIZES = frozenset(
    ["memory_limit", "memlimit", "min", "max", "burst", "cburst", "minburst", "admit_bytes"]
)
_RATES = frozenset(
    ["bandwidth", "rate", "ceil", "peakrate", "maxrate", "defrate", "low_rate_threshold"]
)
# Kinds whose `target`, `min` and `max` are packets.
_IN_PACKETS: Mapping[str, frozenset[str]] = {
    "sfb": frozenset({"target", "max"}),
    "choke": frozenset({"min", "max"}),
}
# Options of JSON that are no option of `tc`, or whose word is the value.
_OF_CAKE: Mapping[str, Mapping[Any, str]] = {
    "ack-filter": {
        "enabled": "ack-filter",
        "aggressive": "ack-filter-aggressive",
        "disabled": "no-ack-filter",
    },
    "nat": {True: "nat", False: "nonat"},
    "wash": {True: "wash", False: "nowash"},
    "ingress": {True: "ingress", False: ""},
    "raw": {True: "raw", False: ""},
    "split_gso": {True: "split-gso", False: "no-split-gso"},
    "fwmark": {"0": "", "0x0": ""},
}
_VALUES_OF_CAKE = ("diffserv", "flowmode", "atm", "autorate")
_CAKES = ("cake", "cake_mq")


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue at a device; the parent of the root is empty."""

    kind: str
    handle: str
    device: str
    parent: str
    options: str
    table: str = ""

    @property
    def name(self) -> str:
        """The queue in messages."""
        where = f" parent {self.parent}" if self.parent else ""
        return f"{self.kind} at {self.device or UNNAMED}{where}"


@dataclass(frozen=True, slots=True)
class Class:
    """A class of a queue; the parent of a root class is empty."""

    kind: str
    handle: str
    device: str
    parent: str
    leaf: str
    options: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What ``tc`` printed: queues, classes in the blocks of each command, and lines not read."""

    queues: tuple[Queue, ...]
    blocks: tuple[tuple[Class, ...], ...]
    unread: tuple[str, ...] = ()
    # What a script of commands makes, instead of what `tc` printed.
    is_script: bool = False

    @property
    def is_detailed(self) -> bool:
        """Whether a queue shows that ``tc`` had the option ``-d``."""
        return self.is_script or any(
            one.table or _DETAILS.search(one.options) for one in self.queues
        )


def listing(text: str, place: str) -> Listing:
    """Read text, JSON, or both after each other."""
    queues: list[Queue] = []
    blocks: list[list[Class]] = [[]]
    unread: list[str] = []
    # The device of the last command line.
    device = ""
    below = False
    for number, line in _items(text, place):
        if not isinstance(line, str):
            found = _of_json(line, f"{place}: line {number}")
            if isinstance(found, Queue):
                queues.append(replace(found, device=found.device or device))
            else:
                _add(blocks, replace(found, device=found.device or device))
            below = False
            continue
        words = line.strip()
        if (match := _QUEUE.fullmatch(words)) is not None:
            blocks.append([])
            queues.append(
                Queue(
                    match["kind"],
                    match["handle"],
                    match["dev"] or device,
                    "" if match["root"] else match["parent"] or "none",
                    match["options"].strip(),
                )
            )
            below = True
        elif (match := _CLASS.fullmatch(words)) is not None:
            _add(
                blocks,
                Class(
                    match["kind"],
                    match["handle"],
                    match["dev"] or device,
                    match["parent"] or "",
                    match["leaf"] or "",
                    match["options"].strip(),
                ),
            )
            below = True
        elif (match := _COMMAND.search(words)) is not None:
            device = match["dev"] or ""
            blocks.append([])
            below = False
        elif below and queues and _TABLE.fullmatch(line) and not blocks[-1]:
            queues[-1] = replace(queues[-1], table=words)
        elif words and not (below and (line[0].isspace() or words.split()[0] in _STATISTICS)):
            unread.append(f"line {number}")
    return Listing(tuple(queues), tuple(tuple(block) for block in blocks if block), tuple(unread))


def _add(blocks: list[list[Class]], found: Class) -> None:
    """Add a class to its block; each command prints every class once."""
    last = blocks[-1]
    if any(one.handle == found.handle or one.device != found.device for one in last):
        blocks.append([])
    blocks[-1].append(found)


def _items(text: str, place: str) -> Iterator[tuple[int, str | dict[str, Any]]]:
    """Return lines of text and objects of JSON, with the number of their line."""
    at, number = 0, 1
    decoder = json.JSONDecoder()
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        if not line.lstrip().startswith(("[", "{")):
            yield number, line
            at, number = end + 1, number + 1
            continue
        start = at + len(line) - len(line.lstrip())
        try:
            value, stop = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            message = f"{place}: line {number}: not valid JSON; expected the output of 'tc -j'"
            raise _core.ScenarioError(message) from None
        for entry in value if isinstance(value, list) else [value]:
            if not isinstance(entry, dict):
                message = f"{place}: line {number}: expected an object for each queue or class"
                raise _core.ScenarioError(message)
            if entry:
                yield number, entry
        number += text.count("\n", at, stop)
        at = stop
        # What follows on the same line.
        while at < len(text) and text[at] in " \t\r":
            at += 1
        if at < len(text) and text[at] == "\n":
            at, number = at + 1, number + 1


def _of_json(entry: Mapping[str, Any], place: str) -> Queue | Class:
    """Read an object of ``tc -j``."""
    handle, device = f"{entry.get('handle', '')}", f"{entry.get('dev', '')}"
    parent = "" if entry.get("root") is True else f"{entry.get('parent', 'none')}"
    if "kind" in entry and "handle" in entry:
        kind = f"{entry['kind']}"
        options = entry.get("options") or {}
        table = entry.get("stab") or {}
        return Queue(
            kind,
            handle,
            device,
            parent,
            _words(kind, options, place),
            " ".join(f"{key} {value}" for key, value in table.items()),
        )
    if "class" in entry and "handle" in entry:
        kind = f"{entry['class']}"
        # Of later versions, which print an mpu for the rate and one for the ceiling.
        entry = {{"mpu_rate": "mpu"}.get(key, key): value for key, value in entry.items()}
        beside = {"class", "handle", "dev", "root", "parent", "leaf", "stats", "options"}
        own = {key: value for key, value in entry.items() if key not in beside}
        given = entry.get("options") or {}
        return Class(
            kind,
            handle,
            device,
            parent,
            f"{entry.get('leaf', '')}",
            _words(kind, {**own, **given} if isinstance(given, dict) else own, place),
        )
    message = f"{place}: neither a queue nor a class; expected the output of 'tc -j'"
    raise _core.ScenarioError(message)


def _words(kind: str, options: Any, place: str) -> str:
    """Write the options of JSON as ``tc`` prints them."""
    if not isinstance(options, dict):
        message = f"{place}: {kind}: options are not an object; expected the output of 'tc -j'"
        raise _core.ScenarioError(message)
    # Text has one word for the two.
    mask = options.get("ce_threshold_mask")
    given = {key: value for key, value in options.items() if key != "ce_threshold_mask"}
    if mask is not None and "ce_threshold_selector" in given:
        given["ce_threshold_selector"] = f"{given['ce_threshold_selector']}/{mask}"
    return " ".join(word for key, value in given.items() if (word := _word(kind, key, value)))


def _word(kind: str, key: str, value: Any) -> str:
    if kind in _CAKES and key in {*_OF_CAKE, *_VALUES_OF_CAKE}:
        return f"{value}" if key in _VALUES_OF_CAKE else _OF_CAKE[key].get(value, f"{key} {value}")
    if key == "pacing":
        return "" if value else "nopacing"
    if value is None or isinstance(value, bool):
        return "" if value is False else key
    if isinstance(value, (int, float)) and key not in _IN_PACKETS.get(kind, ()):
        if key in _RATES:
            return f"{key} {round(value * 8)}bit"
        in_bytes = key in _SIZES or (key == "limit" and kind in {"bfifo", "red", "tbf"})
        unit = "us" if key in _TIMES else "b" if in_bytes else "sec" if key == "perturb" else ""
        return f"{key} {value}{unit}"
    values = value if isinstance(value, list) else [value]
    return " ".join([key, *(f"{one}" for one in values)])
