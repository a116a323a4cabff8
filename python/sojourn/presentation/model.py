"""What is presented, as values: documents of sections, tables, notes and lines to copy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    # Most documents have no figure.
    from sojourn.presentation.figure import Figure

MISSING = "–"
Tone = Literal["good", "weak", "bad", ""]


class Markup(str):
    """HTML, which is not escaped."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval; with `signed`, a difference, of which `clear` ones have a star."""

    mean: float | None
    low: float | None = None
    high: float | None = None
    decimals: int = 0
    signed: bool = False
    clear: bool | None = None

    @property
    def value(self) -> str:
        """The mean."""
        if self.mean is None:
            return MISSING
        text = self._number(self.mean)
        # A value that rounds to 0 has no sign and is not marked.
        return f"{text}*" if self.clear and text[0] in "+−" else text

    @property
    def half(self) -> str:
        """Half the width of the interval; empty without one."""
        if self.mean is None or self.low is None or self.high is None:
            return ""
        return f"{(self.high - self.low) / 2.0:.{self.decimals}f}"

    @property
    def span(self) -> str:
        """The ends of the interval; empty without one."""
        if self.low is None or self.high is None:
            return ""
        ends = self._number(self.low), self._number(self.high)
        return f"[{', '.join(ends)}]" if self.signed else " to ".join(ends)

    def _number(self, value: float) -> str:
        if not self.signed:
            return f"{value:z.{self.decimals}f}"
        text = f"{value:+.{self.decimals}f}"
        nonzero = any(digit in "123456789" for digit in text)
        return (text if nonzero else text[1:]).replace("-", "−")

    def __str__(self) -> str:
        """Write the mean with its interval on one line."""
        if self.signed:
            return f"{self.value} {self.span}".rstrip()
        return f"{self.value} ±{self.half}" if self.half else self.value


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict, coloured by its tone, after the value that it is on."""

    text: str
    tone: Tone = ""
    value: str = ""

    def __str__(self) -> str:
        """Write value and verdict."""
        return f"{self.value}: {self.text}" if self.value else self.text


@dataclass(frozen=True, slots=True)
class Styled:
    """A text that stands out in HTML: strong, code, quiet below the line, or a link."""

    text: str
    kind: Literal["strong", "code", "small", "link"] = "strong"
    target: str = ""

    def __str__(self) -> str:
        """Write the text."""
        return self.text


@dataclass(frozen=True, slots=True)
class Named:
    """The name of what figures draw in a colour, with its place in the legend."""

    text: str
    place: int

    def __str__(self) -> str:
        """Write the name."""
        return self.text


@dataclass(frozen=True, slots=True)
class Keyed:
    """A text that is sorted by a number."""

    text: str
    key: float | None

    def __str__(self) -> str:
        """Write the text."""
        return self.text


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar for a share of the longest one in its table."""

    share: float

    def __str__(self) -> str:
        """Write the share."""
        return f"{self.share:.0%}"


Inline = str | Estimate | Verdict | Styled | Named | Keyed | Bar
# Parts of a text follow each other; a line break separates lines.
Text = Inline | Sequence[Inline]


def plain(text: Text) -> str:
    """Write a text without styles.

    Examples
    --------
    >>> plain(["run ", Styled("sojourn demo", "code")])
    'run sojourn demo'
    """
    return str(text) if isinstance(text, Inline) else "".join(map(str, text))


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column; the definition is shown on hover."""

    heading: str
    definition: str = ""

    def __str__(self) -> str:
        """Write the heading."""
        return self.heading


Columns = Sequence[Column | str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the first `words` columns hold text, the others numbers; `lead` ones name the row.

    `kind` is ``sortable`` for a table whose headings sort it, ``bars`` for one with bars.
    """

    columns: Columns
    rows: Sequence[Sequence[Text]]
    title: str = ""
    words: int = 1
    lead: int = 1
    kind: Literal["", "sortable", "bars"] = ""

    def turned(self) -> "Table":
        """Exchange the rows, which are arms, and the columns, which are metrics."""
        names = [plain(row[0]) for row in self.rows]
        cells = zip(*(row[1:] for row in self.rows), strict=True)
        rows = [[str(head), *row] for head, row in zip(self.columns[1:], cells, strict=True)]
        return Table(["metric", *names], rows, self.title)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; a quiet one explains what stands above it."""

    text: Text
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list of texts."""

    items: Sequence[Text]
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy."""

    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation and where it is from."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures, side by side if there is space, in the colours of these names."""

    drawings: "Sequence[Figure | Markup]"
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a file beside a document in Markdown."""

    title: str
    path: str


@dataclass(frozen=True, slots=True)
class Legend:
    """Boxes that show and hide what figures draw under names; without `boxes`, their colours."""

    names: Sequence[str]
    what: str = "Arms"
    boxes: bool = True


@dataclass(frozen=True, slots=True)
class Note:
    """What limits the conclusions: ``valid``, ``weak`` or ``invalid``."""

    title: str
    content: Sequence["Block"]
    severity: str = "weak"


@dataclass(frozen=True, slots=True)
class Section:
    """A section, which is left out if it has no content; a folded one opens on a click."""

    title: str
    content: Sequence["Block"]
    folded: bool = False


Block = (
    Paragraph | Items | Table | Code | Quote | Figures | Image | Legend | Note | Section | Markup
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page: its title, what stands below it, and its sections."""

    title: str
    head: Sequence[Block] = ()
    content: Sequence[Block] = ()
    # Names whose colours its figures use, and facts about it for programs.
    names: Sequence[str] = ()
    meta: Mapping[str, str] = field(default_factory=dict)
    is_sortable: bool = False


def quiet(text: str) -> list[Block]:
    """Make a quiet paragraph; nothing of an empty text."""
    return [Paragraph(text, quiet=True)] if text else []


def text_table(
    columns: Sequence[Column | str], rows: Iterable[Sequence[Text]], title: str = ""
) -> Table:
    """Make a table of text alone."""
    return Table(columns, list(rows), title, words=len(columns))


def facts(rows: Iterable[tuple[str, Text]]) -> Table:
    """Make a table of names and values."""
    return text_table(["item", "value"], rows)
