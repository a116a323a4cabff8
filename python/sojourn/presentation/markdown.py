"""Markdown of documents, as GitHub and the documentation site render it."""

import textwrap
from collections.abc import Iterable

from sojourn.presentation.model import (
    Block,
    Code,
    Image,
    Inline,
    Items,
    Paragraph,
    Section,
    Styled,
    Table,
    Text,
    Verdict,
)

WIDTH = 120


def written(content: Iterable[Block], level: int = 2) -> str:
    """Write blocks, with empty lines between them."""
    return "\n\n".join(part for block in content if (part := _block(block, level)))


def _block(block: Block, level: int) -> str:  # noqa: PLR0911 - one per kind
    match block:
        case Paragraph(text):
            return _wrapped(_text(text))
        case Items(items):
            return "\n".join(_wrapped(f"* {_text(item)}", "  ") for item in items)
        case Code(text):
            return f"```sh\n{text}\n```"
        case Image(title, path):
            return f"![{_text(title)}]({path})"
        case Table():
            return table(block)
        case Section(title, content, is_folded):
            inner = written(content, level + 1)
            if is_folded and inner:
                return f"<details>\n<summary>{_text(title)}</summary>\n\n{inner}\n\n</details>"
            return inner and f"{'#' * level} {_text(title)}\n\n{inner}"
        case _:
            message = f"no Markdown for {type(block).__name__}"
            raise TypeError(message)


def table(block: Table) -> str:
    r"""Write a table.

    Examples
    --------
    >>> print(table(Table(["id", "n"], [["a|b", "0 < 1"]])))
    | id | n |
    |---|---|
    | a\|b | 0 &lt; 1 |
    """
    rows = [list(map(str, block.columns)), *block.rows]
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(block.columns) + "|", *lines[1:]])


def _cell(text: Text) -> str:
    return "<br>".join(_text(_lines(text)).replace("|", "\\|").split(_BREAK))


# A line break in a cell, while other white space is joined.
_BREAK = "\0"


def _lines(text: Text) -> Text:
    parts = [text] if isinstance(text, Inline) else text
    return [part.replace("\n", _BREAK) if isinstance(part, str) else part for part in parts]


def _text(text: Text) -> str:
    """Join the lines of a text, and escape what Markdown would interpret."""
    parts = [text] if isinstance(text, Inline) else text
    return " ".join("".join(map(_inline, parts)).split())


def _inline(part: Inline) -> str:
    # Only claims that are not met stand out.
    shown = str(part).replace("<", "&lt;")
    match part:
        case Styled(text, "code"):
            return f"`{text}`"
        case Styled(_, "link", target):
            return f"[{shown}]({target})"
        case Styled(_, "strong"):
            return f"**{shown}**"
        case Verdict(_, "bad"):
            return f"**{shown}**"
        case _:
            return shown


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
