"""Options and execution shared by the commands ``tune``, ``sensitivity`` and ``adversary``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sojourn import _core
from sojourn.cli import session, signals, stored
from sojourn.cli.options import path
from sojourn.cli.progress import Work, progress_bar
from sojourn.cli.sweep import row_cache
from sojourn.result.formatting import counted, decimals
from sojourn.search import saving
from sojourn.search.laboratory import Laboratory
from sojourn.sweeps import SweepInterrupted
from sojourn.sweeps.executors import jobs_at_once
from sojourn.sweeps.parameters import Parameter
from sojourn.sweeps.parameters import parameter as read_parameter

Found = TypeVar("Found")

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


def check_out(
    out: Path | None, kind: str, keys: Sequence[str], document: dict[str, Any], *, force: bool
) -> None:
    """Check that a search can be saved, before it runs.

    Parameters
    ----------
    out
        The directory; None if it is not to be saved.
    kind, keys
        The kind of search, and the keys that identify it.
    document
        Its manifest.
    force
        Whether another search may be replaced.

    Raises
    ------
    ResultError
        It cannot be saved there.
    """
    if out is not None:
        saving.check(out, kind, {key: document[key] for key in keys}, force=force)


def executed(
    search: Callable[[Laboratory], Found],
    *,
    runs: int,
    what: str,
    scenario: _core.Scenario,
    jobs: int | None,
    backend: str | None,
    max_memory: str | None,
) -> Found | None:
    """Execute a search, show its progress and store its runs.

    Parameters
    ----------
    search
        The search.
    runs
        The most runs that it needs.
    what
        Description of the search, in a few words.
    scenario
        Its scenario, for the backend.
    jobs, backend, max_memory
        As for the options.

    Returns
    -------
    result or None
        The result; None if a signal ended the search.
    """
    _core.check_backend(scenario, backend)
    processors = jobs_at_once(jobs, backend)
    session.say(
        f"{what}: at most {counted(runs, 'run')} of {scenario.duration_s:g} s on "
        f"{counted(processors, 'processor')}"
    )
    cache = row_cache(backend)
    laboratory = Laboratory(jobs=jobs, backend=backend, max_memory=max_memory, cache=cache)
    with progress_bar(Work(runs=runs)) as shown:

        def progress(finished: int, total: int) -> None:
            done = counted(finished, "run")
            text = f"interrupted: {done} finished; {_continue(laboratory)}"
            signals.on_exit(_core.printable(text), patient=False)
            shown(finished, total)

        laboratory.progress = progress
        try:
            result = search(laboratory)
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
