"""Run the scenarios of a study one after another and save their results."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rich.console import Console

from sojourn import report as reports
from sojourn.cli import stored
from sojourn.cli.progress import progress_bar
from sojourn.result import Result, derived, storage
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
    """
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    executions = []
    with contextlib.ExitStack() as stack:
        chosen = {
            key: given if replications is None else given.replace(replications=replications)
            for key, given in scenarios.items()
        }
        claims = {
            key: stack.enter_context(
                storage.claimed(folder / key, force=force, resumed=scenario if resume else None)
            )
            for key, scenario in chosen.items()
        }
        for key, scenario in chosen.items():
            with progress_bar(scenario.runs) as progress:
                execution = stored.run(scenario, jobs=jobs, progress=progress, resume=resume)
            executions.append(execution)
            stack.callback(execution.close)
            result, place, claim = execution.result, folder / key, claims[key]
            for finding in result.validity.findings if result.finished else ():
                if finding.severity is Severity.ERROR:
                    console.print(f"error: {key}: {finding.text}", markup=False)
            if result.finished and claim is not None:
                try:
                    storage.save(result, claim)
                except storage.NotSavedError:
                    execution.end(kept=False)
                    raise
                reports.write(result, derived.inside(place, "report.html"))
                if keep is not None:
                    keep(result, place)
            if not result.complete:
                where = f"to {place}" if result.finished else "(nothing to save)"
                runs = f"{result.finished} of {result.total} runs"
                console.print(f"interrupted: saved {runs} of {key} {where}", markup=False)
                execution.end(kept=False)
                raise InterruptedStudyError
            yield key, result
    for execution in executions:
        execution.end(kept=True)
