"""Read the present configuration of a router: that of SQM, output or a script of ``tc``."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import _core, files
from sojourn.advice.router_config import from_sqm, from_tc
from sojourn.advice.router_config.from_script import listing_of
from sojourn.advice.router_config.tc_output import listing
from sojourn.advice.shaping import Shaping
from sojourn.exchange import importing
from sojourn.exchange.configuration import MOST_BYTES, STANDARD_INPUT

EXPECTED = (
    "expected /etc/config/sqm, the output of 'uci show sqm', a script of tc commands, or the "
    "output of 'tc -d qdisc show', for htb followed by that of 'tc -d class show dev DEVICE'"
)
_TC = re.compile(r"^\s*qdisc |^\s*[\[{]", re.MULTILINE)


def read(path: Path) -> tuple[str, str]:
    """Read the text of a configuration."""
    place = "standard input" if path == STANDARD_INPUT else f"{path}"
    try:
        if path == STANDARD_INPUT:
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            content = files.head(path, MOST_BYTES + 1)
    except OSError as error:
        message = f"cannot read {place}: {error.strerror}"
        raise _core.ScenarioError(message) from None
    if len(content) > MOST_BYTES:
        message = f"{place}: too large; expected a configuration of at most {MOST_BYTES} bytes"
        raise _core.ScenarioError(message)
    try:
        return content.decode(), place
    except UnicodeDecodeError as error:
        message = f"{place}: not valid UTF-8 at byte {error.start}; {EXPECTED}"
        raise _core.ScenarioError(message) from None


@dataclass(frozen=True, slots=True)
class Present:
    """The shapers of a router, and what was read but has no counterpart in the model."""

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

    @property
    def document(self) -> dict[str, Any]:
        """What was read, for JSON output."""
        return {
            "place": self.place,
            "up": _document(self.up),
            "down": _document(self.down),
            "notes": list(self.notes),
        }


def present(text: str, place: str, device: str | None = None) -> Present:
    """Read the shapers of both directions."""
    if from_sqm.is_sqm(text):
        up, down, notes = from_sqm.of_text(text, place, device)
    elif (script := importing.script_of(text, place)) is not None:
        up, down, more = from_tc.of_listing(listing_of(script), place, device)
        notes = (*script.notes, *more)
    elif _TC.search(text):
        up, down, notes = from_tc.of_listing(listing(text, place), place, device)
    else:
        message = f"{place}: no shaper found; {EXPECTED}"
        raise _core.ScenarioError(message)
    return Present(up, down, place, notes)


def _described(shaping: Shaping) -> str:
    if shaping.bits_per_s is None:
        return "none"
    return f"{shaping.queue.split()[0]} {shaping.bits_per_s / 1000:.15g} kbit/s"


def _document(shaping: Shaping) -> dict[str, Any] | None:
    """Return the shaper of a direction; None if it has none."""
    if shaping.bits_per_s is None:
        return None
    bucket = {"bucket": shaping.bucket, "burst": shaping.burst}
    return {
        "bits_per_s": shaping.bits_per_s,
        "queue": shaping.queue,
        **({} if shaping.is_cake else bucket),
        "link_layer": None if shaping.layer is None else shaping.layer.keywords,
    }
