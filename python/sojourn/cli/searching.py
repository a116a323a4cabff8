"""Options and execution shared by the commands ``tune``, ``sensitivity`` and ``adversary``."""

import json as js
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from sojourn import _core
from sojourn.arguments import Argument, Plan
from sojourn.arguments.common import EXECUTION, OUTPUT, Force, Json
from sojourn.cli import places, session, signals, stored
from sojourn.cli.pipes import tolerated
from sojourn.cli.progress import Work, progress_bar
from sojourn.cli.tables import print_note
from sojourn.execute.places import place, store_of
from sojourn.execute.plan import ExecutionPlan
from sojourn.execute.shared import keys
from sojourn.result.formatting import counted, decimals
from sojourn.search.adversary import AdversaryResult
from sojourn.search.plan import PreparedSearch
from sojourn.search.runner import Runner, opened
from sojourn.search.search_result import SearchResult
from sojourn.search.tune import TuneResult
from sojourn.sweeps import SweepInterrupted

Planned = TypeVar("Planned", bound=PreparedSearch)
Found = TypeVar("Found", bound=SearchResult)


@dataclass(frozen=True, kw_only=True)
class Output(Plan):
    """What is done with the result of a search."""

    out: Annotated[
        Path | None,
        Argument(
            help="Directory for the result; created if needed.", metavar="DIR", heading=OUTPUT
        ),
    ] = None
    force: Force = False
    json: Json = False
    dry_run: Annotated[
        bool,
        Argument(
            help="Check the input and estimate runs, time and memory; run nothing.",
            heading=EXECUTION,
        ),
    ] = False


def conduct(
    plan: ExecutionPlan,
    planned: Planned,
    execute: Callable[[Planned, Runner], Found],
    *,
    kind: type[Found],
    size: str,
    output: Output,
    show: Callable[[Found], object],
    document: Callable[[Found], dict[str, Any]],
    save: Callable[[Found], object] | None = None,
) -> int:
    """Execute a search, save its result and print it."""
    at = place(plan.on)
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
        return signals.exit_code()
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
        session.say(f"saved result to {output.out}")
    return 0


def _executed(
    plan: ExecutionPlan,
    planned: Planned,
    execute: Callable[[Planned, Runner], Found],
    *,
    size: str,
) -> Found | None:
    """Execute a search, show its progress and store its runs; None if a signal ended it."""
    at = place(plan.on)
    processors = places.processors(plan.on, at, plan.jobs)[1]
    duration_s = planned.scenario.checked.duration_s
    with (
        places.announced(plan.shared),
        opened(
            planned.scenario,
            at,
            store=store_of(at, plan.shared),
            local=places.row_store(at.backend),
            jobs=plan.jobs,
            max_memory=plan.max_memory,
        ) as runner,
    ):
        runs = counted(planned.runs, "run")
        session.say(f"{size}: at most {runs} of {duration_s:g} s {processors}")
        result = _shown(planned, execute, runner)
    for text in runner.warnings:
        session.say(f"warning: {text}")
    if result is None:
        done = counted(runner.finished, "run")
        session.say(f"interrupted: {done} finished; {_continue(runner)}")
    elif runner.reused:
        session.say(f"{counted(runner.reused, 'run')} of {runner.finished} were stored")
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
            signals.on_exit(_core.printable(text), patient=False)
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
    return f"to continue: {stored.continuation()}"


def show_states(result: TuneResult | AdversaryResult, unmeasured: str) -> None:
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
