"""Runs a scenario on the simulator and in real time, and compares the results."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import polars as pl

from sojourn import _core
from sojourn.agreement import comparison, page, wording
from sojourn.agreement.comparison import FailedCheck
from sojourn.arguments import Argument, Plan, takes
from sojourn.arguments.common import (
    MAX_REPLICATIONS,
    RUNS,
    Jobs,
    MaxMemory,
    Progress,
    Replications,
    Seed,
)
from sojourn.execute.run import run
from sojourn.presentation.html import fragment
from sojourn.presentation.model import Paragraph, Section, Styled, Text
from sojourn.result import Result
from sojourn.scenario import Scenario

SIMULATOR = "sim"
LIVE = "live"


class Agreement:
    """A simulated and a live result of the same scenario, and how well they agree.

    Created by :func:`sojourn.agree`, or from two saved results.

    Parameters
    ----------
    simulated, live
        The results; their numbers of replications may differ.

    Raises
    ------
    ResultError
        The results are of different scenarios, or one of them has no finished run.
    """

    def __init__(self, simulated: Result, live: Result) -> None:
        ours, theirs = (one.scenario.replace(replications=1).hash for one in (simulated, live))
        if ours != theirs:
            message = (
                "the simulated and the live result have different scenarios:  "
                f"{ours[:12]} and {theirs[:12]}"
            )
            raise _core.ResultError(message)
        for name, result in (("simulated", simulated), ("live", live)):
            if not result.finished:
                message = f"the {name} result has no finished run"
                raise _core.ResultError(message)
        self._simulated = simulated
        self._live = live
        self._table = comparison.compared(simulated, live)

    @property
    def simulated(self) -> Result:
        """The simulated result."""
        return self._simulated

    @property
    def live(self) -> Result:
        """The live result."""
        return self._live

    @property
    def table(self) -> pl.DataFrame:
        """One row per arm and metric.

        ``arm``; ``group`` (null for metrics of the whole run); ``metric``, ``label`` and ``unit``;
        ``n_simulated`` and ``n_live``: the number of runs that have the metric; ``simulated`` and
        ``live``: their means; ``difference``: live minus simulated, ``low`` and ``high``: its 95 %
        bootstrap interval, null for fewer than two runs; ``tolerance``; ``verdict``: ``"agrees"``,
        ``"differs"``, ``"undecided"`` (the interval contains values within and beyond the
        tolerance), ``"not measured"``, or null if the metric has no tolerance; and ``valid``:
        whether every live run of the arm passed its checks.
        """
        return self._table

    @property
    def failed_checks(self) -> list[FailedCheck]:
        """The checks that live runs did not pass: ``arm``, ``replication``, ``name``, ``value``."""
        return comparison.failed_checks(self._live)

    def to_html(self) -> str:
        """Return a self-contained HTML page with the table and figures of both results."""
        return page.html(self._simulated, self._live, self._table)

    def save(self, path: str | Path) -> None:
        """Write the HTML page to a file.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        ResultError
            The file cannot be written, or exists and is not a report.
        """
        page.write(self.to_html(), path)

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        said: Text = [Styled("agreement:"), f" {wording.answer(self._table)}"]
        failures = map(Paragraph, wording.failures(self.failed_checks))
        tables = wording.tables(self._table)
        return fragment(
            [
                Paragraph(said),
                *failures,
                *(Section(table.title, [table]) for table in tables),
                Paragraph(wording.note(self._table)),
            ]
        )

    def __repr__(self) -> str:
        """Return the name of the scenario and the number of verdicts."""
        name = self._simulated.scenario.checked.name
        return f'<Agreement of "{name}": {wording.answer(self._table)}>'


@dataclass(frozen=True)
class AgreePlan(Plan):
    """The arguments of a comparison of simulated and live runs."""

    scenario: Annotated[Scenario, Argument(help="The scenario.", option="FILE")]
    _: KW_ONLY
    replications: Replications = None
    simulated_replications: Annotated[
        int | None,
        Argument(
            help="Number of simulated runs per arm.",
            more="They take less time than live runs, and more of them show how much runs vary by "
            "chance.",
            unset="as many as live runs",
            least=1,
            most=MAX_REPLICATIONS,
            metavar="N",
            heading=RUNS,
        ),
    ] = None
    seed: Seed = None
    jobs: Jobs = None
    progress: Progress = None
    max_memory: MaxMemory = None


def scenarios(plan: AgreePlan) -> dict[str, Scenario]:
    """Return the scenarios of both backends, which differ in the number of replications."""
    live = plan.scenario
    if plan.replications is not None:
        live = live.replace(replications=plan.replications)
    if plan.seed is not None:
        live = live.replace(seed=plan.seed)
    check(live)
    if plan.simulated_replications is None:
        return {LIVE: live, SIMULATOR: live}
    return {LIVE: live, SIMULATOR: live.replace(replications=plan.simulated_replications)}


@takes(AgreePlan)
def agree(plan: AgreePlan) -> Agreement:
    """Run a scenario on the simulator and in real time, and compare the results.

    Live runs need Linux and are executed one after another, each for the duration of the scenario.

    Returns
    -------
    Agreement
        The comparison.

    Raises
    ------
    Interrupted
        Ctrl-C ended the runs.
    ScenarioError
        An arm needs a feature that live runs lack; the message names the arm and the key.
    SojournError
        The machine cannot run the scenario in real time; the message says what it lacks.
    """
    of = scenarios(plan)
    live = run(of[LIVE], on=LIVE, progress=plan.progress, max_memory=plan.max_memory)
    simulated = run(of[SIMULATOR], on=SIMULATOR, jobs=plan.jobs, max_memory=plan.max_memory)
    return Agreement(simulated, live)


def check(scenario: Scenario) -> None:
    """Reject a scenario that one of the backends cannot run, and name the arms."""
    if LIVE not in _core.backend_names():
        message = "live runs need Linux; simulated runs also work on this system"
        raise _core.UnavailableError(message)
    for backend in (LIVE, SIMULATOR):
        try:
            _core.check_backend(scenario.checked, backend)
        except _core.ScenarioError as error:
            raise _named(scenario, backend, error) from None


def _named(scenario: Scenario, backend: str, error: _core.ScenarioError) -> _core.ScenarioError:
    """Return the errors of all arms that a backend cannot run; the core stops at the first."""
    found = []
    for arm in scenario.arms or ():
        try:
            _core.check_backend(scenario.replace(arms=[arm]).checked, backend)
        except _core.ScenarioError as of_arm:
            found.append(str(of_arm))
    return _core.ScenarioError("; ".join(found)) if found else error
