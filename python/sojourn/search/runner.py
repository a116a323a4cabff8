"""Runs of a search: points of a scenario, measured once and reused."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import polars as pl

from sojourn import _core
from sojourn.execute import targets
from sojourn.execute.executor import ExecutionPlan, Executor
from sojourn.execute.local import LocalExecutor
from sojourn.execute.points import grouped
from sojourn.execute.runs import RowStore, local_store, meter
from sojourn.execute.targets import Target, store_of, target
from sojourn.result import budget
from sojourn.scenario import Scenario
from sojourn.search.dimensions import Values, listed
from sojourn.search.plan import PreparedSearch
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import PreparedSweep, execute
from sojourn.sweeps.space import Space

Planned = TypeVar("Planned", bound=PreparedSearch)
Found = TypeVar("Found")
Key = tuple[str, int, str]


def fresh_seed(seed: int, purpose: str) -> int:
    """Return a seed for runs that is new to the search.

    Examples
    --------
    >>> fresh_seed(1, "interval") == fresh_seed(1, "interval") != fresh_seed(2, "interval")
    True
    """
    number = 0
    while True:
        text = f"{seed} {purpose} {number}"
        # 31 bits, so that it is accepted and read easily.
        found = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) >> 1
        if found != seed:
            return found
        number += 1


@dataclass(slots=True, kw_only=True)
class Runner:
    """Executes the runs of a search."""

    executor: Executor = field(default_factory=LocalExecutor)
    store: RowStore | None = None
    jobs: int | None = None
    backend: str | None = None
    max_memory: str | None = None
    progress: Callable[[int, int], object] | None = None
    planned: int = 0
    finished: int = 0
    # Trials without runs, because they do not meet the conditions of the search.
    pruned: int = 0
    # Runs that were in the store.
    reused: int = 0
    # The first error that prevented storing a run.
    failure: str | None = None
    # Warnings about the stores, complete when the runner is closed.
    warnings: list[str] = field(default_factory=list)
    _known: dict[Key, pl.DataFrame] = field(default_factory=dict)
    # The metrics that runs at any point may have.
    _metrics: dict[str, None] = field(default_factory=dict)

    def measure(
        self, scenario: Scenario, changes: Sequence[Values], *, replications: int, seed: int
    ) -> list[pl.DataFrame]:
        """Return the metrics of the runs of a scenario at some points.

        Replication `k` has the same seed at all points.
        """
        seeded = scenario.replace(seed=seed)
        found = [self._key(seeded, values, replications) for values in changes]
        missing = {
            key: values
            for key, values in zip(found, changes, strict=True)
            if key not in self._known
        }
        if missing:
            frames = self._execute(seeded, list(missing.values()), replications)
            self._known |= dict(zip(missing, frames, strict=True))
        # Known points need no runs.
        known = len(changes) - len(missing)
        self.finished += known * replications * len(scenario.checked.arms)
        self._report(0)
        return [self._with_metrics(self._known[key]) for key in found]

    def attempt(
        self, scenario: Scenario, changes: Sequence[Values], *, replications: int, seed: int
    ) -> list[pl.DataFrame | str]:
        """Return the metrics of points as :meth:`measure` does, or what is wrong with a point."""
        faults = [self.invalid(scenario, values) for values in changes]
        valid = [values for values, fault in zip(changes, faults, strict=True) if fault is None]
        invalid = len(changes) - len(valid)
        self.planned -= invalid * replications * len(scenario.checked.arms)
        frames = iter(self.measure(scenario, valid, replications=replications, seed=seed))
        return [next(frames) if fault is None else fault for fault in faults]

    def invalid(self, scenario: Scenario, values: Values) -> str | None:
        """Return what is wrong with a point; None if it is valid."""
        try:
            list(grouped(scenario, listed(scenario, [values]), 1))
        except _core.ScenarioError as error:
            return f"{error}"
        return None

    @staticmethod
    def _key(scenario: Scenario, values: Values, replications: int) -> Key:
        return scenario.hash, replications, json.dumps(values, sort_keys=True)

    def _execute(
        self, scenario: Scenario, changes: Sequence[Values], replications: int
    ) -> list[pl.DataFrame]:
        found = listed(scenario, changes)
        of_points = tuple(grouped(scenario, found, replications))
        for group in of_points:
            budget.check(group.scenario, jobs=self.jobs, max_memory=self.max_memory, metrics=True)
            _core.check_backend(group.scenario, self.backend)
        planned = PreparedSweep(
            scenario=scenario,
            space=Space(parameters=()),
            points=tuple(found),
            groups=of_points,
            replications=replications,
            until=None,
            most=replications,
        )
        execution = Execution(
            replications=replications,
            executor=self.executor,
            backend=self.backend,
            store=self.store,
            max_memory=self.max_memory,
            progress=lambda done, _total: self._report(done),
        )
        try:
            runs = execute(planned, execution).runs
        finally:
            self.finished += execution.finished
            self.reused += execution.reused
            self.failure = self.failure or execution.failure
        metrics = [name for name in runs.columns if name != "point"]
        for one in (scenario.checked, *(group.scenario for group in of_points)):
            self._metrics |= dict.fromkeys(meter(one, self.backend).metrics)
        by_point = {
            point: frame.select(metrics)
            for (point,), frame in runs.group_by("point", maintain_order=True)
        }
        return [by_point[number] for number in range(len(found))]

    def _with_metrics(self, frame: pl.DataFrame) -> pl.DataFrame:
        missing = [name for name in self._metrics if name not in frame.columns]
        return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing)

    def _report(self, more: int) -> None:
        if self.progress is not None:
            done = self.finished + more
            self.progress(done, max(self.planned, done))


@contextmanager
def opened(
    scenario: Scenario,
    on: Target,
    *,
    store: str | None,
    local: RowStore | None,
    jobs: int | None,
    fresh: bool,
    max_memory: str | None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Runner]:
    """Open a runner, and close its executor and its store afterwards."""
    # The points of a search are not known yet: the original one stands for them.
    original = list(grouped(scenario, listed(scenario, [{}]), 1))
    _core.check_backend(original[0].scenario, on.backend)
    scenarios = [original[0].scenario]
    with targets.opened(scenarios, on, store=store, local=local, jobs=jobs, fresh=fresh) as at:
        runner = Runner(
            executor=at.executor,
            store=at.store,
            jobs=jobs,
            backend=on.backend,
            max_memory=max_memory,
            progress=progress,
        )
        yield runner
    runner.warnings = at.all_warnings(runner.failure)


def executed(
    planned: Planned, execute: Callable[[Planned, Runner], Found], plan: ExecutionPlan
) -> Found:
    """Execute a search for a function of Python."""
    at = target(plan.on)
    with opened(
        planned.scenario,
        at,
        store=store_of(at, plan.shared),
        local=local_store(plan.store, at.backend, fresh=plan.fresh),
        jobs=plan.jobs,
        fresh=plan.fresh,
        max_memory=plan.max_memory,
        progress=plan.progress,
    ) as runner:
        result = execute(planned, runner)
    for text in runner.warnings:
        # In the code that called `tune` or another search.
        warnings.warn(text, stacklevel=4)
    return result
