"""The words of a comparison of simulated runs with others, for terminals, pages and notebooks."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sojourn.agreement.comparison import FailedCheck, Verdict
from sojourn.presentation.model import MISSING, Estimate, Table, Text
from sojourn.result import formatting
from sojourn.result.catalogue import Metric, shown
from sojourn.result.naming import described

# Beside the verdict of an arm with a run that failed a check.
INVALID = "[invalid]"


def head(place: str) -> tuple[str, ...]:
    """Name the columns of a table for runs in another place, such as ``"live"``."""
    return ("metric", "simulated", place, "difference", "tolerance", "verdict")


def tables(compared: pl.DataFrame, place: str) -> list[Table]:
    """Make a table for each arm, which is its title."""
    found = []
    for (arm,), rows in compared.group_by("arm", maintain_order=True):
        cells = [_cells(row) for row in rows.iter_rows(named=True)]
        found.append(Table(head(place), cells, f"{arm}"))
    return found


def _cells(row: Mapping[str, Any]) -> list[Text]:
    """Write a row of the table."""
    metric = _metric(row)
    name = metric.heading if row["group"] is None else f"{row['group']}: {metric.heading}"
    change = {"mean": row["difference"], "low": row["low"], "high": row["high"]}
    verdict = row["verdict"] or MISSING
    return [
        name,
        *(Estimate(row[side], decimals=metric.digits) for side in ("simulated", "measured")),
        formatting.change(change | {"significant": False}, metric),
        MISSING if row["tolerance"] is None else f"±{row['tolerance']:z.{metric.digits}f}",
        verdict if row["valid"] else f"{verdict} {INVALID}",
    ]


def _metric(row: Mapping[str, Any]) -> Metric:
    """Return the declaration of the metric of a row."""
    if row["group"] is None:
        return described([row["metric"]])[0]
    declared = (*shown("group"), *shown("application"))
    return next(metric for metric in declared if metric.column == row["metric"])


def beside(compared: Mapping[str, pl.DataFrame]) -> list[Table]:
    """Make a table for each arm with the values and verdicts of several places, by name."""
    keys = ["arm", "group", "metric"]
    rows: dict[tuple[object, ...], dict[str, Mapping[str, Any]]] = {}
    for place, table in compared.items():
        for row in table.iter_rows(named=True):
            rows.setdefault(tuple(row[key] for key in keys), {})[place] = row
    columns = [column for place in compared for column in (place, f"verdict {place}")]
    by_arm: dict[object, list[list[Text]]] = {}
    for (arm, *_), of_places in rows.items():
        known = next(iter(of_places.values()))
        name, simulated, _, _, tolerance, _ = _cells(known)
        cells: list[Text] = [name, simulated]
        for place in compared:
            written = _cells(of_places[place]) if place in of_places else [MISSING] * 6
            cells += [written[2], written[5]]
        by_arm.setdefault(arm, []).append([*cells, tolerance])
    heads = ("metric", "simulated", *columns, "tolerance")
    return [Table(heads, cells, f"{arm}") for arm, cells in by_arm.items()]


def answer(table: pl.DataFrame) -> str:
    """Count the verdicts on valid rows: ``"7 of 8 metrics agree, 1 differs, 3 without a verdict"``.

    Invalid rows are counted apart.
    """
    judged = table.filter(valid=True).drop_nulls("verdict")
    words = {
        Verdict.DIFFERS: ("differs", "differ"),
        Verdict.UNDECIDED: ("is undecided", "are undecided"),
        Verdict.NOT_MEASURED: ("was not measured", "were not measured"),
    }
    agree = judged.filter(verdict=Verdict.AGREES).height
    clauses = ["no metric has a verdict"]
    if judged.height:
        verb = "agrees" if agree == 1 else "agree"
        clauses = [f"{agree} of {formatting.counted(judged.height, 'metric')} {verb}"]
    for verdict, forms in words.items():
        count = judged.filter(verdict=verdict).height
        clauses += [f"{count} {forms[count != 1]}"] if count else []
    invalid = table.filter(valid=False).height
    without = table.filter(valid=True)["verdict"].null_count()
    clauses += [f"{without} without a verdict"] if without and judged.height else []
    clauses += [f"{invalid} invalid"] if invalid else []
    return ", ".join(clauses)


def note(table: pl.DataFrame, place: str) -> str:
    """Describe the numbers: means, and the interval of differences."""
    text = f"means over runs; difference: {place} minus simulated"
    compared = table.drop_nulls("difference")
    if compared["low"].null_count() < compared.height:
        text += ", with its 95 % bootstrap interval (unpaired: the runs share no random numbers)"
    if compared["low"].null_count():
        text += (
            "; with one run there is no interval, and the verdict compares single runs; use "
            "more replications"
        )
    return text


def failures(checks: Sequence[FailedCheck], place: str) -> list[str]:
    """Name the runs that failed a check, one line per check."""
    return [
        f"{check.arm}: {place} replication {check.replication} is invalid: "
        f"{check.name}: {check.value}"
        for check in checks
    ]
