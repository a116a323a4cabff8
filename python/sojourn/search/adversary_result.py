"""The result of a search for the worst case: trials, and the scenario that was found."""

from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl

from sojourn import _core, files
from sojourn.scenario import Scenario
from sojourn.search.search_result import SearchResult
from sojourn.search.worst_case import Counterexample, parsed
from sojourn.storage.saved import Saved

_SCENARIO = "worst.toml"


class AdversaryResult(SearchResult):
    """The scenario in which an arm loses most against another.

    Created by :func:`sojourn.adversary` and :meth:`load`.

    Parameters
    ----------
    manifest
        Scenario, parameters, arms, score, seeds and version.
    trials
        The frame :attr:`trials`.
    worst
        The simplified scenario, with its regret.
    """

    _KIND = "adversary"
    _TABLES = ("trials",)
    _TEXTS = (_SCENARIO,)
    _IDENTITY = (
        *("sojourn", "scenario", "parameters", "arm", "against", "score", "where"),
        *("trials", "replications", "intervals", "keep", "seed"),
    )

    def __init__(
        self, manifest: dict[str, Any], trials: pl.DataFrame, worst: Counterexample
    ) -> None:
        super().__init__(manifest, trials=trials)
        self.worst = worst

    def __repr__(self) -> str:
        """Return the regret on one line."""
        one = self.worst
        return (
            f"AdversaryResult(arm={one.arm!r}, against={one.against!r}, "
            f"regret={one.regret:.3g} [{one.regret_low:.3g}, {one.regret_high:.3g}])"
        )

    @property
    def trials(self) -> pl.DataFrame:
        """One row per trial: ``trial``, the parameters, ``state``, and ``regret`` in the search.

        The states are those of :attr:`TuneResult.trials`.
        """
        return self._tables["trials"]

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that was found, with both arms."""
        return self.worst.scenario

    @property
    def regret(self) -> tuple[float, float, float]:
        """The regret with new seeds: mean, and the ends of its 95 % interval."""
        return self.worst.regret, self.worst.regret_low, self.worst.regret_high

    def write(self, path: str | Path) -> None:
        """Write the scenario with its regret as a scenario file.

        Raises
        ------
        ResultError
            The file cannot be written.
        """
        try:
            files.replace(path, self.worst.to_toml().encode())
        except OSError as error:
            message = f"cannot write {path}: {error.strerror}"
            raise _core.ResultError(message) from None

    @classmethod
    def _loaded(cls, saved: Saved, directory: Path) -> Self:
        if _SCENARIO not in saved.texts:
            message = f"{directory}: damaged: no {_SCENARIO}"
            raise _core.DamagedResultError(message)
        worst = parsed(saved.texts[_SCENARIO], directory / _SCENARIO)
        return cls(saved.manifest, saved.tables["trials"], worst)

    def _texts(self) -> dict[str, str | None]:
        return {_SCENARIO: self.worst.to_toml()}
