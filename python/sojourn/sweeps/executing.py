"""Execute the runs of a sweep and keep only their metrics."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import polars as pl

from sojourn import _core
from sojourn.result import runs
from sojourn.result.naming import metric_column
from sojourn.sweeps.caches import RowCache
from sojourn.sweeps.carriers import Carrier
from sojourn.sweeps.executors import Executor, Row
from sojourn.sweeps.until import Until

_STORE_ERRORS = (_core.ResultError, OSError)


@dataclass(slots=True, kw_only=True)
class Execution:
    """The execution of a sweep, and the metrics so far."""

    replications: int
    executor: Executor
    until: Until | None = None
    backend: str | None = None
    cache: RowCache | None = None
    progress: Callable[[int, int], object] | None = None
    total: int = 0
    finished: int = 0
    # Runs that were in the store.
    reused: int = 0
    frames: list[pl.DataFrame] = field(default_factory=list)
    # The first error that prevented storing a run.
    failure: str | None = None
    # The stored runs of carriers when the executor requested the work.
    _prepared: dict[Carrier, set[int]] = field(default_factory=dict)
    # The last carrier of these, which is still open in the store.
    _ready: Carrier | None = None

    def execute(self, carriers: Sequence[Carrier]) -> None:
        """Execute the carriers one after the other."""
        self.total = self.replications * sum(len(carrier.cells) for carrier in carriers)
        self._report()
        work = ((carrier, self._first(carrier)) for carrier in carriers)
        try:
            self.executor.prepare(work, once=self.until is None)
            for carrier in carriers:
                rows: dict[int, bytes] = {}
                try:
                    self._carry(carrier, rows)
                finally:
                    # Also after an interrupt: these runs have finished.
                    if rows:
                        self.frames.append(_frame(carrier, rows, self.backend))
                    self._close(carrier)
        finally:
            self.executor.end()
            self._close_ready()

    def _first(self, carrier: Carrier) -> list[int]:
        """Return the runs of the first round of a carrier that are not stored."""
        # An open carrier has file descriptors, and a sweep may have thousands of carriers.
        self._close_ready()
        stored = self._prepared[carrier] = self._stored(carrier)
        self._ready = carrier
        numbers = self._round(carrier, range(len(carrier.cells)), 0, self.replications)
        return [number for number in numbers if number not in stored]

    @staticmethod
    def _round(carrier: Carrier, cells: Sequence[int], first: int, after: int) -> list[int]:
        """Return the runs of some replications of cells, all cells of one before the next."""
        return [
            carrier.number(cell, replication)
            for replication in range(first, after)
            for cell in cells
        ]

    def _carry(self, carrier: Carrier, rows: dict[int, bytes]) -> None:
        """Execute rounds of runs until every cell has enough."""
        if self._ready is carrier:
            self._ready = None
            stored = self._prepared.pop(carrier)
        else:
            stored = self._stored(carrier)
            # Runs that the executor has finished since then are not reused.
            stored = self._prepared.pop(carrier, stored)
        open_cells = list(range(len(carrier.cells)))
        first, after = 0, self.replications
        while open_cells and first < carrier.most:
            after = min(after, carrier.most)
            numbers = self._round(carrier, open_cells, first, after)
            self._measure(carrier, numbers, stored, rows)
            if self.until is None:
                return
            values = _values(carrier, rows, self.until, self.backend)
            open_cells = [cell for cell in open_cells if not self.until.met(values[cell])]
            # Half as many again: few rounds, and few unnecessary runs.
            first, after = after, after + max(self.replications // 2, 1)
            if first < carrier.most:
                self.total += len(open_cells) * (min(after, carrier.most) - first)
                self._report()

    def _measure(
        self, carrier: Carrier, numbers: Sequence[int], stored: set[int], rows: dict[int, bytes]
    ) -> None:
        """Read stored rows, and execute the other runs."""
        known = self._read(carrier, [number for number in numbers if number in stored])
        rows.update(known)
        self.reused += len(known)
        self.finished += len(known)
        self._report()
        missing = [number for number in numbers if number not in known]
        accepts = runs.meter(carrier.scenario, self.backend).accepts
        for finished in self.executor.execute(carrier, missing):
            if not all(accepts(number, row) for number, row in finished):
                message = (
                    f"the executor returned a run of another build or scenario; expected runs of "
                    f"Sojourn {_core.version()} ({_core.commit()[:12]})"
                )
                raise _core.SojournError(message)
            # Store first, so that errors below lose no finished run.
            self._append(carrier, finished)
            rows.update(finished)
            self.finished += len(finished)
            if finished:
                self._report()

    def _stored(self, carrier: Carrier) -> set[int]:
        """Return the runs of a carrier that are stored."""
        stored: set[int] = set()
        with self._using(carrier) as cache:
            if cache is not None:
                stored = cache.finished(carrier)
        return stored

    def _read(self, carrier: Carrier, numbers: Sequence[int]) -> dict[int, bytes]:
        """Read stored rows; runs whose rows cannot be read are executed again."""
        rows: dict[int, bytes] = {}
        with self._using(carrier) as cache:
            if cache is not None and numbers:
                accepts = runs.meter(carrier.scenario, self.backend).accepts
                found = cache.read(carrier, numbers)
                rows.update((number, row) for number, row in found if accepts(number, row))
        return rows

    def _append(self, carrier: Carrier, rows: Sequence[Row]) -> None:
        with self._using(carrier) as cache:
            if cache is not None and rows:
                cache.append(carrier, rows)

    def _close_ready(self) -> None:
        if self._ready is not None:
            self._close(self._ready)
            self._ready = None

    def _close(self, carrier: Carrier) -> None:
        with self._using(carrier) as cache:
            if cache is not None:
                cache.close(carrier)

    @contextmanager
    def _using(self, carrier: Carrier) -> Iterator[RowCache | None]:
        """Use the store; if it fails, continue without it."""
        try:
            yield self.cache
        except _STORE_ERRORS as error:
            self.failure = self.failure or f"{error}"
            cache, self.cache = self.cache, None
            if cache is not None:
                with suppress(*_STORE_ERRORS):
                    # Rows that the store has accepted are kept.
                    cache.close(carrier)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.finished, self.total)


def _frame(carrier: Carrier, rows: dict[int, bytes], backend: str | None) -> pl.DataFrame:
    """Return the metrics of runs: ``point``, ``arm``, ``replication`` and the metrics."""
    frame = _table(carrier, rows, backend)
    cells = pl.DataFrame(
        {
            "arm": carrier.scenario.arms,
            "point": [cell.point for cell in carrier.cells],
            "_arm": [cell.arm for cell in carrier.cells],
        },
        schema={"arm": pl.String, "point": pl.Int64, "_arm": pl.String},
    )
    joined = frame.join(cells, on="arm", how="left", maintain_order="left")
    return joined.select(
        pl.col("point"),
        pl.col("_arm").alias("arm"),
        pl.col("replication").cast(pl.Int64),
        *frame.columns[2:],
    )


def _table(carrier: Carrier, rows: dict[int, bytes], backend: str | None) -> pl.DataFrame:
    """Return the metrics of runs by the arms of the carrier, in the order of the runs."""
    return pl.DataFrame(runs.meter(carrier.scenario, backend).table(list(rows.items())))


def _values(
    carrier: Carrier, rows: dict[int, bytes], until: Until, backend: str | None
) -> list[list[float]]:
    """Return the values of the metric of `until` per cell, in the order of the replications.

    The order is fixed, because sums of the same values in another order may differ.
    """
    frame = _table(carrier, rows, backend)
    column = metric_column(until.metric, frame.columns[2:], "--until")
    places = {arm: cell for cell, arm in enumerate(carrier.scenario.arms)}
    values: list[list[float]] = [[] for _ in carrier.cells]
    for arm, value in frame.select("arm", column).iter_rows():
        if value is not None:
            values[places[arm]].append(value)
    return values
