"""Runs on several processes, for scenarios with queues written in Python.

Threads would take turns at the interpreter's lock. Each process gets the scenario, the classes
and the number of one run at a time, and returns the records of that run.
"""

import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future, as_completed
from functools import lru_cache

from sojourn import _core
from sojourn.qdisc.python_queue import defining, registered


def checked_queues(scenario: _core.Scenario) -> list[tuple[str, type, str]]:
    """Return name, class and source of each queue of the scenario that is written in Python.

    Threads would wait for each other if there are any.

    Raises
    ------
    ScenarioError
        A class is not loaded or has changed.
    """
    names = scenario.external_queues
    return [(name, *registered(name)) for name in names if name.startswith(_core.python_prefix())]


def run(
    scenario: _core.Scenario,
    queues: list[tuple[str, type, str]],
    *,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
    backend: str | None,
) -> _core.Outcome:
    """Run every arm and replication on `jobs` processes.

    Parameters
    ----------
    scenario
        What to run.
    queues
        Its queues, from :func:`checked_queues`.
    jobs
        Processes; by default one per processor, and never more than the backend allows.
    progress
        Called with the numbers of runs finished and in total.
    backend
        Name of the backend; by default the first.

    Returns
    -------
    Outcome
        The same as on threads; incomplete if it was interrupted with Ctrl-C.

    Raises
    ------
    QueueError
        A queue failed; the note of the error is the traceback in the process.
    ScenarioError
        The backend is unknown or does not support the scenario.
    """
    # Imported here: few runs need them.
    from loky import cpu_count, get_reusable_executor  # noqa: PLC0415

    at_once = _core.backend_concurrency(backend)
    payload = _payload(scenario, queues)
    total = len(scenario.arms) * scenario.replications
    workers = min(jobs or cpu_count(), at_once or total, total)
    executor = get_reusable_executor(max_workers=workers, timeout=60)
    futures: dict[Future[bytes | _Failed], int] = {
        executor.submit(_one, payload, number, backend): number for number in range(total)
    }
    parts: dict[int, bytes] = {}
    try:
        for future in as_completed(futures):
            part = future.result()
            if isinstance(part, _Failed):
                part.reraise()
            else:
                parts[futures[future]] = part
                if progress is not None:
                    progress(len(parts), total)
    except KeyboardInterrupt:
        pass
    finally:
        if len(parts) < total:
            executor.shutdown(wait=True, kill_workers=True)
    in_order = [parts[number] for number in sorted(parts)]
    return _core.Outcome.assemble(scenario, in_order, backend)


def _payload(scenario: _core.Scenario, queues: list[tuple[str, type, str]]) -> bytes:
    """Pickle scenario and classes, with the values that the classes have in this process."""
    import cloudpickle  # noqa: PLC0415

    # By reference, the other process would import a class with the values of its file.
    names = {base.__module__ for _, queue, _ in queues for base in defining(queue)}
    names -= {"__main__"} | cloudpickle.list_registry_pickle_by_value()
    modules = [sys.modules[name] for name in sorted(names & sys.modules.keys())]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps((scenario.to_json(), queues)))
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


class _Failed:
    """An exception of a queue, as a string: tracebacks do not cross processes."""

    def __init__(self, error: _core.QueueError) -> None:
        self.message = f"{error}"
        cause = error.__cause__
        self.note = "".join(traceback.format_exception(cause)) if cause else ""

    def reraise(self) -> None:
        error = _core.QueueError(self.message)
        error.add_note(self.note)
        raise error


@lru_cache(maxsize=1)
def _prepared(payload: bytes) -> _core.Scenario:
    """Register the classes in this process and read the scenario, once for all of its runs."""
    import cloudpickle  # noqa: PLC0415

    document, queues = cloudpickle.loads(payload)
    for name, queue, source in queues:
        _core.register_python_queue(name, queue, source)
    return _core.Scenario.from_json(document)


def _one(payload: bytes, number: int, backend: str | None) -> bytes | _Failed:
    """Run one run of a scenario in a process of its own."""
    try:
        return _core.run(_prepared(payload), jobs=1, only=[number], backend=backend).to_bytes()
    except _core.QueueError as error:
        return _Failed(error)
