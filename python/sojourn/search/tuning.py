"""Find settings that are best in one or several objectives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from sojourn.document import needs
from sojourn.result.metrics import mean_and_interval
from sojourn.scenario import Scenario
from sojourn.search.dimensions import Values, check_paths, dimensions, measured_links
from sojourn.search.laboratory import Laboratory, executed, fresh_seed
from sojourn.search.objectives import Objective
from sojourn.search.objectives import objectives as read_objectives
from sojourn.search.optimising import Costs, Trial, compromise, dominates
from sojourn.search.planned import TrialSearch, check_numbers, conditions
from sojourn.search.settings import of_arm
from sojourn.search.trying import tried
from sojourn.search.tune_result import TuneResult
from sojourn.sweeps.parameters import Parameter
from sojourn.sweeps.parameters import parameters as read_parameters

TRIALS = 100
# Runs per trial, and per trial on the front with new seeds.
REPLICATIONS = 3
INTERVALS = 10
# Most trials of the front that are measured again: more than a person compares.
MAX_FRONT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning(TrialSearch):
    """A checked search for settings: the scenario has no arms."""

    objectives: tuple[Objective, ...]

    @property
    def runs(self) -> int:
        """The most runs that the search needs."""
        # The front of one objective is its best trial.
        front = 1 if len(self.objectives) == 1 else min(MAX_FRONT, self.trials)
        return self.trials * self.replications + (front + 1) * self.intervals

    def own(self) -> dict[str, Any]:
        """Describe what only this kind of search has."""
        return {
            **TrialSearch.own(self),
            "objectives": [one.text for one in self.objectives],
            "seed_of_intervals": fresh_seed(self.seed, "intervals"),
        }


def tuning(
    scenario: Scenario,
    parameters: Sequence[Parameter],
    texts: Sequence[str],
    *,
    arm: str | None = None,
    where: Sequence[str] = (),
    trials: int = TRIALS,
    replications: int = REPLICATIONS,
    intervals: int = INTERVALS,
) -> Tuning:
    """Check a search for settings; the parameters are those of :func:`tune`."""
    check_numbers(trials=trials, replications=replications, intervals=intervals)
    base = of_arm(scenario, arm, "tune")
    found = dimensions(parameters, "tune")
    check_paths(base, found)
    return Tuning(
        scenario=base,
        dimensions=tuple(found),
        objectives=tuple(read_objectives(texts, links=measured_links(base, found))),
        trials=trials,
        replications=replications,
        intervals=intervals,
        where=conditions(where, base, parameters, found),
    )


def execute(planned: Tuning, laboratory: Laboratory) -> TuneResult:
    """Search for settings."""
    found = tried(
        planned,
        laboratory,
        lambda runs: _costs(runs, planned.objectives),
        objectives=len(planned.objectives),
        command="tune",
        measures="the objectives were not measured",
    )
    best = found.best
    shown = best if len(best) <= MAX_FRONT else _spread(best)
    laboratory.planned = laboratory.finished + (len(shown) + 1) * planned.intervals
    measured = _front(planned, shown, laboratory)
    # By the seeds of the search: choosing by the new seeds would bias their intervals.
    chosen = shown[compromise([one.costs or () for one in shown])]
    manifest = {
        **planned.document(),
        "best": chosen.number,
        "points": {f"{one.number}": dict(one.values) for one in shown},
        "invalid": found.faults,
    }
    return TuneResult(
        manifest,
        _trials(planned, found.trials, {one.number for one in best}),
        _frame(planned, measured),
        pl.DataFrame(
            [
                (planned.objectives[one.objective].text, one.parameter, one.mean, one.low, one.high)
                for one in found.optimisation.importance
            ],
            schema={
                "objective": pl.String,
                "parameter": pl.String,
                "importance": pl.Float64,
                "low": pl.Float64,
                "high": pl.Float64,
            },
            orient="row",
        ),
    )


def _costs(runs: pl.DataFrame, of: Sequence[Objective]) -> Costs:
    """Return the means of the objectives, smaller is better; None if a run lacks one."""
    found = []
    for one in of:
        values = one.measured(runs, f'--objective "{one.text}"')
        if values is None:
            return None
        found.append(one.sign * fmean(values.values()))
    return tuple(found)


def _spread(best: Sequence[Trial]) -> list[Trial]:
    """Select trials of the front at equal distances in its order, including both ends."""
    step = (len(best) - 1) / (MAX_FRONT - 1)
    return [best[round(n * step)] for n in range(MAX_FRONT)]


def _front(planned: Tuning, shown: Sequence[Trial], laboratory: Laboratory) -> list[dict[str, Any]]:
    """Measure the front, then the original scenario, with new seeds."""
    seed = fresh_seed(planned.seed, "intervals")
    frames = laboratory.measure(
        planned.scenario,
        [one.values for one in shown],
        replications=planned.intervals,
        seed=seed,
    )
    frames += laboratory.measure(planned.scenario, [{}], replications=planned.intervals, seed=seed)
    places: list[Trial | None] = [*shown, None]
    rows: list[dict[str, Any]] = []
    for trial, runs in zip(places, frames, strict=True):
        row: dict[str, Any] = {"trial": None if trial is None else trial.number, "n": runs.height}
        row["values"] = {} if trial is None else trial.values
        for one in planned.objectives:
            place = f'--objective "{one.text}"'
            # No estimate if a run lacks the objective.
            values, before = (one.measured(frame, place) or {} for frame in (runs, frames[-1]))
            shared = sorted(values.keys() & before.keys())
            differences = [values[run] - before[run] for run in shared]
            name = one.text
            for end, estimate in (("", list(values.values())), ("_change", differences)):
                found = mean_and_interval(estimate)
                keys = (f"{name}{end}", f"{name}{end}_low", f"{name}{end}_high")
                row |= dict(zip(keys, found, strict=True))
        rows.append(row)
    costs = [_signed(row, planned.objectives) for row in rows[:-1]]
    for row, own in zip(rows, costs, strict=False):
        row["dominated"] = any(dominates(other, own) for other in costs)
    rows[-1]["dominated"] = None
    return rows


def _signed(row: Mapping[str, Any], of: Sequence[Objective]) -> Costs:
    values = [row[one.text] for one in of]
    if any(value is None for value in values):
        return None
    return tuple(one.sign * value for one, value in zip(of, values, strict=True))


def _trials(planned: Tuning, trials: Sequence[Trial], best: set[int]) -> pl.DataFrame:
    rows = [
        {
            "trial": one.number,
            **_written(one.values, planned),
            "state": one.state,
            "front": one.number in best,
            **{
                of.text: None if one.costs is None else of.sign * one.costs[place]
                for place, of in enumerate(planned.objectives)
            },
        }
        for one in trials
    ]
    schema = {one.text: pl.Float64 for one in planned.objectives}
    return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)


def _frame(planned: Tuning, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    ends = ("", "_low", "_high", "_change", "_change_low", "_change_high")
    columns = [f"{one.text}{end}" for one in planned.objectives for end in ends]
    table = [
        {
            "trial": row["trial"],
            **_written(row["values"], planned),
            "n": row["n"],
            "dominated": row["dominated"],
            **{name: row[name] for name in columns},
        }
        for row in rows
    ]
    schema = {"trial": pl.Int64, "dominated": pl.Boolean, **dict.fromkeys(columns, pl.Float64)}
    return pl.DataFrame(table, schema_overrides=schema, infer_schema_length=None)


def _written(values: Values, planned: Tuning) -> dict[str, str | None]:
    """Write the values of the parameters as texts: a parameter may have values of any type."""
    return {path: f"{values[path]}" if path in values else None for path in planned.paths}


def tune(
    scenario: Scenario,
    parameters: Mapping[Any, Any],
    objectives: str | Sequence[str],
    *,
    arm: str | None = None,
    where: str | Sequence[str] = (),
    trials: int = TRIALS,
    replications: int = REPLICATIONS,
    intervals: int = INTERVALS,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    backend: str | None = None,
    store: str | Path | None = None,
    on: str | None = None,
    shared: str | Path | None = None,
    max_memory: str | None = None,
) -> TuneResult:
    """Search for the parameter values that are best in one or several objectives.

    Optuna proposes the values. The trials on the Pareto front are measured again with new seeds,
    because the best of many trials is partly best by chance.

    Parameters
    ----------
    scenario
        The scenario.
    parameters
        Values or ranges by their path, as for :func:`sweep`: ``"loguniform(1ms,50ms)"``,
        ``"uniform(0,1)"``, ``"integers(1,8)"``, or a list, whose values have no order.
    objectives
        Each ``"min"`` or ``"max"`` and a metric of runs, or an expression of metrics:
        ``"min ping_ms_p99"``, ``"max goodput_down"``.
    arm
        Name of the arm to tune, if the scenario has several.
    where
        Conditions that points must meet, as for :func:`sweep`. A trial at another point is pruned:
        it counts as one of `trials`, but has no runs.
    trials
        Number of trials. They run in batches of 8, with any `jobs`.
    replications
        Runs per trial.
    intervals
        Runs per trial on the front, with new seeds.
    seed
        Replaces the seed of the scenario. The same seed gives the same trials.
    jobs, progress, backend, on, shared, max_memory
        As for :func:`sweep`.
    store
        Directory in which each run is stored when it finishes; after an interruption, the same
        call with the same store does not repeat finished runs.

    Returns
    -------
    TuneResult
        Trials, front, importance and settings.

    Raises
    ------
    UnavailableError
        Optuna or another package is not installed, or the cluster is not available.
    ScenarioError
        A parameter, an objective or a place is not valid, or no trial is a valid scenario.
    ResultError
        A store cannot be read or written.
    SweepInterrupted
        Ctrl-C ended the runs.
    """
    needs("tune", scenario, Scenario, "a Scenario")
    if not isinstance(parameters, Mapping):
        # The keys of parameters that change together are tuples.
        needs("parameters", parameters, Mapping, "a mapping from paths to values")
    chosen = scenario if seed is None else scenario.replace(seed=seed)
    planned = tuning(
        chosen,
        read_parameters(parameters),
        [objectives] if isinstance(objectives, str) else list(objectives),
        arm=arm,
        where=[where] if isinstance(where, str) else list(where),
        trials=trials,
        replications=replications,
        intervals=intervals,
    )
    return executed(
        planned,
        execute,
        jobs=jobs,
        progress=progress,
        backend=backend,
        store=store,
        on=on,
        shared=shared,
        max_memory=max_memory,
    )
