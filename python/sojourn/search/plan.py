"""What all searches share before they run: arguments, a scenario, dimensions, conditions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments import Argument
from sojourn.arguments.common import POINTS, RUNS, SCENARIO
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

SEARCH_PARAMETERS = Argument(
    help="Values of a parameter by its path: uniform(low,high), loguniform(low,high), "
    "integers(low,high), or a list such as cubic,reno, whose values have no order. * in a path "
    "stands for all links.",
    option="--parameter",
    short="-p",
    metavar="PATH=VALUES",
    expected="a mapping from paths to values",
    in_files=True,
    heading=POINTS,
)
SearchParameters = Annotated[Mapping[Any, Any], SEARCH_PARAMETERS]
Arm = Annotated[
    str | None,
    Argument(
        help="Use only this arm; required if the scenario has several.",
        metavar="ARM",
        in_files=True,
        heading=SCENARIO,
    ),
]

Trials = Annotated[
    int,
    Argument(
        help="Number of trials.",
        more="They run in batches of 8, with any `jobs`.",
        least=1,
        most=MAX_TRIALS,
        metavar="N",
        in_files=True,
        heading=RUNS,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSearch:
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


# Keys of the manifest of a :class:`TrialSearch`, and their types.
TRIAL_FIELDS: dict[str, Any] = {"trials": int, "intervals": int, "where": list[str]}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSearch(PreparedSearch):
    """A checked search in which earlier trials decide which points follow."""

    trials: int
    final_replications: int
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
            "intervals": self.final_replications,
            "where": [one.text for one in self.where],
        }


def conditions(
    texts: Sequence[str],
    scenario: Scenario,
    parameters: Sequence[Parameter],
    found: Sequence[Dimension],
) -> tuple[Expression, ...]:
    """Read the conditions of a search, and check them with each value of its lists."""
    sampling = "lhs:1" if any(one.ranges for one in parameters) else None
    parsed = space(parameters, texts, sampling).where
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
