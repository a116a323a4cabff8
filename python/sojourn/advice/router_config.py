"""Read the present configuration of a router: ``/etc/config/sqm``, or output of ``tc``."""

import difflib
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sojourn import _core, files
from sojourn.advice.lines import intermediate
from sojourn.advice.shaping import NONE, Shaping, bits_per_s, rate, shaped
from sojourn.arguments import ArgumentError
from sojourn.queues import qdisc
from sojourn.scenario.link import ETHERNET_HEADER, Layer, layer

EXPECTED = (
    "expected /etc/config/sqm, the output of 'uci show sqm', or the output of 'tc -d qdisc show', "
    "for htb followed by that of 'tc class show dev DEVICE'"
)
# Scripts of sqm-scripts that ignore `qdisc`, with the queue and the keyword that they use.
_SCRIPTS = {"piece_of_cake.qos": ("cake", "besteffort"), "layer_cake.qos": ("cake", "diffserv3")}
# Options of a section: run-openwrt.sh of sqm-scripts, and those that only its page of LuCI uses.
_OPTIONS = frozenset(
    {
        "enabled",
        "interface",
        "upload",
        "download",
        "linklayer_adaptation_mechanism",
        "linklayer",
        "overhead",
        "tcMTU",
        "tcTSIZE",
        "tcMPU",
        "ilimit",
        "elimit",
        "itarget",
        "etarget",
        "ingress_ecn",
        "egress_ecn",
        "iqdisc_opts",
        "eqdisc_opts",
        "target",
        "shaper_burst",
        "htb_quantum_function",
        "qdisc",
        "script",
        "squash_dscp",
        "squash_ingress",
        "debug_logging",
        "verbosity",
        "qdisc_advanced",
        "qdisc_really_really_advanced",
        "linklayer_advanced",
        "use_mq",
    }
)
_SHAPERS = ("htb", "cake")
_TINS = ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")
_FRAMINGS = ("atm", "ptm", "noatm")
_WITH_NUMBER = ("overhead", "mpu")
# Much more than the configuration of any router.
_MOST_BYTES = 1_000_000
_STANDARD_INPUT = Path("-")
_ROOT = re.compile(
    r"qdisc (?P<kind>\S+) (?P<handle>\S+) (?:dev (?P<dev>\S+) )?"
    r"(?:root|parent (?P<parent>\S+))(?: refcnt \d+)?(?P<options>.*)"
)
_CLASS = re.compile(r"class htb \S+ (?:dev (?P<dev>\S+) )?.*?\brate (?P<rate>\S+)")
_STAB = re.compile(r"\s*linklayer (?P<linklayer>\S+)(?: overhead (?P<overhead>-?\d+))?(?P<rest>.*)")
# A queue of another kind that has a rate.
_WITH_RATE = re.compile(r"\b(?:rate|bandwidth) \d")
_UNLIMITED = re.compile(r"\bbandwidth unlimited\b")
_INTERMEDIATE = "ifb"
_NUMBERED = re.compile(r"ifb\d+")
# `tc qdisc show dev DEVICE` does not print the device.
_UNNAMED = "unnamed device"

Options = Mapping[str, str]


def read(path: Path) -> tuple[str, str]:
    """Read the text of a configuration."""
    place = "standard input" if path == _STANDARD_INPUT else f"{path}"
    try:
        if path == _STANDARD_INPUT:
            content = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            content = files.head(path, _MOST_BYTES + 1)
    except OSError as error:
        message = f"cannot read {place}: {error.strerror}"
        raise _core.ScenarioError(message) from None
    if len(content) > _MOST_BYTES:
        message = f"{place}: too large; expected a configuration of at most {_MOST_BYTES} bytes"
        raise _core.ScenarioError(message)
    try:
        return content.decode(), place
    except UnicodeDecodeError as error:
        message = f"{place}: not valid UTF-8 at byte {error.start}; {EXPECTED}"
        raise _core.ScenarioError(message) from None


@dataclass(frozen=True, slots=True)
class Present:
    """The shapers of a router."""

    up: Shaping
    down: Shaping
    place: str
    notes: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """What was read, in a line."""
        sides = (("up", self.up), ("down", self.down))
        return f"read from {self.place}: " + ", ".join(
            f"{side} {_described(shaping)}" for side, shaping in sides
        )


def present(text: str, place: str, device: str | None = None) -> Present:
    """Read the shapers of both directions."""
    if re.search(r"^\s*qdisc ", text, re.MULTILINE):
        return _of_tc(text, place, device)
    if re.search(r"^\s*config\s+['\"]?queue\b|^sqm\.", text, re.MULTILINE):
        return _of_sqm(text, place, device)
    message = f"{place}: no shaper found; {EXPECTED}"
    raise _core.ScenarioError(message)


def _described(shaping: Shaping) -> str:
    if shaping.bits_per_s is None:
        return "none"
    return f"{shaping.queue.split()[0]} {shaping.bits_per_s / 1000:.15g} kbit/s"


def _of_sqm(text: str, place: str, device: str | None) -> Present:
    """Read the queue of a device that is enabled."""
    queues = _sections(text, place)
    enabled = [(name, options) for name, options in queues if options.get("enabled", "0") == "1"]
    if not enabled:
        names = ", ".join(name for name, _ in queues) or "none"
        message = f"{place}: no queue is enabled (queues: {names}); expected one with enabled '1'"
        raise _core.ScenarioError(message)
    of_device: dict[str, tuple[str, dict[str, str]]] = {}
    for name, options in enabled:
        of_device.setdefault(options.get("interface", name), (name, options))
    name, options = of_device[_chosen(list(of_device), device, place)]
    at = f"{place}: queue {name}"
    notes = tuple(
        f"{at}: unknown option {key}; {_instead(key)}" for key in options if key not in _OPTIONS
    )
    up, down = (_sqm_shaping(options, direction, at) for direction in ("upload", "download"))
    return Present(up, down, place, notes)


def _instead(key: str) -> str:
    """Write which option may be meant, or that the option has no effect."""
    near = difflib.get_close_matches(key, _OPTIONS, n=1)
    return f'did you mean "{near[0]}"?' if near else "it is not read"


def _chosen(devices: list[str], device: str | None, place: str) -> str:
    """Return the device whose shapers are read: the given one, or the only one."""
    known = ", ".join(one or _UNNAMED for one in devices)
    if device is None:
        if len(devices) == 1:
            return devices[0]
        rule = "shapers of several devices: {known}; expected {interface} with one of them"
        raise ArgumentError("present", place, rule, known=known)
    if device in devices:
        return device
    if devices == [""]:
        return ""
    rule = "{place} has no shaper of it; expected one of: {known}"
    raise ArgumentError("interface", device, rule, place=place, known=known)


def _sections(text: str, place: str) -> list[tuple[str, dict[str, str]]]:
    """Read the sections of type queue of a UCI file, or of ``uci show``."""
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            message = f"{place}: line {number}: a quotation mark is not closed"
            raise _core.ScenarioError(message) from None
        match words:
            case ["config", "queue", *name]:
                current = found.setdefault(name[0] if name else f"{len(found) + 1}", {})
            case ["config", *_]:
                current = None
            case ["option", key, value] if current is not None:
                current[key] = value
            case [one] if shown := re.fullmatch(r"sqm\.([^.=]+)(?:\.(\w+))?=(.*)", one):
                section = found.setdefault(shown[1], {})
                if shown[2]:
                    section[shown[2]] = shown[3]
            case _:
                continue
    return list(found.items())


def _sqm_shaping(options: Options, direction: str, place: str) -> Shaping:
    if direction not in options:
        message = f"{place}: {direction}: missing; expected kbit/s, or 0 for no shaper"
        raise _core.ScenarioError(message)
    kbit = options[direction]
    if not kbit.isdigit():
        message = f'{place}: {direction}: "{kbit}" is not a rate; expected kbit/s, such as 19000'
        raise _core.ScenarioError(message)
    if int(kbit) == 0:
        return NONE
    bits = int(kbit) * 1000
    script = options.get("script", "simple.qos")
    kind, keyword = _SCRIPTS.get(script, (options.get("qdisc", "fq_codel"), ""))
    is_cake = kind == "cake"
    assumed = _sqm_layer(options, place, is_cake=is_cake)
    key = "eqdisc_opts" if direction == "upload" else "iqdisc_opts"
    extra = options.get(key, "") if options.get("qdisc_really_really_advanced") == "1" else ""
    if is_cake:
        words = [] if assumed is None else assumed.keywords.split()
        queue = f"cake bandwidth {rate(bits)} {_overridden([keyword, *words], extra.split())}"
        return _checked(queue, bits, assumed, place)
    try:
        return shaped(f"{kind} {extra}", bits, assumed)
    except _core.ScenarioError as error:
        message = f"{place}: {error}"
        raise _core.ScenarioError(message) from None


def _overridden(words: list[str], extra: list[str]) -> str:
    """Join keywords of CAKE with further ones; the last keyword of a kind takes effect."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        one = [word, next(rest, "")] if word in _WITH_NUMBER else [word]
        kinds = (_TINS, _FRAMINGS, (word,))
        if not any(word in kind and set(kind) & set(extra) for kind in kinds):
            kept += one
    return " ".join([*kept, *extra])


def _sqm_layer(options: Options, place: str, *, is_cake: bool) -> Layer | None:
    """Read the link layer: relative to the IP packet for CAKE, else to the Ethernet frame."""
    linklayer = options.get("linklayer", "none")
    if linklayer == "none":
        return None
    mechanism = options.get("linklayer_adaptation_mechanism", "default")
    added = 0 if is_cake and mechanism in {"default", "cake"} else ETHERNET_HEADER
    mpu = "" if is_cake and not added else options.get("tcMPU", "0")
    return _layer(linklayer, options.get("overhead", "0"), mpu or "0", added, place)


def _layer(linklayer: str, overhead: str, mpu: str, added: int, place: str) -> Layer:
    framing = {"atm": "atm", "adsl": "atm", "ethernet": "noatm"}.get(linklayer)
    if framing is None:
        message = f'{place}: linklayer "{linklayer}" is unknown; expected none, ethernet or atm'
        raise _core.ScenarioError(message)
    try:
        total = max(int(overhead) + added, 0)
        return layer(f"overhead {total} mpu {int(mpu)} {framing}")
    except ValueError:
        message = f'{place}: overhead "{overhead}", mpu "{mpu}": expected bytes, such as 44'
        raise _core.ScenarioError(message) from None


def _of_tc(text: str, place: str, device: str | None) -> Present:
    """Read the shapers of a device and of its intermediate device for the other direction."""
    lines = text.splitlines()
    roots = _roots(lines, place)
    shaping = {name: root for name, root in roots.items() if root.shapes}
    others = {name: root.kind for name, root in roots.items() if not root.shapes}
    if not shaping:
        listed = "; ".join(_not_read(name, kind) for name, kind in others.items())
        problem = listed or f"no queue with a rate at the root of a device; {EXPECTED}"
        message = f"{place}: {problem}"
        raise _core.ScenarioError(message)
    pairs = _pairs(list(shaping))
    up, down = pairs[_chosen(list(pairs), device, place)]
    for name in (up, down):
        if name in others:
            message = f"{place}: {_not_read(name, others[name])}"
            raise _core.ScenarioError(message)
    notes = tuple(f"{place}: {_not_read(name, kind)}" for name, kind in others.items())
    found = [
        _tc_shaping(shaping[name], lines, place) if name in shaping else NONE for name in (up, down)
    ]
    return Present(found[0], found[1], place, notes)


def _pairs(devices: list[str]) -> dict[str, tuple[str, str]]:
    """Pair devices with the intermediate devices of their other direction."""
    named = [one for one in devices if not one.startswith(_INTERMEDIATE)]
    # `ifb4wan` is that of `wan`, also if only the download is shaped.
    prefix = intermediate("")
    of_named = {intermediate(one) for one in named}
    named += [
        one.removeprefix(prefix)
        for one in devices
        if one.startswith(prefix) and one != prefix and one not in of_named
    ]
    numbered = [one for one in devices if _NUMBERED.fullmatch(one)]
    pairs = {one: (one, intermediate(one)) for one in named}
    if not numbered:
        return pairs
    if len(numbered) == 1 and len(named) <= 1 and not any(p[1] in devices for p in pairs.values()):
        one = named[0] if named else numbered[0]
        return {one: (one if named else "", numbered[0])}
    return {**pairs, **{one: ("", one) for one in numbered}}


@dataclass(frozen=True, slots=True)
class _Root:
    """A queue with a rate at the root of a device."""

    number: int
    device: str
    kind: str
    handle: str
    options: str

    @property
    def shapes(self) -> bool:
        """Whether it is a shaper that can be read."""
        return self.kind in _SHAPERS


def _not_read(device: str, kind: str) -> str:
    name = device or _UNNAMED
    return f"{kind} at {name} has a rate and is not read; expected {' or '.join(_SHAPERS)}"


def _roots(lines: list[str], place: str) -> dict[str, _Root]:
    """Return the queues with a rate at the root of devices."""
    roots: dict[str, _Root] = {}
    for number, line in enumerate(lines):
        found = _ROOT.match(line.strip())
        if found is None or found["parent"] is not None:
            continue
        kind, options, device = found["kind"], found["options"], found["dev"] or ""
        has_rate = kind in _SHAPERS or _WITH_RATE.search(options) is not None
        if not has_rate or _UNLIMITED.search(options) is not None:
            continue
        if device in roots:
            message = (
                f"{place}: line {number + 1}: another queue at the root of {device or _UNNAMED}; "
                "expected the output of 'tc -d qdisc show', with one per device"
            )
            raise _core.ScenarioError(message)
        roots[device] = _Root(number, device, kind, found["handle"], options)
    return roots


def _tc_shaping(root: _Root, lines: list[str], place: str) -> Shaping:
    """Read the shaper at the root of a device."""
    at = f"{place}: {root.kind} at {root.device or _UNNAMED}"
    if root.kind == "cake":
        if (bandwidth := re.search(r"\bbandwidth (\S+)", root.options)) is None:
            message = f"{at}: no bandwidth; {EXPECTED}"
            raise _core.ScenarioError(message)
        return _checked(f"cake {root.options}", bits_per_s(bandwidth[1], place), None, place)
    rates: dict[str, str] = {}
    for line in lines:
        if (found := _CLASS.match(line.strip())) is not None:
            rates.setdefault(found["dev"] or "", found["rate"])
    shown = rates.get(root.device, rates.get("") if len(rates) == 1 else None)
    if shown is None:
        message = (
            f"{at}: its rate is missing; append the output of 'tc class show dev {root.device}'"
        )
        raise _core.ScenarioError(message)
    leaf = _leaf(lines, root.device, root.handle)
    stab = _stab(lines[root.number + 1 :], place)
    return _checked(leaf, bits_per_s(shown, place), stab, place)


def _leaf(lines: list[str], device: str, handle: str) -> str:
    """Return the queue below a shaper."""
    for line in lines:
        found = _ROOT.match(line.strip())
        if found is None or found["parent"] is None or (found["dev"] or "") != device:
            continue
        if found["parent"].startswith(handle):
            return f"{found['kind']} {found['options']}"
    return NONE.queue


def _stab(following: list[str], place: str) -> Layer | None:
    """Read the size table that ``tc -d`` prints below a queue."""
    for line in following:
        if line.strip().startswith("qdisc "):
            return None
        if (found := _STAB.fullmatch(line)) is not None:
            mpu = re.search(r"\bmpu (\d+)", found["rest"])
            overhead = found["overhead"] or "0"
            size = mpu[1] if mpu else "0"
            return _layer(found["linklayer"], overhead, size, ETHERNET_HEADER, place)
    return None


def _checked(queue: str, bits: int, assumed: Layer | None, place: str) -> Shaping:
    """Check a queue."""
    try:
        return Shaping(qdisc(" ".join(queue.split())).spec, bits, assumed)
    except _core.ScenarioError as error:
        message = f"{place}: {error}"
        raise _core.ScenarioError(message) from None
