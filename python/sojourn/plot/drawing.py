"""Draw quantities on axes: over time, as distributions, boxes, violins, bars and ellipses."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal, get_args

import numpy as np
from matplotlib import colors, rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.arguments import ArgumentError
from sojourn.plot import curves, style
from sojourn.plot.quantities import Numbers, Quantity, Samples
from sojourn.result import Result
from sojourn.result.metrics import mean_and_interval

Kind = Literal["ecdf", "box", "violin", "series", "bars", "ellipse"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Letters of a label along the side of a panel of distributions and of a low one over time.
LETTERS = 34
_LOW_LETTERS = 26
_DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)))
# Fewer values than this are drawn as dots, not as a box or an interval.
FEW = 6
# Points of the outline of a violin, and the widest half of one.
_OUTLINE = 120
_HALF_WIDTH = 0.4
# Width of a letter of a name below a box on average, in parts of the size of text.
_LETTER = 0.55
# A limit or target further above the values than this factor is not drawn.
_FAR = 1.5
_GREY = "#666666"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The part of a result that a figure shows."""

    result: Result
    arms: Sequence[str]
    replication: int | None

    @property
    def colours(self) -> Mapping[str, int]:
        """The number of the colour of each arm of the result, whichever are shown."""
        return style.numbers(self.result.arms)


def draw(axes: Axes, quantity: Quantity, kind: Kind, view: View) -> None:
    """Draw a quantity on axes and label them."""
    _DRAWN[kind](axes, quantity, view)


def _series(axes: Axes, quantity: Quantity, view: View) -> None:
    if not quantity.over_time:
        rule = "the metric {metric_name} is one number per run; expected ecdf, box, violin or bars"
        raise ArgumentError("kind", "series", rule, metric_name=quantity.name)
    lines = quantity.series(view.result, view.replication)
    _lines(axes, lines, view)
    # Name and unit do not fit on one line of a panel.
    name, bracket, unit = _labelled(quantity).partition(" [")
    label = wrapped(name, _LOW_LETTERS) + (f"\n[{unit}" if bracket else "")
    axes.set_ylabel(label, fontsize="small")
    if quantity.logarithmic:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if low < curves.SMALLEST_MS < high:
            axes.set_ylim(bottom=curves.SMALLEST_MS)
        plain_log(axes.yaxis)
    else:
        axes.set_ylim(bottom=0)
    _parameters(axes, quantity, view)
    checked = view.result.scenario.checked
    if checked.warmup_s > 0:
        axes.axvspan(0, checked.warmup_s, color="black", alpha=0.07, linewidth=0, zorder=0)
    axes.set_xlim(0, checked.duration_s)
    axes.set_xlabel("time [s]")


def _parameters(axes: Axes, quantity: Quantity, view: View) -> None:
    """Draw the limit or the target of the queues, unless it is far above all values."""
    found = quantity.parameters(view.result)
    arms: dict[float, list[str]] = {}
    for arm in view.arms:
        if arm in found and found[arm] <= _FAR * axes.dataLim.y1:
            arms.setdefault(found[arm], []).append(arm)
    for value, of in arms.items():
        own = style.colour(view.colours[of[0]])
        colour = own if len(of) == 1 and len(view.arms) > 1 else _GREY
        axes.axhline(value, color=colour, linestyle=(0, (1, 1.5)), linewidth=1.0)
        axes.annotate(
            f"{quantity.parameter} {value:g} {quantity.unit}",
            (0.995, value),
            xycoords=("axes fraction", "data"),
            xytext=(0, 1.5),
            textcoords="offset points",
            ha="right",
            fontsize="xx-small",
            color=colour,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )


def _ecdf(axes: Axes, quantity: Quantity, view: View) -> None:
    _lines(axes, quantity.cdf(view.result, view.replication), view)
    if quantity.logarithmic:
        axes.set_xscale("log")
        plain_log(axes.xaxis)
    not_below_zero(axes)
    axes.set_ylim(0, 1)
    axes.set_xlabel(wrapped(_labelled(quantity), LETTERS))
    axes.set_ylabel(f"share of {quantity.counted}")


def _box(axes: Axes, quantity: Quantity, view: View) -> None:
    """Draw quartiles, with whiskers at the 5th and 95th percentile."""

    def box(place: int, colour: str, samples: Samples) -> None:
        shares = {"whislo": 0.05, "q1": 0.25, "med": 0.5, "q3": 0.75, "whishi": 0.95}
        axes.bxp(
            [{name: samples.quantile(share) for name, share in shares.items()}],
            positions=[place],
            widths=2 * _HALF_WIDTH,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": colour, "alpha": 0.5, "edgecolor": colour},
            medianprops={"color": "black", "linewidth": 1.3},
        )

    _distributions(axes, quantity, view, box)


def _violin(axes: Axes, quantity: Quantity, view: View) -> None:
    """Draw the density, with a dot at the median."""

    def violin(place: int, colour: str, samples: Samples) -> None:
        at, density = _density(samples, logarithmic=quantity.logarithmic)
        half = _HALF_WIDTH * density / density.max()
        axes.fill_betweenx(at, place - half, place + half, color=colour, alpha=0.5, linewidth=0.8)
        axes.plot([place], [samples.quantile(0.5)], "o", color="black", markersize=4)

    _distributions(axes, quantity, view, violin)


def _distributions(
    axes: Axes, quantity: Quantity, view: View, one: Callable[[int, str, Samples], None]
) -> None:
    """Draw the samples of each arm, as dots if they are few."""
    found = quantity.samples(view.result, view.replication)
    for place, colour, arm in _places(axes, view, found):
        if found[arm].counts.sum() < FEW:
            dots(axes, place, found[arm].values.tolist(), colour)
        else:
            one(place, colour, found[arm])
    axes.set_ylabel(wrapped(_labelled(quantity), LETTERS))
    if quantity.logarithmic:
        axes.set_yscale("log")
        plain_log(axes.yaxis)
    not_below_zero(axes)


def _bars(axes: Axes, quantity: Quantity, view: View) -> None:
    """Draw the mean over the runs, with its 95 % interval or, of few runs, the runs as dots."""
    found = quantity.per_run(view.result, view.replication)
    for place, colour, arm in _places(axes, view, found):
        mean = fmean(found[arm])
        axes.bar(place, mean, 2 * _HALF_WIDTH, color=colour, alpha=0.5, edgecolor=colour)
        if len(found[arm]) < FEW:
            dots(axes, place, found[arm], colour)
            continue
        _, low, high = mean_and_interval(found[arm])
        if low is not None and high is not None:
            ends = [[mean - low], [high - mean]]
            axes.errorbar(place, mean, ends, color="black", elinewidth=1.0, capsize=3)
    axes.set_ylabel(wrapped(quantity.heading, LETTERS))
    not_below_zero(axes)


def _ellipse(axes: Axes, quantity: Quantity, view: View) -> None:
    side = quantity.name.removeprefix("goodput_")
    if side == quantity.name or not quantity.over_time:
        rule = "an ellipse cannot show this metric; expected goodput_DIRECTION"
        raise ArgumentError("metric", quantity.name, rule)
    for ellipse in curves.ellipses(view.result, side, quantity.group):
        if ellipse.arm in view.arms:
            draw_ellipse(axes, ellipse, style.colour(view.colours[ellipse.arm]))
    latency_axis(axes)
    not_below_zero(axes)
    axes.set_ylabel(wrapped(quantity.heading, LETTERS))


_DRAWN: dict[Kind, Callable[[Axes, Quantity, View], None]] = {
    "ecdf": _ecdf,
    "box": _box,
    "violin": _violin,
    "series": _series,
    "bars": _bars,
    "ellipse": _ellipse,
}


def dots(
    axes: Axes, place: float, values: Sequence[float], colour: str, *, spread: float = 0.15
) -> None:
    """Draw values as dots side by side."""
    aside = np.linspace(-spread, spread, len(values)) if len(values) > 1 else np.zeros(len(values))
    axes.scatter(
        place + aside, values, s=14, color=colour, edgecolors="white", linewidths=0.6, zorder=3
    )


def not_below_zero(axes: Axes) -> None:
    """End linear axes at 0 if no value is negative."""
    if axes.get_xscale() == "linear" and axes.dataLim.x0 >= 0 > axes.get_xlim()[0]:
        axes.set_xlim(left=0)
    if axes.get_yscale() == "linear" and axes.dataLim.y0 >= 0 > axes.get_ylim()[0]:
        axes.set_ylim(bottom=0)


def _places(axes: Axes, view: View, found: Mapping[str, object]) -> Sequence[tuple[int, str, str]]:
    """Return place, colour and name of each arm that has values, and write the names below."""
    shown = [arm for arm in view.arms if arm in found]
    axes.set_xticks(range(len(shown)), [plain(arm) for arm in shown])
    size = axes.get_window_extent()
    letter = _LETTER * rcParams["font.size"] / 72 * axes.figure.dpi
    pairs = ((len(one) + len(other)) / 2 + 1 for one, other in pairwise(shown))
    if max(pairs, default=0.0) * letter * len(shown) > size.width:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlim(-0.6, len(shown) - 0.4)
    return [(place, style.colour(view.colours[arm]), arm) for place, arm in enumerate(shown)]


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


def _lines(axes: Axes, lines: Sequence[curves.Curve], view: View) -> None:
    """Draw the lines of the arms; flows of one arm have tints of its colour."""
    for arm in view.arms:
        number = view.colours[arm]
        own = [line for line in lines if line.arm == arm]
        for at, line in enumerate(own):
            colour = tint(style.colour(number), at, len(own), most=0.6)
            axes.plot(
                line.x,
                line.y,
                label="" if at else arm,
                color=colour,
                linestyle=_DASHES[number // len(style.COLOURS) % len(_DASHES)],
                linewidth=1.3 if len(own) == 1 else 1.0,
            )
            if line.band is not None:
                axes.fill_between(line.x, *line.band, color=colour, alpha=0.15, linewidth=0)


def tint(colour: str, at: int, number: int, most: float = 0.8) -> tuple[float, float, float]:
    """Mix a colour with white: none for the first of a number of lines, most for the last."""
    share = most * at / max(number - 1, 1)
    red, green, blue = (part + (1 - part) * share for part in colors.to_rgb(colour))
    return red, green, blue


def _labelled(quantity: Quantity) -> str:
    return f"{quantity.heading}, log scale" if quantity.logarithmic else quantity.heading


def wrapped(label: str, letters: int) -> str:
    """Wrap the label of an axis, and take dollar signs in the names of users for dollar signs."""
    return plain(textwrap.fill(label, letters))


def plain(text: str) -> str:
    """Escape dollar signs, which matplotlib takes for math."""
    return text.replace("$", r"\$")


class _RoundTicks(LogLocator):
    """Ticks at the round values that reports show, also after the view has changed."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks of a range, of which a reversed axis gives the larger end first."""
        low, high = sorted((vmin, vmax))
        return style.logarithmic(max(low, curves.SMALLEST_MS), high)


def plain_log(axis: Axis) -> None:
    """Label a logarithmic axis with numbers instead of powers."""
    axis.set_major_locator(_RoundTicks())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def add_grid(axes: Axes) -> None:
    """Draw grid lines behind the data, and only the left and the bottom edge."""
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw_ellipse(axes: Axes, ellipse: curves.Ellipse, colour: str) -> None:
    """Draw the runs of an arm as small dots, their 1-σ ellipse and their median."""
    if ellipse.outline:
        xs, ys = zip(*ellipse.outline, strict=True)
        axes.fill(xs, ys, color=colour, alpha=0.3, linewidth=0)
        axes.plot(xs, ys, color=colour, linewidth=1.2)
    axes.scatter(ellipse.delay_ms, ellipse.goodput_mbit_per_s, s=4, color=colour, linewidths=0)
    axes.scatter(
        *ellipse.centre,
        s=16,
        color=colour,
        edgecolors="white",
        linewidths=0.6,
        zorder=3,
        label=ellipse.arm,
    )


def latency_axis(axes: Axes) -> None:
    """Make the horizontal axis one of induced latency: logarithmic, small values on the right."""
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.margins(0.12)
    plain_log(axes.xaxis)
    axes.set_xlabel("induced latency [ms], reversed log scale")
