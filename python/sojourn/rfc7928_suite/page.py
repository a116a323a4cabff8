"""The report of the suite on one queue, as one HTML file without scripts."""

from collections.abc import Sequence

import polars as pl

from sojourn.plot import curves, reported
from sojourn.presentation import html as writer
from sojourn.presentation import style
from sojourn.presentation.figure import Axis, Figure, Line, Panel
from sojourn.presentation.html import tag
from sojourn.presentation.model import (
    Block,
    Columns,
    Document,
    Figures,
    Items,
    Legend,
    Markup,
    Paragraph,
    Quote,
    Section,
    Table,
    Text,
    quiet,
    text_table,
)
from sojourn.report.view import heading
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

# Least number of runs for an ellipse.
_LEAST_RUNS = 2


def drawn(result: Result, one: Measurement) -> list[Figure | Markup]:
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
    heading = [tag("h3", case.name, style="grid-column:1/-1")] if case.name else []
    return [*heading, *found]


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
    arms = max((one.arms for of in found.measurements.values() for one in of), key=len, default=())
    about = (
        f"{found.form.name} form: {found.form.replications} runs per arm; Sojourn {build}. "
        "Baseline: drop-tail with a BDP-sized buffer."
    )
    directed = [quoted(QUOTATIONS["baseline"]), quoted(QUOTATIONS["buffer"])]
    metrics = [[metric.heading, metric.description] for metric in METRICS]
    drop_tail = f"Arm {DROP_TAIL}: pfifo with a buffer of the bandwidth-delay product."
    defined = text_table(["metric", "definition"], metrics)
    document = Document(
        title=f"RFC 7928: {found.tested.name}",
        head=[Paragraph(about, quiet=True)],
        content=[
            Section("Directions that the RFC states", [*directed, *_verdicts(found)]),
            *(_section(found, number) for number in found.measurements),
            *map(_discussion, discussions),
            Section("Metrics", [quoted(QUOTATIONS["graph"]), defined, *quiet(drop_tail)]),
        ],
        names=arms,
    )
    return writer.page(document)


def quoted(one: Quotation) -> Quote:
    """Return a quotation with its section."""
    return Quote(one.text, f"RFC 7928 section {one.section}")


def _verdicts(found: Characterisation) -> list[Block]:
    rows = [
        [
            f"{number} {one.case}".strip(),
            one.verdict,
            one.text,
            one.measured,
            f"“{one.direction.quotation.text}” ({one.direction.quotation.section})",
        ]
        for number, one in found.checked
    ]
    columns = ["scenario", "verdict", "comparison", "measured", "the RFC states"]
    return [text_table(columns, rows), *quiet(_JUDGED)] if rows else []


_JUDGED = (
    "A comparison passes if the 95 % interval of the paired difference lies on the stated side, "
    "fails if it lies on the other side, and is undecided if it contains 0. It does not apply to a "
    "queue that did not act as an AQM in the runs. The RFC states no direction for the other "
    "scenarios."
)


def _section(found: Characterisation, number: str) -> Section:
    one = DEFINITIONS[number]
    measurements = found.measurements[number]
    setup = [["of the RFC", one.rfc], ["of ns-3's suite", one.suite], ["chosen here", one.ours]]
    queues = "; ".join(dict.fromkeys(m.specs.get(m.arms[1], "") for m in measurements))
    limits = {text for m in measurements if m.validity[0] != "valid" for text in m.validity[1]}
    content = [
        quoted(one.quotation),
        *quiet(f"Section 13: {one.weight}." if one.weight else ""),
        text_table(["parameters", "values"], setup),
        *quiet(f"Queue: {queues}"),
        results(measurements),
        Items(sorted(limits)),
        Legend(measurements[0].arms, boxes=False),
        Figures([*_ratios(measurements), *found.figures.get(number, [])], measurements[0].arms),
    ]
    return Section(f"{number} {one.title}", content)


def _discussion(one: Discussion) -> Section:
    asked = DISCUSSIONS[one.number]
    return Section(
        f"{one.number} {asked.title}", [quoted(asked.quotation), text_table(one.head, one.rows)]
    )


def results(measurements: Sequence[Measurement], title: str = "") -> Table:
    """Write the means with intervals of the cases of a scenario: a row per group and arm."""
    found = [(one, one.summary()) for one in measurements]
    used = {name for _, summary in found for name in summary["metric"]}
    shown = [metric for metric in METRICS if metric.column in used]
    rows: list[list[Text]] = []
    for one, summary in found:
        of = {
            (row["arm"], row["group"], row["metric"]): row for row in summary.iter_rows(named=True)
        }
        rows += [
            [
                f"{one.case.name}: {group}" if one.case.name else group,
                arm,
                *(formatting.estimate(of.get((arm, group, each.column)), each) for each in shown),
            ]
            for group in one.groups
            for arm in one.arms
        ]
    columns: Columns = ["traffic", "arm", *(heading(metric) for metric in shown)]
    return Table(columns, rows, title, words=2, lead=2)


def _ratios(measurements: Sequence[Measurement]) -> list[Figure]:
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
    return [Figure(title, [panel], style.numbers(arms), head=("RTT", *arms), rows=rows)]
