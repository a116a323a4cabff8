"""Draw figures with matplotlib, for papers and for pages."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Any, cast

import numpy as np
from matplotlib import colormaps, colors, rc_context, rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as Ticks
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from sojourn.presentation import style
from sojourn.presentation.figure import (
    Area,
    Axis,
    Bars,
    Figure,
    HeatMap,
    Intervals,
    Level,
    Line,
    Mark,
    Panel,
    Points,
    Span,
)

GREY, GRID, INK, WHITE = "#666666", "#dddddd", "#000000", "#ffffff"
# Size of text in narrow figures, and the width in inches below which a figure is narrow.
_SMALL, _NARROW = 8, 4.5
# Letters per inch of a label of 10 points, of the provenance and of the title of a panel, and the
# height in inches below which the label of a panel is small.
_LETTERS, _NOTE_LETTERS, _TITLE_LETTERS, _LOW = 15, 18, 11, 2.2
# Columns of a legend, its height in inches for which every figure has room, the largest share of
# the width that it takes, and the step, in letters, in which longer names are broken.
_COLUMNS, _LEGEND_ROOM, _LEGEND_SHARE, _STEP = 4, 0.6, 0.98, 4
# Width of a letter on average, and of the widest digit and point, in parts of the size of text.
_LETTER, _DIGIT, _POINT = 0.55, 0.64, 0.32
# A page is drawn in pixels, as large as text is legible in two columns on a desk and in one on a
# phone, with the text of a phone; a row of a heat map there, and its highest drawing.
PAGE_WIDTH, _PAGE_HEIGHT, _FONT, _DPI = 460, 300, 14, 96
_ROW, _HIGHEST = 30, 420
# Wider figures, in inches, and those of several panels have their own size.
_BROAD = 6.0
_TOP, _RIGHT, _GAP, _BELOW = 10, 10, 6, 42
# Most steps of a linear axis of a page, and how much larger its dots are.
_STEPS, _PAGE_DOTS = 7, 1.6
# The least tick of a logarithmic axis, which has no zero.
_SMALLEST = 1e-6
# Luminance (ITU-R BT.601) of a cell above which its number is black.
_LIGHT, _LUMINANCE = 0.5, (0.299, 0.587, 0.114)


@dataclass(frozen=True, slots=True)
class Tag:
    """What a drawn mark shows: the arm, its colours with their opacity, texts on hover."""

    name: str
    shades: Mapping[str, float]
    hover: Sequence[str]


class Plot(Canvas):
    """A matplotlib figure that notebooks display without a magic command."""

    tags: dict[str, Tag]

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, for IPython."""
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def draw(
    figure: Figure,
    *,
    size: tuple[float, float] | None = None,
    on: Axes | None = None,
    origin: str = "",
) -> Canvas:
    """Draw a figure for a paper; a single panel may be drawn on axes of the caller."""
    if on is not None:
        _draw_panel(on, figure, figure.panels[0], {}, page=False)
        if figure.legend:
            handles = [_handle(figure, mark) for mark in figure.legend]
            names = [plain(mark.label or mark.name) for mark in figure.legend]
            on.legend(handles, names, frameon=False, fontsize="small")
        return cast("Canvas", on.get_figure(root=True))
    with rc_context({"font.size": _SMALL} if size and size[0] < _NARROW else {}):
        plot = _panels(figure, size)
        add_note(plot, " ".join(filter(None, (figure.note, origin))))
        fit(plot)
    return plot


def for_page(figure: Figure) -> Plot:
    """Draw a figure in pixels for a page, whose style sheet has the colours."""
    is_broad = figure.columns * figure.width > _BROAD
    if is_broad or len(figure.panels) > 1 or figure.legend:
        with rc_context({"font.size": _FONT * 72 / _DPI, "figure.dpi": _DPI}):
            plot = _panels(figure, None, page=True)
            fit(plot)
            return plot
    with rc_context({"font.size": _FONT, "figure.dpi": 72}):
        (panel,) = figure.panels
        plot = Plot(figsize=(PAGE_WIDTH / 72, _page_height(panel) / 72), dpi=72)
        plot.tags = {}
        axes = plot.add_axes((0.15, 0.15, 0.8, 0.8))
        _draw_panel(axes, figure, panel, plot.tags, page=True)
        _place(plot, axes, panel)
    return plot


def _page_height(panel: Panel) -> float:
    rows = next((len(mark.values) for mark in panel.marks if isinstance(mark, HeatMap)), 0)
    if not rows:
        return _PAGE_HEIGHT
    # Few rows are higher, so that the label beside them has room.
    label = _FONT * 0.7 * len(panel.y.title)
    return min(_HIGHEST, max(_ROW * max(rows, 3), min(label, 240)) + _TOP + _BELOW)


def _place(plot: Plot, axes: Axes, panel: Panel) -> None:
    """Leave room for ticks and labels in the widest font of the style sheet."""
    width, height = plot.bbox.width, plot.bbox.height
    ticks = axes.yaxis.get_major_formatter().format_ticks(list(axes.yaxis.get_majorticklocs()))
    widest = max((_width(text, named=bool(panel.y.names)) for text in ticks), default=0.0)
    below = _wrap(axes.xaxis.label.get_text(), (width - widest - 50) / (_FONT * 0.58))
    bottom = _BELOW + 17 * below.count("\n")
    top = _TOP
    if panel.title:
        title = _wrap(plain(panel.title), (width - widest - 50) / (_FONT * 0.58))
        axes.set_title(title, loc="left")
        top += 17 * (1 + title.count("\n"))
    # The label of the vertical axis may be as long as the drawing allows around its middle.
    long = height - abs(top - bottom)
    beside = _wrap(axes.yaxis.label.get_text(), long / (_FONT * 0.58))
    axes.xaxis.label.set_text(below)
    axes.yaxis.label.set_text(beside)
    left = 5 + 17 * (1 + beside.count("\n")) + widest + _GAP
    room = (width - left - _RIGHT, height - top - bottom)
    axes.set_position((left / width, bottom / height, room[0] / width, room[1] / height))
    # Where matplotlib would put the labels if it measured all ticks.
    axes.yaxis.set_label_coords(-(widest + _GAP + 5) / room[0], 0.5)
    axes.xaxis.set_label_coords(0.5, -21 / room[1])
    if panel.x.names and not panel.x.places:
        _shorten(axes, panel.x.names, room[0] / len(panel.x.names), plot.tags)


def _width(text: str, *, named: bool) -> float:
    widths = (_POINT if one == "." else 0.6 if named else _DIGIT for one in text)
    return _FONT * sum(widths)


def _wrap(text: str, letters: float) -> str:
    return textwrap.fill(text.replace("\n", " "), max(int(letters), 8))


def _shorten(axes: Axes, names: Sequence[str], room: float, tags: dict[str, Tag]) -> None:
    """Leave out names that have no room, cut the others and show them on hover."""
    letters = room / (_FONT * 0.6)
    every = max(1, math.ceil(3 / max(letters, 1.0)))
    for at, tick in enumerate(axes.xaxis.get_major_ticks()):
        name, label = names[at], tick.label1
        label.set_rotation(0)
        label.set_horizontalalignment("center")
        most = max(int(letters * every) - 1, 2)
        shown = name if len(name) <= most else f"{name[: most - 1]}…"
        label.set_text("" if at % every else plain(shown))
        if shown != name:
            label.set_gid(f"tick-{at}")
            tags[f"tick-{at}"] = Tag("", {}, [name])
    axes.set_xticks(range(len(names)), [tick.label1.get_text() for tick in axes.xaxis.majorTicks])


def _panels(figure: Figure, size: tuple[float, float] | None, *, page: bool = False) -> Plot:
    """Draw the panels of a new figure and its legend."""
    number = len(figure.panels)
    columns = min(figure.columns, number) or 1
    rows = math.ceil(number / columns) or 1
    natural = (figure.width * columns, figure.height * rows + 0.9)
    plot = Plot(figsize=size or natural, layout="constrained")
    FigureCanvasAgg(plot)
    plot.tags = {}
    panels = [plot.add_subplot(rows, columns, place + 1) for place in range(number)]
    scales: dict[str, list[Axes]] = {}
    for at, (axes, panel) in enumerate(zip(panels, figure.panels, strict=True)):
        _draw_panel(axes, figure, panel, plot.tags, page=page)
        if figure.shared and at + columns < number:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
        if panel.scale:
            scales.setdefault(panel.scale, []).append(axes)
    for same in scales.values():
        ends = np.array([axes.get_ylim() for axes in same])
        for axes in same:
            axes.set_ylim(ends[:, 0].min(), ends[:, 1].max())
    plot.align_ylabels()
    if figure.legend:
        add_legend(plot, figure)
    return plot


def _draw_panel(
    axes: Axes, figure: Figure, panel: Panel, tags: dict[str, Tag], *, page: bool
) -> None:
    if panel.x.log:
        axes.set_xscale("log")
        plain_log(axes.xaxis)
    if panel.y.log:
        axes.set_yscale("log")
        plain_log(axes.yaxis)
    pen = _Pen(axes, figure, page)
    for at, mark in enumerate(panel.marks):
        before = set(axes.get_children())
        pen.draw(mark)
        key = f"mark-{len(tags)}"
        tags[key] = _tag(figure, mark)
        for artist in set(axes.get_children()) - before:
            artist.set_gid(key)
            artist.set_zorder(0.2 if isinstance(mark, Span) else 2 + at / 1000)
    _end(axes, panel)
    _write(axes, panel, page=page)
    _dress(axes, panel, page=page)
    if panel.title:
        width = axes.get_figure(root=True).get_figwidth() / min(figure.columns, len(figure.panels))  # type: ignore[union-attr]
        title = wrapped(panel.title, int(width * _TITLE_LETTERS))
        axes.set_title(title, loc="left", fontsize=None if page else "small")


def _tag(figure: Figure, mark: Mark) -> Tag:
    own = colour(figure, mark)
    shades = {colors.to_hex(own): 1.0, colors.to_hex(tinted(own, mark.tint)): 1.0 - mark.tint}
    hover = getattr(mark, "hover", ())
    if isinstance(mark, HeatMap):
        hover = [text for row in hover for text in row]
    return Tag(mark.name, {} if mark.ink else shades, hover or [mark.name])


def _dress(axes: Axes, panel: Panel, *, page: bool) -> None:
    """Draw grid lines behind the marks, and only the left and the bottom edge."""
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if any(isinstance(mark, HeatMap) for mark in panel.marks):
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    elif panel.x.names and not panel.x.places:
        axes.grid(visible=False, axis="x")
    if page:
        axes.patch.set_visible(False)
        axes.figure.patch.set_visible(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, pad=_GAP, labelcolor=GREY)


def _end(axes: Axes, panel: Panel) -> None:
    """Set the ends of both axes."""
    data = axes.dataLim
    ends = (
        (panel.x, *data.intervalx, data.minposx, axes.set_xlim),
        (panel.y, *data.intervaly, data.minposy, axes.set_ylim),
    )
    for axis, low, high, positive, end in ends:
        first, last = _ends(axis, low, high, positive)
        end(*((last, first) if axis.reversed else (first, last)))


def _ends(axis: Axis, low: float, high: float, positive: float) -> tuple[float, float]:
    """Return the ends of an axis of which the marks have these ends, and this least above 0."""
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high, positive = 0.0, 1.0, 0.1
    if axis.zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if axis.log:
        low = max(low if low > 0 else positive, axis.least or 0.0)
        high = max(high, low)
        room = max(1.12, (high / low) ** 0.05, math.sqrt(2.0 * low / high))
        first, last = low / room, high * room
    else:
        room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        first, last = low - room, high + room
        if low >= 0 > first:
            first = 0.0
    if axis.least is not None:
        first = max(first, axis.least)
    return (first if axis.low is None else axis.low, last if axis.high is None else axis.high)


def _write(axes: Axes, panel: Panel, *, page: bool) -> None:
    """Write ticks and labels."""
    for side, axis in ((axes.xaxis, panel.x), (axes.yaxis, panel.y)):
        if axis.names and (not axis.places or _fits(axes, axis)):
            places = axis.places or range(len(axis.names))
            side.set_ticks(list(places), [plain(name) for name in axis.names])
            side.set_minor_locator(NullLocator())
        elif page:
            side.set_minor_locator(NullLocator())
            if not axis.log:
                side.set_major_locator(MaxNLocator(_STEPS, steps=[1, 2, 2.5, 5, 10]))
    if page:
        axes.set_xlabel(plain(panel.x.title))
        axes.set_ylabel(plain(panel.y.title))
        return
    if panel.x.names and not panel.x.places and not _fits(axes, panel.x):
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor")
    height = axes.get_window_extent().height / axes.figure.dpi
    width = axes.get_window_extent().width / axes.figure.dpi
    per_inch = _LETTERS * 10 / rcParams["font.size"]
    letters = max(int(per_inch * height), 16)
    axes.set_xlabel(wrapped(panel.x.title, max(int(per_inch * width), 16)))
    name, bracket, unit = panel.y.title.rpartition(" [")
    if len(panel.y.title) > letters and bracket:
        # Name and unit do not fit on one line of a panel.
        text = f"{wrapped(name, letters)}\n[{plain(unit)}"
    else:
        text = wrapped(panel.y.title, letters)
    axes.set_ylabel(text, fontsize="small" if height < _LOW else None)


def _fits(axes: Axes, axis: Axis) -> bool:
    """Whether the names of a horizontal axis fit side by side."""
    low, high = sorted(axes.get_xlim())
    places = np.array(axis.places or range(len(axis.names)), dtype=float)
    shares = (
        np.log(places / low) / np.log(high / low) if axis.log else (places - low) / (high - low)
    )
    letter = _LETTER * rcParams["font.size"] / 72 * axes.figure.dpi
    pairs = [(len(one) + len(other)) / 2 + 1 for one, other in pairwise(axis.names)]
    room = np.abs(np.diff(shares)) * axes.get_window_extent().width
    return bool((room >= letter * np.array(pairs)).all())


def colour(figure: Figure, mark: Mark) -> str:
    """Return the colour of a mark."""
    if mark.ink:
        return INK
    number = figure.colours.get(mark.name)
    return GREY if number is None else style.colour(number)


def tinted(hue: str, share: float) -> "Hue":
    """Mix a colour with white."""
    red, green, blue = (part + (1 - part) * share for part in colors.to_rgb(hue))
    return red, green, blue


def _dash(figure: Figure, mark: Line) -> tuple[int, tuple[float, ...]] | str:
    """Return the dashes of a line."""
    return style.dash(figure.colours.get(mark.name, 0), mark.dash) if mark.line else "none"


Hue = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class _Pen:
    """Draws a mark on axes in its colour."""

    axes: Axes
    figure: Figure
    page: bool

    def draw(self, mark: Mark) -> None:
        """Draw a mark."""
        _DRAWN[type(mark)](self, mark, tinted(colour(self.figure, mark), mark.tint))

    def line(self, mark: Line, hue: Hue) -> None:
        shape, dash = "steps-post" if mark.step else "default", _dash(self.figure, mark)
        self.axes.plot(mark.x, mark.y, color=hue, ls=dash, lw=mark.width, ds=shape)
        if mark.band is not None:
            self.axes.fill_between(mark.x, *mark.band, color=hue, alpha=0.15, linewidth=0)

    def points(self, mark: Points, hue: Hue) -> None:
        size = (mark.size * (_PAGE_DOTS if self.page else 1.0)) ** 2
        looks: dict[str, Any] = {"c": [hue], "linewidths": 2.0}
        if mark.hollow:
            looks = {"c": [WHITE], "edgecolors": [hue], "linewidths": 0.9}
        elif mark.marker not in "x|":
            looks = {"c": [hue], "edgecolors": [WHITE], "linewidths": 0.6 * mark.edge}
        if mark.fixed:
            looks["transform"] = self.axes.get_xaxis_transform()
        self.axes.scatter(mark.x, mark.y, size, marker=mark.marker, **looks)

    def intervals(self, mark: Intervals, hue: Hue) -> None:
        if not len(mark.x):
            return
        middle = [(low + high) / 2 for low, high in zip(mark.low, mark.high, strict=True)]
        half = [(high - low) / 2 for low, high in zip(mark.low, mark.high, strict=True)]
        cap = 0.0 if self.page else mark.cap
        looks: dict[str, Any] = {"fmt": "none", "ecolor": hue, "elinewidth": 1.0, "capsize": cap}
        if mark.across:
            drawn = self.axes.errorbar(middle, mark.x, xerr=half, **looks)
        else:
            drawn = self.axes.errorbar(mark.x, middle, yerr=half, **looks)
        for artist in drawn.get_children() if mark.outlined else ():
            artist.set_path_effects([withStroke(linewidth=2.4, foreground="white")])

    def bars(self, mark: Bars, hue: Hue) -> None:
        bottom = mark.bottom or [0.0] * len(mark.x)
        sizes = [high - low for low, high in zip(bottom, mark.top, strict=True)]
        edge = colour(self.figure, mark)
        looks: dict[str, Any] = {
            "facecolor": (*hue, mark.alpha),
            "edgecolor": edge,
            "linewidth": 0.8,
        }
        if mark.across:
            self.axes.barh(mark.x, sizes, mark.width, left=bottom, **looks)
        else:
            self.axes.bar(mark.x, sizes, mark.width, bottom=bottom, **looks)

    def area(self, mark: Area, hue: Hue) -> None:
        self.axes.fill(mark.x, mark.y, color=hue, alpha=mark.alpha, linewidth=0)
        self.axes.plot(mark.x, mark.y, color=hue, linewidth=mark.width)

    def span(self, mark: Span, hue: Hue) -> None:
        self.axes.axvspan(mark.low, mark.high, color=hue, alpha=mark.alpha, linewidth=0)

    def level(self, mark: Level, hue: Hue) -> None:
        line = self.axes.axvline if mark.upright else self.axes.axhline
        line(mark.value, color=hue, linestyle=style.DASHES[mark.dash], linewidth=mark.width)
        if mark.text:
            halo = withStroke(linewidth=2.0, foreground="white")
            looks: dict[str, Any] = {"color": hue, "ha": "right"}
            looks |= {} if self.page else {"fontsize": "xx-small", "path_effects": [halo]}
            looks |= {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
            self.axes.annotate(plain(mark.text), (0.995, mark.value), (0, 1.5), **looks)

    def heat_map(self, mark: HeatMap, _: Hue) -> None:
        axes = self.axes
        cells = np.array(mark.values, dtype=float)
        rows, columns = cells.shape
        norm = (colors.LogNorm if mark.log else colors.Normalize)(mark.low, mark.high)
        edges = [np.arange(number + 1) - 0.5 for number in (columns, rows)]
        looks: dict[str, Any] = {"cmap": "viridis", "edgecolors": "white", "linewidth": 0.5}
        mesh = axes.pcolormesh(*edges, np.ma.masked_invalid(cells), norm=norm, **looks)
        box = axes.get_window_extent()
        letter = _LETTER * rcParams["font.size"] / 72 * axes.figure.dpi
        longest = max((len(text) for row in mark.texts for text in row), default=0)
        if box.width / columns > (longest + 1) * letter and box.height / rows > 2 * letter:
            for (row, column), value in np.ndenumerate(cells):
                if np.isnan(value):
                    continue
                light = np.dot(_LUMINANCE, colormaps["viridis"](norm(value))[:3]) > _LIGHT
                looks = {"color": INK if light else WHITE, "ha": "center", "va": "center_baseline"}
                looks["fontsize"] = None if self.page else "small"
                axes.text(column, row, mark.texts[row][column], **looks)
        if not self.page:
            bar = axes.figure.colorbar(mesh, ax=axes, label=plain(mark.scale))
            bar.outline.set_visible(False)
            if mark.log:
                plain_log(bar.ax.yaxis)


_DRAWN: dict[type[Mark], Callable[[_Pen, Any, Hue], None]] = {
    Line: _Pen.line,
    Points: _Pen.points,
    Intervals: _Pen.intervals,
    Bars: _Pen.bars,
    Area: _Pen.area,
    Span: _Pen.span,
    Level: _Pen.level,
    HeatMap: _Pen.heat_map,
}


class _RoundTicks(LogLocator):
    """Ticks at round values, also after the view has changed."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks of a range, of which a reversed axis gives the larger end first."""
        low, high = sorted((vmin, vmax))
        return style.logarithmic(max(low, _SMALLEST), high)


def plain_log(axis: Ticks) -> None:
    """Label a logarithmic axis with numbers instead of powers."""
    axis.set_major_locator(_RoundTicks())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def wrapped(label: str, letters: int) -> str:
    """Wrap a text, and take dollar signs in the names of users for dollar signs."""
    return plain(textwrap.fill(label, letters))


def plain(text: str) -> str:
    """Escape dollar signs, which matplotlib takes for math."""
    return text.replace("$", r"\$")


def fit(plot: Plot) -> None:
    """Wrap the labels of axes that are longer than their part of the figure."""
    plot.draw_without_rendering()
    whole = plot.bbox
    for axes in plot.axes:
        place = axes.get_subplotspec()
        rows, columns = (1, 1) if place is None else place.get_gridspec().get_geometry()
        for label, low, high, part in (
            (axes.xaxis.label, "x0", "x1", whole.width / columns),
            (axes.yaxis.label, "y0", "y1", whole.height / rows),
        ):
            start, end = (getattr(label.get_window_extent(), side) for side in (low, high))
            middle = (start + end) / 2
            room = min(2 * min(middle - getattr(whole, low), getattr(whole, high) - middle), part)
            if end - start > room:
                letters = max(map(len, label.get_text().split("\n")))
                text = label.get_text().replace("\n", " ")
                # A little less, since letters have different widths.
                width = int(0.95 * letters * room / (end - start))
                label.set_text(textwrap.fill(text, max(width, 8)))


def add_note(plot: Plot, text: str) -> None:
    """Add a line of small text at the bottom right, wrapped to the width of the figure."""
    line = wrapped(text, int(plot.get_figwidth() * _NOTE_LETTERS))
    plot.supxlabel(line, fontsize=6, color=GREY, x=0.99, ha="right")


def add_legend(plot: Plot, figure: Figure) -> None:
    """Add a legend above the panels, in as many columns as fit, and room for its rows."""
    handles = [_handle(figure, mark) for mark in figure.legend]
    labels = [mark.label or mark.name for mark in figure.legend]
    longest = max(map(len, labels), default=1)
    # A name that is too long even for one column is broken.
    tries = [(columns, longest) for columns in range(min(_COLUMNS, len(labels)), 1, -1)]
    tries += [(1, letters) for letters in range(longest, 0, -_STEP)]
    for columns, letters in tries:
        legend = plot.legend(
            handles,
            [wrapped(label, letters) for label in labels],
            title=plain(figure.legend_title) or None,
            loc="outside upper center",
            ncols=columns,
            frameon=False,
        )
        box = legend.get_window_extent()
        if box.width <= _LEGEND_SHARE * plot.bbox.width:
            break
        legend.remove()
    for handle, mark in zip(legend.legend_handles, figure.legend, strict=True):
        key = f"mark-{len(plot.tags)}"
        plot.tags[key] = _tag(figure, mark)
        if handle is not None:
            handle.set_gid(key)
    excess = box.height / plot.dpi - _LEGEND_ROOM
    plot.set_figheight(plot.get_figheight() + max(0.0, excess))


def _handle(figure: Figure, mark: Mark) -> Artist:
    """Return what stands for a mark in a legend."""
    own = colour(figure, mark)
    hue = tinted(own, mark.tint)
    looks: dict[str, Any] = {"color": hue}
    match mark:
        case Line():
            looks |= {"ls": _dash(figure, mark), "lw": mark.width, "marker": mark.marker, "ms": 4}
            return Line2D([], [], **looks)
        case Points():
            looks |= {"mfc": WHITE, "mew": 0.9} if mark.hollow else {}
            return Line2D([], [], ls="", marker=mark.marker, ms=mark.size, **looks)
        case Bars():
            return Patch(facecolor=(*hue, mark.alpha), edgecolor=own, linewidth=0.8)
    return Patch(facecolor=hue)
