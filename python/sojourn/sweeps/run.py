"""Run sweeps."""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any

import polars as pl

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, in_argument, takes
from sojourn.arguments.common import MAX_REPLICATIONS, POINTS, RUNS, Parameters, Where
from sojourn.execute.executor import ExecutionPlan
from sojourn.execute.points import PointGroup, grouped
from sojourn.execute.runs import local_store
from sojourn.execute.targets import opened, store_of, target
from sojourn.result import budget
from sojourn.result.formatting import size
from sojourn.result.naming import check_possible, queued_links
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value
from sojourn.sweeps.execution import LEAST_RUNS, Execution, Until, until
from sojourn.sweeps.parameters import parameters as read_parameters
from sojourn.sweeps.result import KEYS, SweepResult
from sojourn.sweeps.space import Point, Space, points, space

# Bound of the replications with `until`, relative to those of the scenario.
_MORE = 10
# Memory of an arm of a point while a sweep runs, per byte of its scenario in JSON and in addition,
# and that of the metrics of a run: 4.4 to 6.8 kB per arm for scenarios of 0.4 to 1.3 kB (27
# November 2026).
_PER_BYTE = 4
_BYTES_PER_ARM = 3_200
_BYTES_PER_RUN = 400


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


@dataclass(frozen=True)
class SweepPlan(ExecutionPlan):
    """The arguments of a sweep."""

    scenario: Annotated[
        Scenario,
        Argument(help="The scenario. Its arms are run at each point.", option="FILE"),
    ]
    parameters: Parameters
    _: KW_ONLY
    where: Where = ()
    sampling: Annotated[
        str | None,
        Argument(
            help="Sampling method and number of samples: lhs:64 (Latin hypercube) or sobol:64.",
            more="The ranges are the parameters whose values are ``'uniform(low,high)'``, "
            "``'loguniform(low,high)'`` or ``'integers(low,high)'``. Requires scipy.",
            pattern=r"^\s*(lhs|sobol):[1-9]\d{0,6}\s*$",
            metavar="KIND:COUNT",
            in_files=True,
            heading=POINTS,
        ),
    ] = None
    replications: Annotated[
        int | None,
        Argument(
            help="Runs per point and arm.",
            unset="as many as in the scenario",
            least=1,
            most=MAX_REPLICATIONS,
            metavar="N",
            in_files=True,
            heading=RUNS,
        ),
    ] = None
    until: Annotated[
        str | None,
        Argument(
            help="Add replications to a point until the 95 % interval of a metric is narrow "
            "enough, such as 'ping_ms_p99 ±5 %' or 'goodput_down ±0.1'; +- may replace ±.",
            metavar="PRECISION",
            in_files=True,
            heading=RUNS,
        ),
    ] = None
    max_replications: Annotated[
        int | None,
        Argument(
            help="Maximum number of runs per point and arm with {until}.",
            unset="ten times the replications without it",
            least=1,
            most=MAX_REPLICATIONS,
            metavar="N",
            in_files=True,
            heading=RUNS,
            rare=True,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSweep:
    """A checked sweep, which can be executed."""

    scenario: Scenario
    space: Space
    points: Sequence[Point]
    groups: Sequence[PointGroup]
    replications: int
    until: Until | None
    most: int

    @property
    def runs(self) -> int:
        """Number of runs, or of the first ones if `until` is set."""
        return self.replications * sum(len(group.arms) for group in self.groups)

    @property
    def changes(self) -> Iterator[Mapping[str, Any]]:
        """What each point changes in the scenario."""
        return (point.changes for point in self.points)

    @property
    def queued_links(self) -> list[str]:
        """The links that have a queue at some point."""
        paths = (path.split(".") for path in self.points[0].changes)
        # All points change the same paths.
        is_same = not any(len(path) == 2 and path[0] == "links" for path in paths)  # noqa: PLR2004
        return queued_links(
            self.scenario.checked, [self.points[0].changes] if is_same else self.changes
        )

    @property
    def first(self) -> _core.Scenario:
        """The scenario at the first point."""
        return next(grouped(self.scenario, self.points[:1], self.most)).scenario

    def estimate(
        self, *, jobs: int | None, max_memory: str | None, backend: str | None = None
    ) -> dict[str, Any]:
        """Estimate runs, packets, CPU time and memory, of the first runs if `until` is set.

        The groups are made one after the other if this sweep does not have them.
        """
        total = {"packets": 0.0, "events": 0.0, "cpu_s": 0.0}
        peak, arms = 0.0, 0
        for group in self.groups or grouped(self.scenario, self.points, self.most):
            budget.check(group.scenario, jobs=jobs, max_memory=max_memory, metrics=True)
            found = json.loads(_core.estimate(group.scenario, jobs=jobs, metrics=True))
            found |= budget.in_kernel(found, jobs=jobs, backend=backend)
            share = self.replications / group.most
            total = {key: value + (found[key] or 0) * share for key, value in total.items()}
            peak = max(peak, found["peak_memory_bytes"])
            arms += len(group.arms)
        return {
            "runs": self.replications * arms,
            **total,
            "peak_memory_bytes": peak + self.held_bytes,
        }

    @property
    def held_bytes(self) -> int:
        """Memory of the scenarios of all points and of the metrics of all runs, at most."""
        document = json.loads(self.scenario.checked.to_json())
        arms = document.pop("arms", [{}])
        size = len(json.dumps(document, separators=(",", ":")))
        arm = _BYTES_PER_ARM + _PER_BYTE * size + _BYTES_PER_RUN * self.replications
        return len(self.points) * len(arms) * arm

    def check_held(self, max_memory: str | None) -> None:
        """Refuse points that need more memory than the limit before they are made."""
        allowed, needed = budget.limit(max_memory), self.held_bytes
        if allowed is not None and needed > allowed:
            cause = (
                f"the scenarios and metrics of {len(self.points)} points, which need about "
                f"{size(needed)}"
            )
            budget.refuse(cause, max_memory, allowed, "fewer points")

    def manifest(self, *, complete: bool) -> dict[str, Any]:
        """Describe the sweep, for :class:`SweepResult`."""
        return {
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


def prepared(plan: SweepPlan, *, dry: bool = False) -> PreparedSweep:
    """Check a sweep: its points, and the numbers of runs that depend on each other.

    If it is `dry`, the groups of points are left out, which need much memory.
    """
    scenario = plan.scenario if plan.seed is None else plan.scenario.replace(seed=plan.seed)
    of = space(read_parameters(plan.parameters), plan.where, plan.sampling)
    stop = None if plan.until is None else until(plan.until)
    most = plan.max_replications
    if most is not None and stop is None:
        rule = "requires {until}, such as 'ping_ms_p99 ±5 %'"
        raise ArgumentError("max_replications", rule=rule)
    first = plan.replications or scenario.checked.replications
    if stop is None:
        last = first
    else:
        first = max(first, LEAST_RUNS)
        last = min(_MORE * first, MAX_REPLICATIONS) if most is None else most
    if last < first:
        rule = (
            f"expected at least {first}, the number of runs per point before the precision is "
            "first checked"
        )
        raise ArgumentError("max_replications", most, rule)
    found = PreparedSweep(
        scenario=scenario,
        space=of,
        points=points(of, scenario),
        groups=(),
        replications=first,
        until=stop,
        most=last,
    )
    if stop is not None:
        with in_argument("until", plan.until):
            check_possible(stop.metric, found.queued_links)
    found.check_held(plan.max_memory)
    return found if dry else replace(found, groups=tuple(grouped(scenario, found.points, last)))


def execute(planned: PreparedSweep, execution: Execution) -> SweepResult:
    """Execute a sweep."""
    try:
        execution.execute(planned.groups)
    except KeyboardInterrupt:
        result = SweepResult(planned.manifest(complete=False), _runs(planned, execution.frames))
        raise SweepInterrupted(result) from None
    return SweepResult(planned.manifest(complete=True), _runs(planned, execution.frames))


def _runs(planned: PreparedSweep, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put the metrics of all runs in order and add the values of the parameters."""
    values = _columns(planned.points, planned.space.paths)
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


def _columns(found: Iterable[Point], paths: Sequence[str]) -> dict[str, pl.Series]:
    """Return the values of the parameters."""
    listed: dict[str, list[Value]] = {path: [] for path in paths}
    for point in found:
        for path, values in listed.items():
            values.append(point.values[path])
    return {path: _column(path, values) for path, values in listed.items()}


def _column(path: str, values: Sequence[Value]) -> pl.Series:
    """Return the values of a parameter: numbers, or else texts."""
    if all(isinstance(value, bool) for value in values):
        return pl.Series(path, values, dtype=pl.Boolean)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        return pl.Series(path, texts, dtype=pl.String)
    whole = all(isinstance(value, int) for value in values)
    return pl.Series(path, values, dtype=pl.Int64 if whole else pl.Float64, strict=False)


@takes(SweepPlan)
def sweep(plan: SweepPlan) -> SweepResult:
    """Run a scenario with many combinations of parameter values.

    Only the metrics of each run are kept in memory. Replication `k` has the same seed at all
    points, so differences between points are paired.

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
    planned = prepared(plan)
    where = target(plan.on)
    for group in planned.groups:
        budget.check(group.scenario, jobs=plan.jobs, max_memory=plan.max_memory, metrics=True)
        _core.check_backend(group.scenario, where.backend)
    local = local_store(plan.store, where.backend, fresh=plan.fresh)
    shared = store_of(where, plan.shared)
    scenarios = [group.scenario for group in planned.groups]
    with opened(
        scenarios, where, store=shared, local=local, jobs=plan.jobs, fresh=plan.fresh
    ) as at:
        execution = Execution(
            replications=planned.replications,
            executor=at.executor,
            until=planned.until,
            backend=where.backend,
            store=at.store,
            progress=plan.progress,
            max_memory=plan.max_memory,
        )
        result = execute(planned, execution)
    for text in at.all_warnings(execution.failure):
        warnings.warn(text, stacklevel=3)
    return result
