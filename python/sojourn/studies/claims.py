"""The claims of a published work: ``claims.csv`` of a study.

A claim is one or more consecutive lines with the same ``id``; it holds if all its lines hold. The
first line also states where the work makes the claim and in which words.

==============  ==================================================================
``id``          name of the claim
``source``      place in the work: page, figure, table or sentence
``evidence``    what the claim rests on: :data:`EVIDENCE`
``statement``   what the work states
``scenario``    name of a scenario, or of a point of a sweep
``arm``         name of an arm
``group``       group of traffic; empty: the whole run
``metric``      a metric of :mod:`sojourn.studies.quantities`
``relation``    :data:`RELATIONS`, for the weaker form of a claim after ``direction:``
``reference``   ``[scenario/][arm][@group][:metric]``; omitted parts are those of the line
``value``       a number
``tolerance``   in percent of the value (``3%``) or in the unit of the metric or of the ratio
``reason``      where the tolerance comes from, or why the claim is not counted
``runs``        number of published runs behind the value; empty if the work does not state it
``use``         ``calibration``: the claim served to find what the work does not state
==============  ==================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.errors import invalid_file

FILE = "claims.csv"
EVIDENCE = ("printed", "figure", "data", "text", "derived")
# Relations that compare measured values.
COMPARED = ("equals", "at_least", "at_most", "above", "below", "differs")
# Relations that compare intervals, of a line and its reference.
INTERVALS = ("above", "below", "differs")
# Relations of claims that are not counted, with the verdict of each.
UNCOUNTED = {"definitional": "definitional", "not_checkable": "not checkable"}
RELATIONS = (*COMPARED, *UNCOUNTED)
# Use and verdict of claims that served to find what the work does not state.
CALIBRATION = "calibration"
# Before the relation of a line that states the weaker form of a claim.
DIRECTION = "direction:"
COLUMNS = {
    **dict.fromkeys(
        ("id", "source", "evidence", "statement", "scenario", "arm", "group", "metric"), pl.String
    ),
    **dict.fromkeys(("relation", "reference"), pl.String),
    "value": pl.Float64,
    "tolerance": pl.String,
    "reason": pl.String,
    "runs": pl.Int64,
    "use": pl.String,
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a claim compares: a metric of an arm, or of a group of its traffic, in a scenario."""

    scenario: str
    arm: str
    group: str | None
    metric: str

    def __str__(self) -> str:
        """Write the subject as in a column ``reference``."""
        group = "" if self.group is None else f"@{self.group}"
        return f"{self.scenario}/{self.arm}{group}:{self.metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One condition of a claim."""

    relation: str
    reason: str
    weaker: bool = False
    subject: Subject | None = None
    reference: Subject | None = None
    value: float | None = None
    tolerance: float | None = None
    runs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of a published work."""

    name: str
    source: str
    evidence: str
    statement: str
    lines: Sequence[Line]
    is_calibration: bool = False

    @property
    def uncounted(self) -> str | None:
        """The verdict of a claim that is not counted; None for the others."""
        for line in self.lines:
            if line.relation in UNCOUNTED:
                return UNCOUNTED[line.relation]
        return None

    @property
    def subjects(self) -> list[Subject]:
        """List everything that the claim compares."""
        both = ((line.subject, line.reference) for line in self.lines)
        return [one for pair in both for one in pair if one is not None]


def load(file: Path) -> list[Claim]:
    """Read claims."""
    try:
        table = pl.read_csv(file, schema=COLUMNS, comment_prefix="#")
    except (OSError, pl.exceptions.PolarsError) as error:
        first = str(error).partition("\n")[0]
        raise invalid_file(
            file, f"cannot read claims: {first}; expected the columns {', '.join(COLUMNS)}"
        ) from None
    rows = [
        {key: value.strip() if isinstance(value, str) else value for key, value in row.items()}
        for row in table.iter_rows(named=True)
    ]
    claims = [
        _claim(file, name, list(lines)) for name, lines in groupby(rows, key=lambda row: row["id"])
    ]
    names = [claim.name for claim in claims]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise invalid_file(file, f"claim {repeated}: its lines are not consecutive")
    return claims


def _claim(file: Path, name: str | None, rows: list[dict[str, Any]]) -> Claim:
    first = rows[0]
    if not name:
        raise invalid_file(file, "a line has no id; expected the name of its claim")
    if first["evidence"] not in EVIDENCE:
        accepted = ", ".join(EVIDENCE)
        given = first["evidence"]
        raise invalid_file(file, f'claim {name}: unknown evidence "{given}"; expected {accepted}')
    for column in ("source", "statement"):
        if not first[column]:
            raise invalid_file(file, f"claim {name}: its first line has no {column}")
    if first["use"] not in (None, CALIBRATION):
        given = first["use"]
        raise invalid_file(file, f'claim {name}: unknown use "{given}"; expected {CALIBRATION}')
    lines = [_line(f"{file}: claim {name}", row) for row in rows]
    if all(line.weaker for line in lines):
        raise invalid_file(file, f"claim {name}: only lines with {DIRECTION}; expected one without")
    if len(lines) > 1 and any(line.relation in UNCOUNTED for line in lines):
        raise invalid_file(file, f"claim {name}: a claim that is not counted has one line")
    return Claim(
        name=name,
        source=first["source"],
        evidence=first["evidence"],
        statement=first["statement"],
        lines=lines,
        is_calibration=first["use"] == CALIBRATION,
    )


def _line(place: str, row: dict[str, Any]) -> Line:
    stated = row["relation"] or ""
    relation = stated.removeprefix(DIRECTION)
    if relation not in RELATIONS:
        raise invalid_file(
            place, f'unknown relation "{stated}"; expected one of {", ".join(RELATIONS)}'
        )
    reason = row["reason"] or ""
    if relation in UNCOUNTED:
        if not reason:
            raise invalid_file(place, f"{relation} needs a reason")
        return Line(relation=relation, reason=reason)
    subject = _subject(place, row)
    reference = None if not row["reference"] else _reference(row["reference"], subject)
    value = _value(place, row["value"], relation, reference)
    tolerance = None
    if relation == "equals":
        tolerance = _tolerance(place, row["tolerance"], value or 0.0)
    elif row["tolerance"]:
        raise invalid_file(place, f"tolerance with {relation}; expected it only with equals")
    return Line(
        relation=relation,
        weaker=stated != relation,
        subject=subject,
        reference=reference,
        value=value,
        tolerance=tolerance,
        runs=_runs(place, row["runs"], relation),
        reason=reason,
    )


def _value(
    place: str, value: float | None, relation: str, reference: Subject | None
) -> float | None:
    """Check the value; that of a ratio is 1 unless it is given."""
    if relation in INTERVALS:
        if reference is None:
            raise invalid_file(place, f"{relation} needs a reference")
        return value
    if value is None and reference is None:
        raise invalid_file(place, f"{relation} needs a value or a reference")
    return 1.0 if value is None else value


def _runs(place: str, runs: int | None, relation: str) -> int | None:
    """Check the number of published runs."""
    if runs is not None and (runs < 1 or relation != "equals"):
        raise invalid_file(
            place, f"{runs} published runs with {relation}; expected 1 or more with equals"
        )
    return runs


def _subject(place: str, row: dict[str, Any]) -> Subject:
    for column in ("scenario", "arm", "metric"):
        if not row[column]:
            raise invalid_file(place, f"no {column}; expected its name")
    return Subject(row["scenario"], row["arm"], row["group"] or None, row["metric"])


def _reference(text: str, subject: Subject) -> Subject:
    """Read ``[scenario/][arm][@group][:metric]``.

    Examples
    --------
    >>> str(_reference("codel", Subject("a", "pie", "web", "jain")))
    'a/codel@web:jain'
    >>> str(_reference("b/:jain", Subject("a", "pie", None, "goodput")))
    'b/pie:jain'
    """
    rest, _, metric = text.partition(":")
    rest, _, group = rest.partition("@")
    scenario, slash, arm = rest.rpartition("/")
    return Subject(
        scenario if slash else subject.scenario,
        arm or subject.arm,
        group or subject.group,
        metric or subject.metric,
    )


def _tolerance(place: str, text: str | None, value: float) -> float:
    """Read a tolerance in percent of `value` or in its unit.

    Examples
    --------
    >>> _tolerance("claim 1", "5%", -40.0), _tolerance("claim 1", "0.3", -40.0)
    (2.0, 0.3)
    """
    number, _, percent = (text or "").partition("%")
    try:
        width = float(number)
    except ValueError:
        width = -1.0
    if width < 0 or percent:
        given = text or ""
        raise invalid_file(
            place, f'invalid tolerance "{given}"; expected a number or a percentage such as 3%'
        )
    return abs(value) * width / 100 if text and text.endswith("%") else width
