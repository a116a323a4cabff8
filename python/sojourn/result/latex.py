"""Summaries as LaTeX tables."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.presentation import latex
from sojourn.presentation.model import Column, Table, Text
from sojourn.result import derived_files, formatting
from sojourn.result.catalogue import By, Metric
from sojourn.result.estimates import check_arms, metrics_by

MEANS = r"Means over $n$ runs $\pm$ half the width of their 95\,\% bootstrap intervals."
DIFFERENCES = (
    r"Paired differences from {}, with 95\,\% bootstrap intervals; an asterisk marks an interval "
    r"that excludes 0."
)

# What a group may be, of which a table shows metrics.
_OF_GROUPS: tuple[By, ...] = ("group", "class", "application")
Rows = Mapping[tuple[str, str], Mapping[str, float | None]]


def of_metrics(
    per_run: pl.DataFrame,
    summary: Callable[[By], pl.DataFrame],
    difference: Callable[[str, str, By], pl.DataFrame],
    metric: str | Sequence[str] | None,
    *,
    origin: Sequence[str],
    arms: Sequence[str] | None,
    group: str | None,
    baseline: str | None,
    caption: str | None,
    label: str | None,
) -> str:
    """Write a table of a result, as :meth:`sojourn.Result.to_latex` describes.

    `per_run` is its table of metrics of runs; the methods yield means and differences.
    """
    whole: tuple[By, ...] = ("run",)
    kinds = whole if group is None else _OF_GROUPS
    known = [metric for by in kinds for metric in metrics_by(by, per_run.columns)]
    finished = per_run["arm"].unique(maintain_order=True).to_list()
    shown = finished if arms is None else list(arms)
    check_arms(per_run["arm"], "arms", *shown)
    if baseline is not None:
        check_arms(per_run["arm"], "baseline", baseline)
    if baseline is None:
        frames = [summary(by) for by in kinds]
    else:
        shown = [arm for arm in shown if arm != baseline]
        frames = [
            difference(baseline, arm, by).with_columns(arm=pl.lit(arm))
            for arm in shown
            for by in kinds
        ]
    rows = _of_group(frames, group)
    chosen = _chosen(known, metric, (column for _, column in rows))
    table = _table(
        chosen, [arm for arm in finished if arm in shown], rows, signed=baseline is not None
    )
    note = MEANS if baseline is None else DIFFERENCES.format(latex.escaped(baseline))
    return _written(table, note, origin, caption=caption, label=label)


def _table(metrics: Sequence[Metric], arms: Sequence[str], rows: Rows, *, signed: bool) -> Table:
    """Make a table with a row for each arm that has any of the metrics."""
    number = formatting.change if signed else formatting.estimate
    body: list[list[Text]] = []
    for arm in arms:
        found = [rows.get((arm, metric.column)) for metric in metrics]
        runs = max((int(row["n"] or 0) for row in found if row is not None), default=0)
        if runs:
            cells = [number(row, metric) for row, metric in zip(found, metrics, strict=True)]
            body.append([arm, f"{runs}", *cells])
    return Table(["arm", "$n$", *(Column(metric.heading) for metric in metrics)], body)


def _written(
    table: Table, note: str, origin: Sequence[str], *, caption: str | None, label: str | None
) -> str:
    """Write a table with its origin; with a caption or a label in an environment that floats."""
    if label is not None and not re.fullmatch(r"[\w:./+-]+", label, re.ASCII):
        raise ArgumentError("label", label, "invalid label; expected one such as tab:delay")
    tabular = latex.tabular(table)
    head = [
        derived_files.TABLE.mark.decode(),
        *(f"% {_core.printable(line)}" for line in origin),
        r"% Requires \usepackage{booktabs}.",
    ]
    if caption is None and label is None:
        return "\n".join([*head, f"% {note}", tabular, ""])
    parts = [r"\begin{table}", r"  \centering"]
    parts += [rf"  \caption{{{caption} {note}}}"] if caption is not None else []
    parts += [rf"  \label{{{label}}}"] if label is not None else []
    return "\n".join([*head, *parts, tabular, r"\end{table}", ""])


def _of_group(frames: Iterable[pl.DataFrame], group: str | None) -> Rows:
    """Return the rows of a group, or without one those of whole runs, by arm and metric."""
    every = [row for frame in frames for row in frame.iter_rows(named=True)]
    rows = [row for row in every if group is None or row["group"] == group]
    if not rows and group is not None:
        groups = dict.fromkeys(row["group"] for row in every)
        accepted = f"expected one of {', '.join(groups)}" if groups else "the result has none"
        rule = "unknown group; {accepted}"
        raise ArgumentError("group", group, rule, accepted=accepted)
    return {(row["arm"], row["metric"]): row for row in rows}


def _chosen(
    known: Sequence[Metric], names: str | Sequence[str] | None, present: Iterable[str]
) -> list[Metric]:
    """Return the metrics of these names, or by default the main ones, of those `present`."""
    has = set(present)
    available = {metric.column: metric for metric in known if metric.column in has}
    if names is None:
        main = [one for one in available.values() if one.role in {"headline", "compared"}]
        return main or list(available.values())
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in available:
            rule = "unknown metric; expected some of {known}"
            raise ArgumentError("metric", name, rule, known=", ".join(available))
    return [available[name] for name in wanted]
