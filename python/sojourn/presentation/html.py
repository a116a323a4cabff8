"""HTML of documents: self-contained pages, and fragments for notebooks.

A page loads nothing. It contains at most one script, which sorts tables; the policy of the page has
the SHA-256 of that script, so that a browser runs neither a modified script nor one that a name in
a scenario smuggles in (Content Security Policy Level 3, section 2.3.1; W3C).
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources

from sojourn import _core
from sojourn.deferred import Deferred
from sojourn.presentation import style
from sojourn.presentation.figure import Figure
from sojourn.presentation.model import (
    MISSING,
    Bar,
    Block,
    Code,
    Column,
    Document,
    Estimate,
    Figures,
    Image,
    Inline,
    Items,
    Legend,
    Markup,
    Named,
    Note,
    Paragraph,
    Quote,
    Section,
    Styled,
    Table,
    Text,
    Verdict,
    plain,
    quiet,
)

# Matplotlib, which draws, is slow to import.
_SVG = Deferred("sojourn.presentation.svg")
# Elements without content.
_VOID = {"br", "img", "input", "meta", "wbr"}
# The levels of the headings of sections: in a page, in a notebook.
_FIRST, _DEEPER = 2, 4
# Columns of text that do not fit on a narrow page.
_MANY = 4


def tag(name: str, /, *content: str, **attributes: str | None) -> Markup:
    """Write an element; content and attributes are escaped unless they are markup.

    Examples
    --------
    >>> tag("p", "a < b", tag("br"), class_="note", title=None)
    '<p class="note">a &lt; b<br></p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_quoted(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(part if isinstance(part, Markup) else escape(part) for part in content)
    return Markup(f"<{name}{written}>{inner}" + ("" if name in _VOID else f"</{name}>"))


def _quoted(value: str) -> str:
    return escape(value, quote=False).replace('"', "&quot;")


def page(document: Document, *, more: str = "") -> str:
    """Write a page, in which figures have the colours of its names; `more` is a style sheet."""
    script = _resource("sorting.js") if document.is_sortable else ""
    meta = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=security(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"Sojourn {_core.version()}"),
        *(tag("meta", name=name, content=text) for name, text in document.meta.items()),
        tag("title", f"{document.title} – Sojourn"),
    ]
    sheet = f"{_resource('style.css')}{more}{_colours(document.names)}"
    head = "\n".join([*meta, f"<style>\n{sheet}\n</style>"])
    header = tag("header", tag("h1", document.title), *_written(document.head, _FIRST, _below))
    body = "\n".join([header, *_written(document.content, _FIRST, _below)])
    last = f"<script>{script}</script>\n" if script else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n{last}</body>\n</html>\n"
    )


def _colours(names: Sequence[str]) -> str:
    """Return the style sheet of figures that show what has these names."""
    numbers = list(style.numbers(names).values())
    light, dark = (
        "".join(f"--c{place}: {hues[one % len(hues)]};" for place, one in enumerate(numbers))
        for hues in (style.COLOURS, style.COLOURS_ON_DARK)
    )
    rules = [
        f":root {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
    ]
    for place in range(len(numbers)):
        rules.append(f".s{place} {{ stroke: var(--c{place}); }}")
        rules.append(f".d{place} {{ fill: var(--c{place}); }}")
        rules.append(f"body:has(#arm{place}:not(:checked)) .a{place} {{ display: none; }}")
    return "\n".join(rules)


def fragment(content: Iterable[Block]) -> str:
    """Write a part of a notebook, which has no style sheet of ours."""
    return "".join(_written(content, _DEEPER, _plain))


def inner(content: Iterable[Block]) -> Markup:
    """Write a part of a page."""
    return Markup("".join(_written(content, _DEEPER, _below)))


def security(script: str) -> str:
    """Write the Content-Security-Policy of a page that runs only this script.

    Examples
    --------
    >>> security("")
    "default-src 'none'; style-src 'unsafe-inline'"
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if not script:
        return policy
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{policy}; script-src 'sha256-{digest}'"


def _resource(name: str) -> str:
    return resources.files("sojourn.presentation").joinpath(name).read_text(encoding="utf-8")


Cell = Callable[[Text], Markup]


def _written(content: Iterable[Block], level: int, cell: Cell) -> list[Markup]:
    """Write blocks, without those that are empty."""
    return [written for block in content if (written := _block(block, level, cell))]


def _block(block: Block, level: int, cell: Cell) -> Markup:  # noqa: C901, PLR0911 - one per kind
    match block:
        case Paragraph(text, is_quiet):
            return tag("p", _text(text), class_="note" if is_quiet else None)
        case Items(items, is_quiet):
            listed = [tag("li", _text(item)) for item in items]
            return tag("ul", *listed, class_="note" if is_quiet else None) if listed else Markup()
        case Table():
            return _table(block, cell)
        case Code(text):
            return tag("pre", text, tabindex="0")
        case Quote(text, source):
            return tag("blockquote", f"“{text}” ", tag("small", source))
        case Figures(drawings, names):
            drawn = [_figure(one, names) for one in drawings]
            return tag("div", *drawn, class_="figures") if drawn else Markup()
        case Image(title, path):
            return tag("img", alt=title, src=path)
        case Legend():
            return _legend(block)
        case Note(title, content, severity):
            inner = [tag(f"h{level}", title), *_written(content, level + 1, cell)]
            role = "alert" if severity == "invalid" else None
            return tag("section", *inner, class_=f"validity {severity}", role=role)
        case Section():
            return _section(block, level, cell)
        case Markup():
            return block


def _figure(figure: Figure | Markup, names: Sequence[str]) -> Markup:
    if isinstance(figure, Markup):
        return figure
    parts = [tag("figcaption", figure.title), Markup(_SVG.svg(figure, names))]
    data = [Section("Data", [Table(figure.head, figure.rows)] if figure.rows else [], folded=True)]
    return tag("figure", *parts, inner([*quiet(figure.note), *data]))


def _section(section: Section, level: int, cell: Cell) -> Markup:
    inner = _written(section.content, level + 1, cell)
    if not inner:
        return Markup()
    heading = tag(f"h{level}", section.title)
    if section.folded:
        summary = tag("summary", heading if level == _FIRST else section.title)
        inner = [tag("details", summary, *inner)]
    else:
        inner = [heading, *inner]
    return tag("section", *inner) if level == _FIRST else Markup("".join(inner))


def _legend(legend: Legend) -> Markup:
    names = [_inline(Named(name, place)) for place, name in enumerate(legend.names)]
    if not legend.boxes:
        return tag("p", *(tag("span", name, " ") for name in names), class_="note")
    boxes = [
        tag("label", Markup(f'<input type="checkbox" id="arm{place}" checked>'), name)
        for place, name in enumerate(names)
    ]
    about = f"{legend.what} shown in figures"
    return tag("nav", tag("span", legend.what), *boxes, class_="legend", aria_label=about)


def _table(table: Table, cell: Cell) -> Markup:
    """Write a table, which scrolls if it is wider than the page.

    On a narrow page, a table of text alone has its cells below each other.
    """
    body = tag("tbody", *(_row(row, table, cell) for row in table.rows))
    if table.kind == "bars":
        return tag("table", tag("caption", table.title), body, class_="bars")
    heads = [_column(column, place, table) for place, column in enumerate(table.columns)]
    kind = table.kind or ("records" if _is_records(table) else None)
    written = tag("table", tag("thead", tag("tr", *heads)), body, class_=kind)
    if not table.kind:
        return tag("div", written, class_="wide", tabindex="0")
    return tag("div", written, class_="wide", role="region", aria_label=table.title, tabindex="0")


def _is_records(table: Table) -> bool:
    """Whether a table has too much text for columns on a narrow page."""
    return not table.kind and table.words == len(table.columns) >= _MANY


def _column(column: Column | str, place: int, table: Table) -> Markup:
    definition = column.definition if isinstance(column, Column) else ""
    text = "text" if 0 < place < table.words else None
    return tag("th", str(column), scope="col", class_=text, title=definition or None)


def _row(row: Sequence[Text], table: Table, cell: Cell) -> Markup:
    cells = []
    for place, text in enumerate(row):
        key = _key(text) if table.kind == "sortable" else None
        if place < table.lead:
            cells.append(tag("th", cell(text), scope="row", data_value=key))
            continue
        kind = "bar" if isinstance(text, Bar) else "text" if place < table.words else None
        head = str(table.columns[place]) if _is_records(table) else None
        cells.append(tag("td", cell(text), class_=kind, data_value=key, data_head=head))
    return tag("tr", *cells)


def _key(text: Text) -> str | None:
    """Return what a cell is sorted by if that is not its text; missing values have no place."""
    if plain(text) == MISSING:
        return ""
    number = text.mean if isinstance(text, Estimate) else getattr(text, "key", None)
    return None if number is None else f"{number}"


def _below(text: Text) -> Markup:
    """Write a cell, with an interval below its value."""
    if not isinstance(text, Estimate) or not text.span:
        return _text(text)
    return Markup(f"{escape(text.value)}{tag('small', text.span)}")


def _plain(text: Text) -> Markup:
    """Write a cell of a notebook, which has no colours."""
    return Markup(escape(plain(text)))


def _text(text: Text) -> Markup:
    parts = [text] if isinstance(text, Inline) else text
    return Markup("".join(map(_inline, parts)))


def _inline(part: Inline) -> Markup:  # noqa: PLR0911 - one per kind
    match part:
        case Markup():
            return part
        case Verdict(text, tone, value):
            written = tag("span", text, class_=f"verdict {tone or 'none'}")
            return Markup(f"{escape(value)} {written}") if value else written
        case Styled(text, "link", target):
            return tag("a", text, href=target)
        case Styled(text, kind):
            return tag(kind, text)
        case Named(text, place):
            return Markup(f"{tag('i', style=f'background:var(--c{place})')}{escape(text)}")
        case Bar(share):
            return tag("span", style=f"width:{100 * share:.1f}%")
        case _:
            return Markup(escape(str(part)).replace("\n", "<br>"))
