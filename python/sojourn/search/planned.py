"""What all searches share before they run: a scenario, its dimensions and conditions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.document import bounded
from sojourn.expressions import Expression
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value
from sojourn.search import dimensions as dims
from sojourn.search.dimensions import Dimension, Values, listed
from sojourn.sweeps.conditions import check, holds
from sojourn.sweeps.parameters import Parameter
from sojourn.sweeps.space import space

MAX_TRIALS = 100_000
MAX_RUNS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A checked search."""

    scenario: Scenario
    dimensions: tuple[Dimension, ...]
    replications: int

    @property
    def seed(self) -> int:
        """The seed of the search."""
        return int(json.loads(self.scenario.checked.to_json())["seed"])

    @property
    def paths(self) -> list[str]:
        """The paths of the parameters."""
        return [path for one in self.dimensions for path in one.paths]

    @property
    def runs(self) -> int:
        """The most runs that the search needs."""
        raise NotImplementedError

    def document(self) -> dict[str, Any]:
        """Describe the search, for the manifest."""
        return {
            "sojourn": {"version": _core.version(), "commit": _core.commit()},
            "scenario": json.loads(self.scenario.checked.to_json()),
            "parameters": dims.document(self.dimensions),
            "paths": self.paths,
            "replications": self.replications,
            "seed": self.seed,
            **self.own(),
        }

    def own(self) -> dict[str, Any]:
        """Describe what only this kind of search has."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSearch(Search):
    """A checked search in which earlier trials decide which points follow."""

    trials: int
    intervals: int
    where: tuple[Expression, ...] = ()

    def meets(self, values: Values) -> bool:
        """Whether a point meets the conditions."""
        if not self.where:
            return True
        (point,) = listed(self.scenario, [values])
        return self.allows(point.changes, self.scenario)

    def allows(self, changes: Mapping[str, Value], scenario: Scenario) -> bool:
        """Whether a scenario with these changes meets the conditions; errors as for `meets`."""
        document = json.loads(scenario.checked.to_json()) if self.where else {}
        return all(holds(one, changes, document) for one in self.where)

    def own(self) -> dict[str, Any]:
        """Describe what only this kind of search has."""
        return {
            "trials": self.trials,
            "intervals": self.intervals,
            "where": [one.text for one in self.where],
        }


def check_numbers(*, trials: int, replications: int, intervals: int, place: str = "--") -> None:
    """Raise a ScenarioError unless the numbers of a search are in their ranges."""
    bounded(f"{place}trials", trials, 1, MAX_TRIALS)
    bounded(f"{place}replications", replications, 1, MAX_RUNS)
    bounded(f"{place}intervals", intervals, 2, MAX_RUNS)


def conditions(
    texts: Sequence[str],
    scenario: Scenario,
    parameters: Sequence[Parameter],
    found: Sequence[Dimension],
) -> tuple[Expression, ...]:
    """Read the conditions of a search, and check them with each value of its lists."""
    sample = "lhs:1" if any(one.ranges for one in parameters) else None
    parsed = space(parameters, texts, sample).where
    if not parsed:
        return parsed
    first: dict[str, Value] = {}
    for one in found:
        first |= one.at(0.0)
    # A later value of a list may be of another kind: it would end the search at some trial.
    values = [first | one.step(number) for one in found for number in range(len(one.steps))] or [
        first
    ]
    document = json.loads(scenario.checked.to_json())
    for point in listed(scenario, values):
        for condition in parsed:
            check(condition, point.changes, document)
            holds(condition, point.changes, document)
    return parsed
