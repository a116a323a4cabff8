"""Figures as values: panels with axes and marks, a note, and the data as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, cast

from sojourn.deferred import Deferred

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# Matplotlib is slow to import.
_DRAW = Deferred("sojourn.presentation.draw")
# Fewer runs than this are drawn as dots, not as a box or an interval.
FEW = 6
# Half the width of the boxes, bars and violins of an arm.
HALF_WIDTH = 0.4

Numbers = Sequence[float]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a panel; ends that are None leave a margin around the marks."""

    label: str = ""
    _: KW_ONLY
    log: bool = False
    reversed: bool = False
    low: float | None = None
    high: float | None = None
    # Whether it shows 0.
    zero: bool = False
    # A chosen end is not below this; it is never below 0 if no mark is.
    least: float | None = None
    # Texts of the ticks, and where they are unless they are at 0, 1, 2 and so on.
    names: Sequence[str] = ()
    places: Numbers = ()

    @property
    def title(self) -> str:
        """The label and, unless it is linear, the scale."""
        scale = f"{'reversed ' if self.reversed else ''}log scale"
        return f"{self.label}, {scale}" if self.log else self.label


def named_axis(names: Sequence[str], label: str = "", *, half: float = 0.6) -> Axis:
    """Put names at equal distances."""
    return Axis(label=label, names=names, low=-half, high=len(names) - 1 + half)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a panel shows of an arm, whose colour it has; without a name it is in grey."""

    name: str = ""
    _: KW_ONLY
    # The share of white in the colour.
    tint: float = 0.0
    # Whether it has the colour of text instead, such as an interval on a bar.
    ink: bool = False
    # In a legend; by default the name.
    label: str = ""


@dataclass(frozen=True, slots=True)
class Line(Mark):
    """A line, with the band around it. The patterns of dashes have numbers; 0 is solid."""

    x: Numbers = ()
    y: Numbers = ()
    _: KW_ONLY
    band: tuple[Numbers, Numbers] | None = None
    step: bool = False
    dash: int = 0
    width: float = 1.3
    marker: str = ""
    line: bool = True


@dataclass(frozen=True, slots=True)
class Points(Mark):
    """Points of a diameter in points, each with its text on hover."""

    x: Numbers = ()
    y: Numbers = ()
    _: KW_ONLY
    hover: Sequence[str] = ()
    marker: str = "o"
    size: float = 3.7
    # Whether they are white inside, and stand apart from what is below them.
    hollow: bool = False
    edge: bool = True
    # Whether y is a share of the height of the panel.
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Intervals(Mark):
    """Intervals between `low` and `high`, along the vertical axis unless they lie across."""

    x: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    _: KW_ONLY
    hover: Sequence[str] = ()
    across: bool = False
    cap: float = 2.5
    # Whether a light line around them separates them from bars of any colour.
    outlined: bool = False


@dataclass(frozen=True, slots=True)
class Bars(Mark):
    """Bars of a width, from `bottom` to `top`, upright unless they lie across."""

    x: Numbers = ()
    top: Numbers = ()
    _: KW_ONLY
    bottom: Numbers = ()
    width: float = 2 * HALF_WIDTH
    across: bool = False
    alpha: float = 0.5
    hover: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Area(Mark):
    """A filled outline, such as an ellipse or a violin."""

    x: Numbers = ()
    y: Numbers = ()
    _: KW_ONLY
    alpha: float = 0.3
    width: float = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(Mark):
    """Cells in rows, the lowest row first, coloured from `low` to `high`; None: no value."""

    values: Sequence[Sequence[float | None]]
    texts: Sequence[Sequence[str]]
    hover: Sequence[Sequence[str]] = ()
    low: float
    high: float
    log: bool = False
    # Beside the scale of colours.
    scale: str = ""


@dataclass(frozen=True, slots=True)
class Level(Mark):
    """A dotted line across a panel, such as a target, with a text."""

    value: float = 0.0
    text: str = ""
    _: KW_ONLY
    upright: bool = False
    width: float = 1.0
    dash: int = 2


@dataclass(frozen=True, slots=True)
class Span(Mark):
    """A shaded part of the horizontal axis, such as the warm-up."""

    low: float = 0.0
    high: float = 0.0
    _: KW_ONLY
    alpha: float = 0.07


@dataclass(frozen=True, slots=True)
class Panel:
    """Axes and what they show, in the order in which it is drawn."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    _: KW_ONLY
    title: str = ""
    # Panels with the same word have the same vertical scale.
    scale: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: its title in words, its panels, what they are drawn as, and the data."""

    title: str
    panels: Sequence[Panel]
    # The numbers of the colours of the names of marks.
    colours: Mapping[str, int]
    _: KW_ONLY
    # Samples of marks, without data, above the panels.
    legend: Sequence[Mark] = ()
    legend_title: str = ""
    note: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    columns: int = 1
    # Of a panel, in inches.
    width: float = 6.0
    height: float = 4.0
    # Whether only the lowest panels have numbers at their horizontal axes.
    shared: bool = False

    def drawn(self, origin: str = "") -> "Canvas":
        """Draw it with matplotlib, and state the origin of the data."""
        return cast("Canvas", _DRAW.draw(self, origin=origin))


def boxes(name: str, place: float, quantiles: Numbers, half: float = HALF_WIDTH) -> list[Mark]:
    """Draw five quantiles: the ends of whiskers, the quartiles, and the median in the middle."""
    low, first, median, third, high = quantiles
    ends = (place - half, place + half)
    return [
        Intervals(name, [place] * 2, [low, third], [first, high], cap=0.0),
        Bars(name, [place], [third], bottom=[first], width=2 * half),
        Line(name, ends, (median, median), ink=True),
    ]


def dots(name: str, place: float, values: Numbers, spread: float = 0.15) -> Points:
    """Draw values as dots side by side."""
    last = max(len(values) - 1, 1)
    aside = [spread * (2 * at / last - 1) if len(values) > 1 else 0.0 for at in range(len(values))]
    return Points(name, [place + one for one in aside], values)
