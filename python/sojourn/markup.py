"""HTML of objects in notebooks: plain tables, every text escaped."""

from collections.abc import Sequence
from html import escape


def paragraph(text: str, *, strong: str = "") -> str:
    """Write a paragraph, the first words of it strong.

    Examples
    --------
    >>> paragraph("10 of 10 runs", strong="a < b")
    '<p><strong>a &lt; b</strong> 10 of 10 runs</p>'
    """
    head = f"<strong>{escape(strong)}</strong> " if strong else ""
    return f"<p>{head}{escape(text)}</p>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table whose first column names its rows.

    Examples
    --------
    >>> table(["arm", "n"], [["<fq>", "3"]])
    '<table><thead><tr><th>arm</th><th>n</th></tr></thead><tbody><tr><th>&lt;fq&gt;</th><td>3</td></tr></tbody></table>'
    """
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th>{escape(row[0])}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
