"""The scenarios of RFC 7928 by section, run for one queue: metrics, verdicts, report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import polars as pl

from sojourn.arguments import ArgumentError
from sojourn.execute.run import run as run_scenario
from sojourn.expectations.expectation import expectation
from sojourn.expectations.judging import Measured, judge
from sojourn.presentation.figure import Figure
from sojourn.presentation.model import Markup
from sojourn.result import Result, metrics
from sojourn.rfc7928_suite.definitions import (
    DEFINITIONS,
    DISCUSSIONS,
    METRICS,
    Definition,
    Direction,
)
from sojourn.rfc7928_suite.measuring import WHOLE, acted, measure
from sojourn.rfc7928_suite.scenarios import SCENARIOS
from sojourn.rfc7928_suite.topology import DROP_TAIL, Case, Form, QueueUnderTest
from sojourn.scenario import Scenario

NUMBERS = tuple(
    sorted([*DEFINITIONS, *DISCUSSIONS], key=lambda number: [int(one) for one in number.split(".")])
)


def selected(numbers: Sequence[str] | None) -> list[str]:
    """Select scenarios and discussions; a section stands for all numbers below it.

    Examples
    --------
    >>> selected(["8.2.6", "12"])
    ['8.2.6.1', '8.2.6.2', '12']
    """
    if not numbers:
        return list(NUMBERS)
    wanted = set()
    for number in numbers:
        found = [one for one in NUMBERS if f"{one}.".startswith(f"{number}.")]
        if not found:
            expected = ", ".join(NUMBERS)
            raise ArgumentError("section", number, f"unknown; expected one of {expected}")
        wanted |= set(found)
    return [number for number in NUMBERS if number in wanted]


Verdict = Literal["pass", "fail", "undecided", "not applicable"]
Runner = Callable[[Scenario], Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The verdict on a direction that the RFC states, in one case."""

    direction: Direction
    case: str
    verdict: Verdict
    text: str
    measured: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of a case, reduced to metrics."""

    case: Case
    runs: pl.DataFrame
    checked: tuple[Checked, ...]
    specs: dict[str, str]
    validity: tuple[str, tuple[str, ...]]

    @property
    def arms(self) -> list[str]:
        """The arms, drop-tail first."""
        return self.case.scenario.checked.arms

    @property
    def groups(self) -> list[str]:
        """All traffic, the classes and the phases."""
        return self.runs["group"].unique(maintain_order=True).to_list()

    def summary(self) -> pl.DataFrame:
        """Average every metric of every group over the runs of each arm."""
        return metrics.summary(self.runs, METRICS)

    def difference(self) -> pl.DataFrame:
        """Average the paired difference of the queue from drop-tail."""
        return metrics.difference(self.runs, METRICS, DROP_TAIL, self.arms[1])


@dataclass(slots=True, kw_only=True)
class Characterisation:
    """The results of the suite for one queue."""

    tested: QueueUnderTest
    form: Form
    measurements: dict[str, list[Measurement]] = field(default_factory=dict)
    figures: dict[str, list[Figure | Markup]] = field(default_factory=dict)

    @property
    def checked(self) -> Iterator[tuple[str, Checked]]:
        """The verdicts, with the number of the scenario."""
        for number, found in self.measurements.items():
            for one in found:
                for verdict in one.checked:
                    yield number, verdict

    def runs(self) -> pl.DataFrame:
        """Return the metrics of every run, with queue, number and case."""
        frames = [
            one.runs.select(
                pl.lit(self.tested.name).alias("queue"),
                pl.lit(number).alias("number"),
                pl.lit(one.case.name).alias("case"),
                *(pl.col(name) for name in one.runs.columns),
            )
            for number, found in self.measurements.items()
            for one in found
        ]
        return pl.concat(frames) if frames else pl.DataFrame()


def cases(
    tested: QueueUnderTest, form: Form, numbers: Sequence[str], seed: int
) -> dict[str, list[Case]]:
    """Build the cases of all scenarios before the first run."""
    return {
        number: [_seeded(case, seed) for case in SCENARIOS[number](tested, form)]
        for number in numbers
        if number in SCENARIOS
    }


def _seeded(case: Case, seed: int) -> Case:
    return replace(case, scenario=case.scenario.replace(seed=seed))


def characterise(
    tested: QueueUnderTest,
    form: Form,
    built: dict[str, list[Case]],
    *,
    runner: Runner = run_scenario,
    drawn: Callable[[Result, Measurement], list[Figure | Markup]] | None = None,
) -> Characterisation:
    """Run scenarios and compute their metrics."""
    found = Characterisation(tested=tested, form=form)
    for number, several in built.items():
        measurements = found.measurements.setdefault(number, [])
        figures = found.figures.setdefault(number, [])
        for case in several:
            result = runner(case.scenario)
            one = _measurement(DEFINITIONS[number], case, result)
            measurements.append(one)
            if drawn is not None:
                figures += drawn(result, one)
    return found


def _measurement(definition: Definition, case: Case, result: Result) -> Measurement:
    runs = measure(result, case)
    queues = result.links.filter(pl.col("link") == case.bottleneck).unique("arm")
    return Measurement(
        case=case,
        runs=runs,
        checked=tuple(_checked(one, case, result, runs) for one in definition.directions),
        specs=dict(queues.select("arm", "qdisc").iter_rows()),
        validity=(
            result.validity.verdict,
            tuple(finding.text for finding in result.validity.findings),
        ),
    )


def _checked(direction: Direction, case: Case, result: Result, runs: pl.DataFrame) -> Checked:
    queue = case.scenario.checked.arms[1]
    without, marked = case.against or (queue, queue)
    text = direction.expectation.format(queue=queue, tail=DROP_TAIL, without=without, marked=marked)
    needs_marks = direction.signal == "marks"
    if not acted(result, case, marked if needs_marks else queue, marks=needs_marks):
        reason = (
            "the queue marked no packet" if needs_marks else "the AQM dropped or marked nothing"
        )
        return Checked(
            direction=direction,
            case=case.name,
            verdict="not applicable",
            text=text,
            measured=reason,
        )
    measured = Measured(
        runs=runs.filter(pl.col("group") == WHOLE).drop("group"),
        capacities={},
        groups=lambda: [runs],
    )
    (judgement,) = judge([expectation(text)], measured)
    sides = (judgement.measured, judgement.required)
    values = " against ".join("–" if value is None else f"{value:.4g}" for value in sides)
    return Checked(
        direction=direction,
        case=case.name,
        verdict=judgement.verdict,
        text=text,
        measured=f"{values}; {judgement.reason}" if judgement.reason else values,
    )
