"""The comparison of simulated means with those of another place: differences and verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

import numpy as np
import polars as pl

from sojourn.result import Result
from sojourn.result.catalogue import By, Metric, shown
from sojourn.result.estimates import LEVEL, metrics_of
from sojourn.result.metrics import round_trips
from sojourn.result.rows import KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far the mean of another place may differ from the simulated one."""

    quantity: str
    begins: str
    relative: float
    absolute: Mapping[str, float]
    reason: str

    def of(self, simulated: float, unit: str) -> float:
        """Return the tolerance of a metric with this simulated mean, in its unit.

        Examples
        --------
        >>> [round(DELAY.of(mean, "ms"), 2) for mean in (4.0, 50.0)]
        [1.0, 5.0]
        """
        return max(self.relative * abs(simulated), self.absolute[unit])

    def __str__(self) -> str:
        """Write the share and the least value, such as ``"10 %, at least 1 ms"``."""
        least = [f"{value:g} {unit}" for unit, value in self.absolute.items() if value]
        share = f"{self.relative:.0%}".replace("%", " %")
        return f"{share}, at least {least[0]}" if least else share


GOODPUT = Tolerance(
    quantity="goodput",
    begins="goodput",
    relative=0.05,
    absolute={"Mbit/s": 0.0},
    reason="Kernels differ in slow start, pacing and offloads, which determine when a queue is "
    "empty after a loss; over a run of tens of seconds, the rate of a saturated link varies less.",
)
DELAY = Tolerance(
    quantity="delays and durations",
    begins="",
    relative=0.10,
    absolute={"ms": 1.0, "s": 0.001},
    reason="The timers and the scheduler of a machine make live packets late by up to 1 ms: a run "
    "in which 1 % of the events of the datapath are later than that is invalid. The percentage "
    "covers the phase of congestion control, which differs between runs.",
)

#: The first tolerance that applies to a metric is used.
TOLERANCES = (GOODPUT, DELAY)

INFORMATIONAL = (
    "Counts, shares and indices have no tolerance: drops and marks are few per run, and one more "
    "or less is a large relative change."
)


def tolerance(metric: Metric) -> Tolerance | None:
    """Return the tolerance of a metric; None if it is informational."""
    for one in TOLERANCES:
        if metric.unit in one.absolute and metric.column.startswith(one.begins):
            return one
    return None


RESAMPLES = 2000
# Columns of the per-group tables in the comparison. The first two repeat the metrics of the whole
# run if there is only one group of flows.
ALONE = ("goodput_mbit_per_s_mean", "data_share_percent")
OF_GROUPS = (*ALONE, "rtt_inflation_ms_mean", "retransmit_percent", "fct_s_mean")
OF_APPLICATIONS = (
    "duration_s_mean",
    "duration_s_p95",
    "startup_s_mean",
    "stalled_s_mean",
    "bitrate_mbit_per_s_mean",
    "mos_mean",
    "rpm_mean",
)
SCHEMA = {
    **dict.fromkeys(("arm", "group", "metric", "label", "unit"), pl.String),
    "n_simulated": pl.Int64,
    "simulated": pl.Float64,
    "n_measured": pl.Int64,
    **dict.fromkeys(("measured", "difference", "low", "high", "tolerance"), pl.Float64),
    "verdict": pl.String,
    "valid": pl.Boolean,
}


class Verdict(StrEnum):
    """Whether the mean of another place agrees with the simulated one."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCheck:
    """A check that a run did not pass."""

    arm: str
    replication: int
    name: str
    value: str


def failed_checks(measured: Result) -> list[FailedCheck]:
    """List the checks that runs did not pass."""
    return [
        FailedCheck(
            arm=fact["arm"],
            replication=fact["replication"],
            name=fact["name"],
            value=fact["value"],
        )
        for fact in measured.provenance.get("validity", ())
        if not fact["passed"]
    ]


def compared(simulated: Result, measured: Result) -> pl.DataFrame:
    """Compare every metric of every arm."""
    invalid = {check.arm for check in failed_checks(measured)}
    rows = []
    for arm in simulated.arms:
        for group, metric, ours, theirs in _values(simulated, measured, arm):
            if ours or theirs:
                row = _row(metric, ours, theirs)
                rows.append({"arm": arm, "group": group, "valid": arm not in invalid, **row})
    return pl.DataFrame(rows, schema=SCHEMA)


_Values = tuple[str | None, Metric, list[float], list[float]]


def _values(simulated: Result, measured: Result, arm: str) -> Iterator[_Values]:
    """Yield every metric of an arm with its values of both places."""
    whole = [_whole(result).filter(pl.col("arm") == arm) for result in (simulated, measured)]
    columns = dict.fromkeys(name for frame in whole for name in frame.columns if name not in KEYS)
    for metric in metrics_of(columns):
        ours, theirs = (_column(frame, metric.column) for frame in whole)
        yield None, metric, ours, theirs
    parts: tuple[tuple[By, Sequence[str]], ...] = (
        ("group", OF_GROUPS),
        ("application", OF_APPLICATIONS),
    )
    for by, names in parts:
        frames = [result.table(by).filter(pl.col("arm") == arm) for result in (simulated, measured)]
        groups = list(dict.fromkeys(name for frame in frames for name in frame["group"]))
        for group in groups:
            of_group = [frame.filter(pl.col("group") == group) for frame in frames]
            for metric in shown(by):
                if metric.column in names and not (len(groups) == 1 and metric.column in ALONE):
                    ours, theirs = (_column(frame, metric.column) for frame in of_group)
                    yield group, metric, ours, theirs


def _whole(result: Result) -> pl.DataFrame:
    """Return the metrics of whole runs, with the round-trip times that connections measure."""
    rtts = round_trips(result.flows)
    return result.table().join(rtts, on=KEYS, how="left", maintain_order="left")


def _column(frame: pl.DataFrame, name: str) -> list[float]:
    if name not in frame.columns:
        return []
    return frame[name].cast(pl.Float64).drop_nulls().drop_nans().to_list()


def _row(
    metric: Metric, simulated: Sequence[float], measured: Sequence[float]
) -> dict[str, object]:
    """Compare one metric."""
    ours = fmean(simulated) if simulated else None
    theirs = fmean(measured) if measured else None
    within = tolerance(metric)
    row: dict[str, object] = {
        "metric": metric.column,
        "label": metric.label,
        "unit": metric.unit,
        "n_simulated": len(simulated),
        "simulated": ours,
        "n_measured": len(measured),
        "measured": theirs,
        "tolerance": None if within is None or ours is None else within.of(ours, metric.unit),
    }
    if ours is None or theirs is None:
        return row | {"verdict": Verdict.NOT_MEASURED}
    low, high = interval(simulated, measured)
    row |= {"difference": theirs - ours, "low": low, "high": high}
    if within is None:
        return row
    return row | {"verdict": verdict(theirs - ours, low, high, within.of(ours, metric.unit))}


def interval(
    simulated: Sequence[float], measured: Sequence[float]
) -> tuple[float, float] | tuple[None, None]:
    """Compute the 95 % bootstrap interval of a difference of means, measured minus simulated.

    The samples are resampled independently: replication *k* of the one place shares no random
    numbers with that of the other.

    Examples
    --------
    >>> low, high = interval([1.0, 1.2, 0.8], [2.0, 2.2, 1.8])
    >>> 0.6 < low < 1.0 < high < 1.4
    True
    """
    if min(len(simulated), len(measured)) < 2:  # noqa: PLR2004 - a spread takes two
        return None, None
    random = np.random.default_rng(1)

    def means(values: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        drawn = random.integers(len(values), size=(RESAMPLES, len(values)))
        sampled: np.ndarray[tuple[int], np.dtype[np.float64]]
        sampled = np.asarray(values)[drawn].mean(axis=1)
        return sampled

    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(means(measured) - means(simulated), [tail, 1.0 - tail])
    return float(low), float(high)


def verdict(difference: float, low: float | None, high: float | None, within: float) -> Verdict:
    """Judge a difference; without an interval, by its value alone.

    Examples
    --------
    >>> [str(verdict(*numbers)) for numbers in ((1, 0, 2, 3), (1, 0, 2, 1.5), (4, 3.5, 5, 3))]
    ['agrees', 'undecided', 'differs']
    """
    low, high = (difference, difference) if low is None or high is None else (low, high)
    if -within <= low and high <= within:
        return Verdict.AGREES
    if high < -within or low > within:
        return Verdict.DIFFERS
    return Verdict.UNDECIDED
