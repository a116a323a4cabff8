"""Options and execution shared by the commands ``tune``, ``sensitivity`` and ``adversary``."""

import json as js
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sojourn import _core
from sojourn.cli import places, session, signals, stored
from sojourn.cli.options import path
from sojourn.cli.pipes import tolerated
from sojourn.cli.progress import Work, progress_bar
from sojourn.cli.tables import print_note
from sojourn.execute.places import Place, place, store_of
from sojourn.execute.shared import keys
from sojourn.result.formatting import counted, decimals
from sojourn.search import AdversaryResult, TuneResult
from sojourn.search.laboratory import Laboratory, opened
from sojourn.search.planned import Search
from sojourn.search.search_result import SearchResult
from sojourn.sweeps import SweepInterrupted

Planned = TypeVar("Planned", bound=Search)
Found = TypeVar("Found", bound=SearchResult)

Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="PATH=VALUES",
        help="Values of a parameter: uniform(low,high), loguniform(low,high), integers(low,high), "
        "or a list such as cubic,reno, whose values have no order. * in a path stands for all "
        "links; repeatable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="PATH", parser=path, help="Directory for the result; created if needed."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace another result in the output directory.")
]
Arm = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Arm of the scenario; required if it has several."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the arguments and count the runs; run nothing.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that all searches share, apart from those that describe the search."""

    jobs: int | None
    on: str | None
    store: str | None
    max_memory: str | None
    out: Path | None
    force: bool
    json: bool
    dry_run: bool

    @property
    def place(self) -> Place:
        """Where the runs are executed."""
        return place(self.on)

    @property
    def shared(self) -> str | None:
        """The shared store."""
        return store_of(self.place, self.store)


def conduct(
    planned: Planned,
    execute: Callable[[Planned, Laboratory], Found],
    *,
    kind: type[Found],
    size: str,
    options: Options,
    show: Callable[[Found], object],
    document: Callable[[Found], dict[str, Any]],
    save: Callable[[Found], object] | None = None,
) -> int:
    """Execute a search, save its result and print it."""
    _core.check_backend(planned.scenario.checked, options.place.backend)
    shared = options.shared
    if shared is not None:
        # Before a dry run: the runs of some backends cannot be shared.
        keys(planned.scenario.checked, options.place.backend)
    if options.out is not None:
        kind.check(options.out, planned.document(), force=options.force)
    if options.dry_run:
        print(f"{size}, at most {counted(planned.runs, 'run')}")
        return 0
    result = _executed(planned, execute, size=size, shared=shared, options=options)
    if result is None:
        return signals.exit_code()
    if options.out is not None:
        result.save(options.out, force=options.force)
    if save is not None:
        save(result)
    with tolerated():
        if options.json:
            print(js.dumps(document(result), indent=2))
        else:
            show(result)
    if options.out is not None:
        session.say(f"saved result to {options.out}")
    return 0


def _executed(
    planned: Planned,
    execute: Callable[[Planned, Laboratory], Found],
    *,
    size: str,
    shared: str | None,
    options: Options,
) -> Found | None:
    """Execute a search, show its progress and store its runs; None if a signal ended it."""
    at = options.place
    processors = places.processors(options.on, at, options.jobs)[1]
    duration_s = planned.scenario.checked.duration_s
    with (
        places.announced(options.store),
        opened(
            planned.scenario,
            at,
            store=shared,
            local=places.row_store(at.backend),
            jobs=options.jobs,
            max_memory=options.max_memory,
        ) as laboratory,
    ):
        runs = counted(planned.runs, "run")
        session.say(f"{size}: at most {runs} of {duration_s:g} s {processors}")
        result = _shown(planned, execute, laboratory)
    for text in laboratory.warnings:
        session.say(f"warning: {text}")
    if result is None:
        done = counted(laboratory.finished, "run")
        session.say(f"interrupted: {done} finished; {_continue(laboratory)}")
    elif laboratory.reused:
        session.say(f"{counted(laboratory.reused, 'run')} of {laboratory.finished} were stored")
    return result


def _shown(
    planned: Planned, execute: Callable[[Planned, Laboratory], Found], laboratory: Laboratory
) -> Found | None:
    """Execute a search with a progress bar; None if a signal ended it."""
    work = Work(runs=planned.runs, current=lambda _: _pruned(laboratory))
    with progress_bar(work) as shown:

        def progress(finished: int, total: int) -> None:
            done = counted(finished, "run")
            text = f"interrupted: {done} finished; {_continue(laboratory)}"
            signals.on_exit(_core.printable(text), patient=False)
            shown(finished, total)

        laboratory.progress = progress
        try:
            return execute(planned, laboratory)
        except SweepInterrupted:
            return None


def _pruned(laboratory: Laboratory) -> str:
    count = laboratory.pruned
    return f"{counted(count, 'trial')} pruned" if count else ""


def _continue(laboratory: Laboratory) -> str:
    if laboratory.store is None:
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
