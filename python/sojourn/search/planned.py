"""What all searches share before they run: a scenario and its dimensions."""

import json
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.scenario import Scenario
from sojourn.search import dimensions as dims
from sojourn.search.dimensions import Dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A checked search.

    Parameters
    ----------
    scenario
        The scenario.
    dimensions
        The parameters.
    replications
        Runs per point and arm.
    """

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
            **self._own(),
        }

    def _own(self) -> dict[str, Any]:
        """Return what only this kind of search has."""
        raise NotImplementedError
