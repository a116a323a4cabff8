"""The panels of figures of studies: bars, lines over time, distributions, sweeps, ellipses."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sojourn.plot.panels import ellipse_marks
from sojourn.presentation.figure import (
    FEW,
    Axis,
    Bars,
    Intervals,
    Line,
    Mark,
    Panel,
    Points,
    dots,
    named_axis,
)
from sojourn.studies import labels
from sojourn.studies.claims import Subject
from sojourn.studies.manifest import Sweep
from sojourn.studies.panels import Kept
from sojourn.studies.verdicts import NOTHING, Estimate, Measured

# How published values are drawn.
DOTS, DOTTED, CROSS, DIAMOND = "o", ":", "x", "D"
# The pattern of dots of a line.
_DOTTED = 2
# Share of a cluster that its bars take, and the share of white in the last bar of a cluster.
_CLUSTER, _LIGHTEST = 0.82, 0.8
# Published series of fewer points are drawn as dots.
_DOTS = 80
# Minimum share of a distribution that the axis shows.
_TAIL = 0.998


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the panels of a study have in common."""

    colours: Mapping[str, int]
    measured: Measured
    claimed: Mapping[Subject, tuple[float, float]]
    sweeps: Mapping[str, Sweep]


def panel(kept: Kept, published: pl.DataFrame, context: Context) -> Panel:
    """Return a panel as in the work."""
    found, asked = _PANELS[kept.figure.kind](kept, published, context), kept.panel
    x, y = found.x, found.y
    if asked.x_range:
        x = replace(x, low=asked.x_range[0], high=asked.x_range[1])
    if asked.y_range:
        y = replace(y, low=asked.y_range[0], high=asked.y_range[1])
    else:
        y = replace(y, zero=not asked.y_log and kept.figure.kind != "ellipse")
    return replace(
        found,
        x=replace(x, log=x.log or asked.x_log, label=asked.x_label or x.label),
        y=replace(y, log=y.log or asked.y_log, label=asked.y_label or y.label),
        title=asked.title,
    )


def legend(kept: Sequence[Kept], context: Context, published: Collection[str]) -> list[Mark]:
    """List the samples of the legend: arms, groups of traffic, published values."""
    kind = kept[0].figure.kind
    found: list[Mark] = []
    if kind != "bars":
        marker = "o" if kind in ("sweep", "ellipse") else ""
        arms = dict.fromkeys(arm for one in kept for arm in one.all_arms)
        found += [Line(arm, marker=marker) for arm in arms]
    several = next((one.groups for one in kept if len(one.groups) > 1), [])
    for at, group in enumerate(several):
        bar = Bars(label=str(group), tint=_tint(at, len(several)), alpha=1.0)
        found.append(bar if kind == "bars" else Line(label=str(group), dash=at))
    if published:
        tolerances = kind == "bars" and any(_stated(one, context) for one in kept)
        name = "published, with tolerance" if tolerances else "published"
        found.append(replace(_published_mark(published), label=name))
    return found


def _published_mark(published: Collection[str]) -> Mark:
    if set(published) == {DOTS}:
        return Points(marker="o", hollow=True, size=3.5)
    if set(published) <= {DOTS, DOTTED}:
        marker = "o" if DOTS in published else ""
        return Line(dash=_DOTTED, width=1.6, marker=marker, line=DOTTED in published)
    if CROSS in published:
        return Points(marker="x", size=7)
    return Points(ink=True, marker="D", hollow=True, size=4)


def _tint(at: int, number: int) -> float:
    """Return the share of white of the first to the last of a number of bars or lines."""
    return _LIGHTEST * at / max(number - 1, 1)


def _bars(kept: Kept, published: pl.DataFrame, context: Context) -> Panel:
    """Return one cluster of bars per arm, with one bar per group of traffic."""
    (scenario,) = kept.names
    arms, groups, metric = kept.all_arms, kept.groups, kept.panel.metric
    # Values of a file have no tolerances.
    of_file = {arm: (points["y"].item(0), math.nan) for arm, points in _overlay(kept, published)}
    width = _CLUSTER / len(groups)
    marks: list[Mark] = []
    for place, arm in enumerate(arms):
        for at, group in enumerate(groups):
            middle = place + (at - (len(groups) - 1) / 2) * width
            subject = Subject(scenario, arm, group, metric)
            estimate = context.measured.get(subject, NOTHING)
            values = context.claimed.get(subject) or of_file.get(arm)
            beside = 0.2 * width if values else 0.0
            if estimate.mean is not None:
                tint = _tint(at, len(groups))
                bar = Bars(arm, [middle], [estimate.mean], tint=tint, width=0.94 * width)
                marks.append(replace(bar, alpha=1.0))
                marks += spread(arm, middle - beside, estimate, on_bar=True)
            if values:
                marks += _diamond(arm, middle + beside, values, on_bar=True)
    return Panel(named_axis(arms), _side(kept, labels.of_metric(metric)), marks)


def spread(arm: str, x: float, one: Estimate, *, on_bar: bool = False) -> list[Mark]:
    """Return the interval of a mean, or the runs if they are few.

    The t interval of few runs can contain values that are impossible, such as negative delays; that
    of more ends at 0 if no run has a negative value.
    """
    if one.low is None or one.high is None or 1 < len(one.values) < FEW:
        several = one.values if len(one.values) > 1 else ()
        return [replace(dots(arm, x, several, 0.0), ink=on_bar)] if several else []
    low = max(one.low, 0.0) if min(one.values, default=-1.0) >= 0 else one.low
    cap = 0.0 if on_bar else 2.0
    return [Intervals(arm, [x], [low], [one.high], cap=cap, ink=on_bar, outlined=on_bar)]


def _diamond(
    arm: str, x: float, stated: tuple[float, float], *, on_bar: bool = False
) -> list[Mark]:
    """Return a published value with its tolerance, if it has one."""
    value, tolerance = stated
    found: list[Mark] = []
    if not math.isnan(tolerance):
        ends = Intervals(arm, [x], [value - tolerance], [value + tolerance], ink=on_bar)
        found.append(replace(ends, outlined=on_bar, cap=2.0 if on_bar else 0.0))
    size = 3.5 if on_bar else 4.0
    return [*found, Points(arm, [x], [value], ink=on_bar, marker="D", hollow=True, size=size)]


def _side(kept: Kept, label: str) -> Axis:
    """Return the vertical axis; a single group of traffic is named there."""
    return Axis(_of_group(kept, label))


def _of_group(kept: Kept, label: str) -> str:
    (first, *others) = kept.groups
    return label if first is None or others else f"{first}: {label}"


def _series(kept: Kept, published: pl.DataFrame, _: Context) -> Panel:
    marks: list[Mark] = [*_lines(kept)]
    for arm, points in _overlay(kept, published):
        few = Points(arm, points["x"].to_list(), points["y"].to_list(), hollow=True, size=3.5)
        marks.append(few if points.height < _DOTS else _dotted(arm, points))
    x = Axis("time [s]", low=0.0, high=kept.duration_s)
    return Panel(x, _side(kept, labels.of_series(kept.panel.metric)), marks)


def _dotted(arm: str, points: pl.DataFrame) -> Line:
    return Line(arm, points["x"].to_list(), points["y"].to_list(), dash=_DOTTED, width=1.6)


def _cdf(kept: Kept, published: pl.DataFrame, _: Context) -> Panel:
    published_lines = [_dotted(arm, points) for arm, points in _overlay(kept, published)]
    x_axis = Axis(_of_group(kept, labels.of_series(kept.panel.metric)))
    if kept.lines and not kept.panel.x_log:
        tails = [float(np.interp(_TAIL, line.y, line.x)) for line in kept.lines]
        x_axis = replace(x_axis, low=0.0, high=1.04 * max(tails))
    counted = labels.CDFS.get(kept.panel.metric, "packets")
    y_axis = Axis(f"share of {counted}", low=0.0, high=1.0)
    return Panel(x_axis, y_axis, [*_lines(kept), *published_lines])


def _lines(kept: Kept) -> list[Line]:
    found = []
    for line in kept.lines:
        group = list(kept.groups).index(line.group)
        tint = _tint(group, 2 * len(kept.groups))
        found.append(Line(line.arm, line.x, line.y, tint=tint, dash=group))
    return found


def _overlay(kept: Kept, published: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the published points of each arm that the panel shows."""
    rows = published.filter(pl.col("scenario").is_in([*kept.names, kept.panel.sweep]))
    found = []
    for arm in kept.all_arms:
        points = rows.filter(pl.col("arm") == arm)
        if not points.is_empty():
            found.append((arm, points))
    return found


def _sweep(kept: Kept, published: pl.DataFrame, context: Context) -> Panel:
    sweep = context.sweeps[kept.panel.sweep]
    at = labels.places(sweep.axis, sweep.set[sweep.axis])
    places = dict(zip(sweep.points, at.values, strict=True))
    marks: list[Mark] = []
    for arm in kept.all_arms:
        for number, group in enumerate(kept.groups):
            subjects = [Subject(key, arm, group, kept.panel.metric) for key in places]
            found = [
                (places[one.scenario], mean, estimate)
                for one in subjects
                if (mean := (estimate := context.measured.get(one, NOTHING)).mean) is not None
            ]
            found.sort(key=lambda one: one[0])
            x, y = [place for place, *_ in found], [mean for _, mean, _ in found]
            marks.append(Line(arm, x, y, dash=number))
            for place, _, estimate in found:
                marks += spread(arm, place, estimate)
            marks.append(Points(arm, x, y, size=4.5, edge=False))
            for one in subjects:
                if one in context.claimed:
                    marks += _diamond(arm, places[one.scenario], context.claimed[one])
    for arm, points in _overlay(kept, published):
        for x_, y_ in _points(points):
            marks += _diamond(arm, x_, (y_, math.nan))
    names = (at.names, at.values) if at.names else ((), ())
    x_axis = Axis(sweep.label or at.label, names=names[0], places=names[1])
    return Panel(x_axis, _side(kept, labels.of_metric(kept.panel.metric)), marks)


def _ellipse(kept: Kept, published: pl.DataFrame, context: Context) -> Panel:
    marks = [mark for one in kept.ellipses for mark in ellipse_marks(one)]
    crosses = [
        (arm, x, y) for arm, points in _overlay(kept, published) for x, y in _points(points)
    ] or stated_crosses(kept, context)
    marks += [Points(arm, [x], [y], marker="x", size=7) for arm, x, y in crosses]
    x_axis = Axis("induced latency [ms]", log=True, reversed=True)
    metric = f"goodput_{kept.direction}_mbit_per_s"
    return Panel(x_axis, _side(kept, labels.of_metric(metric)), marks)


def _points(table: pl.DataFrame) -> list[tuple[float, float]]:
    return list(zip(table["x"].to_list(), table["y"].to_list(), strict=True))


def stated_crosses(kept: Kept, context: Context) -> list[tuple[str, float, float]]:
    """List the arms of which claims state the induced latency and the goodput."""
    (scenario,) = kept.names
    metrics = ("induced_latency_ms", f"goodput_{kept.direction}_mbit_per_s")
    found = []
    for arm in kept.all_arms:
        x, y = (context.claimed.get(Subject(scenario, arm, None, metric)) for metric in metrics)
        if x is not None and y is not None:
            found.append((arm, x[0], y[0]))
    return found


def marks(kept: Kept, published: pl.DataFrame, context: Context) -> set[str]:
    """Return how a panel shows published values: :data:`DOTS`, :data:`DOTTED` and others."""
    kind = kept.figure.kind
    overlay = [points for _, points in _overlay(kept, published)]
    if kind == "series":
        return {DOTS if points.height < _DOTS else DOTTED for points in overlay}
    if kind == "cdf":
        return {DOTTED} if overlay else set()
    if kind == "ellipse":
        return {CROSS} if overlay or stated_crosses(kept, context) else set()
    return {DIAMOND} if overlay or _stated(kept, context) else set()


def _stated(kept: Kept, context: Context) -> bool:
    """Whether claims state published values of numbers that a panel shows."""
    subjects = [one for key in kept.names for one in kept.subjects(key, kept.all_arms)]
    return any(one in context.claimed for one in subjects)


# What the marks of measured values show: of several runs, and of one.
_MEASURED = {
    "bars": ("Bars show means over the runs, {spread}.", "Bars show one run."),
    "series": ("Lines show means over the runs.", "Lines show one run."),
    "cdf": ("Lines show all runs together.", "Lines show one run."),
    "sweep": (
        "Dots on lines show means over the runs, {spread}.",
        "Dots on lines show one run each.",
    ),
    "ellipse": (
        "Small dots show runs, large dots their medians, ellipses their 1-σ spread.",
        "Dots show one run each.",
    ),
}
_PUBLISHED = {
    DIAMOND: "Diamonds show published values, with tolerances that claims state.",
    DOTS: "White dots show published values.",
    DOTTED: "Dotted lines show published values.",
    CROSS: "Crosses show published values.",
}


def caption(kind: str, published: Collection[str], runs: int) -> str:
    """Write what the marks of a figure of a number of runs per arm show.

    Examples
    --------
    >>> caption("series", {DOTTED}, 1)
    'Lines show one run. Dotted lines show published values.'
    >>> caption("bars", (), 3)
    'Bars show means over the runs, small dots the runs.'
    """
    several, one = _MEASURED[kind]
    spread = "small dots the runs" if runs < FEW else "error bars their 95 % intervals"
    stated = [text for mark, text in _PUBLISHED.items() if mark in published]
    return " ".join([one if runs == 1 else several.format(spread=spread), *stated])


_PANELS: Mapping[str, Callable[[Kept, pl.DataFrame, Context], Panel]] = {
    "bars": _bars,
    "series": _series,
    "cdf": _cdf,
    "sweep": _sweep,
    "ellipse": _ellipse,
}
