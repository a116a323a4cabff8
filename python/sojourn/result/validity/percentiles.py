"""Percentiles that rest on few observations."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from sojourn.result.catalogue import By, of_scope
from sojourn.result.metrics import KEYS

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
    flows: pl.DataFrame, pings: pl.DataFrame, transactions: pl.DataFrame, *, warmup_s: float
) -> list[Sparse]:
    """Find the percentiles that rest on few observations.

    Percentiles of sojourn times are over thousands of packets and are not checked.
    """
    ended = transactions.filter(
        (pl.col("started_s") >= warmup_s) & pl.col("duration_s").is_not_null()
    )
    transfers = flows.filter((pl.col("started_s") >= warmup_s) & pl.col("fct_s").is_not_null())
    replies = pings.filter((pl.col("t_s") >= warmup_s) & pl.col("rtt_ms").is_not_null())
    return [
        *_of_metrics("run", "ping_ms_p", replies.with_columns(group=pl.lit(""))),
        *_of_metrics("group", "fct_s_p", transfers),
        *_of_metrics("application", "duration_s_p", ended),
    ]


def _of_metrics(by: By, prefix: str, seen: pl.DataFrame) -> Iterator[Sparse]:
    """Check the shown percentiles of a quantity, given its observations."""
    counts = seen.group_by(*KEYS, "group", maintain_order=True).len()
    arms = counts.group_by("arm", "group", maintain_order=True).agg(
        per_run=pl.col("len").mean(), whole=pl.col("len").sum()
    )
    for metric in of_scope(by):
        if not (metric.shown and metric.column.startswith(prefix)):
            continue
        percent = int(metric.column.removeprefix(prefix))
        few = arms.filter(
            (pl.col("per_run") < needed(percent, BEYOND_PER_RUN))
            | (pl.col("whole") < needed(percent, BEYOND))
        )
        for (group,), rows in few.group_by("group", maintain_order=True):
            yield Sparse(
                name=f"{group}: {metric.label}" if group else metric.label,
                percent=percent,
                arms=rows["arm"].to_list(),
                # Rounded down: 99.97 observations are fewer than the 100 needed.
                least_per_run=f"{math.floor(10 * min(rows['per_run'].to_list())) / 10:g}",
                least=min(rows["whole"].to_list()),
            )
