"""A simulated result with measured runs as further arms, for figures and means."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import polars as pl

from sojourn.exchange.measurement import TABLES, Measurement, combined, per_run
from sojourn.result import Result
from sojourn.result.catalogue import By
from sojourn.result.metrics import OF_GROUPS, of_tables
from sojourn.scenario import Scenario


class Beside(Result):
    """A simulated result with measured runs as further arms.

    It has the metrics of the simulated result; for measured runs they cover the same time. A metric
    that was not measured is null. It cannot be saved, and has no differences between arms, because
    measured and simulated runs are not paired.
    """

    def __init__(self, simulated: Result, measurements: Sequence[Measurement]) -> None:
        self.simulated = simulated
        self.measurements = _distinct(simulated.arms, measurements)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """The provenance of the simulated result."""
        return self.simulated.provenance

    @property
    def manifest_sha256(self) -> str | None:
        """The digest of the simulated result."""
        return self.simulated.manifest_sha256

    @cached_property
    def scenario(self) -> Scenario:
        """The simulated scenario."""
        return self.simulated.scenario

    @property
    def arms(self) -> list[str]:
        """The simulated arms, then the measured ones."""
        return list(dict.fromkeys([*self.simulated.arms, *(one.arm for one in self.measurements)]))

    def _measured(self, by: By) -> pl.DataFrame:
        """Compute metrics; of measured runs, only those that the simulated runs have."""
        if by != "run":
            checked = self.scenario.checked
            return of_tables(
                by,
                {name: getattr(self, name) for name in OF_GROUPS},
                warmup_s=checked.warmup_s,
                measured_s=checked.duration_s - checked.warmup_s,
            )
        simulated = self.simulated.table()
        measured = per_run(self.measurements, warmup_s=self.scenario.checked.warmup_s)
        known = [name for name in measured.columns if name in simulated.columns]
        return pl.concat([simulated, measured.select(known)], how="diagonal_relaxed")

    def _frame(self, name: str) -> pl.DataFrame:
        simulated: pl.DataFrame = getattr(self.simulated, name)
        if name not in TABLES:
            return simulated
        warmup_s = self.scenario.checked.warmup_s
        measured = combined(self.measurements, name, warmup_s=warmup_s)
        if "t_s" in measured.columns:
            # The axes of figures end with the simulated runs.
            measured = measured.filter(
                pl.col("t_s").is_between(0.0, self.scenario.checked.duration_s)
            )
        return pl.concat([simulated, measured], how="diagonal_relaxed").rechunk()


def _distinct(taken: Sequence[str], measurements: Sequence[Measurement]) -> list[Measurement]:
    """Rename measured arms if a simulated one has the name of one of them."""
    clash = {one.arm for one in measurements} & set(taken)
    if clash:
        return [replace(one, arm=f"{one.arm} (file)") for one in measurements]
    return list(measurements)
