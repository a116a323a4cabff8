"""The panels of quantities: over time, as distributions, boxes, violins, bars and ellipses."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, get_args

import numpy as np

from sojourn.arguments import ArgumentError
from sojourn.plot import curves
from sojourn.plot.quantities import Numbers, Quantity, Samples
from sojourn.presentation import style
from sojourn.presentation.figure import (
    FEW,
    HALF_WIDTH,
    Area,
    Axis,
    Bars,
    Intervals,
    Level,
    Line,
    Mark,
    Panel,
    Points,
    Span,
    boxes,
    dots,
    named_axis,
)
from sojourn.result import Result
from sojourn.result.estimates import mean_and_interval
from sojourn.result.formatting import significant

Kind = Literal["ecdf", "box", "violin", "series", "bars", "ellipse"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Points of the outline of a violin.
_OUTLINE = 120
# A limit or target further above the values than this factor is not drawn.
_FAR = 1.5
# An axis ends at this multiple of the highest line if bands reach further.
_ABOVE = 1.3
# The share of white in the last of the lines of an arm.
_LIGHTEST = 0.6
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The part of a result that a figure shows."""

    result: Result
    arms: Sequence[str]
    replication: int | None = None
    # Whether lines over time are means over short intervals even of one run.
    averaged: bool = False

    @property
    def colours(self) -> Mapping[str, int]:
        """The number of the colour of each arm of the result, whichever are shown."""
        return style.numbers(self.result.arms)


def panel(quantity: Quantity, kind: Kind, view: View) -> Panel:
    """Return the panel of a quantity."""
    return _PANELS[kind](quantity, view)


def _series(quantity: Quantity, view: View) -> Panel:
    if not quantity.over_time:
        rule = "the metric {metric_name} is one number per run; expected ecdf, box, violin or bars"
        raise ArgumentError("kind", "series", rule, metric_name=quantity.name)
    found = (
        curves.over_time(view.result, quantity.frame())
        if view.averaged
        else quantity.series(view.result, view.replication)
    )
    lines = curve_lines(found, view.arms)
    checked = view.result.scenario.checked
    warmup = [Span("", 0.0, checked.warmup_s, ink=True)] if checked.warmup_s > 0 else []
    log, least = quantity.logarithmic, curves.SMALLEST_MS if quantity.logarithmic else None
    ends = (None, None) if log else (0.0, _top(lines))
    y = Axis(quantity.heading, log=log, least=least, low=ends[0], high=ends[1])
    x = Axis("time [s]", low=0.0, high=checked.duration_s)
    marks = [*warmup, *lines, *_levels(quantity, view, lines)]
    return Panel(x, y, marks, scale=f"{quantity.name} {quantity.part}")


def _top(lines: Sequence[Line]) -> float | None:
    """Return the end of the axis if bands reach far above the lines; else it shows them all."""
    highest = _highest(line.y for line in lines)
    of_bands = _highest(line.band[1] for line in lines if line.band is not None)
    return _ABOVE * highest if of_bands > _ABOVE * highest > 0.0 else None


def _highest(values: Iterable[Sequence[float]]) -> float:
    return max((float(np.nanmax(one)) for one in values if len(one)), default=0.0)


def curve_lines(found: Sequence[curves.Curve], arms: Sequence[str]) -> list[Line]:
    """Return the lines of arms; flows of one arm have tints of its colour."""
    lines = []
    for arm in arms:
        own = [line for line in found if line.arm == arm]
        width = 1.3 if len(own) == 1 else 1.0
        for at, line in enumerate(own):
            tint = _LIGHTEST * at / max(len(own) - 1, 1)
            lines.append(Line(arm, line.x, line.y, band=line.band, tint=tint, width=width))
    return lines


def _levels(quantity: Quantity, view: View, lines: Sequence[Line]) -> list[Level]:
    """Return the limit or the target of the queues, unless it is far above all values."""
    highest = _highest(line.y for line in lines)
    arms: dict[float, list[str]] = {}
    for arm, value in quantity.parameters(view.result).items():
        if arm in view.arms and value <= _FAR * highest:
            arms.setdefault(value, []).append(arm)
    return [
        Level(
            of[0] if len(of) == 1 and len(view.arms) > 1 else "",
            value,
            f"{quantity.parameter} {value:g} {quantity.unit}",
        )
        for value, of in arms.items()
    ]


def _ecdf(quantity: Quantity, view: View) -> Panel:
    lines = quantity.cdf(view.result, view.replication)
    return distributions(
        quantity.heading, quantity.counted, lines, view.arms, log=quantity.logarithmic
    )


def distributions(
    label: str, counted: str, lines: Sequence[curves.Curve], arms: Sequence[str], *, log: bool
) -> Panel:
    """Return a panel of distributions; `counted` says what has a share."""
    x = Axis(label, log=log, least=curves.SMALLEST_MS if log else None)
    y = Axis(f"share of {counted}", low=0.0, high=1.0)
    return Panel(x, y, curve_lines(lines, arms))


def _box(quantity: Quantity, view: View) -> Panel:
    """Return quartiles, with whiskers at the 5th and 95th percentile."""

    def box(arm: str, place: int, samples: Samples) -> list[Mark]:
        return boxes(arm, place, [samples.quantile(share) for share in _QUANTILES])

    return _of_samples(quantity, view, box)


def _violin(quantity: Quantity, view: View) -> Panel:
    """Return the density, with a dot at the median."""

    def violin(arm: str, place: int, samples: Samples) -> list[Mark]:
        at, density = _density(samples, logarithmic=quantity.logarithmic)
        half = HALF_WIDTH * density / density.max()
        sides = [*(place - half), *(place + half)[::-1], place - half[0]]
        outline = Area(arm, sides, [*at, *at[::-1], at[0]], alpha=0.5, width=0.8)
        return [outline, Points(arm, [place], [samples.quantile(0.5)], ink=True, size=4)]

    return _of_samples(quantity, view, violin)


def _of_samples(
    quantity: Quantity, view: View, one: Callable[[str, int, Samples], list[Mark]]
) -> Panel:
    """Return the samples of each arm, as dots if they are few."""
    found = quantity.samples(view.result, view.replication)
    shown = [arm for arm in view.arms if arm in found]
    marks: list[Mark] = []
    for place, arm in enumerate(shown):
        samples = found[arm]
        few = samples.counts.sum() < FEW
        marks += [dots(arm, place, samples.values.tolist())] if few else one(arm, place, samples)
    log, least = quantity.logarithmic, curves.SMALLEST_MS if quantity.logarithmic else None
    y = Axis(quantity.heading, log=log, least=least)
    return Panel(named_axis(shown), y, marks)


def _bars(quantity: Quantity, view: View) -> Panel:
    """Return the mean over the runs, with its 95 % interval or, of few runs, the runs as dots."""
    found = quantity.per_run(view.result, view.replication)
    shown = [arm for arm in view.arms if arm in found]
    marks: list[Mark] = []
    for place, arm in enumerate(shown):
        marks.append(Bars(arm, [place], [fmean(found[arm])]))
        if len(found[arm]) < FEW:
            marks.append(dots(arm, place, found[arm]))
            continue
        _, low, high = mean_and_interval(found[arm])
        if low is not None and high is not None:
            marks.append(Intervals(arm, [place], [low], [high], ink=True))
    return Panel(named_axis(shown), Axis(quantity.heading), marks)


def _ellipse(quantity: Quantity, view: View) -> Panel:
    side = quantity.name.removeprefix("goodput_")
    if side == quantity.name or not quantity.over_time:
        rule = "an ellipse cannot show this metric; expected goodput_DIRECTION"
        raise ArgumentError("metric", quantity.name, rule)
    found = curves.ellipses(view.result, side, quantity.group)
    shown = [one for one in found if one.arm in view.arms]
    return ellipse_panel(shown, ("induced latency [ms]", quantity.heading))


def ellipse_panel(found: Sequence[curves.Ellipse], labels: tuple[str, str]) -> Panel:
    """Return goodput against delay, small delays on the right."""
    marks = [mark for one in found for mark in ellipse_marks(one)]
    x, y = labels
    return Panel(Axis(x, log=True, reversed=True), Axis(y), marks)


def ellipse_marks(one: curves.Ellipse) -> list[Mark]:
    """Return the runs of an arm as small dots, their 1-σ ellipse and their median."""
    runs = list(zip(one.delay_ms, one.goodput_mbit_per_s, strict=True))
    texts = [f"{one.arm}: {significant(x)} ms, {y:.4g} Mbit/s" for x, y in [*runs, one.centre]]
    x, y = one.centre
    return [
        *([Area(one.arm, *zip(*one.outline, strict=True))] if one.outline else []),
        Points(
            one.arm, one.delay_ms, one.goodput_mbit_per_s, hover=texts[:-1], size=2.0, edge=False
        ),
        Points(one.arm, [x], [y], hover=[f"median of {texts[-1]}"], size=4.0),
    ]


_PANELS: dict[Kind, Callable[[Quantity, View], Panel]] = {
    "ecdf": _ecdf,
    "box": _box,
    "violin": _violin,
    "series": _series,
    "bars": _bars,
    "ellipse": _ellipse,
}


def _density(samples: Samples, *, logarithmic: bool) -> tuple[Numbers, Numbers]:
    """Estimate the density with Gaussian kernels of Scott's width, on the scale of the axis."""
    values = (
        np.log10(np.maximum(samples.values, curves.SMALLEST_MS)) if logarithmic else samples.values
    )
    weights = samples.counts / samples.counts.sum()
    mean = float((weights * values).sum())
    spread = float(np.sqrt((weights * (values - mean) ** 2).sum()))
    number = max(float(samples.counts.sum()), 1.0)
    width = max(spread * number ** (-1 / 5), 1e-3 * max(abs(mean), 1.0))
    at = np.linspace(values[0], max(values[-1], values[0] + width), _OUTLINE)
    # Bin first: there can be millions of pings and packets.
    counts, edges = np.histogram(values, bins=8 * _OUTLINE, weights=weights)
    centres = (edges[:-1] + edges[1:]) / 2
    density = (counts * np.exp(-0.5 * ((at[:, None] - centres) / width) ** 2)).sum(axis=1)
    return (10.0**at if logarithmic else at), density
