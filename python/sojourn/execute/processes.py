"""Runs on several processes, for scenarios with queues or controllers written in Python.

Threads would take turns at the interpreter's lock. Each process gets the scenario, the classes
and the number of one run at a time, and returns the records of that run.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sojourn import _core
from sojourn.deferred import Deferred
from sojourn.errors import alternatives
from sojourn.execute.runs import Row, Run
from sojourn.queues import plugin
from sojourn.queues.python_class import defining, registered

# Few runs need them.
cloudpickle, loky = Deferred("cloudpickle"), Deferred("loky")

# How often this process looks for Ctrl-C, and workers for the end of this process.
_ATTENTION_S = 0.1
_LIFELINE_S = 1.0


def checked_queues(scenario: _core.Scenario) -> list[tuple[str, Any, str]]:
    """Return name, class and source of each queue and controller that is written in Python.

    If there are any, threads would wait for each other, so the runs need processes. Plug-ins,
    which do not, are checked, too.
    """
    names = scenario.external_queues
    plugin.loaded(names)
    return [(name, *registered(name)) for name in names if name.startswith(_core.python_prefix())]


def run(
    scenario: _core.Scenario,
    *,
    queues: list[tuple[str, Any, str]],
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
    backend: str | None,
    invocation: _core.Invocation | None = None,
) -> _core.Outcome:
    """Run every arm and replication on `jobs` processes."""
    if jobs is not None:
        _core.check_jobs(jobs)
    total = len(scenario.arms) * scenario.replications
    parts = _stored(invocation)
    # In the order of replications, so that an interrupted comparison has runs of every arm.
    waiting = sorted(set(range(total)) - parts.keys(), key=lambda n: n % scenario.replications)
    try:
        for number, part in executed(scenario, waiting, queues=queues, jobs=jobs, backend=backend):
            parts[number] = part
            if invocation is not None:
                invocation.append(number, part)
            if progress is not None:
                progress(len(parts), total)
        if invocation is not None:
            invocation.flush()
    except KeyboardInterrupt:
        if invocation is not None:
            invocation.flush()
    return _core.Outcome.assemble(scenario, list(parts.items()), backend)


@dataclass(slots=True, kw_only=True)
class ProcessExecutor:
    """Executes runs of scenarios with queues written in Python on processes."""

    jobs: int | None = None
    backend: str | None = None

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        """Execute runs; see :meth:`Executor.execute`."""
        for part in parts:
            scenario = part[0].scenario
            runs = {run.number: run for run in part}
            for number, row in executed(
                scenario,
                list(runs),
                queues=checked_queues(scenario),
                jobs=self.jobs,
                backend=self.backend,
                metrics=True,
            ):
                yield [(runs[number], row)]


def executed(
    scenario: _core.Scenario,
    numbers: Sequence[int],
    *,
    queues: list[tuple[str, Any, str]],
    jobs: int | None,
    backend: str | None,
    metrics: bool = False,
) -> Iterator[tuple[int, bytes]]:
    """Execute some runs of a scenario on `jobs` processes."""
    if not numbers:
        return
    at_once = _core.backend_concurrency(backend)
    payload = payload_of(scenario, queues)
    workers = min(jobs or loky.cpu_count(), at_once or len(numbers), len(numbers))
    executor = loky.get_reusable_executor(
        max_workers=workers, timeout=60, initializer=_depend_on, initargs=(os.getpid(),)
    )
    memory = _core.worker_memory(scenario, workers=workers, runs=len(numbers), metrics=metrics)
    futures: dict[Future[bytes | Failed], int] = {
        executor.submit(_one, payload, number, backend, metrics=metrics, memory=memory): number
        for number in numbers
    }
    finished = 0
    try:
        for number, part in _returned(futures):
            finished += 1
            yield number, part
    except BrokenExecutor as error:
        names = alternatives(queue.__name__ for _, queue, _ in queues)
        message = (
            f"{names}: a worker process ended without a result (memory exhausted, os._exit or "
            "a crash in an extension module); use jobs=1 to run everything in this process"
        )
        raise _core.QueueError(message) from error
    finally:
        if finished < len(numbers):
            executor.shutdown(wait=True, kill_workers=True)


def _stored(invocation: _core.Invocation | None) -> dict[int, bytes]:
    """Read the runs that need not be repeated."""
    if invocation is None:
        return {}
    parts = {number: invocation.read(number) for number in invocation.finished}
    return {number: part for number, part in parts.items() if part is not None}


def _returned(futures: "dict[Future[bytes | Failed], int]") -> Iterator[tuple[int, bytes]]:
    """Yield each run number and what its process returned, in the order of completion."""
    waiting = set(futures)
    while waiting:
        # Libraries may handle SIGINT such that it interrupts no wait without a time limit.
        ended, waiting = wait(waiting, timeout=_ATTENTION_S, return_when=FIRST_COMPLETED)
        for future in ended:
            part = future.result()
            if isinstance(part, Failed):
                part.reraise()
            else:
                yield futures[future], part


def _depend_on(parent: int) -> None:
    """Make a worker end with the process that uses it, which also handles Ctrl-C for it.

    A queue in an endless loop would otherwise continue after it.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LIFELINE_S)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        threading.Thread(target=watch, daemon=True).start()


def payload_of(scenario: _core.Scenario, queues: list[tuple[str, Any, str]]) -> bytes:
    """Pickle scenario, classes, with the values that they have in this process, and plug-ins."""
    # By reference, the other process would import a class with the values of its file.
    names = {base.__module__ for _, queue, _ in queues for base in defining(queue)}
    names -= {"__main__"} | cloudpickle.list_registry_pickle_by_value()
    modules = [sys.modules[name] for name in sorted(names & sys.modules.keys())]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        plugins = plugin.loaded(scenario.external_queues)
        return bytes(cloudpickle.dumps((scenario.to_json(), queues, plugins)))
    except Exception as error:
        message = (
            f"{_unpicklable([queue for _, queue, _ in queues])}: cannot be sent to a worker "
            f"process: {error}; create such objects in __init__, or run with jobs=1"
        )
        raise _core.QueueError(message) from error
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _unpicklable(classes: list[type]) -> str:
    """Name the first attribute that cannot be pickled, or else the classes."""
    for base in dict.fromkeys(base for queue in classes for base in defining(queue)):
        for name, value in vars(base).items():
            # Python itself adds these, and cloudpickle leaves them out.
            if name in {"__dict__", "__weakref__"}:
                continue
            try:
                cloudpickle.dumps(value)
            except Exception:  # noqa: BLE001 - as above
                return f"{base.__name__}.{name}"
    return ", ".join(queue.__name__ for queue in classes)


class Failed:
    """An exception of a queue, as a string: tracebacks do not cross processes."""

    def __init__(self, message: str, cause: BaseException | None) -> None:
        self.message = message
        self.cause = "" if cause is None else f"{type(cause).__name__}: {cause}"
        self.traceback = "" if cause is None else "".join(traceback.format_exception(cause))

    def reraise(self) -> None:
        """Raise the exception in this process."""
        if not self.cause:
            raise _core.QueueError(self.message)
        cause = RuntimeError(self.cause)
        cause.add_note(f"Traceback in the worker process:\n\n{self.traceback}")
        raise _core.QueueError(self.message) from cause


@lru_cache(maxsize=1)
def prepared(payload: bytes) -> _core.Scenario:
    """Load the queues in this process and read the scenario, once for all of its runs."""
    document, queues, plugins = cloudpickle.loads(payload)
    for one in plugins:
        plugin.load_same(one)
    for name, queue, source in queues:
        queue.register(name, source)
    return _core.Scenario.from_json(document)


def _one(
    payload: bytes, number: int, backend: str | None, *, metrics: bool, memory: int | None
) -> bytes | Failed:
    """Run one run of a scenario in a process of its own, within a limit of memory."""
    _core.limit_memory(memory, worker=True)
    try:
        scenario = prepared(payload)
    except Exception as error:  # noqa: BLE001 - unpickling runs the code of any object
        return Failed(f"cannot load the queues in a worker process: {error}", error)
    try:
        if metrics:
            return Run(scenario, number).measure(backend)
        return _core.run_one(scenario, number, backend=backend)
    except _core.QueueError as error:
        return Failed(f"{error}", error.__cause__)
