"""Objectives of a search: an expression of the metrics of a run and a direction, or a regret."""

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.arguments import ArgumentError, in_argument
from sojourn.expressions import Expression, ExpressionError, Reference, parse
from sojourn.result.estimates import mean_and_interval
from sojourn.result.naming import check_possible, metric_column, unit
from sojourn.scenario import Scenario
from sojourn.scenario.model import check_arm

Numbers = npt.NDArray[np.float64]
Direction = Literal["min", "max"]
_KEYS = ("arm", "replication")
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "log10": np.log10,
    "sqrt": np.sqrt,
}
FUNCTIONS = frozenset(_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Objective:
    """An expression of metrics that should be small or large."""

    direction: Direction
    expression: Expression
    # The argument that gave it, for errors.
    argument: str = "objectives"

    @property
    def text(self) -> str:
        """The objective as text, such as ``min ping_ms_p99``."""
        return f"{self.direction} {self.expression.text}"

    @property
    def sign(self) -> float:
        """The factor that makes smaller values better."""
        return 1.0 if self.direction == "min" else -1.0

    def measured(self, runs: pl.DataFrame) -> dict[int, float] | None:
        """Compute the expression in each run of one arm; None if a run lacks a finite value.

        Runs without a value are no reason to ignore them: they may be the worst ones.
        """
        found = self.values(runs)
        complete = found and all(math.isfinite(value) for value in found.values())
        return found if complete else None

    def values(
        self,
        runs: pl.DataFrame,
        limited: Callable[[str, Numbers], Numbers] = lambda _, values: values,
    ) -> dict[int, float]:
        """Compute the expression in each run of one arm."""
        columns = [name for name in runs.columns if name not in _KEYS]

        def lookup(reference: Reference) -> Numbers:
            column = metric_column(reference.name, columns)
            return limited(column, runs[column].cast(pl.Float64).to_numpy().astype(np.float64))

        text = self.expression.text if self.argument == "metrics" else self.text
        with np.errstate(all="ignore"), in_argument(self.argument, text):
            found = self.expression.value(lookup, _FUNCTIONS)
        numbers = np.broadcast_to(np.asarray(found, dtype=np.float64), runs.height).tolist()
        return dict(zip(runs["replication"].to_list(), numbers, strict=True))


def expression(text: str, links: Sequence[str] | None = None) -> Expression:
    """Read an expression of metrics.

    Examples
    --------
    >>> expression("ping_ms_p99 / 2").references
    (Reference(name='ping_ms_p99', arm=None),)
    """
    found = parse(text, functions=FUNCTIONS, unit_of=lambda one: unit(one.name))
    wrong = next(filter(None, map(_not_a_number, ast.walk(found.tree))), None)
    if wrong is not None:
        problem = f"{wrong}; expected a metric or an expression of metrics"
        raise ExpressionError(text, problem)
    if not found.references:
        raise ExpressionError(text, "no metric; expected one such as ping_ms_p99")
    for reference in found.references:
        if reference.arm is not None:
            problem = f'names the arm "{reference.arm}"; expected metrics without arms'
            raise ExpressionError(text, problem)
        check_possible(reference.name, links)
    return found


def _not_a_number(node: ast.AST) -> str | None:
    """Return what a node is if an expression with it has no number as its value."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return "a comparison"
        case ast.BinOp(left=ast.Constant(value=str())) | ast.BinOp(right=ast.Constant(value=str())):
            return "a text"
        case (
            ast.UnaryOp(operand=ast.Constant(value=str()))
            | ast.Call(args=[ast.Constant(value=str())])
        ):
            return "a text"
    return None


def objective(
    text: str, argument: str = "objectives", links: Sequence[str] | None = None
) -> Objective:
    """Read an objective, the value of an argument or one of its values.

    Examples
    --------
    >>> objective("max goodput_down").direction
    'max'
    """
    direction, _, rest = text.strip().partition(" ")
    directions: tuple[Direction, ...] = ("min", "max")
    for known in directions:
        if direction == known and rest.strip():
            with in_argument(argument, text):
                return Objective(known, expression(rest.strip(), links), argument)
    rule = 'expected min or max and a metric, such as "min ping_ms_p99" or "max goodput_down"'
    raise ArgumentError(argument, text, rule)


def objectives(texts: Sequence[str], links: Sequence[str] | None = None) -> list[Objective]:
    """Read several different objectives; parameters as for :func:`objective`."""
    found = [objective(text, links=links) for text in texts]
    names = [one.text for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ArgumentError("objectives", twice, "given twice; expected each objective once")
    return found


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
