"""Runs a scenario on the simulator and in other places, and compares the results."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import polars as pl

from sojourn import _core
from sojourn.agreement import comparison, page, wording
from sojourn.agreement.comparison import FailedCheck
from sojourn.arguments import Argument, ArgumentError, Plan, takes
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
    """A simulated result and one of another place, and how well they agree.

    Created by :func:`sojourn.agree`, or from two saved results of the same scenario.

    Parameters
    ----------
    simulated, measured
        The results; their numbers of replications may differ.

    Raises
    ------
    ResultError
        The results are of different scenarios, or one of them has no finished run.
    """

    def __init__(self, simulated: Result, measured: Result) -> None:
        ours, theirs = (one.scenario.replace(replications=1).hash for one in (simulated, measured))
        if ours != theirs:
            message = (
                "the simulated and the measured result have different scenarios:  "
                f"{ours[:12]} and {theirs[:12]}"
            )
            raise _core.ResultError(message)
        for name, result in (("simulated", simulated), ("measured", measured)):
            if not result.finished:
                message = f"the {name} result has no finished run"
                raise _core.ResultError(message)
        self._simulated = simulated
        self._measured = measured
        self._table = comparison.compared(simulated, measured)

    @property
    def simulated(self) -> Result:
        """The simulated result."""
        return self._simulated

    @property
    def measured(self) -> Result:
        """The result of the other place."""
        return self._measured

    @property
    def place(self) -> str:
        """The other place, such as ``"live"`` or ``"linux-6.12"``."""
        return page.place_of(self._measured)

    @property
    def table(self) -> pl.DataFrame:
        """One row per arm and metric.

        ``arm``; ``group`` (null for metrics of the whole run); ``metric``, ``label`` and ``unit``;
        ``n_simulated`` and ``n_measured``: the number of runs that have the metric; ``simulated``
        and ``measured``: their means; ``difference``: measured minus simulated, ``low`` and
        ``high``: its 95 % bootstrap interval, null for fewer than two runs; ``tolerance``;
        ``verdict``: ``"agrees"``,
        ``"differs"``, ``"undecided"`` (the interval contains values within and beyond the
        tolerance), ``"not measured"``, or null if the metric has no tolerance; and ``valid``:
        whether every measured run of the arm passed its checks.
        """
        return self._table

    @property
    def failed_checks(self) -> list[FailedCheck]:
        """The checks that measured runs failed: ``arm``, ``replication``, ``name``, ``value``."""
        return comparison.failed_checks(self._measured)

    def to_html(self) -> str:
        """Return a self-contained HTML page with the table and figures of both results."""
        return page.html(self._simulated, self._measured, self._table)

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
        failures = map(Paragraph, wording.failures(self.failed_checks, self.place))
        tables = wording.tables(self._table, self.place)
        return fragment(
            [
                Paragraph(said),
                *failures,
                *(Section(table.title, [table]) for table in tables),
                Paragraph(wording.note(self._table, self.place)),
            ]
        )

    def __repr__(self) -> str:
        """Return the name of the scenario and the number of verdicts."""
        name = self._simulated.scenario.checked.name
        return f'<Agreement of "{name}": {wording.answer(self._table)}>'


@dataclass(frozen=True)
class AgreePlan(Plan):
    """The arguments of a comparison of simulated runs with others."""

    scenario: Annotated[Scenario, Argument(help="The scenario.", option="FILE")]
    _: KW_ONLY
    on: Annotated[
        str,
        Argument(
            help="Places to compare with the simulator, separated by commas: live, or a "
            "kernel such as linux-6.12.",
            more="The function takes one place, the command several.",
            metavar="PLACES",
            heading=RUNS,
        ),
    ] = LIVE
    replications: Replications = None
    simulated_replications: Annotated[
        int | None,
        Argument(
            help="Number of simulated runs per arm.",
            more="They take less time than others, and more of them show how much runs vary by "
            "chance.",
            unset="as many as others",
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


def places(on: str) -> list[str]:
    """Return the places in a text such as "sim,live,linux-6.12" to compare the simulator with."""
    known = _core.backend_names()
    named = [name.strip() for name in on.split(",") if name.strip()]
    found = list(dict.fromkeys(name for name in named if name != SIMULATOR))
    for name in found:
        if name == LIVE and LIVE not in known:
            message = "live runs need Linux; simulated runs also work on this system"
            raise _core.UnavailableError(message)
        if name not in known:
            rule = 'unknown place "{name}"; expected {known}'
            raise ArgumentError("on", on, rule, name=name, known=", ".join(known))
    if not found:
        example = ",".join([SIMULATOR, *known[1:][-1:]])
        rule = "nothing to compare with; expected, for example, {example}"
        raise ArgumentError("on", on, rule, example=example)
    return found


def scenarios(plan: AgreePlan) -> dict[str, Scenario]:
    """Return the scenario of each place; that of the simulator may have other replications."""
    others = places(plan.on)
    measured = plan.scenario
    if plan.replications is not None:
        measured = measured.replace(replications=plan.replications)
    if plan.seed is not None:
        measured = measured.replace(seed=plan.seed)
    check(measured, others)
    simulated = measured
    if plan.simulated_replications is not None:
        simulated = measured.replace(replications=plan.simulated_replications)
    return {**dict.fromkeys(others, measured), SIMULATOR: simulated}


@takes(AgreePlan)
def agree(plan: AgreePlan) -> Agreement:
    """Run a scenario on the simulator and in another place, and compare the results.

    Live runs need Linux and are executed one after another, each for the duration of the scenario.
    Runs in a kernel need a kernel that was built; see the guide.

    Returns
    -------
    Agreement
        The comparison.

    Raises
    ------
    Interrupted
        Ctrl-C ended the runs.
    ScenarioError
        An arm needs a feature that the place lacks, and the message names the arm and the key; or
        not exactly one place is given.
    SojournError
        The machine cannot run the scenario there; the message says what it lacks.
    """
    of = scenarios(plan)
    other, *more = (name for name in of if name != SIMULATOR)
    if more:
        message = f"{plan.on}: expected one place; call the function once for each"
        raise _core.ScenarioError(message)
    jobs = None if other == LIVE else plan.jobs
    measured = run(
        of[other], on=other, jobs=jobs, progress=plan.progress, max_memory=plan.max_memory
    )
    simulated = run(of[SIMULATOR], on=SIMULATOR, jobs=plan.jobs, max_memory=plan.max_memory)
    return Agreement(simulated, measured)


def check(scenario: Scenario, others: Sequence[str]) -> None:
    """Reject a scenario that one of the backends cannot run, and name the arms."""
    for backend in (*others, SIMULATOR):
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
