"""Parts of the reports of suites: quotations, tables of results, figures."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from sojourn import _core
from sojourn.plot import curves, reported
from sojourn.presentation.figure import Figure
from sojourn.presentation.html import tag
from sojourn.presentation.model import Columns, Markup, Quote, Table, Text
from sojourn.report.view import heading
from sojourn.result import Result, derived_files, formatting
from sojourn.result.metrics import directions
from sojourn.suites.definitions import Quotation
from sojourn.suites.measurement import Measurement

# Least number of runs for an ellipse.
LEAST_RUNS = 2


def file_name(name: str) -> str:
    """Name the report on a queue or a control.

    Examples
    --------
    >>> file_name("reno alpha 2")
    'reno-alpha-2.html'
    """
    return f"{re.sub('[^a-z0-9_.]+', '-', name.lower()).strip('-.')}.html"


def saved(folder: str | Path, name: str, html: Callable[[str], str]) -> Path:
    """Write a report, made for the version of this build, into a directory."""
    file = Path(folder) / name
    text = html(f"{_core.version()} ({_core.commit()[:12]})")
    with derived_files.claimed(file):
        derived_files.write(file, text.encode(), None)
    return file


def quoted(one: Quotation, document: str) -> Quote:
    """Return a quotation with its section."""
    return Quote(one.text, f"{document} section {one.section}")


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
        if runs.height >= LEAST_RUNS:
            delays, rates = runs["queueing_ms"].to_numpy(), runs["goodput_mbit_per_s"].to_numpy()
            ellipses.append(curves.ellipse(arm, delays, rates))
    return ellipses


def _goodput_cdf(result: Result) -> Figure:
    side = directions(result.flows)[0]
    samples = curves.measured(result, curves.goodput(result, side))
    text = f"Distribution of goodput {side}, measured every {result.scenario.sample}"
    lines = curves.cdfs(result, samples)
    return reported.cdf(result, text, f"goodput {side} [Mbit/s]", "intervals", lines)


def results(measurements: Sequence[Measurement], title: str = "") -> Table:
    """Write the means with intervals of the cases of a scenario: a row per group and arm."""
    found = [(one, one.summary()) for one in measurements]
    used = {name for _, summary in found for name in summary["metric"]}
    shown = [metric for metric in measurements[0].metrics if metric.column in used]
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
