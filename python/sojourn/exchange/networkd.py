"""Queues in ``.network`` files of systemd-networkd, as commands of ``tc``.

Source: systemd.network(5), the sections named after queues and [HierarchyTokenBucketClass].
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from sojourn import _core

_SECTION = re.compile(r"^\s*\[(\w+)\]\s*$")
# Sections of queues with their name for tc.
_QUEUES: Mapping[str, str] = {
    "CAKE": "cake",
    "ControlledDelay": "codel",
    "FairQueueing": "fq",
    "FairQueueingControlledDelay": "fq_codel",
    "FlowQueuePIE": "fq_pie",
    "HierarchyTokenBucket": "htb",
    "PIE": "pie",
    "PFIFO": "pfifo",
    "PFIFOFast": "pfifo_fast",
    "PFIFOHeadDrop": "pfifo_head_drop",
    "BFIFO": "bfifo",
    "StochasticFairBlue": "sfb",
    "StochasticFairnessQueueing": "sfq",
    "TokenBucketFilter": "tbf",
}
_CLASS = "HierarchyTokenBucketClass"
# Sections of queues that are refused by name.
_OTHERS = (
    *("DeficitRoundRobinScheduler", "DeficitRoundRobinSchedulerClass", "BandMultiQueueing"),
    *("EnhancedTransmissionSelection", "GenericRandomEarlyDetection", "HeavyHitterFilter"),
    *("NetworkEmulator", "QuickFairQueueing", "QuickFairQueueingClass", "TrivialLinkEqualizer"),
)
# Keys with their word for tc, and how their value is written.
_BYTES, _RATE, _TIME, _NUMBER = "bytes", "rate", "time", "number"
_WORDS: Mapping[str, tuple[str, str]] = {
    "Bandwidth": ("bandwidth", _RATE),
    "BufferBytes": ("burst", _BYTES),
    "BurstBytes": ("burst", _BYTES),
    "CeilBufferBytes": ("cburst", _BYTES),
    "CeilRate": ("ceil", _RATE),
    "CEThresholdSec": ("ce_threshold", _TIME),
    "DefaultClass": ("default", _NUMBER),
    "Flows": ("flows", _NUMBER),
    "IntervalSec": ("interval", _TIME),
    "LatencySec": ("latency", _TIME),
    "LimitBytes": ("limit", _BYTES),
    "MaximumRate": ("maxrate", _RATE),
    "MemoryLimitBytes": ("memory_limit", _BYTES),
    "MPUBytes": ("mpu", _BYTES),
    "OverheadBytes": ("overhead", _NUMBER),
    "PacketLimit": ("limit", _NUMBER),
    "PerturbPeriodSec": ("perturb", _TIME),
    "Priority": ("prio", _NUMBER),
    "QuantumBytes": ("quantum", _BYTES),
    "Rate": ("rate", _RATE),
    "RateToQuantum": ("r2q", _NUMBER),
    "RTTSec": ("rtt", _TIME),
    "TargetSec": ("target", _TIME),
}
_CHOICES: Mapping[str, Mapping[str, str]] = {
    "CompensationMode": {"none": "noatm", "atm": "atm", "ptm": "ptm"},
    "FlowIsolationMode": {
        "none": "flowblind",
        "src-host": "srchost",
        "dst-host": "dsthost",
        "hosts": "hosts",
        "flows": "flows",
        "dual-src-host": "dual-srchost",
        "dual-dst-host": "dual-dsthost",
        "triple": "triple-isolate",
    },
    "PriorityQueueingPreset": {
        one: one for one in ("besteffort", "diffserv3", "diffserv4", "diffserv8")
    },
}
_SWITCHES: Mapping[str, tuple[str, str]] = {
    "AckFilter": ("ack-filter", "no-ack-filter"),
    "AutoRateIngress": ("autorate-ingress", ""),
    "ECN": ("ecn", "noecn"),
    "NAT": ("nat", "nonat"),
    "Pacing": ("pacing", "nopacing"),
    "SplitGSO": ("split-gso", "no-split-gso"),
    "UseRawPacketSize": ("raw", ""),
    "Wash": ("wash", "nowash"),
}
_ON, _OFF = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)")
_LENGTH = re.compile(r"\d+(?:\.\d+)?(?:us|ms|s|sec)?")


@dataclass(slots=True)
class _Section:
    name: str
    line: int
    options: dict[str, str] = field(default_factory=dict)


def is_network(text: str) -> bool:
    """Whether a text is a file of systemd-networkd with a queue."""
    names = (found[1] for line in text.splitlines() if (found := _SECTION.match(line)))
    return any(name in _QUEUES or name == _CLASS or name in _OTHERS for name in names)


def script(text: str, place: str) -> str:
    """Write the commands, each in the line of its section."""
    device, tree = "eth0", "1"
    written = [""] * (text.count("\n") + 1)
    for section in _sections(text, place):
        at = f"{place}: line {section.line}: [{section.name}]"
        if section.name == "Match":
            device = section.options.get("Name", device).split()[0]
        elif section.name in _OTHERS:
            _refuse(at, f"not read; expected one of {', '.join([*_QUEUES, _CLASS])}")
        elif section.name in _QUEUES or section.name == _CLASS:
            if section.name == "HierarchyTokenBucket":
                tree = section.options.get("Handle", tree).removeprefix("0x").lstrip("0") or "1"
            written[section.line - 1] = _command(section, device, tree, at)
    return "\n".join(written)


def _sections(text: str, place: str) -> Iterator[_Section]:
    current: _Section | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words[0] in "#;":
            continue
        if (found := _SECTION.match(line)) is not None:
            if current is not None:
                yield current
            current = _Section(found[1], number)
            continue
        key, equals, value = words.partition("=")
        if current is None or not equals:
            _refuse(f"{place}: line {number}", "expected a section or a line such as Rate=10M")
        current.options[key.strip()] = value.strip()
    if current is not None:
        yield current


def _command(section: _Section, device: str, tree: str, at: str) -> str:
    options = dict(section.options)
    parent, handle = options.pop("Parent", "root"), options.pop("Handle", "")
    own = options.pop("ClassId", "")
    words = [word for key, value in options.items() for word in _words(key, value, at)]
    if section.name == _CLASS:
        above = f"parent {tree}:" if parent == "root" else f"parent {parent}"
        return " ".join(
            ["tc class add dev", device, above, "classid", own or f"{tree}:1", "htb", *words]
        )
    above = parent if parent == "root" else f"parent {parent}"
    number = tree if section.name == "HierarchyTokenBucket" else handle.removeprefix("0x")
    named = f"handle {number}:" if number else ""
    kind = _QUEUES[section.name]
    return " ".join(["tc qdisc add dev", device, above, named, kind, *words])


def _words(key: str, value: str, at: str) -> list[str]:
    """Return the words of a key for tc."""
    if key in _WORDS:
        word, form = _WORDS[key]
        return [word, _value(key, value, form, at)]
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            _refuse(at, f'{key}="{value}"; expected one of {", ".join(_CHOICES[key])}')
        return [_CHOICES[key][value]]
    if key == "AckFilter" and value == "aggressive":
        return ["ack-filter-aggressive"]
    if key not in _SWITCHES:
        _refuse(at, f"{key} is not read")
    if value.lower() not in _ON + _OFF:
        _refuse(at, f'{key}="{value}"; expected yes or no')
    word = _SWITCHES[key][0 if value.lower() in _ON else 1]
    return [word] if word else []


def _value(key: str, value: str, form: str, at: str) -> str:
    if form == _TIME:
        if not _LENGTH.fullmatch(value):
            _refuse(at, f'{key}="{value}" is not a time; expected one such as 5ms')
        # A number without a unit is in seconds.
        return f"{value}s" if value[-1].isdigit() else value.replace("sec", "s")
    found = _AMOUNT.fullmatch(value)
    if form == _NUMBER:
        if not re.fullmatch(r"-?(?:0x[0-9a-fA-F]+|\d+)", value):
            _refuse(at, f'{key}="{value}" is not a whole number')
        return value
    if found is None:
        _refuse(at, f'{key}="{value}" is not a {form}; expected a number such as 10M')
    base = 1000 if form == _RATE else 1024
    amount = float(found[1]) * base ** " KMG".index(found[2] or " ")
    return f"{amount:.0f}{'bit' if form == _RATE else 'b'}"


def _refuse(at: str, problem: str) -> NoReturn:
    message = f"{at}: {problem}"
    raise _core.ScenarioError(message)
