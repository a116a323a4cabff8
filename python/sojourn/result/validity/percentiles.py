"""Percentiles that rest on few observations."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean

from sojourn.result.catalogue import By, of_scope
from sojourn.result.rows import Record, grouped

# How many observations there are, by arm, replication and group.
Seen = Counter[tuple[str, int, str]]

# Observations expected beyond the percentile in all runs of an arm. Their number has a relative
# standard deviation of 1/sqrt(5) = 45 %; with fewer, the percentile is too uncertain.
BEYOND = 5
# The same per run. With fewer, the percentile of a run is interpolated towards its largest value, a
# bias that more runs do not remove.
BEYOND_PER_RUN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """A percentile with too few observations."""

    name: str
    percent: int
    arms: list[str]
    least_per_run: str
    least: int

    @property
    def needed_per_run(self) -> int:
        """Number of observations that a run needs."""
        return needed(self.percent, BEYOND_PER_RUN)

    @property
    def needed(self) -> int:
        """Number of observations that all runs of an arm need."""
        return needed(self.percent, BEYOND)


def needed(percent: int, beyond: int) -> int:
    """Count the observations of which `beyond` are expected above a percentile.

    Examples
    --------
    >>> needed(95, 5), needed(99, 1)
    (100, 100)
    """
    return math.ceil(beyond * 100 / (100 - percent))


def sparse(
    flows: Iterable[Record],
    replies: Iterable[tuple[str, int, int]],
    transactions: Iterable[Record],
    *,
    warmup_s: float,
) -> list[Sparse]:
    """Find the percentiles that rest on few observations.

    Percentiles of sojourn times are over thousands of packets and are not checked. `replies` are
    arm, replication and the number of replies to pings after the warm-up.
    """

    def observed(of: Iterable[Record], name: str) -> Seen:
        return Counter(
            (row["arm"], row["replication"], row["group"])
            for row in of
            if row["started_s"] is not None
            and row["started_s"] >= warmup_s
            and row[name] is not None
        )

    of_runs: Seen = Counter({(arm, replication, ""): count for arm, replication, count in replies})
    return [
        *_of_metrics("run", "ping_ms_p", of_runs),
        *_of_metrics("group", "fct_s_p", observed(flows, "fct_s")),
        *_of_metrics("application", "duration_s_p", observed(transactions, "duration_s")),
    ]


def _of_metrics(by: By, prefix: str, seen: Seen) -> Iterator[Sparse]:
    """Check the shown percentiles of a quantity, given how many observations each run has."""
    counts: dict[tuple[str, str], list[int]] = {}
    for (arm, _, group), count in seen.items():
        counts.setdefault((arm, group), []).append(count)
    for metric in of_scope(by):
        if not (metric.shown and metric.column.startswith(prefix)):
            continue
        percent = int(metric.column.removeprefix(prefix))
        few = [
            (arm, group, of)
            for (arm, group), of in counts.items()
            if fmean(of) < needed(percent, BEYOND_PER_RUN) or sum(of) < needed(percent, BEYOND)
        ]
        for group, arms in grouped(few, itemgetter(1)).items():
            yield Sparse(
                name=f"{group}: {metric.label}" if group else metric.label,
                percent=percent,
                arms=[arm for arm, *_ in arms],
                # Rounded down: 99.97 observations are fewer than the 100 needed.
                least_per_run=f"{math.floor(10 * min(fmean(of) for *_, of in arms)) / 10:g}",
                least=min(sum(of) for *_, of in arms),
            )
