"""Draw quantities on axes: over time, as distributions, as boxes and as violins."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.arguments import ArgumentError
from sojourn.plot import curves, style
from sojourn.plot.quantities import Numbers, Quantity, Samples
from sojourn.result import Result

Kind = Literal["ecdf", "box", "violin", "series"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Letters of a label along the side of a panel of distributions and of a low one over time.
LETTERS = 34
_LOW_LETTERS = 26
_DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)))
# With more arms, their names do not fit side by side below the boxes.
_LEVEL_NAMES = 4
# Points of the outline of a violin, and the widest half of one.
_OUTLINE = 120
_HALF_WIDTH = 0.4


def draw(axes: Axes, quantity: Quantity, kind: Kind, result: Result, arms: Sequence[str]) -> None:
    """Draw a quantity of these arms on axes and label them."""
    _DRAWN[kind](axes, quantity, result, arms)


def _series(axes: Axes, quantity: Quantity, result: Result, arms: Sequence[str]) -> None:
    if quantity.series is None:
        rule = "the metric {metric_name} is one number per run; expected ecdf, box or violin"
        raise ArgumentError("kind", "series", rule, metric_name=quantity.name)
    lines = [line for line in quantity.series() if line.arm in arms]
    _lines(axes, lines, result)
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
    axes.set_xlim(0, result.scenario.checked.duration_s)
    axes.set_xlabel("time [s]")


def _ecdf(axes: Axes, quantity: Quantity, result: Result, arms: Sequence[str]) -> None:
    _lines(axes, [line for line in quantity.cdf() if line.arm in arms], result)
    if quantity.logarithmic:
        axes.set_xscale("log")
        plain_log(axes.xaxis)
    axes.set_ylim(0, 1)
    axes.set_xlabel(wrapped(_labelled(quantity), LETTERS))
    axes.set_ylabel(f"share of {quantity.counted}")


def _box(axes: Axes, quantity: Quantity, result: Result, arms: Sequence[str]) -> None:
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

    _side_by_side(axes, quantity, result, arms, box)


def _violin(axes: Axes, quantity: Quantity, result: Result, arms: Sequence[str]) -> None:
    """Draw the density, with a dot at the median."""

    def violin(place: int, colour: str, samples: Samples) -> None:
        at, density = _density(samples, logarithmic=quantity.logarithmic)
        half = _HALF_WIDTH * density / density.max()
        axes.fill_betweenx(at, place - half, place + half, color=colour, alpha=0.5, linewidth=0.8)
        axes.plot([place], [samples.quantile(0.5)], "o", color="black", markersize=4)

    _side_by_side(axes, quantity, result, arms, violin)


_DRAWN: dict[Kind, Callable[[Axes, Quantity, Result, Sequence[str]], None]] = {
    "ecdf": _ecdf,
    "box": _box,
    "violin": _violin,
    "series": _series,
}


def _side_by_side(
    axes: Axes,
    quantity: Quantity,
    result: Result,
    arms: Sequence[str],
    one: Callable[[int, str, Samples], None],
) -> None:
    found = quantity.samples()
    shown = [arm for arm in arms if arm in found]
    for place, arm in enumerate(shown):
        one(place, style.colour(result.arms.index(arm)), found[arm])
    axes.set_xticks(range(len(shown)), shown)
    if len(shown) > _LEVEL_NAMES:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlim(-0.6, len(shown) - 0.4)
    axes.set_ylabel(wrapped(_labelled(quantity), LETTERS))
    if quantity.logarithmic:
        axes.set_yscale("log")
        plain_log(axes.yaxis)


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


def _lines(axes: Axes, lines: Sequence[curves.Curve], result: Result) -> None:
    for line in lines:
        index = result.arms.index(line.arm)
        axes.plot(
            line.x,
            line.y,
            label=line.arm,
            color=style.colour(index),
            linestyle=_DASHES[index // len(style.COLOURS) % len(_DASHES)],
            linewidth=1.3,
        )


def _labelled(quantity: Quantity) -> str:
    return f"{quantity.label}, log scale" if quantity.logarithmic else quantity.label


def wrapped(label: str, letters: int) -> str:
    """Wrap the label of an axis, and take dollar signs in the names of users for dollar signs."""
    return textwrap.fill(label, letters).replace("$", r"\$")


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
