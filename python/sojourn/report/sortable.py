"""Tables that a reader can sort; without the script of the page, they are in their order."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Value:
    """A cell of a sortable table."""

    text: str
    key: float | None = None
    below: str = ""

    def html(self, tag: str) -> str:
        """Write the cell."""
        # A dash is a missing value, which has no place in any order.
        key = "" if self.text == "–" else self.key
        sorted_by = "" if key is None else f' data-value="{key}"'
        small = f"<small>{escape(self.below)}</small>" if self.below else ""
        start = '<th scope="row"' if tag == "th" else "<td"
        return f"{start}{sorted_by}>{escape(self.text)}{small}</{tag}>"


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a column."""

    text: str
    hover: str = ""

    def html(self) -> str:
        """Write the heading."""
        title = f' title="{escape(self.hover)}"' if self.hover else ""
        return f'<th scope="col"{title}>{escape(self.text)}</th>'


def sortable(caption: str, head: Sequence[Heading], rows: Sequence[Sequence[Value]]) -> str:
    """Write a table whose columns can be sorted."""
    heads = "".join(one.html() for one in head)
    body = "".join(
        f"<tr>{row[0].html('th')}{''.join(cell.html('td') for cell in row[1:])}</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f'<table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )
