"""``sojourn sweep``: run a scenario at many points of its parameters."""

import bisect
import itertools
import json as js
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.arguments.common import MAX_REPLICATIONS
from sojourn.cli import expecting, places, session, signals, spaces, stored, sweep_tables
from sojourn.cli.options import (
    Change,
    Expect,
    Jobs,
    Json,
    MaxMemory,
    Replications,
    ReportFile,
    ResumeAccepted,
    Seed,
    path,
    within,
)
from sojourn.cli.pipes import tolerated
from sojourn.cli.places import On, Store
from sojourn.cli.progress import RunProgress, Work, progress_bar
from sojourn.cli.run import only
from sojourn.cli.spaces import Link, Origin, QueueOption, Rtt, ScenarioOrPreset, Where, without_arms
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.places import opened, place, store_of
from sojourn.expectations.judging import failed
from sojourn.result import derived_files
from sojourn.result.formatting import counted
from sojourn.result.naming import check_possible, queued_links
from sojourn.scenario import Scenario
from sojourn.sweeps import SweepInterrupted, SweepResult, storage
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import Plan, execute
from sojourn.sweeps.table import sweep_table


def sweep(
    *,
    file: ScenarioOrPreset,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="PATH=VALUES",
            help="Values of a parameter: 1ms,5ms,20ms, linspace(low,high,count), "
            "logspace(low,high,count), range(low,high,step); with --sample uniform(low,high), "
            "loguniform(low,high), integers(low,high). * in a path stands for all links. "
            "PATH,PATH=10mbit/1mbit,9mbit/9mbit changes two together; repeatable.",
        ),
    ] = None,
    where: Where = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:COUNT",
            help="Draw samples from the ranges: lhs:64 (Latin hypercube) or sobol:64.",
        ),
    ] = None,
    change: Change = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this arm of the scenario; repeatable."),
    ] = None,
    link: Link = None,
    rtt: Rtt = None,
    queue: QueueOption = None,
    replications: Replications = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="PRECISION",
            help="Add replications to a point until the 95 % interval of a metric is narrow "
            "enough, such as 'ping_ms_p99 ±5 %'; +- may replace ±.",
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            callback=within("--most", 1, MAX_REPLICATIONS),
            help=f"The most replications per point with --until, up to {MAX_REPLICATIONS}.",
        ),
    ] = None,
    seed: Seed = None,
    jobs: Jobs = None,
    on: On = None,
    shared: Store = None,
    max_memory: MaxMemory = None,
    expect: Expect = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Print only this metric; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=path,
            help="Directory for sweep.json, runs.parquet and points.parquet; created if needed.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace another sweep in the output directory.")
    ] = False,
    report: ReportFile = None,
    json: Json = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Print all metrics and all points.")
    ] = False,
    resume: ResumeAccepted = False,  # noqa: ARG001 - stored runs are always reused
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the points and estimate time and memory.")
    ] = False,
) -> int:
    """Run a scenario file, or a preset such as rrul_be, at many points of its parameters."""
    where_ = place(on)
    store = store_of(where_, shared)
    origin = Origin(file=file, link=link, rtt=rtt, queue=queue, change=change, seed=seed)
    scenario, tables = origin.read()
    scenario = _arms(scenario, arm)
    table = sweep_table(tables.get("sweep", {}))
    expected = expecting.all_expectations(expect, tables, groups=False)
    given: dict[str, Any] = {
        "where": tuple(where) if where else None,
        "sample": sample,
        "replications": replications,
        "until": until,
        "most": most,
    }
    given = {name: value for name, value in given.items() if value is not None}
    planned = replace(
        table,
        parameters=spaces.parameters(parameter, table.parameters, "sweep"),
        keys=table.keys - given.keys(),
        **given,
    ).plan(scenario)
    links = queued_links(scenario.checked, [point.changes for point in planned.points])
    for name in metric or ():
        check_possible(name, "--metric", links)
    spaces.check_changes(change, planned.points[0].changes, "sweep")
    expecting.check_names(expected, scenario, planned)
    _core.check_backend(planned.batches[0].scenario, where_.backend)
    if store is not None:
        from sojourn.execute.shared import keys  # noqa: PLC0415 - slow to import, and seldom needed

        # Before a dry run: the runs of some backends cannot be shared.
        keys(planned.batches[0].scenario, where_.backend)
    estimate = planned.estimate(jobs=jobs, max_memory=max_memory)
    if dry_run:
        concurrent = jobs_at_once(jobs, where_.backend)
        return _describe(planned, estimate, jobs=concurrent, as_json=json)
    if out is not None:
        storage.LAYOUT.check(out, planned.manifest(complete=False), force=force)
    scenarios = [batch.scenario for batch in planned.batches]
    local = places.row_store(where_.backend)
    processors = places.processors(on, where_, jobs)
    with (
        places.announced(shared),
        derived_files.claimed(report),
        opened(scenarios, where_, store=store, local=local, jobs=jobs) as at,
    ):
        session.say(_announced(planned, estimate, processors))
        execution = Execution(
            replications=planned.replications,
            executor=at.executor,
            until=planned.until,
            backend=where_.backend,
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


def executed(planned: Plan, execution: Execution, jobs: int | None) -> tuple[SweepResult, bool]:
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
def _reported(planned: Plan, execution: Execution, jobs: int | None) -> Iterator[None]:
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


def _work(planned: Plan, jobs: int | None) -> Work:
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


def _announced(planned: Plan, estimate: dict[str, Any], processors: tuple[int | None, str]) -> str:
    """Say how long the sweep will take, before it begins."""
    bound = "" if planned.until is None else f", at most {planned.most} per point and arm"
    count, name = processors
    unit = " of CPU time" if count is None else ""
    return (
        f"{counted(len(planned.points), 'point')}, {counted(planned.runs, 'run')}{bound}; "
        f"{session.cpu_time(estimate['cpu_s'] / (count or 1))}{unit} {name}"
    )


def _describe(planned: Plan, estimate: dict[str, Any], *, jobs: int, as_json: bool) -> int:
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
