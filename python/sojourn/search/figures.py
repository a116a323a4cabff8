"""Figures of searches, drawn with matplotlib."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.plot import style
from sojourn.plot.drawing import add_grid, wrapped
from sojourn.plot.figures import Plot

_SIZE = (6.0, 4.0)
_LETTERS = 40
# Height of a group of bars, in inches.
_BAR = 0.28


def pareto(
    trials: pl.DataFrame, front: pl.DataFrame, x: str, y: str | None, best: int | None
) -> Figure:
    """Draw the trials and the front with its intervals: two objectives, or one by trial."""
    figure, axes = _panel(*_SIZE)
    first, second = ("trial", x) if y is None else (x, y)
    axes.scatter(
        trials[first], trials[second], s=10, color="0.6", label="trials, seeds of the search"
    )
    members = front.filter(pl.col("trial").is_not_null())
    before = front.filter(pl.col("trial").is_null())
    chosen = members.filter(pl.col("trial") == best)
    drawn = [
        (members, style.colour(0), "o", "front, new seeds (95 % interval)"),
        (chosen, style.colour(1), "D", f"proposed: trial {best}"),
    ]
    if y is not None:
        drawn.append((before, style.colour(2), "s", "original, new seeds"))
    elif before[x][0] is not None:
        axes.axhline(before[x][0], color=style.colour(2), label="original, new seeds")
    for frame, colour, marker, label in drawn:
        axes.errorbar(
            frame[first],
            frame[second],
            xerr=None if y is None else _ends(frame, first),
            yerr=_ends(frame, second),
            fmt=marker,
            color=colour,
            markersize=5,
            elinewidth=1,
            label=label,
        )
    axes.set_xlabel(wrapped(first, _LETTERS))
    axes.set_ylabel(wrapped(second, _LETTERS))
    axes.legend(fontsize="x-small")
    return figure


def bars(table: pl.DataFrame, label: str) -> Figure:
    """Draw a value per parameter with its interval: a colour per metric."""
    metrics = table["metric"].unique(maintain_order=True).to_list()
    first = table.filter(pl.col("metric") == metrics[0]).sort("value")
    order = first["parameter"].to_list()
    height = 1.2 + _BAR * len(order) * len(metrics)
    figure, axes = _panel(_SIZE[0], max(height, 2.0))
    width = 0.8 / len(metrics)
    for index, metric in enumerate(metrics):
        of_metric = table.filter(pl.col("metric") == metric)
        places = [
            order.index(name) + ((len(metrics) - 1) / 2 - index) * width
            for name in of_metric["parameter"]
        ]
        axes.barh(
            places,
            of_metric["value"],
            height=0.9 * width,
            xerr=_ends(of_metric, "value", low="low", high="high"),
            color=style.colour(index),
            error_kw={"elinewidth": 1},
            label=metric,
        )
    axes.set_yticks(range(len(order)), [wrapped(name, _LETTERS) for name in order])
    axes.set_xlabel(label)
    if len(metrics) > 1:
        # There, the bars are shortest.
        axes.legend(fontsize="x-small", loc="lower right")
    else:
        axes.set_title(metrics[0], fontsize="small")
    return figure


def _panel(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Plot(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    add_grid(axes)
    return figure, axes


def _ends(
    frame: pl.DataFrame, name: str, *, low: str | None = None, high: str | None = None
) -> list[list[float]]:
    """Return the distances from the values to the ends of their intervals."""
    lows = frame[low or f"{name}_low"].to_list()
    highs = frame[high or f"{name}_high"].to_list()
    values = frame[name].to_list()
    return [
        [
            0.0 if end is None else max(sign * (end - value), 0.0)
            for value, end in zip(values, ends, strict=True)
        ]
        for sign, ends in ((-1, lows), (1, highs))
    ]
