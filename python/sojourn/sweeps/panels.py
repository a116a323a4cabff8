"""The figures of a report on a sweep: small multiples and heat maps.

All panels of a metric have the same axes or colours, so they can be compared.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sojourn.presentation import style
from sojourn.presentation.figure import Figure
from sojourn.result import formatting
from sojourn.result.catalogue import Metric
from sojourn.scenario.quantities import in_base_units, quantity
from sojourn.sweeps.estimates import in_order
from sojourn.sweeps.figures import heat_panel, line_panel
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


def multiples(result: SweepResult, metric: Metric, of: Layout) -> tuple[list[Figure], int]:
    """Draw a metric over parameters as small multiples."""
    table = result.points.drop_nulls(metric.column)
    if table.is_empty():
        return [], 0
    found: list[Figure] = []
    left_out = 0
    names = [f"{value}" for value in _lines(result, of)]
    for x in of.x:
        for name, panel in _panels(table, of.panels):
            if len(found) == MOST_PANELS:
                left_out += 1
                continue
            horizontal = scale(x, result.points[x])
            lines = dict(_by_line(result, of, panel, horizontal))
            shown = dict(list(lines.items())[:_MOST_LINES])
            texts = {
                line: [hover(result, row, metric) for row in rows] for line, rows in shown.items()
            }
            head, rows = _data(lines, metric, of, horizontal)
            title = f"{metric.label} over {x}" + (f", {name}" if name else "")
            is_sampled = bool(of.sampled)
            one = line_panel(shown, metric, horizontal, table, texts, sampled=is_sampled)
            found.append(Figure(title, [one], style.numbers(names), head=head, rows=rows))
    return found, left_out


def _data(
    lines: Mapping[str, Sequence[Row]], metric: Metric, of: Layout, horizontal: Scale
) -> tuple[list[str], list[list[str]]]:
    """Return the table of a panel; samples are in the table of all points."""
    if of.sampled:
        return [], []
    texts = [
        {row[horizontal.path]: estimate(row, metric) for row in rows} for rows in lines.values()
    ]
    head = [horizontal.path, *(line or metric.heading for line in lines)]
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


def heat_maps(result: SweepResult, metric: Metric, of: Layout) -> tuple[list[Figure], int]:
    """Draw a metric over the first two parameters with a grid of values."""
    table = result.points.drop_nulls(metric.column)
    if len(of.axes) < _TWO or of.sampled or table.is_empty():
        return [], 0
    x, y = (scale(path, result.points[path]) for path in of.axes[:_TWO])
    panels = list(_panels(table, of.maps))
    if max(len(x.values), len(y.values)) > _MOST_CELLS:
        return [], len(panels)
    low, high = (float(value) for value in _ends(table[metric.column]))
    ratios = ", log scale" if is_wide(low, high) else ""
    unit = f" {metric.unit}" if metric.unit else ""
    found = []
    for name, panel in panels[:MOST_PANELS]:
        rows = {(row[x.path], row[y.path]): row for row in panel.iter_rows(named=True)}
        cells = [[rows.get((column, line)) for column in x.values] for line in y.values]
        values = [[None if row is None else row[metric.column] for row in line] for line in cells]
        texts = [
            [
                f"{column}, {line}: no point" if row is None else hover(result, row, metric)
                for column, row in zip(x.values, of_line, strict=True)
            ]
            for line, of_line in zip(y.values, cells, strict=True)
        ]
        data = [
            [f"{line}", *("–" if row is None else estimate(row, metric) for row in of_line)]
            for line, of_line in zip(y.values, cells, strict=True)
        ]
        title = metric.heading + (f", {name}" if name else "")
        one = heat_panel(values, metric, (x, y), (low, high), texts)
        note = f"Colours from {low:.4g} (dark) to {high:.4g}{unit} (light){ratios}."
        head = [f"{y.path} \\ {x.path}", *(f"{value}" for value in x.values)]
        found.append(Figure(title, [one], {}, note=note, head=head, rows=data))
    return found, len(panels) - len(found)


def estimate(row: Row, metric: Metric) -> str:
    """Write the mean of a metric with half the width of its interval."""
    return f"{formatting.of_columns(row, metric)}"


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


def _ends(values: pl.Series) -> tuple[float, float]:
    found = values.to_list()
    return min(found), max(found)
