"""What a worker of a cluster does: execute the runs of a task, and store their rows.

A worker receives scenarios as text, not as objects, and returns the number of runs that it has
executed. It puts their rows into the shared store, in the batch that the task names. If the store
cannot be written, the worker returns the batch itself.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sojourn import _core
from sojourn.execute import processes
from sojourn.execute.runs import Run
from sojourn.execute.shared import keys
from sojourn.storage import batch
from sojourn.storage.store import Store

# Most scenarios that a worker keeps for its next tasks.
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Part:
    """Runs of a scenario in a task."""

    scenario: str | bytes
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Runs of a sweep for one worker."""

    parts: tuple[Part, ...]
    store: str
    batch: str
    backend: str | None
    build: str
    # Whether to execute stored runs again.
    fresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The report of a worker on a task."""

    executed: int
    seconds: float
    batch: str | None = None
    data: bytes | None = None
    failed: processes.Failed | None = None


def run(task: Task) -> Done:
    """Execute the runs of a task and store their rows, unless another worker has done so.

    A fresh task executes them in any case.
    """
    begun = time.perf_counter()
    try:
        scenarios = [_scenario(part.scenario) for part in task.parts]
    except Exception as error:  # noqa: BLE001 - unpickling runs the code of any object
        failed = processes.Failed(f"cannot load the scenario on a worker: {error}", error)
        return Done(executed=0, seconds=0.0, failed=failed)
    wanted = {
        keys(scenario, task.backend)[number]: (scenario, number)
        for scenario, part in zip(scenarios, task.parts, strict=True)
        for number in part.numbers
    }
    # Builds with equal commits may have other uncommitted changes, and therefore other keys.
    if task.build != build() or batch.name_of(wanted) != task.batch:
        message = (
            f"a worker has Sojourn {build()}; expected {task.build}, as this process has: install "
            "the same build on all machines"
        )
        raise _core.UnavailableError(message)
    rows = _opened(task.store).rows_of(scenarios[0])
    if not task.fresh and rows.has(task.batch):
        # A lost worker had already stored them.
        return Done(executed=0, seconds=0.0, batch=task.batch)
    found, failure = _measured(wanted, task.backend)
    if not found:
        return Done(executed=0, seconds=0.0, failed=failure)
    seconds = time.perf_counter() - begun
    name, data = batch.encode(found, rows.about)
    is_stored = True
    try:
        rows.add(found)
    except _core.ResultError:
        is_stored = False
    return Done(
        executed=len(found),
        seconds=seconds,
        batch=name,
        data=None if is_stored else data,
        failed=failure,
    )


def _measured(
    wanted: Mapping[str, tuple[_core.Scenario, int]], backend: str | None
) -> tuple[dict[str, bytes], processes.Failed | None]:
    """Execute runs until the queue of one fails; return the rows of the finished runs."""
    found: dict[str, bytes] = {}
    for key, (scenario, number) in wanted.items():
        try:
            found[key] = Run(scenario, number).measure(backend)
        except _core.QueueError as error:
            return found, processes.Failed(f"{error}", error.__cause__)
    return found, None


def build() -> str:
    """Return version and commit of this build."""
    return f"{_core.version()} ({_core.commit()})"


@lru_cache(maxsize=_KEPT)
def _scenario(scenario: str | bytes) -> _core.Scenario:
    if isinstance(scenario, bytes):
        return processes.prepared(scenario)
    return _core.Scenario.from_json(scenario)


def scenario_of(scenario: _core.Scenario) -> str | bytes:
    """Return a scenario in the form for tasks."""
    queues = processes.checked_queues(scenario)
    from_files = scenario.external_queues
    return processes.payload_of(scenario, queues) if from_files else scenario.to_json()


@lru_cache(maxsize=_KEPT)
def _opened(place: str) -> Store:
    return Store.at(place)
