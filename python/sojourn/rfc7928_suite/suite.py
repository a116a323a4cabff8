"""The scenarios of RFC 7928 by section, run for one queue: metrics, verdicts, report."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import polars as pl

from sojourn.execute.run import run as run_scenario
from sojourn.presentation.figure import Figure
from sojourn.presentation.model import Markup
from sojourn.result import Result, metrics
from sojourn.rfc7928_suite.definitions import (
    DEFINITIONS,
    DISCUSSIONS,
    Definition,
    Direction,
)
from sojourn.rfc7928_suite.topology import DROP_TAIL, Form, QueueUnderTest
from sojourn.suites import measurement
from sojourn.suites.case import Case, Runner
from sojourn.suites.definitions import METRICS
from sojourn.suites.measurement import Verdict
from sojourn.suites.measuring import acted, measure
from sojourn.suites.selection import in_order

NUMBERS = in_order([*DEFINITIONS, *DISCUSSIONS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The verdict on a direction that the RFC states, in one case."""

    direction: Direction
    case: str
    verdict: Verdict
    text: str
    measured: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(measurement.Measurement):
    """The result of a case, with the verdicts on it and the queues."""

    checked: tuple[Checked, ...]
    specs: dict[str, str]

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
        validity=measurement.validity(result),
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
    (judgement,) = measurement.judged(text, runs)
    return Checked(
        direction=direction,
        case=case.name,
        verdict=judgement.verdict,
        text=text,
        measured=measurement.values(judgement),
    )
