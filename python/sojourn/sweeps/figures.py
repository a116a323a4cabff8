"""Figures of sweeps, drawn with matplotlib."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.plot import palette
from sojourn.plot.drawing import add_grid, plain_log, wrapped
from sojourn.plot.figures import Plot
from sojourn.result.catalogue import described
from sojourn.result.metric import Metric
from sojourn.sweeps.estimates import in_order, numeric

_SIZE = (6.0, 4.0)
# Ratio of the largest and the smallest value from which an axis is logarithmic.
_LOGARITHMIC = 20.0
# Cells of a heat map that have room for their value.
_NUMBERED = 150
_LETTERS = 50
_LEGEND = 12


def heatmap(table: pl.DataFrame, column: str, *, x: str, y: str) -> Figure:
    """Draw a pivot table as a heat map with the value in each cell."""
    metric = _metric(column)
    columns = [name for name in table.columns if name != y]
    values = table.select(columns).to_numpy()
    figure, axes = _panel(max(_SIZE[0], 1.5 + 0.6 * len(columns)))
    axes.grid(visible=False)
    image = axes.imshow(values, aspect="auto", origin="lower", cmap="viridis")
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", fontsize="small")
    rows = [f"{value}" for value in table[y]]
    axes.set_yticks(range(len(rows)), rows, fontsize="small")
    axes.set_xlabel(wrapped(x, _LETTERS))
    axes.set_ylabel(wrapped(y, _LETTERS))
    if values.size <= _NUMBERED:
        low, high = image.get_clim()
        for row, line in enumerate(values):
            for place, value in enumerate(line):
                if value is None or value != value:  # noqa: PLR0124 - NaN
                    continue
                colour = "black" if value > (low + high) / 2 else "white"
                text = f"{value:.{metric.digits}f}"
                axes.text(place, row, text, ha="center", va="center", color=colour, fontsize=7)
    figure.colorbar(image, ax=axes, label=metric.heading)
    return figure


def lines(table: pl.DataFrame, column: str, x: str, by: Sequence[str]) -> Figure:
    """Draw means with their intervals over one parameter: a line per combination of `by`."""
    metric = _metric(column)
    order = in_order(table[x])
    places = numeric(order)
    figure, axes = _panel()
    groups = table.group_by(list(by), maintain_order=True) if by else [((), table)]
    for index, (names, of_line) in enumerate(groups):
        data = of_line.drop_nulls(column)
        at = [order.index(value) for value in data[x]]
        positions = [float(n) if places is None else places[n] for n in at]
        data = data.with_columns(_at=pl.Series(positions, dtype=pl.Float64)).sort("_at")
        colour = palette.colour(index)
        label = ", ".join(f"{name}" for name in names)
        axes.plot(data["_at"], data[column], "o-", color=colour, markersize=3, label=label)
        ranged = data.drop_nulls(f"{column}_low")
        low, high = ranged[f"{column}_low"], ranged[f"{column}_high"]
        axes.fill_between(ranged["_at"], low, high, color=colour, alpha=0.2, linewidth=0)
    _over(axes, x, order, places)
    axes.set_ylabel(wrapped(metric.heading, _LETTERS))
    if by:
        columns = 1 if table.select(by).n_unique() <= _LEGEND else 2
        axes.legend(
            title=", ".join(by), fontsize="x-small", title_fontsize="x-small", ncols=columns
        )
    return figure


def box(runs: pl.DataFrame, column: str, x: str) -> Figure:
    """Draw the distribution over runs for each value of one parameter, arms side by side."""
    metric = _metric(column)
    order = in_order(runs[x])
    arms = runs["arm"].unique(maintain_order=True).to_list()
    width = 0.8 / len(arms)
    figure, axes = _panel(max(_SIZE[0], 1.0 + 0.25 * len(order) * len(arms)))
    for index, arm in enumerate(arms):
        of_arm = runs.filter(pl.col("arm") == arm).drop_nulls(column)
        samples = [of_arm.filter(pl.col(x) == value)[column].to_list() for value in order]
        places = [n + (index - (len(arms) - 1) / 2) * width for n in range(len(order))]
        colour = palette.colour(index)
        drawn = axes.boxplot(
            samples,
            positions=places,
            widths=0.85 * width,
            whis=(5, 95),
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": "black"},
        )
        for patch in drawn["boxes"]:
            patch.set(facecolor=colour, alpha=0.5, edgecolor=colour)
        axes.plot([], [], "s", color=colour, alpha=0.5, label=arm)
    _over(axes, x, order, None)
    axes.set_ylabel(wrapped(metric.heading, _LETTERS))
    if len(arms) > 1:
        axes.legend(fontsize="x-small")
    return figure


def _panel(width: float = _SIZE[0]) -> tuple[Figure, Axes]:
    figure = Plot(figsize=(width, _SIZE[1]), layout="constrained")
    axes = figure.subplots()
    add_grid(axes)
    return figure, axes


def _over(axes: Axes, x: str, order: Sequence[object], places: Sequence[float] | None) -> None:
    """Label the horizontal axis with the values of a parameter."""
    axes.set_xlabel(wrapped(x, _LETTERS))
    if places is not None and places[0] > 0 and places[-1] / places[0] >= _LOGARITHMIC:
        axes.set_xscale("log")
        plain_log(axes.xaxis)
    at = range(len(order)) if places is None else places
    axes.set_xticks(list(at), [f"{value}" for value in order], rotation=45, ha="right")
    axes.minorticks_off()


def _metric(column: str) -> Metric:
    return described([column])[0]
