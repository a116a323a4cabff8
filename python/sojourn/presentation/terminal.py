"""Terminals and pipes: bordered tables or aligned text, and notes wrapped at words."""

import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text as Cell

from sojourn import _core
from sojourn.deferred import Deferred
from sojourn.presentation.model import Block, Code, Items, Paragraph, Section, Table, plain

# Needed on terminals only.
_BORDERED = Deferred("rich.table")
# Space between columns with borders and without.
BORDER = 3
GAP = 2
# The width at which the headings of the first table are wrapped.
HEADING = 16
Rows = Sequence[Sequence[str]]


def show(blocks: Iterable[Block]) -> None:
    """Print paragraphs, lists, lines to copy and tables."""
    for block in blocks:
        match block:
            case Section(_, content):
                show(content)
            case Paragraph(text, is_quiet):
                # What a page explains below its tables, a terminal prints once, behind all.
                if not is_quiet:
                    print_note(plain(text))
            case Items(items):
                for item in items:
                    print_note(f"  {plain(item)}")
            case Code(text):
                print(text)
            case Table():
                print_table(block)


def print_note(note: str) -> None:
    """Print a note; a terminal wraps it at words, but never between a number and its unit."""
    text = _core.printable(note)
    if sys.stdout.isatty():
        joined = re.sub(r"(?<=\d) (?=[%A-Za-zµ])", "\N{NO-BREAK SPACE}", text)
        lines = textwrap.wrap(
            joined, Console().width, break_long_words=False, break_on_hyphens=False
        )
        text = "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
    print(text)


def print_table(table: Table) -> None:
    """Print a table: bordered on a terminal, aligned text in a pipe.

    A table wider than the terminal is continued below, with its first columns repeated; a table of
    text only is wrapped.
    """
    if not sys.stdout.isatty():
        print_aligned(table)
        return
    head, *rows = _cells(table)
    console = Console(highlight=False)
    whole = [list(range(len(head)))]
    is_text = table.words == len(head)
    for columns in whole if is_text else _blocks([head, *rows], console.width, table.lead):
        # Not the title of the table, which would be wrapped at its width.
        console.print(Cell(_core.printable(table.title), style="bold"))
        drawn = _BORDERED.Table()
        for index in columns:
            justify = "left" if index < table.words else "right"
            drawn.add_column(Cell(_stacked(head[index])), justify=justify)
        for row in rows:
            drawn.add_row(*(Cell(_stacked(row[index]) if index else row[0]) for index in columns))
        console.print(drawn)


def print_aligned(table: Table) -> None:
    """Print aligned text, with the lines of a heading above its column."""
    head, *rows = _cells(table)
    headings = [cell.split("\n") for cell in head]
    height = max(map(len, headings))
    above = zip(*([""] * (height - len(lines)) + lines for lines in headings), strict=True)
    widths = [_width(column) - GAP for column in zip(head, *rows, strict=True)]
    if table.title:
        print(_core.printable(table.title))
    for row in [*above, *rows]:
        cells = [
            cell + pad if index < table.words else pad + cell
            for index, cell in enumerate(row)
            for pad in [" " * (widths[index] - cell_len(cell))]
        ]
        print((" " * GAP).join(cells).rstrip())
    print()


def print_fitting(table: Table) -> int:
    """Print the first columns that fit, with wrapped headings; return how many of them follow."""
    columns = list(zip(*_cells(table), strict=True))
    wrapped = [textwrap.fill(heading, HEADING) for heading, *_ in columns]
    used, count = _width(columns[0]), 1
    for column, heading in zip(columns[1:], wrapped[1:], strict=True):
        used += _width([heading, *column[1:]])
        # The first metric is shown, however long the names of the rows are.
        if count > 1 and used > Console().width + GAP:
            break
        count += 1
    rows = [row[:count] for row in table.rows]
    print_aligned(replace(table, columns=[columns[0][0], *wrapped[1:count]], rows=rows))
    return count - 1


def _cells(table: Table) -> list[list[str]]:
    """Write heading and rows; control characters are escaped, also line breaks in cells."""
    head = ["\n".join(map(_core.printable, str(one).split("\n"))) for one in table.columns]
    return [head, *([_core.printable(plain(cell)) for cell in row] for row in table.rows)]


def _width(cells: Sequence[str]) -> int:
    """Return the width of a column without borders, with the space before the next."""
    return GAP + max(cell_len(line) for cell in cells for line in cell.split("\n"))


def _blocks(rows: Rows, width: int, lead: int) -> list[list[int]]:
    """Split the columns into blocks that fit; the first `lead` columns lead every block."""
    stacked = [[row[0], *map(_stacked, row[1:])] for row in rows]
    widths = [BORDER - GAP + _width(column) for column in zip(*stacked, strict=True)]
    first = list(range(lead))
    blocks: list[list[int]] = [first.copy()]
    for index in range(lead, len(widths)):
        used = sum(widths[column] for column in blocks[-1]) + 1
        if len(blocks[-1]) > lead and used + widths[index] > width:
            blocks.append(first.copy())
        blocks[-1].append(index)
    return blocks


def _stacked(text: str) -> str:
    """Put the unit or interval, and each word of a heading, on a line of its own."""
    upper, bracket, lower = text.partition(" [")
    if not bracket:
        return text
    return (upper.replace(" ", "\n") if upper[0].isalpha() else upper) + "\n[" + lower
