"""Findings on transmit rings: packets that wait below the queue, which cannot control them."""

from collections.abc import Iterator
from statistics import fmean

from sojourn.result.validity.evidence import Evidence
from sojourn.result.validity.finding import Finding, note

# Shorter waits in a ring hardly matter, in ms; nor do those that the queue exceeds.
LEAST_MS = 10.0


def _deep_rings(evidence: Evidence) -> Iterator[Finding]:
    """Find rings in which packets wait for longer than in the queue above."""
    waits: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in evidence.links:
        has_ring = "tx_ring" in evidence.arms[row["arm"]].links[row["link"]]
        if has_ring and row["driver_ms_p95"] is not None:
            both = row["driver_ms_p95"], row["sojourn_ms_p95"] or 0.0
            waits.setdefault((row["arm"], row["link"]), []).append(both)
    for (arm, link), runs in waits.items():
        below, above = (fmean(times) for times in zip(*runs, strict=True))
        if below >= LEAST_MS and below > above:
            yield note(
                f"{arm}: packets wait for up to {below:.0f} ms (p95) in the ring of link {link}, "
                f"below its queue, where they wait for {above:.1f} ms. Set bql = true or a smaller "
                "tx_ring."
            )


CHECKS = (_deep_rings,)
