"""Execute the runs of a sweep on the workers of Dask Distributed."""

import logging
import math
import os
import queue
import signal
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.result.formatting import counted
from sojourn.result.processes import Failed
from sojourn.storage import batch
from sojourn.storage.store import Rows
from sojourn.sweeps import tasks
from sojourn.sweeps.schedulers import SCHEME
from sojourn.sweeps.tasks import Done, Part, Task

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

# Time of a task in seconds: much longer than the milliseconds of scheduling, but short, because a
# lost worker loses it.
TASK_S = 2.0
LEAST_TASK_S = 1.0
MOST_RUNS = 4_096
# Waiting tasks per thread of a worker, so that no worker is idle.
_AHEAD = 2
# Longest time to wait for the scheduler, and for its first worker.
_CONNECT_S = 10.0
_WORKERS_S = 30.0
# Attempts to start the workers on this machine.
_STARTS = 3
# Attempts of a task whose workers ended: one of its runs may end them. The runs are then tried one
# by one, with as many attempts.
ATTEMPTS = 4
# Repetitions of a run whose row the store does not return.
_REPEATS = 3
# Longest time to wait for a task before control returns to the caller.
_MOMENT_S = 0.1
# Interval at which the threads of the workers are counted: workers may join and leave.
_COUNT_S = 1.0
# Interval between attempts to read rows from a store that cannot be read, and the longest time for
# which that may last: a restart of a server takes less.
RETRY_S = 5.0
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run to execute on a cluster."""

    carrier: int
    number: int
    key: str
    cost_s: float
    name: str


class Cluster:
    """Workers of Dask Distributed that execute runs."""

    def __init__(
        self,
        scheduler: str | None,
        *,
        store: str,
        rows: Callable[[int], Rows],
        text: Callable[[int], str | bytes],
        jobs: int,
        backend: str | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._store = store
        self._rows = rows
        self._text = text
        self._jobs = jobs
        self._backend = backend
        self._local: LocalCluster | None = None
        self._waiting = _Waiting()
        self._under_way: dict[Future, list[Run]] = {}
        # Tasks that have ended; the callbacks of Dask run on another thread.
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        # Ended tasks whose rows could not be read, with the time of the next attempt.
        self._unread: deque[tuple[float, Future]] = deque()
        # Since when no rows could be read.
        self._unreadable_s: float | None = None
        # The task of a run that may end its worker.
        self._suspect: Future | None = None
        self._repeated: Counter[str] = Counter()
        # The exception of a queue written in Python.
        self._failed: Failed | None = None
        self._threads = 1
        self._counted_s = -math.inf
        # Ratio of the measured to the estimated time of runs.
        self._factor = 1.0
        # The loggers of Dask, with their previous levels.
        self._levels: dict[logging.Logger, int] = {}
        self._client = self._connected()

    def close(self) -> None:
        """Cancel the unfinished tasks, and end the workers on this machine."""
        with suppress(Exception):
            self._client.cancel(list(self._under_way), force=True)
        for nanny in self._local.workers.values() if self._local is not None else ():
            # Do not wait for a cancelled run: it may take minutes. Stored batches are complete.
            nanny.auto_restart = False
            with suppress(OSError, TypeError):
                os.kill(nanny.pid, signal.SIGKILL)
        # Errors while a cluster ends do not affect results.
        with suppress(Exception):
            self._client.close(timeout=2)
        if self._local is not None:
            with suppress(Exception):
                self._local.close(timeout=2)
        for logger, level in self._levels.items():
            logger.setLevel(level)

    def add(self, runs: Sequence[Run], *, first: bool = False) -> None:
        """Queue runs for execution; if `first` is set, before the other waiting runs."""
        self._waiting.add(runs, first=first)

    def take(self) -> list[tuple[Run, bytes, bool]]:
        """Wait briefly for a task to end, and submit others."""
        with self._errors():
            return self._take()

    def _take(self) -> list[tuple[Run, bytes, bool]]:
        if self._failed is not None:
            self._failed.reraise()
        self._fill()
        while self._unread and self._unread[0][0] <= time.monotonic():
            self._ended.put(self._unread.popleft()[1])
        try:
            future = self._ended.get(timeout=_MOMENT_S)
        except queue.Empty:
            return []
        part = self._under_way.pop(future)
        isolated, self._suspect = self._suspect is not None, None
        try:
            found, in_store = self._taken(future, part)
            self._unreadable_s = None
        except _core.ResultError as error:
            self._under_way[future] = part
            self._suspect = future if isolated else None
            self._read_later(future, error)
            return []
        except _LostError as error:
            if isolated:
                message = (
                    f"{part[0].name}: {counted(ATTEMPTS, 'worker')} ended during this run (memory "
                    "exhausted, os._exit or a crash in a queue, or killed)"
                )
                raise _core.QueueError(message) from error
            self._waiting.alone(part)
            self._fill()
            return []
        missing = [run for run in part if run.key not in found]
        if missing and self._failed is None:
            # A batch that was damaged or removed.
            self._repeated.update(run.key for run in missing)
            if self._repeated[missing[0].key] > _REPEATS:
                fault = self._rows(part[0].carrier).damaged[-1]
                message = (
                    f"store {fault}, also after {_REPEATS} repetitions; expected "
                    "a store that all workers access at the same place"
                )
                raise _core.ResultError(message)
            self.add(missing, first=True)
        self._fill()
        return [(run, found[run.key], in_store) for run in part if run.key in found]

    def _read_later(self, future: "Future", error: _core.ResultError) -> None:
        """Read the rows of a task later; raise the error if that has failed for `PATIENCE_S`."""
        now = time.monotonic()
        if self._unreadable_s is None:
            self._unreadable_s = now
        if now - self._unreadable_s >= PATIENCE_S:
            raise error
        self._unread.append((now + RETRY_S, future))

    def _fill(self) -> None:
        """Submit enough tasks that no worker is idle."""
        now = time.monotonic()
        if now - self._counted_s > _COUNT_S:
            self._counted_s = now
            self._threads = max(sum(self._client.nthreads().values()), 1)
        # Execute a run that may end its worker alone, so that no other run is blamed.
        while self._suspect is None and (
            not self._under_way
            if self._waiting.isolates
            else len(self._under_way) < _AHEAD * self._threads
        ):
            isolated = self._waiting.isolates
            part = self._waiting.take(self._factor, self._threads)
            if not part:
                return
            future = self._submit(part)
            self._under_way[future] = part
            self._suspect = future if isolated else None
            future.add_done_callback(self._ended.put)

    def _submit(self, part: Sequence[Run]) -> "Future":
        carriers = dict.fromkeys(run.carrier for run in part)
        task = Task(
            parts=tuple(
                Part(self._text(one), tuple(run.number for run in part if run.carrier == one))
                for one in carriers
            ),
            store=self._store,
            batch=batch.name_of(run.key for run in part),
            backend=self._backend,
            build=tasks.build(),
        )
        return self._client.submit(
            tasks.run, task, pure=False, key=f"sojourn-{len(part)}-runs-{uuid.uuid4().hex}"
        )

    def _taken(self, future: "Future", part: Sequence[Run]) -> tuple[dict[str, bytes], bool]:
        """Return the rows of a task that has ended, and whether they are in the store."""
        done = self._done(future)
        # Raised by the next call: the finished runs come first.
        self._failed = self._failed or done.failed
        if done.batch is None:
            return {}, True
        is_stored = done.data is None
        if done.data is not None:
            found = dict(batch.decode(done.batch, done.data)[0])
        else:
            rows = self._rows(part[0].carrier)
            rows.load(done.batch)
            read = {run.key: rows.find(run.key) for run in part}
            found = {key: row for key, row in read.items() if row is not None}
        # After the rows are read: if that fails, the task is taken again.
        if done.executed and done.failed is None:
            estimated = sum(run.cost_s for run in part)
            # Smoothed: the first tasks of a worker include the time to load the program.
            self._factor += 0.5 * (done.seconds / max(estimated, 1e-9) - self._factor)
        return found, is_stored

    def _done(self, future: "Future") -> Done:
        from distributed.scheduler import KilledWorker  # noqa: PLC0415

        try:
            done: Done = future.result()
        except KilledWorker as error:
            raise _LostError from error
        return done

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert errors of Dask."""
        from distributed.client import FutureCancelledError  # noqa: PLC0415

        try:
            yield
        except (_core.SojournError, _LostError):
            raise
        except (FutureCancelledError, OSError):
            message = (
                f"{self._name}: the connection to the scheduler was lost; finished runs are "
                "stored, and the same command continues when the scheduler is back"
            )
            raise _core.UnavailableError(message) from None
        except Exception as error:  # noqa: BLE001 - other errors of Dask have no common class
            message = f"{self._name}: {type(error).__name__}: {error}"
            raise _core.UnavailableError(message) from None

    @property
    def _name(self) -> str:
        where = self._scheduler
        return SCHEME if where is None else where.replace("tcp", SCHEME, 1)

    def _connected(self) -> "Client":
        try:
            # Imported here: the import takes more than a second.
            import distributed  # noqa: F401, PLC0415
        except ModuleNotFoundError:
            message = "--on dask: requires Dask; install it with: pip install 'sojourn[dask]'"
            raise _core.UnavailableError(message) from None
        # Errors are reported once, as one line.
        for name in [*logging.Logger.manager.loggerDict]:
            if name.partition(".")[0] == "distributed":
                logger = logging.getLogger(name)
                self._levels[logger] = logger.level
                logger.setLevel(logging.CRITICAL)
        client = self._started() if self._scheduler is None else self._reached()
        try:
            client.wait_for_workers(1, timeout=_WORKERS_S)
        except TimeoutError:
            client.close()
            message = f"{self._name}: the scheduler has no worker after {_WORKERS_S:g} s"
            raise _core.UnavailableError(message) from None
        return client

    def _reached(self) -> "Client":
        """Connect to a scheduler."""
        from distributed import Client  # noqa: PLC0415 - as above

        try:
            return Client(self._scheduler, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError) as error:
            message = f"{self._name}: no scheduler answers: {error}"
            raise _core.UnavailableError(message) from None

    def _started(self) -> "Client":
        """Start a scheduler and workers on this machine."""
        import dask  # noqa: PLC0415 - as above
        from distributed import Client, LocalCluster  # noqa: PLC0415

        reason: Exception | None = None
        for _ in range(_STARTS):
            try:
                with dask.config.set(
                    {
                        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
                        # The profiler interrupts each worker 100 times per second.
                        "distributed.worker.profile.enabled": False,
                    }
                ):
                    self._local = LocalCluster(
                        n_workers=self._jobs,
                        threads_per_worker=1,
                        # Another cluster may use the default port.
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,
                        # Sojourn checks the memory of all runs before the first one.
                        memory_limit=0,
                    )
                return Client(self._local, set_as_default=False)
            except (OSError, TimeoutError, RuntimeError) as error:
                # A worker was killed.
                reason = error
        message = f"{self._name}: the workers do not start: {reason}"
        raise _core.UnavailableError(message)


class _LostError(Exception):
    """Several workers ended during a task."""


class _Waiting:
    """Runs that are not yet in a task."""

    def __init__(self) -> None:
        self._runs: deque[Run] = deque()
        self._alone: deque[Run] = deque()
        self._cost_s = 0.0

    def add(self, runs: Sequence[Run], *, first: bool) -> None:
        if first:
            self._runs.extendleft(reversed(runs))
        else:
            self._runs.extend(runs)
        self._cost_s += sum(run.cost_s for run in runs)

    @property
    def isolates(self) -> bool:
        """Whether the next run is to be executed alone."""
        return bool(self._alone)

    def alone(self, runs: Sequence[Run]) -> None:
        """Queue runs as separate tasks, to find out which run ends its workers."""
        self._alone.extend(runs)

    def take(self, factor: float, threads: int) -> list[Run]:
        """Take the runs of a task, fewer at the end, so that all workers finish together."""
        if self._alone:
            return [self._alone.popleft()]
        rest_s = self._cost_s * factor
        most_s = min(TASK_S, max(LEAST_TASK_S, rest_s / (2 * threads)))
        taken: list[Run] = []
        time_s = 0.0
        while self._runs and time_s < most_s and len(taken) < MOST_RUNS:
            run = self._runs.popleft()
            taken.append(run)
            time_s += run.cost_s * factor
        self._cost_s -= sum(run.cost_s for run in taken)
        return taken
