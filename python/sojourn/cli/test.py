"""``sojourn test``: run scenario files and judge their expectations."""

import json as js
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, FileSpelling, read_table, spelled
from sojourn.arguments.common import OUTPUT, Force, Json, Replications
from sojourn.cli import continued, expecting, process, session
from sojourn.cli.options import Change, Everything, Expect, Junit
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say, tolerated
from sojourn.cli.progress import progress_bar, work_of
from sojourn.cli.run import opened
from sojourn.cli.sweep import executed, execution_of
from sojourn.execute.executor import ExecutionPlan, jobs_at_once
from sojourn.execute.run import RunPlan
from sojourn.execute.targets import store_of, target
from sojourn.expectations.expectation import Expectation
from sojourn.expectations.judging import Judgement, Suite, failed
from sojourn.result import budget
from sojourn.result import storage as results
from sojourn.scenario import Scenario
from sojourn.scenario.files import Tables
from sojourn.sweeps import storage as sweeps
from sojourn.sweeps.run import PreparedSweep, SweepPlan, prepared


@dataclass(frozen=True, slots=True)
class _Test:
    """A scenario file with expectations, and its table [sweep] if it has one."""

    file: Path
    scenario: Scenario
    tables: Tables
    planned: PreparedSweep | None
    expected: list[Expectation]
    # Where its result is saved.
    out: Path | None


class _InterruptedError(Exception):
    """A signal ended the runs."""


@command(ExecutionPlan, rare=("on",))
def test(
    given: Given[ExecutionPlan],
    *,
    scenarios: Annotated[
        Sequence[Path],
        # The backslash: Typer reads the help as markup of Rich.
        Argument(help="Scenario files with [[expect]].", option="FILE", least_items=1),
    ],
    change: Change = (),
    replications: Replications = None,
    expect: Expect = (),
    junit_file: Junit = None,
    out: Annotated[
        Path | None,
        Argument(
            help="Directory for the results, one directory per file with its name.",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
    everything: Everything = False,
) -> int:
    """Run scenario files and judge their expectations.

    The exit code is 1 if one fails or is undecided.
    """
    plan = given.plan()
    where = target(plan.on)
    store_of(where, plan.shared)
    tests = [
        _test(file, change, expect, plan, replications=replications, out=out) for file in scenarios
    ]
    if out is not None and len({one.out for one in tests}) < len(tests):
        rule = "expected files with different names, which name their directories"
        raise ArgumentError("out", f"{out}", rule)
    for one in tests:
        groups = [] if one.planned is None else [group.scenario for group in one.planned.groups]
        for checked in groups or [one.scenario.checked]:
            _core.check_backend(checked, where.backend)
            budget.check(checked, jobs=plan.jobs, max_memory=plan.max_memory)
    found: dict[str, Suite] = {}
    with expecting.claimed(junit_file), ExitStack() as stack:
        kept = [stack.enter_context(_claimed(one, force=force)) for one in tests]
        try:
            for one, keep in zip(tests, kept, strict=True):
                began = time.monotonic()
                with (
                    budget.enforced(plan.max_memory),
                    spelled(FileSpelling("sweep", one.tables)),
                ):
                    judgements = _judged(one, plan, keep, force=force)
                found[f"{one.file}"] = Suite(
                    judgements=judgements,
                    seed=one.scenario.seed,
                    elapsed_s=time.monotonic() - began,
                )
                if not json:
                    with tolerated():
                        expecting.show(judgements, title=f"{one.file}", everything=everything)
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
    if out is not None:
        say(f"saved results to {out}")
    return expecting.FAILED if failed(every) else 0


def _test(
    file: Path,
    change: Sequence[str],
    expect: Sequence[str],
    plan: ExecutionPlan,
    *,
    replications: int | None,
    out: Path | None,
) -> _Test:
    """Read a scenario file with expectations."""
    scenario, tables = opened(file, change)
    scenario = RunPlan(scenario, replications=replications, seed=plan.seed).scenario
    is_sweep = bool(tables.get("sweep"))
    expected = expecting.all_expectations(expect, tables, groups=not is_sweep)
    if not expected:
        message = (
            f'{file}: no expectations; expected tables [[expect]] with that = "metric < number"'
        )
        raise _core.ScenarioError(message)
    if not is_sweep and (target(plan.on).clustered or plan.shared is not None):
        argument = "shared" if plan.shared is not None else "on"
        rule = "{file} has no table [sweep]; only the runs of sweeps can be shared"
        raise ArgumentError(argument, f"{getattr(plan, argument)}", rule, file=f"{file}")
    planned = _prepared(scenario, tables, replications) if is_sweep else None
    expecting.check_names(expected, scenario, planned)
    place = None if out is None else out / file.name.partition(".")[0]
    return _Test(file, scenario, tables, planned, expected, place)


def _prepared(scenario: Scenario, tables: Tables, replications: int | None) -> PreparedSweep:
    """Check the sweep of the table [sweep] of a scenario file."""
    with spelled(FileSpelling("sweep", tables)):
        values = {"parameters": {}, **read_table(SweepPlan, "sweep", tables["sweep"])}
        if replications is not None:
            values["replications"] = replications
        return prepared(SweepPlan(scenario, **values))


@contextmanager
def _claimed(test: _Test, *, force: bool) -> Iterator[_core.Claim | None]:
    """Check that the result of a test can be saved; reserve its directory unless it is a sweep."""
    if test.planned is None:
        with results.claimed(test.out, force=force) as claim:
            yield claim
    else:
        if test.out is not None:
            sweeps.LAYOUT.check(test.out, test.planned.manifest(complete=False), force=force)
        yield None


def _judged(
    test: _Test, plan: ExecutionPlan, claim: _core.Claim | None, *, force: bool
) -> list[Judgement]:
    """Execute the runs of a file, save them if wanted, and judge its expectations."""
    if test.planned is None:
        return _of_scenario(test, plan, claim)
    with execution_of(test.planned, plan) as (execution, at):
        count = jobs_at_once(plan.jobs, execution.backend)
        result, interrupted = executed(test.planned, execution, count)
    for text in at.all_warnings(execution.failure):
        say(f"warning: {text}")
    if test.out is not None:
        result.save(test.out, force=force)
    if interrupted:
        raise _InterruptedError
    return expecting.judged(test.expected, expecting.of_sweep(result, test.planned))


def _of_scenario(test: _Test, plan: ExecutionPlan, claim: _core.Claim | None) -> list[Judgement]:
    session.say_notes(test.scenario.checked.notes)
    backend = target(plan.on).backend
    with progress_bar(work_of(test.scenario, jobs=plan.jobs, backend=backend)) as progress:
        execution = continued.run(
            test.scenario,
            jobs=plan.jobs,
            progress=progress,
            backend=backend,
            fresh=plan.fresh,
            max_memory=None,
            announce=lambda *_: None,
        )
    if claim is not None and execution.result.finished:
        results.save(execution.result, claim)
    if execution.result.complete:
        # An error in an expectation keeps the runs.
        judgements = expecting.judged(test.expected, [expecting.of_result(execution.result)])
        execution.end(kept=True)
        return judgements
    if execution.invocation is not None:
        execution.invocation.close()
    raise _InterruptedError
