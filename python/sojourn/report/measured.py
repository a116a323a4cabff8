"""The HTML page that shows measured runs beside a simulated result: means and figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.exchange.measurement import OF_APPLICATIONS, Beside, Measurement, notes
from sojourn.plot import reported
from sojourn.presentation import html as writer
from sojourn.presentation.model import (
    Block,
    Document,
    Items,
    Legend,
    Paragraph,
    Section,
    Table,
    Text,
    quiet,
    text_table,
)
from sojourn.report import page
from sojourn.report.view import MEANS, Part, ResultView
from sojourn.result import Result, metrics
from sojourn.result.estimates import metrics_of
from sojourn.result.formatting import counted

_NOTE = (
    "Simulated runs are measured from the warm-up to their end, measured runs from the same time "
    "to the end of their load. Both are computed by the same definitions; – marks what a file does "
    "not contain. Measured and simulated runs are not paired: there are no differences. Goodput of "
    "a flent file is the data that netperf sent or received, divided by the measured time. Delays "
    "of a Mahimahi log have a resolution of 1 ms."
)
_NAMES = (
    "Arms whose names begin with “measured:” were read from files, as were those with "
    "“simulated:”, which Sojourn exported; the others are those of the result."
)


# Flows of a run that are listed.
MOST_FLOWS = 20
_COLUMNS = (
    "arm",
    "flow",
    "packets",
    "data [kB]",
    "goodput [Mbit/s]",
    "retransmissions",
    "smoothed RTT [ms]",
    "RTT mean [ms]",
    "RTT p95 [ms]",
    "CE packets",
)


def html(beside: Beside) -> str:
    """Write a page about measured runs beside a simulated result."""
    name, warmup_s = beside.scenario.checked.name, beside.scenario.checked.warmup_s
    shown = of_beside(beside)
    applications = [Section(str(one.name), [shown.means([one])]) for one in shown.applications]
    left_out = Items(list(notes(beside.measurements, warmup_s=warmup_s)), quiet=True)
    summary = [shown.means([shown.whole]), *quiet(f"{MEANS} {_NOTE}"), *applications]
    document = Document(
        title=f"{name} and measured runs",
        head=[Paragraph(_NAMES, quiet=True)],
        content=[
            Section("Imported runs", [_origins(beside), left_out]),
            page.validity(beside.simulated.validity),
            Section("Summary", summary),
            Legend(beside.arms),
            page.figures("Induced latency and goodput", reported.ellipses(beside), beside.arms),
            page.figures("Distributions", reported.cdfs(beside), beside.arms),
            page.figures("Over time", reported.over_time(beside), beside.arms),
            page.provenance(beside.simulated),
        ],
        names=beside.arms,
        meta={"sojourn-scenario": beside.scenario.hash},
    )
    return writer.page(document)


def of_beside(beside: Beside) -> ResultView:
    """Compute the means of measured and simulated runs."""
    name = beside.scenario.checked.name
    return view(name, beside.arms, beside.table(), beside.table("application"))


def write(beside: Beside, path: str | Path) -> None:
    """Write the page to a file."""
    page.save(html(beside), path)


def connections(
    measurements: Sequence[Measurement], simulated: Result | None = None
) -> list[Block]:
    """List the largest flows of runs that state RTT and retransmissions of each.

    Of a simulated result they are those of the first replication. Connections are listed even if
    their data is not known, as of a log without frames.
    """
    warmup_s = None if simulated is None else simulated.scenario.checked.warmup_s
    found = [
        (one.arm, one.table("flows", warmup_s=warmup_s))
        for one in measurements
        if "flows" in one.totals
    ]
    if found and simulated is not None:
        first = simulated.flows.filter(pl.col("replication") == 0)
        found = [(arm, first.filter(pl.col("arm") == arm)) for arm in simulated.arms] + found
    rows: list[list[Text]] = []
    for arm, every in found:
        flows = every.filter(pl.col("delivered_bytes").is_not_null() | metrics.HAS_CONNECTION)
        largest = ["delivered_bytes", "sent_packets"]
        flows = flows.sort(largest, descending=True, nulls_last=True, maintain_order=True)
        rows += [[arm, *_flow(row)] for row in flows.head(MOST_FLOWS).iter_rows(named=True)]
        if (more := flows.height - MOST_FLOWS) > 0:
            rows.append([arm, f"and {counted(more, 'more flow')}", *[""] * (len(_COLUMNS) - 2)])
    return [Table(_COLUMNS, rows, "flows", words=2, lead=2)] if rows else []


def _flow(row: Mapping[str, Any]) -> list[Text]:
    """Write what is known of a flow; – for what is not."""

    def number(name: str, digits: int, scale: float = 1.0) -> str:
        value = row.get(name)
        return "–" if value is None else f"{value * scale:.{digits}f}"

    return [
        row["flow"],
        number("sent_packets", 0),
        number("delivered_bytes", 1, 1e-3),
        number("goodput_mbit_per_s", 2),
        number("retransmits", 0),
        number("srtt_ms_mean", 2),
        number("ack_rtt_ms_mean", 2),
        number("ack_rtt_ms_p95", 2),
        number("ce_packets", 0),
    ]


def view(
    title: str, arms: Sequence[str], runs: pl.DataFrame, applications: pl.DataFrame
) -> ResultView:
    """Compute the means of runs and applications."""
    known = metrics_of(runs.columns)
    rows = metrics.summary(runs, known).iter_rows(named=True)
    return ResultView(
        title=title,
        arms=arms,
        whole=Part(
            name=None,
            metrics=known,
            estimates={(row["arm"], row["metric"]): row for row in rows},
        ),
        applications=_of_applications(applications),
    )


def _of_applications(table: pl.DataFrame) -> list[Part]:
    """Return the metrics of each group of applications that any run has."""
    if table.is_empty():
        return []
    known = [metric for metric in OF_APPLICATIONS if metric.column in table.columns]
    parts = []
    for (group,), rows in metrics.summary(table, known).group_by("group", maintain_order=True):
        present = {metric.column for metric in known} & set(rows["metric"])
        parts.append(
            Part(
                name=f"{group}",
                metrics=[metric for metric in known if metric.column in present],
                estimates={(row["arm"], row["metric"]): row for row in rows.iter_rows(named=True)},
            )
        )
    return parts


def _origins(beside: Beside) -> Table:
    """Write where the measured runs come from."""
    rows = [
        [
            one.arm,
            str(one.origin["file"]),
            str(one.origin["format"]),
            str(one.origin.get("test", "")),
            str(one.origin.get("time", "")),
            f"{one.load_s:.3g} to {one.end_s:.4g} s",
        ]
        for one in beside.measurements
    ]
    return text_table(["arm", "file", "format", "test", "time", "load"], rows)
