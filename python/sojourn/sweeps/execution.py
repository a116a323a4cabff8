"""Execute the runs of a sweep until their intervals are narrow; keep only their metrics."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError, in_argument
from sojourn.execute.batches import Batch
from sojourn.execute.executor import Executor
from sojourn.execute.runs import Row, Run, by_scenario, meter
from sojourn.execute.stores import ERRORS, RowStore
from sojourn.result.formatting import counted
from sojourn.result.naming import metric_column
from sojourn.result.student import mean_and_interval

# With fewer runs, the interval is unreliable: the sweep stops at points whose runs happen to be
# close to each other.
LEAST_RUNS = 6
_UNTIL = re.compile(r"(?P<metric>\w+)\s*(?:±|\+-|\+/-)\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%?)")


@dataclass(frozen=True, slots=True)
class Until:
    """A metric and the required half-width of its 95 % interval."""

    metric: str
    width: float
    relative: bool

    @property
    def text(self) -> str:
        """The precision as text, such as ``ping_ms_p99 ±5 %``."""
        return f"{self.metric} ±{self.width * 100 if self.relative else self.width:g}" + (
            " %" if self.relative else ""
        )

    def met(self, values: Sequence[float]) -> bool:
        """Whether the interval of Student's t distribution is narrow enough.

        Tables of sweeps with `until` show the same interval.
        """
        if not values:
            raise ArgumentError(
                "until",
                self.text,
                "no run of a point measured the metric; expected one that all points measure",
            )
        if len(values) < LEAST_RUNS:
            return False
        mean, low, high = mean_and_interval(values)
        allowed = self.width * abs(mean) if self.relative else self.width
        return (high - low) / 2 <= allowed


def until(text: str) -> Until:
    """Read a precision.

    Examples
    --------
    >>> until("ping_ms_p99 +-5%")
    Until(metric='ping_ms_p99', width=0.05, relative=True)
    """
    found = _UNTIL.fullmatch(text.strip())
    if found is None or float(found["number"]) == 0.0:
        raise ArgumentError(
            "until",
            text,
            "expected a metric and the half-width of its interval, such as 'ping_ms_p99 ±5 %' or "
            "'goodput_down ±0.1'",
        )
    relative = bool(found["unit"])
    return Until(found["metric"], float(found["number"]) / (100 if relative else 1), relative)


@dataclass(slots=True, kw_only=True)
class Execution:
    """The execution of a sweep, and the metrics so far."""

    replications: int
    executor: Executor
    until: Until | None = None
    backend: str | None = None
    store: RowStore | None = None
    progress: Callable[[int, int], object] | None = None
    total: int = 0
    finished: int = 0
    # Runs that were in the store.
    reused: int = 0
    frames: list[pl.DataFrame] = field(default_factory=list)
    # The first error that prevented storing a run.
    failure: str | None = None
    # The rows of batches that may get more runs, by their numbers.
    _rows: dict[Batch, dict[int, bytes]] = field(default_factory=dict)

    def execute(self, batches: Sequence[Batch]) -> None:
        """Execute rounds of runs until every cell has enough."""
        cells: dict[Batch, Sequence[int]] = {batch: range(len(batch.cells)) for batch in batches}
        first, after = 0, self.replications
        try:
            while cells:
                self.total += (after - first) * sum(map(len, cells.values()))
                self._report()
                self._round(cells, first, after)
                cells = {} if self.until is None else self._imprecise(cells, self.until)
                # Half as many again: few rounds, and few unnecessary runs.
                first, after = after, after + max(self.replications // 2, 1)
                cells = {batch: own for batch, own in cells.items() if first < batch.most}
                after = min([after, *(batch.most for batch in cells)])
        finally:
            # Also after an interrupt: these runs have finished.
            for batch in list(self._rows):
                self._end(batch)

    def _round(self, cells: Mapping[Batch, Sequence[int]], first: int, after: int) -> None:
        """Execute some replications of cells, apart from those that are stored."""
        # The runs that have not finished, and how many each batch has.
        missing: dict[Run, Batch] = {}
        left: Counter[Batch] = Counter()
        # With `until`, a batch may get more runs later.
        done = self._end if self.until is None else self._close

        def parts() -> Iterator[Sequence[Run]]:
            for batch, own in cells.items():
                runs = batch.runs(own, first, after)
                known = self._rows.setdefault(batch, {})
                known |= self._read(runs)
                rest = [run for run in runs if run.number not in known]
                if rest:
                    missing.update(dict.fromkeys(rest, batch))
                    left[batch] = len(rest)
                    yield rest
                else:
                    done(batch)

        with closing(self.executor.execute(parts())) as finished:
            for rows in finished:
                found = _by_batch(rows, missing)
                # Store first, so that errors below lose no finished run.
                self._append(rows)
                for batch, some in found.items():
                    self._rows[batch].update(some)
                    left[batch] -= len(some)
                self.finished += len(rows)
                if rows:
                    self._report()
                for batch in found:
                    if left[batch] == 0:
                        done(batch)
        if missing:
            count = counted(len(missing), "run")
            message = f"the executor did not return {count}; expected a row for each"
            raise _core.SojournError(message)

    def _imprecise(
        self, cells: Mapping[Batch, Sequence[int]], until: Until
    ) -> dict[Batch, Sequence[int]]:
        """Return the cells whose metric is not yet precise enough, by their batches."""
        found: dict[Batch, Sequence[int]] = {}
        for batch, own in cells.items():
            values = _values(batch, self._rows[batch], until, self.backend)
            if rest := [cell for cell in own if not until.met(values[cell])]:
                found[batch] = rest
        return found

    def _end(self, batch: Batch) -> None:
        """Compute the metrics of the finished runs of a batch."""
        if rows := self._rows.pop(batch):
            self.frames.append(_frame(batch, rows, self.backend))
        self._close(batch)

    def _read(self, runs: Sequence[Run]) -> dict[int, bytes]:
        """Read stored rows; runs whose rows cannot be read are executed again."""
        rows: dict[int, bytes] = {}
        accepts = meter(runs[0].scenario, self.backend).accepts
        with self._using() as store:
            if store is not None:
                found = ((run.number, row) for run, row in store.read(runs))
                rows.update((number, row) for number, row in found if accepts(number, row))
        self.reused += len(rows)
        self.finished += len(rows)
        if rows:
            self._report()
        return rows

    def _append(self, rows: Sequence[Row]) -> None:
        """Store rows."""
        for scenario, some in by_scenario(rows):
            accepts = meter(scenario, self.backend).accepts
            if not all(accepts(run.number, row) for run, row in some):
                message = (
                    f"the executor returned a run of another build or scenario; expected runs of "
                    f"Sojourn {_core.version()} ({_core.commit()[:12]})"
                )
                raise _core.SojournError(message)
        with self._using() as store:
            if store is not None and rows:
                store.append(rows)

    def _close(self, batch: Batch) -> None:
        with self._using() as store:
            if store is not None:
                store.close(batch.scenario)

    @contextmanager
    def _using(self) -> Iterator[RowStore | None]:
        """Use the store; if it fails, continue without it."""
        try:
            yield self.store
        except ERRORS as error:
            self.failure = self.failure or f"{error}"
            store, self.store = self.store, None
            if store is not None:
                # Rows that the store has accepted are kept.
                for batch in self._rows:
                    with suppress(*ERRORS):
                        store.close(batch.scenario)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.finished, self.total)


def _frame(batch: Batch, rows: Mapping[int, bytes], backend: str | None) -> pl.DataFrame:
    """Return the metrics of runs: ``point``, ``arm``, ``replication`` and the metrics."""
    frame = _table(batch, rows, backend)
    pairs = zip(batch.scenario.arms, batch.cells, strict=True)
    named = [(name, point, cell.arm) for name, cell in pairs for point in cell.points]
    schema = {"arm": pl.String, "point": pl.Int64, "_arm": pl.String}
    cells = pl.DataFrame(named, schema=schema, orient="row")
    joined = frame.join(cells, on="arm", how="left", maintain_order="left")
    return joined.select(
        pl.col("point"),
        pl.col("_arm").alias("arm"),
        pl.col("replication").cast(pl.Int64),
        *frame.columns[2:],
    )


def _table(batch: Batch, rows: Mapping[int, bytes], backend: str | None) -> pl.DataFrame:
    """Return the metrics of runs by the arms of the batch, in the order of the runs."""
    return pl.DataFrame(meter(batch.scenario, backend).table(list(rows.items())))


def _by_batch(rows: Sequence[Row], missing: dict[Run, Batch]) -> dict[Batch, dict[int, bytes]]:
    """Return rows by their batches; their runs are no longer missing."""
    found: dict[Batch, dict[int, bytes]] = {}
    for run, row in rows:
        batch = missing.pop(run, None)
        if batch is None:
            message = (
                "the executor returned a run that it was not given, or one twice; expected a row "
                "for each run"
            )
            raise _core.SojournError(message)
        found.setdefault(batch, {})[run.number] = row
    return found


def _values(
    batch: Batch, rows: Mapping[int, bytes], until: Until, backend: str | None
) -> list[list[float]]:
    """Return the values of the metric of `until` per cell, in the order of the replications.

    The order is fixed, because sums of the same values in another order may differ.
    """
    frame = _table(batch, rows, backend)
    with in_argument("until", until.text):
        column = metric_column(until.metric, frame.columns[2:])
    numbers = {arm: cell for cell, arm in enumerate(batch.scenario.arms)}
    values: list[list[float]] = [[] for _ in batch.cells]
    for arm, value in frame.select("arm", column).iter_rows():
        if value is not None:
            values[numbers[arm]].append(value)
    return values
