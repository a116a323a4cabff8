"""Options and execution shared by the commands ``tune``, ``sensitivity`` and ``adversary``."""

import json as js
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sojourn import _core
from sojourn.cli import session, signals, stored
from sojourn.cli.options import path
from sojourn.cli.pipes import tolerated
from sojourn.cli.progress import Work, progress_bar
from sojourn.cli.sweep import row_cache
from sojourn.result.formatting import counted, decimals
from sojourn.search.laboratory import Laboratory
from sojourn.search.planned import Search
from sojourn.search.search_result import SearchResult
from sojourn.sweeps import SweepInterrupted
from sojourn.sweeps.executors import jobs_at_once
from sojourn.sweeps.parameters import Parameter
from sojourn.sweeps.parameters import parameter as read_parameter

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


def parameters(texts: Sequence[str] | None) -> list[Parameter]:
    """Read the values of ``-p``.

    Raises
    ------
    ScenarioError
        One is not valid.
    """
    session.warn_of_bytes(*(texts or ()))
    return [read_parameter(text) for text in texts or ()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that all searches share, apart from those that describe the search.

    Parameters
    ----------
    jobs, backend, max_memory, out, force, json, dry_run
        As on the command line.
    """

    jobs: int | None
    backend: str | None
    max_memory: str | None
    out: Path | None
    force: bool
    json: bool
    dry_run: bool


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
    """Execute a search, save its result and print it.

    Parameters
    ----------
    planned
        The search.
    execute
        Executes it.
    kind
        The class of its result.
    size
        The command and the number of trials or points, such as ``"tune: 100 trials"``.
    options
        The options of the command.
    show
        Prints the result as tables.
    document
        Returns the result for ``--json``.
    save
        Writes further files.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    ResultError
        The result cannot be saved.
    ScenarioError
        The search failed.
    """
    if options.out is not None:
        kind.check(options.out, planned.document(), force=options.force)
    if options.dry_run:
        print(f"{size}, at most {counted(planned.runs, 'run')}")
        return 0
    result = _executed(planned, execute, size=size, options=options)
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
    options: Options,
) -> Found | None:
    """Execute a search, show its progress and store its runs; None if a signal ended it."""
    scenario = planned.scenario.checked
    _core.check_backend(scenario, options.backend)
    processors = jobs_at_once(options.jobs, options.backend)
    session.say(
        f"{size}: at most {counted(planned.runs, 'run')} of {scenario.duration_s:g} s on "
        f"{counted(processors, 'processor')}"
    )
    laboratory = Laboratory(
        jobs=options.jobs,
        backend=options.backend,
        max_memory=options.max_memory,
        cache=row_cache(options.backend),
    )
    with progress_bar(Work(runs=planned.runs)) as shown:

        def progress(finished: int, total: int) -> None:
            done = counted(finished, "run")
            text = f"interrupted: {done} finished; {_continue(laboratory)}"
            signals.on_exit(_core.printable(text), patient=False)
            shown(finished, total)

        laboratory.progress = progress
        try:
            result = execute(planned, laboratory)
        except SweepInterrupted:
            session.say(
                f"interrupted: {counted(laboratory.finished, 'run')} finished; "
                f"{_continue(laboratory)}"
            )
            return None
    if laboratory.failure is not None:
        session.say(f"warning: not all finished runs could be stored: {laboratory.failure}")
    if laboratory.reused:
        session.say(f"{counted(laboratory.reused, 'run')} of {laboratory.finished} were stored")
    return result


def _continue(laboratory: Laboratory) -> str:
    if laboratory.cache is None:
        return "they are not stored"
    return f"to continue: {stored.continuation()}"


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
    places = decimals((high - low) / 2) if high > low else 3
    return f"{mean:.{places}f} [{low:.{places}f}, {high:.{places}f}]"
