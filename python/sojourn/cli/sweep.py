"""``sojourn sweep``: run a scenario at many points of its parameters."""

import bisect
import itertools
import json as js
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.arguments.common import OUTPUT, SCENARIO
from sojourn.cli import expecting, places, session, signals, spaces, stored, sweep_tables
from sojourn.cli.options import (
    Change,
    DryRun,
    Everything,
    Expect,
    Force,
    Json,
    ReportFile,
    path,
)
from sojourn.cli.pipes import tolerated
from sojourn.cli.plans import Given, command
from sojourn.cli.progress import RunProgress, Work, progress_bar
from sojourn.cli.run import only
from sojourn.cli.spaces import Line, Origin, ScenarioOrPreset, without_arms
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.places import opened, place, store_of
from sojourn.expectations.judging import failed
from sojourn.result import derived_files
from sojourn.result.formatting import counted
from sojourn.result.naming import check_possible, queued_links
from sojourn.scenario import Scenario
from sojourn.sweeps import SweepInterrupted, SweepResult, storage
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import PreparedSweep, SweepPlan, execute, prepared


@command(SweepPlan, table="sweep")
def sweep(
    given: Given[SweepPlan],
    *,
    file: ScenarioOrPreset,
    change: Change = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARM",
            rich_help_panel=SCENARIO,
            show_default="all",
            help="Use only this arm. Repeatable.",
        ),
    ] = None,
    line: Line,
    expect: Expect = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC", rich_help_panel=OUTPUT, help="Print only this metric. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=path,
            rich_help_panel=OUTPUT,
            help="Directory for sweep.json, runs.parquet and points.parquet; created if needed.",
        ),
    ] = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
    everything: Everything = False,
    dry_run: DryRun = False,
) -> int:
    """Run a scenario file, or a preset such as rrul_be, at many points of its parameters."""
    scenario, tables = Origin(file=file, line=line, change=change).read()
    plan = given.plan(_arms(scenario, arm), tables)
    where = place(plan.on)
    store = store_of(where, plan.shared)
    planned = prepared(plan)
    expected = expecting.all_expectations(expect, tables, groups=False)
    links = queued_links(planned.scenario.checked, [point.changes for point in planned.points])
    for name in metric or ():
        check_possible(name, links, place="--metric")
    spaces.check_changes(change, planned.points[0].changes, "sweep")
    expecting.check_names(expected, planned.scenario, planned)
    _core.check_backend(planned.batches[0].scenario, where.backend)
    if store is not None:
        from sojourn.execute.shared import keys  # noqa: PLC0415 - slow to import, and seldom needed

        # Before a dry run: the runs of some backends cannot be shared.
        keys(planned.batches[0].scenario, where.backend)
    estimate = planned.estimate(jobs=plan.jobs, max_memory=plan.max_memory)
    if dry_run:
        concurrent = jobs_at_once(plan.jobs, where.backend)
        return _describe(planned, estimate, jobs=concurrent, as_json=json)
    if out is not None:
        storage.LAYOUT.check(out, planned.manifest(complete=False), force=force)
    scenarios = [batch.scenario for batch in planned.batches]
    local = places.row_store(where.backend)
    processors = places.processors(plan.on, where, plan.jobs)
    with (
        places.announced(plan.shared),
        derived_files.claimed(report),
        opened(scenarios, where, store=store, local=local, jobs=plan.jobs) as at,
    ):
        session.say(_announced(planned, estimate, processors))
        execution = Execution(
            replications=planned.replications,
            executor=at.executor,
            until=planned.until,
            backend=where.backend,
            store=at.store,
        )
        result, interrupted = executed(planned, execution, processors[0])
        if out is not None:
            # First: the steps below may fail.
            result.save(out, force=force)
        measured = expecting.of_sweep(result, planned) if expected and not interrupted else []
        judgements = expecting.judged(expected, measured)
        with tolerated():
            sweep_tables.show(
                result, as_json=json, everything=everything, metrics=metric, judgements=judgements
            )
            if not json:
                expecting.show(judgements)
        _write(result, execution, out=out, report=report)
    for text in at.all_warnings(execution.failure):
        session.say(f"warning: {text}")
    if interrupted:
        finished = f"finished {result.runs.height} of {execution.total} runs"
        session.say(f"interrupted: {finished}; to continue: {stored.continuation()}")
        return signals.exit_code()
    return expecting.FAILED if failed(judgements) else 0


def executed(
    planned: PreparedSweep, execution: Execution, jobs: int | None
) -> tuple[SweepResult, bool]:
    """Execute a sweep and show its progress; return its result, and whether a signal ended it.

    `jobs` is the number of processors; None if it is not known.
    """
    with _reported(planned, execution, jobs):
        try:
            return execute(planned, execution), False
        except SweepInterrupted as error:
            return error.result, True


def _write(
    result: SweepResult, execution: Execution, *, out: Path | None, report: Path | None
) -> None:
    """Write the report; print what was reused, saved and written."""
    if execution.reused:
        session.say(f"{counted(execution.reused, 'run')} of {execution.finished} were stored")
    if out is not None:
        session.say(f"saved sweep to {out}")
    if report is not None and not result.runs.is_empty():
        from sojourn.sweeps import page  # noqa: PLC0415 - slow to import, and often not needed

        page.write(result, report)
        session.say(f"wrote report to {report}")


@contextmanager
def _reported(planned: PreparedSweep, execution: Execution, jobs: int | None) -> Iterator[None]:
    """Show the progress of a sweep, and set the message for a signal that ends the command."""
    if execution.store is None:
        # Finished runs would be lost.
        signals.on_exit("interrupted", patient=True)
    with progress_bar(_work(planned, jobs)) as progress:
        execution.progress = _Announced(progress, execution)
        yield


class _Announced:
    """Progress that also sets what is said if a signal ends the command."""

    def __init__(self, shown: RunProgress, execution: Execution) -> None:
        self._shown = shown
        self._execution = execution

    def __call__(self, finished: int, total: int) -> None:
        if self._execution.store is not None:
            stored.announce_stored(finished, total)
        self._shown.stored(self._execution.reused)
        self._shown(finished, total)


def _work(planned: PreparedSweep, jobs: int | None) -> Work:
    """Describe the runs of a sweep: each batch takes its estimated share of the time."""
    counts = [len(batch.cells) * planned.replications for batch in planned.batches]
    costs: list[float] = [
        js.loads(_core.estimate(batch.scenario, jobs=jobs))["cpu_s"] / batch.most
        for batch in planned.batches
    ]
    ends = [0, *itertools.accumulate(counts)]
    times = [0.0, *itertools.accumulate(costs)]
    expected_s = None
    if jobs is not None:
        expected_s = times[-1] * planned.replications / min(jobs, ends[-1])
    if planned.until is not None:
        # The number of runs per point is not known.
        return Work(runs=planned.runs, expected_s=expected_s)

    def share(finished: int) -> float:
        if finished >= ends[-1]:
            return 1.0
        place = bisect.bisect_right(ends, finished) - 1
        within = (finished - ends[place]) / counts[place]
        return (times[place] + within * costs[place]) / times[-1]

    def current(finished: int) -> str:
        place = bisect.bisect_right(ends, finished) - 1
        cells = planned.batches[place].cells
        cell = cells[(finished - ends[place]) % len(cells)]
        arm = f", {cell.arm}" if len(planned.scenario.checked.arms) > 1 else ""
        return f"{planned.points[cell.points[0]].label}{arm}"

    return Work(runs=planned.runs, expected_s=expected_s, share=share, current=current)


def _arms(scenario: Scenario, names: list[str] | None) -> Scenario:
    """Select arms; the changes of a single one become part of the scenario."""
    if not names:
        return scenario
    chosen = [arm for name in dict.fromkeys(names) for arm in only(scenario, name).arms]
    if not chosen:
        # Its only arm has no changes.
        return scenario
    scenario = scenario.replace(arms=chosen)
    return without_arms(scenario) if len(chosen) == 1 else scenario


def _announced(
    planned: PreparedSweep, estimate: dict[str, Any], processors: tuple[int | None, str]
) -> str:
    """Say how long the sweep will take, before it begins."""
    bound = "" if planned.until is None else f", at most {planned.most} per point and arm"
    count, name = processors
    unit = " of CPU time" if count is None else ""
    return (
        f"{counted(len(planned.points), 'point')}, {counted(planned.runs, 'run')}{bound}; "
        f"{session.cpu_time(estimate['cpu_s'] / (count or 1))}{unit} {name}"
    )


def _describe(planned: PreparedSweep, estimate: dict[str, Any], *, jobs: int, as_json: bool) -> int:
    """Print the points of a sweep and the estimate."""
    estimate = {**estimate, "saved_bytes": storage.expected_bytes(planned.runs)}
    if as_json:
        points = [dict(point.values) for point in planned.points]
        document = {**planned.manifest(complete=False), "points": points, "estimate": estimate}
        print(js.dumps(document, indent=2))
        return 0
    sweep_tables.show_points(planned)
    arms = planned.scenario.checked.arms
    bound = "" if planned.until is None else f" at first, at most {planned.most} per point and arm"
    print(
        f"{counted(len(planned.points), 'point')}, {counted(len(arms), 'arm')}, "
        f"{counted(planned.runs, 'run')}{bound} of {planned.scenario.checked.duration_s:g} s"
    )
    print(
        f"estimate: {session.cpu_time(estimate['cpu_s'])} of CPU time, "
        f"{session.cpu_time(estimate['cpu_s'] / min(jobs, planned.runs))} on "
        f"{counted(jobs, 'processor')}; at most "
        f"{session.rounded(estimate['peak_memory_bytes'] / 1e6):,} MB of memory; about "
        f"{session.rounded(estimate['saved_bytes'] / 1e3):,} kB in --out"
    )
    return 0
