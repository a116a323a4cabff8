"""The page: summary, findings, validity, figures, provenance."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.plot import palette
from sojourn.report import formatting
from sojourn.report.figure import cdf_figures, ellipse_figures, series_figures, table
from sojourn.result import Result, app_metrics, flow_groups
from sojourn.result.metrics import Metric, metrics_of
from sojourn.scenario import Link


def html(result: Result) -> str:
    """Write a report.

    Parameters
    ----------
    result
        What to report on.

    Returns
    -------
    str
        A page of HTML that refers to nothing outside itself.
    """
    name = escape(result.scenario.checked.name)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Sojourn {escape(_core.version())}">
<meta name="sojourn-scenario" content="{result.scenario.hash}">
<title>{name} – Sojourn</title>
<style>
{_style(result)}
</style>
</head>
<body>
<header>
<h1>{name}</h1>
<p class="note">{escape(_subtitle(result))}</p>
</header>
{_validity(result)}
{_notices(result)}
{_findings(result)}
<section><h2>Summary</h2>
{_summary(result)}
{_differences(result)}
</section>
{_applications(result)}
{_legend(result)}
{_section("Delay and goodput", ellipse_figures(result))}
{_section("Distributions", cdf_figures(result))}
{_section("Over time", series_figures(result), _SERIES_NOTE)}
{_provenance(result)}
</body>
</html>
"""


def write(result: Result, path: str | Path) -> None:
    """Write a report to a file.

    Parameters
    ----------
    result
        What to report on.
    path
        The file.

    Raises
    ------
    ResultError
        The file cannot be written.
    """
    try:
        Path(path).write_text(html(result), encoding="utf-8")
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None


_SERIES_NOTE = (
    "Lines are means over short intervals and over replications, from the start of the run; the "
    "numbers above count from the end of the warm-up. Goodput is what reaches the application in "
    "order: after a repaired loss much arrives at once, so that for a moment it may exceed the "
    "rate of the link."
)


def _style(result: Result) -> str:
    sheet = resources.files("sojourn.report").joinpath("style.css").read_text(encoding="utf-8")
    light = "".join(f"--c{index}: {hue};" for index, hue in enumerate(palette.COLOURS))
    dark = "".join(f"--c{index}: {hue};" for index, hue in enumerate(palette.COLOURS_ON_DARK))
    rules = [
        f":root {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
    ]
    for index in range(len(palette.COLOURS)):
        rules.append(f".s{index} {{ stroke: var(--c{index}); }}")
        rules.append(f".f{index} {{ stroke: var(--c{index}); fill: var(--c{index}); }}")
        rules.append(f".d{index} {{ fill: var(--c{index}); }}")
    for index in range(len(result.arms)):
        rules.append(f"body:has(#arm{index}:not(:checked)) .a{index} {{ display: none; }}")
        if palette.dash(index):
            rules.append(f".a{index} polyline {{ stroke-dasharray: {palette.dash(index)}; }}")
    return sheet + "\n".join(rules)


def _subtitle(result: Result) -> str:
    checked = result.scenario.checked
    links = ", ".join(f"{name} {_rate(link)}" for name, link in result.scenario.links.items())
    return f"{links}; runs of {checked.duration_s:g} s, measured from {checked.warmup_s:g} s; " + (
        f"n = {checked.replications} runs an arm."
        if result.complete
        else f"{result.finished} of {result.total} runs finished."
    )


def _rate(link: Link) -> str:
    """Say the rate of a link, or the name of its trace and the mean rate."""
    if not isinstance(link.trace, Mapping):
        return str(link.rate)
    name = Path(link.trace.get("file", "")).name
    return f"trace {name} ({link.bits_per_s / 1e6:.3g} Mbit/s in the mean)".replace("  ", " ")


def _validity(result: Result) -> str:
    verdict = result.validity.verdict
    said = {
        "invalid": "This result cannot bear a conclusion about the queues.",
        "weak": "This result is to be read with these warnings.",
        "valid": "Nothing was found that limits this result."
        if not result.validity.findings
        else "Nothing was found that weakens this result.",
    }[verdict]
    items = "".join(
        f"<li><strong>{finding.severity}</strong>: {escape(finding.text)}</li>"
        for finding in result.validity.findings
    )
    role = ' role="alert"' if verdict == "invalid" else ""
    return (
        f'<section class="validity {verdict}"{role}><h2>Validity: {verdict}</h2>'
        f"<p>{said}</p><ul>{items}</ul></section>"
    )


def _findings(result: Result) -> str:
    """List what was found; with one arm, which nothing is compared with, there is no section."""
    items = "".join(f"<li>{escape(text)}</li>" for text in formatting.findings(result))
    return f"<section><h2>Findings</h2><ul>{items}</ul></section>" if items else ""


def _notices(result: Result) -> str:
    """Say what the core wants known, such as a law that is our reconstruction."""
    notices = result.provenance["notices"]
    if not notices:
        return ""
    items = "".join(f"<li>{escape(str(notice))}</li>" for notice in notices)
    return f'<section class="validity weak"><h2>Reconstructions</h2><ul>{items}</ul></section>'


def _summary(result: Result) -> str:
    return (
        f"{_estimates(result, result.summary(), metrics_of(result.per_run))}"
        '<p class="note">Means over runs; below each, the 95 % bootstrap interval of the mean. '
        "Drops and marks are counts per run over the measured time.</p>"
    )


def _applications(result: Result) -> str:
    """Say how long transfers took and the users of applications waited, group by group."""
    told: tuple[tuple[Sequence[Metric], pl.DataFrame], ...] = (
        (flow_groups.METRICS, formatting.telling_groups(result.group_summary())),
        (app_metrics.METRICS, result.application_summary()),
    )
    arms = result.per_run["arm"].unique(maintain_order=True).to_list()
    compared = {arm: formatting.group_differences(result, arms[0], arm) for arm in arms[1:]}
    tables = []
    for metrics, summary in told:
        for group in summary["group"].unique(maintain_order=True):
            of_group = summary.filter(pl.col("group") == group)
            present = [metric for metric in metrics if metric.column in of_group["metric"]]
            tables.append(f"<h3>{escape(group)}</h3>{_estimates(result, of_group, present)}")
            tables.append(_group_differences(group, present, arms[0], compared))
    if not tables:
        return ""
    return (
        f"<section><h2>Transfers and applications</h2>{''.join(tables)}"
        '<p class="note">Durations are of what users wait for: of web the load time of a page. '
        "Means over runs, as above.</p></section>"
    )


def _group_differences(
    group: str,
    metrics: Sequence[Metric],
    first: str,
    compared: Mapping[str, Mapping[tuple[str, str], Mapping[str, Any]]],
) -> str:
    if not compared:
        return ""
    rows = []
    for arm, found in compared.items():
        cells = [(found.get((group, metric.column)), metric) for metric in metrics]
        said = ("–" if row is None else formatting.change(row, metric) for row, metric in cells)
        rows.append((arm, *said))
    head = ("arm", *(metric.heading for metric in metrics))
    return f"<h4>Difference from {escape(first)}</h4>{table(head, rows)}"


def _estimates(result: Result, summary: pl.DataFrame, metrics: Sequence[Metric]) -> str:
    """Write a table with a line an arm, each mean with its interval below."""
    head = "".join(f'<th scope="col">{escape(metric.heading)}</th>' for metric in metrics)
    rows = []
    for arm in summary["arm"].unique(maintain_order=True):
        of_arm = summary.filter(pl.col("arm") == arm)
        found = {row["metric"]: row for row in of_arm.iter_rows(named=True)}
        cells = [_cell(found.get(metric.column), metric) for metric in metrics]
        hue = palette.slot(result.arms.index(arm))
        most = max(of_arm["n"].to_list())
        rows.append(
            f'<tr><th scope="row"><i style="background:var(--c{hue})"></i>{escape(arm)}</th>'
            f"<td>{most}</td>{''.join(cells)}</tr>"
        )
    return (
        f'<div class="wide"><table class="summary"><thead><tr><th scope="col">arm</th>'
        f'<th scope="col">n</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _cell(row: Mapping[str, float | None] | None, metric: Metric) -> str:
    if row is None:
        return "<td>–</td>"
    text = formatting.estimate(row["mean"], row["low"], row["high"], metric).split(" ±")[0]
    span = formatting.interval(row["low"], row["high"], metric)
    return f"<td>{escape(text)}<small>{escape(span)}</small></td>"


def _differences(result: Result) -> str:
    arms = result.per_run["arm"].unique(maintain_order=True).to_list()
    if len(arms) < 2:  # noqa: PLR2004 - a difference takes two
        return ""
    described = {metric.column: metric for metric in metrics_of(result.per_run)}
    rows = []
    for arm in arms[1:]:
        compared = result.difference(arms[0], arm).iter_rows(named=True)
        rows.append((arm, *(formatting.change(row, described[row["metric"]]) for row in compared)))
    head = ("arm", *(metric.heading for metric in described.values()))
    return (
        f"<h3>Difference from {escape(arms[0])}</h3>{table(head, rows)}"
        '<p class="note">Means of paired differences and their 95 % bootstrap intervals; '
        "* marks those that exclude 0.</p>"
    )


def _legend(result: Result) -> str:
    items = "".join(
        f'<label><input type="checkbox" id="arm{index}" checked>'
        f'<i style="background:var(--c{palette.slot(index)})"></i>{escape(arm)}</label>'
        for index, arm in enumerate(result.arms)
    )
    return f'<nav class="legend" aria-label="Arms shown in figures">{items}</nav>'


def _section(title: str, figures: list[str], note: str = "") -> str:
    if not figures:
        return ""
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f'<section><h2>{title}</h2>{said}<div class="figures">{"".join(figures)}</div></section>'


def _provenance(result: Result) -> str:
    rows = [
        ("Sojourn", result.build),
        ("seed", str(result.scenario.seed)),
        ("scenario SHA-256", result.scenario.hash),
        ("runs", f"{result.finished} of {result.total}"),
    ]
    return (
        f"<section><h2>Provenance</h2>{table(('what', 'value'), rows)}"
        "<p>A run is a pure function of the scenario, the seed and the version. Save this as a "
        "file and <code>sojourn run FILE</code> gives the same numbers.</p>"
        "<details open><summary>Scenario</summary>"
        f"<pre>{escape(result.scenario.to_toml())}</pre></details></section>"
    )
