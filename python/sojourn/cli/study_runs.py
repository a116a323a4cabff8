"""Run the scenarios of a study one after another and save their results."""

import contextlib
import json
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sojourn import _core, files
from sojourn import report as reports
from sojourn.cli import stored
from sojourn.cli.progress import progress_bar, work_of
from sojourn.cli.session import say
from sojourn.result import Result, budget, derived_files, storage
from sojourn.scenario import Scenario
from sojourn.studies.runtime import Remaining

# Name of the report on the result of a scenario.
REPORT = "report.html"
_MAX_MANIFEST = 1 << 26


class InterruptedStudyError(Exception):
    """The user interrupted a study; finished runs are saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the scenarios of a study are run."""

    jobs: int | None
    max_memory: str | None
    force: bool
    resume: bool


def reusable(scenarios: Mapping[str, Scenario], folder: Path, options: Options) -> list[str]:
    """List the scenarios whose complete results exist already, made by this build."""
    if options.force and not options.resume:
        return []
    return [key for key, scenario in scenarios.items() if _is_reusable(scenario, folder / key)]


def _is_reusable(scenario: Scenario, place: Path) -> bool:
    commit, mark, _ = _core.commit().partition("-dirty")
    if mark:
        # The same name may stand for different code.
        return False
    try:
        # The result is checked when it is loaded.
        found = files.read_json(place / derived_files.MANIFEST, _MAX_MANIFEST)
        made_by = found["sojourn"]
        same = (made_by["version"], made_by["commit"]) == (_core.version(), commit)
        if not same or made_by["dirty"] or found["complete"] is not True:
            return False
        return Scenario.from_json(json.dumps(found["scenario"])).hash == scenario.hash
    except (OSError, ValueError, KeyError, TypeError, _core.ScenarioError):
        return False


def results(
    scenarios: Mapping[str, Scenario],
    folder: Path,
    options: Options,
    *,
    reused: Collection[str],
    reported: Collection[str],
    remaining: Remaining,
) -> Iterator[tuple[str, Result, float | None]]:
    """Run every scenario and save each result in a directory of its name."""
    # Without the results: these take the memory that the runs of the next scenario may need.
    invocations = []
    announced = _Announced()
    with contextlib.ExitStack() as stack:
        claims = {
            key: stack.enter_context(
                storage.claimed(
                    folder / key,
                    force=options.force,
                    resumed=scenario if options.resume or key in reused else None,
                )
            )
            for key, scenario in scenarios.items()
        }
        for key, scenario in scenarios.items():
            if key in reused:
                yield key, _loaded(folder / key, scenario, options, reported=key in reported), None
                continue
            started = time.monotonic()
            work = work_of(scenario, jobs=options.jobs)
            with progress_bar(work, f"{key} ({remaining})") as progress:
                execution = stored.run(
                    scenario,
                    jobs=options.jobs,
                    progress=progress,
                    resume=options.resume,
                    announce=announced,
                )
            seconds = time.monotonic() - started
            remaining.finished(key, seconds)
            if execution.invocation is not None:
                invocations.append(execution.invocation)
                # What is stored is on the medium, however the study ends.
                stack.callback(execution.invocation.close)
            result, place, claim = execution.result, folder / key, claims[key]
            if result.finished and claim is not None:
                _save(execution, claim, place, reported=key in reported)
            if not result.complete:
                where = f"to {place}" if result.finished else "(nothing to save)"
                runs = f"{result.finished} of {result.total} runs"
                say(f"interrupted: saved {runs} of {key} {where}")
                execution.end(kept=False)
                raise InterruptedStudyError
            yield key, result, seconds
    for invocation in invocations:
        invocation.discard()


def check_memory(scenarios: Mapping[str, Scenario], options: Options) -> None:
    """Refuse scenarios that may take too much memory."""
    for key, scenario in scenarios.items():
        try:
            budget.check(scenario.checked, jobs=options.jobs, max_memory=options.max_memory)
        except _core.ScenarioError as error:
            message = f"{key}: {error}"
            raise _core.ScenarioError(message) from None


class _Announced:
    """Prints what is resumed of the first interrupted scenario of a study."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self, finished: int, scenario: Scenario) -> None:
        if finished and not self._said:
            stored.say_what_is_resumed(finished, scenario)
            self._said = True


def _loaded(place: Path, scenario: Scenario, options: Options, *, reported: bool) -> Result:
    """Load a result that exists; write its report if that is missing."""
    result = Result.load(place)
    if options.resume:
        stored.forget(scenario)
    if reported and not (place / REPORT).exists():
        reports.write(result, derived_files.inside(place, REPORT))
    return result


def _save(execution: stored.Execution, claim: _core.Claim, place: Path, *, reported: bool) -> None:
    """Save a result and its report; if that fails, say how to continue."""
    try:
        storage.save(execution.result, claim)
        if reported:
            reports.write(execution.result, derived_files.inside(place, REPORT))
    except _core.ResultError:
        execution.end(kept=False)
        raise
