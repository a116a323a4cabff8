"""Regret: how much worse one arm is than another in the same runs."""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from sojourn.arguments import ArgumentError
from sojourn.result.metrics import mean_and_interval
from sojourn.scenario import Scenario
from sojourn.scenario.model import check_arm
from sojourn.search.objectives import Numbers, Objective, objective

# The power of Giessler et al. (1978) and Kleinrock (1979) is throughput by delay; its logarithm
# makes differences ratios.
SCORE = "min log(ping_ms_p99) - log(goodput_down)"

# Limits of the metrics in scores, so that logarithms are finite: a rate is at least FLOOR_MBIT, and
# a time at most CEILING_MS. A run without answered pings counts as one with the highest time.
FLOOR_MBIT = 0.001
CEILING_MS = 60_000.0
# The difference in a run in which the score of one arm is still not finite.
WORST = 1e6

# Ratios from here on are written without decimals.
_WHOLE = 10.0


@dataclass(frozen=True, slots=True)
class Regret:
    """The difference of the scores of two arms in runs with the same seeds."""

    mean: float | None
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Contest:
    """Two arms and the score that compares them."""

    arm: str
    against: str
    score: Objective

    def regret(self, runs: pl.DataFrame) -> Regret:
        """Return the regret in some runs of both arms.

        A run in which only one arm has a score counts: the other arm failed. Its rates count as
        :data:`FLOOR_MBIT`, its times as :data:`CEILING_MS`, and if its score is still not finite,
        the difference counts as :data:`WORST`. Runs in which neither arm has a score do not count.
        """
        own, other = (
            self._scores(runs.filter(pl.col("arm") == arm)) for arm in (self.arm, self.against)
        )
        differences = [
            _difference(own[run][1], other[run][1])
            for run in sorted(own.keys() & other.keys())
            if any(math.isfinite(scores[run][0]) for scores in (own, other))
        ]
        return Regret(*mean_and_interval(differences), len(differences))

    def _scores(self, runs: pl.DataFrame) -> dict[int, tuple[float, float]]:
        """Return the score of each run, smaller is better: as measured, and with limits."""
        measured = self.score.values(runs)
        limits = self.score.values(runs, _limited)
        sign = self.score.sign
        return {run: (sign * measured[run], sign * limits[run]) for run in measured}


def _limited(column: str, values: Numbers) -> Numbers:
    if column.endswith("_mbit_per_s"):
        return np.maximum(np.nan_to_num(values, nan=FLOOR_MBIT), FLOOR_MBIT)
    if "_ms" in column:
        return np.minimum(np.nan_to_num(values, nan=CEILING_MS), CEILING_MS)
    return values


def _difference(own: float, other: float) -> float:
    """Return the difference of two scores; a score that is NaN or infinite is the worst."""
    failed = [not math.isfinite(score) and score != -math.inf for score in (own, other)]
    if failed[0] != failed[1]:
        return WORST if failed[0] else -WORST
    difference = own - other
    if math.isnan(difference):
        return 0.0
    return min(max(difference, -WORST), WORST)


def contest(scenario: Scenario, arm: str, against: str, score: str) -> Contest:
    """Check the arms and the score."""
    for argument, name in (("loser", arm), ("against", against)):
        check_arm(scenario, name, argument)
    if arm == against:
        raise ArgumentError("against", against, "the same arm as {loser}; expected another one")
    return Contest(arm, against, objective(score, "score"))


def times(regret: float) -> str:
    """Write the ratio of the powers of the arms for a regret in :data:`SCORE`.

    Examples
    --------
    >>> times(0.6931), times(5.8)
    ('2.0', '330')
    """
    ratio = math.exp(regret)
    return f"{ratio:.1f}" if ratio < _WHOLE else f"{float(f'{ratio:.2g}'):.0f}"
