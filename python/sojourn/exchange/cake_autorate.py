"""The configuration of cake-autorate, as commands of ``tc`` at its base rates.

Source: ``config.primary.sh`` and the README of cake-autorate (github.com/lynxthecat/cake-autorate).
"""

import re
from collections.abc import Mapping

from sojourn import _core
from sojourn.traffic import Ping
from sojourn.traffic.block import Direction

_BASE = re.compile(r"^\s*base_(dl|ul)_shaper_rate_kbps=[\"']?(\d+)", re.MULTILINE)
_LIMIT = re.compile(r"^\s*(min|max)_(dl|ul)_shaper_rate_kbps=[\"']?(\d+)", re.MULTILINE)
_FIXED = re.compile(r"^\s*adjust_(dl|ul)_shaper_rate=[\"']?0", re.MULTILINE)
_INTERFACE = re.compile(r"^\s*(dl|ul)_if=[\"']?([\w.@-]+)", re.MULTILINE)
_PINGERS = re.compile(r"^\s*no_pingers=[\"']?([1-9]\d?)\b", re.MULTILINE)
_RECORD = re.compile(
    rb"^(?:(?:DATA|LOAD)(?:_HEADER)?|DEBUG|INFO|SHAPER|SUMMARY(?:_HEADER)?);", re.MULTILINE
)
_DEFAULT_DEVICES = {"ul": "wan", "dl": "ifb-wan"}
_DIRECTIONS: Mapping[str, Direction] = {"ul": "up", "dl": "down"}
# Reflectors and the time between two pings to each, by default.
_REFLECTORS, _INTERVAL = 6, "300ms"


def is_configuration(text: str) -> bool:
    """Whether a text sets the base rates of cake-autorate."""
    return _BASE.search(text) is not None


def is_log(begin: bytes) -> bool:
    """Whether a file begins as a log of cake-autorate, whose fields are separated by semicolons."""
    return _RECORD.search(begin) is not None


def script(text: str, place: str) -> tuple[str, list[str]]:
    """Write a cake at the base rate of each direction, each in the line of the rate."""
    written = [""] * (text.count("\n") + 1)
    devices = _DEFAULT_DEVICES | {found[1]: found[2] for found in _INTERFACE.finditer(text)}
    rates = _rates(text)
    notes = []
    for found in _BASE.finditer(text):
        side = found[1]
        line = text.count("\n", 0, found.start(2)) + 1
        low, rate, high = rates[side]
        if not low <= rate <= high:
            message = (
                f"{place}: line {line}: base_{side}_shaper_rate_kbps {rate} is not between "
                f"{low} and {high}, its minimum and maximum"
            )
            raise _core.ScenarioError(message)
        device = devices[side]
        if side == "dl" and not device.startswith("ifb"):
            device = f"ifb-{device}"
        written[line - 1] = f"tc qdisc add dev {device} root cake bandwidth {rate}kbit"
        notes.append(
            f"{place}: {side}: the rate stays at {rate} kbit/s; cake-autorate moves it between "
            f"{low} and {high}"
            if low < high
            else f"{place}: {side}: the rate stays at {rate} kbit/s"
        )
    notes.append(f"{place}: other options of cake are those of SQM; add them to the queues")
    return "\n".join(written), notes


def _rates(text: str) -> dict[str, tuple[int, int, int]]:
    """Return the minimum, base and maximum rate of each side; all are equal if it is fixed."""
    limits = {(found[1], found[2]): int(found[3]) for found in _LIMIT.finditer(text)}
    fixed = {found[1] for found in _FIXED.finditer(text)}
    rates = {}
    for found in _BASE.finditer(text):
        side, base = found[1], int(found[2])
        low, high = (limits.get((end, side), base) for end in ("min", "max"))
        rates[side] = (base, base, base) if side in fixed else (low, base, high)
    return rates


def controller(text: str) -> list[str]:
    """Say how to run the controller of the configuration, in the lines of a comment."""
    shapers = ", ".join(
        f'"{_DIRECTIONS[side]}": {rates}' for side, rates in sorted(_rates(text).items())
    )
    return [
        "The rates are fixed. To let the controller of cake-autorate change them, copy",
        "examples/autorate.py of Sojourn beside this file, append to that copy",
        "",
        "    class Router(Autorate):",
        f"        shapers = {{{shapers}}}",
        '        upload = "up"',
        "",
        "and run this file with -s controller=./autorate.py:Router",
    ]


def reflectors(text: str) -> Ping:
    """Return the pings to reflectors, by whose delay the controller decides."""
    found = _PINGERS.search(text)
    return Ping(
        name="reflector",
        direction="up",
        interval=_INTERVAL,
        start_jitter=_INTERVAL,
        count=_REFLECTORS if found is None else int(found[1]),
    )
