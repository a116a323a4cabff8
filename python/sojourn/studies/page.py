"""The HTML page of a study: the answer, every figure, and every claim with what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.bibliography import plain_text
from sojourn.deferred import Deferred
from sojourn.presentation import html as writer
from sojourn.presentation.html import inner, tag
from sojourn.presentation.model import (
    Block,
    Document,
    Figures,
    Items,
    Markup,
    Note,
    Paragraph,
    Section,
    Styled,
    Text,
    facts,
    quiet,
    text_table,
)
from sojourn.report.page import save
from sojourn.studies import document, outputs, wording
from sojourn.studies.study import Study

if TYPE_CHECKING:
    from sojourn.studies.figures import Drawn

FILE = "index.html"
# Matplotlib is slow to import.
_SVG = Deferred("sojourn.presentation.svg")
# Share of its size down to which a figure is legible.
_SMALLEST = 0.72
# As many errors as do not hide the figures, and scenarios as fit on a screen.
_ERRORS, _SCENARIOS = 3, 12

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
    save(html(study, record, sources), file)


def html(study: Study, record: Record, sources: Sources) -> str:
    """Write the page of a study as a self-contained document without scripts."""
    style = resources.files("sojourn.studies").joinpath("page.css").read_text(encoding="utf-8")
    names = list(sources.figures[0].drawing.colours) if sources.figures else []
    page = Document(
        names=names,
        title=study.description.title,
        head=[
            Paragraph(_subtitle(study, record), quiet=True),
            Paragraph(Styled(wording.answer(record))),
        ],
        content=[
            *_notes(record),
            Section(
                "Figures",
                [Figures([_figure(one) for one in sources.figures])] if sources.figures else [],
            ),
            document.sensitivity(study, record),
            document.presets(record),
            document.searches(study),
            Section("Claims", _claims(record)),
            Section("Scenarios", _scenarios(record, sources)),
            Section("Provenance", _provenance(record, sources)),
        ],
    )
    return writer.page(page, more=style)


def _subtitle(study: Study, record: Record) -> str:
    citation = study.description.citation
    authors = plain_text(str(citation.get("author", ""))).replace(" and ", ", ")
    work = ", ".join(part for part in (authors, str(citation.get("year", ""))) if part)
    scale = wording.scale(record)
    return " ".join([f"{work}."] * bool(work) + [f"{scale[:1].upper()}{scale[1:]}."])


def _notes(record: Record) -> list[Note]:
    """State what is reconstructed, and the validity errors of results."""
    found = []
    if record["reconstruction"]:
        text = " ".join(record["reconstruction"].split())
        found.append(Note("Reconstruction", [Paragraph(text)]))
    if record["validity"]:
        items = Items([wording.problem(one) for one in record["validity"]])
        errors = f"{len(items.items)} errors"
        many = len(items.items) > _ERRORS
        said = "Errors invalidate conclusions from the scenarios and arms that they name."
        listed: list[Block] = [Section(errors, [items], folded=True) if many else items]
        found.append(Note("Validity", [Paragraph(said), *listed], "invalid"))
    return found


def _claims(record: Record) -> list[Block]:
    notes = (outputs.left_out(record), wording.of_single_runs(record), f"{wording.LEGEND} {_NOTE}")
    return [
        Paragraph(f"{wording.counted(record['totals'])}. {wording.counts(record)}"),
        *(part for note in notes for part in quiet(note)),
        *document.claims(outputs.shown(record)),
    ]


_NOTE = (
    "In direction: within 10 % of the published value, or within 25 % with the queues in the "
    "published order; or the weaker form that the claim states holds."
)


def _figure(drawn: "Drawn") -> Markup:
    figure, drawing = drawn.figure, drawn.drawing
    published = f"Published: {' '.join(figure.statement.split())}" if figure.statement else ""
    svg = _SVG.svg(drawing, list(drawing.colours))
    width = int(svg.split('viewBox="0 0 ', 1)[1].split(" ", 1)[0])
    # Text of a wide figure would be too small on a phone, so the figure is scrolled there.
    size = f"max-width: {width}px; --least: {min(width, _SMALLEST * width):.0f}px"
    return tag(
        "figure",
        tag("figcaption", f"Figure {figure.name}: {figure.title}"),
        inner(quiet(published)),
        tag("div", Markup(svg), class_="paper", style=size, tabindex="0"),
        inner(quiet(drawing.note)),
        class_="drawn",
    )


def _scenarios(record: Record, sources: Sources) -> list[Block]:
    rows: list[list[Text]] = []
    for name, runs in record["replications"].items():
        path = sources.reports.get(name)
        rows.append([name, str(runs), Styled("report", "link", path) if path else "–"])
    table = text_table(["scenario", "runs per arm", "report"], rows)
    many = len(rows) > _SCENARIOS
    return [Section(f"{len(rows)} scenarios", [table], folded=True) if many else table]


def _provenance(record: Record, sources: Sources) -> list[Block]:
    rows = [
        ("study", record["study"]),
        ("scale", record["scale"]),
        ("Sojourn", ", ".join(sources.builds)),
        ("seed", sources.seeds),
    ]
    said: Text = [
        "To reproduce these numbers: ",
        Styled(record["command"], "code"),
        ". ",
        Styled("verdicts.json", "code"),
        " and ",
        Styled("claims.parquet", "code"),
        " contain all of them.",
    ]
    return [facts(rows), Paragraph(said)]
