"""The HTML page that shows measured runs beside a simulated result: means and figures."""

from html import escape
from pathlib import Path

from sojourn.exchange.measurement import OF_APPLICATIONS, Beside, notes
from sojourn.markup import data_table as table
from sojourn.plot import reported
from sojourn.report.page import estimates, head, legend, provenance, section, style, validity
from sojourn.report.view import ResultView, Section
from sojourn.result import derived_files, metrics
from sojourn.result.metrics import metrics_of

_NOTE = (
    "Simulated runs are measured from the warm-up to their end, measured runs from the same time "
    "to the end of their load. Both are computed by the same definitions; – marks what a file does "
    "not contain. Measured and simulated runs are not paired: there are no differences."
)
_FLENT = (
    "Goodput of a flent file is the data that netperf sent or received, divided by the measured "
    "time. Delays of a Mahimahi log have a resolution of 1 ms."
)


def html(beside: Beside) -> str:
    """Write a page about measured runs beside a simulated result."""
    name = escape(beside.scenario.checked.name)
    shown = _view(beside)
    about = f'<meta name="sojourn-scenario" content="{beside.scenario.hash}">\n'
    return f"""{head(f"{name} and measured runs", style(beside), about)}<body>
<header>
<h1>{name} and measured runs</h1>
<p class="note">Arms whose names begin with “measured:” were read from files, as were those with \
“simulated:”, which Sojourn exported; the others are those of the result.</p>
</header>
<section><h2>Imported runs</h2>
{_origins(beside)}
{_notes(beside)}
</section>
{validity(beside.simulated)}
<section><h2>Summary</h2>
{estimates(beside, shown, shown.whole)}
<p class="note">Means over runs; below each, the 95 % bootstrap interval of the mean. {_NOTE} \
{_FLENT}</p>
{_applications(beside, shown)}
</section>
{legend(beside)}
{section("Induced latency and goodput", reported.ellipses(beside), beside.arms)}
{section("Distributions", reported.cdfs(beside), beside.arms)}
{section("Over time", reported.over_time(beside), beside.arms)}
{provenance(beside.simulated)}
</body>
</html>
"""


def write(beside: Beside, path: str | Path) -> None:
    """Write the page to a file."""
    derived_files.check_report(Path(path))
    derived_files.write(path, html(beside).encode(), None)


def _view(beside: Beside) -> ResultView:
    rows = {(row["arm"], row["metric"]): row for row in beside.summary().iter_rows(named=True)}
    whole = Section(name=None, metrics=metrics_of(beside.table()), estimates=rows, differences={})
    return ResultView(
        title=beside.scenario.checked.name,
        arms=beside.arms,
        whole=whole,
        groups=[],
        classes=[],
        applications=_of_applications(beside),
    )


def _of_applications(beside: Beside) -> list[Section]:
    """Return the metrics of each group of applications that any run has."""
    table = beside.table("application")
    if table.is_empty():
        return []
    known = [metric for metric in OF_APPLICATIONS if metric.column in table.columns]
    sections = []
    for (group,), rows in metrics.summary(table, known).group_by("group", maintain_order=True):
        present = {metric.column for metric in known} & set(rows["metric"])
        sections.append(
            Section(
                name=f"{group}",
                metrics=[metric for metric in known if metric.column in present],
                estimates={(row["arm"], row["metric"]): row for row in rows.iter_rows(named=True)},
                differences={},
            )
        )
    return sections


def _applications(beside: Beside, shown: ResultView) -> str:
    """Write a table for each group of applications."""
    return "\n".join(
        f"<h3>{escape(str(section.name))}</h3>\n{estimates(beside, shown, section)}"
        for section in shown.applications
    )


def _notes(beside: Beside) -> str:
    """List what was left out of the files."""
    warmup_s = beside.scenario.checked.warmup_s
    items = "".join(
        f"<li>{escape(note)}</li>" for note in notes(beside.measurements, warmup_s=warmup_s)
    )
    return f'<ul class="note">{items}</ul>' if items else ""


def _origins(beside: Beside) -> str:
    """Write where the measured runs come from."""
    rows = [
        (
            one.arm,
            str(one.origin["file"]),
            str(one.origin["format"]),
            str(one.origin.get("test", "")),
            str(one.origin.get("time", "")),
            f"{one.load_s:.3g} to {one.end_s:.4g} s",
        )
        for one in beside.measurements
    ]
    return table(("arm", "file", "format", "test", "time", "load"), rows)
