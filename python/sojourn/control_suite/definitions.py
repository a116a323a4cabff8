"""What the files of criteria and cases state: quotations and comparisons."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sojourn.expectations.expectation import expectation
from sojourn.suites.definitions import METRICS, Quotation, Topic, metrics

# Units of what cases observe in addition, by the last part of the name; others have no unit.
_UNITS = {
    "percent": "%",
    "s": "s",
    "ms": "ms",
    "rtts": "RTTs",
    "bdp": "BDP",
    "packets": "packets",
    "10s": "per 10 s",
}
# What the document says of a criterion, in its words.
Level = Literal["MUST", "SHOULD", "MAY fail", "example"]
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A comparison that decides on a criterion, in plain words and as an expectation.

    `{tested}` in the comparison is the control under test. With `{standard}` it is judged against
    each of the standard controls, and passes if it passes against any of them. `cases` is a
    part of the names of the cases that it is about.
    """

    why: str
    that: str
    cases: str = ""

    @property
    def unit(self) -> str:
        """The unit of both sides: that of the first metric in the comparison."""
        _, _, name = expectation(self.that).metrics[0].name.rpartition(".")
        declared = next((one for one in CONTROL_METRICS if one.column == name), None)
        if declared is not None:
            return declared.unit
        return _UNITS.get(name.removesuffix("_min").rpartition("_")[2], "")

    @property
    def is_relative(self) -> bool:
        """Whether it compares with the standard controls."""
        return "{standard}" in self.that


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion(Topic):
    """A criterion of a document: what it asks, what is run, and which comparisons decide."""

    level: Level
    how: str = ""
    checks: tuple[Check, ...] = ()
    # Why no run decides on it, if none does.
    not_applicable: str = ""
    not_testable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A document as a suite: its name, its criteria by number, and what its numbers are called."""

    name: str
    title: str
    url: str
    noun: str
    argument: str
    # At the end of the name of a report, if a control has reports on several documents.
    suffix: str = ""
    criteria: Mapping[str, Criterion]


def _edition(file: str) -> Edition:
    tables = tomllib.loads((_HERE / file).read_text(encoding="utf-8"))
    criteria = {number: _criterion(number, one) for number, one in tables["criterion"].items()}
    return Edition(**tables["document"], criteria=criteria)


def _criterion(number: str, table: Mapping[str, Any]) -> Criterion:
    given = dict(table)
    quotation = Quotation(section=number, text=given.pop("quotation"))
    checks = tuple(Check(**one) for one in given.pop("checks", ()))
    return Criterion(quotation=quotation, checks=checks, **given)


RFC9743 = _edition("rfc9743.toml")
BBR_CASES = _edition("bbr_cases.toml")
ACCECN_CASES = _edition("accecn_cases.toml")
# Of RFC 9743, in addition to those of all suites.
OWN_METRICS = metrics(_HERE / "metrics.toml")
CONTROL_METRICS = (*METRICS, *OWN_METRICS)
