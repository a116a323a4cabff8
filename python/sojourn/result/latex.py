"""Summaries as LaTeX tables that need no package but booktabs."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.result import derived_files, formatting, metrics
from sojourn.result.catalogue import By, Metric

MEANS = r"Means over $n$ runs $\pm$ half the width of their 95\,\% bootstrap intervals."
DIFFERENCES = (
    r"Paired differences from {}, with 95\,\% bootstrap intervals; an asterisk marks an interval "
    r"that excludes 0."
)
_MISSING = r"\multicolumn{2}{c}{--}"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    # After \\ these would be an optional argument or its starred form; hyphens form dashes.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "-": "{-}",
    "`": r"\`{}",
    "'": "{'}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "µ": r"$\mu$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "–": "--",
    "…": r"\dots{}",
}
_ESCAPES = str.maketrans(_SPECIAL)

# What a group may be, of which a table shows metrics.
_OF_GROUPS: tuple[By, ...] = ("group", "class", "application")
Rows = Mapping[tuple[str, str], Mapping[str, float | None]]


def escaped(text: str) -> str:
    r"""Escape a text for LaTeX; control characters are written as they are on a terminal.

    Examples
    --------
    >>> print(escaped("fq_codel 5% [µs]"))
    fq\_codel 5\% {[}$\mu$s{]}
    """
    return _core.printable(text).translate(_ESCAPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with one row per arm and one column per metric."""

    metrics: Sequence[Metric]
    arms: Sequence[str]
    rows: Rows
    baseline: str | None = None

    def written(self, origin: str, *, caption: str | None, label: str | None) -> str:
        """Write the table."""
        if label is not None and not re.fullmatch(r"[\w:./+-]+", label, re.ASCII):
            raise ArgumentError("label", label, "invalid label; expected one such as tab:delay")
        tabular = "\n".join(self._tabular())
        note = MEANS
        if self.baseline is not None:
            note = DIFFERENCES.format(escaped(self.baseline))
        head = [
            derived_files.TABLE.mark.decode(),
            f"% {_core.printable(origin)}",
            r"% Requires \usepackage{booktabs}.",
        ]
        if caption is None and label is None:
            return "\n".join([*head, f"% {note}", tabular, ""])
        parts = [r"\begin{table}", r"  \centering"]
        if caption is not None:
            parts.append(rf"  \caption{{{caption} {note}}}")
        if label is not None:
            parts.append(rf"  \label{{{label}}}")
        return "\n".join([*head, *parts, tabular, r"\end{table}", ""])

    def _tabular(self) -> Iterable[str]:
        columns = [self._cells(metric) for metric in self.metrics]
        yield rf"\begin{{tabular}}{{l r{' r@{}l' * len(columns)}}}"
        yield r"\toprule"
        labels = [_heading(metric.label) for metric in self.metrics]
        units = [_heading(f"[{metric.unit}]" if metric.unit else "") for metric in self.metrics]
        yield _row(["arm", "$n$", *labels])
        if any(metric.unit for metric in self.metrics):
            yield _row(["", "", *units])
        yield r"\midrule"
        for index, arm in enumerate(self.arms):
            if not self._runs(arm):
                continue
            cells = [column[index] for column in columns]
            yield _row([escaped(arm), str(self._runs(arm)), *cells])
        yield r"\bottomrule"
        yield r"\end{tabular}"

    def _runs(self, arm: str) -> int:
        """Count the runs, or pairs of runs, of an arm that have any of the metrics."""
        found = (self.rows.get((arm, metric.column)) for metric in self.metrics)
        return max((int(row["n"] or 0) for row in found if row is not None), default=0)

    def _cells(self, metric: Metric) -> list[str]:
        """Write the cells of a metric, whose decimal points are below each other."""
        texts = [self._text(arm, metric) for arm in self.arms]
        most = max((_decimals(value) for value, _ in texts), default=0)
        starred = any("*" in value for value, _ in texts)
        return [_cell(value, spread, most, starred=starred) for value, spread in texts]

    def _text(self, arm: str, metric: Metric) -> tuple[str, str]:
        """Write a number and its uncertainty; empty if it was not measured."""
        row = self.rows.get((arm, metric.column))
        if row is None or row["mean"] is None:
            return "", ""
        if self.baseline is not None:
            value, bracket, interval = formatting.change(row, metric).partition(" [")
            return value, bracket + interval
        text = formatting.estimate(row["mean"], row["low"], row["high"], metric)
        value, sign, half = text.partition(" ±")
        return value, sign + half


def _heading(text: str) -> str:
    return rf"\multicolumn{{2}}{{c}}{{{escaped(text)}}}" if text else r"\multicolumn{2}{c}{}"


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _decimals(value: str) -> int:
    """Count the digits after the decimal point."""
    return len(value.rstrip("*").partition(".")[2])


def _cell(value: str, spread: str, most: int, *, starred: bool) -> str:
    """Write a number of at most `most` decimals, and its uncertainty in a second column."""
    if not value:
        return _MISSING
    number = value.replace("−", "-").rstrip("*")
    missing = most - _decimals(value)
    point = "." if missing and "." not in number else ""
    padding = rf"\phantom{{{point}{'0' * missing}}}" if missing else ""
    star = r"^{*}" if "*" in value else r"\phantom{^{*}}" if starred else ""
    interval = spread.replace("±", r"{}\pm ").replace("−", "-").strip()
    if interval.startswith("["):
        interval = r"\;" + interval
    return f"${number}{padding}{star}$ & " + (f"${interval}$" if interval else "")


def of_metrics(
    per_run: pl.DataFrame,
    summary: Callable[[By], pl.DataFrame],
    difference: Callable[[str, str, By], pl.DataFrame],
    metric: str | Sequence[str] | None,
    *,
    origin: str,
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
    known = [metric for by in kinds for metric in metrics.metrics_by(by, per_run)]
    finished = per_run["arm"].unique(maintain_order=True).to_list()
    shown = finished if arms is None else list(arms)
    metrics.check_arms(per_run, "arms", *shown)
    if baseline is not None:
        metrics.check_arms(per_run, "baseline", baseline)
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
    table = Table(
        metrics=_chosen(known, metric, (column for _, column in rows)),
        arms=[arm for arm in finished if arm in shown],
        rows=rows,
        baseline=baseline,
    )
    return table.written(origin, caption=caption, label=label)


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
