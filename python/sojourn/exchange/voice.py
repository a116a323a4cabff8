"""The quality of a measured call: delay, jitter and loss of its packets."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Points = Sequence[tuple[float, float]]
# A sequence number that falls by more than reordering explains starts a new count.
RESTART = 100


def call(
    delays: Points, numbers: Points, lost: Points | None, begin: float, end: float
) -> dict[str, Any]:
    """Compute the columns of a call from its packets in the time from `begin` to `end`.

    `lost` has the packets without a reply, of programs that report them; otherwise gaps between
    sequence numbers are losses. Clocks that differ give negative delays: then there is no delay.
    """
    values = [y for at, y in delays if begin <= at <= end]
    row: dict[str, Any] = {"owd_ms_mean": None, "owd_ms_p95": None, "jitter_ms_mean": None}
    if values and min(values) >= 0:
        row["owd_ms_mean"] = sum(values) / len(values)
        row["owd_ms_p95"] = _quantile(sorted(values), 0.95)
    if len(values) > 1:
        steps = [abs(after - before) for before, after in pairwise(values)]
        row["jitter_ms_mean"] = sum(steps) / len(steps)
    within = [(at, int(y)) for at, y in numbers if begin <= at <= end and 0 <= y < 2**53]
    gone = None if lost is None else {at for at, _ in lost}
    return row | _losses(sorted(within), gone)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _losses(numbers: Sequence[tuple[float, int]], gone: set[float] | None) -> dict[str, Any]:
    """Count packets that were sent and runs of lost ones (RFC 3357)."""
    runs: list[int] = []
    sent = 0
    for count in _counts(numbers):
        arrived = sorted({seq for at, seq in count if gone is None or at not in gone})
        known = sorted({seq for _, seq in count})
        sent += known[-1] - known[0] + 1
        edges = [known[0] - 1, *arrived, known[-1] + 1]
        runs += [after - before - 1 for before, after in pairwise(edges) if after - before > 1]
    if not sent:
        return {}
    return {
        "voice_loss_percent": 100 * sum(runs) / sent,
        "loss_runs": len(runs),
        "loss_run_packets_max": max(runs, default=0),
        "loss_interval_packets_mean": sent / len(runs) if runs else None,
    }


def _counts(numbers: Sequence[tuple[float, int]]) -> list[list[tuple[float, int]]]:
    """Split sequence numbers, in the order of arrival, where their counter restarted."""
    counts: list[list[tuple[float, int]]] = []
    highest = 0
    for at, seq in numbers:
        if not counts or seq < highest - RESTART:
            counts.append([])
            highest = seq
        counts[-1].append((at, seq))
        highest = max(highest, seq)
    return counts
