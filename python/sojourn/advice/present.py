"""Read the present configuration of a router: ``/etc/config/sqm``, or output of ``tc``."""

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from sojourn import _core, files
from sojourn.advice.shaping import NONE, Shaping, bits_per_s, rate, shaped
from sojourn.qdisc import qdisc
from sojourn.scenario.link_layers import ETHERNET_HEADER, Layer, layer

EXPECTED = (
    "expected /etc/config/sqm, the output of 'uci show sqm', or the output of 'tc -d qdisc show', "
    "for htb followed by that of 'tc class show dev DEVICE'"
)
# Scripts of sqm-scripts that ignore `qdisc`, with the queue and the keyword that they use.
_SCRIPTS = {"piece_of_cake.qos": ("cake", "besteffort"), "layer_cake.qos": ("cake", "diffserv3")}
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
_INTERMEDIATE = "ifb"

Options = Mapping[str, str]


def read(path: Path) -> tuple[str, str]:
    """Read the text of a configuration.

    Parameters
    ----------
    path
        The file; ``-`` for standard input.

    Returns
    -------
    tuple
        The text, and its place for messages.

    Raises
    ------
    ScenarioError
        The file cannot be read, is too large, or is not UTF-8.
    """
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


def present(text: str, place: str) -> tuple[Shaping, Shaping]:
    """Read the shapers of both directions.

    Parameters
    ----------
    text
        The configuration of SQM, or the output of ``tc``.
    place
        The name of the file, for messages.

    Returns
    -------
    tuple
        The up and down shapers.

    Raises
    ------
    ScenarioError
        The text has another format or no shaper, or a queue is unknown.
    """
    if re.search(r"^\s*qdisc ", text, re.MULTILINE):
        return _of_tc(text, place)
    if re.search(r"^\s*config\s+['\"]?queue\b|^sqm\.", text, re.MULTILINE):
        return _of_sqm(text, place)
    message = f"{place}: no shaper found; {EXPECTED}"
    raise _core.ScenarioError(message)


def _of_sqm(text: str, place: str) -> tuple[Shaping, Shaping]:
    """Read the first queue that is enabled."""
    queues = _sections(text, place)
    enabled = [(name, options) for name, options in queues if options.get("enabled", "0") == "1"]
    if not enabled:
        names = ", ".join(name for name, _ in queues) or "none"
        message = f"{place}: no queue is enabled (queues: {names}); expected one with enabled '1'"
        raise _core.ScenarioError(message)
    name, options = enabled[0]
    at = f"{place}: queue {name}"
    return _sqm_shaping(options, "upload", at), _sqm_shaping(options, "download", at)


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
    kbit = options.get(direction, "0")
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


def _of_tc(text: str, place: str) -> tuple[Shaping, Shaping]:
    """Read the shapers of a device and of its intermediate device for the other direction."""
    up, down = NONE, NONE
    shapers = dict(_shapers(text.splitlines(), place))
    for device, shaping in shapers.items():
        if device.startswith(_INTERMEDIATE):
            down = shaping if down is NONE else down
        else:
            up = shaping if up is NONE else up
    if up is NONE and down is NONE:
        message = f"{place}: no queue with a rate at the root of a device; {EXPECTED}"
        raise _core.ScenarioError(message)
    return up, down


def _shapers(lines: list[str], place: str) -> Iterable[tuple[str, Shaping]]:
    """Yield the device and the shaper of each root that shapes."""
    rates: dict[str, str] = {}
    for line in lines:
        if (found := _CLASS.match(line.strip())) is not None:
            rates.setdefault(found["dev"] or "", found["rate"])
    for number, line in enumerate(lines):
        found = _ROOT.match(line.strip())
        if found is None or found["parent"] is not None or found["kind"] not in _SHAPERS:
            continue
        device = found["dev"] or ""
        if found["kind"] == "cake":
            if (bandwidth := re.search(r"\bbandwidth (\S+)", found["options"])) is None:
                message = f"{place}: cake at {device}: no bandwidth; {EXPECTED}"
                raise _core.ScenarioError(message)
            if bandwidth[1] == "unlimited":
                continue
            text = f"cake {found['options']}"
            yield device, _checked(text, bits_per_s(bandwidth[1], place), None, place)
            continue
        shown = rates.get(device, rates.get("") if len(rates) == 1 else None)
        if shown is None:
            at = f"{place}: htb at {device}"
            message = (
                f"{at}: its rate is missing; append the output of 'tc class show dev {device}'"
            )
            raise _core.ScenarioError(message)
        leaf = _leaf(lines, device, found["handle"])
        stab = _stab(lines[number + 1 :], place)
        yield device, _checked(leaf, bits_per_s(shown, place), stab, place)


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
