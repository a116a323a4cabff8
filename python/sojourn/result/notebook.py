"""Summaries as HTML tables, for notebooks."""

from collections.abc import Sequence

import polars as pl

from sojourn import markup
from sojourn.result import formatting
from sojourn.result.catalogue import Metric

NOTE = "Means over runs ± half the width of their 95 % bootstrap intervals."


def of_runs(summary: pl.DataFrame, metrics: Sequence[Metric], arms: Sequence[str]) -> str:
    """Write one row per metric and one column per arm."""
    found = _estimates(summary.with_columns(group=pl.lit("")), metrics)
    columns = [arm for arm in arms if any(arm == of for _, of, _ in found)]
    rows = [
        [metric.heading, *(found.get(("", arm, metric.column), "–") for arm in columns)]
        for metric in metrics
    ]
    return markup.table(["metric", *columns], rows) + markup.paragraph(NOTE) if columns else ""


def of_groups(
    texts: tuple[str, str], summary: pl.DataFrame, metrics: Sequence[Metric], arms: Sequence[str]
) -> str:
    """Write one row per group and arm, and one column per metric that any of them has."""
    found = _estimates(summary, metrics)
    present = {name for *_, name in found}
    columns = [metric for metric in metrics if metric.column in present]
    rows = [
        [group, arm, *cells]
        for group in dict.fromkeys(group for group, *_ in found)
        for arm in arms
        if any(cells := [found.get((group, arm, metric.column), "") for metric in columns])
    ]
    if not rows:
        return ""
    title, what = texts
    head = [what, "arm", *(metric.heading for metric in columns)]
    table = markup.table(head, [[cell or "–" for cell in row] for row in rows])
    return markup.paragraph("", strong=title) + table


def _estimates(summary: pl.DataFrame, metrics: Sequence[Metric]) -> dict[tuple[str, str, str], str]:
    """Write each mean with its interval, by group, arm and metric."""
    of_column = {metric.column: metric for metric in metrics}
    return {
        (row["group"], row["arm"], row["metric"]): formatting.estimate(
            row["mean"], row["low"], row["high"], of_column[row["metric"]]
        )
        for row in summary.iter_rows(named=True)
    }
