"""The HTML page of a report: validity, findings, tables, figures, provenance."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from sojourn import _core
from sojourn.deferred import Deferred
from sojourn.markup import data_table as table
from sojourn.plot import reported
from sojourn.presentation import style as plot_style
from sojourn.presentation.figure import Figure
from sojourn.report.answer import answer
from sojourn.report.script import security
from sojourn.report.view import MOST, ResultView, Row, Section, view
from sojourn.result import Result, derived_files, formatting
from sojourn.result.catalogue import Metric
from sojourn.scenario import Link

# Matplotlib is slow to import.
_SVG = Deferred("sojourn.presentation.svg")


def html(result: Result) -> str:
    """Write a report."""
    shown = view(result)
    name = escape(shown.title)
    about = f'<meta name="sojourn-scenario" content="{result.scenario.hash}">{_manifest(result)}\n'
    return f"""{head(name, style(result), about)}<body>
<header>
<h1>{name}</h1>
<p class="note">{escape(_subtitle(result))}</p>
{_answer(result, shown)}</header>
{validity(result)}
{_notices(result)}
{legend(result)}
{section("Induced latency and goodput", reported.ellipses(result), result.arms)}
{_main(result, shown)}
{_findings(shown)}
{folded("Summary", _summary(result, shown) + _differences(shown))}
{_groups(result, shown)}
{_classes(result, shown)}
{_applications(result, shown)}
{section("Distributions", reported.cdfs(result), result.arms)}
{section("Over time", reported.over_time(result), result.arms, _SERIES_NOTE)}
{provenance(result)}
</body>
</html>
"""


def write(result: Result, path: str | Path, page: Callable[[Result], str] | None = None) -> None:
    """Write a report, or another page about a result, to a file."""
    derived_files.check_report(Path(path))
    derived_files.write(path, (page or html)(result).encode(), result.manifest_sha256)


def head(title: str, style: str, about: str = "", script: str = "") -> str:
    """Write the first lines of a self-contained page, up to its body."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{security(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Sojourn {escape(_core.version())}">
{about}<title>{title} – Sojourn</title>
<style>
{style}
</style>
</head>
"""


def _manifest(result: Result) -> str:
    """Return a tag with the digest of the manifest; empty if the result was not saved."""
    digest = result.manifest_sha256
    return "" if digest is None else f'\n<meta name="sojourn-manifest" content="{digest}">'


_SERIES_NOTE = (
    "Lines are means over short intervals and over replications, from the start of the run; the "
    "tables above exclude the warm-up. Goodput counts data delivered in order: after a "
    "retransmission, a large amount of data may be delivered at once, and goodput may briefly "
    "exceed the link rate."
)


def style(result: Result) -> str:
    """Return the style sheet of a page about a result."""
    return style_of(result.arms)


def style_of(names: Sequence[str]) -> str:
    """Return the style sheet of a page whose figures show arms with these names."""
    numbers = list(plot_style.numbers(names).values())
    light, dark = (
        "".join(f"--c{arm}: {hues[one % len(hues)]};" for arm, one in enumerate(numbers))
        for hues in (plot_style.COLOURS, plot_style.COLOURS_ON_DARK)
    )
    rules = [
        f":root {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
    ]
    for arm in range(len(numbers)):
        rules.append(f".s{arm} {{ stroke: var(--c{arm}); }}")
        rules.append(f".d{arm} {{ fill: var(--c{arm}); }}")
        rules.append(f"body:has(#arm{arm}:not(:checked)) .a{arm} {{ display: none; }}")
    return sheet() + "\n".join(rules)


def sheet() -> str:
    """Return the style sheet of all pages."""
    return resources.files("sojourn.report").joinpath("style.css").read_text(encoding="utf-8")


def _subtitle(result: Result) -> str:
    checked = result.scenario.checked
    links = ", ".join(f"{name} {_rate(link)}" for name, link in result.scenario.links.items())
    return f"{links}; runs of {checked.duration_s:g} s, measured from {checked.warmup_s:g} s; " + (
        f"n = {checked.replications} per arm."
        if result.complete
        else f"{result.finished} of {result.total} runs finished."
    )


def _rate(link: Link | str) -> str:
    """Write the rate of a link, or the name of its trace and the mean rate."""
    if isinstance(link, str):
        return link
    if not isinstance(link.trace, Mapping):
        return str(link.rate)
    name = Path(link.trace.get("file", "")).name
    return f"trace {name} (mean {link.bits_per_s / 1e6:.3g} Mbit/s)".replace("  ", " ")


def validity(result: Result, of: str = "") -> str:
    """Write the verdict on a result and the limitations found."""
    verdict = result.validity.verdict
    said = {
        "invalid": "This result does not support a conclusion about the queues.",
        "weak": "The warnings below limit the conclusions that this result supports.",
        "valid": "No limitations found."
        if not result.validity.findings
        else "No warnings; see the notes.",
    }[verdict]
    items = "".join(
        f"<li><strong>{finding.severity}</strong>: {escape(finding.text)}</li>"
        for finding in result.validity.findings
    )
    role = ' role="alert"' if verdict == "invalid" else ""
    title = f"Validity of {escape(of)}" if of else "Validity"
    return (
        f'<section class="validity {verdict}"{role}><h2>{title}: {verdict}</h2>'
        f"<p>{said}</p><ul>{items}</ul></section>"
    )


def _answer(result: Result, shown: ResultView) -> str:
    sentence = answer(shown, result.validity.error)
    return "" if sentence is None else f"<p><strong>{escape(sentence)}</strong></p>\n"


def folded(title: str, content: str) -> str:
    """Write a section that opens on a click."""
    heading = f"<summary><h2>{escape(title)}</h2></summary>"
    return f"<section><details>{heading}{content}</details></section>"


def _main(result: Result, shown: ResultView) -> str:
    """Write the metrics that matter most, as the command prints them."""
    ranked = shown.ranked()[:MOST]
    if not ranked:
        return ""
    heads = "".join(f'<th scope="col">{escape(section.label(one))}</th>' for section, one in ranked)
    rows = "".join(
        f"<tr>{_name(result, arm)}"
        + "".join(f"<td>{escape(section.estimate(arm, one))}</td>" for section, one in ranked)
        + "</tr>"
        for arm in shown.arms
    )
    return (
        '<section><h2>Main metrics</h2><div class="wide"><table class="summary"><thead><tr>'
        f'<th scope="col">arm</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="note">{escape(shown.measured)}</p></section>'
    )


def _findings(shown: ResultView) -> str:
    """List the findings; a result with one arm has none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in findings(shown))
    return folded("Findings", f"<ul>{items}</ul>") if items else ""


def _notices(result: Result) -> str:
    """List the notices of the core, such as algorithms that are reconstructions."""
    notices = result.provenance["notices"]
    if not notices:
        return ""
    items = "".join(f"<li>{escape(str(notice))}</li>" for notice in notices)
    return f'<section class="validity weak"><h2>Notices</h2><ul>{items}</ul></section>'


def _summary(result: Result, shown: ResultView) -> str:
    return (
        f"{estimates(result, shown, shown.whole)}"
        '<p class="note">Means over runs; below each, the 95 % bootstrap interval of the mean. '
        "Drops and marks are counts per run over the measured time.</p>"
    )


def _differences(shown: ResultView) -> str:
    if not shown.others:
        return ""
    return (
        f"<h3>Difference from {escape(shown.baseline)}</h3>{_changes(shown, shown.whole)}"
        '<p class="note">Means of paired differences and their 95 % bootstrap intervals; '
        "* marks those that exclude 0.</p>"
    )


def _groups(result: Result, shown: ResultView) -> str:
    """Write the table of traffic groups, one row per group and arm."""
    note = (
        "Goodput is the mean over the flows of the group; share is the group's share of all data "
        "in its direction. Values are means over runs, as above."
    )
    return _grouped(result, shown, shown.groups, ("Traffic groups", "group", note))


def _classes(result: Result, shown: ResultView) -> str:
    """Write the table of classes of queues."""
    note = "Queues without classes have no rows. Values are means over runs, as above."
    return _grouped(result, shown, shown.classes, ("Classes of queues", "class", note))


def _grouped(
    result: Result, shown: ResultView, groups: Sequence[Section], texts: tuple[str, str, str]
) -> str:
    """Write a section with one line per group and arm, and the differences.

    `texts` are its title, the heading of the groups and a note.
    """
    if not groups:
        return ""
    title, what, note = texts
    parts = [_group_table(result, shown, groups, what)]
    rows = [
        (str(group.name), arm, *group.changes_of(arm))
        for group in groups
        for arm in shown.others
        if group.pairs(arm)
    ]
    if rows:
        head = (what, "arm", *(metric.heading for metric in groups[0].metrics))
        parts.append(f"<h3>Difference from {escape(shown.baseline)}</h3>{table(head, rows)}")
    return folded(title, f'{"".join(parts)}<p class="note">{escape(note)}</p>')


def _group_table(result: Result, shown: ResultView, groups: Sequence[Section], what: str) -> str:
    """Write one line per group and arm, each mean with its interval below."""
    head = _headings(groups[0].metrics)
    rows = "".join(
        f'<tr><th scope="row">{escape(str(group.name))}</th>{_arm(result, group, arm)}</tr>'
        for group in groups
        for arm in shown.arms
        if group.runs(arm)
    )
    return (
        f'<div class="wide"><table class="summary"><thead><tr><th scope="col">{what}</th>'
        f'<th scope="col" class="arm">arm</th><th scope="col">n</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _applications(result: Result, shown: ResultView) -> str:
    """Write the tables of applications, group by group."""
    tables = []
    for group in shown.applications:
        tables.append(f"<h3>{escape(str(group.name))}</h3>{estimates(result, shown, group)}")
        if shown.others:
            tables.append(
                f"<h4>Difference from {escape(shown.baseline)}</h4>{_changes(shown, group)}"
            )
    if not tables:
        return ""
    note = "For web, the duration is the page load time. Values are means over runs, as above."
    return folded("Applications", f'{"".join(tables)}<p class="note">{note}</p>')


def _changes(shown: ResultView, section: Section) -> str:
    head = ("arm", *(metric.heading for metric in section.metrics))
    return table(head, [(arm, *section.changes_of(arm)) for arm in shown.others])


def estimates(result: Result, shown: ResultView, section: Section) -> str:
    """Write a table with one line per arm, each mean with its interval below."""
    head = _headings(section.metrics)
    rows = "".join(
        f"<tr>{_arm(result, section, arm)}</tr>" for arm in shown.arms if section.runs(arm)
    )
    return (
        f'<div class="wide"><table class="summary"><thead><tr><th scope="col">arm</th>'
        f'<th scope="col">n</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _headings(metrics: Sequence[Metric]) -> str:
    return "".join(
        f'<th scope="col" title="{escape(metric.definition)}">{escape(metric.heading)}</th>'
        for metric in metrics
    )


def _arm(result: Result, section: Section, arm: str) -> str:
    """Write the cells of an arm: its name, the number of runs and the estimates."""
    cells = [
        _cell(section.estimates.get((arm, metric.column)), metric) for metric in section.metrics
    ]
    return f"{_name(result, arm)}<td>{section.runs(arm)}</td>{''.join(cells)}"


def _name(result: Result, arm: str) -> str:
    """Write the name of an arm with its colour."""
    hue = result.arms.index(arm)
    return f'<th scope="row"><i style="background:var(--c{hue})"></i>{escape(arm)}</th>'


def _cell(row: Row | None, metric: Metric) -> str:
    if row is None:
        return "<td>–</td>"
    text = formatting.estimate(row["mean"], row["low"], row["high"], metric).split(" ±")[0]
    span = formatting.interval(row["low"], row["high"], metric)
    return f"<td>{escape(text)}<small>{escape(span)}</small></td>"


def legend(result: Result) -> str:
    """Write the boxes that show and hide arms in figures."""
    return legend_of(result.arms, "Arms")


def legend_of(names: Sequence[str], what: str) -> str:
    """Write the boxes that show and hide what figures show under these names."""
    items = "".join(
        f'<label><input type="checkbox" id="arm{index}" checked>'
        f'<i style="background:var(--c{index})"></i>{escape(name)}</label>'
        for index, name in enumerate(names)
    )
    return (
        f'<nav class="legend" aria-label="{escape(what)} shown in figures">'
        f"<span>{escape(what)}</span>{items}</nav>"
    )


def section(title: str, figures: Sequence[Figure], arms: Sequence[str], note: str = "") -> str:
    """Write a section of figures of arms; nothing without figures."""
    if not figures:
        return ""
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    drawn = "".join(_SVG.embedded(figure, arms) for figure in figures)
    return f'<section><h2>{title}</h2>{said}<div class="figures">{drawn}</div></section>'


def provenance(result: Result) -> str:
    """Write what is needed to repeat the runs."""
    backend = result.provenance.get("backend") or {}
    is_repeatable = backend.get("deterministic", True)
    said = (
        "A run depends only on the scenario, the seed and the version. To reproduce these numbers, "
        "save the scenario below to a file and run <code>sojourn run FILE</code>."
        if is_repeatable
        else "These runs were measured on a machine, in real time: a repetition gives other "
        "numbers, and a load on the machine changes them."
    )
    rows = [
        ("Sojourn", result.build),
        *([("kernel", f"Linux {kernel}")] if (kernel := backend.get("kernel")) else []),
        ("seed", str(result.scenario.seed)),
        ("scenario SHA-256", result.scenario.hash),
        ("runs", f"{result.finished} of {result.total}"),
    ]
    return (
        f"<section><h2>Provenance</h2>{table(('item', 'value'), rows)}"
        f"<p>{said}</p>"
        "<details open><summary>Scenario</summary>"
        f"<pre>{escape(result.scenario.to_toml())}</pre></details></section>"
    )


def findings(shown: ResultView) -> list[str]:
    """Describe the main results in sentences."""
    extremes = (_extremes(shown, metric) for metric in shown.whole.metrics)
    sentences = [sentence for sentence in extremes if sentence is not None]
    return sentences + [_against(shown, arm) for arm in shown.others]


def _extremes(shown: ResultView, metric: Metric) -> str | None:
    estimates = shown.whole.estimates
    rows = [estimates.get((arm, metric.column)) for arm in shown.arms]
    known = [row for row in rows if row is not None and row["mean"] is not None]
    known.sort(key=lambda row: row["mean"])
    if metric.role != "headline" or len(known) < 2:  # noqa: PLR2004 - extremes take two
        return None
    ends = [known[0], known[-1]]
    least, most = (
        f"{formatting.estimate(row['mean'], row['low'], row['high'], metric)} {metric.unit} "
        f"({row['arm']})"
        for row in ends
    )
    name = metric.label[0].upper() + metric.label[1:]
    if least.split(" (")[0] == most.split(" (")[0]:
        return f"{name} is {least.split(' (')[0]} in all arms."
    return f"{name} ranges from {least} to {most}."


def _against(shown: ResultView, arm: str) -> str:
    clear, unclear = [], []
    for section in shown.sections:
        group = "" if section.name is None else f"{section.name}: "
        for metric in section.metrics:
            row = section.differences.get((arm, metric.column))
            if metric.role not in {"headline", "compared"} or row is None:
                continue
            text = formatting.change(row, metric)
            if "*" in text:
                clear.append(f"{group}{metric.label} {text.replace('*', '')} {metric.unit}".strip())
            elif row["mean"] is not None:
                unclear.append(f"{group}{metric.label}")
    sentence = f"{arm} compared with {shown.baseline}: " + (
        ", ".join(clear) if clear else "no clear difference"
    )
    if clear and unclear:
        sentence += f"; no clear difference in {', '.join(unclear)}"
    return sentence + "."
