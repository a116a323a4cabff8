"""``sojourn tune``, ``sensitivity`` and ``adversary``: search among the points of a scenario."""

import json as js
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from sojourn import _core
from sojourn.arguments import Argument, Plan
from sojourn.arguments.common import OUTPUT, Force, Json
from sojourn.cli import continued, process, spaces
from sojourn.cli import run as running
from sojourn.cli.options import Change, DryRun, Out
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say, tolerated
from sojourn.cli.progress import Work, progress_bar
from sojourn.cli.spaces import Line, Origin, ScenarioOrTraffic
from sojourn.execute.executor import ExecutionPlan
from sojourn.execute.shared import keys
from sojourn.execute.targets import store_of, target
from sojourn.presentation.model import Table
from sojourn.presentation.terminal import print_note, print_table
from sojourn.queues.queue_file import short, toml_with_files
from sojourn.result.formatting import counted, decimals
from sojourn.search import adversary as adversaries
from sojourn.search import objectives
from sojourn.search import sensitivity as analyses
from sojourn.search import tune as tuning
from sojourn.search.adversary import AdversaryPlan, AdversaryResult
from sojourn.search.plan import PreparedSearch
from sojourn.search.runner import Runner, opened
from sojourn.search.search_result import SearchResult
from sojourn.search.sensitivity import SensitivityPlan, SensitivityResult
from sojourn.search.tune import TunePlan, TuneResult
from sojourn.sweeps import SweepInterrupted

Planned = TypeVar("Planned", bound=PreparedSearch)
Found = TypeVar("Found", bound=SearchResult)


@dataclass(frozen=True, kw_only=True)
class SearchOutput(Plan):
    """What is done with the result of a search."""

    out: Out = None
    force: Force = False
    json: Json = False
    dry_run: DryRun = False


def _conduct(
    plan: ExecutionPlan,
    planned: Planned,
    execute: Callable[[Planned, Runner], Found],
    *,
    kind: type[Found],
    size: str,
    output: SearchOutput,
    show: Callable[[Found], object],
    document: Callable[[Found], dict[str, Any]],
    save: Callable[[Found], object] | None = None,
) -> int:
    """Execute a search, save its result and print it."""
    at = target(plan.on)
    _core.check_backend(planned.scenario.checked, at.backend)
    if store_of(at, plan.shared) is not None:
        # Before a dry run: the runs of some backends cannot be shared.
        keys(planned.scenario.checked, at.backend)
    if output.out is not None:
        kind.check(output.out, planned.document(), force=output.force)
    if output.dry_run:
        print(f"{size}, at most {counted(planned.runs, 'run')}")
        return 0
    result = _executed(plan, planned, execute, size=size)
    if result is None:
        return process.exit_code()
    if output.out is not None:
        result.save(output.out, force=output.force)
    if save is not None:
        save(result)
    with tolerated():
        if output.json:
            print(js.dumps(document(result), indent=2))
        else:
            show(result)
    if output.out is not None:
        say(f"saved result to {output.out}")
    return 0


def _executed(
    plan: ExecutionPlan,
    planned: Planned,
    execute: Callable[[Planned, Runner], Found],
    *,
    size: str,
) -> Found | None:
    """Execute a search, show its progress and store its runs; None if a signal ended it."""
    at = target(plan.on)
    processors = continued.processors(plan.on, at, plan.jobs)[1]
    duration_s = planned.scenario.checked.duration_s
    with (
        continued.announced(plan.shared),
        opened(
            planned.scenario,
            at,
            store=store_of(at, plan.shared),
            local=continued.row_store(at.backend, fresh=plan.fresh),
            jobs=plan.jobs,
            fresh=plan.fresh,
            max_memory=plan.max_memory,
        ) as runner,
    ):
        runs = counted(planned.runs, "run")
        say(f"{size}: at most {runs} of {duration_s:g} s {processors}")
        result = _shown(planned, execute, runner)
    for text in runner.warnings:
        say(f"warning: {text}")
    if result is None:
        done = counted(runner.finished, "run")
        say(f"interrupted: {done} finished; {_continue(runner)}")
    elif runner.reused:
        runs = f"{counted(runner.reused, 'run')} of {runner.finished}"
        say(f"{runs} were stored; {continued.FRESH} repeats them")
    return result


def _shown(
    planned: Planned, execute: Callable[[Planned, Runner], Found], runner: Runner
) -> Found | None:
    """Execute a search with a progress bar; None if a signal ended it."""
    work = Work(runs=planned.runs, current=lambda _: _pruned(runner))
    with progress_bar(work) as shown:

        def progress(finished: int, total: int) -> None:
            done = counted(finished, "run")
            text = f"interrupted: {done} finished; {_continue(runner)}"
            process.on_exit(_core.printable(text), patient=False)
            shown(finished, total)

        runner.progress = progress
        try:
            return execute(planned, runner)
        except SweepInterrupted:
            return None


def _pruned(runner: Runner) -> str:
    count = runner.pruned
    return f"{counted(count, 'trial')} pruned" if count else ""


def _continue(runner: Runner) -> str:
    if runner.store is None:
        return "they are not stored"
    return f"to continue: {continued.continuation()}"


def _show_states(result: TuneResult | AdversaryResult, unmeasured: str) -> None:
    """Print how many trials were pruned or failed."""
    states = result.trials["state"].to_list()
    of_all = f"of {counted(len(states), 'trial')}"
    if pruned := states.count("pruned"):
        print_note(
            f"{pruned} {of_all} were pruned because they do not meet --where; they have no runs"
        )
    if failed := states.count("failed"):
        reason = next(iter(result.manifest["invalid"]), unmeasured)
        print_note(f"{failed} {of_all} failed: {reason}")


def estimate(mean: float | None, low: float | None, high: float | None) -> str:
    """Write a mean with its interval.

    Examples
    --------
    >>> estimate(9.123, 9.0, 9.2), estimate(None, None, None)
    ('9.12 [9.00, 9.20]', '–')
    """
    if mean is None:
        return "–"
    if low is None or high is None:
        return f"{mean:.4g}"
    digits = decimals((high - low) / 2) if high > low else 3
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


@command(
    TunePlan,
    table="tune",
    rare=("preset", "rtt", "replications", "final_replications", "dry_run"),
)
def tune(
    given: Given[TunePlan],
    *,
    file: ScenarioOrTraffic,
    change: Change = (),
    line: Line,
    output: SearchOutput,
) -> int:
    r"""Find the parameter values that optimise one or several objectives.

    Options that are not given take their values from the table \[tune] of the file.
    """
    origin = Origin(file=file, line=line, change=change)
    scenario, tables = origin.read()
    plan = given.plan(tables, scenario=scenario)
    planned = tuning.prepared(plan)
    return _conduct(
        plan,
        planned,
        tuning.execute,
        kind=TuneResult,
        size=f"tune: {counted(planned.trials, 'trial')}",
        output=output,
        show=lambda result: _show_tune(result, _command(result, origin, plan.arm)),
        document=_document_of_tune,
    )


def _show_tune(result: TuneResult, command: str | None) -> None:
    """Print the proposal, the Pareto front and the importance of the parameters."""
    _show_proposal(result, command)
    name = result.scenario.checked.name
    rows = []
    for row in result.front.iter_rows(named=True):
        number = row["trial"]
        mark = "proposed" if number == result.best else "dominated" if row["dominated"] else ""
        rows.append(
            [
                "original" if number is None else f"{number}",
                *("" if number is None else short(f"{row[path]}") for path in result.parameters),
                mark,
                *(_estimate(row, one) for one in result.objectives),
                *(
                    "–" if number is None else _estimate(row, f"{one}_change")
                    for one in result.objectives
                ),
            ]
        )
    changes = [f"change of {one.split(' ', 1)[1]}" for one in result.objectives]
    columns = ["trial", *result.parameters, "note", *result.objectives, *changes]
    title = f"{name}: Pareto front, mean [95 % interval] with new seeds"
    print_table(Table(columns, rows, title, words=2 + len(result.parameters)))
    table = [
        [row["objective"], row["parameter"], estimate(row["importance"], row["low"], row["high"])]
        for row in result.importance.iter_rows(named=True)
    ]
    title = "importance of the parameters (PED-ANOVA), share [95 % interval]"
    print_table(Table(["objective", "parameter", "importance"], table, title, words=2))
    _show_states(result, "an objective was not measured")


def _show_proposal(result: TuneResult, command: str | None) -> None:
    """Print the proposed values with their lines to copy."""
    if result.best is None:
        return
    front = result.front.to_dicts()
    (best,) = (row for row in front if row["trial"] == result.best)
    original = next((row for row in front if row["trial"] is None), None)
    values = ", ".join(f"{path}={short(best[path])}" for path in result.parameters)
    objectives = []
    for one in result.objectives:
        before = "" if original is None else f" instead of {_estimate(original, one)}"
        objectives.append(f"{one}: {_estimate(best, one)}{before}")
    print_note(f"Proposed: {values} (trial {result.best}); {'; '.join(objectives)}.")
    found = result.settings()
    for reason in found.not_in_tc:
        print_note(f"no line for tc: {short(reason)}")
    for line in filter(None, [*found.tc, command]):
        # Not wrapped, so that it can be copied.
        print(f"  {line}")
    print()


def _command(result: TuneResult, origin: Origin, arm: str | None) -> str | None:
    """Return the command that runs the scenario with the proposed settings."""
    if result.best is None:
        return None
    found = result.settings()
    given = [word for one in origin.changes_beside(found.changes) for word in ("-s", one)]
    if arm is None and not origin.is_traffic:
        return f"{shlex.join(['sojourn', 'run', *origin.words(), *given])} {found.options}"
    # `run` takes no traffic, and applies -s before the changes of the arm.
    of_arm = [] if arm is None else ["--arm", arm]
    words = ["sojourn", "sweep", *origin.words(), *of_arm, *given]
    return f"{shlex.join(words)} {found.written('-p')}"


def _estimate(row: dict[str, Any], name: str) -> str:
    return estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _document_of_tune(result: TuneResult) -> dict[str, Any]:
    keys = (
        "sojourn",
        "parameters",
        "objectives",
        "where",
        "seed",
        "seed_of_intervals",
        "best",
        "invalid",
    )
    return {
        **{key: result.manifest[key] for key in keys},
        "settings": {
            number: result.settings(int(number)).document() for number in result.manifest["points"]
        },
        "front": result.front.to_dicts(),
        "importance": result.importance.to_dicts(),
        "trials": result.trials.to_dicts(),
    }


_SHOWN = {
    "sobol": (("first", "first order"), ("total", "total order")),
    "morris": (("mu_star", "μ*"), ("mu", "μ"), ("sigma", "σ")),
}


@command(SensitivityPlan, rare=("preset", "rtt", "replications", "dry_run"))
def sensitivity(
    given: Given[SensitivityPlan],
    *,
    file: ScenarioOrTraffic,
    change: Change = (),
    line: Line,
    output: SearchOutput,
) -> int:
    """Compute how much each parameter affects metrics."""
    origin = Origin(file=file, line=line, change=change)
    scenario, tables = origin.read()
    plan = given.plan(tables, scenario=scenario)
    planned = analyses.prepared(plan)
    spaces.check_changes(change, planned.changed, "analysis")
    return _conduct(
        plan,
        planned,
        analyses.execute,
        kind=SensitivityResult,
        size=f"sensitivity: {counted(planned.points, 'point')}",
        output=output,
        show=_show_sensitivity,
        document=_document_of_sensitivity,
    )


def _show_sensitivity(result: SensitivityResult) -> None:
    shown = _SHOWN[result.method]
    name = result.scenario.checked.name
    for noise in result.noise.iter_rows(named=True):
        metric = noise["metric"]
        of_metric = result.indices.filter(result.indices["metric"] == metric)
        rows = [
            [row["parameter"], *(_index(row, index) for index, _ in shown)]
            for row in of_metric.iter_rows(named=True)
        ]
        columns = ["parameter", *(heading for _, heading in shown)]
        print_table(Table(columns, rows, f"{name}: {metric}, index [95 % interval]"))
        spread = f"{metric}: mean {noise['mean']:.4g}, standard deviation between points "
        spread += f"{noise['deviation']:.3g}"
        if noise["noise"] is None:
            print_note(f"{spread}; noise unknown; expected --replications of at least 2")
        else:
            print_note(f"{spread}; about {100 * noise['noise']:.2g} % of their variance is noise")
        print()


def _index(row: dict[str, Any], name: str) -> str:
    return estimate(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))


def _document_of_sensitivity(result: SensitivityResult) -> dict[str, Any]:
    return {
        **{key: value for key, value in result.manifest.items() if key != "scenario"},
        "indices": result.indices.to_dicts(),
        "noise": result.noise.to_dicts(),
    }


@command(AdversaryPlan, rare=("replications", "final_replications", "dry_run"))
def adversary(
    given: Given[AdversaryPlan],
    *,
    file: Annotated[
        Path | None,
        Argument(
            help="Scenario file with both arms; by default a built-in scenario, whose arms are "
            "queues of the downlink.",
            option="FILE",
        ),
    ] = None,
    worst: Annotated[
        Path | None,
        Argument(
            help="Write the simplified scenario to this file.", metavar="FILE", heading=OUTPUT
        ),
    ] = None,
    change: Change = (),
    output: SearchOutput,
) -> int:
    """Find the scenario in which an arm loses most against another, and simplify it."""
    if file is None and change:
        message = f"-s {change[0]}: requires FILE; expected a scenario file, or -p instead of -s"
        raise _core.ScenarioError(message)
    scenario = None
    if file is not None:
        if spaces.names_traffic(file):
            message = (
                f"{file}: adversary takes no traffic; expected a scenario file with both arms, or "
                "no FILE"
            )
            raise _core.ScenarioError(message)
        scenario, _ = running.opened(file, change)
    plan = given.plan(scenario=scenario)
    planned = adversaries.prepared(plan)
    if worst is not None:
        _check(worst, force=output.force)
    words = shlex.join(["sojourn", *sys.argv[1:]])
    written: list[Path] = []

    def write(result: AdversaryResult) -> None:
        if worst is not None:
            result.write(worst)
            written.append(worst)

    code = _conduct(
        plan,
        planned,
        lambda planned, runner: adversaries.execute(planned, runner, command=words),
        kind=AdversaryResult,
        size=f"adversary: {counted(planned.trials, 'trial')}",
        output=output,
        show=_show_adversary,
        document=_document_of_adversary,
        save=write,
    )
    for saved in written:
        say(f"saved scenario to {saved}")
    return code


def _check(worst: Path, *, force: bool) -> None:
    """Check that the scenario may be written."""
    if worst.exists() and not force:
        message = f"--worst {worst}: exists; expected --force or another file"
        raise _core.ResultError(message)
    problem = None
    if worst.is_symlink() or (worst.exists() and not worst.is_file()):
        problem = "it exists and is not a regular file"
    elif not worst.parent.is_dir():
        problem = f"{worst.parent} is not a directory"
    else:
        try:
            with tempfile.TemporaryFile(dir=worst.parent):
                pass
        except OSError as error:
            problem = f"{worst.parent}: {error.strerror}"
    if problem is not None:
        message = f"cannot write {worst}: {problem}"
        raise _core.ResultError(message)


def _document_of_adversary(result: AdversaryResult) -> dict[str, Any]:
    worst = result.worst
    return {
        **{key: value for key, value in result.manifest.items() if key != "scenario"},
        "regret": list(result.regret),
        "found": [worst.found, worst.found_low, worst.found_high],
        "worst": js.loads(worst.scenario.checked.to_json()),
    }


def _show_adversary(result: AdversaryResult) -> None:
    worst = result.worst
    rows = [
        ["as found", estimate(worst.found, worst.found_low, worst.found_high)],
        ["simplified", estimate(*result.regret)],
    ]
    compared = f"{worst.arm} against {worst.against}: regret in {worst.score}"
    title = f"{compared}, mean [95 % interval] with new seeds"
    print_table(Table(["scenario", "regret"], rows, title))
    if worst.score == objectives.SCORE:
        factor = objectives.times(worst.regret)
        power = f"the power (goodput / ping p99) of {worst.arm}"
        print_note(f"{power} is smaller by a factor of {factor}")
    _show_states(result, "the score was not measured")
    print(toml_with_files(worst.scenario.to_toml()))
