"""Execute the runs of a sweep and keep only their metrics."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import polars as pl

from sojourn import _core
from sojourn.result import Result, processes, runs
from sojourn.result.naming import metric_column
from sojourn.sweeps.carriers import Carrier
from sojourn.sweeps.until import Until

# Runs whose metrics are computed together: more need more memory, fewer more time per run.
CHUNK = 64
# Chunks that wait for their metrics.
_CHUNKS = 4
# Tasks that wait per thread, so that no thread idles.
_AHEAD = 4


@dataclass(slots=True, kw_only=True)
class Execution:
    """How the runs of a sweep are executed, and their metrics so far.

    Parameters
    ----------
    replications
        Number of runs per cell, or of the first runs if `until` is set.
    until
        Adds runs to a cell until its interval is narrow enough, at most those of its carrier.
    jobs
        Number of threads or processes; by default one per processor.
    backend
        Name of the backend; by default the first.
    store
        Stores runs and has those that need not be repeated.
    progress
        Called with the number of finished runs and the number of runs that are planned.
    total
        Number of runs that are planned.
    """

    replications: int
    until: Until | None = None
    jobs: int | None = None
    backend: str | None = None
    store: _core.RunStore | None = None
    progress: Callable[[int, int], object] | None = None
    total: int = 0
    finished: int = 0
    # Runs that were in the store.
    reused: int = 0
    frames: list[pl.DataFrame] = field(default_factory=list)
    # The first error that prevented storing a run.
    failure: str | None = None
    _evaluator: ThreadPoolExecutor = field(init=False, repr=False)
    _pending: list[Future[pl.DataFrame]] = field(default_factory=list)

    def execute(self, carriers: Sequence[Carrier]) -> None:
        """Execute the carriers one after the other.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C ended the runs; those that have finished are in `frames`.
        """
        self.total = self.replications * sum(len(carrier.cells) for carrier in carriers)
        self._report()
        with ThreadPoolExecutor(1, thread_name_prefix="metrics") as self._evaluator:
            try:
                self._execute(carriers)
            finally:
                self._settle()

    def _execute(self, carriers: Sequence[Carrier]) -> None:
        for carrier in carriers:
            invocation = None
            if self.store is not None:
                checked = carrier.scenario
                invocation = runs.begin(self.store, checked, backend=self.backend, resume=True)
            try:
                self._carry(carrier, invocation)
            finally:
                if invocation is not None:
                    self.failure = self.failure or invocation.failure
                    invocation.close()

    def _carry(self, carrier: Carrier, invocation: _core.Invocation | None) -> None:
        """Execute rounds of runs until every cell has enough."""
        stored = set() if invocation is None else set(invocation.finished)
        values: dict[int, list[float]] = {cell: [] for cell in range(len(carrier.cells))}
        open_cells = list(values)
        first, after = 0, self.replications
        while open_cells and first < carrier.most:
            after = min(after, carrier.most)
            numbers = [
                carrier.number(cell, replication)
                for replication in range(first, after)
                for cell in open_cells
            ]
            known = len(self.frames)
            self._measure(carrier, numbers, invocation, stored)
            if self.until is None:
                return
            self._settle()
            for frame in self.frames[known:]:
                _collect(frame, carrier, self.until, values)
            open_cells = [cell for cell in open_cells if not self.until.met(values[cell])]
            # Half as many again: few rounds, and few runs that were not needed.
            first, after = after, after + max(self.replications // 2, 1)
            if first < carrier.most:
                self.total += len(open_cells) * (min(after, carrier.most) - first)
                self._report()

    def _measure(
        self,
        carrier: Carrier,
        numbers: Sequence[int],
        invocation: _core.Invocation | None,
        stored: set[int],
    ) -> None:
        """Execute runs; compute the metrics of chunks beside the following runs."""
        chunk: list[tuple[int, bytes]] = []

        def evaluate() -> None:
            if len(self._pending) >= _CHUNKS:
                self._settle(_CHUNKS - 1)
            if chunk:
                parts = chunk.copy()
                chunk.clear()
                job = self._evaluator.submit(_metrics, carrier, parts, self.backend)
                self._pending.append(job)

        try:
            for number, part in self._parts(carrier, numbers, invocation, stored):
                chunk.append((number, part))
                self.finished += 1
                self._report()
                if len(chunk) >= CHUNK:
                    evaluate()
        finally:
            # Also after an interrupt: these runs have finished.
            evaluate()

    def _settle(self, most: int = 0) -> None:
        """Wait for the metrics of all but the last `most` chunks."""
        while len(self._pending) > most:
            # An interrupt while waiting loses no chunk.
            self.frames.append(self._pending[0].result())
            del self._pending[0]

    def _parts(
        self,
        carrier: Carrier,
        numbers: Sequence[int],
        invocation: _core.Invocation | None,
        stored: set[int],
    ) -> Iterator[tuple[int, bytes]]:
        """Yield stored runs, then those that are executed."""
        missing = []
        for number in numbers:
            part = None
            if invocation is not None and number in stored:
                part = invocation.read(number)
            if part is None:
                missing.append(number)
            else:
                self.reused += 1
                yield number, part
        queues = processes.checked_queues(carrier.scenario)
        if queues and self.jobs != 1 and len(missing) > 1:
            for number, part in processes.executed(
                carrier.scenario, missing, queues=queues, jobs=self.jobs, backend=self.backend
            ):
                if invocation is not None:
                    invocation.append(number, part)
                yield number, part
            return
        yield from self._on_threads(carrier, missing, invocation)

    def _on_threads(
        self, carrier: Carrier, numbers: Sequence[int], invocation: _core.Invocation | None
    ) -> Iterator[tuple[int, bytes]]:
        def one(number: int) -> tuple[int, bytes]:
            part = _core.run_one(carrier.scenario, number, backend=self.backend)
            # At once: a run that has finished is not lost, whatever happens to the main thread.
            if invocation is not None:
                invocation.append(number, part)
            return number, part

        workers = jobs_at_once(self.jobs, self.backend)
        executor = ThreadPoolExecutor(workers, thread_name_prefix="sweep")
        waiting: set[Future[tuple[int, bytes]]] = set()
        remaining = iter(numbers)
        try:
            while True:
                for number in remaining:
                    waiting.add(executor.submit(one, number))
                    if len(waiting) >= _AHEAD * workers:
                        break
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            executor.shutdown(wait=True, cancel_futures=True)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.finished, self.total)


def jobs_at_once(jobs: int | None, backend: str | None) -> int:
    """Return how many runs are executed at once."""
    if jobs is not None:
        _core.check_jobs(jobs)
    allowed = _core.backend_concurrency(backend)
    affinity = getattr(os, "sched_getaffinity", None)
    wanted = jobs or (os.cpu_count() or 1 if affinity is None else len(affinity(0)))
    return wanted if allowed is None else min(wanted, allowed)


def _metrics(
    carrier: Carrier, parts: Sequence[tuple[int, bytes]], backend: str | None
) -> pl.DataFrame:
    """Compute the metrics of some runs of a carrier."""
    outcome = _core.Outcome.assemble(carrier.scenario, parts, backend)
    frame = Result(outcome).per_run
    names = carrier.scenario.arms
    cells = pl.DataFrame(
        {
            "arm": names,
            "point": [cell.point for cell in carrier.cells],
            "_arm": [cell.arm for cell in carrier.cells],
        },
        schema={"arm": pl.String, "point": pl.Int64, "_arm": pl.String},
    )
    joined = frame.join(cells, on="arm", how="left", maintain_order="left")
    metrics = [name for name in frame.columns if name not in {"arm", "replication"}]
    return joined.select(
        pl.col("point"),
        pl.col("_arm").alias("arm"),
        pl.col("replication").cast(pl.Int64),
        *(pl.col(name) for name in metrics),
    )


def _collect(
    frame: pl.DataFrame, carrier: Carrier, until: Until, values: dict[int, list[float]]
) -> None:
    """Append the values of the metric of `until` to those of their cells."""
    columns = frame.columns[3:]
    column = metric_column(until.metric, columns, "--until")
    places = {(cell.point, cell.arm): n for n, cell in enumerate(carrier.cells)}
    for point, arm, value in frame.select("point", "arm", column).iter_rows():
        if value is not None:
            values[places[point, arm]].append(value)
