"""The figures of searches: objectives of trials, and bars of parameters."""

from dataclasses import replace

import polars as pl

from sojourn.presentation.figure import (
    Axis,
    Bars,
    Figure,
    Intervals,
    Level,
    Line,
    Mark,
    Panel,
    Points,
)

# Height of a bar, in inches, and of a figure at least.
_BAR, _LEAST = 0.28, 2.0
_FRONT, _CHOSEN, _BEFORE = "front, new seeds (95 % interval)", "proposed", "original, new seeds"
_COLOURS = {_FRONT: 0, _CHOSEN: 1, _BEFORE: 2}


def pareto(
    trials: pl.DataFrame, front: pl.DataFrame, x: str, y: str | None, best: int | None
) -> Figure:
    """Return the trials and the front with its intervals: two objectives, or one by trial."""
    first, second = ("trial", x) if y is None else (x, y)
    label = "trials, seeds of the search"
    of_trials = trials.drop_nulls([first, second])
    x_, y_ = (of_trials[name].to_list() for name in (first, second))
    marks: list[Mark] = [Points("", x_, y_, tint=0.3, size=3.2, edge=False)]
    legend: list[Mark] = [Points(label=label, tint=0.3, size=3.2)]
    members = front.filter(pl.col("trial").is_not_null())
    before = front.filter(pl.col("trial").is_null())
    drawn = [
        (_FRONT, members, "o", _FRONT),
        (_CHOSEN, members.filter(pl.col("trial") == best), "D", f"proposed: trial {best}"),
    ]
    if y is not None:
        drawn.append((_BEFORE, before, "s", _BEFORE))
    for name, frame, marker, text in drawn:
        marks.append(_ends(name, frame, second, first, across=False))
        if y is not None:
            marks.append(_ends(name, frame, first, second, across=True))
        places, values = frame[first].to_list(), frame[second].to_list()
        marks.append(Points(name, places, values, marker=marker, size=5.0))
        legend.append(Points(name, label=text, marker=marker, size=5.0))
    if y is None and before[x][0] is not None:
        marks.append(Level(_BEFORE, before[x][0], width=1.3, dash=0))
        legend.append(Line(_BEFORE))
    panel = Panel(Axis(first), Axis(second), marks)
    return Figure(title=f"{second} and {first}", panels=[panel], colours=_COLOURS, legend=legend)


def _ends(name: str, frame: pl.DataFrame, column: str, other: str, *, across: bool) -> Intervals:
    """Return the intervals of a column."""
    columns = (other, f"{column}_low", f"{column}_high")
    known = frame.drop_nulls(list(dict.fromkeys([*columns, column])))
    x, low, high = (known[one].to_list() for one in columns)
    return Intervals(name, x, low, high, across=across, cap=0.0)


def bars(table: pl.DataFrame, label: str) -> Figure:
    """Return a value per parameter with its interval: a colour per metric."""
    metrics = table["metric"].unique(maintain_order=True).to_list()
    first = table.filter(pl.col("metric") == metrics[0]).sort("value")
    order = first["parameter"].to_list()
    width = 0.8 / len(metrics)
    marks: list[Mark] = []
    for at, metric in enumerate(metrics):
        of_metric = table.filter(pl.col("metric") == metric)
        aside = ((len(metrics) - 1) / 2 - at) * width
        places = [order.index(name) + aside for name in of_metric["parameter"]]
        bar = Bars(metric, places, of_metric["value"].to_list(), width=0.9 * width, across=True)
        marks.append(replace(bar, alpha=1.0))
        known = of_metric.with_columns(place=pl.Series(places)).drop_nulls(["low", "high"])
        x, low, high = (known[column].to_list() for column in ("place", "low", "high"))
        marks.append(Intervals(metric, x, low, high, ink=True, across=True, cap=0.0))
    several = len(metrics) > 1
    y = Axis(names=order, low=-0.6, high=len(order) - 0.4)
    panel = Panel(Axis(label), y, marks, title="" if several else metrics[0])
    return Figure(
        title=", ".join(metrics),
        panels=[panel],
        colours={metric: at for at, metric in enumerate(metrics)},
        legend=[Bars(metric, alpha=1.0) for metric in metrics] if several else (),
        height=max(0.3 + _BAR * len(order) * len(metrics), _LEAST - 0.9),
    )
