"""Run sweeps."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.arguments.common import MAX_REPLICATIONS
from sojourn.document import bounded, needs
from sojourn.execute.batches import Batch, batches
from sojourn.execute.executor import Executor
from sojourn.execute.places import opened, place_of, store_of
from sojourn.execute.stores import local_store
from sojourn.result import budget
from sojourn.result.naming import check_possible, queued_links
from sojourn.scenario import Scenario
from sojourn.sweeps import storage, until
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.origins import naming_keys
from sojourn.sweeps.parameters import parameters as read_parameters
from sojourn.sweeps.result import KEYS, SweepResult
from sojourn.sweeps.space import Point, Space, points, space
from sojourn.sweeps.until import LEAST_RUNS, Until

# Bound of the replications with `until`, relative to those of the scenario.
_MORE = 10


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C ended :func:`sojourn.sweep` before all runs had finished.

    Parameters
    ----------
    result
        The finished runs: a sweep that is not complete.
    """

    def __init__(self, result: SweepResult) -> None:
        super().__init__("interrupted before all runs had finished")
        self.result = result


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A checked sweep, which can be executed."""

    scenario: Scenario
    space: Space
    points: tuple[Point, ...]
    batches: tuple[Batch, ...]
    replications: int
    until: Until | None
    most: int
    table_keys: frozenset[str] = frozenset()

    @property
    def runs(self) -> int:
        """Number of runs, or of the first ones if `until` is set."""
        return self.replications * sum(len(batch.cells) for batch in self.batches)

    def estimate(self, *, jobs: int | None, max_memory: str | None) -> dict[str, Any]:
        """Estimate runs, packets, CPU time and memory, of the first runs if `until` is set."""
        total = {"packets": 0.0, "events": 0.0, "cpu_s": 0.0}
        peak = 0.0
        for batch in self.batches:
            budget.check(batch.scenario, jobs=jobs, max_memory=max_memory, metrics=True)
            found = json.loads(_core.estimate(batch.scenario, jobs=jobs, metrics=True))
            share = self.replications / batch.most
            total = {key: value + found[key] * share for key, value in total.items()}
            peak = max(peak, found["peak_memory_bytes"])
        return {"runs": self.runs, **total, "peak_memory_bytes": peak}

    def manifest(self, *, complete: bool) -> dict[str, Any]:
        """Describe the sweep, for :class:`SweepResult`."""
        return {
            "format": storage.FORMAT,
            "sojourn": {"version": _core.version(), "commit": _core.commit()},
            "scenario": json.loads(self.scenario.checked.to_json()),
            "scenario_sha256": self.scenario.hash,
            "space": self.space.document(),
            "paths": self.space.paths,
            "points": len(self.points),
            "replications": self.replications,
            "until": None if self.until is None else self.until.text,
            "most": self.most,
            "complete": complete,
        }


def plan(
    scenario: Scenario,
    of: Space,
    *,
    replications: int | None = None,
    until_: str | None = None,
    most: int | None = None,
) -> Plan:
    """Check a sweep."""
    stop = None if until_ is None else until.until(until_)
    if most is not None and stop is None:
        message = "--most: requires --until, such as 'ping_ms_p99 ±5 %'"
        raise _core.ScenarioError(message)
    if replications is not None:
        bounded("--replications", replications, 1, MAX_REPLICATIONS)
    if most is not None:
        bounded("--most", most, 1, MAX_REPLICATIONS)
    first = scenario.checked.replications if replications is None else replications
    if stop is not None:
        first = max(first, LEAST_RUNS)
    last = min(_MORE * first, MAX_REPLICATIONS) if most is None else most
    if stop is None:
        last = first
    if last < first:
        message = (
            f"--most {most}: expected at least {first}, the number of runs per point before the "
            "precision is first checked"
        )
        raise _core.ScenarioError(message)
    found = points(of, scenario)
    if stop is not None:
        links = queued_links(scenario.checked, [point.changes for point in found])
        check_possible(stop.metric, "--until", links)
    return Plan(
        scenario=scenario,
        space=of,
        points=tuple(found),
        batches=tuple(batches(scenario, found, last)),
        replications=first,
        until=stop,
        most=last,
    )


def execute(planned: Plan, execution: Execution) -> SweepResult:
    """Execute a sweep."""
    try:
        with naming_keys("sweep", planned.table_keys):
            execution.execute(planned.batches)
    except KeyboardInterrupt:
        result = SweepResult(planned.manifest(complete=False), _runs(planned, execution.frames))
        raise SweepInterrupted(result) from None
    return SweepResult(planned.manifest(complete=True), _runs(planned, execution.frames))


def _runs(planned: Plan, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put the metrics of all runs in order and add the values of the parameters."""
    values = {path: _column(planned.points, path) for path in planned.space.paths}
    described = pl.DataFrame({"point": range(len(planned.points)), **values})
    described = described.with_columns(pl.col("point").cast(pl.Int64))
    if not frames:
        schema = {"point": pl.Int64, "arm": pl.String, "replication": pl.Int64}
        frames = [pl.DataFrame(schema=schema)]
    found = pl.concat(frames, how="diagonal_relaxed")
    arms = planned.scenario.checked.arms
    order = pl.DataFrame({"arm": arms, "_order": range(len(arms))})
    metrics = [name for name in found.columns if name not in KEYS]
    return (
        found.join(order, on="arm", how="left")
        .join(described, on="point", how="left")
        .sort("point", "_order", "replication")
        .select("point", *planned.space.paths, "arm", "replication", *metrics)
    )


def _column(found: Sequence[Point], path: str) -> pl.Series:
    """Return the values of a parameter: numbers, or else texts."""
    values = [point.values[path] for point in found]
    if all(isinstance(value, bool) for value in values):
        return pl.Series(path, values, dtype=pl.Boolean)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        return pl.Series(path, texts, dtype=pl.String)
    whole = all(isinstance(value, int) for value in values)
    return pl.Series(path, values, dtype=pl.Int64 if whole else pl.Float64, strict=False)


def sweep(
    scenario: Scenario,
    parameters: Mapping[Any, Any],
    *,
    where: str | Sequence[str] = (),
    sample: str | None = None,
    replications: int | None = None,
    seed: int | None = None,
    until: str | None = None,
    most: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    backend: str | None = None,
    store: str | Path | None = None,
    on: str | Executor | None = None,
    shared: str | Path | None = None,
    max_memory: str | None = None,
) -> SweepResult:
    """Run a scenario at many points of its parameters.

    Only the metrics of each run are kept in memory. Replication `k` has the same seed at all
    points, so differences between points are paired.

    Parameters
    ----------
    scenario
        The scenario. Its arms are run at each point.
    parameters
        Values by their path, as in ``-s``: a list such as ``["1ms", "5ms"]``, or a text such as
        ``"logspace(1mbit,1gbit,7)"``, ``"linspace(1ms,9ms,5)"`` or ``"range(10ms,50ms,10ms)"``.
        ``*`` in a path stands for all links, or all traffic that has the key. The key of parameters
        that change together is a tuple of paths, and each of its values a tuple. All others are
        combined with each other.
    where
        Conditions that points must meet, such as ``"links.down.rate >= links.up.rate"``.
    sample
        ``"lhs:64"`` or ``"sobol:64"``: draw 64 samples from the parameters whose values are
        ``"uniform(low,high)"``, ``"loguniform(low,high)"`` or ``"integers(low,high)"``. Requires
        scipy.
    replications, seed
        Replace those of the scenario.
    until
        Add replications to a point until the 95 % interval of a metric is narrow enough:
        ``"ping_ms_p99 ±5 %"`` or ``"goodput_down ±0.1"``.
    most
        The most replications with `until`; by default ten times as many as without.
    jobs, progress, backend, max_memory
        As for :func:`run`.
    store
        Directory in which each run is stored when it finishes; stored runs are not repeated. By
        default, runs are not stored.
    on
        ``"dask"`` executes the runs on `jobs` processes of Dask Distributed,
        ``"dask://head:8786"`` on the workers of that scheduler. An object of a class that executes
        runs may be given, too. By default, threads are used.
    shared
        A store that several machines share: ``"s3://bucket/prefix"`` or a directory. Its runs are
        not repeated. Required for the workers of a scheduler.

    Returns
    -------
    SweepResult
        The metrics of all runs.

    Raises
    ------
    SweepInterrupted
        Ctrl-C ended the runs; the exception, a ``KeyboardInterrupt``, has the finished runs in its
        attribute ``result``.
    ResultError
        A store cannot be read or written.
    ScenarioError
        A parameter, a value, a condition or a place is not valid; the message names it.
    UnavailableError
        A package is missing, or the cluster is not available.

    Examples
    --------
    >>> from sojourn import Link, Ping, Scenario, Tcp
    >>> scenario = Scenario(
    ...     links={
    ...         "up": Link(rate="10mbit", qdisc="codel"),
    ...         "down": Link(rate="10mbit", qdisc="pfifo"),
    ...     },
    ...     traffic=[Tcp(direction="up"), Ping(direction="up", interval="100ms")],
    ...     rtt="50ms",
    ...     duration="3s",
    ...     warmup="1s",
    ... )
    >>> found = sweep(scenario, {"links.up.qdisc.target": ["1ms", "20ms"]})
    >>> found.points.select("links.up.qdisc.target", "n").rows()
    [('1ms', 1), ('20ms', 1)]
    """
    needs("sweep", scenario, Scenario, "a Scenario")
    if not isinstance(parameters, Mapping):
        needs("parameters", parameters, Mapping, "a mapping from paths to values")
    chosen = scenario if seed is None else scenario.replace(seed=seed)
    conditions = [where] if isinstance(where, str) else list(where)
    planned = plan(
        chosen,
        space(read_parameters(parameters), conditions, sample),
        replications=replications,
        until_=until,
        most=most,
    )
    where_ = place_of(on, backend)
    for batch in planned.batches:
        budget.check(batch.scenario, jobs=jobs, max_memory=max_memory, metrics=True)
        _core.check_backend(batch.scenario, where_.backend)
    local = local_store(store, where_.backend)
    shared = store_of(where_, shared)
    scenarios = [batch.scenario for batch in planned.batches]
    with opened(scenarios, where_, store=shared, local=local, jobs=jobs) as at:
        execution = Execution(
            replications=planned.replications,
            executor=at.executor,
            until=planned.until,
            backend=where_.backend,
            store=at.store,
            progress=progress,
        )
        result = execute(planned, execution)
    for text in at.all_warnings(execution.failure):
        warnings.warn(text, stacklevel=2)
    return result
