"""``sojourn test``: run scenario files and judge their expectations."""

import json as js
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, FileSpelling, read_table, spelled
from sojourn.arguments.common import (
    Backend,
    Fresh,
    Jobs,
    Json,
    MaxMemory,
    Replications,
    Seed,
)
from sojourn.cli import continued, expecting, process, session
from sojourn.cli.continued import row_store
from sojourn.cli.options import Change, Everything, Junit
from sojourn.cli.plans import command
from sojourn.cli.process import say, tolerated
from sojourn.cli.progress import progress_bar, work_of
from sojourn.cli.run import opened
from sojourn.cli.sweep import executed
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.local import LocalExecutor
from sojourn.execute.run import RunPlan
from sojourn.expectations.expectation import Expectation
from sojourn.expectations.judging import Judgement, Suite, failed
from sojourn.result import budget
from sojourn.scenario import Scenario
from sojourn.scenario.files import Tables
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import PreparedSweep, SweepPlan, prepared

Tests = tuple[Path, Scenario, Tables, PreparedSweep | None, list[Expectation]]


class _InterruptedError(Exception):
    """A signal ended the runs."""


@command(rare=("on",))
def test(
    *,
    scenarios: Annotated[
        Sequence[Path],
        # The backslash: Typer reads the help as markup of Rich.
        Argument(help="Scenario files with [[expect]].", option="FILE", least_items=1),
    ],
    change: Change = (),
    replications: Replications = None,
    seed: Seed = None,
    jobs: Jobs = None,
    on: Backend = None,
    fresh: Fresh = False,
    max_memory: MaxMemory = None,
    junit_file: Junit = None,
    json: Json = False,
    everything: Everything = False,
) -> int:
    """Run scenario files and judge their expectations.

    The exit code is 1 if one fails or is undecided.
    """
    tests = [_test(file, change, replications=replications, seed=seed) for file in scenarios]
    for _, scenario, _, planned, _ in tests:
        checked = (
            [scenario.checked] if planned is None else [group.scenario for group in planned.groups]
        )
        for one in checked:
            _core.check_backend(one, on)
            budget.check(one, jobs=jobs, max_memory=max_memory)
    found: dict[str, Suite] = {}
    with expecting.claimed(junit_file):
        try:
            for file, scenario, tables, planned, expected in tests:
                run = _scenario if planned is None else _sweep
                began = time.monotonic()
                with budget.enforced(max_memory), spelled(FileSpelling("sweep", tables)):
                    judgements = run(
                        scenario, planned, expected, jobs=jobs, backend=on, fresh=fresh
                    )
                found[f"{file}"] = Suite(
                    judgements=judgements, seed=scenario.seed, elapsed_s=time.monotonic() - began
                )
                if not json:
                    with tolerated():
                        expecting.show(judgements, title=f"{file}", everything=everything)
        except _InterruptedError:
            say(f"interrupted; to continue: {continued.continuation()}")
            return process.exit_code()
        if json:
            documents = {
                name: [one.document() for one in suite.judgements] for name, suite in found.items()
            }
            with tolerated():
                print(js.dumps(documents, indent=2))
        expecting.write(junit_file, found)
    every = [one for suite in found.values() for one in suite.judgements]
    if len(found) > 1:
        say(expecting.summary(every))
    return expecting.FAILED if failed(every) else 0


def _test(
    file: Path, change: Sequence[str], *, replications: int | None, seed: int | None
) -> Tests:
    """Read a scenario file with expectations, and its table [sweep] if it has one."""
    scenario, tables = opened(file, change)
    scenario = RunPlan(scenario, replications=replications, seed=seed).scenario
    is_sweep = bool(tables.get("sweep"))
    expected = expecting.all_expectations(None, tables, groups=not is_sweep)
    if not expected:
        message = (
            f'{file}: no expectations; expected tables [[expect]] with that = "metric < number"'
        )
        raise _core.ScenarioError(message)
    planned = _prepared(scenario, tables, replications) if is_sweep else None
    expecting.check_names(expected, scenario, planned)
    return file, scenario, tables, planned, expected


def _prepared(scenario: Scenario, tables: Tables, replications: int | None) -> PreparedSweep:
    """Check the sweep of the table [sweep] of a scenario file."""
    with spelled(FileSpelling("sweep", tables)):
        values = {"parameters": {}, **read_table(SweepPlan, "sweep", tables["sweep"])}
        if replications is not None:
            values["replications"] = replications
        return prepared(SweepPlan(scenario, **values))


def _scenario(
    scenario: Scenario,
    _: PreparedSweep | None,
    expected: list[Expectation],
    *,
    jobs: int | None,
    backend: str | None,
    fresh: bool,
) -> list[Judgement]:
    session.say_notes(scenario.checked.notes)
    with progress_bar(work_of(scenario, jobs=jobs, backend=backend)) as progress:
        execution = continued.run(
            scenario,
            jobs=jobs,
            progress=progress,
            backend=backend,
            fresh=fresh,
            max_memory=None,
            announce=lambda *_: None,
        )
    complete = execution.result.complete
    if complete:
        # An error in an expectation keeps the runs.
        judgements = expecting.judged(expected, [expecting.of_result(execution.result)])
        execution.end(kept=True)
        return judgements
    if execution.invocation is not None:
        execution.invocation.close()
    raise _InterruptedError


def _sweep(
    _: Scenario,
    planned: PreparedSweep | None,
    expected: list[Expectation],
    *,
    jobs: int | None,
    backend: str | None,
    fresh: bool,
) -> list[Judgement]:
    if planned is None:
        return []
    execution = Execution(
        replications=planned.replications,
        executor=LocalExecutor(jobs=jobs, backend=backend),
        until=planned.until,
        backend=backend,
        store=row_store(backend, fresh=fresh),
    )
    result, interrupted = executed(planned, execution, jobs_at_once(jobs, backend))
    if interrupted:
        raise _InterruptedError
    return expecting.judged(expected, expecting.of_sweep(result, planned))
