"""Runs on several processes, for scenarios with queues written in Python.

Threads would take turns at the interpreter's lock. Each process gets the scenario, the classes
and the number of one run at a time, and returns the records of that run.
"""

import re
import traceback
from collections.abc import Callable
from concurrent.futures import Future, as_completed
from functools import lru_cache

from sojourn import _core
from sojourn.qdisc.python_queue import registered


def needed(scenario: _core.Scenario) -> bool:
    """Whether threads would wait for each other: a queue of the scenario is written in Python."""
    return bool(_queue_names(scenario))


def _queue_names(scenario: _core.Scenario) -> list[str]:
    """Return the names of its Python queues, such as ``python:Fifo:0123456789ab``."""
    pattern = re.escape(_core.python_prefix()) + r"[A-Za-z0-9_.:]+"
    return sorted(set(re.findall(pattern, scenario.to_json())))


def run(
    scenario: _core.Scenario,
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
    import cloudpickle  # noqa: PLC0415
    from loky import cpu_count, get_reusable_executor  # noqa: PLC0415

    at_once = _core.backend_concurrency(backend)
    queues = [(name, *registered(name)) for name in _queue_names(scenario)]
    payload = cloudpickle.dumps((scenario.to_json(), queues))
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
    return _core.Outcome.assemble(scenario, [parts[number] for number in sorted(parts)])


class _Failed:
    """An exception of a queue, as text: tracebacks do not cross processes."""

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
