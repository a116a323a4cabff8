"""Charts as SVG.

Colours are classes (``s0`` for the line of arm 0), which the style sheet of the page defines for
its arms, light and dark.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sojourn.plot import style

# Drawn this large, text is legible both in two columns on a desk and in one on a phone.
WIDTH = 460
HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 10, 42
# The title of the vertical axis needs this much on the left, and its ticks this much to the grid.
AXIS_TITLE, TICK_GAP = 20, 6
# Text on a phone, and the widest digit and point of the fonts of the style sheet, in parts of it.
FONT, DIGIT, POINT = 14, 0.64, 0.32
# The width of letters, on average at most, in parts of the size of text.
LETTER = 0.55


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a chart."""

    label: str
    low: float
    high: float
    logarithmic: bool = False
    descending: bool = False
    names: Sequence[str] = ()

    def place(self, value: float) -> float:
        """Map `value` to 0 (start of the axis) … 1 (its end)."""
        if self.logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 1.0 - share if self.descending else share

    def ticks(self) -> list[float]:
        """Return the round values within the range, or those with names."""
        if self.names:
            return [float(place) for place in range(len(self.names))]
        between = style.logarithmic if self.logarithmic else style.linear
        return between(self.low, self.high)

    def text(self, value: float) -> str:
        """Write a tick."""
        return self.names[int(value)] if self.names else _tick(value)


def named_axis(label: str, names: Sequence[str]) -> Axis:
    """Put names at equal distances."""
    return Axis(label=label, low=-0.5, high=len(names) - 0.5, names=names)


def linear_axis(label: str, values: Sequence[float], *, from_zero: bool) -> Axis:
    """Cover `values` with a margin; from 0 on if the axis is to include 0."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Axis(label=label, low=0.0 if from_zero else low - room, high=high + room)


def log_axis(label: str, values: Sequence[float], *, descending: bool = False) -> Axis:
    """Cover `values` with the same factor as a margin at both ends; at least a factor of 2.

    The label names the scale.
    """
    low, high = min(values), max(values)
    room = max(1.12, math.sqrt(2.0 * low / high))
    scale = "reversed log scale" if descending else "log scale"
    return Axis(
        label=f"{label}, {scale}",
        low=low / room,
        high=high * room,
        logarithmic=True,
        descending=descending,
    )


class Chart:
    """A chart being drawn."""

    def __init__(self, title: str, x: Axis, y: Axis) -> None:
        self._title = title
        self._x = x
        self._y = y
        widest = max((_width(_tick(value)) for value in y.ticks()), default=0.0)
        self._left = max(LEFT, math.ceil(AXIS_TITLE + widest + TICK_GAP))
        self._marks: list[str] = []

    def line(self, arm: int, name: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line of arm number `arm`."""
        place = f'class="s{arm}" points="{self._points(points)}"'
        self._mark(arm, f"<polyline {place}>{_title(name)}</polyline>")

    def area(self, arm: int, name: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw a filled outline of arm number `arm`."""
        place = f'class="f{arm}" points="{self._points(points)}"'
        self._mark(arm, f"<polygon {place}>{_title(name)}</polygon>")

    def dot(self, arm: int, name: str, point: tuple[float, float], *, radius: float) -> None:
        """Draw a dot of arm number `arm`."""
        x, y = self._pixel(*point)
        place = f'class="d{arm}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"'
        self._mark(arm, f"<circle {place}>{_title(name)}</circle>")

    def whisker(self, arm: int, name: str, x: float, ends: tuple[float, float]) -> None:
        """Draw an interval of arm number `arm` as a vertical line."""
        (at, low), (_, high) = (self._pixel(x, end) for end in ends)
        place = f'class="s{arm}" d="M{at:.1f} {low:.1f}V{high:.1f}"'
        self._mark(arm, f"<path {place}>{_title(name)}</path>")

    def svg(self) -> str:
        """Write the chart."""
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self._title)}">'
            f'{self._frame()}<g class="marks">{"".join(self._marks)}</g></svg>'
        )

    def _mark(self, arm: int, shape: str) -> None:
        """Put a shape into the group by which the arm is switched off."""
        self._marks.append(f'<g class="a{arm}">{shape}</g>')

    def _frame(self) -> str:
        parts = []
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        for value in self._x.ticks():
            x, _ = self._pixel(value, self._y.low)
            place = f'x="{x:.1f}" y="{bottom + 16}" text-anchor="middle"'
            parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
            parts.append(f"<text {place}>{self._below(value)}</text>")
        for value in self._y.ticks():
            _, y = self._pixel(self._x.low, value)
            place = f'x="{self._left - TICK_GAP}" y="{y + 4:.1f}" text-anchor="end"'
            parts.append(f'<path class="grid" d="M{self._left} {y:.1f}H{right}"/>')
            parts.append(f"<text {place}>{_tick(value)}</text>")
        middle_x, middle_y = (self._left + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        below = fitted(self._x.label, WIDTH - RIGHT - self._left)
        parts.append(
            f'<text class="axis" x="{middle_x:.0f}" y="{HEIGHT - 6}" text-anchor="middle"{below}>'
            f"{escape(self._x.label)}</text>"
        )
        beside = fitted(self._y.label, HEIGHT - BOTTOM - TOP)
        parts.append(
            f'<text class="axis" transform="translate(13 {middle_y:.0f}) rotate(-90)" '
            f'text-anchor="middle"{beside}>{escape(self._y.label)}</text>'
        )
        return "".join(parts)

    def _below(self, value: float) -> str:
        """Write a tick of the horizontal axis; a long name is cut and shown on hover."""
        text = self._x.text(value)
        if not self._x.names:
            return escape(text)
        room = (WIDTH - RIGHT - self._left) / len(self._x.names) / (FONT * LETTER)
        return f"{escape(shortened(text, int(room)))}{_title(text)}"

    def _pixel(self, x: float, y: float) -> tuple[float, float]:
        return (
            self._left + self._x.place(x) * (WIDTH - self._left - RIGHT),
            HEIGHT - BOTTOM - self._y.place(y) * (HEIGHT - TOP - BOTTOM),
        )

    def _points(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in (self._pixel(*point) for point in points))


def fitted(label: str, room: int) -> str:
    """Return the attributes that squeeze the label of an axis if it may be longer than the axis."""
    if FONT * LETTER * len(label) <= room:
        return ""
    return f' textLength="{room}" lengthAdjust="spacingAndGlyphs"'


def shortened(text: str, letters: int) -> str:
    """Cut a text to a number of letters.

    Examples
    --------
    >>> shortened("fq_codel target 5ms", 9), shortened("codel", 9)
    ('fq_codel…', 'codel')
    """
    return text if len(text) <= letters else f"{text[: max(letters - 1, 1)]}…"


def _title(name: str) -> str:
    return f"<title>{escape(name)}</title>"


def _width(text: str) -> float:
    return FONT * sum(POINT if character == "." else DIGIT for character in text)


def _tick(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")
