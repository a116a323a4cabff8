"""The suites on congestion controls from Python: RFC 9743, cases of BBR's draft and of AccECN."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import polars as pl

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, in_argument, takes
from sojourn.arguments.common import SCENARIO, Full, Jobs, OwnSeed
from sojourn.control_suite import accecn_cases, bbr_cases, page
from sojourn.control_suite.definitions import ACCECN_CASES, BBR_CASES, RFC9743, Edition
from sojourn.control_suite.evaluation import Evaluation, evaluate
from sojourn.control_suite.scenarios import SCENARIOS
from sojourn.control_suite.topology import (
    CASES,
    FULL,
    QUICK,
    STANDARDS,
    Builders,
    ControlUnderTest,
    Form,
)
from sojourn.execute.run import run as run_scenario
from sojourn.scenario.paths import Value
from sojourn.suites.case import Prepared, Runner, cases
from sojourn.suites.page import file_name, saved
from sojourn.suites.selection import selected

_CHECKED = {
    "control": pl.String,
    "number": pl.String,
    "title": pl.String,
    "level": pl.String,
    "verdict": pl.String,
    "case": pl.String,
    "comparison": pl.String,
    "expression": pl.String,
    "standard": pl.String,
    "measured": pl.Float64,
    "bound": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "unit": pl.String,
    "reason": pl.String,
}
_VERDICTS = {
    "control": pl.String,
    "number": pl.String,
    "title": pl.String,
    "level": pl.String,
    "verdict": pl.String,
    "comparison": pl.String,
    "measured": pl.String,
    "reason": pl.String,
}


def prepared(
    edition: Edition,
    builders: Builders,
    controls: str | Sequence[str],
    numbers: str | Sequence[str] | None,
    form: Form,
    *,
    against: Sequence[str] = STANDARDS,
    seed: int = 1,
    changes: Mapping[str, Value] | None = None,
) -> "Prepared[ControlReport]":
    """Build and check the cases of controls; `changes` apply to each of them."""
    chosen = selected(numbers, list(edition.criteria), edition.argument)
    texts = [controls] if isinstance(controls, str) else controls
    given = [" ".join(control.split()) for control in texts]
    if not given:
        raise ArgumentError("controls", rule="expected at least one control, such as cubic")
    tested, built = {}, {}
    for control in given:
        if control in tested:
            raise ArgumentError("controls", control, "given twice; expected each control once")
        with in_argument("controls", control):
            _core.parse_cc(control)
        with in_argument("against", ",".join(against)):
            tested[control] = ControlUnderTest(control, tuple(against))
        built[control] = cases(builders, tested[control], form, chosen, seed=seed, changes=changes)

    def report_on(name: str, runner: Runner) -> ControlReport:
        return ControlReport(
            evaluation=evaluate(
                edition, tested[name], form, chosen, built[name], runner=runner, drawn=page.drawn
            )
        )

    return Prepared(cases=built, report_on=report_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlReport:
    """What the runs of a document's criteria show for one congestion control.

    Parameters
    ----------
    evaluation
        Metrics, verdicts and figures.
    """

    evaluation: Evaluation

    @property
    def control(self) -> str:
        """The congestion control."""
        return self.evaluation.tested.name

    @property
    def summary(self) -> str:
        """One sentence: how many criteria are met."""
        return page.summary(self.evaluation)

    @property
    def runs(self) -> pl.DataFrame:
        """One row per run and group of traffic, with its metrics."""
        return self.evaluation.runs()

    @property
    def verdicts(self) -> pl.DataFrame:
        """One row per criterion: its verdict and the comparison that decided."""
        rows = []
        for one in self.evaluation.outcomes:
            decided = one.deciding
            why = "" if decided is None else f"{decided.check.why}: {decided.case}"
            numbers = "" if decided is None else decided.numbers
            criterion = one.criterion
            rows.append(
                (
                    self.control,
                    one.number,
                    criterion.title,
                    criterion.level,
                    one.verdict,
                    why,
                    numbers,
                    one.why,
                )
            )
        return pl.DataFrame(rows, schema=_VERDICTS, orient="row")

    @property
    def comparisons(self) -> pl.DataFrame:
        """One row per comparison and case, with the interval that decided (`low` to `high`)."""
        rows = []
        for one in self.evaluation.outcomes:
            for found in one.judged:
                judged = found.judgement
                rows.append(
                    (
                        self.control,
                        one.number,
                        one.criterion.title,
                        one.criterion.level,
                        found.verdict,
                        found.case,
                        found.check.why,
                        judged.expectation.text,
                        found.standard or None,
                        judged.measured,
                        judged.required,
                        judged.low,
                        judged.high,
                        found.check.unit,
                        found.reason,
                    )
                )
        return pl.DataFrame(rows, schema=_CHECKED, orient="row")

    @property
    def file_name(self) -> str:
        """File name of the report."""
        return file_name(f"{self.control} {self.evaluation.edition.suffix}".rstrip())

    def save(self, folder: str | Path) -> Path:
        """Write the report as HTML into a directory, under the name of the control.

        Parameters
        ----------
        folder
            The directory, created if needed.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        ResultError
            The file cannot be written, or exists and is not a report.
        """
        return saved(folder, self.file_name, lambda build: page.html(self.evaluation, build))


Controls = Annotated[
    str | Sequence[str],
    Argument(
        help="Congestion controls, quoted if they have parameters, such as 'cubic beta 0.8'.",
        more="Of an object such as ``Cubic(beta=0.8)``, give its `spec`.",
        expected="a list of congestion controls",
        option="CONTROL",
        completion="controls",
    ),
]
Progress = Annotated[
    Callable[[str], object] | None,
    Argument(help="Called with the name of each control before its runs.", option=""),
]


@dataclass(frozen=True)
class Rfc9743Plan(Plan):
    """The arguments of the evaluation by RFC 9743."""

    controls: Controls
    _: KW_ONLY
    against: Annotated[
        str | Sequence[str],
        Argument(
            help="Standard controls to compare with, separated by commas; also the other traffic.",
            metavar="CONTROLS",
            heading=SCENARIO,
            completion="controls",
        ),
    ] = STANDARDS
    section: Annotated[
        str | Sequence[str] | None,
        Argument(
            help="Run only this criterion, such as 5.1.3, or all criteria of a section, such as 5.",
            unset="all",
            metavar="SECTION",
            heading=SCENARIO,
        ),
    ] = None
    full: Full = False
    seed: OwnSeed = 1
    jobs: Jobs = None
    progress: Progress = None

    @property
    def standards(self) -> list[str]:
        """The standard controls, one by one."""
        given = [self.against] if isinstance(self.against, str) else self.against
        return [word.strip() for text in given for word in str(text).split(",") if word.strip()]


def criteria(
    plan: Rfc9743Plan, changes: Mapping[str, Value] | None = None
) -> Prepared[ControlReport]:
    """Build and check the cases of RFC 9743; `changes` apply to each of them."""
    return prepared(
        RFC9743,
        SCENARIOS,
        plan.controls,
        plan.section,
        FULL if plan.full else QUICK,
        against=plan.standards,
        seed=plan.seed,
        changes=changes,
    )


@takes(Rfc9743Plan)
def rfc9743(plan: Rfc9743Plan) -> list[ControlReport]:
    """Evaluate congestion controls by the criteria of RFC 9743 (BCP 133), sections 5 to 7.

    Returns
    -------
    list of ControlReport
        One report per control.

    Raises
    ------
    ScenarioError
        A control or a section is unknown.

    Examples
    --------
    >>> (report,) = rfc9743("cubic", section="5.3")
    >>> report.verdicts["verdict"].to_list()[0]
    'not testable here'
    """
    return list(criteria(plan).reports(partial(run_scenario, jobs=plan.jobs), plan.progress))


Family = Literal["bbr", "accecn"]
# The document of each family, and its cases.
FAMILIES: Mapping[Family, tuple[Edition, Builders]] = {
    "bbr": (BBR_CASES, bbr_cases.BUILDERS),
    "accecn": (ACCECN_CASES, accecn_cases.BUILDERS),
}


@dataclass(frozen=True)
class CcCasesPlan(Plan):
    """The arguments of the test cases of BBR's draft and of Accurate ECN."""

    controls: Controls
    _: KW_ONLY
    family: Annotated[
        Family,
        Argument(
            help="Cases to run: bbr (draft-ietf-ccwg-bbr-06, appendix A) or accecn (RFC 9768).",
            metavar="FAMILY",
            heading=SCENARIO,
        ),
    ] = "bbr"
    case: Annotated[
        str | Sequence[str] | None,
        Argument(
            help="Run only this case, such as A.10 or 3.1.2.",
            unset="all",
            metavar="CASE",
            heading=SCENARIO,
        ),
    ] = None
    seed: OwnSeed = 1
    jobs: Jobs = None
    progress: Progress = None


def family_cases(
    plan: CcCasesPlan, changes: Mapping[str, Value] | None = None
) -> Prepared[ControlReport]:
    """Build and check the test cases of a family; `changes` apply to each of them."""
    return prepared(
        *FAMILIES[plan.family],
        plan.controls,
        plan.case,
        CASES,
        against=(),
        seed=plan.seed,
        changes=changes,
    )


@takes(CcCasesPlan)
def cc_cases(plan: CcCasesPlan) -> list[ControlReport]:
    """Run the example test cases of BBR's draft, or cases of Accurate ECN, on congestion controls.

    Those of draft-ietf-ccwg-bbr-06, appendix A, describe BBR version 3, seen from outside the
    sender; other controls may be tried. Those of RFC 9768 describe negotiation and feedback with
    peers and paths of several kinds, whatever the control.

    Returns
    -------
    list of ControlReport
        One report per control.

    Raises
    ------
    ScenarioError
        A control or a case is unknown.

    Examples
    --------
    >>> (report,) = cc_cases("bbr3", case="A.1")
    >>> report.verdicts["verdict"].to_list()
    ['pass']
    """
    return list(family_cases(plan).reports(partial(run_scenario, jobs=plan.jobs), plan.progress))
