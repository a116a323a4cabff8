"""``sojourn rfc7928``: characterise queues by the scenarios of RFC 7928."""

from pathlib import Path
from typing import Annotated

from sojourn.arguments import Argument
from sojourn.arguments.common import CHECKS, EXECUTION, OUTPUT, Fresh, Json
from sojourn.cli import session
from sojourn.cli.options import Change, Everything
from sojourn.cli.plans import Given, command
from sojourn.cli.suite_runs import SuiteRuns
from sojourn.presentation.model import text_table
from sojourn.presentation.terminal import print_note, print_table
from sojourn.queues.base import texts
from sojourn.result import formatting
from sojourn.rfc7928_suite.api import (
    Rfc7928Plan,
    Rfc7928Report,
    scenarios,
)
from sojourn.rfc7928_suite.definitions import DEFINITIONS, DISCUSSIONS
from sojourn.rfc7928_suite.suite import NUMBERS
from sojourn.scenario.paths import assignment
from sojourn.suites.page import results

OUT = Path("results/rfc7928")


@command(Rfc7928Plan)
def rfc7928(
    given: Given[Rfc7928Plan],
    *,
    change: Change = (),
    fresh: Fresh = False,
    listed: Annotated[
        bool,
        Argument(
            help="List the scenarios without running them.", option="--list", heading=EXECUTION
        ),
    ] = False,
    out: Annotated[
        Path,
        Argument(
            help="Directory for the reports, one HTML file per queue.",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = OUT,
    json: Json = False,
    everything: Everything = False,
    check: Annotated[
        bool,
        Argument(
            help="Exit with code 1 unless the runs confirm all directions that the RFC states.",
            heading=CHECKS,
            rare=True,
        ),
    ] = False,
) -> int:
    """Characterise queues with the scenarios of RFC 7928, compared with drop-tail."""
    if listed:
        _list()
        return 0
    plan = given.plan()
    session.warn_of_bytes(*texts(plan.queues), *change)
    session.note_queues(*texts(plan.queues))
    planned = scenarios(plan, dict(assignment(text) for text in change))
    run = SuiteRuns(planned.runs, jobs=plan.jobs, fresh=fresh)
    reports = planned.reports(run)
    return run.execute(
        reports, _show, _document, out, json=json, everything=everything, check=check
    )


def _list() -> None:
    rows = [
        [number, DEFINITIONS[number].title, DEFINITIONS[number].weight or "–"]
        if number in DEFINITIONS
        else [number, DISCUSSIONS[number].title, "discussion"]
        for number in NUMBERS
    ]
    print_table(text_table(["number", "title", "section 13"], rows, "scenarios of RFC 7928"))


def _show(report: Rfc7928Report, *, everything: bool) -> None:
    """Print how many directions the runs confirm and which they do not; all tables on request."""
    checked = list(report.characterisation.checked)
    words = {"pass": "confirmed", "fail": "not confirmed", "undecided": "undecided"}
    verdicts = [f"{one.verdict}" for _, one in checked]
    counted = ", ".join(f"{verdicts.count(verdict)} {word}" for verdict, word in words.items())
    directions = formatting.counted(len(checked), "direction")
    print_note(f"{report.queue}: RFC 7928 states {directions}: {counted}.")
    shown = [(number, one) for number, one in checked if everything or one.verdict != "pass"]
    if shown:
        rows = [
            [f"{number} {one.case}".strip(), one.verdict, one.text, one.measured]
            for number, one in shown
        ]
        head = ["scenario", "verdict", "comparison", "measured"]
        print_table(text_table(head, rows, "directions" if everything else "not confirmed"))
    if not everything:
        print_note("--all and the report have the measurements of all scenarios")
        return
    for number, found in report.characterisation.measurements.items():
        print_table(results(found, f"{report.queue}: {number} {DEFINITIONS[number].title}"))
    for one in report.discussions:
        title = f"{report.queue}: {one.number} {DISCUSSIONS[one.number].title}"
        print_table(text_table(one.head, one.rows, title))


def _document(report: Rfc7928Report) -> dict[str, object]:
    return {
        "queue": report.queue,
        "runs": report.runs.to_dicts(),
        "verdicts": report.verdicts.to_dicts(),
        "discussions": [
            {"number": one.number, "head": one.head, "rows": one.rows} for one in report.discussions
        ],
    }
