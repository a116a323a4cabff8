"""The figures of a report on a sweep: small multiples and heat maps, as SVG.

All panels of a metric have the same axes or colours, so they can be compared.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn.report.chart import Axis, Chart, linear_axis, log_axis, named_axis
from sojourn.report.figure import figure
from sojourn.report.heat_map import Cell, HeatMap
from sojourn.result import formatting
from sojourn.result.catalogue import Metric
from sojourn.scenario.quantities import in_base_units, quantity
from sojourn.sweeps.estimates import in_order
from sojourn.sweeps.result import SweepResult
from sojourn.sweeps.scales import Scale, is_wide, scale

# Most panels per metric: more would make the page too long to read.
MOST_PANELS = 12
# Most lines per panel, and most cells along a side of a heat map.
_MOST_LINES = 24
_MOST_CELLS = 64
_TWO = 2
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """The assignment of parameters to the axes, lines and panels of the figures of a sweep."""

    axes: tuple[str, ...]
    sampled: tuple[str, ...]
    arms: bool

    @property
    def x(self) -> tuple[str, ...]:
        """The parameters on horizontal axes."""
        return self.sampled or self.axes[:1]

    @property
    def line(self) -> str | None:
        """The column that distinguishes lines, or colours of dots."""
        if self.arms:
            return "arm"
        rest = self.axes if self.sampled else self.axes[1:]
        return rest[0] if rest else None

    @property
    def panels(self) -> tuple[str, ...]:
        """The columns that distinguish panels."""
        if self.sampled:
            return ()
        return self.axes[1:] if self.arms else self.axes[2:]

    @property
    def maps(self) -> tuple[str, ...]:
        """The columns that distinguish heat maps."""
        return (*self.axes[2:], *(("arm",) if self.arms else ()))


def layout(result: SweepResult) -> Layout:
    """Choose the axes of the figures of a sweep; parameters with one value have none."""
    axes, sampled = [], []
    for paths, values in result.manifest["space"]["parameters"].items():
        if all(isinstance(value, str) for value in values):
            # Of parameters that change together, each range has separate samples.
            sampled += [path for path in paths.split(",") if path in result.parameters]
        elif len(values) > 1:
            axes.append(paths.split(",")[0])
    numeric = [path for path in axes if scale(path, result.points[path]).numbers is not None]
    ordered = [*numeric[:1], *(path for path in axes if path not in numeric[:1])]
    return Layout(tuple(ordered), tuple(sampled), len(result.arms) > 1)


def legend(result: SweepResult, of: Layout) -> tuple[str, list[str]]:
    """Return the meaning of lines and colours, and their names; no names for a single line."""
    if of.line is None:
        return "", []
    what = "Arms" if of.line == "arm" else of.line
    return what, [f"{value}" for value in _lines(result, of)]


def multiples(result: SweepResult, metric: Metric, of: Layout) -> tuple[list[str], int]:
    """Draw a metric over parameters as small multiples."""
    table = result.points.drop_nulls(metric.column)
    if table.is_empty():
        return [], 0
    found: list[str] = []
    left_out = 0
    for x in of.x:
        for name, panel in _panels(table, of.panels):
            if len(found) == MOST_PANELS:
                left_out += 1
                continue
            title = f"{metric.label} over {x}" + (f", {name}" if name else "")
            horizontal = scale(x, result.points[x])
            chart = Chart(title, _horizontal(horizontal), _vertical(table, metric))
            lines = list(_by_line(result, of, panel, horizontal))
            for index, (line, rows) in enumerate(lines[:_MOST_LINES]):
                _draw(chart, index, line, rows, _Shown(result, metric, of, horizontal))
            found.append(figure(title, "", chart, *_data(lines, metric, of, horizontal)))
    return found, left_out


@dataclass(frozen=True, slots=True)
class _Shown:
    """The data of a line."""

    result: SweepResult
    metric: Metric
    of: Layout
    horizontal: Scale


def _draw(chart: Chart, index: int, line: str, rows: Sequence[Row], shown: _Shown) -> None:
    """Draw the points of a line with their intervals, and the line if the axis has numbers."""
    metric, horizontal = shown.metric, shown.horizontal
    xs = [horizontal.position(row[horizontal.path]) for row in rows]
    if not shown.of.sampled and horizontal.numbers is not None and len(rows) > 1:
        ys = [row[metric.column] for row in rows]
        chart.line(index, line, list(zip(xs, ys, strict=True)))
    for x, row in zip(xs, rows, strict=True):
        name = hover(shown.result, row, metric)
        low, high = row[f"{metric.column}_low"], row[f"{metric.column}_high"]
        if low is not None and not shown.of.sampled:
            chart.whisker(index, name, x, (low, high))
        chart.dot(index, name, (x, row[metric.column]), radius=3)


def _data(
    lines: Sequence[tuple[str, Sequence[Row]]], metric: Metric, of: Layout, horizontal: Scale
) -> tuple[list[str], list[list[str]]]:
    """Return the table of a panel; samples are in the table of all points."""
    if of.sampled:
        return [], []
    texts = [{row[horizontal.path]: estimate(row, metric) for row in rows} for _, rows in lines]
    head = [horizontal.path, *(line or metric.heading for line, _ in lines)]
    return head, [
        [f"{value}", *(own.get(value, "–") for own in texts)] for value in horizontal.values
    ]


def _by_line(
    result: SweepResult, of: Layout, panel: pl.DataFrame, horizontal: Scale
) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each line, in the order of the horizontal axis."""
    for line in _lines(result, of):
        rows = (panel if of.line is None else panel.filter(pl.col(of.line) == line)).to_dicts()
        rows.sort(key=lambda row: horizontal.position(row[horizontal.path]))
        yield f"{line}", rows


def heat_maps(result: SweepResult, metric: Metric, of: Layout) -> tuple[list[str], int]:
    """Draw a metric over the first two parameters with a grid of values."""
    table = result.points.drop_nulls(metric.column)
    if len(of.axes) < _TWO or of.sampled or table.is_empty():
        return [], 0
    x, y = (scale(path, result.points[path]) for path in of.axes[:_TWO])
    panels = list(_panels(table, of.maps))
    if max(len(x.values), len(y.values)) > _MOST_CELLS:
        return [], len(panels)
    low, high = (float(value) for value in _ends(table[metric.column]))
    found = []
    for name, panel in panels[:MOST_PANELS]:
        rows = {(row[x.path], row[y.path]): row for row in panel.iter_rows(named=True)}
        cells = [
            [_cell(result, rows.get((column, line)), metric, (column, line)) for column in x.values]
            for line in y.values
        ]
        title = metric.heading + (f", {name}" if name else "")
        drawing = HeatMap(
            title=title,
            x=x.label,
            y=y.label,
            columns=[x.text(value) for value in x.values],
            rows=[y.text(value) for value in y.values],
            cells=cells,
            low=low,
            high=high,
            logarithmic=is_wide(low, high),
        )
        head = [f"{y.path} \\ {x.path}", *(f"{value}" for value in x.values)]
        data = [
            [f"{line}", *(_text(rows.get((column, line)), metric) for column in x.values)]
            for line in y.values
        ]
        ratios = ", log scale" if drawing.logarithmic else ""
        unit = f" {metric.unit}" if metric.unit else ""
        note = f"Colours from {low:.4g} (dark) to {high:.4g}{unit} (light){ratios}."
        found.append(figure(title, note, drawing, head, data))
    return found, len(panels) - len(found)


def estimate(row: Row, metric: Metric) -> str:
    """Write the mean of a metric with half the width of its interval."""
    name = metric.column
    return formatting.estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], metric)


def hover(result: SweepResult, row: Row, metric: Metric) -> str:
    """Describe a point and arm with its value on one line."""
    values = [f"{path}={row[path]}" for path in result.parameters]
    arm = [row["arm"]] if len(result.arms) > 1 else []
    text = f"{metric.label} {estimate(row, metric)} {metric.unit}".rstrip()
    return f"{', '.join([*values, *arm])}: {text} (n = {row['n']})"


def sort_key(value: object) -> float | None:
    """Return the number by which a value of a parameter is sorted; None: by its text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return None if quantity(value) is None else in_base_units(value)


def _cell(
    result: SweepResult, row: Row | None, metric: Metric, place: tuple[object, object]
) -> Cell:
    if row is None:
        return Cell(None, "", f"{place[0]}, {place[1]}: no point")
    value = row[metric.column]
    return Cell(value, f"{value:.{metric.digits}f}", hover(result, row, metric))


def _text(row: Row | None, metric: Metric) -> str:
    return "–" if row is None else estimate(row, metric)


def _lines(result: SweepResult, of: Layout) -> list[object]:
    if of.line is None:
        return [""]
    return list(result.arms) if of.line == "arm" else in_order(result.points[of.line])


def _panels(table: pl.DataFrame, paths: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of each combination of values that has points, with its name."""
    for values in itertools.product(*(in_order(table[path]) for path in paths)):
        part = table
        for path, value in zip(paths, values, strict=True):
            part = part.filter(pl.col(path) == value)
        if not part.is_empty():
            pairs = zip(paths, values, strict=True)
            named = (f"{value}" if path == "arm" else f"{path}={value}" for path, value in pairs)
            yield ", ".join(named), part


def _horizontal(of: Scale) -> Axis:
    if of.numbers is None:
        return named_axis(of.label, [f"{value}" for value in of.values])
    if of.logarithmic:
        return log_axis(of.label, of.numbers)
    return linear_axis(of.label, of.numbers, from_zero=False)


def _vertical(table: pl.DataFrame, metric: Metric) -> Axis:
    """Cover the means of a metric and their intervals."""
    name = metric.column
    means = table[name].to_list()
    columns = (table[column].drop_nulls().to_list() for column in (f"{name}_low", f"{name}_high"))
    values = [*means, *itertools.chain.from_iterable(columns)]
    if min(values) > 0 and is_wide(min(means), max(means)):
        return log_axis(metric.heading, values)
    return linear_axis(metric.heading, values, from_zero=min(values) >= 0)


def _ends(values: pl.Series) -> tuple[float, float]:
    found = values.to_list()
    return min(found), max(found)
