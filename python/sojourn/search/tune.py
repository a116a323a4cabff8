"""Find settings that optimise one or several objectives."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import polars as pl

from sojourn import _core
from sojourn.arguments import Argument, takes
from sojourn.arguments.common import POINTS, RUNS, Where
from sojourn.execute.executor import ExecutionPlan
from sojourn.result.estimates import mean_and_interval
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value
from sojourn.search import figures
from sojourn.search.dimensions import Values, check_paths, dimensions, measured_links
from sojourn.search.objectives import Objective
from sojourn.search.objectives import objectives as read_objectives
from sojourn.search.plan import (
    MAX_RUNS,
    TRIAL_FIELDS,
    Arm,
    SearchParameters,
    Trials,
    TrialSearch,
    conditions,
)
from sojourn.search.runner import Runner, executed, fresh_seed
from sojourn.search.search_result import SearchResult
from sojourn.search.settings import Settings, changed, of_arm, settings
from sojourn.search.trials import Costs, Trial, compromise, dominates, tried
from sojourn.storage.saved import FLAG, NUMBER, TEXT, WHOLE, Columns
from sojourn.sweeps.parameters import parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Most trials of the front that are measured again: more than a person compares.
MAX_FRONT = 16


@dataclass(frozen=True)
class TunePlan(ExecutionPlan):
    """The arguments of a search for settings."""

    scenario: Annotated[Scenario, Argument(help="The scenario.", option="FILE")]
    parameters: SearchParameters
    objectives: Annotated[
        str | Sequence[str],
        Argument(
            help="An objective: min or max and a metric or an expression of metrics, such as "
            "'min ping_ms_p99' or 'max goodput_down'.",
            pattern=r"^\s*(min|max) ",
            least_items=1,
            example='"min ping_ms_p99"',
            option="--objective",
            metavar="OBJECTIVE",
            in_files=True,
            heading=POINTS,
        ),
    ]
    _: KW_ONLY
    arm: Arm = None
    where: Where = ()
    trials: Trials = 100
    replications: Annotated[
        int,
        Argument(
            help="Runs per trial.",
            least=1,
            most=MAX_RUNS,
            metavar="N",
            in_files=True,
            heading=RUNS,
        ),
    ] = 3
    final_replications: Annotated[
        int,
        Argument(
            help="Runs per trial on the Pareto front, with seeds new to the search.",
            least=2,
            most=MAX_RUNS,
            metavar="N",
            in_files=True,
            heading=RUNS,
        ),
    ] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTune(TrialSearch):
    """A checked search for settings: the scenario has no arms."""

    objectives: tuple[Objective, ...]

    @property
    def runs(self) -> int:
        """The most runs that the search needs."""
        # The front of one objective is its best trial.
        front = 1 if len(self.objectives) == 1 else min(MAX_FRONT, self.trials)
        return self.trials * self.replications + (front + 1) * self.final_replications

    def own(self) -> dict[str, Any]:
        """Describe what only this kind of search has."""
        return {
            **TrialSearch.own(self),
            "objectives": [one.text for one in self.objectives],
            "seed_of_intervals": fresh_seed(self.seed, "intervals"),
        }


_BEST = "best.toml"
# What follows the name of an objective in the columns of the front.
_ENDS = ("", "_low", "_high", "_change", "_change_low", "_change_high")
_IMPORTANCE = {
    "objective": TEXT,
    "parameter": TEXT,
    **dict.fromkeys(("importance", "low", "high"), (pl.Float64,)),
}


class TuneResult(SearchResult):
    """Trials of settings, and measurements of the best trials with new seeds.

    Created by :func:`sojourn.tune` and :meth:`load`.

    Parameters
    ----------
    manifest
        Scenario, parameters, objectives, seeds and version.
    trials
        The frame :attr:`trials`.
    front
        The frame :attr:`front`.
    importance
        The frame :attr:`importance`.
    """

    _KIND = "tune"
    _TABLES = ("trials", "front", "importance")
    _TEXTS = (_BEST,)
    _IDENTITY = (
        *("sojourn", "scenario", "parameters", "objectives", "where"),
        *("trials", "replications", "intervals", "seed"),
    )
    _FIELDS: ClassVar[Mapping[str, Any]] = {
        **TRIAL_FIELDS,
        "objectives": list[str],
        "seed_of_intervals": int,
        "best": int | None,
        "points": dict[str, dict[str, Any]],
        "invalid": list[str],
    }

    def __init__(
        self,
        manifest: dict[str, Any],
        trials: pl.DataFrame,
        front: pl.DataFrame,
        importance: pl.DataFrame,
    ) -> None:
        super().__init__(manifest, trials=trials, front=front, importance=importance)

    def __repr__(self) -> str:
        """Return the size of the search on one line."""
        return (
            f"TuneResult(trials={self.trials.height}, objectives={self.objectives}, "
            f"best=trial {self.best})"
        )

    @property
    def trials(self) -> pl.DataFrame:
        """One row per trial: ``trial``, the parameters, ``state``, ``front``, and per objective.

        The state is ``"complete"``, ``"failed"`` (no valid scenario, or an objective was not
        measured) or ``"pruned"`` (excluded by a condition; no runs).

        The columns of the objectives are means over the runs of the search. For the best of many
        trials, they are biased: use :attr:`front`.
        """
        return self._tables["trials"]

    @property
    def front(self) -> pl.DataFrame:
        """One row per trial on the Pareto front, measured again with new seeds.

        ``trial``, the parameters, ``n``, ``dominated`` (with the new seeds, another trial
        dominates it), and per objective its mean, ``<objective>_low`` and
        ``<objective>_high``, and ``<objective>_change`` with the same ends: the paired difference
        from the original scenario. The intervals are 95 % bootstrap intervals. The last row, whose
        trial is null, is the original scenario.
        """
        return self._tables["front"]

    @property
    def importance(self) -> pl.DataFrame:
        """One row per objective and parameter: ``importance``, ``low`` and ``high``.

        PED-ANOVA: the share of a parameter in the difference between the best tenth of the trials
        and all trials, from 0 to 1, with the 95 % interval of a bootstrap over trials.
        """
        return self._tables["importance"]

    @property
    def parameters(self) -> list[str]:
        """The paths of the parameters."""
        return list(self.manifest["paths"])

    @property
    def objectives(self) -> list[str]:
        """The objectives, such as ``min ping_ms_p99``; also the names of their columns."""
        return list(self.manifest["objectives"])

    @property
    def best(self) -> int | None:
        """The proposed trial: on the front, the nearest to the best values of all objectives."""
        best = self.manifest["best"]
        return None if best is None else int(best)

    def values(self, trial: int | None = None) -> dict[str, Value]:
        """Return the values of the parameters in a trial, by default the best one.

        Raises
        ------
        ResultError
            There is no such trial.
        """
        number = self.best if trial is None else trial
        points: dict[str, dict[str, Value]] = self.manifest["points"]
        if f"{number}" not in points:
            message = f"trial {number}: not on the front; expected one of {', '.join(points)}"
            raise _core.ResultError(message)
        return points[f"{number}"]

    def settings(self, trial: int | None = None) -> Settings:
        """Return the settings of a trial on the front: lines for ``tc``, and options.

        Parameters
        ----------
        trial
            Its number; by default the best.

        Raises
        ------
        ResultError
            The trial is not on the front.
        """
        return settings(self.scenario, self.values(trial))

    def tuned(self, trial: int | None = None) -> Scenario:
        """Return the scenario with the settings of a trial on the front, by default the best.

        Raises
        ------
        ResultError
            The trial is not on the front.
        """
        return changed(self.scenario, self.values(trial))

    def pareto(self, x: str | None = None, y: str | None = None) -> "Figure":
        """Draw all trials and the front, with the intervals of the new seeds, over two objectives.

        Parameters
        ----------
        x, y
            The objectives; by default the first two. With one objective: its values by trial.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        ResultError
            An objective is unknown.
        """
        first = self._objective(x, 0)
        second = self._objective(y, 1) if len(self.objectives) > 1 else None
        return figures.pareto(self.trials, self.front, first, second, self.best).drawn()

    def importances(self) -> "Figure":
        """Draw the importance of each parameter for each objective, with its interval.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        table = self.importance.rename({"objective": "metric", "importance": "value"})
        drawn = figures.bars(table, "share of the importance (PED-ANOVA)")
        return drawn.drawn()

    @classmethod
    def _columns(cls, manifest: dict[str, Any]) -> dict[str, Columns]:
        objectives = manifest["objectives"]
        values = dict.fromkeys(manifest["paths"], TEXT)
        # The last row of the front is the original scenario.
        original = {"trial": (*WHOLE, pl.Null), **dict.fromkeys(values, (*TEXT, pl.Null))}
        measured = [f"{name}{end}" for name in objectives for end in _ENDS]
        return {
            "trials": {
                "trial": WHOLE,
                **values,
                "state": TEXT,
                "front": FLAG,
                **dict.fromkeys(objectives, NUMBER),
            },
            "front": {
                **original,
                "n": WHOLE,
                "dominated": (*FLAG, pl.Null),
                **dict.fromkeys(measured, NUMBER),
            },
            "importance": _IMPORTANCE,
        }

    @classmethod
    def _is_consistent(cls, manifest: dict[str, Any]) -> bool:
        best, points = manifest["best"], manifest["points"]
        return (best is None or f"{best}" in points) and all(
            sorted(values) == sorted(manifest["paths"]) for values in points.values()
        )

    def _texts(self) -> dict[str, str | None]:
        return {_BEST: None if self.best is None else self.tuned().to_toml()}

    def _objective(self, name: str | None, place: int) -> str:
        if name is None:
            return self.objectives[place]
        if name not in self.objectives:
            message = f'unknown objective "{name}"; expected one of {", ".join(self.objectives)}'
            raise _core.ResultError(message)
        return name


def prepared(plan: TunePlan) -> PreparedTune:
    """Check a search for settings."""
    scenario = plan.scenario if plan.seed is None else plan.scenario.replace(seed=plan.seed)
    given = parameters(plan.parameters)
    base = of_arm(scenario, plan.arm)
    found = dimensions(given)
    check_paths(base, found)
    return PreparedTune(
        scenario=base,
        dimensions=tuple(found),
        objectives=tuple(read_objectives(plan.objectives, measured_links(base, found))),
        trials=plan.trials,
        replications=plan.replications,
        final_replications=plan.final_replications,
        where=conditions(plan.where, base, given, found),
    )


def execute(planned: PreparedTune, runner: Runner) -> TuneResult:
    """Search for settings."""
    found = tried(
        planned,
        runner,
        lambda runs: _costs(runs, planned.objectives),
        objectives=len(planned.objectives),
        command="tune",
        measures="the objectives were not measured",
    )
    best = found.best
    shown = best if len(best) <= MAX_FRONT else _spread(best)
    runner.planned = runner.finished + (len(shown) + 1) * planned.final_replications
    measured = _front(planned, shown, runner)
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
            schema={name: of[0] for name, of in _IMPORTANCE.items()},
            orient="row",
        ),
    )


def _costs(runs: pl.DataFrame, of: Sequence[Objective]) -> Costs:
    """Return the means of the objectives, smaller is better; None if a run lacks one."""
    found = []
    for one in of:
        values = one.measured(runs)
        if values is None:
            return None
        found.append(one.sign * fmean(values.values()))
    return tuple(found)


def _spread(best: Sequence[Trial]) -> list[Trial]:
    """Select trials of the front at equal distances in its order, including both ends."""
    step = (len(best) - 1) / (MAX_FRONT - 1)
    return [best[round(n * step)] for n in range(MAX_FRONT)]


def _front(planned: PreparedTune, shown: Sequence[Trial], runner: Runner) -> list[dict[str, Any]]:
    """Measure the front, then the original scenario, with new seeds."""
    seed = fresh_seed(planned.seed, "intervals")
    frames = runner.measure(
        planned.scenario,
        [one.values for one in shown],
        replications=planned.final_replications,
        seed=seed,
    )
    frames += runner.measure(
        planned.scenario, [{}], replications=planned.final_replications, seed=seed
    )
    places: list[Trial | None] = [*shown, None]
    rows: list[dict[str, Any]] = []
    for trial, runs in zip(places, frames, strict=True):
        row: dict[str, Any] = {"trial": None if trial is None else trial.number, "n": runs.height}
        row["values"] = {} if trial is None else trial.values
        for one in planned.objectives:
            # No estimate if a run lacks the objective.
            values, before = (one.measured(frame) or {} for frame in (runs, frames[-1]))
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


def _trials(planned: PreparedTune, trials: Sequence[Trial], best: set[int]) -> pl.DataFrame:
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


def _frame(planned: PreparedTune, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    columns = [f"{one.text}{end}" for one in planned.objectives for end in _ENDS]
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


def _written(values: Values, planned: PreparedTune) -> dict[str, str | None]:
    """Write the values of the parameters as texts: a parameter may have values of any type."""
    return {path: f"{values[path]}" if path in values else None for path in planned.paths}


@takes(TunePlan)
def tune(plan: TunePlan) -> TuneResult:
    """Search for the parameter values that optimise one or several objectives.

    Optuna proposes the values. The trials on the Pareto front are measured again with new seeds,
    because the best of many trials is partly best by chance.

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
    return executed(prepared(plan), execute, plan)
