"""Scripts of pages and their sortable tables, and the policy that permits no other script.

A page contains the script itself. Its Content-Security-Policy has the SHA-256 of the script, so
that a browser runs neither a modified script nor one that a name in a scenario smuggles in
(Content Security Policy Level 3, section 2.3.1; W3C).
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources


def sorting() -> str:
    """Return the script that makes the tables of class ``sortable`` sortable."""
    return resources.files("sojourn.report").joinpath("sorting.js").read_text(encoding="utf-8")


def element(script: str) -> str:
    """Write the element of a script."""
    return f"<script>{script}</script>"


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
