"""The report of the suite on one queue, as one HTML file without scripts."""

from collections.abc import Sequence

import polars as pl

from sojourn.presentation import html as writer
from sojourn.presentation import style
from sojourn.presentation.figure import Axis, Figure, Line, Panel
from sojourn.presentation.model import (
    Block,
    Document,
    Figures,
    Items,
    Legend,
    Paragraph,
    Quote,
    Section,
    quiet,
    text_table,
)
from sojourn.rfc7928_suite.definitions import DEFINITIONS, DISCUSSIONS, QUOTATIONS
from sojourn.rfc7928_suite.discussion import Discussion
from sojourn.rfc7928_suite.suite import Characterisation, Measurement
from sojourn.rfc7928_suite.topology import DROP_TAIL
from sojourn.suites.definitions import METRICS, Quotation
from sojourn.suites.page import LEAST_RUNS, quoted, results


def html(found: Characterisation, discussions: Sequence[Discussion], build: str) -> str:
    """Write the report of a queue."""
    arms = max((one.arms for of in found.measurements.values() for one in of), key=len, default=())
    about = (
        f"{found.form.name} form: {found.form.replications} runs per arm; Sojourn {build}. "
        "Baseline: drop-tail with a BDP-sized buffer."
    )
    directed = [_quoted(QUOTATIONS["baseline"]), _quoted(QUOTATIONS["buffer"])]
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
            Section("Metrics", [_quoted(QUOTATIONS["graph"]), defined, *quiet(drop_tail)]),
        ],
        names=arms,
    )
    return writer.page(document)


def _quoted(one: Quotation) -> Quote:
    return quoted(one, "RFC 7928")


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
        _quoted(one.quotation),
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
        f"{one.number} {asked.title}", [_quoted(asked.quotation), text_table(one.head, one.rows)]
    )


def _ratios(measurements: Sequence[Measurement]) -> list[Figure]:
    """Draw the goodput ratio against the RTT of category II."""
    if any(one.case.x is None for one in measurements) or len(measurements) < LEAST_RUNS:
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
