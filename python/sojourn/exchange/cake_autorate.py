"""The configuration of cake-autorate, as commands of ``tc`` at its base rates.

Source: ``config.primary.sh`` and the README of cake-autorate (github.com/lynxthecat/cake-autorate).
"""

import re

from sojourn import _core

_BASE = re.compile(r"^\s*base_(dl|ul)_shaper_rate_kbps=[\"']?(\d+)", re.MULTILINE)
_LIMIT = re.compile(r"^\s*(min|max)_(dl|ul)_shaper_rate_kbps=[\"']?(\d+)", re.MULTILINE)
_INTERFACE = re.compile(r"^\s*(dl|ul)_if=[\"']?([\w.@-]+)", re.MULTILINE)
_DEFAULT_DEVICES = {"ul": "wan", "dl": "ifb-wan"}


def is_configuration(text: str) -> bool:
    """Whether a text sets the base rates of cake-autorate."""
    return _BASE.search(text) is not None


def script(text: str, place: str) -> tuple[str, list[str]]:
    """Write a cake at the base rate of each direction, each in the line of the rate."""
    written = [""] * (text.count("\n") + 1)
    devices = _DEFAULT_DEVICES | {found[1]: found[2] for found in _INTERFACE.finditer(text)}
    limits = {(found[1], found[2]): int(found[3]) for found in _LIMIT.finditer(text)}
    notes = []
    for found in _BASE.finditer(text):
        side, rate = found[1], int(found[2])
        line = text.count("\n", 0, found.start(2)) + 1
        low, high = limits.get(("min", side), rate), limits.get(("max", side), rate)
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
        )
    notes.append(f"{place}: other options of cake are those of SQM; add them to the queues")
    return "\n".join(written), notes
