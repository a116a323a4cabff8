"""Run the scenarios of a study one after another and save their results."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sojourn import _core
from sojourn import report as reports
from sojourn.cli import stored
from sojourn.cli.progress import progress_bar
from sojourn.cli.session import say
from sojourn.result import Result, budget, derived, storage
from sojourn.result.validity import Severity
from sojourn.scenario import Scenario


class InterruptedStudyError(Exception):
    """The user interrupted a study; finished runs are saved."""


def results(
    scenarios: Mapping[str, Scenario],
    folder: Path,
    *,
    replications: int | None,
    jobs: int | None,
    max_memory: str | None,
    force: bool,
    resume: bool,
    keep: Callable[[Result, Path], object] | None = None,
) -> Iterator[tuple[str, Result]]:
    """Run every scenario; save each result and its report in a directory of its name.

    Parameters
    ----------
    scenarios
        The scenarios by name.
    folder
        Parent of the result directories, which are all checked before the first run.
    replications, jobs
        Runs per arm, instead of those of the scenario; number of threads.
    max_memory
        Memory that the runs of a scenario may take. All scenarios are checked before anything else.
    force
        Whether results in the directories may be replaced.
    resume
        Whether to continue an interrupted execution. Runs are kept in the store until the whole
        study is complete.
    keep
        Called with a result and its directory after it was saved.

    Yields
    ------
    tuple of str and Result
        The name of a scenario and its complete result.

    Raises
    ------
    InterruptedStudyError
        The user interrupted the study.
    ResultError
        A directory cannot be written, or contains other files or, without `force`, a result.
    ScenarioError
        A scenario may take more than `max_memory`.
    """
    # Without the results: these take the memory that the runs of the next scenario may need.
    invocations = []
    chosen = {
        key: given if replications is None else given.replace(replications=replications)
        for key, given in scenarios.items()
    }
    for key, scenario in chosen.items():
        _check_memory(key, scenario, jobs=jobs, max_memory=max_memory)
    with contextlib.ExitStack() as stack:
        claims = {
            key: stack.enter_context(
                storage.claimed(folder / key, force=force, resumed=scenario if resume else None)
            )
            for key, scenario in chosen.items()
        }
        for key, scenario in chosen.items():
            with progress_bar(scenario.runs) as progress:
                execution = stored.run(scenario, jobs=jobs, progress=progress, resume=resume)
            if execution.invocation is not None:
                invocations.append(execution.invocation)
                # What is stored is on the medium, however the study ends.
                stack.callback(execution.invocation.close)
            result, place, claim = execution.result, folder / key, claims[key]
            if result.finished and claim is not None:
                _say_errors(key, result)
                _save(execution, claim, place, keep)
            if not result.complete:
                where = f"to {place}" if result.finished else "(nothing to save)"
                runs = f"{result.finished} of {result.total} runs"
                say(f"interrupted: saved {runs} of {key} {where}")
                execution.end(kept=False)
                raise InterruptedStudyError
            yield key, result
    for invocation in invocations:
        invocation.discard()


def _check_memory(
    key: str, scenario: Scenario, *, jobs: int | None, max_memory: str | None
) -> None:
    """Refuse a scenario that may take too much memory, with its name in the study."""
    try:
        budget.check(scenario.checked, jobs=jobs, max_memory=max_memory)
    except _core.ScenarioError as error:
        message = f"{key}: {error}"
        raise _core.ScenarioError(message) from None


def _say_errors(key: str, result: Result) -> None:
    for finding in result.validity.findings:
        if finding.severity is Severity.ERROR:
            say(f"error: {key}: {finding.text}")


def _save(
    execution: stored.Execution,
    claim: _core.Claim,
    place: Path,
    keep: Callable[[Result, Path], object] | None,
) -> None:
    """Save a result, its report and what `keep` adds; if that fails, say how to continue."""
    result = execution.result
    try:
        storage.save(result, claim)
        reports.write(result, derived.inside(place, "report.html"))
        if keep is not None:
            keep(result, place)
    except _core.ResultError:
        execution.end(kept=False)
        raise
