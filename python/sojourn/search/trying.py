"""Try points of a search: those that do not meet its conditions or are not valid need no runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from sojourn import _core
from sojourn.search.dimensions import Values
from sojourn.search.laboratory import Laboratory
from sojourn.search.optimising import Costs, Optimisation, Trial, front, optimise
from sojourn.search.planned import TrialSearch


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
    laboratory: Laboratory,
    costs: Callable[[pl.DataFrame], Costs],
    *,
    objectives: int,
    command: str,
    measures: str,
) -> Tried:
    """Try points of a search."""
    laboratory.planned = planned.runs
    per_trial = planned.replications * len(planned.scenario.checked.arms)
    faults: dict[str, None] = {}

    def allows(values: Values) -> bool:
        is_allowed = planned.meets(values)
        if not is_allowed:
            laboratory.pruned += 1
            laboratory.planned -= per_trial
        return is_allowed

    def measure(points: Sequence[Values]) -> list[Costs]:
        found = laboratory.attempt(
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
        message = f"{command}: no trial succeeded: {reason}"
        if all(one.pruned for one in optimisation.trials):
            message = (
                f"{command}: no trial meets --where; expected other ranges or another condition"
            )
        raise _core.ScenarioError(message)
    return Tried(optimisation, best, list(faults))
