"""The figures of a report: a chart and the same data as a table."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

import numpy as np

from sojourn.markup import wide_table
from sojourn.plot import curves
from sojourn.report.chart import Axis, Chart, linear_axis, log_axis
from sojourn.report.heat_map import HeatMap
from sojourn.result import Result
from sojourn.result.formatting import significant

# Rows of the table that stands in for a line.
ROWS = 12
# Share of the largest value below which a logarithmic axis shows no differences.
NEGLIGIBLE = 0.002
# The shares that the table of a distribution gives.
SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def ellipse_figures(result: Result) -> list[str]:
    """Draw goodput against induced latency, one figure per direction."""
    figures = []
    for side in curves.directions(result):
        ellipses = curves.ellipses(result, side)
        if ellipses:
            figures.append(_ellipse_figure(result, side, ellipses))
    return figures


def _ellipse_figure(result: Result, side: str, ellipses: Sequence[curves.Ellipse]) -> str:
    return ellipse_figure(
        result.arms, f"Goodput {side} against induced latency", ("induced latency", side), ellipses
    )


def ellipse_figure(
    arms: Sequence[str],
    title: str,
    quantities: tuple[str, str],
    ellipses: Sequence[curves.Ellipse],
) -> str:
    """Draw goodput against delay."""
    delays, side = quantities
    outlines = [point for ellipse in ellipses for point in ellipse.outline]
    xs = [x for x, _ in outlines] + [x for ellipse in ellipses for x in ellipse.delay_ms]
    ys = [y for _, y in outlines] + [y for one in ellipses for y in one.goodput_mbit_per_s]
    chart = Chart(
        title,
        log_axis(f"{delays} [ms]", xs, descending=True),
        linear_axis(f"goodput {side} [Mbit/s]", ys, from_zero=False),
    )
    for ellipse in ellipses:
        arm = arms.index(ellipse.arm)
        if ellipse.outline:
            chart.area(arm, ellipse.arm, ellipse.outline)
        for point in zip(ellipse.delay_ms, ellipse.goodput_mbit_per_s, strict=True):
            chart.dot(
                arm,
                f"{ellipse.arm}: {significant(point[0])} ms, {point[1]:.4g} Mbit/s",
                point,
                radius=2,
            )
    for ellipse in ellipses:
        arm = arms.index(ellipse.arm)
        delay, goodput = ellipse.centre
        name = f"{ellipse.arm}, median: {significant(delay)} ms, {goodput:.4g} Mbit/s"
        chart.dot(arm, name, ellipse.centre, radius=4)
    rows = [
        (
            ellipse.arm,
            f"{len(ellipse.delay_ms)}",
            significant(ellipse.centre[0]),
            f"{np.std(ellipse.delay_ms, ddof=1):.2g}" if len(ellipse.delay_ms) > 1 else "–",
            f"{ellipse.centre[1]:.4g}",
            f"{np.std(ellipse.goodput_mbit_per_s, ddof=1):.2g}"
            if len(ellipse.delay_ms) > 1
            else "–",
        )
        for ellipse in ellipses
    ]
    head = ("arm", "n", f"median {delays} [ms]", "σ", "median goodput [Mbit/s]", "σ")
    note = "Small dots: runs. Large dot: median. Ellipse: 1 σ. Up and to the right is better."
    return figure(title, note, chart, head, rows)


def series_figures(result: Result) -> list[str]:
    """Draw ping, goodput, sojourn time, backlog and drops over time."""
    figures = [_series(result, "Ping", "ping [ms]", curves.ping_curves(result), log=True)]
    figures += [
        _series(
            result,
            f"Goodput {side}",
            f"goodput {side} [Mbit/s]",
            curves.goodput_curves(result, side),
            log=False,
        )
        for side in curves.directions(result)
    ]
    quantities: Sequence[tuple[str, str, Callable[[Result, str], list[curves.Curve]], bool]] = (
        ("Sojourn time", "sojourn time {} [ms]", curves.sojourn_curves, True),
        ("Backlog", "backlog {} [packets]", curves.backlog_curves, False),
        ("Cumulative drops", "drops {} [packets]", curves.drop_curves, False),
    )
    for title, label, compute, logarithmic in quantities:
        figures += [
            _series(
                result,
                f"{title}, {link}",
                label.format(link),
                compute(result, link),
                log=logarithmic,
            )
            for link in curves.waiting_links(result)
        ]
    return [drawn for drawn in figures if drawn]


def rtt_figure(result: Result) -> list[str]:
    """Draw the smoothed round-trip time of connections over time, if any was measured."""
    label = "smoothed RTT [ms]"
    drawn = _series(result, "RTT of connections", label, curves.rtt_curves(result), log=True)
    return [drawn] if drawn else []


def _series(
    result: Result, title: str, label: str, lines: Sequence[curves.Curve], *, log: bool
) -> str:
    values = [value for line in lines for value in line.y]
    if not values or max(values) <= 0.0:
        return ""
    duration = result.scenario.checked.duration_s
    smallest = max(max(values) * NEGLIGIBLE, curves.SMALLEST_MS)
    shown = [max(value, smallest) for value in values] if log else values
    chart = Chart(
        title,
        Axis(label="time [s]", low=0.0, high=duration),
        log_axis(label, shown) if log else linear_axis(label, values, from_zero=True),
    )
    for line in lines:
        chart.line(result.arms.index(line.arm), line.arm, list(zip(line.x, line.y, strict=True)))
    edges = np.linspace(0.0, duration, ROWS + 1)
    rows = []
    for low, high in pairwise(edges):
        means = [
            [y for x, y in zip(line.x, line.y, strict=True) if low <= x < high] for line in lines
        ]
        cells = [f"{sum(ys) / len(ys):.4g}" if ys else "–" for ys in means]
        rows.append((f"{significant(low)} to {significant(high)}", *cells))
    return figure(title, "", chart, ("time [s]", *(line.arm for line in lines)), rows)


def cdf_figures(result: Result) -> list[str]:
    """Draw the distributions of ping and sojourn times after the warm-up."""
    pings = curves.ping_cdfs(result)
    figures = [cdf_figure(result, "Distribution of ping times", "ping [ms]", "pings", pings)]
    figures += [
        cdf_figure(
            result,
            f"Distribution of sojourn times, {link}",
            f"sojourn time {link} [ms]",
            "packets",
            curves.sojourn_cdfs(result, link),
        )
        for link in curves.waiting_links(result)
    ]
    return [drawn for drawn in figures if drawn]


def cdf_figure(
    result: Result, title: str, label: str, counted: str, lines: Sequence[curves.Curve]
) -> str:
    """Draw distributions; `counted` says what has a share. Empty without values."""
    values = [max(value, curves.SMALLEST_MS) for line in lines for value in line.x]
    if not values or max(values) <= curves.SMALLEST_MS:
        return ""
    shares = Axis(label=f"share of {counted}", low=0.0, high=1.0)
    chart = Chart(title, log_axis(label, values), shares)
    for line in lines:
        chart.line(result.arms.index(line.arm), line.arm, list(zip(line.x, line.y, strict=True)))
    rows = [
        (f"{share:.0%}", *(significant(np.interp(share, line.y, line.x)) for line in lines))
        for share in SHARES
    ]
    return figure(title, "", chart, ("share", *(line.arm for line in lines)), rows)


def figure(
    title: str,
    note: str,
    chart: Chart | HeatMap,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
) -> str:
    """Write a figure: its title, the drawing, a note, and the same data as a table.

    Without rows, there is no table: another one of the page has the data.
    """
    data = f"<details><summary>Data</summary>{table(head, rows)}</details>" if rows else ""
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>{chart.svg()}"
        + (f'<p class="note">{escape(note)}</p>' if note else "")
        + f"{data}</figure>"
    )


def _cell(text: str) -> str:
    """Write an interval in brackets below its value."""
    value, bracket, span = text.partition(" [")
    return f"{escape(value)}<small>[{escape(span)}</small>" if bracket else escape(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table whose first column holds row headings."""
    return wide_table(head, rows, content=_cell)
