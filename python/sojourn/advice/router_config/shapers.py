"""Shapers of a router: from words of ``tc`` to the queue and the link of the model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from sojourn import _core
from sojourn.advice.shaping import Shaping
from sojourn.queues import qdisc
from sojourn.scenario.link import ETHERNET_HEADER, Bucket, Layer

# Link layers of size tables and of the classes of htb, with the framing of `cake`.
FRAMINGS: Mapping[str, str] = {"ethernet": "noatm", "atm": "atm", "adsl": "atm"}
# Words of `tc` that the model does not have, with the number of values that follow.
_NOT_MODELLED: Mapping[str, Mapping[str, int]] = {
    "cake": {
        "fwmark": 1,
        "sce": 0,
        "no-sce": 0,
        "via-ethernet": 0,
        "split-gso": 0,
        "no-split-gso": 0,
    },
    "fq": {
        "buckets": 1,
        "defrate": 1,
        "timer_slack": 1,
        "horizon": 1,
        "horizon_cap": 0,
        "horizon_drop": 0,
        "offload_horizon": 1,
    },
    "red": {"ewma": 1, "Plog": 1, "Scell_log": 1},
    "choke": {"ewma": 1, "Plog": 1, "Scell_log": 1},
    "dualpi2": {"split_gso": 0, "no_split_gso": 0},
}
# Not modelled, but `tc` prints them always, and packets of the model are never larger than the MTU.
_ALWAYS = frozenset({"split-gso", "no-split-gso", "split_gso", "no_split_gso"})
# Refused, because the rate of the shaper would be another.
_REFUSED: Mapping[str, Mapping[str, str]] = {
    "cake": {"autorate-ingress": "it changes the rate with the traffic; expected a constant rate"}
}
# Words of which the last one counts.
_ALTERNATIVES = (
    {"besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8", "diffserv-llt"},
    {
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    },
    {"atm", "ptm", "noatm"},
    {"nat", "nonat"},
    {"wash", "nowash"},
    {"ingress", "egress"},
    {"ack-filter", "ack-filter-aggressive", "no-ack-filter"},
    {"split-gso", "no-split-gso"},
    {
        "rtt",
        "datacentre",
        "lan",
        "metro",
        "regional",
        "internet",
        "oceanic",
        "satellite",
        "interplanetary",
    },
    {"ecn", "noecn"},
    {"pacing", "nopacing"},
)
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
    """Return the canonical text of a queue; the last word of a kind counts, as in ``tc``."""
    kept: list[str] = []
    dropped = []
    refuse_other(kind, words, notes)
    for key, *values in last_of_each(pairs(" ".join(words).split())):
        if key in _NOT_MODELLED.get(kind, {}):
            dropped += [] if key in _ALWAYS else [" ".join([key, *values])]
        else:
            kept += [key, *values]
    if dropped:
        notes.add(f"{kind}: not modelled: {', '.join(dropped)}")
    if kind == "cake":
        kept = _without_raw(kept)
    try:
        return qdisc(" ".join([kind, *kept])).spec
    except _core.ScenarioError as error:
        notes.refuse(f"{error}")


def refuse_other(kind: str, words: Sequence[str], notes: Notes) -> None:
    """Refuse words with which a queue is another one than that of the model."""
    for word, reason in _REFUSED.get(kind, {}).items():
        if word in words:
            notes.refuse(f"{kind}: {word} is not modelled: {reason}")


def pairs(words: Sequence[str]) -> list[list[str]]:
    """Group words with the values that follow them."""
    grouped: list[list[str]] = []
    for word in words:
        if grouped and _VALUE.match(word) and len(grouped[-1]) == 1:
            grouped[-1].append(word)
        else:
            grouped.append([word])
    return grouped


def last_of_each(grouped: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Keep the last of the words that exclude each other."""
    kept: dict[frozenset[str], Sequence[str]] = {}
    for group in grouped:
        key = group[0]
        kind = frozenset(next((set_ for set_ in _ALTERNATIVES if key in set_), {key}))
        kept.pop(kind, None)
        kept[kind] = group
    return list(kept.values())


def _without_raw(words: Sequence[str]) -> list[str]:
    """Remove ``raw`` and the overhead that ``tc`` prints behind it: the frame counts."""
    if "raw" not in words:
        return list(words)
    return [word for group in pairs(words) if group[0] not in {"raw", "overhead"} for word in group]
