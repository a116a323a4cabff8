"""The figures of searches: objectives of trials, and bars of parameters."""

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
    every = Points(
        label=label,
        tint=0.3,
        x=of_trials[first].to_list(),
        y=of_trials[second].to_list(),
        size=3.2,
        edge=False,
    )
    members = front.filter(pl.col("trial").is_not_null())
    before = front.filter(pl.col("trial").is_null())
    marks: list[Mark] = [every]
    legend: list[Mark] = [Points(label=label, tint=0.3, size=3.2)]
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
        marks.append(Points(name=name, x=places, y=values, marker=marker, size=5.0))
        legend.append(Points(name=name, label=text, marker=marker, size=5.0))
    if y is None and before[x][0] is not None:
        marks.append(Level(name=_BEFORE, value=before[x][0], width=1.3, dash=0))
        legend.append(Line(name=_BEFORE))
    panel = Panel(x=Axis(label=first), y=Axis(label=second), marks=marks)
    return Figure(title=f"{second} and {first}", panels=[panel], colours=_COLOURS, legend=legend)


def _ends(name: str, frame: pl.DataFrame, column: str, other: str, *, across: bool) -> Intervals:
    """Return the intervals of a column."""
    ends = (column, f"{column}_low", f"{column}_high")
    known = frame.select(place=other, value=ends[0], low=ends[1], high=ends[2]).drop_nulls()
    return Intervals(
        name=name,
        x=known["place"].to_list(),
        low=known["low"].to_list(),
        high=known["high"].to_list(),
        across=across,
        cap=0.0,
    )


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
        values = of_metric["value"].to_list()
        marks.append(
            Bars(name=metric, x=places, top=values, width=0.9 * width, across=True, alpha=1.0)
        )
        ends = [
            (place, low, high)
            for place, low, high in zip(places, of_metric["low"], of_metric["high"], strict=True)
            if low is not None and high is not None
        ]
        if ends:
            at_, lows, highs = zip(*ends, strict=True)
            marks.append(
                Intervals(name=metric, ink=True, x=at_, low=lows, high=highs, across=True, cap=0.0)
            )
    return Figure(
        title=", ".join(metrics),
        panels=[
            Panel(
                x=Axis(label=label),
                y=Axis(names=order, low=-0.6, high=len(order) - 0.4),
                marks=marks,
                title="" if len(metrics) > 1 else metrics[0],
            )
        ],
        colours={metric: at for at, metric in enumerate(metrics)},
        legend=[Bars(name=metric, alpha=1.0) for metric in metrics] if len(metrics) > 1 else (),
        height=max(0.3 + _BAR * len(order) * len(metrics), _LEAST - 0.9),
    )
