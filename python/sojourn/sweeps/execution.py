"""Execute the runs of a sweep until their intervals are narrow; keep only their metrics."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError, in_argument
from sojourn.execute.executor import Executor
from sojourn.execute.points import PointGroup
from sojourn.execute.runs import ERRORS, Row, RowStore, Run, by_scenario, meter
from sojourn.result import budget
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
    max_memory: str | None = None
    total: int = 0
    finished: int = 0
    # Runs that were in the store.
    reused: int = 0
    frames: list[pl.DataFrame] = field(default_factory=list)
    # The first error that prevented storing a run.
    failure: str | None = None
    # The rows of groups that may get more runs, by their numbers.
    _rows: dict[PointGroup, dict[int, bytes]] = field(default_factory=dict)

    def execute(self, groups: Sequence[PointGroup]) -> None:
        """Execute rounds of runs until every arm of every point has enough."""
        arms: dict[PointGroup, Sequence[int]] = {group: range(len(group.arms)) for group in groups}
        first, after = 0, self.replications
        try:
            while arms:
                self.total += (after - first) * sum(map(len, arms.values()))
                self._report()
                self._round(arms, first, after)
                arms = {} if self.until is None else self._imprecise(arms, self.until)
                # Half as many again: few rounds, and few unnecessary runs.
                first, after = after, after + max(self.replications // 2, 1)
                arms = {group: own for group, own in arms.items() if first < group.most}
                after = min([after, *(group.most for group in arms)])
        finally:
            # Also after an interrupt: these runs have finished.
            for group in list(self._rows):
                self._end(group)

    def _round(self, arms: Mapping[PointGroup, Sequence[int]], first: int, after: int) -> None:
        """Execute some replications of arms, apart from those that are stored."""
        # The runs that have not finished, and how many each group has.
        missing: dict[Run, PointGroup] = {}
        left: Counter[PointGroup] = Counter()
        # With `until`, a group may get more runs later.
        done = self._end if self.until is None else self._close

        def parts() -> Iterator[Sequence[Run]]:
            for group, own in arms.items():
                runs = group.runs(own, first, after)
                known = self._rows.setdefault(group, {})
                known |= self._read(runs)
                rest = [run for run in runs if run.number not in known]
                if rest:
                    missing.update(dict.fromkeys(rest, group))
                    left[group] = len(rest)
                    yield rest
                else:
                    done(group)

        with (
            budget.enforced(self.max_memory),
            closing(self.executor.execute(parts())) as finished,
        ):
            for rows in finished:
                found = _by_group(rows, missing)
                # Store first, so that errors below lose no finished run.
                self._append(rows)
                for group, some in found.items():
                    self._rows[group].update(some)
                    left[group] -= len(some)
                self.finished += len(rows)
                if rows:
                    self._report()
                for group in found:
                    if left[group] == 0:
                        done(group)
        if missing:
            count = counted(len(missing), "run")
            message = f"the executor did not return {count}; expected a row for each"
            raise _core.SojournError(message)

    def _imprecise(
        self, arms: Mapping[PointGroup, Sequence[int]], until: Until
    ) -> dict[PointGroup, Sequence[int]]:
        """Return the arms whose metric is not yet precise enough, by their groups."""
        found: dict[PointGroup, Sequence[int]] = {}
        for group, own in arms.items():
            values = _values(group, self._rows[group], until, self.backend)
            if rest := [arm for arm in own if not until.met(values[arm])]:
                found[group] = rest
        return found

    def _end(self, group: PointGroup) -> None:
        """Compute the metrics of the finished runs of a group."""
        if rows := self._rows.pop(group):
            self.frames.append(_frame(group, rows, self.backend))
        self._close(group)

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

    def _close(self, group: PointGroup) -> None:
        with self._using() as store:
            if store is not None:
                store.close(group.scenario)

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
                for group in self._rows:
                    with suppress(*ERRORS):
                        store.close(group.scenario)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.finished, self.total)


def _frame(group: PointGroup, rows: Mapping[int, bytes], backend: str | None) -> pl.DataFrame:
    """Return the metrics of runs: ``point``, ``arm``, ``replication`` and the metrics."""
    frame = _table(group, rows, backend)
    pairs = zip(group.scenario.arms, group.arms, strict=True)
    named = [(name, point, one.arm) for name, one in pairs for point in one.points]
    schema = {"arm": pl.String, "point": pl.Int64, "_arm": pl.String}
    of_points = pl.DataFrame(named, schema=schema, orient="row")
    joined = frame.join(of_points, on="arm", how="left", maintain_order="left")
    return joined.select(
        pl.col("point"),
        pl.col("_arm").alias("arm"),
        pl.col("replication").cast(pl.Int64),
        *frame.columns[2:],
    )


def _table(group: PointGroup, rows: Mapping[int, bytes], backend: str | None) -> pl.DataFrame:
    """Return the metrics of runs by the arms of the group, in the order of the runs."""
    return pl.DataFrame(meter(group.scenario, backend).table(list(rows.items())))


def _by_group(
    rows: Sequence[Row], missing: dict[Run, PointGroup]
) -> dict[PointGroup, dict[int, bytes]]:
    """Return rows by their groups; their runs are no longer missing."""
    found: dict[PointGroup, dict[int, bytes]] = {}
    for run, row in rows:
        group = missing.pop(run, None)
        if group is None:
            message = (
                "the executor returned a run that it was not given, or one twice; expected a row "
                "for each run"
            )
            raise _core.SojournError(message)
        found.setdefault(group, {})[run.number] = row
    return found


def _values(
    group: PointGroup, rows: Mapping[int, bytes], until: Until, backend: str | None
) -> list[list[float]]:
    """Return the values of the metric of `until` per arm, in the order of the replications.

    The order is fixed, because sums of the same values in another order may differ.
    """
    frame = _table(group, rows, backend)
    with in_argument("until", until.text):
        column = metric_column(until.metric, frame.columns[2:])
    numbers = {arm: number for number, arm in enumerate(group.scenario.arms)}
    values: list[list[float]] = [[] for _ in group.arms]
    for arm, value in frame.select("arm", column).iter_rows():
        if value is not None:
            values[numbers[arm]].append(value)
    return values
