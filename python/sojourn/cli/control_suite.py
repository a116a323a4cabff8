"""``sojourn rfc9743`` and ``sojourn cc-cases``: evaluate congestion controls."""

from pathlib import Path
from typing import Annotated, Any

from sojourn.arguments import Argument
from sojourn.arguments.common import CHECKS, EXECUTION, OUTPUT, Fresh, Json
from sojourn.cli.options import Change, Everything
from sojourn.cli.plans import Given, command
from sojourn.cli.suite_runs import SuiteRuns
from sojourn.control_suite.api import (
    FAMILIES,
    CcCasesPlan,
    ControlReport,
    Rfc9743Plan,
    criteria,
    family_cases,
)
from sojourn.control_suite.definitions import RFC9743, Edition
from sojourn.control_suite.page import comparisons
from sojourn.presentation.model import Table, text_table
from sojourn.presentation.terminal import print_note, print_table
from sojourn.scenario.paths import assignment
from sojourn.suites.page import results

OUT = Path("results/rfc9743")
CASES_OUT = Path("results/cc-cases")
Listed = Annotated[
    bool,
    Argument(help="List what is tested without running it.", option="--list", heading=EXECUTION),
]
Out = Annotated[
    Path,
    Argument(
        help="Directory for the reports, one HTML file per control.",
        metavar="DIR",
        heading=OUTPUT,
    ),
]
Check = Annotated[
    bool,
    Argument(
        help="Exit with code 1 if a criterion that runs test is not met or undecided.",
        heading=CHECKS,
        rare=True,
    ),
]


@command(Rfc9743Plan)
def rfc9743(
    given: Given[Rfc9743Plan],
    *,
    change: Change = (),
    fresh: Fresh = False,
    listed: Listed = False,
    out: Out = OUT,
    json: Json = False,
    everything: Everything = False,
    check: Check = False,
) -> int:
    """Evaluate congestion controls by the criteria of RFC 9743 (BCP 133)."""
    if listed:
        _list(RFC9743)
        return 0
    plan = given.plan()
    planned = criteria(plan, dict(assignment(text) for text in change))
    run = SuiteRuns(planned.runs, jobs=plan.jobs, fresh=fresh)
    reports = planned.reports(run)
    return run.execute(
        reports, _show, _document, out, json=json, everything=everything, check=check
    )


@command(CcCasesPlan)
def cc_cases(
    given: Given[CcCasesPlan],
    *,
    change: Change = (),
    fresh: Fresh = False,
    listed: Listed = False,
    out: Out = CASES_OUT,
    json: Json = False,
    everything: Everything = False,
    check: Check = False,
) -> int:
    """Run the test cases of BBR's draft or of Accurate ECN on congestion controls."""
    plan = given.plan()
    if listed:
        _list(FAMILIES[plan.family][0])
        return 0
    planned = family_cases(plan, dict(assignment(text) for text in change))
    run = SuiteRuns(planned.runs, jobs=plan.jobs, fresh=fresh)
    reports = planned.reports(run)
    return run.execute(
        reports, _show, _document, out, json=json, everything=everything, check=check
    )


def _list(edition: Edition) -> None:
    rows = [
        [number, one.title, one.level, one.how or one.not_testable or one.not_applicable]
        for number, one in edition.criteria.items()
    ]
    head = [edition.argument, "title", "level", "runs"]
    print_table(text_table(head, rows, f"{edition.noun}: {edition.name}"))


def _show(report: ControlReport, *, everything: bool) -> None:
    """Print how many criteria are met, and what decided on those that are not."""
    found = report.evaluation
    print_note(report.summary)
    shown = [one for one in found.outcomes if one.verdict in {"fail", "undecided"}]
    if shown:
        rows = []
        for one in shown:
            decided = one.deciding
            what = "" if decided is None else f"{decided.check.why} ({decided.case})"
            numbers = "" if decided is None else decided.numbers
            title = f"{one.number} {one.criterion.title}"
            rows.append([title, one.verdict, what, numbers, one.why])
        head = [found.edition.noun, "verdict", "decisive comparison", "measured", "reason"]
        print_table(text_table(head, rows, "not met or undecided"))
    if not everything:
        print_note("--all and the report have all comparisons and measurements")
        return
    for outcome in found.outcomes:
        title = f"{outcome.number} {outcome.criterion.title}: {outcome.verdict}"
        if outcome.judged and isinstance(table := comparisons(outcome.judged), Table):
            print_table(Table(table.columns, table.rows, title, words=len(table.columns)))
        if outcome.measurements:
            print_table(results(outcome.measurements, f"{report.control}: {outcome.number}"))


def _document(report: ControlReport) -> dict[str, Any]:
    return {
        "control": report.control,
        "summary": report.summary,
        "verdicts": report.verdicts.to_dicts(),
        "comparisons": report.comparisons.to_dicts(),
        "runs": report.runs.to_dicts(),
    }
