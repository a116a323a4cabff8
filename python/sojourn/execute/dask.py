"""Execute runs on the workers of Dask Distributed.

Dask submits tasks, notices lost workers and repeats their tasks. A task has runs for some seconds;
its worker puts their rows into the shared store, so only counts pass through the scheduler.
"""

import itertools
import json
import logging
import os
import signal
import time
import uuid
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.execute import worker
from sojourn.execute.runs import Row, Run
from sojourn.execute.shared import SharedRowStore, keys
from sojourn.execute.worker import Done, Part, Task
from sojourn.result.formatting import counted
from sojourn.storage import batch

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster, Worker, WorkerPlugin

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
# Attempts to start the workers on this machine: another program may end them meanwhile.
_STARTS = 3
# Workers of this machine that a task may end before Dask gives up.
WORKERS_PER_TASK = 4
# Repetitions of a run whose row the store does not return.
_MISSING_ROW_REPEATS = 3
# Interval between attempts to read rows from a store that cannot be read, and the longest time for
# which that may last: a restart of a server takes less.
STORE_RETRY_S = 5.0
STORE_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class _Job:
    """A run, its key in the shared store, its scenario for a task, and its estimated CPU time."""

    run: Run
    key: str
    scenario: str | bytes
    cost_s: float


@dataclass(frozen=True, slots=True)
class _Submitted:
    """The runs of a task, how often they were repeated, and whether nothing runs beside it."""

    jobs: Sequence[_Job]
    repeats: int = 0
    alone: bool = False


class _LostError(Exception):
    """Several workers ended during a task."""


@dataclass(slots=True, kw_only=True)
class DaskExecutor:
    """Executes runs on the workers of Dask Distributed.

    Without a scheduler, it starts one, and `jobs` workers on this machine.
    """

    # In messages.
    name: str
    scheduler: str | None
    store: SharedRowStore
    jobs: int
    backend: str | None = None
    _client: "Client | None" = None
    _cluster: "LocalCluster | None" = None
    # The loggers of Dask, with their previous levels.
    _levels: dict[logging.Logger, int] = field(default_factory=dict)

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        """Execute runs; see :meth:`Executor.execute`."""
        waiting = _Waiting(parts, self.backend)
        if not waiting.fill(0.0):
            return
        tasks = _Tasks(self, self._connected(), waiting)
        try:
            yield from tasks.rows()
        finally:
            tasks.cancel()

    def close(self) -> None:
        """End the workers on this machine, and the connection to the scheduler."""
        for nanny in self._cluster.workers.values() if self._cluster is not None else ():
            # Do not wait for a cancelled run: it may take minutes. Stored batches are complete.
            nanny.auto_restart = False
            with suppress(OSError, TypeError):
                # Windows has no SIGKILL; there, SIGTERM does the same.
                os.kill(nanny.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        for opened in (self._client, self._cluster):
            # Errors while a cluster ends do not affect results.
            with suppress(Exception):
                if opened is not None:
                    opened.close(timeout=2)
        self._client = self._cluster = None
        for logger, level in self._levels.items():
            logger.setLevel(level)
        self._levels.clear()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert errors of Dask."""
        from distributed.client import FutureCancelledError  # noqa: PLC0415 - as above

        try:
            yield
        except (_core.SojournError, _LostError):
            raise
        except (FutureCancelledError, OSError):
            message = (
                f"{self.name}: the connection to the scheduler was lost; finished runs are "
                "stored, and the same command continues when the scheduler is back"
            )
            raise _core.UnavailableError(message) from None
        except Exception as error:  # noqa: BLE001 - other errors of Dask have no common class
            message = f"{self.name}: {type(error).__name__}: {error}"
            raise _core.UnavailableError(message) from None

    def _connected(self) -> "Client":
        """Connect to the scheduler when the first run is needed."""
        if self._client is not None:
            return self._client
        try:
            # Imported here: the import takes more than a second.
            import distributed  # noqa: F401, PLC0415
        except ModuleNotFoundError:
            message = "dask: requires Dask; install it with: pip install distributed cryptography"
            raise _core.UnavailableError(message) from None
        # Errors are reported once, as one line.
        for name in [*logging.Logger.manager.loggerDict]:
            if name.partition(".")[0] == "distributed":
                logger = logging.getLogger(name)
                self._levels[logger] = logger.level
                logger.setLevel(logging.CRITICAL)
        client = self._started() if self.scheduler is None else self._reached()
        self._client = client
        try:
            client.wait_for_workers(1, timeout=_WORKERS_S)
        except TimeoutError:
            message = f"{self.name}: the scheduler has no worker after {_WORKERS_S:g} s"
            raise _core.UnavailableError(message) from None
        return client

    def _reached(self) -> "Client":
        """Connect to a scheduler."""
        from distributed import Client, Security  # noqa: PLC0415 - as above

        # The certificates that the configuration of Dask names, as for its other programs.
        security = Security()
        address = self.scheduler or ""
        if security.tls_ca_file:
            security.require_encryption = True
            address = address.replace("tcp://", "tls://", 1)
        try:
            return Client(address, security=security, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError) as error:
            message = f"{self.name}: no scheduler answers: {error}"
            raise _core.UnavailableError(message) from None

    def _started(self) -> "Client":
        """Start a scheduler and workers on this machine."""
        import dask  # noqa: PLC0415 - as above
        from distributed import Client, LocalCluster, Security  # noqa: PLC0415

        try:
            # Only this process and its workers have the key: other users cannot connect.
            security = Security.temporary()
        except ImportError:
            message = (
                f"{self.name}: requires cryptography; install it with: pip install cryptography"
            )
            raise _core.UnavailableError(message) from None
        settings = {
            "distributed.scheduler.allowed-failures": WORKERS_PER_TASK - 1,
            # The profiler interrupts each worker 100 times per second.
            "distributed.worker.profile.enabled": False,
            # HTTP has no authentication.
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
        }
        reason: Exception | None = None
        for _ in range(_STARTS):
            try:
                with dask.config.set(settings):
                    self._cluster = LocalCluster(
                        n_workers=self.jobs,
                        threads_per_worker=1,
                        security=security,
                        # Another cluster may use the default port.
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False},
                        silence_logs=logging.CRITICAL,
                        # Sojourn checks the memory of all runs before the first one.
                        memory_limit=0,
                    )
                self._cluster.scheduler.http_server.stop()
                client = Client(self._cluster, set_as_default=False)
                client.register_plugin(_without_http())
            except (OSError, TimeoutError, RuntimeError) as error:
                reason = error
            except BaseException:
                # A signal: the exit handler of Dask would close what has not started, and fail.
                for started in LocalCluster._instances:  # noqa: SLF001 - has no other name
                    started.shutdown_on_close = False
                raise
            else:
                return client
        message = f"{self.name}: the workers do not start: {reason}"
        raise _core.UnavailableError(message)


def _without_http() -> "WorkerPlugin":
    """Return a plugin that closes the HTTP port of workers."""
    from distributed import WorkerPlugin  # noqa: PLC0415 - as above

    class WithoutHttp(WorkerPlugin):  # type: ignore[misc] # Dask has no types.
        """Closes the port, which has no authentication."""

        def setup(self, worker: "Worker") -> None:
            worker.http_server.stop()

    return WithoutHttp()


class _Tasks:
    """The tasks of an execution that have not ended."""

    def __init__(self, of: DaskExecutor, client: "Client", waiting: "_Waiting") -> None:
        from distributed import as_completed  # noqa: PLC0415 - as above

        self._of = of
        self._client = client
        self._waiting = waiting
        self._ended = as_completed(loop=client.loop)
        self._tasks: dict[Future, _Submitted] = {}
        # Runs of tasks that ended their workers: one of them may be the cause.
        self._suspects: deque[_Job] = deque()

    def rows(self) -> Iterator[Sequence[Row]]:
        """Yield the rows of finished runs."""
        while self._fill():
            for future in self._ended.next_batch():
                yield from self._take(future)

    def cancel(self) -> None:
        """Cancel the tasks that have not ended."""
        # The connection may be lost.
        with suppress(Exception):
            self._client.cancel([*self._tasks], force=True)

    def _fill(self) -> bool:
        """Submit enough tasks that no worker is idle; return whether there is any."""
        if self._suspects:
            self._repeat_alone()
            return True
        with self._of.errors():
            threads = max(sum(self._client.nthreads().values()), 1)
        while len(self._tasks) < _AHEAD * threads and (jobs := self._waiting.take(threads)):
            self._submit(_Submitted(jobs))
        return bool(self._tasks)

    def _repeat_alone(self) -> None:
        """Repeat the next suspect once no task is left, so that no other run is blamed."""
        if not self._tasks:
            self._submit(_Submitted([self._suspects[0]], alone=True))

    def _take(self, future: "Future") -> Iterator[Sequence[Row]]:
        """Yield the rows of a task that has ended."""
        of = self._tasks.pop(future)
        try:
            done = self._done(future)
        except _LostError as error:
            if of.alone:
                message = f"{of.jobs[0].run.name}: {error}"
                raise _core.QueueError(message) from error
            self._suspects.extend(of.jobs)
            return
        if of.alone:
            self._suspects.popleft()
        found = self._found(done, of)
        yield [(job.run, found[job.key]) for job in of.jobs if job.key in found]
        if done.failed is not None:
            done.failed.reraise()
        self._waiting.measured(of.jobs, done)
        if missing := [job for job in of.jobs if job.key not in found]:
            # A batch that was damaged or removed.
            self._submit(_Submitted(missing, of.repeats + 1))

    def _submit(self, of: _Submitted) -> None:
        task = Task(
            parts=tuple(
                Part(scenario, tuple(job.run.number for job in part))
                for scenario, part in itertools.groupby(of.jobs, lambda job: job.scenario)
            ),
            store=self._of.store.store.url,
            batch=batch.name_of(job.key for job in of.jobs),
            backend=self._of.backend,
            build=worker.build(),
            fresh=self._of.store.fresh,
        )
        key = f"sojourn-{len(of.jobs)}-runs-{uuid.uuid4().hex}"
        with self._of.errors():
            future = self._client.submit(worker.run, task, pure=False, key=key)
        self._tasks[future] = of
        self._ended.add(future)

    def _done(self, future: "Future") -> Done:
        """Return the report of a worker on a task that has ended."""
        from distributed.scheduler import KilledWorker  # noqa: PLC0415 - as above

        with self._of.errors():
            try:
                done: Done = future.result()
            except KilledWorker as error:
                workers = counted(error.allowed_failures + 1, "worker")
                message = (
                    f"{workers} ended during this run (memory exhausted, os._exit or a crash in a "
                    "queue, or killed)"
                )
                raise _LostError(message) from error
        return done

    def _found(self, done: Done, of: _Submitted) -> dict[str, bytes]:
        """Return the rows of a task by their keys, without those that the store does not return."""
        if done.batch is None:
            return {}
        if done.data is not None:
            return dict(batch.decode(done.batch, done.data)[0])
        rows = self._of.store.rows_of(of.jobs[0].run.scenario)
        deadline = time.monotonic() + STORE_PATIENCE_S
        while True:
            try:
                rows.load(done.batch)
            except _core.ResultError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(STORE_RETRY_S)
            else:
                break
        read = {job.key: rows.find(job.key) for job in of.jobs}
        found = {key: row for key, row in read.items() if row is not None}
        if len(found) < len(read) and done.failed is None and of.repeats >= _MISSING_ROW_REPEATS:
            message = (
                f"store {rows.damaged[-1]}, also after {_MISSING_ROW_REPEATS} repetitions; "
                "expected a store that all workers access at the same place"
            )
            raise _core.ResultError(message)
        return found


class _Waiting:
    """Runs that are not yet in a task."""

    def __init__(self, parts: Iterable[Sequence[Run]], backend: str | None) -> None:
        self._parts = iter(parts)
        self._backend = backend
        self._jobs: deque[_Job] = deque()
        self._cost_s = 0.0
        # Ratio of the measured to the estimated time of runs.
        self._factor = 1.0

    def fill(self, time_s: float) -> bool:
        """Take parts until their runs last for some time; return whether there is any run."""
        while not self._jobs or self._cost_s * self._factor < time_s:
            part = next(self._parts, None)
            if part is None:
                break
            self._add(part)
        return bool(self._jobs)

    def take(self, threads: int) -> list[_Job]:
        """Take the runs of a task, fewer at the end, so that all workers finish together."""
        self.fill(2 * threads * TASK_S)
        rest_s = self._cost_s * self._factor
        most_s = min(TASK_S, max(LEAST_TASK_S, rest_s / (2 * threads)))
        taken: list[_Job] = []
        time_s = 0.0
        while self._jobs and time_s < most_s and len(taken) < MOST_RUNS:
            job = self._jobs.popleft()
            taken.append(job)
            time_s += job.cost_s * self._factor
            self._cost_s -= job.cost_s
        return taken

    def measured(self, jobs: Sequence[_Job], done: Done) -> None:
        """Correct the estimate by the time of a task."""
        if done.executed:
            estimated_s = sum(job.cost_s for job in jobs)
            # Smoothed: the first tasks of a worker include the time to load the program.
            self._factor += 0.5 * (done.seconds / max(estimated_s, 1e-9) - self._factor)

    def _add(self, part: Sequence[Run]) -> None:
        scenario = part[0].scenario
        known, text = keys(scenario, self._backend), worker.scenario_of(scenario)
        cost_s = json.loads(_core.estimate(scenario, metrics=True))["cpu_s"] / len(known)
        self._jobs.extend(_Job(run, known[run.number], text, cost_s) for run in part)
        self._cost_s += cost_s * len(part)
