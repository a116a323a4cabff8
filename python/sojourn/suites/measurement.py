"""The result of a case, reduced to metrics, and the comparisons of them with a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from sojourn.expectations.expectation import expectation
from sojourn.expectations.judging import Judgement, Measured, judge
from sojourn.result import Result, metrics
from sojourn.result.catalogue import Metric
from sojourn.suites.case import Case
from sojourn.suites.definitions import METRICS
from sojourn.suites.measuring import WHOLE

Verdict = Literal["pass", "fail", "undecided", "not applicable", "not testable here"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of a case, reduced to metrics."""

    case: Case
    runs: pl.DataFrame
    validity: tuple[str, tuple[str, ...]]
    metrics: Sequence[Metric] = METRICS

    @property
    def arms(self) -> list[str]:
        """The arms in their order."""
        return self.case.scenario.checked.arms

    @property
    def groups(self) -> list[str]:
        """All traffic, the classes and the phases."""
        return self.runs["group"].unique(maintain_order=True).to_list()

    def summary(self) -> pl.DataFrame:
        """Average every metric of every group over the runs of each arm."""
        return metrics.summary(self.runs, self.metrics)


def validity(result: Result) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on the validity of a result, and what limits it."""
    found = result.validity
    return found.verdict, tuple(finding.text for finding in found.findings)


def judged(text: str, runs: pl.DataFrame, *, arms: Sequence[str] | None = None) -> list[Judgement]:
    """Judge a comparison by the metrics of all traffic, of classes and of phases."""
    measured = Measured(
        runs=runs.filter(pl.col("group") == WHOLE).drop("group"),
        capacities={},
        groups=lambda: [runs],
    )
    return judge([expectation(text, arms=arms)], measured)


def values(one: Judgement) -> str:
    """Write both sides of a comparison, and why it was not decided."""
    sides = (one.measured, one.required)
    found = " against ".join("–" if value is None else f"{value:.4g}" for value in sides)
    return f"{found}; {one.reason}" if one.reason else found
