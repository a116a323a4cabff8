"""The words of a comparison of simulated and live runs, for terminals, pages and notebooks."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sojourn.agreement.comparison import FailedCheck, Verdict
from sojourn.result import formatting
from sojourn.result.catalogue import Metric, shown
from sojourn.result.naming import described

HEAD = ("arm", "metric", "simulated", "live", "difference", "tolerance", "verdict")
# Beside the verdict of an arm with a live run that failed a check.
INVALID = "[invalid]"
MISSING = "–"


def cells(row: Mapping[str, Any]) -> list[str]:
    """Write a row of the table."""
    metric = _metric(row)
    name = metric.heading if row["group"] is None else f"{row['group']}: {metric.heading}"
    change = {
        "mean": row["difference"],
        "low": row["low"],
        "high": row["high"],
        "significant": False,
    }
    verdict = row["verdict"] or MISSING
    return [
        row["arm"],
        name,
        *(_number(row[side], metric) for side in ("simulated", "live")),
        formatting.change(change, metric),
        MISSING if row["tolerance"] is None else f"±{_number(row['tolerance'], metric)}",
        verdict if row["valid"] else f"{verdict} {INVALID}",
    ]


def _metric(row: Mapping[str, Any]) -> Metric:
    """Return the declaration of the metric of a row."""
    if row["group"] is None:
        return described([row["metric"]])[0]
    declared = (*shown("group"), *shown("application"))
    return next(metric for metric in declared if metric.column == row["metric"])


def _number(value: float | None, metric: Metric) -> str:
    return MISSING if value is None else f"{value:z.{metric.digits}f}"


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


def note(table: pl.DataFrame) -> str:
    """Describe the numbers: means, and the interval of differences."""
    text = "means over runs; difference: live minus simulated"
    compared = table.drop_nulls("difference")
    if compared["low"].null_count() < compared.height:
        text += ", with its 95 % bootstrap interval (unpaired: live runs are not deterministic)"
    if compared["low"].null_count():
        text += (
            "; with one run there is no interval, and the verdict compares single runs; use "
            "more replications"
        )
    return text


def failures(checks: Sequence[FailedCheck]) -> list[str]:
    """Name the live runs that failed a check, one line per check."""
    return [
        f"{check.arm}: live replication {check.replication} is invalid: {check.name}: {check.value}"
        for check in checks
    ]
