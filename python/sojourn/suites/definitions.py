"""Quotations that suites cite, and the metrics that ``metrics.toml`` declares."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sojourn.result.catalogue import Metric, declared


@dataclass(frozen=True, slots=True)
class Quotation:
    """A passage of a document."""

    section: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A section of a document, with a passage of it."""

    title: str
    quotation: Quotation


def metrics(file: Path) -> tuple[Metric, ...]:
    """Read the metrics of a file, by column."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple(_metric(column, table) for column, table in tables.items())


def _metric(column: str, table: Mapping[str, Any]) -> Metric:
    given = dict(table)
    if "like" not in given:
        return Metric(column=column, **given)
    return replace(declared(*given.pop("like")), column=column, **given)


METRICS = metrics(Path(__file__).with_name("metrics.toml"))
