"""RFC 7928 from Python: characterise queues and write their reports."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, common, in_argument, takes
from sojourn.arguments.common import SCENARIO, Full, Jobs, OwnSeed
from sojourn.execute.run import run as run_scenario
from sojourn.queues.base import Queues, texts
from sojourn.queues.queue_file import named
from sojourn.rfc7928_suite import page
from sojourn.rfc7928_suite.definitions import DISCUSSIONS
from sojourn.rfc7928_suite.discussion import Discussion, discuss
from sojourn.rfc7928_suite.scenarios import SCENARIOS
from sojourn.rfc7928_suite.suite import NUMBERS, Characterisation, characterise
from sojourn.rfc7928_suite.topology import FULL, QUICK, Form, QueueUnderTest
from sojourn.scenario.paths import Value
from sojourn.suites.case import Prepared, Runner, cases
from sojourn.suites.page import drawn, file_name, saved
from sojourn.suites.selection import selected

# Stands for all queues of the catalogue.
ALL = "all"
_CHECKED = {
    "queue": pl.String,
    "number": pl.String,
    "case": pl.String,
    "verdict": pl.String,
    "comparison": pl.String,
    "measured": pl.String,
    "quotation": pl.String,
    "section": pl.String,
}


def prepared(
    queues: Sequence[str],
    numbers: str | Sequence[str] | None,
    form: Form,
    *,
    seed: int = 1,
    changes: Mapping[str, Value] | None = None,
) -> "Prepared[Rfc7928Report]":
    """Build and check the scenarios of queues; `changes` apply to each of them."""
    chosen = selected(numbers, NUMBERS)
    given = [" ".join(queue.split()) for queue in queues]
    for queue in given:
        if given.count(queue) > 1:
            raise ArgumentError("queues", queue, "given twice; expected each queue once")
    tested = {}
    for name, queue in named(given).items():
        with in_argument("queues", queue):
            tested[name] = QueueUnderTest(queue, name)
    if not tested:
        raise ArgumentError("queues", rule="expected at least one queue, such as codel")
    built = {
        name: cases(SCENARIOS, one, form, chosen, seed=seed, changes=changes)
        for name, one in tested.items()
    }

    def report_on(name: str, runner: Runner) -> Rfc7928Report:
        one = tested[name]
        found = characterise(one, form, built[name], runner=runner, drawn=drawn)
        tables = tuple(discuss(one, number) for number in chosen if number in DISCUSSIONS)
        return Rfc7928Report(characterisation=found, discussions=tables)

    return Prepared(cases=built, report_on=report_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rfc7928Report:
    """The results of the suite of RFC 7928 for one queue.

    Parameters
    ----------
    characterisation
        Metrics, verdicts and figures.
    discussions
        The tables of the sections that ask for a discussion.
    """

    characterisation: Characterisation
    discussions: tuple[Discussion, ...]

    @property
    def queue(self) -> str:
        """The queue in the syntax of ``tc``, or the name of its class."""
        return self.characterisation.tested.name

    @property
    def runs(self) -> pl.DataFrame:
        """One row per run and group of traffic, with the metrics of section 2 of the RFC."""
        return self.characterisation.runs()

    @property
    def verdicts(self) -> pl.DataFrame:
        """One row per direction that the RFC states: the verdict and the quotation."""
        rows = [
            (
                self.queue,
                number,
                one.case,
                one.verdict,
                one.text,
                one.measured,
                one.direction.quotation.text,
                one.direction.quotation.section,
            )
            for number, one in self.characterisation.checked
        ]
        return pl.DataFrame(rows, schema=_CHECKED, orient="row")

    @property
    def file_name(self) -> str:
        """File name of the report."""
        return file_name(self.queue)

    def save(self, folder: str | Path) -> Path:
        """Write the report as HTML into a directory, under the name of the queue.

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
        return saved(
            folder,
            self.file_name,
            lambda build: page.html(self.characterisation, self.discussions, build),
        )


@dataclass(frozen=True)
class Rfc7928Plan(Plan):
    """The arguments of the suite of RFC 7928."""

    queues: Annotated[
        Queues,
        replace(common.QUEUES, help=f"{common.QUEUES.help} all stands for all built-in queues."),
    ]
    _: KW_ONLY
    section: Annotated[
        str | Sequence[str] | None,
        Argument(
            help="Run only this scenario, such as 8.2.4, or all scenarios of a section, such as 8.",
            unset="all",
            metavar="SECTION",
            heading=SCENARIO,
        ),
    ] = None
    full: Full = False
    seed: OwnSeed = 1
    jobs: Jobs = None
    progress: Annotated[
        Callable[[str], object] | None,
        Argument(help="Called with the name of each queue before its runs.", option=""),
    ] = None


def scenarios(
    plan: Rfc7928Plan, changes: Mapping[str, Value] | None = None
) -> Prepared[Rfc7928Report]:
    """Build and check the scenarios of queues; `changes` apply to each of them."""
    chosen = texts(plan.queues)
    if ALL in chosen:
        if len(chosen) > 1:
            rule = f"{ALL} stands for every queue; expected no other queue"
            raise ArgumentError("queues", rule=rule)
        chosen = tuple(entry["name"] for entry in json.loads(_core.qdisc_catalogue()))
    form = FULL if plan.full else QUICK
    return prepared(chosen, plan.section, form, seed=plan.seed, changes=changes)


@takes(Rfc7928Plan)
def rfc7928(plan: Rfc7928Plan) -> list[Rfc7928Report]:
    """Characterise queues with the scenarios of RFC 7928, each compared with drop-tail.

    Returns
    -------
    list of Rfc7928Report
        One report per queue.

    Raises
    ------
    ScenarioError
        A queue or a number is unknown.

    Examples
    --------
    >>> (report,) = rfc7928("codel", section="12")
    >>> report.discussions[0].rows[1][:2]
    ('target', 'default')
    """
    return list(scenarios(plan).reports(partial(run_scenario, jobs=plan.jobs), plan.progress))
