"""HTML of notebooks and pages: paragraphs and plain tables, every text escaped."""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any


def paragraph(text: str, *, strong: str = "") -> str:
    """Write a paragraph, the first words of it strong.

    Examples
    --------
    >>> paragraph("10 of 10 runs", strong="a < b")
    '<p><strong>a &lt; b</strong> 10 of 10 runs</p>'
    """
    head = f"<strong>{escape(strong)}</strong> " if strong else ""
    return f"<p>{head}{escape(text)}</p>"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    scoped: bool = False,
    attributes: str = "",
    of_cells: str = "",
    content: Callable[[str], str] = escape,
) -> str:
    """Write a table whose first column names its rows; `content` writes the other cells.

    Examples
    --------
    >>> table(["arm", "n"], [["<fq>", "3"]])
    '<table><thead><tr><th>arm</th><th>n</th></tr></thead><tbody><tr><th>&lt;fq&gt;</th><td>3</td></tr></tbody></table>'
    """
    column, row = (' scope="col"', ' scope="row"') if scoped else ("", "")
    heads = "".join(f"<th{column}{of_cells}>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th{row}>{escape(first)}</th>"
        + "".join(f"<td{of_cells}>{content(cell)}</td>" for cell in others)
        + "</tr>"
        for first, *others in rows
    )
    return f"<table{attributes}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def wide_table(head: Sequence[str], rows: Iterable[Sequence[str]], **style: Any) -> str:
    """Write a table of a page, which scrolls if it is wider than the page."""
    return f'<div class="wide">{table(head, rows, scoped=True, **style)}</div>'


def data_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a wide table in which the interval of a value is below it."""

    def cell(text: str) -> str:
        value, bracket, span = text.partition(" [")
        return f"{escape(value)}<small>[{escape(span)}</small>" if bracket else escape(text)

    return wide_table(head, rows, content=cell)
