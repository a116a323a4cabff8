"""The figures of reports on a result, with their data."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from sojourn.plot import curves, quantities
from sojourn.plot.curves import Curve, Ellipse
from sojourn.plot.panels import View, distributions, ellipse_panel, panel
from sojourn.plot.quantities import Quantity
from sojourn.presentation import style
from sojourn.presentation.figure import Figure, Line
from sojourn.result import Result
from sojourn.result.formatting import significant
from sojourn.result.rows import KEYS

# Rows of the table that stands in for a line.
_ROWS = 12
# The shares that the table of a distribution gives.
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_ELLIPSES = "Small dots: runs. Large dot: median. Ellipse: 1 σ. Up and to the right is better."


def ellipses(result: Result) -> list[Figure]:
    """Return goodput against induced latency, one figure per direction."""
    return [
        ellipse(
            result.arms,
            f"Goodput {side} against induced latency",
            ("induced latency", f"goodput {side}"),
            found,
        )
        for side in curves.directions(result)
        if (found := curves.ellipses(result, side))
    ]


def ellipse(
    arms: Sequence[str], title: str, names: tuple[str, str], found: Sequence[Ellipse]
) -> Figure:
    """Return goodput against delay."""
    delays, goodput = names
    rows = [
        (
            one.arm,
            f"{len(one.delay_ms)}",
            significant(one.centre[0]),
            _spread(one.delay_ms),
            f"{one.centre[1]:.4g}",
            _spread(one.goodput_mbit_per_s),
        )
        for one in found
    ]
    panels = [ellipse_panel(found, (f"{delays} [ms]", f"{goodput} [Mbit/s]"))]
    head = ("arm", "n", f"median {delays} [ms]", "σ", "median goodput [Mbit/s]", "σ")
    return Figure(title, panels, style.numbers(arms), note=_ELLIPSES, head=head, rows=rows)


def _spread(values: Sequence[float]) -> str:
    return f"{np.std(values, ddof=1):.2g}" if len(values) > 1 else "–"


def over_time(result: Result) -> list[Figure]:
    """Return ping, goodput, sojourn time, backlog and drops over time."""
    known = {one.name: one for one in quantities.over_time(result)}
    links = curves.waiting_links(result)
    words = [
        "ping",
        *(f"goodput_{side}" for side in curves.directions(result)),
        *(f"{what}_{link}" for what in ("sojourn", "backlog", "dropped") for link in links),
    ]
    return drawable(_over_time(result, known[word]) for word in words if word in known)


def round_trips(result: Result) -> list[Figure]:
    """Return the smoothed round-trip time of all connections over time, if any was measured."""
    samples = result.flow_series.select(*KEYS, "t_s", value="srtt_ms")
    quantity = Quantity("rtt", "smoothed RTT", "ms", "", "samples", samples.clone, logarithmic=True)
    return drawable([_over_time(result, quantity, "RTT of connections")])


def _over_time(result: Result, quantity: Quantity, title: str = "") -> Figure:
    what, where = _named(quantity)
    one = panel(quantity, "series", View(result=result, arms=result.arms, averaged=True))
    lines = [mark for mark in one.marks if isinstance(mark, Line)]
    edges = np.linspace(0.0, result.scenario.checked.duration_s, _ROWS + 1)
    rows = []
    for low, high in pairwise(edges):
        cells = []
        for line in lines:
            ys = [y for x, y in zip(line.x, line.y, strict=True) if low <= x < high]
            cells.append(f"{sum(ys) / len(ys):.4g}" if ys else "–")
        rows.append((f"{significant(low)} to {significant(high)}", *cells))
    title = title or f"{what[0].upper()}{what[1:]}{where}"
    head = ("time [s]", *(line.name for line in lines))
    return Figure(title, [one], style.numbers(result.arms), head=head, rows=rows)


def cdfs(result: Result) -> list[Figure]:
    """Return the distributions of ping and sojourn times after the warm-up."""
    known = {one.name: one for one in quantities.over_time(result)}
    words = ["ping", *(f"sojourn_{link}" for link in curves.waiting_links(result))]
    found = []
    for quantity in (known[word] for word in words if word in known):
        what, where = _named(quantity)
        title = f"Distribution of {what.removesuffix(' time')} times{where}"
        lines = quantity.cdf(result, None)
        found.append(cdf(result, title, quantity.heading, quantity.counted, lines))
    return drawable(found)


def cdf(result: Result, title: str, label: str, counted: str, lines: Sequence[Curve]) -> Figure:
    """Return distributions; `counted` says what has a share."""
    rows = [
        (f"{share:.0%}", *(significant(np.interp(share, line.y, line.x)) for line in lines))
        for share in _SHARES
    ]
    one = distributions(label, counted, lines, result.arms, log=True)
    head = ("share", *(line.arm for line in lines))
    return Figure(title, [one], style.numbers(result.arms), head=head, rows=rows)


def _named(quantity: Quantity) -> tuple[str, str]:
    """Return what a quantity is, and where."""
    if quantity.link is None:
        return quantity.label, ""
    return quantity.label.removesuffix(f" {quantity.link}"), f", {quantity.link}"


def drawable(figures: Iterable[Figure]) -> list[Figure]:
    """Leave out figures whose lines have no values above those that an axis shows."""

    def highest(figure: Figure) -> float:
        (one,) = figure.panels
        lines = [mark for mark in one.marks if isinstance(mark, Line)]
        values = [value for line in lines for value in (line.x if one.x.log else line.y)]
        return max(values, default=0.0) - (curves.SMALLEST_MS if one.x.log else 0.0)

    return [figure for figure in figures if highest(figure) > 0.0]
