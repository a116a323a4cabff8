"""Check stationarity: compare the first half of the measured time with the second.

If the goodput of a direction differs significantly between the halves, the load had not settled
when the measurement began, and the mean depends on the length of the run.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import polars as pl

from sojourn.result.metrics import CONNECTIONS, KEYS

# Probability of at least one false alarm in a stationary result, divided among its tests.
FALSE_ALARM = 0.01
# Smaller differences do not cause a warning, even if they are significant.
LEAST_SHARE = 0.10
# Flows that start within this time of the first one start together.
TOGETHER_S = 2.0
# With fewer runs, the test has hardly any power.
LEAST_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A direction whose goodput changes during the measured time.

    Parameters
    ----------
    arm, direction
        The arm and the direction.
    first, second
        Mean goodput in the first and in the second half of the measured time, in Mbit/s.
    runs
        Number of runs.
    """

    arm: str
    direction: str
    first: float
    second: float
    runs: int


def drifts(
    flows: pl.DataFrame, flow_series: pl.DataFrame, *, warmup_s: float, duration_s: float
) -> list[Drift]:
    """Find the directions whose goodput differs between the halves of the measured time.

    A t test over the runs decides whether the mean difference between the halves is 0. Only endless
    connections that send during the whole measured time count. If another endless connection starts
    or ends within the measured time, the change is part of the experiment and there is no test.

    Parameters
    ----------
    flows, flow_series
        Tables of an outcome.
    warmup_s, duration_s
        End of the warm-up and of the run, in seconds.

    Returns
    -------
    list of Drift
        The directions that differ, in the order of the arms.
    """
    halves = _halves(flows, flow_series, warmup_s=warmup_s, duration_s=duration_s)
    tests = halves.group_by("arm", "direction", maintain_order=True).agg("first", "second")
    tests = tests.filter(pl.col("first").list.len() >= LEAST_RUNS)
    found = []
    for row in tests.iter_rows(named=True):
        changes = [
            after - before for before, after in zip(row["first"], row["second"], strict=True)
        ]
        first, second = fmean(row["first"]), fmean(row["second"])
        large = abs(second - first) > LEAST_SHARE * (first + second) / 2
        if large and p_value(changes) < FALSE_ALARM / tests.height:
            found.append(
                Drift(
                    arm=row["arm"],
                    direction=row["direction"],
                    first=first,
                    second=second,
                    runs=len(changes),
                )
            )
    return found


def _halves(
    flows: pl.DataFrame, flow_series: pl.DataFrame, *, warmup_s: float, duration_s: float
) -> pl.DataFrame:
    """Sum the goodput of each direction over its flows, in each half and run."""
    keys = [*KEYS, "flow"]
    endless = flows.filter(pl.col("kind").is_in(CONNECTIONS) & pl.col("bytes").is_null())
    of_load = endless.select(*keys, pl.col("direction").fill_null("total"))
    series = flow_series.join(of_load, on=keys, maintain_order="left")
    if series.is_empty():
        columns = dict.fromkeys(("first", "second"), pl.Float64)
        return pl.DataFrame(schema={"arm": pl.String, "direction": pl.String, **columns})
    step = pl.col("t_s") - pl.col("t_s").shift(1).over(keys)
    # The first interval of a flow begins with the run.
    series = series.with_columns(step=step.fill_null(pl.col("t_s")))
    spans = series.group_by(keys).agg(
        start=pl.col("t_s").first() - pl.col("step").min(),
        end=pl.col("t_s").last(),
        interval=pl.col("step").min(),
    )
    spans = of_load.join(spans, on=keys, how="left")
    together = pl.max_horizontal(warmup_s, pl.col("start").min().over(KEYS) + TOGETHER_S)
    late = (pl.col("start") > together) & (pl.col("start") < duration_s)
    early = (pl.col("end") > warmup_s) & (pl.col("end") < duration_s - pl.col("interval"))
    steady = spans.group_by("arm").agg(steady=~(late | early).any())
    middle = (warmup_s + duration_s) / 2
    at, rate = pl.col("t_s"), pl.col("goodput_mbit_per_s") * pl.col("step")
    length = (duration_s - warmup_s) / 2
    return (
        series.filter(at > warmup_s)
        .join(steady.filter("steady"), on="arm", how="semi", maintain_order="left")
        .group_by(*KEYS, "direction", maintain_order=True)
        .agg(
            first=rate.filter(at <= middle).sum() / length,
            second=rate.filter(at > middle).sum() / length,
        )
    )


def p_value(values: Sequence[float]) -> float:
    """Compute the two-sided p value of a t test that the mean of at least two values is 0.

    Examples
    --------
    >>> f"{p_value([1.0, 2.0, 3.0, 4.0]):.4f}"
    '0.0305'
    """
    mean, spread = fmean(values), stdev(values)
    if spread == 0.0:
        return 0.0 if mean else 1.0
    t = abs(mean) / spread * math.sqrt(len(values))
    return max(0.0, 1.0 - _within(t, len(values) - 1))


def _within(t: float, degrees: int) -> float:
    """Compute the probability that Student's t is within ±`t` (Abramowitz and Stegun 26.7.3, 4)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2 == 1
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for n in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine**2 * (n - 1) / n
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
