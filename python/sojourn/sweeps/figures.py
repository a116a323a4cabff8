"""Figures of sweeps, drawn with matplotlib."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.plot import style
from sojourn.plot.drawing import FEW, add_grid, dots, plain_log, wrapped
from sojourn.plot.figures import Plot
from sojourn.result.catalogue import Metric
from sojourn.result.naming import described
from sojourn.sweeps.scales import Scale, is_wide

_SIZE = (6.0, 4.0)
# Inches per column and row of a heat map.
_COLUMN, _ROW = 0.75, 0.45
# Largest number of cells of a heat map that show their values.
_NUMBERED = 150
_LETTERS = 50
# Most values with one tick each, and the longest names that fit side by side.
_TICKS = 8
_LEVEL_LETTERS = 56
# Luminance (ITU-R BT.601) of a cell above which its number is black.
_LIGHT = 0.5
_LUMINANCE = (0.299, 0.587, 0.114)
_DASHES = ("-", "--", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def heatmap(table: pl.DataFrame, column: str, *, x: Scale, y: Scale) -> Figure:
    """Draw a pivot table as a heat map with the value in each cell."""
    metric = _metric(column)
    values = table.select(name for name in table.columns if name != y.path).to_numpy()
    width = max(_SIZE[0], 2.0 + _COLUMN * len(x.values))
    figure, axes = _panel(width, max(3.2, 1.6 + _ROW * len(y.values)))
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    found = values[~np.isnan(values.astype(float))].astype(float)
    is_log = found.size > 0 and is_wide(float(found.min()), float(found.max()))
    image = axes.imshow(
        np.ma.masked_invalid(values.astype(float)),
        aspect="auto",
        origin="lower",
        cmap="viridis",
        norm="log" if is_log else "linear",
    )
    _name(axes, x, range(len(x.values)))
    axes.set_yticks(range(len(y.values)), [y.text(value) for value in y.values])
    axes.set_ylabel(wrapped(y.label, _LETTERS))
    if values.size <= _NUMBERED:
        for (row, place), value in np.ndenumerate(values.astype(float)):
            if np.isnan(value):
                continue
            red, green, blue, _ = image.cmap(image.norm(value))
            light = np.dot(_LUMINANCE, (red, green, blue)) > _LIGHT
            text = f"{value:.{metric.digits}f}"
            colour = "black" if light else "white"
            axes.text(place, row, text, ha="center", va="center", color=colour, fontsize="small")
    bar = figure.colorbar(image, ax=axes, label=_heading(metric, is_log=is_log))
    bar.outline.set_visible(False)
    if is_log:
        plain_log(bar.ax.yaxis)
    return figure


def lines(table: pl.DataFrame, column: str, x: Scale, by: Sequence[str]) -> Figure:
    """Draw means with their intervals over one parameter: a line per combination of `by`."""
    metric = _metric(column)
    figure, axes = _panel()
    groups = list(table.group_by(list(by), maintain_order=True)) if by else [((), table)]
    labels = [", ".join(f"{name}" for name in names) for names, _ in groups]
    numbers = style.numbers(labels)
    for index, (label, (_, of_line)) in enumerate(zip(labels, groups, strict=True)):
        data = of_line.drop_nulls(column)
        positions = [x.position(value) for value in data[x.path]]
        data = data.with_columns(_at=pl.Series(positions, dtype=pl.Float64)).sort("_at")
        means, low, high = (data[f"{column}{end}"] for end in ("", "_low", "_high"))
        turn = numbers[label] // len(style.COLOURS)
        # A single run has no interval.
        below, above = (means - low).fill_null(0.0), (high - means).fill_null(0.0)
        axes.errorbar(
            data["_at"],
            means,
            yerr=(below.to_numpy(), above.to_numpy()),
            color=style.colour(numbers[label]),
            # Names have no order, so no line joins them.
            linestyle=_DASHES[turn % len(_DASHES)] if x.numbers else "none",
            marker=_MARKERS[index % len(_MARKERS)],
            markersize=4,
            linewidth=1.3,
            elinewidth=1.0,
            capsize=2.5,
            label=label,
        )
    _over(axes, x)
    _values(axes, metric, table[column])
    if by:
        _legend(axes, table.select(by).n_unique(), ", ".join(by))
    return figure


def box(runs: pl.DataFrame, column: str, x: Scale) -> Figure:
    """Draw the distribution over runs for each value of one parameter, arms side by side."""
    metric = _metric(column)
    arms = runs["arm"].unique(maintain_order=True).to_list()
    width = 0.8 / len(arms)
    figure, axes = _panel(max(_SIZE[0], 1.0 + 0.25 * len(x.values) * len(arms)))
    for index, arm in enumerate(arms):
        of_arm = runs.filter(pl.col("arm") == arm).drop_nulls(column)
        samples = [of_arm.filter(pl.col(x.path) == value)[column].to_list() for value in x.values]
        places = [n + (index - (len(arms) - 1) / 2) * width for n in range(len(x.values))]
        colour = style.colour(style.numbers(arms)[arm])
        for place, values in zip(places, samples, strict=True):
            if len(values) < FEW:
                dots(axes, place, values, colour, spread=0.2 * width)
        drawn = axes.boxplot(
            [values if len(values) >= FEW else [] for values in samples],
            positions=places,
            widths=0.85 * width,
            whis=(5, 95),
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": "black"},
            whiskerprops={"color": colour},
            capprops={"color": colour},
        )
        for patch in drawn["boxes"]:
            patch.set(facecolor=colour, alpha=0.5, edgecolor=colour)
        axes.plot([], [], "s", color=colour, alpha=0.5, label=arm)
    axes.grid(visible=False, axis="x")
    _name(axes, x, range(len(x.values)))
    _values(axes, metric, runs[column])
    if len(arms) > 1:
        _legend(axes, len(arms), "")
    return figure


def _panel(width: float = _SIZE[0], height: float = _SIZE[1]) -> tuple[Figure, Axes]:
    figure = Plot(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    add_grid(axes)
    return figure, axes


def _legend(axes: Axes, count: int, title: str) -> None:
    """Put the legend above the panel."""
    columns = min(count, 4)
    axes.legend(
        title=title or None,
        fontsize="small",
        title_fontsize="small",
        ncols=columns,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        frameon=False,
    )


def _values(axes: Axes, metric: Metric, found: pl.Series) -> None:
    """Label the vertical axis; it begins at 0 unless it is logarithmic or there are negatives."""
    values = found.drop_nulls().to_list()
    is_log = bool(values) and is_wide(min(values), max(values))
    axes.set_ylabel(wrapped(_heading(metric, is_log=is_log), _LETTERS))
    if is_log:
        axes.set_yscale("log")
        plain_log(axes.yaxis)
    elif values and min(values) >= 0:
        axes.set_ylim(bottom=0)


def _over(axes: Axes, x: Scale) -> None:
    """Label the horizontal axis with the numbers of a parameter, or with its names."""
    if x.numbers is None:
        _name(axes, x, range(len(x.values)))
        return
    axes.set_xlabel(wrapped(f"{x.label}, log scale" if x.logarithmic else x.label, _LETTERS))
    if x.logarithmic:
        axes.set_xscale("log")
        plain_log(axes.xaxis)
    if len(x.values) <= _TICKS:
        axes.set_xticks(list(x.numbers), [x.text(value) for value in x.values])
        axes.minorticks_off()


def _name(axes: Axes, x: Scale, places: Sequence[int]) -> None:
    """Put the values of a parameter below the horizontal axis at equal distances."""
    axes.set_xlabel(wrapped(x.label, _LETTERS))
    names = [x.text(value).replace("$", r"\$") for value in x.values]
    is_level = sum(map(len, names)) + 2 * len(names) <= _LEVEL_LETTERS
    axes.set_xticks(list(places), names)
    if not is_level:
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")


def _heading(metric: Metric, *, is_log: bool) -> str:
    return f"{metric.heading}, log scale" if is_log else metric.heading


def _metric(column: str) -> Metric:
    return described([column])[0]
