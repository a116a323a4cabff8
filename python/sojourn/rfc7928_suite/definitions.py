"""What ``suite.toml`` states: quotations from the RFC, scenarios and discussions."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sojourn.suites.definitions import Quotation, Topic

Signal = Literal["signals", "marks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """A direction that the RFC states, and the comparison that checks it."""

    quotation: Quotation
    expectation: str
    signal: Signal = "signals"


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


# By section.
DEFINITIONS = {number: _definition(table) for number, table in _TABLES["scenario"].items()}
DISCUSSIONS = {number: Topic(**_quoted(table)) for number, table in _TABLES["discussion"].items()}
