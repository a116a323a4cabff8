"""Draw panels of figures of studies: bars, lines over time, distributions, sweeps, ellipses."""

import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from sojourn.plot import drawing, style
from sojourn.studies import labels
from sojourn.studies.claims import Subject
from sojourn.studies.manifest import Sweep
from sojourn.studies.panels import Kept
from sojourn.studies.verdicts import NOTHING, Estimate, Measured

GREY = "#555555"
# How published values are drawn.
DOTS, DOTTED, CROSS, DIAMOND = "o", ":", "x", "D"
_DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (8, 3)), (0, (3, 3, 1, 3)))
# Share of a cluster that its bars take.
_CLUSTER = 0.82
# Published series of fewer points are drawn as dots.
_DOTS = 80
# Minimum share of a distribution that the axis shows.
_TAIL = 0.998
# Width of letters of the labels of bars, in inches.
_LETTER = 0.075
# Letters of a label along the side of a panel, per inch of its height.
_LETTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the panels of a study have in common."""

    colours: Mapping[str, int]
    measured: Measured
    claimed: Mapping[Subject, tuple[float, float]]
    sweeps: Mapping[str, Sweep]

    def colour(self, arm: str) -> str:
        """Return the colour of an arm."""
        return style.colour(self.colours[arm])

    def dash(self, arm: str, group: int) -> tuple[int, tuple[float, ...]]:
        """Return the dashes of a line, which distinguish groups, and arms of one colour."""
        return _DASHES[(self.colours[arm] // len(style.COLOURS) + group) % len(_DASHES)]


def draw(axes: Axes, kept: Kept, published: pl.DataFrame, context: Context) -> None:
    """Draw a panel."""
    _DRAWN[kept.figure.kind](axes, kept, published, context)
    panel = kept.panel
    if panel.x_log:
        axes.set_xscale("log")
        drawing.plain_log(axes.xaxis)
    if panel.y_log:
        axes.set_yscale("log")
        drawing.plain_log(axes.yaxis)
    if panel.x_range:
        low, high = panel.x_range
        axes.set_xlim(*((high, low) if axes.xaxis_inverted() else (low, high)))
    if panel.y_range:
        axes.set_ylim(*panel.y_range)
    elif not panel.y_log and kept.figure.kind != "ellipse":
        axes.set_ylim(bottom=min(0.0, axes.dataLim.y0))
    if panel.x_label:
        axes.set_xlabel(_plain(panel.x_label))
    if panel.y_label:
        axes.set_ylabel(_plain(panel.y_label))
    if panel.title:
        axes.set_title(_plain(panel.title), fontsize="medium")
    drawing.add_grid(axes)


def _plain(text: str) -> str:
    """Escape dollar signs, which matplotlib takes for math."""
    return text.replace("$", r"\$")


def legend(
    kept: Sequence[Kept], context: Context, published: Collection[str]
) -> list[tuple[str, Artist]]:
    """List the entries of the legend of a figure: arms, groups of traffic, published values."""
    kind = kept[0].figure.kind
    entries: list[tuple[str, Artist]] = []
    if kind != "bars":
        for arm in dict.fromkeys(arm for one in kept for arm in one.all_arms):
            colour, dash = context.colour(arm), context.dash(arm, 0)
            marker = "o" if kind in ("sweep", "ellipse") else ""
            entries.append((arm, Line2D([], [], color=colour, ls=dash, marker=marker, ms=4)))
    several = next((one.groups for one in kept if len(one.groups) > 1), [])
    for at, group in enumerate(several):
        if kind == "bars":
            entries.append((str(group), _patch(GREY, at, len(several))))
        else:
            entries.append((str(group), Line2D([], [], color=GREY, ls=_DASHES[at % len(_DASHES)])))
    if published:
        tolerances = kind == "bars" and any(_stated(one, context) for one in kept)
        name = "published, with tolerance" if tolerances else "published"
        entries.append((name, _published_mark(published)))
    return entries


def _published_mark(published: Collection[str]) -> Line2D:
    if set(published) <= {DOTS, DOTTED}:
        marker, line = "o" if DOTS in published else "", ":" if DOTTED in published else ""
        return Line2D([], [], color=GREY, ls=line, lw=1.6, marker=marker, ms=3, mfc="white")
    if CROSS in published:
        return Line2D([], [], color=GREY, ls="", marker=CROSS, ms=7, mew=2)
    return Line2D([], [], color="black", ls="", marker=DIAMOND, ms=4, mfc="white")


def _patch(colour: str, at: int, number: int) -> Patch:
    return Patch(facecolor=drawing.tint(colour, at, number), edgecolor=colour, linewidth=0.8)


def _bars(axes: Axes, kept: Kept, published: pl.DataFrame, context: Context) -> None:
    """Draw one cluster of bars per arm, with one bar per group of traffic."""
    (scenario,) = kept.names
    arms, groups, metric = kept.all_arms, kept.groups, kept.panel.metric
    # Values of a file have no tolerances.
    of_file = {arm: (points["y"].item(0), math.nan) for arm, points in _overlay(kept, published)}
    width = _CLUSTER / len(groups)
    bars: list[tuple[float, float, str, int]] = []
    measured: list[tuple[float, Estimate]] = []
    stated: list[tuple[float, float, float]] = []
    for place, arm in enumerate(arms):
        for at, group in enumerate(groups):
            middle = place + (at - (len(groups) - 1) / 2) * width
            subject = Subject(scenario, arm, group, metric)
            estimate = context.measured.get(subject, NOTHING)
            beside = 0.0
            if values := context.claimed.get(subject) or of_file.get(arm):
                beside = 0.2 * width
                stated.append((middle + beside, *values))
            if estimate.mean is not None:
                bars.append((middle, estimate.mean, context.colour(arm), at))
                measured.append((middle - beside, estimate))
    axes.bar(
        [middle for middle, *_ in bars],
        [mean for _, mean, *_ in bars],
        0.94 * width,
        color=[drawing.tint(colour, at, len(groups)) for *_, colour, at in bars],
        edgecolor=[colour for *_, colour, _ in bars],
        linewidth=0.8,
    )
    _outline(draw_intervals(axes, measured, color="black", ls="", lw=0.9))
    if stated:
        xs, values, tolerances = zip(*stated, strict=True)
        style: dict[str, Any] = {"marker": "D", "ms": 3.5, "mfc": "white", "color": "black"}
        _outline(axes.errorbar(xs, values, tolerances, ls="", elinewidth=0.9, capsize=2, **style))
    axes.set_xticks(range(len(arms)), arms)
    axes.set_xlim(-0.6, len(arms) - 0.4)
    room = axes.get_window_extent().width / axes.figure.dpi / max(len(arms), 1)
    if max(map(len, arms), default=0) * _LETTER > room:
        axes.tick_params(axis="x", labelrotation=40)
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    _label_side(axes, kept, labels.of_metric(metric))


def _outline(drawn: ErrorbarContainer | None) -> None:
    """Make error bars visible on bars of any colour."""
    for artist in [] if drawn is None else drawn.get_children():
        artist.set_path_effects([withStroke(linewidth=2.4, foreground="white")])


def draw_intervals(
    axes: Axes, points: Sequence[tuple[float, Estimate]], **style: Any
) -> ErrorbarContainer | None:
    """Draw means with their intervals, or with the runs if they are few.

    The t interval of few runs can contain values that are impossible, such as negative delays; that
    of more ends at 0 if no run has a negative value.
    """
    found = [(x, one, one.mean) for x, one in points if one.mean is not None]
    if not found:
        return None
    ends = []
    for x, one, mean in found:
        if one.low is None or one.high is None or 1 < len(one.values) < drawing.FEW:
            ends.append((0.0, 0.0))
            drawing.dots(axes, x, one.values, style["color"], spread=0.0)
            continue
        low = max(one.low, 0.0) if min(one.values, default=-1.0) >= 0 else one.low
        ends.append((max(0.0, mean - low), max(0.0, one.high - mean)))
    below, above = zip(*ends, strict=True)
    means = [mean for *_, mean in found]
    return axes.errorbar([x for x, *_ in found], means, [below, above], **style)


def _label_side(axes: Axes, kept: Kept, label: str) -> None:
    """Label the vertical axis; a single group of traffic is named there."""
    (first, *others) = kept.groups
    text = label if first is None or others else f"{first}: {label}"
    height = axes.get_window_extent().height / axes.figure.dpi
    axes.set_ylabel(_plain(textwrap.fill(text, max(16, int(_LETTERS * height)))))


def _series(axes: Axes, kept: Kept, published: pl.DataFrame, context: Context) -> None:
    _lines(axes, kept, context)
    for arm, points in _overlay(kept, published):
        dots = points.height < _DOTS
        axes.plot(
            points["x"],
            points["y"],
            color=context.colour(arm),
            ls="" if dots else ":",
            marker="o" if dots else "",
            ms=3,
            mfc="white",
            lw=1.6,
            zorder=2.5,
        )
    axes.set_xlim(0, kept.duration_s)
    axes.set_xlabel("time [s]")
    _label_side(axes, kept, labels.of_series(kept.panel.metric))


def _cdf(axes: Axes, kept: Kept, published: pl.DataFrame, context: Context) -> None:
    _lines(axes, kept, context)
    for arm, points in _overlay(kept, published):
        axes.plot(points["x"], points["y"], color=context.colour(arm), ls=":", lw=1.6)
    axes.set_ylim(0, 1)
    if kept.lines and not kept.panel.x_log:
        tails = [float(np.interp(_TAIL, line.y, line.x)) for line in kept.lines]
        axes.set_xlim(0, 1.04 * max(tails))
    (first, *others) = kept.groups
    of = "" if first is None or others else f"{first}: "
    axes.set_xlabel(_plain(of + labels.of_series(kept.panel.metric)))
    axes.set_ylabel(f"share of {labels.CDFS.get(kept.panel.metric, 'packets')}")


def _lines(axes: Axes, kept: Kept, context: Context) -> None:
    for line in kept.lines:
        group = list(kept.groups).index(line.group)
        colour = drawing.tint(context.colour(line.arm), group, 2 * len(kept.groups))
        axes.plot(line.x, line.y, color=colour, ls=context.dash(line.arm, group), lw=1.3)


def _overlay(kept: Kept, published: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the published points of each arm that the panel shows."""
    rows = published.filter(pl.col("scenario").is_in([*kept.names, kept.panel.sweep]))
    found = []
    for arm in kept.all_arms:
        points = rows.filter(pl.col("arm") == arm)
        if not points.is_empty():
            found.append((arm, points))
    return found


def _sweep(axes: Axes, kept: Kept, published: pl.DataFrame, context: Context) -> None:
    sweep = context.sweeps[kept.panel.sweep]
    at = labels.places(sweep.axis, sweep.set[sweep.axis])
    places = dict(zip(sweep.points, at.values, strict=True))
    for arm in kept.all_arms:
        for number, group in enumerate(kept.groups):
            colour = context.colour(arm)
            subjects = [Subject(key, arm, group, kept.panel.metric) for key in places]
            means = sorted(
                ((places[one.scenario], context.measured.get(one, NOTHING)) for one in subjects),
                key=lambda mean: mean[0],
            )
            line: dict[str, Any] = {"color": colour, "ls": context.dash(arm, number), "lw": 1.3}
            draw_intervals(axes, means, marker="o", ms=3, elinewidth=0.9, capsize=2, **line)
            for subject in subjects:
                if subject in context.claimed:
                    x, (value, tolerance) = places[subject.scenario], context.claimed[subject]
                    _diamonds(axes, [x], [value], colour, tolerance)
    for arm, points in _overlay(kept, published):
        _diamonds(axes, points["x"].to_list(), points["y"].to_list(), context.colour(arm), None)
    if at.names:
        axes.set_xticks(list(at.values), at.names)
    axes.set_xlabel(_plain(sweep.label or at.label))
    _label_side(axes, kept, labels.of_metric(kept.panel.metric))


def _diamonds(
    axes: Axes, x: Sequence[float], y: Sequence[float], colour: str, tolerance: float | None
) -> None:
    """Draw published values of a sweep."""
    axes.errorbar(
        x, y, tolerance, ls="", marker="D", ms=4, mfc="white", color=colour, lw=0.9, zorder=3
    )


def _ellipse(axes: Axes, kept: Kept, published: pl.DataFrame, context: Context) -> None:
    for ellipse in kept.ellipses:
        drawing.draw_ellipse(axes, ellipse, context.colour(ellipse.arm))
    drawing.latency_axis(axes)
    crosses = [
        (arm, x, y) for arm, points in _overlay(kept, published) for x, y in _points(points)
    ] or stated_crosses(kept, context)
    for arm, x, y in crosses:
        axes.plot(x, y, color=context.colour(arm), marker="x", ms=7, mew=2, zorder=4)
    axes.autoscale_view()
    _label_side(axes, kept, labels.of_metric(f"goodput_{kept.direction}_mbit_per_s"))


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
    spread = "small dots the runs" if runs < drawing.FEW else "error bars their 95 % intervals"
    stated = [text for mark, text in _PUBLISHED.items() if mark in published]
    return " ".join([one if runs == 1 else several.format(spread=spread), *stated])


_DRAWN: Mapping[str, Callable[[Axes, Kept, pl.DataFrame, Context], None]] = {
    "bars": _bars,
    "series": _series,
    "cdf": _cdf,
    "sweep": _sweep,
    "ellipse": _ellipse,
}
