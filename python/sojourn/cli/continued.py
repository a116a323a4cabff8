"""Execute scenarios: keep finished runs in the store, and reuse those that are stored or saved."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import _core, files
from sojourn.cli import process
from sojourn.cli.process import say
from sojourn.cli.progress import RunProgress
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.run import Interrupted, NotCapturedError, execute
from sojourn.execute.runs import LocalRowStore, begin, default_folder, meter
from sojourn.execute.targets import Target
from sojourn.result import Result, derived_files
from sojourn.result.formatting import counted
from sojourn.scenario import Scenario

FRESH = "--fresh"
MAX_MANIFEST = 1 << 26


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result, and the execution in the run store if its runs are stored."""

    result: Result
    invocation: _core.Invocation | None
    # Why the capture of its packets is not complete.
    not_captured: str | None = None

    def end(self, *, kept: bool) -> None:
        """Remove the stored runs of a complete result that is kept, or say how to continue."""
        if self.invocation is None:
            return
        if self.result.complete and kept:
            self.invocation.discard()
            return
        self.invocation.close()
        if self.result.finished:
            # In one line, which can be copied.
            print(_core.printable(f"to continue: {continuation()}"), file=sys.stderr)


def run(
    scenario: Scenario,
    *,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
    fresh: bool,
    max_memory: str | None,
    backend: str | None = None,
    announce: Callable[[int, Scenario], object] | None = None,
    pcap: Path | str | None = None,
    force: bool = False,
) -> KeptResult:
    """Run a scenario; store each run when it ends, unless its packets are captured.

    Runs that an interrupted execution has stored are not repeated, unless `fresh` is true;
    `announce` is called with their number, if there are any.
    """
    checked = scenario.checked
    _core.check_backend(checked, backend)
    captured = pcap is not None
    invocation = None if captured else _begin(checked, backend=backend, fresh=fresh)
    if invocation is not None and (finished := len(invocation.finished)):
        (announce or say_what_is_reused)(finished, scenario)
    if invocation is None:
        process.on_exit("interrupted", patient=True)
    else:
        if isinstance(progress, RunProgress):
            progress.stored(len(invocation.finished))
        announced = _StoredProgress(progress)
        announce_stored(len(invocation.finished), scenario.runs)
        progress = announced
    try:
        outcome = execute(
            checked,
            jobs=jobs,
            progress=progress,
            backend=backend,
            invocation=invocation,
            max_memory=max_memory,
            pcap=pcap,
            force=force,
        )
        result, not_captured = Result(outcome), None
    except Interrupted as interrupted:
        result, not_captured = interrupted.result, None
    except NotCapturedError as error:
        result, not_captured = error.result, str(error)
    if invocation is not None and (reason := invocation.failure) is not None:
        text = f"warning: not all finished runs could be stored: {reason}"
        print(_core.printable(text), file=sys.stderr)
    return KeptResult(result, invocation, not_captured)


class _StoredProgress:
    """Progress that also sets what is said if a signal ends the command."""

    def __init__(self, shown: Callable[[int, int], object] | None) -> None:
        self._shown = shown
        self._reached = getattr(shown, "reached", None)

    def __call__(self, finished: int, total: int) -> None:
        announce_stored(finished, total)
        if self._shown is not None:
            self._shown(finished, total)

    def reached(self, share: float) -> None:
        if self._reached is not None:
            self._reached(share)


def announce_stored(finished: int, total: int) -> None:
    """Set the message for a signal that ends the command: the finished runs are stored."""
    stored = f"{finished} of {total} runs are stored"
    text = f"interrupted: {stored}; to continue: {continuation()}"
    process.on_exit(_core.printable(text), patient=False)


def continuation() -> str:
    """Return the command that continues this one."""
    arguments = sys.argv[1:]
    # What follows this word is no option.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != FRESH]
    return shlex.join(["sojourn", *options, *arguments[end:]])


def _begin(checked: _core.Scenario, *, backend: str | None, fresh: bool) -> _core.Invocation | None:
    """Begin an execution; if the store is not usable, print a warning and return None."""
    try:
        store = _core.RunStore(default_folder())
        return begin(store, checked, backend=backend, resume=not fresh)
    except (_core.ResultError, RuntimeError) as error:
        # Path.home raises RuntimeError if the user has no home directory.
        print(_core.printable(f"warning: {error}; runs are not stored"), file=sys.stderr)
        return None


def forget(scenario: Scenario) -> None:
    """Remove the stored runs of an interrupted execution whose result is saved."""
    invocation = _begin(scenario.checked, backend=None, fresh=False)
    if invocation is not None:
        invocation.discard()


def say_what_is_reused(finished: int, scenario: Scenario) -> None:
    """Print how many runs of a scenario are not repeated."""
    runs = f"{finished} of {scenario.runs} runs of {scenario.checked.name}"
    text = f"continuing: {runs} are stored; {FRESH} repeats them"
    print(_core.printable(text), file=sys.stderr)


def saved_result(scenario: Scenario, place: Path, backend: str | None = None) -> Result | None:
    """Load the result of :func:`is_saved`; None if there is none, or if it is damaged."""
    try:
        return Result.load(place) if is_saved(scenario, place, backend) else None
    except _core.ResultError:
        return None


def is_saved(scenario: Scenario, place: Path, backend: str | None = None) -> bool:
    """Whether a directory has the complete result that the runs of a scenario would give."""
    # Otherwise, equal commits may stand for different code, or a repetition has other numbers.
    if not meter(scenario.checked, backend).reusable:
        return False
    try:
        found = _manifest(place)
        made_by = found["sojourn"]
        same = (made_by["version"], made_by["commit"]) == (_core.version(), _core.commit())
        if not same or made_by["dirty"] or found["complete"] is not True:
            return False
        if found["backend"]["name"] != (backend or _core.backend_names()[0]):
            return False
        return _core.Scenario.from_saved(json.dumps(found["scenario"])).hash == scenario.hash
    except (OSError, ValueError, KeyError, TypeError, _core.ScenarioError):
        return False


def is_incomplete(place: Path) -> bool:
    """Whether a directory has a result of which runs are missing."""
    try:
        return _manifest(place)["complete"] is False
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _manifest(place: Path) -> Any:
    # The result itself is checked when it is loaded.
    return files.read_json(place / derived_files.MANIFEST, MAX_MANIFEST)


def row_store(backend: str | None, *, fresh: bool) -> LocalRowStore | None:
    """Open the run store; if it is not usable, print a warning and return None."""
    try:
        return LocalRowStore(store=_core.RunStore(default_folder()), backend=backend, fresh=fresh)
    except (_core.ResultError, RuntimeError) as error:
        say(f"warning: {error}; runs are not stored")
        return None


def processors(on: object, at: Target, jobs: int | None) -> tuple[int | None, str]:
    """Return the number of processors that execute runs, None if unknown, and their description."""
    if at.scheduler is not None:
        return None, f"on {on}"
    count = jobs_at_once(jobs, at.backend)
    return count, f"on {counted(count, 'processor')}"


@contextmanager
def announced(store: str | Path | None) -> Iterator[None]:
    """Say afterwards if the runs have created the shared store, whose name may be a mistake."""
    folder = None if store is None or "://" in f"{store}" else Path(store)
    is_new = folder is not None and not folder.exists()
    yield
    if folder is not None and is_new and folder.exists():
        say(f"created store {folder.absolute()}")
