"""The HTML page of a study: every claim with published and measured values, and every figure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.bibliography import plain_text
from sojourn.deferred import Deferred
from sojourn.markup import wide_table
from sojourn.report.page import head, style_of
from sojourn.result import derived_files
from sojourn.studies import outputs, wording
from sojourn.studies.study import Study
from sojourn.studies.verdicts import (
    IN_DIRECTION,
    JUDGED,
    NOT_REPRODUCED,
    REPRODUCED,
    VERDICTS,
    totals,
)

if TYPE_CHECKING:
    from sojourn.studies.figures import Drawn

FILE = "index.html"
# Matplotlib is slow to import.
_SVG = Deferred("sojourn.presentation.svg")
# Share of its size down to which a figure is legible.
_SMALLEST = 0.72
_CLASSES = {REPRODUCED: "reproduced", IN_DIRECTION: "direction", NOT_REPRODUCED: "not"}
_UNCOUNTED = "uncounted"

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a page shows besides verdicts."""

    figures: Sequence["Drawn"]
    reports: Mapping[str, str]
    builds: Sequence[str]
    seeds: str


def write(file: Path, study: Study, record: Record, sources: Sources) -> None:
    """Write the page of a study."""
    derived_files.check_report(file)
    derived_files.write(file, html(study, record, sources).encode(), None)


def html(study: Study, record: Record, sources: Sources) -> str:
    """Write the page of a study as a self-contained document without scripts."""
    title = escape(study.description.title)
    style = resources.files("sojourn.studies").joinpath("page.css").read_text(encoding="utf-8")
    arms = list(sources.figures[0].drawing.colours) if sources.figures else []
    style = f"{style_of(arms)}{style}{_switches(record)}"
    parts = [
        _claims(record),
        _presets(record),
        _assumptions(record),
        _figures(sources.figures),
    ]
    if record["figures"]:
        # Those are what was asked for.
        parts.insert(0, parts.pop())
    body = "\n".join(parts)
    return f"""{head(title, style)}<body>
<header>
<h1>{title}</h1>
<p class="note">{escape(_subtitle(study, record))}</p>
</header>
{_reconstruction(record)}
{_validity(record)}
{_totals(record["totals"])}
{body}
{_scenarios(record, sources)}
{_provenance(record, sources)}
</body>
</html>
"""


def _class(verdict: str) -> str:
    return _CLASSES.get(verdict, _UNCOUNTED)


def _switches(record: Record) -> str:
    """Write the rules by which check boxes hide claims."""
    return "\n".join(
        f"body:has(#show-{at}:not(:checked)) .v{at} {{ display: none; }}"
        for at, verdict in enumerate(VERDICTS)
        if any(claim["verdict"] == verdict for claim in outputs.shown(record))
    )


def _subtitle(study: Study, record: Record) -> str:
    citation = study.description.citation
    authors = plain_text(str(citation.get("author", ""))).replace(" and ", ", ")
    work = ", ".join(part for part in (authors, str(citation.get("year", ""))) if part)
    scale = wording.scale(record)
    return " ".join([f"{work}."] * bool(work) + [f"{scale[:1].upper()}{scale[1:]}."])


def _reconstruction(record: Record) -> str:
    if not record["reconstruction"]:
        return ""
    text = escape(" ".join(record["reconstruction"].split()))
    return f'<section class="validity weak"><h2>Reconstruction</h2><p>{text}</p></section>'


def _validity(record: Record) -> str:
    """List the validity errors of results."""
    if not record["validity"]:
        return ""
    items = "".join(f"<li>{escape(wording.problem(one))}</li>" for one in record["validity"])
    listed = f"<ul>{items}</ul>"
    number = len(record["validity"])
    if number > 3:  # noqa: PLR2004 - more would hide the verdicts
        listed = f"<details><summary>{number} errors</summary>{listed}</details>"
    return (
        '<section class="validity invalid"><h2>Validity</h2><p>Errors invalidate conclusions from '
        f"the scenarios and arms that they name.</p>{listed}</section>"
    )


def _totals(counts: Mapping[str, int]) -> str:
    items = "".join(
        f'<li class="{_class(verdict)}"><b>{counts[verdict]}</b> {verdict}</li>'
        for verdict in VERDICTS
        if counts[verdict] or verdict in JUDGED
    )
    return f'<ul class="totals" aria-label="Verdicts">{items}</ul>'


def _claims(record: Record) -> str:
    claims = outputs.shown(record)
    boxes = "".join(
        f'<label><input type="checkbox" id="show-{at}" checked>{verdict}</label>'
        for at, verdict in enumerate(VERDICTS)
        if any(claim["verdict"] == verdict for claim in claims)
    )
    head = "".join(
        f'<th scope="col" class="{name}">{name}</th>'
        for name in ("claim", "verdict", "statement", "quantity", "published", "measured")
    )
    bodies = "".join(_claim(claim) for claim in claims)
    notes = (outputs.left_out(record), wording.of_single_runs(record))
    others = "".join(f"<p>{escape(note)}</p>" for note in notes if note)
    return (
        f'<section><h2>Claims</h2><nav class="legend" aria-label="Verdicts shown">{boxes}</nav>'
        f'<div class="wide"><table class="text"><thead><tr>{head}</tr></thead>{bodies}</table>'
        f'</div>{others}<p class="note">{_NOTE}</p></section>'
    )


_NOTE = (
    "Measured values are means over runs ± half the width of their 95 % interval. ×: ratio of two "
    "means. Above, below, differs: the difference is significant (t test, 5 %). In direction: a "
    "weaker form of the claim; if only this form holds, the claim is “reproduced in direction”."
)


def _claim(claim: Record) -> str:
    """Write the rows of a claim: one per condition."""
    lines = claim["lines"]
    rows = max(1, len(lines))
    span = f' rowspan="{rows}"' if rows > 1 else ""
    reason = f"<small>{escape(claim['reason'])}</small>" if claim["reason"] else ""
    first = (
        f'<th scope="row"{span}>{escape(claim["id"])}'
        f'<span class="phone">{_verdict(claim["verdict"])}</span></th>'
        f'<td class="judged"{span}>{_verdict(claim["verdict"])}</td>'
        f'<td class="statement"{span}>{escape(claim["statement"])}'
        f"<small>{escape(claim['source'])} ({claim['evidence']})</small>{reason}</td>"
    )
    place = f"v{VERDICTS.index(claim['verdict'])}"
    if not lines:
        return f'<tbody class="{place}"><tr>{first}<td></td><td></td><td></td></tr></tbody>'
    cells = [_condition(line, several=rows > 1) for line in lines]
    body = "".join(f"<tr>{one}</tr>" for one in [first + cells[0], *cells[1:]])
    return f'<tbody class="{place}">{body}</tbody>'


def _condition(line: Record, *, several: bool) -> str:
    fails = " fails" if several and line["verdict"] == NOT_REPRODUCED else ""
    stated = wording.stated(line)
    text = f"in direction: {stated}" if line["weaker"] else stated
    return (
        f'<td class="quantity">{_breakable(wording.subject(line))}</td>'
        f'<td class="number">{_breakable(text)}</td>'
        f'<td class="number{fails}">{escape(wording.measured(line))}</td>'
    )


def _breakable(text: str) -> str:
    """Escape a text in which names may be broken after underscores."""
    return escape(text).replace("_", "_<wbr>")


def _verdict(verdict: str, value: str = "") -> str:
    number = f"{escape(value)} " if value else ""
    return f'{number}<span class="verdict {_class(verdict)}">{verdict}</span>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of cells in HTML; the first column names the rows."""
    return wide_table(head, rows, attributes=' class="text"', content=str)


def _presets(record: Record) -> str:
    """Write the verdicts with each preset side by side."""
    presets = record["presets"]
    if not presets:
        return ""
    base = {claim["id"]: claim["verdict"] for claim in record["claims"]}
    names = [name for name in base if any(name in one["verdicts"] for one in presets)]
    labels = [
        f"{one['label']} ({', '.join(f'{other} for {arm}' for arm, other in one['arms'].items())})"
        for one in presets
    ]
    counts = [totals(base[name] for name in names), *(one["totals"] for one in presets)]
    sums = [
        "<br>".join(f"{count[verdict]} {verdict}" for verdict in JUDGED if count[verdict])
        for count in counts
    ]
    rows = [["total", *sums]]
    for name in names:
        others = (one["verdicts"].get(name) for one in presets)
        cells = ["–" if one is None else _verdict(one) for one in others]
        rows.append([name, _verdict(base[name]), *cells])
    return (
        f"<section><h2>Presets</h2>{_table(['claim', 'as in the claims', *labels], rows)}"
        '<p class="note">The claims are judged with other queues instead of those named.</p>'
        "</section>"
    )


def _assumptions(record: Record) -> str:
    """Write one table per assumption: claims judged with other values of a parameter."""
    verdicts = {claim["id"]: claim for claim in record["claims"]}
    parts = []
    for one in record["assumptions"]:
        head = ["claim", "in the study", *(variant["label"] for variant in one["variants"])]
        rows = [["plausible", "", *(escape(variant["plausible"]) for variant in one["variants"])]]
        for name in one["claims"]:
            full = [line["compared"] for line in verdicts[name]["lines"] if not line["weaker"]]
            cells = [_outcome(full, verdicts[name]["verdict"])]
            for variant in one["variants"]:
                found = variant["claims"].get(name)
                cells.append(_outcome(found["compared"], found["verdict"]) if found else "–")
            rows.append([name, *cells])
        text = escape(" ".join(one["text"].split()))
        parts.append(f"<h3>{escape(one['name'])}</h3><p>{text}</p>{_table(head, rows)}")
    if not parts:
        return ""
    return (
        '<section><h2>Sensitivity</h2><p class="note">The work does not state these '
        f"parameters. Each is varied separately.</p>{''.join(parts)}</section>"
    )


def _outcome(compared: Sequence[float | None], verdict: str) -> str:
    (first, *others) = compared or [None]
    return _verdict(verdict, "" if first is None or others else wording.number(first))


def _figures(figures: Sequence["Drawn"]) -> str:
    parts = []
    for drawn in figures:
        figure, drawing = drawn.figure, drawn.drawing
        said = (
            f'<p class="note">Published: {escape(" ".join(figure.statement.split()))}</p>'
            if figure.statement
            else ""
        )
        svg = _SVG.svg(drawing, list(drawing.colours))
        width = int(svg.split('viewBox="0 0 ', 1)[1].split(" ", 1)[0])
        # Text of a wide figure would be too small on a phone, so the figure is scrolled there.
        size = f"max-width: {width}px; --least: {min(width, _SMALLEST * width):.0f}px"
        parts.append(
            f'<figure class="drawn"><figcaption>Figure {escape(figure.name)}: '
            f"{escape(figure.title)}</figcaption>{said}"
            f'<div class="paper" style="{size}">{svg}</div>'
            f'<p class="note">{escape(drawing.note)}</p></figure>'
        )
    return f"<section><h2>Figures</h2>{''.join(parts)}</section>" if parts else ""


def _scenarios(record: Record, sources: Sources) -> str:
    rows = []
    for name, runs in record["replications"].items():
        path = sources.reports.get(name)
        link = f'<a href="{escape(path)}">report</a>' if path else "–"
        rows.append([name, str(runs), link])
    table = _table(["scenario", "runs per arm", "report"], rows)
    if len(rows) > 12:  # noqa: PLR2004 - more than fit on a screen
        table = f"<details><summary>{len(rows)} scenarios</summary>{table}</details>"
    return f"<section><h2>Scenarios</h2>{table}</section>"


def _provenance(record: Record, sources: Sources) -> str:
    rows = [
        ("study", escape(record["study"])),
        ("scale", record["scale"]),
        ("Sojourn", escape(", ".join(sources.builds))),
        ("seed", escape(sources.seeds)),
    ]
    return (
        f"<section><h2>Provenance</h2>{_table(['item', 'value'], rows)}"
        f"<p>To reproduce these numbers: <code>{escape(record['command'])}</code>. "
        "<code>verdicts.json</code> and <code>claims.parquet</code> contain all of them.</p>"
        "</section>"
    )
