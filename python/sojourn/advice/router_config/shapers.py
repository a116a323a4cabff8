"""Shapers of a router: from words of ``tc`` to the queue and the link of the model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from sojourn import _core
from sojourn.advice.shaping import Shaping
from sojourn.scenario.link import ETHERNET_HEADER, Bucket, Layer

# Link layers of size tables and of the classes of htb, with the framing of `cake`.
FRAMINGS: Mapping[str, str] = {"ethernet": "noatm", "atm": "atm", "adsl": "atm"}
_VALUE = re.compile(r"-?[.\d]")
# The link layer of a canonical CAKE that has none.
_NO_LAYER = re.compile(r"\bnoatm mpu 0b\b")
_BANDWIDTH = re.compile(r"\bbandwidth (\S+)")


@dataclass(slots=True)
class Notes:
    """Collects what was read but has no counterpart in the model."""

    place: str
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add a note once."""
        written = self._placed(text)
        if written not in self.texts:
            self.texts.append(written)

    def refuse(self, text: str) -> NoReturn:
        """Raise an error with the same place."""
        message = self._placed(text)
        raise _core.ScenarioError(message) from None

    def _placed(self, text: str) -> str:
        """Write a text after its place; a queue that both name is written once."""
        queue = self.place.rpartition(": ")[2].partition(" ")[0]
        return f"{self.place}: {text.removeprefix(f'{queue}: ')}"


def layer_of_table(linklayer: str, overhead: int, mpu: int) -> Layer:
    """Return the layer of a size table, which counts from the Ethernet frame."""
    framing = FRAMINGS[linklayer]
    total = overhead + ETHERNET_HEADER
    return Layer(total, mpu, framing, f"overhead {total} mpu {mpu} {framing}")  # type: ignore[arg-type]


def cake(words: Sequence[str], bits_per_s: int, table: Layer | None, notes: Notes) -> Shaping:
    """Return a CAKE that shapes, with the words behind its rate."""
    words = [f"bandwidth {bits_per_s}bit", *words]
    queue = composed("cake", words, notes)
    if table is not None:
        if _NO_LAYER.search(queue) is None:
            notes.refuse("a size table and a link layer of cake; expected one of them")
        queue = composed("cake", [*_without_raw(words), *table.keywords.split()], notes)
    rate = _BANDWIDTH.search(queue)
    if rate is None:
        notes.add("cake: unlimited: read as no shaper")
    return Shaping(queue, None if rate is None else _core.parse_rate_bits_per_s(rate[1]))


def token_bucket(
    kind: Bucket,
    queue: str,
    bits_per_s: int,
    table: Layer | None,
    burst: int | None,
) -> Shaping:
    """Return a queue below htb or tbf."""
    size = "htb" if burst is None else f"{burst}b"
    return Shaping(queue, bits_per_s, table, size, kind)


def composed(kind: str, words: Sequence[str], notes: Notes) -> str:
    """Return the canonical text of a queue, which is read as ``tc`` reads it."""
    text = " ".join([kind, *words])
    try:
        queue = _core.parse_qdisc(text)
    except _core.ScenarioError as error:
        notes.refuse(f"{error}")
    for note in _core.qdisc_notes(text):
        # Scripts of SQM rely on the last word.
        if not note.endswith("the last one counts"):
            notes.add(note)
    return queue


def pairs(words: Sequence[str]) -> list[list[str]]:
    """Group words with the values that follow them."""
    grouped: list[list[str]] = []
    for word in words:
        if grouped and _VALUE.match(word) and len(grouped[-1]) == 1:
            grouped[-1].append(word)
        else:
            grouped.append([word])
    return grouped


def _without_raw(words: Sequence[str]) -> list[str]:
    """Remove ``raw`` and the overhead that ``tc`` prints behind it: the frame counts."""
    if "raw" not in words:
        return list(words)
    return [word for group in pairs(words) if group[0] not in {"raw", "overhead"} for word in group]
