"""Trials of a search: chosen by Optuna in batches, the Pareto front, importance of parameters.

The sampler is the tree-structured Parzen estimator; with several objectives, that of Ozaki et al.
(2022). The importance is the PED-ANOVA of Watanabe, Bansal and Hutter (2023): how much the
distribution of a parameter in the best trials differs from that in all trials.
"""

import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.deferred import Deferred
from sojourn.scenario.paths import Value
from sojourn.search.dimensions import Dimension, Values
from sojourn.search.plan import TrialSearch
from sojourn.search.runner import Runner

if TYPE_CHECKING:
    import optuna
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial
else:
    # Only searches need it.
    optuna = Deferred("optuna")

# Trials per batch: fixed, so that the trials do not depend on the number of jobs.
BATCH = 8
# Random trials before the estimator is used.
FIRST = 16
# Bootstrap resamples for the interval of the importance.
_RESAMPLES = 50
_LEVEL = 0.95
# Means of the objectives of a trial, all to be minimised; None: the trial failed.
Costs = tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of an optimisation."""

    number: int
    values: Values
    costs: Costs
    pruned: bool = False

    @property
    def state(self) -> str:
        """``"complete"``, ``"failed"`` or ``"pruned"``."""
        if self.pruned:
            return "pruned"
        return "failed" if self.costs is None else "complete"


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of a parameter for an objective."""

    objective: int
    parameter: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Optimisation:
    """The trials of an optimisation."""

    trials: tuple[Trial, ...]
    importance: tuple[Importance, ...]


def optimise(
    dimensions: Sequence[Dimension],
    measure: Callable[[Sequence[Values]], Sequence[Costs]],
    allows: Callable[[Values], bool] = lambda _: True,
    *,
    objectives: int,
    trials: int,
    seed: int,
    command: str,
) -> Optimisation:
    """Minimise objectives."""
    _require_optuna(command)
    distributions = {one.name: _distribution(one) for one in dimensions}
    found: list[Trial] = []
    with _quiet():
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=FIRST, multivariate=True, constant_liar=True
        )
        study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
        while len(found) < trials:
            count = min(BATCH, trials - len(found))
            asked = [study.ask(distributions) for _ in range(count)]
            points = [_values(dimensions, trial.params) for trial in asked]
            allowed = [allows(values) for values in points]
            measured = iter(measure(list(compress(points, allowed))))
            for trial, values, is_allowed in zip(asked, points, allowed, strict=True):
                costs = next(measured) if is_allowed else None
                if costs is not None:
                    study.tell(trial, list(costs))
                else:
                    states = optuna.trial.TrialState
                    study.tell(trial, state=states.FAIL if is_allowed else states.PRUNED)
                found.append(Trial(trial.number, values, costs, pruned=not is_allowed))
        importance = tuple(_importance(study, dimensions, objectives, seed))
    return Optimisation(tuple(found), importance)


def front(trials: Sequence[Trial]) -> list[Trial]:
    """List the trials that no other trial dominates, by their first objective.

    Of trials with equal results, only the first is listed.


    Examples
    --------
    >>> costs = [(1.0, 3.0), (2.0, 2.0), (3.0, 3.0), None]
    >>> [one.number for one in front([Trial(n, {"x": n}, c) for n, c in enumerate(costs)])]
    [0, 1]
    """
    measured: dict[Costs, Trial] = {}
    for trial in trials:
        if trial.costs is not None:
            measured.setdefault(trial.costs, trial)
    found = [
        one
        for one in measured.values()
        if not any(dominates(other.costs, one.costs) for other in measured.values())
    ]
    return sorted(found, key=lambda one: (one.costs or (), one.number))


def dominates(one: Costs, other: Costs) -> bool:
    """Whether `one` is nowhere larger and somewhere smaller than `other`."""
    if one is None or other is None:
        return False
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def compromise(costs: Sequence[Sequence[float]]) -> int:
    """Return the index of the point nearest to the ideal one, each objective scaled to 0 to 1.

    Examples
    --------
    >>> compromise([(0.0, 10.0), (2.0, 1.0), (10.0, 0.0)])
    1
    """
    lows = [min(column) for column in zip(*costs, strict=True)]
    highs = [max(column) for column in zip(*costs, strict=True)]

    def distance(point: Sequence[float]) -> float:
        scaled = (
            (value - low) / (high - low) if high > low else 0.0
            for value, low, high in zip(point, lows, highs, strict=True)
        )
        return math.hypot(*scaled)

    return min(range(len(costs)), key=lambda place: (distance(costs[place]), place))


def _require_optuna(command: str) -> None:
    try:
        _ = optuna.create_study
    except ModuleNotFoundError:
        message = f"{command} requires optuna; install it with: pip install optuna"
        raise _core.UnavailableError(message) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the log of Optuna and its warnings, which are for its own users."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _distribution(dimension: Dimension) -> "BaseDistribution":
    distributions = optuna.distributions
    if dimension.range is None:
        return distributions.CategoricalDistribution(dimension.labels())
    if dimension.range.distribution == "integers":
        low, high = int(dimension.range.low.number), int(dimension.range.high.number)
        return distributions.IntDistribution(low, high)
    # The position on the dimension: a range may be logarithmic.
    return distributions.FloatDistribution(0.0, 1.0)


def _values(dimensions: Sequence[Dimension], params: dict[str, Any]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for one in dimensions:
        value = params[one.name]
        if one.range is None:
            found |= one.step(one.labels().index(value))
        elif one.range.distribution == "integers":
            low, high = one.range.low.number, one.range.high.number
            # The middle of the share of this number.
            found |= one.at((value - low + 0.5) / (high - low + 1))
        else:
            found |= one.at(value)
    return found


def _importance(
    study: "Study", dimensions: Sequence[Dimension], objectives: int, seed: int
) -> Iterator[Importance]:
    """Compute the importance of each parameter for each objective."""
    trials = [one for one in study.get_trials(deepcopy=False) if one.values is not None]
    drawn = random.Random(seed)  # noqa: S311 - for a bootstrap
    samples = [trials] + [drawn.choices(trials, k=len(trials)) for _ in range(_RESAMPLES)]
    names = [one.name for one in dimensions]
    for objective in range(objectives):
        shares = [_shares(sample, names, objective) for sample in samples if trials]
        for name in names:
            first, *rest = [share[name] for share in shares] or [math.nan] * 2
            low, high = _interval(rest)
            yield Importance(objective, name, first, min(low, first), max(high, first))


def _shares(
    trials: Sequence["FrozenTrial"], names: Sequence[str], objective: int
) -> dict[str, float]:
    study = optuna.create_study()
    study.add_trials(
        optuna.trial.create_trial(
            params=trial.params,
            distributions=trial.distributions,
            value=trial.values[objective],
        )
        for trial in trials
    )
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    found = evaluator.evaluate(study, list(names))
    total = sum(found.values())
    return {name: found[name] / total if total > 0 else 1.0 / len(names) for name in names}


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the percentile interval of a bootstrap."""
    ordered = sorted(values)
    place = (1.0 - _LEVEL) / 2 * (len(ordered) - 1)
    return ordered[math.floor(place)], ordered[math.ceil(len(ordered) - 1 - place)]


@dataclass(frozen=True, slots=True)
class Tried:
    """The trials of a search."""

    optimisation: Optimisation
    best: list[Trial]
    faults: list[str]

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials."""
        return self.optimisation.trials


def tried(
    planned: TrialSearch,
    runner: Runner,
    costs: Callable[[pl.DataFrame], Costs],
    *,
    objectives: int,
    command: str,
    measures: str,
) -> Tried:
    """Try points of a search."""
    runner.planned = planned.runs
    per_trial = planned.replications * len(planned.scenario.checked.arms)
    faults: dict[str, None] = {}

    def allows(values: Values) -> bool:
        is_allowed = planned.meets(values)
        if not is_allowed:
            runner.pruned += 1
            runner.planned -= per_trial
        return is_allowed

    def measure(points: Sequence[Values]) -> list[Costs]:
        found = runner.attempt(
            planned.scenario, points, replications=planned.replications, seed=planned.seed
        )
        faults.update(dict.fromkeys(one for one in found if isinstance(one, str)))
        return [None if isinstance(one, str) else costs(one) for one in found]

    optimisation = optimise(
        planned.dimensions,
        measure,
        allows,
        objectives=objectives,
        trials=planned.trials,
        seed=planned.seed,
        command=command,
    )
    best = front(optimisation.trials)
    if not best:
        reason = next(iter(faults), f"{measures} in any trial")
        if all(one.pruned for one in optimisation.trials):
            rule = "no trial meets the conditions; expected other ranges or another condition"
            raise ArgumentError("where", rule=rule)
        message = f"{command}: no trial succeeded: {reason}"
        raise _core.ScenarioError(message)
    return Tried(optimisation, best, list(faults))
