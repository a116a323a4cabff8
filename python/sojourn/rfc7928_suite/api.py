"""RFC 7928 from Python: characterise queues and write their reports."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from sojourn import _core
from sojourn.document import needs
from sojourn.execute.run import run as run_scenario
from sojourn.result import derived_files
from sojourn.rfc7928_suite import page
from sojourn.rfc7928_suite.discussion import Discussion, discuss
from sojourn.rfc7928_suite.suite import (
    DISCUSSIONS,
    Characterisation,
    Runner,
    cases,
    characterise,
    selected,
)
from sojourn.rfc7928_suite.topology import FULL, QUICK, Case, Form, QueueUnderTest
from sojourn.scenario.paths import Value, overridden

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The scenarios of some queues, all built and checked."""

    form: Form
    numbers: tuple[str, ...]
    queues: tuple[tuple[QueueUnderTest, dict[str, list[Case]]], ...]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return sum(
            case.scenario.runs
            for _, built in self.queues
            for several in built.values()
            for case in several
        )


def plan(
    queues: Sequence[str],
    numbers: Sequence[str] | None,
    form: Form,
    *,
    seed: int = 1,
    changes: Mapping[str, Value] | None = None,
) -> Plan:
    """Build and check the scenarios of queues; `changes` apply to each of them."""
    chosen = selected(numbers)
    tested = [QueueUnderTest(queue) for queue in queues]
    if not tested:
        message = "expected at least one queue, such as codel"
        raise _core.ScenarioError(message)
    names = [one.text for one in tested]
    for name in names:
        if names.count(name) > 1:
            message = f'queue "{name}": given twice; expected each queue once'
            raise _core.ScenarioError(message)
    built = tuple((one, _changed(cases(one, form, chosen, seed), changes or {})) for one in tested)
    return Plan(form=form, numbers=tuple(chosen), queues=built)


def _changed(built: dict[str, list[Case]], changes: Mapping[str, Value]) -> dict[str, list[Case]]:
    """Change values of scenarios; errors name the number of the scenario."""
    if not changes:
        return built
    found = {}
    for number, several in built.items():
        try:
            found[number] = [
                replace(case, scenario=overridden(case.scenario, changes)) for case in several
            ]
        except _core.ScenarioError as error:
            message = f"scenario {number}: {error}"
            raise _core.ScenarioError(message) from None
    return found


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
        """The queue in the syntax of ``tc``."""
        return self.characterisation.tested.text

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
        return f"{re.sub('[^a-z0-9_.]+', '-', self.queue.lower()).strip('-.')}.html"

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
        file = Path(folder) / self.file_name
        build = f"{_core.version()} ({_core.commit()[:12]})"
        text = page.html(self.characterisation, self.discussions, build)
        with derived_files.claimed(file):
            derived_files.write(file, text.encode(), None)
        return file


def report_on(
    tested: QueueUnderTest, built: dict[str, list[Case]], planned: Plan, *, runner: Runner
) -> Rfc7928Report:
    """Run the scenarios of one queue."""
    found = characterise(tested, planned.form, built, runner=runner, drawn=page.drawn)
    tables = tuple(discuss(tested, number) for number in planned.numbers if number in DISCUSSIONS)
    return Rfc7928Report(characterisation=found, discussions=tables)


def rfc7928(
    *queues: str,
    section: str | Sequence[str] | None = None,
    full: bool = False,
    seed: int = 1,
    jobs: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> list[Rfc7928Report]:
    """Characterise queues by the scenarios of RFC 7928, each compared with drop-tail.

    Parameters
    ----------
    queues
        Queues in the syntax of ``tc``.
    section
        Numbers of sections or scenarios, such as ``"8.2.4"``; by default all.
    full
        Use the durations of ns-3's suite instead of short ones.
    seed
        Seed for all random numbers.
    jobs
        Number of threads; by default one per processor.
    progress
        Called with the name of each queue before its runs.

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
    for queue in queues:
        needs("queues", queue, str, "a queue in the syntax of tc, such as codel")
    numbers = [section] if isinstance(section, str) else section
    planned = plan(queues, numbers, FULL if full else QUICK, seed=seed)
    reports = []
    for tested, built in planned.queues:
        if progress is not None:
            progress(tested.text)
        reports.append(
            report_on(tested, built, planned, runner=lambda one: run_scenario(one, jobs=jobs))
        )
    return reports
