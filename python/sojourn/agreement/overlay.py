"""The simulated and the live runs of one arm as two arms of one result, for figures."""

from functools import cached_property
from typing import Any

import polars as pl

from sojourn.result import Result
from sojourn.scenario import Scenario

NAMES = ("simulated", "live")


class Overlay(Result):
    """One arm of two results, as the arms ``simulated`` and ``live``.

    It cannot be saved, and has no differences between arms, because the runs are not paired.
    """

    def __init__(self, simulated: Result, live: Result, arm: str) -> None:
        self._both = dict(zip(NAMES, (simulated, live), strict=True))
        self._arm = arm

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """The provenance of the simulated result."""
        return self._both[NAMES[0]].provenance

    @property
    def manifest_sha256(self) -> str | None:
        """The digest of the simulated result."""
        return self._both[NAMES[0]].manifest_sha256

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario."""
        return self._both[NAMES[0]].scenario

    @property
    def arms(self) -> list[str]:
        """The two results."""
        return list(NAMES)

    def _frame(self, name: str) -> pl.DataFrame:
        frames = []
        for of, result in self._both.items():
            frame: pl.DataFrame = getattr(result, name)
            frames.append(frame.filter(pl.col("arm") == self._arm).with_columns(arm=pl.lit(of)))
        return pl.concat(frames, how="diagonal_relaxed").rechunk()
