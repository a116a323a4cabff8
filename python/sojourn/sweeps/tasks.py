"""Tasks of a cluster: runs of a sweep, whose rows the worker stores.

A worker receives scenarios as text, not as objects, and returns the number of runs that it has
executed. It puts their rows into the shared store, in the batch that the task names. If the store
cannot be written, the worker returns the batch itself.
"""

import time
from dataclasses import dataclass
from functools import lru_cache

from sojourn import _core
from sojourn.result import processes, runs
from sojourn.shared import batch
from sojourn.shared.store import SharedStore, opened
from sojourn.sweeps.sharing import keys

# Most scenarios that a worker keeps for its next tasks.
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Part:
    """Runs of a scenario in a task.

    Parameters
    ----------
    scenario
        The scenario in JSON; if it has queues written in Python, pickled with their classes.
    numbers
        The numbers of the runs, counted arm by arm.
    """

    scenario: str | bytes
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Runs of a sweep for one worker.

    Parameters
    ----------
    parts
        The runs.
    store
        The place of the shared store.
    batch
        Name of the batch with their rows.
    backend
        Name of the backend; by default the first.
    build
        The build of Sojourn that created the task.
    """

    parts: tuple[Part, ...]
    store: str
    batch: str
    backend: str | None
    build: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The report of a worker on a task.

    Parameters
    ----------
    executed
        Number of executed runs; 0 if their batch was in the store.
    seconds
        Execution time of these runs.
    data
        The batch, if the store could not be written.
    failed
        The exception of a queue written in Python.
    """

    executed: int
    seconds: float
    data: bytes | None = None
    failed: processes.Failed | None = None


def run(task: Task) -> Done:
    """Execute the runs of a task and store their rows, unless another worker has done so.

    Raises
    ------
    UnavailableError
        This build of Sojourn is not that of the task.
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
    if batch.name_of(wanted) != task.batch:
        message = (
            f"a worker has Sojourn {build()}; expected {task.build}, as this process has: install "
            "the same build on all machines"
        )
        raise _core.UnavailableError(message)
    rows = _opened(task.store).rows_of(scenarios[0])
    if rows.has(task.batch):
        # A lost worker had already stored them.
        return Done(executed=0, seconds=0.0)
    try:
        found = {
            key: runs.meter(scenario, task.backend).measure(number)
            for key, (scenario, number) in wanted.items()
        }
    except _core.QueueError as error:
        failed = processes.Failed(f"{error}", error.__cause__)
        return Done(executed=0, seconds=0.0, failed=failed)
    seconds = time.perf_counter() - begun
    try:
        rows.add(found)
    except _core.ResultError:
        data = batch.encode(found, rows.about)[1]
        return Done(executed=len(found), seconds=seconds, data=data)
    return Done(executed=len(found), seconds=seconds)


def build() -> str:
    """Return version and commit of this build."""
    return f"{_core.version()} ({_core.commit()})"


@lru_cache(maxsize=_KEPT)
def _scenario(scenario: str | bytes) -> _core.Scenario:
    if isinstance(scenario, bytes):
        return processes.prepared(scenario)
    return _core.Scenario.from_json(scenario)


def scenario_of(scenario: _core.Scenario) -> str | bytes:
    """Return a scenario in the form for tasks.

    Raises
    ------
    QueueError
        The class of a queue cannot be sent to another process.
    ScenarioError
        The class of a queue is not loaded or has changed.
    """
    queues = processes.checked_queues(scenario)
    return processes.payload_of(scenario, queues) if queues else scenario.to_json()


@lru_cache(maxsize=_KEPT)
def _opened(place: str) -> SharedStore:
    return opened(place)
