"""Findings on transmit rings: packets that wait below the queue, which cannot control them."""

from collections.abc import Iterator
from statistics import fmean

from sojourn.result.validity.bottlenecks import RING_MS
from sojourn.result.validity.evidence import Evidence
from sojourn.result.validity.finding import Finding, note


def _deep_rings(evidence: Evidence) -> Iterator[Finding]:
    """Find rings in which packets wait for longer than in the queue above."""
    waits: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in evidence.links:
        link = evidence.arms[row["arm"]].links[row["link"]]
        # BQL leaves what the wire needs.
        is_deep = "tx_ring" in link and not link.get("bql", True)
        if is_deep and row["driver_ms_p95"] is not None:
            both = row["driver_ms_p95"], row["sojourn_ms_p95"] or 0.0
            waits.setdefault((row["arm"], row["link"]), []).append(both)
    for (arm, name), runs in waits.items():
        below, above = (fmean(times) for times in zip(*runs, strict=True))
        # Waits that the queue exceeds hardly matter.
        if below >= RING_MS and below > above:
            yield note(
                f"{arm}: the 95th percentile of the wait in the ring of link {name} is {below:.0f} "
                f"ms, in the queue above it {above:.1f} ms. A smaller tx_ring or bql = true lets "
                "the packets wait in the queue."
            )


CHECKS = (_deep_rings,)
