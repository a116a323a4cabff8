"""Runs the criteria of a document for one control: metrics, judged comparisons and verdicts."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from sojourn.control_suite.definitions import CONTROL_METRICS, Check, Criterion, Edition
from sojourn.control_suite.measuring import measured
from sojourn.control_suite.topology import ControlCase, ControlUnderTest, Form
from sojourn.expectations.judging import Judgement, difference
from sojourn.presentation.figure import Figure
from sojourn.presentation.model import Markup
from sojourn.result import Result
from sojourn.suites.case import Runner
from sojourn.suites.measurement import Measurement, Verdict, judged, validity

Drawn = Callable[[Result, Measurement], list[Figure | Markup]]
SIGNS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on a comparison in one case; `judgement` is the one that decided."""

    check: Check
    case: str
    verdict: Verdict
    judgement: Judgement
    standard: str = ""

    @property
    def numbers(self) -> str:
        """What was measured, what was required, and the difference with its interval."""
        one = self.judgement
        if one.measured is None or one.required is None:
            return one.reason
        sign = SIGNS[one.expectation.sides[1]]
        unit = self.check.unit
        beside = f" (from {self.standard})" if self.standard else ""
        text = f"{_amount(one.measured, unit)}, bound {sign} {_amount(one.required, unit)}{beside}"
        of_difference = "percentage points" if unit == "%" else unit
        return f"{text}, difference {difference(one)} {of_difference}".rstrip()

    @property
    def reason(self) -> str:
        """Why the comparison does not pass; empty if it does."""
        one = self.judgement
        if self.verdict == "pass":
            return ""
        if self.verdict == "undecided" or one.low is None:
            return one.reason
        side = "below" if one.expectation.sides[1].startswith(">") else "above"
        return f"the 95 % interval of the difference is {side} 0"

    @property
    def margin(self) -> float | None:
        """How many times better than required; less than 1 is worse. None without numbers."""
        one = self.judgement
        if one.measured is None or one.required is None:
            return None
        high = one.expectation.sides[1].startswith(">")
        over, under = (one.measured, one.required) if high else (one.required, one.measured)
        if over <= 0.0 and under <= 0.0:
            return 1.0
        return math.inf if under <= 0.0 else over / under


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was found on a criterion."""

    number: str
    criterion: Criterion
    verdict: Verdict
    reason: str = ""
    judged: tuple[Judged, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    figures: tuple[Figure | Markup, ...] = ()

    @property
    def why(self) -> str:
        """Why no run decides, or why the criterion is not met or undecided; empty if it is met."""
        decided = self.deciding
        return self.reason if decided is None else decided.reason

    @property
    def deciding(self) -> Judged | None:
        """The comparison that decided: of those with the verdict, the one with the least margin."""
        of = [one for one in self.judged if one.verdict == self.verdict]
        return min(of, key=_margin, default=None)


def _margin(one: Judged) -> float:
    return -1.0 if one.margin is None else one.margin


def _amount(value: float, unit: str) -> str:
    """Write a value with its unit, in the singular if the value is 1."""
    text = f"{value:.3g}"
    if text == "1":
        unit = re.sub(r"^(RTT|packet)s\b", r"\1", unit)
    return f"{text} {unit}".rstrip()


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """The results of a document's criteria for one control."""

    edition: Edition
    tested: ControlUnderTest
    form: Form
    outcomes: list[Outcome] = field(default_factory=list)

    def counted(self) -> dict[str, int]:
        """Count the criteria with each verdict."""
        verdicts = [one.verdict for one in self.outcomes]
        return {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}

    @property
    def is_selection(self) -> bool:
        """Whether the user selected some of the criteria."""
        return len(self.outcomes) < len(self.edition.criteria)

    @property
    def checked(self) -> Iterator[tuple[str, Judged]]:
        """All judged comparisons, with the number of the criterion."""
        for outcome in self.outcomes:
            for one in outcome.judged:
                yield outcome.number, one

    def runs(self) -> pl.DataFrame:
        """Return the metrics of every run, with control, number and case."""
        frames = [
            one.runs.select(
                pl.lit(self.tested.name).alias("control"),
                pl.lit(outcome.number).alias("number"),
                pl.lit(one.case.name).alias("case"),
                *(pl.col(name) for name in one.runs.columns),
            )
            for outcome in self.outcomes
            for one in outcome.measurements
        ]
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def evaluate(
    edition: Edition,
    tested: ControlUnderTest,
    form: Form,
    numbers: Sequence[str],
    built: Mapping[str, Sequence[ControlCase]],
    *,
    runner: Runner,
    drawn: Drawn | None = None,
) -> Evaluation:
    """Run the cases of criteria and decide on each of them."""
    found = Evaluation(edition=edition, tested=tested, form=form)
    for number in numbers:
        criterion = edition.criteria[number]
        if number in built:
            outcome = _outcome(number, criterion, tested, _run(built[number], runner, drawn))
        else:
            outcome = _not_run(number, criterion, tested)
        found.outcomes.append(outcome)
    return found


def _not_run(number: str, criterion: Criterion, tested: ControlUnderTest) -> Outcome:
    """Say why no run decides: what does not apply to a control without signals may be testable."""
    applies = not criterion.not_applicable or (tested.needs_signals and criterion.not_testable)
    verdict: Verdict = "not testable here" if applies else "not applicable"
    reason = criterion.not_testable if applies else criterion.not_applicable
    return Outcome(number=number, criterion=criterion, verdict=verdict, reason=reason)


def _run(
    built: Sequence[ControlCase], runner: Runner, drawn: Drawn | None
) -> list[tuple[Measurement, list[Figure | Markup]]]:
    """Run cases, and reduce their results to metrics and figures."""
    found = []
    for case in built:
        result = runner(case.scenario)
        one = Measurement(
            case=case,
            runs=measured(result, case),
            validity=validity(result),
            metrics=CONTROL_METRICS,
        )
        found.append((one, [] if drawn is None else drawn(result, one)))
    return found


def _outcome(
    number: str,
    criterion: Criterion,
    tested: ControlUnderTest,
    found: Sequence[tuple[Measurement, list[Figure | Markup]]],
) -> Outcome:
    compared = [
        _judged(check, one, tested)
        for one, _ in found
        for check in criterion.checks
        if check.cases in one.case.name
    ]
    return Outcome(
        number=number,
        criterion=criterion,
        verdict=together([one.verdict for one in compared]),
        judged=tuple(compared),
        measurements=tuple(one for one, _ in found),
        figures=tuple(figure for _, figures in found for figure in figures),
    )


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Combine verdicts: one failure fails, else one undecided leaves it undecided.

    Examples
    --------
    >>> together(["pass", "undecided"]), together(["fail", "undecided"]), together(["pass"])
    ('undecided', 'fail', 'pass')
    """
    for verdict in ("fail", "undecided"):
        if verdict in verdicts:
            return verdict
    return "pass"


def _judged(check: Check, measurement: Measurement, tested: ControlUnderTest) -> Judged:
    """Judge a comparison; against standard controls, the most favourable one decides."""
    standards = tested.standards if check.is_relative else ("",)
    found = []
    for standard in standards:
        text = check.that.replace("{standard}", standard).replace("{tested}", tested.name)
        (one,) = judged(text, measurement.runs, arms=[tested.name])
        found.append(
            Judged(
                check=check,
                case=measurement.case.name,
                verdict=one.verdict,
                judgement=one,
                standard=standard,
            )
        )
    order = ("pass", "undecided", "fail")
    return min(found, key=lambda one: (order.index(one.verdict), -_margin(one)))
