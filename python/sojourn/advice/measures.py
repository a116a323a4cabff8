"""Measures of user experience in each run, and their grades: game, call, web page, speed."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.advice.experiment import CALLS, DOWN, PAGES, TESTS, UP
from sojourn.result.catalogue import Metric
from sojourn.result.estimates import mean_and_interval
from sojourn.result.result import Result
from sojourn.result.rows import KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The grades of a measure."""

    metric: Metric
    steps: tuple[tuple[str, float], ...]
    higher: bool
    meaning: str
    source: str
    worst: str = "F"

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters, the best first."""
        return (*(letter for letter, _ in self.steps), self.worst)

    def grade(self, value: float | None) -> str:
        """Grade a value; a missing value has the worst grade.

        Examples
        --------
        >>> PING.grade(12.0), PING.grade(400.0), PING.grade(None)
        ('A', 'F', 'F')
        """
        if value is not None:
            for letter, bound in self.steps:
                if value >= bound if self.higher else value < bound:
                    return letter
        return self.worst

    def below_best(self, value: float | None) -> int:
        """Count the grades between the best one and that of a value."""
        return self.letters.index(self.grade(value))


def _scale(table: dict[str, Any]) -> Scale:
    metric = Metric(**{key: table.pop(key) for key in ("column", "label", "unit", "digits")})
    return Scale(metric=metric, steps=tuple(table.pop("steps").items()), **table)


_TABLES = tomllib.loads(Path(__file__).with_name("grades.toml").read_text(encoding="utf-8"))
SCALES = tuple(map(_scale, _TABLES.values()))
PING, CALL, PAGE, RPM = SCALES
PING_MS = Metric(column="ping_ms_p99", label="game ping p99", unit="ms", digits=0)
DOWN_MBIT = Metric(column="download_mbit_per_s", label="download", unit="Mbit/s", digits=1)
UP_MBIT = Metric(column="upload_mbit_per_s", label="upload", unit="Mbit/s", digits=1)
METRICS = (PING_MS, *(scale.metric for scale in SCALES), DOWN_MBIT, UP_MBIT)

Estimate = tuple[float | None, float | None, float | None]
_UPLOADS = (UP, TESTS[0])
_DOWNLOADS = (DOWN, TESTS[1], PAGES)


def measures(result: Result, rtt_s: float) -> pl.DataFrame:
    """Compute the measures of every run."""
    applications = result.table("application")

    def worst(groups: Sequence[str], column: str, name: str) -> pl.DataFrame:
        chosen = applications.filter(pl.col("group").is_in(groups))
        return chosen.group_by(KEYS, maintain_order=True).agg(pl.col(column).min().alias(name))

    def speed(prefixes: Sequence[str], name: str) -> pl.DataFrame:
        is_one = pl.any_horizontal(*(pl.col("group").str.starts_with(p) for p in prefixes))
        rate = pl.col("goodput_mbit_per_s").sum().alias(name)
        return result.flows.filter(is_one).group_by(KEYS, maintain_order=True).agg(rate)

    frame = (
        result.table()
        .select(*KEYS, PING_MS.column)
        .with_columns((pl.col(PING_MS.column) - rtt_s * 1e3).alias(PING.metric.column))
    )
    for part in (
        worst(CALLS, "mos_min", CALL.metric.column),
        worst([PAGES], "duration_s_p50", PAGE.metric.column),
        worst(TESTS, "rpm_mean", RPM.metric.column),
        speed(_DOWNLOADS, DOWN_MBIT.column),
        speed(_UPLOADS, UP_MBIT.column),
    ):
        frame = frame.join(part, on=KEYS, how="left", maintain_order="left")
    return frame.select(*KEYS, *(metric.column for metric in METRICS))


def estimates(frame: pl.DataFrame) -> dict[str, Mapping[str, Estimate]]:
    """Average the measures over the runs of each arm."""
    found: dict[str, Mapping[str, Estimate]] = {}
    for (arm,), runs in frame.group_by("arm", maintain_order=True):
        found[str(arm)] = {
            metric.column: mean_and_interval(runs[metric.column].drop_nulls().to_list())
            for metric in METRICS
        }
    return found
