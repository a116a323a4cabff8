"""The report of the suite on one queue, as one HTML file without scripts."""

from collections.abc import Sequence
from html import escape

import polars as pl

from sojourn.deferred import Deferred
from sojourn.markup import data_table, wide_table
from sojourn.plot import curves, reported
from sojourn.presentation import style
from sojourn.presentation.figure import Axis, Figure, Line, Panel
from sojourn.report.page import head, style_of
from sojourn.result import Result, formatting
from sojourn.result.metrics import directions
from sojourn.rfc7928_suite.definitions import (
    DEFINITIONS,
    DISCUSSIONS,
    METRICS,
    QUOTATIONS,
    Quotation,
)
from sojourn.rfc7928_suite.discussion import Discussion
from sojourn.rfc7928_suite.suite import Characterisation, Measurement
from sojourn.rfc7928_suite.topology import DROP_TAIL

_QUOTATIONS = """
blockquote { margin: 0.5rem 0; padding-left: 0.8rem; border-left: 3px solid var(--line); \
max-width: 75ch; }"""
# Matplotlib is slow to import.
_SVG = Deferred("sojourn.presentation.svg")
# Least number of runs for an ellipse.
_LEAST_RUNS = 2


def drawn(result: Result, one: Measurement) -> list[str]:
    """Draw the figures of a case: delay against goodput, distributions, series of phases."""
    case = one.case
    if case.x is not None:
        # Figures of these compare the cases.
        return []
    goodput = reported.drawable([_goodput_cdf(result)])
    found = [*_ellipses(one), *goodput, *reported.cdfs(result)]
    if case.phases is not None:
        found += reported.over_time(result)
    # A heading that spans all columns of figures.
    heading = f'<h3 style="grid-column:1/-1">{escape(case.name)}</h3>' if case.name else ""
    drawings = [_SVG.embedded(figure, result.arms) for figure in found]
    return [heading, *drawings] if heading else drawings


def _ellipses(one: Measurement) -> list[Figure]:
    """Draw delay against goodput for each class of traffic with enough runs."""
    groups = dict.fromkeys(one.case.classes.values())
    return [
        reported.ellipse(
            one.arms,
            f"Goodput of {group} against its queueing delay",
            ("queueing delay", f"goodput of {group}"),
            ellipses,
        )
        for group in groups
        if (ellipses := _ellipses_of(one, group))
    ]


def _ellipses_of(one: Measurement, group: str) -> list[curves.Ellipse]:
    ellipses = []
    for arm in one.arms:
        runs = one.runs.filter(pl.col("arm") == arm, pl.col("group") == group).drop_nulls(
            ["queueing_ms", "goodput_mbit_per_s"]
        )
        if runs.height >= _LEAST_RUNS:
            delays, rates = runs["queueing_ms"].to_numpy(), runs["goodput_mbit_per_s"].to_numpy()
            ellipses.append(curves.ellipse(arm, delays, rates))
    return ellipses


def _goodput_cdf(result: Result) -> Figure:
    side = directions(result.flows)[0]
    samples = curves.measured(result, curves.goodput(result, side))
    text = f"Distribution of goodput {side}, measured every {result.scenario.sample}"
    lines = curves.cdfs(result, samples)
    return reported.cdf(result, text, f"goodput {side} [Mbit/s]", "intervals", lines)


def html(found: Characterisation, discussions: Sequence[Discussion], build: str) -> str:
    """Write the report of a queue."""
    title = f"RFC 7928: {found.tested.name}"
    arms = max((one.arms for of in found.measurements.values() for one in of), key=len, default=())
    parts = [
        head(escape(title), style_of(arms) + _QUOTATIONS),
        f"<body><header><h1>{escape(title)}</h1>",
        (
            f'<p class="note">{found.form.name} form: {found.form.replications} runs per arm; '
            f"Sojourn {escape(build)}. Baseline: drop-tail with a BDP-sized buffer.</p></header>"
        ),
        (
            f"<section>{quoted(QUOTATIONS['baseline'])}{quoted(QUOTATIONS['buffer'])}"
            f"{_verdicts(found)}</section>"
        ),
    ]
    parts += [_section(found, number) for number in found.measurements]
    parts += [_discussion(one) for one in discussions]
    parts.append(_definitions())
    return "\n".join(parts) + "\n</body>\n</html>\n"


def quoted(one: Quotation) -> str:
    """Write a quotation with its section."""
    return (
        f"<blockquote>“{escape(one.text)}” "
        f"<small>RFC 7928 section {one.section}</small></blockquote>"
    )


def _verdicts(found: Characterisation) -> str:
    rows = [
        (
            f"{number} {one.case}".strip(),
            one.verdict,
            one.text,
            one.measured,
            f"“{one.direction.quotation.text}” ({one.direction.quotation.section})",
        )
        for number, one in found.checked
    ]
    if not rows:
        return ""
    head_ = ("scenario", "verdict", "comparison", "measured", "the RFC states")
    return (
        f"<h2>Directions that the RFC states</h2>{_text_table(head_, rows)}"
        '<p class="note">A comparison passes if the 95 % interval of the paired difference lies on '
        "the stated side, fails if it lies on the other side, and is undecided if it contains 0. "
        "It does not apply to a queue that did not act as an AQM in the runs. The RFC states no "
        "direction for the other scenarios.</p>"
    )


def _text_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table of text, left-aligned and wrapped."""
    style = ' style="text-align:left;white-space:normal;max-width:34rem"'
    return wide_table(names, rows, of_cells=style)


def _section(found: Characterisation, number: str) -> str:
    one = DEFINITIONS[number]
    measurements = found.measurements[number]
    weight = f'<p class="note">Section 13: {escape(one.weight)}.</p>' if one.weight else ""
    setup = _text_table(
        ("parameters", "values"),
        [("of the RFC", one.rfc), ("of ns-3's suite", one.suite), ("chosen here", one.ours)],
    )
    queues = "; ".join(dict.fromkeys(m.specs.get(m.arms[1], "") for m in measurements))
    limits = {text for m in measurements if m.validity[0] != "valid" for text in m.validity[1]}
    notes = "".join(f"<li>{escape(text)}</li>" for text in sorted(limits))
    drawings = [*_ratios(measurements), *found.figures.get(number, [])]
    return (
        f"<section><h2>{number} {escape(one.title)}</h2>{quoted(one.quotation)}{weight}{setup}"
        f'<p class="note">Queue: {escape(queues)}</p>'
        f"{data_table(*results(measurements))}"
        f"<ul>{notes}</ul>{_legend(measurements)}"
        f'<div class="figures">{"".join(drawings)}</div></section>'
    )


def _legend(measurements: Sequence[Measurement]) -> str:
    items = "".join(
        f'<span><i style="background:var(--c{index})"></i>{escape(arm)}</span> '
        for index, arm in enumerate(measurements[0].arms)
    )
    return f'<p class="note">{items}</p>'


def results(measurements: Sequence[Measurement]) -> tuple[list[str], list[list[str]]]:
    """Write the means with intervals of the cases of a scenario: a row per group and arm."""
    rows, used = [], set()
    for one in measurements:
        summary = one.summary()
        estimates = {
            (row["arm"], row["group"], row["metric"]): row for row in summary.iter_rows(named=True)
        }
        used |= set(summary["metric"])
        rows += [
            (f"{one.case.name}: {group}" if one.case.name else group, arm, group, estimates)
            for group in one.groups
            for arm in one.arms
        ]
    shown = [metric for metric in METRICS if metric.column in used]
    cells = [
        [name, arm]
        + [
            "–"
            if (row := estimates.get((arm, group, metric.column))) is None
            else formatting.estimate(row["mean"], row["low"], row["high"], metric)
            for metric in shown
        ]
        for name, arm, group, estimates in rows
    ]
    return ["traffic", "arm", *(metric.heading for metric in shown)], cells


def _ratios(measurements: Sequence[Measurement]) -> list[str]:
    """Draw the goodput ratio against the RTT of category II."""
    if any(one.case.x is None for one in measurements) or len(measurements) < _LEAST_RUNS:
        return []
    arms = measurements[0].arms
    points: dict[str, list[tuple[float, float]]] = {arm: [] for arm in arms}
    for one in measurements:
        means = one.summary().filter(pl.col("metric") == "ratio")
        for arm, ratio in means.select("arm", "mean").iter_rows():
            if ratio > 0.0:
                points[arm].append((one.case.x or 0.0, ratio))
    ratios = [y for line in points.values() for _, y in line]
    if not ratios:
        return []
    title = "Goodput of category II relative to category I"
    lines = [Line(arm, *zip(*sorted(found), strict=True)) for arm, found in points.items() if found]
    panel = Panel(Axis("RTT of category II [ms]", log=True), Axis("ratio", log=True), lines)
    rows = [
        (f"{rtt:g} ms", *(f"{dict(points[arm]).get(rtt, float('nan')):.3g}" for arm in arms))
        for rtt in [one.case.x or 0.0 for one in measurements]
    ]
    figure = Figure(title, [panel], style.numbers(arms), head=("RTT", *arms), rows=rows)
    return [_SVG.embedded(figure, arms)]


def _discussion(one: Discussion) -> str:
    return (
        f"<section><h2>{one.number} {escape(DISCUSSIONS[one.number].title)}</h2>"
        f"{quoted(DISCUSSIONS[one.number].quotation)}{_text_table(one.head, one.rows)}</section>"
    )


def _definitions() -> str:
    rows = [(metric.heading, metric.description) for metric in METRICS]
    return (
        f"<section><h2>Metrics</h2>{quoted(QUOTATIONS['graph'])}"
        f"{_text_table(('metric', 'definition'), rows)}"
        f'<p class="note">Arm {DROP_TAIL}: pfifo with a buffer of the bandwidth-delay '
        "product.</p></section>"
    )
