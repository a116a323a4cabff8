"""Regret: how much worse one arm is than another in the same runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sojourn import _core
from sojourn.result.metrics import mean_and_interval
from sojourn.search.objectives import Objective, objective

# The power of Giessler et al. (1978) and Kleinrock (1979) is throughput by delay; its logarithm
# makes differences ratios.
SCORE = "min log(ping_ms_p99) - log(goodput_down)"

# Ratios from here on are written without decimals.
_WHOLE = 10.0


@dataclass(frozen=True, slots=True)
class Regret:
    """The difference of the scores of two arms in runs with the same seeds.

    Parameters
    ----------
    mean, low, high
        The mean difference with its 95 % bootstrap interval; positive if the arm is worse; None
        if it was not measured.
    runs
        Number of pairs of runs.
    """

    mean: float | None
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Contest:
    """Two arms and the score that compares them.

    Parameters
    ----------
    arm, against
        The names of the arms.
    score
        The score.
    """

    arm: str
    against: str
    score: Objective

    def regret(self, runs: pl.DataFrame) -> Regret:
        """Return the regret in some runs of both arms.

        Raises
        ------
        ScenarioError
            The runs do not have a metric of the score.
        """
        place = f'--score "{self.score.text}"'
        own, other = (
            self.score.values(runs.filter(pl.col("arm") == arm), place)
            for arm in (self.arm, self.against)
        )
        shared = sorted(own.keys() & other.keys())
        differences = [self.score.sign * (own[run] - other[run]) for run in shared]
        return Regret(*mean_and_interval(differences), len(differences))


def contest(arms: Sequence[str], arm: str, against: str, score: str) -> Contest:
    """Check the arms and the score.

    Raises
    ------
    ScenarioError
        An arm is unknown, both are the same, or the score is not valid.
    """
    for option, name in (("--arm", arm), ("--against", against)):
        if name not in arms:
            message = f"{option} {name}: unknown arm; expected one of {', '.join(arms)}"
            raise _core.ScenarioError(message)
    if arm == against:
        message = f"--against {against}: the same arm as --arm; expected another one"
        raise _core.ScenarioError(message)
    return Contest(arm, against, objective(score, "--score"))


def times(regret: float) -> str:
    """Write the ratio of the powers of the arms for a regret in :data:`SCORE`.

    Examples
    --------
    >>> times(0.6931), times(5.8)
    ('2.0', '330')
    """
    ratio = math.exp(regret)
    return f"{ratio:.1f}" if ratio < _WHOLE else f"{float(f'{ratio:.2g}'):.0f}"
