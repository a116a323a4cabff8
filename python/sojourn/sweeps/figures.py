"""The figures of sweeps: a metric over one parameter, its distributions, and heat maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sojourn.presentation import style
from sojourn.presentation.figure import (
    FEW,
    Axis,
    Bars,
    Figure,
    HeatMap,
    Intervals,
    Line,
    Mark,
    Panel,
    Points,
    boxes,
    dots,
    named_axis,
)
from sojourn.result.catalogue import Metric
from sojourn.result.naming import described
from sojourn.sweeps.scales import Scale, is_wide

# Inches per column and row of a heat map, and of a panel at least.
_COLUMN, _ROW, _WIDTH = 0.75, 0.45, 6.0
# Most values of a parameter with one tick each.
_TICKS = 8
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Row = Mapping[str, Any]


def heatmap(table: pl.DataFrame, column: str, *, x: Scale, y: Scale) -> Figure:
    """Return a pivot table as a heat map with the value in each cell."""
    metric = _metric(column)
    values = table.select(name for name in table.columns if name != y.path).rows()
    known = [value for row in values for value in row if value is not None]
    ends = (min(known, default=0.0), max(known, default=1.0))
    width, height = 2.0 + _COLUMN * len(x.values), 0.7 + _ROW * len(y.values)
    panel = heat_panel(values, metric, (x, y), ends)
    return Figure(metric.heading, [panel], {}, width=max(_WIDTH, width), height=max(2.3, height))


def heat_panel(
    values: Sequence[Sequence[float | None]],
    metric: Metric,
    scales: tuple[Scale, Scale],
    ends: tuple[float, float],
    hover: Sequence[Sequence[str]] = (),
) -> Panel:
    """Return cells coloured by their values between two ends."""
    low, high = ends
    log = is_wide(low, high)
    cells = HeatMap(
        values=values,
        texts=[
            ["" if one is None else f"{one:.{metric.digits}f}" for one in row] for row in values
        ],
        hover=hover,
        low=low,
        high=high,
        log=log,
        scale=f"{metric.heading}, log scale" if log else metric.heading,
    )
    x, y = (
        named_axis([one.text(value) for value in one.values], one.label, half=0.5) for one in scales
    )
    return Panel(x, y, [cells])


def _number(value: float | None, metric: Metric) -> str:
    return "" if value is None else f"{value:.{metric.digits}f}"


def lines(table: pl.DataFrame, column: str, x: Scale, by: Sequence[str]) -> Figure:
    """Return means with their intervals over one parameter: a line per combination of `by`."""
    metric = _metric(column)
    groups = table.group_by(list(by), maintain_order=True) if by else [((), table)]
    found = {
        ", ".join(f"{name}" for name in names): rows.drop_nulls(column).to_dicts()
        for names, rows in groups
    }
    samples = [
        Line(name, marker=_MARKERS[at % len(_MARKERS)], line=x.numbers is not None)
        for at, name in enumerate(found)
    ]
    title, panel = f"{metric.label} over {x.path}", line_panel(found, metric, x, table)
    legend = samples if by else ()
    colours = style.numbers(found)
    return Figure(title, [panel], colours, legend=legend, legend_title=", ".join(by))


def line_panel(
    lines: Mapping[str, Sequence[Row]],
    metric: Metric,
    x: Scale,
    shown: pl.DataFrame,
    hover: Mapping[str, Sequence[str]] | None = None,
    *,
    sampled: bool = False,
) -> Panel:
    """Return means over a parameter, a line per name; `shown` has all values of the axis."""
    column = metric.column
    marks: list[Mark] = []
    for at, (name, rows) in enumerate(lines.items()):
        ordered = sorted(rows, key=lambda row: x.position(row[x.path]))
        places = [x.position(row[x.path]) for row in ordered]
        means = [row[column] for row in ordered]
        # Names have no order, so no line joins them.
        if x.numbers is not None and not sampled and len(places) > 1:
            marks.append(Line(name, places, means))
        # A single run has no interval.
        known = [] if sampled else [row for row in ordered if row[f"{column}_low"] is not None]
        low, high = ([row[f"{column}_{end}"] for row in known] for end in ("low", "high"))
        marks.append(Intervals(name, [x.position(row[x.path]) for row in known], low, high))
        texts, marker = hover[name] if hover else (), _MARKERS[at % len(_MARKERS)]
        marks.append(Points(name, places, means, marker=marker, hover=texts, size=4.0))
    ends = [column] if sampled else [column, f"{column}_low", f"{column}_high"]
    return Panel(_over(x), _values(metric, shown[column], shown.select(ends)), marks)


def box(runs: pl.DataFrame, column: str, x: Scale) -> Figure:
    """Return the distribution over runs for each value of one parameter, arms side by side."""
    metric = _metric(column)
    arms = runs["arm"].unique(maintain_order=True).to_list()
    width = 0.8 / len(arms)
    marks: list[Mark] = []
    for at, arm in enumerate(arms):
        of_arm = runs.filter(pl.col("arm") == arm).drop_nulls(column)
        for place, value in enumerate(x.values):
            samples = of_arm.filter(pl.col(x.path) == value)[column]
            middle = place + (at - (len(arms) - 1) / 2) * width
            if len(samples) < FEW:
                marks.append(dots(arm, middle, samples.to_list(), 0.2 * width))
                continue
            quantiles = [samples.quantile(share, "linear") or 0.0 for share in _QUANTILES]
            marks += boxes(arm, middle, quantiles, 0.42 * width)
    names = [x.text(value) for value in x.values]
    values = _values(metric, runs[column], runs.select(column))
    panel = Panel(named_axis(names, x.label), values, marks)
    legend = [Bars(arm) for arm in arms] if len(arms) > 1 else ()
    width = max(_WIDTH, 1.0 + 0.25 * len(x.values) * len(arms))
    return Figure(metric.heading, [panel], style.numbers(arms), legend=legend, width=width)


def _values(metric: Metric, means: pl.Series, shown: pl.DataFrame) -> Axis:
    """Return the vertical axis; it begins at 0 unless it is logarithmic or there are negatives."""
    found = means.drop_nulls().to_list()
    least = min((value for one in shown.min().row(0) if (value := one) is not None), default=0.0)
    log = bool(found) and least > 0 and is_wide(min(found), max(found))
    return Axis(metric.heading, log=log, low=0.0 if least >= 0 and not log else None)


def _over(x: Scale) -> Axis:
    """Return the horizontal axis: the numbers of a parameter, or its names."""
    if x.numbers is None:
        return named_axis([f"{value}" for value in x.values], x.label)
    if len(x.values) > _TICKS:
        return Axis(x.label, log=x.logarithmic)
    names = [x.text(value) for value in x.values]
    return Axis(x.label, log=x.logarithmic, names=names, places=x.numbers)


def _metric(column: str) -> Metric:
    return described([column])[0]
