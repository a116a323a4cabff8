"""Objectives of a search: an expression of the metrics of a run, and a direction."""

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
from sojourn.result.naming import check_possible, metric_column

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
    found = parse(text, functions=FUNCTIONS, units=False)
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
