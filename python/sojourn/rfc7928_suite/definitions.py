"""What ``suite.toml`` states: quotations from the RFC, scenarios, discussions and metrics."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sojourn.result.catalogue import Metric, declared

Signal = Literal["signals", "marks"]


@dataclass(frozen=True, slots=True)
class Quotation:
    """A passage of RFC 7928."""

    section: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A direction that the RFC states, and the comparison that checks it."""

    quotation: Quotation
    expectation: str
    signal: Signal = "signals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A section that asks for a discussion."""

    title: str
    quotation: Quotation


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Topic):
    """A scenario of RFC 7928: parameters of the RFC, of ns-3's suite, and our own."""

    rfc: str
    ours: str
    suite: str = "not in the suite"
    weight: str = ""
    directions: tuple[Direction, ...] = ()


_TABLES = tomllib.loads(Path(__file__).with_name("suite.toml").read_text(encoding="utf-8"))
QUOTATIONS = {name: Quotation(**table) for name, table in _TABLES["quotation"].items()}


def _quoted(table: dict[str, Any]) -> dict[str, Any]:
    return {**table, "quotation": QUOTATIONS[table["quotation"]]}


def _definition(table: dict[str, Any]) -> Definition:
    directions = tuple(Direction(**_quoted(one)) for one in table.get("directions", ()))
    ours = table["ours"].replace("{setup}", _TABLES["setup"])
    return Definition(**_quoted(table) | {"ours": ours, "directions": directions})


def _metric(column: str, table: dict[str, Any]) -> Metric:
    if "like" not in table:
        return Metric(column=column, **table)
    return replace(declared(*table.pop("like")), column=column, **table)


# By section.
DEFINITIONS = {number: _definition(table) for number, table in _TABLES["scenario"].items()}
DISCUSSIONS = {number: Topic(**_quoted(table)) for number, table in _TABLES["discussion"].items()}
METRICS = tuple(_metric(column, table) for column, table in _TABLES["metric"].items())
