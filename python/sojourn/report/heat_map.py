"""Heat maps as SVG: a table whose cells are coloured by their value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sojourn.report.chart import FONT, LETTER, WIDTH, Axis, fitted, shortened

# Height of a row, and of the labels below the cells.
_ROW, _BOTTOM, _TOP = 30, 44, 6
# Widest label of a row, in letters, and room beside it.
_LETTERS, _GAP, _TITLE, _RIGHT = 16, 8, 20, 4
# A cell that is narrower has no room for its number.
_NUMBERED = 40
_LEAST_ROWS, _MOST_HEIGHT = 3, 420
# Matplotlib's colour map viridis at equal distances: its lightness grows evenly, also for readers
# who cannot distinguish colours.
_VIRIDIS = (
    (68, 1, 84),
    (72, 40, 120),
    (62, 74, 137),
    (49, 104, 142),
    (38, 130, 142),
    (31, 158, 137),
    (53, 183, 121),
    (109, 205, 89),
    (180, 222, 44),
    (253, 231, 37),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a heat map."""

    value: float | None
    text: str
    hover: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A heat map."""

    title: str
    x: str
    y: str
    columns: Sequence[str]
    rows: Sequence[str]
    cells: Sequence[Sequence[Cell]]
    low: float
    high: float
    logarithmic: bool = False

    def svg(self) -> str:
        """Write the heat map."""
        longest = min(max(len(name) for name in self.rows), _LETTERS)
        left = _TITLE + longest * FONT * LETTER + _GAP
        height = min(_ROW, (_MOST_HEIGHT - _TOP - _BOTTOM) / len(self.rows))
        # Few rows are higher, so that the label beside them has room.
        most = _MOST_HEIGHT - _TOP - _BOTTOM
        inner = max(
            height * max(len(self.rows), _LEAST_ROWS), min(FONT * LETTER * len(self.y), most)
        )
        height = inner / len(self.rows)
        width = (WIDTH - left - _RIGHT) / len(self.columns)
        total = inner + _TOP + _BOTTOM
        parts = []
        for place, (name, cells) in enumerate(zip(self.rows, self.cells, strict=True)):
            y = _TOP + inner - (place + 1) * height
            parts.append(_label(left - _GAP / 2, y + height / 2 + 4, "end", name, _LETTERS))
            for column, cell in enumerate(cells):
                parts.append(self._cell(cell, (left + column * width, y), (width, height)))
        letters = int(width / (FONT * LETTER))
        every = max(1, -(-2 // max(letters, 1)))
        for place, name in enumerate(self.columns):
            if place % every == 0:
                x = left + (place + 0.5) * width
                parts.append(_label(x, _TOP + inner + 16, "middle", name, letters * every))
        middle_x, middle_y = (left + WIDTH - _RIGHT) / 2, _TOP + inner / 2
        across = int((WIDTH - left) / (FONT * LETTER))
        parts.append(
            f'<text class="axis" x="{middle_x:.0f}" y="{total - 6:.0f}" text-anchor="middle">'
            f"{_cut(self.x, across)}</text>"
            f'<text class="axis" transform="translate(13 {middle_y:.0f}) rotate(-90)" '
            f'text-anchor="middle"{fitted(self.y, math.ceil(inner))}>{escape(self.y)}</text>'
        )
        return (
            f'<svg viewBox="0 0 {WIDTH} {total:.0f}" role="img" aria-label="{escape(self.title)}">'
            f'<g class="heat">{"".join(parts)}</g></svg>'
        )

    def _cell(self, cell: Cell, place: tuple[float, float], size: tuple[float, float]) -> str:
        (x, y), (width, height) = place, size
        box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        hover = f"<title>{escape(cell.hover)}</title>"
        if cell.value is None:
            return f'<rect class="missing" {box}>{hover}</rect>'
        scaled = Axis(
            label="",
            low=self.low,
            high=self.high if self.high > self.low else self.low + 1.0,
            logarithmic=self.logarithmic,
        )
        red, green, blue = colour(scaled.place(cell.value))
        number = ""
        if width >= max(_NUMBERED, len(cell.text) * FONT * LETTER) and height >= FONT:
            # Half of the largest luminance that ITU-R BT.601 gives.
            is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 127  # noqa: PLR2004
            ink = "dark" if is_light else "light"
            number = (
                f'<text class="{ink}" x="{x + width / 2:.1f}" y="{y + height / 2 + 4:.1f}" '
                f'text-anchor="middle">{escape(cell.text)}{hover}</text>'
            )
        return f'<rect fill="rgb({red},{green},{blue})" {box}>{hover}</rect>{number}'


def colour(share: float) -> tuple[int, int, int]:
    """Return the colour of a share from 0 to 1 as red, green and blue.

    Examples
    --------
    >>> colour(0.0), colour(1.0)
    ((68, 1, 84), (253, 231, 37))
    """
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    part = place - low
    red, green, blue = (
        round(one + part * (other - one))
        for one, other in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True)
    )
    return red, green, blue


def _label(x: float, y: float, anchor: str, text: str, letters: int) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}>{_cut(text, letters)}</text>"


def _cut(text: str, letters: int) -> str:
    cut = shortened(text, letters)
    hover = "" if cut == text else f"<title>{escape(text)}</title>"
    return f"{escape(cut)}{hover}"
