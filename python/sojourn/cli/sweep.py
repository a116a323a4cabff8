"""``sojourn sweep``: run a scenario with many combinations of parameter values."""

import bisect
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments import Argument
from sojourn.arguments.common import ARM, OUTPUT, SCENARIO, Force, Json
from sojourn.cli import continued, expecting, process, session, spaces
from sojourn.cli.options import Change, DryRun, Everything, Expect, Junit, ReportFile
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say, tolerated
from sojourn.cli.progress import RunProgress, Work, progress_bar
from sojourn.cli.run import only
from sojourn.cli.spaces import Line, Origin, ScenarioOrTraffic, without_arms
from sojourn.execute.executor import ExecutionPlan, jobs_at_once
from sojourn.execute.targets import Opened, opened, store_of, target
from sojourn.expectations.judging import Judgement, Suite, failed
from sojourn.presentation.model import Columns, Table, Text, text_table
from sojourn.presentation.terminal import print_note, print_table
from sojourn.report.answer import LATENCY
from sojourn.report.view import heading
from sojourn.result import budget, derived_files, formatting
from sojourn.result.catalogue import Metric
from sojourn.result.formatting import counted
from sojourn.result.naming import check_possible, described
from sojourn.scenario import Scenario
from sojourn.sweeps import SweepInterrupted, SweepResult, storage
from sojourn.sweeps.estimates import KEYS, main_metrics
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import PreparedSweep, SweepPlan, execute, prepared


@command(SweepPlan, table="sweep", rare=("preset", "rtt"))
def sweep(
    given: Given[SweepPlan],
    *,
    file: ScenarioOrTraffic,
    change: Change = (),
    arm: Annotated[Sequence[str], replace(ARM, heading=SCENARIO)] = (),
    line: Line,
    expect: Expect = (),
    junit_file: Junit = None,
    metric: Annotated[
        Sequence[str],
        Argument(help="Print only this metric.", metavar="METRIC", heading=OUTPUT),
    ] = (),
    out: Annotated[
        Path | None,
        Argument(
            help="Directory for sweep.json, runs.parquet and points.parquet; created if needed.",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
    everything: Everything = False,
    dry_run: DryRun = False,
) -> int:
    """Run a scenario, or traffic such as rrul_be, with many combinations of parameter values."""
    scenario, tables = Origin(file=file, line=line, change=change).read()
    plan = given.plan(tables, scenario=_arms(scenario, arm))
    where = target(plan.on)
    store = store_of(where, plan.shared)
    planned = prepared(plan, dry=dry_run)
    expected = expecting.all_expectations(expect, tables, groups=False)
    for name in metric:
        check_possible(name, planned.queued_links, place="--metric")
    spaces.check_changes(change, planned.points[0].changes, "sweep")
    expecting.check_names(expected, planned.scenario, planned)
    _core.check_backend(planned.first, where.backend)
    if store is not None:
        from sojourn.execute.shared import keys  # noqa: PLC0415 - slow to import, and seldom needed

        # Before a dry run: the runs of some backends cannot be shared.
        keys(planned.first, where.backend)
    estimate = planned.estimate(jobs=plan.jobs, max_memory=plan.max_memory, backend=where.backend)
    if dry_run:
        concurrent = jobs_at_once(plan.jobs, where.backend)
        return _describe(planned, estimate, jobs=concurrent, as_json=json)
    if out is not None:
        storage.LAYOUT.check(out, planned.manifest(complete=False), force=force)
    processors = continued.processors(plan.on, where, plan.jobs)
    with (
        derived_files.claimed(report),
        expecting.claimed(junit_file),
        execution_of(planned, plan) as (execution, at),
    ):
        say(_announced(planned, estimate, processors))
        began = time.monotonic()
        result, interrupted = executed(planned, execution, processors[0])
        if out is not None:
            # First: the steps below may fail.
            result.save(out, force=force)
        measured = expecting.of_sweep(result, planned) if expected and not interrupted else []
        judgements = expecting.judged(expected, measured)
        with tolerated():
            show(result, as_json=json, everything=everything, metrics=metric, judgements=judgements)
            if not json:
                expecting.show(judgements, everything=everything)
        _write(result, execution, out=out, report=report)
        suite = Suite(
            judgements=judgements, seed=planned.scenario.seed, elapsed_s=time.monotonic() - began
        )
        expecting.write(junit_file, {planned.scenario.checked.name: suite})
    for text in at.all_warnings(execution.failure):
        say(f"warning: {text}")
    if interrupted:
        finished = f"finished {result.runs.height} of {execution.total} runs"
        say(f"interrupted: {finished}; to continue: {continued.continuation()}")
        return process.exit_code()
    return expecting.FAILED if failed(judgements) else 0


@contextmanager
def execution_of(planned: PreparedSweep, plan: ExecutionPlan) -> Iterator[tuple[Execution, Opened]]:
    """Open where the runs of a sweep are executed, and their stores."""
    where = target(plan.on)
    with (
        continued.announced(plan.shared),
        opened(
            [group.scenario for group in planned.groups],
            where,
            store=store_of(where, plan.shared),
            local=continued.row_store(where.backend, fresh=plan.fresh),
            jobs=plan.jobs,
            fresh=plan.fresh,
        ) as at,
    ):
        yield (
            Execution(
                replications=planned.replications,
                executor=at.executor,
                until=planned.until,
                backend=where.backend,
                store=at.store,
                max_memory=plan.max_memory,
            ),
            at,
        )


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
        runs = f"{counted(execution.reused, 'run')} of {execution.finished}"
        say(f"{runs} were stored; {continued.FRESH} repeats them")
    if out is not None:
        say(f"saved sweep to {out}")
    if report is not None and not result.runs.is_empty():
        from sojourn.sweeps import page  # noqa: PLC0415 - slow to import, and often not needed

        page.write(result, report)
        say(f"wrote report to {report}")


@contextmanager
def _reported(planned: PreparedSweep, execution: Execution, jobs: int | None) -> Iterator[None]:
    """Show the progress of a sweep, and set the message for a signal that ends the command."""
    if execution.store is None:
        # Finished runs would be lost.
        process.on_exit("interrupted", patient=True)
    with progress_bar(_work(planned, jobs, execution.backend)) as progress:
        execution.progress = _SweepProgress(progress, execution)
        yield


class _SweepProgress:
    """Progress that also sets what is said if a signal ends the command."""

    def __init__(self, shown: RunProgress, execution: Execution) -> None:
        self._shown = shown
        self._execution = execution

    def __call__(self, finished: int, total: int) -> None:
        if self._execution.store is not None:
            continued.announce_stored(finished, total)
        self._shown.stored(self._execution.reused)
        self._shown(finished, total)


def _work(planned: PreparedSweep, jobs: int | None, backend: str | None) -> Work:
    """Describe the runs of a sweep: each group takes its estimated share of the time."""
    counts = [len(group.arms) * planned.replications for group in planned.groups]
    costs: list[float] = []
    for group in planned.groups:
        found = json.loads(_core.estimate(group.scenario, jobs=jobs))
        found |= budget.in_kernel(found, jobs=jobs, backend=backend)
        costs.append(found["cpu_s"] / group.most)
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
        group = bisect.bisect_right(ends, finished) - 1
        within = (finished - ends[group]) / counts[group]
        return (times[group] + within * costs[group]) / times[-1]

    def current(finished: int) -> str:
        group = bisect.bisect_right(ends, finished) - 1
        arms = planned.groups[group].arms
        shown = arms[(finished - ends[group]) % len(arms)]
        arm = f", {shown.arm}" if len(planned.scenario.checked.arms) > 1 else ""
        return f"{planned.points[shown.points[0]].label}{arm}"

    return Work(runs=planned.runs, expected_s=expected_s, share=share, current=current)


def _arms(scenario: Scenario, names: Sequence[str]) -> Scenario:
    """Select arms; the changes of a single one become part of the scenario."""
    if not names:
        return scenario
    scenario = only(scenario, names)
    return without_arms(scenario) if len(scenario.arms) == 1 else scenario


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
    runs = estimate["runs"]
    estimate = {**estimate, "saved_bytes": storage.expected_bytes(runs)}
    if as_json:
        points = [dict(point.values) for point in planned.points]
        manifest = planned.manifest(complete=False)
        manifest["max_replications"] = manifest.pop("most")
        document = {**_with_sampling(manifest), "points": points, "estimate": estimate}
        print(json.dumps(document, indent=2))
        return 0
    show_points(planned)
    arms = planned.scenario.checked.arms
    bound = "" if planned.until is None else f" at first, at most {planned.most} per point and arm"
    print(
        f"{counted(len(planned.points), 'point')}, {counted(len(arms), 'arm')}, "
        f"{counted(runs, 'run')}{bound} of {planned.scenario.checked.duration_s:g} s"
    )
    print(
        f"estimate: {session.cpu_time(estimate['cpu_s'])} of CPU time, "
        f"{session.cpu_time(estimate['cpu_s'] / min(jobs, runs))} on "
        f"{counted(jobs, 'processor')}; at most "
        f"{session.rounded(estimate['peak_memory_bytes'] / 1e6):,} MB of memory; about "
        f"{session.rounded(estimate['saved_bytes'] / 1e3):,} kB in --out"
    )
    return 0


# Rows that are printed without --all, and points of a sweep that is not executed.
MOST = 8
MAX_ROWS = 60


def show(
    result: SweepResult,
    *,
    as_json: bool,
    everything: bool,
    metrics: Sequence[str] | None,
    judgements: Sequence[Judgement] = (),
) -> None:
    """Print the points of a sweep with their metrics."""
    names = [result.column(name) for name in metrics] if metrics else result.metrics
    if as_json:
        expected = {"expectations": [one.document() for one in judgements]} if judgements else {}
        print(json.dumps({**document(result, names), **expected}, indent=2))
        return
    found = described(names) if metrics or everything else main_metrics(names)
    several = len(result.arms) > 1
    head = [*result.parameters, *(["arm"] if several else []), "n"]
    count = result.runs.select(KEYS).n_unique()
    shown = result.first_points(count if everything else MOST, [metric.column for metric in found])
    rows: list[list[Text]] = [
        [
            *(f"{row[path]}" for path in result.parameters),
            *([row["arm"]] if several else []),
            f"{row['n']}",
            *(formatting.of_columns(row, one) for one in found),
        ]
        for row in shown.iter_rows(named=True)
    ]
    if found and (sentence := _range(result, found)):
        print_note(sentence)
        print()
    title = f"{result.scenario.checked.name}: mean ± half of the 95 % interval"
    columns: Columns = [*head, *map(heading, found)]
    print_table(Table(columns, rows, title, words=len(head) - 1))
    if len(rows) < count:
        print_note(f"{count - len(rows)} more rows; --all prints them")


def _range(result: SweepResult, metrics: Sequence[Metric]) -> str:
    """Say where the main metric is least and most; empty if it has no two values."""
    metric = next((one for one in metrics if one.column == LATENCY), metrics[0])
    rows = [row for row in result.points.to_dicts() if row[metric.column] is not None]
    values = [of(rows, key=itemgetter(metric.column)) for of in (min, max)] if rows else []
    if len({row[metric.column] for row in values}) <= 1:
        return ""
    several = len(result.arms) > 1

    def place(row: dict[str, Any]) -> str:
        names = [f"{path}={row[path]}" for path in result.parameters]
        return ", ".join([*names, *([row["arm"]] if several else [])])

    least, most = (f"{formatting.of_columns(row, metric)} ({place(row)})" for row in values)
    unit = f" in {metric.unit}" if metric.unit else ""
    return f"{metric.label}{unit}: from {least} to {most}."


def show_points(planned: PreparedSweep) -> None:
    """Print the points of a sweep that was not executed."""
    paths = planned.space.paths
    rows = [[f"{point.values[path]}" for path in paths] for point in planned.points[:MAX_ROWS]]
    name = planned.scenario.checked.name
    print_table(text_table(paths, rows, f"{name}: points"))
    if len(rows) < len(planned.points):
        print_note(f"{len(planned.points) - len(rows)} more points; --json prints them")


def document(result: SweepResult, columns: Sequence[str]) -> dict[str, Any]:
    """Describe a sweep as JSON: each point with the estimates of its metrics."""
    points = [
        {
            "point": row["point"],
            "values": {path: row[path] for path in result.parameters},
            "arm": row["arm"],
            "n": row["n"],
            "metrics": {
                name: {"mean": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
                for name in columns
            },
        }
        for row in result.points.iter_rows(named=True)
    ]
    keys = ("sojourn", "scenario_sha256", "paths", "space", "until", "complete")
    return {**_with_sampling({key: result.manifest[key] for key in keys}), "points": points}


def _with_sampling(manifest: dict[str, Any]) -> dict[str, Any]:
    """Call the sampling of a manifest, in which it is ``sample``, as the argument."""
    space = dict(manifest["space"])
    space["sampling"] = space.pop("sample")
    return {**manifest, "space": space}
