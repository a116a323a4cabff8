"""Figures for papers, drawn with matplotlib.

Every function returns the figure and shows nothing; a notebook displays the figure that a cell
returns. :func:`save` writes it with its provenance in the metadata of the file.
"""

import contextlib
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, cast

from matplotlib import rc_context, rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends import backend_pgf
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, checked
from sojourn.plot import curves, drawing, quantities, style
from sojourn.plot.drawing import Kind
from sojourn.result import Result, derived_files, latex
from sojourn.result.metrics import check_arms

# Programs that can measure text, in the order in which they are tried.
_PROGRAMS = ("pdflatex", "lualatex", "xelatex")
_NEEDS_TEX = (
    "PGF needs TeX to measure text; install TeX Live with pdflatex and the LaTeX packages pgf and "
    "underscore, or save the figure as .pdf and include it with \\includegraphics"
)


def written(figure: Figure, path: str | Path, origin: str) -> bytes:
    r"""Write a figure as PGF."""
    failures = []
    for program in _programs():
        try:
            picture = _picture(figure, program)
        except (RuntimeError, ValueError, OSError, backend_pgf.LatexError) as error:
            failures.append(_first_line(error, program))
            continue
        comment = f"% Figure by Sojourn: {_core.printable(origin)}\n"
        return comment.encode() + picture
    message = f"cannot write {path}: {'; '.join([*failures[:1], _NEEDS_TEX])}"
    raise _core.ResultError(message)


def _programs() -> list[str]:
    """List the installed programs; the one that matplotlib is set to comes last."""
    names = dict.fromkeys((*_PROGRAMS, rcParams["pgf.texsystem"]))
    return [name for name in names if shutil.which(name) is not None]


def _picture(figure: Figure, program: str) -> bytes:
    data = BytesIO()
    # Without the fonts of matplotlib, text takes those of the document.
    with rc_context({"pgf.texsystem": program, "pgf.rcfonts": False}), _escaping():
        figure.savefig(data, format="pgf")
    return data.getvalue()


@contextlib.contextmanager
def _escaping() -> Iterator[None]:
    """Escape texts for LaTeX, which the backend of matplotlib leaves to its user."""
    original = backend_pgf._tex_escape  # noqa: SLF001 - there is no other place

    def escape(text: str) -> str:
        # Tick labels are formulas of matplotlib; dollar signs of users are escaped.
        if text.startswith(r"$\mathdefault{"):
            return text.replace("−", r"\ensuremath{-}")
        return latex.escaped(text.replace(r"\$", "$"))

    backend_pgf._tex_escape = escape  # noqa: SLF001
    try:
        yield
    finally:
        backend_pgf._tex_escape = original  # noqa: SLF001


def _first_line(error: Exception, program: str) -> str:
    """Summarise the failure of a program: the line that TeX marks as an error."""
    lines = str(error).splitlines()
    marked = (line[1:].strip() for line in lines if line.startswith("!"))
    text = next(marked, lines[0] if lines else type(error).__name__)
    return f"{program}: {_core.printable(text)}"


# Columns of a legend, and its height in inches for which every figure has room.
_COLUMNS = 4
_LEGEND_ROOM = 0.6
# Largest share of the width of a figure that a legend takes, and the step, in letters, in which
# longer names are broken.
_LEGEND_SHARE = 0.98
_STEP = 4
# Letters of the provenance per inch.
_SMALL_LETTERS = 18

Metric = str | Sequence[str] | None
Size = tuple[float, float] | None
On = Annotated[Axes | None, Argument(help="Axes to draw on.", expected="matplotlib axes")]


class Plot(Figure):
    """A matplotlib figure that notebooks display without a magic command."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, for IPython."""
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


@checked
def plot_ellipse(
    result: Result,
    metric: Metric = None,
    *,
    arms: Sequence[str] | None = None,
    group: str | None = None,
    ax: On = None,
    size: Size = None,
) -> Figure:
    """Draw goodput against induced latency: one panel per direction, one ellipse per arm.

    Small dots are runs, the ellipse is their 1-σ spread, the large dot their median. The delay
    axis is logarithmic and reversed: up and to the right is better.

    Parameters
    ----------
    result
        A result with pings.
    metric
        Which goodput: ``"goodput_up"``, ``"goodput_down"`` or both; by default every direction.
    arms
        Names of the arms to draw; by default all.
    group
        Use only the goodput of this group of flows.
    ax
        Axes to draw on, for a single direction; by default a new figure.
    size
        Width and height of a new figure in inches.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    ResultError
        An argument is not valid; the message says what is accepted.
    """
    shown = _arms(result, arms)
    names = quantities.chosen(result, metric, group, ["goodput"])
    if unfit := [quantity.name for quantity in names if not quantity.name.startswith("goodput_")]:
        rule = "plot_ellipse cannot draw this metric; expected goodput_DIRECTION"
        raise ArgumentError("metric", unfit[0], rule)
    figure, panels = _panels(ax, len(names), size, across=True, width=4.4, height=3.6)
    for axes, quantity in zip(panels, names, strict=True):
        side = quantity.name.removeprefix("goodput_")
        for ellipse in curves.ellipses(result, side, group):
            if ellipse.arm in shown:
                drawing.draw_ellipse(axes, ellipse, style.colour(result.arms.index(ellipse.arm)))
        drawing.latency_axis(axes)
        axes.set_ylabel(drawing.wrapped(quantity.label, drawing.LETTERS))
    return _finished(figure, panels, result, ax)


@checked
def plot_series(
    result: Result,
    metric: Metric = None,
    *,
    arms: Sequence[str] | None = None,
    group: str | None = None,
    kind: Kind = "series",
    ax: On = None,
    size: Size = None,
) -> Figure:
    """Draw ping, goodput, sojourn time and backlog over time; one line per arm.

    Lines are means over short intervals and over replications. A link at which packets hardly wait
    has a panel only if `metric` names it.

    Parameters
    ----------
    result
        Any result.
    metric
        One or several names of quantities: ``"ping"``, ``"goodput_up"``, ``"sojourn_up"`` and
        ``"backlog_up"``, with the name of any direction or link; without it, all of them. A metric
        of :meth:`sojourn.Result.table`, by run, or with `group` by group or application, has one
        value per run and no series.
    arms
        Names of the arms to draw; by default all.
    group
        Draw only the pings and the goodput of this group of flows.
    kind
        ``"series"`` over time, or a distribution after the warm-up: ``"ecdf"``, ``"box"``
        (quartiles, whiskers at the 5th and 95th percentile) or ``"violin"`` (density, a dot at the
        median).
    ax
        Axes to draw on, for a single metric; by default a new figure.
    size
        Width and height of a new figure in inches.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, one panel per quantity.

    Raises
    ------
    ResultError
        An argument is not valid; the message says what is accepted.
    """
    default = ["ping", "goodput", "sojourn", "backlog"]
    return _plot(result, metric, default, arms=arms, group=group, kind=kind, ax=ax, size=size)


@checked
def plot_cdf(
    result: Result,
    metric: Metric = None,
    *,
    arms: Sequence[str] | None = None,
    group: str | None = None,
    kind: Kind = "ecdf",
    ax: On = None,
    size: Size = None,
) -> Figure:
    """Draw the distributions of ping and sojourn times after the warm-up.

    Parameters
    ----------
    result
        Any result.
    metric, arms, group, kind, ax, size
        As for :func:`plot_series`; by default ``"ping"`` and the sojourn times of the links at
        which packets wait, as ``"ecdf"``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: one panel for pings, one per link.

    Raises
    ------
    ResultError
        An argument is not valid; the message says what is accepted.

    Examples
    --------
    >>> import sojourn as sj
    >>> result = sj.run(sj.Scenario(
    ...     links={side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")},
    ...     traffic=[sj.Tcp(direction="up"), sj.Ping(direction="up", interval="100ms")],
    ...     rtt="50ms",
    ...     duration="4s",
    ...     warmup="1s",
    ... ))
    >>> figure = plot_cdf(result, "ping", kind="box", size=(4, 3))
    >>> figure.axes[0].get_ylabel()
    'ping [ms], log scale'
    """
    default = ["ping", "sojourn"]
    return _plot(result, metric, default, arms=arms, group=group, kind=kind, ax=ax, size=size)


def _plot(
    result: Result,
    metric: Metric,
    default: Sequence[str],
    *,
    arms: Sequence[str] | None,
    group: str | None,
    kind: Kind,
    ax: Axes | None,
    size: Size,
) -> Figure:
    """Draw each quantity in a panel: series below each other, distributions side by side."""
    shown = _arms(result, arms)
    drawn = quantities.chosen(result, metric, group, default)
    over_time = kind == "series"
    width, height = (7.0, 1.7) if over_time else (3.4, 3.2)
    figure, panels = _panels(ax, len(drawn), size, across=not over_time, width=width, height=height)
    for axes, quantity in zip(panels, drawn, strict=True):
        drawing.draw(axes, quantity, kind, result, shown)
        if over_time and axes is not panels[-1]:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
    if over_time and ax is None:
        figure.align_ylabels()
    return _finished(figure, panels, result, ax)


def _arms(result: Result, arms: Sequence[str] | None) -> list[str]:
    """Return the arms to draw, in the order of the scenario."""
    if arms is None:
        return result.arms
    check_arms(result.table(), "arms", *arms)
    return [arm for arm in result.arms if arm in arms]


def _panels(
    ax: Axes | None, number: int, size: Size, *, across: bool, width: float, height: float
) -> tuple[Figure, list[Axes]]:
    """Return the figure and its panels: new ones, or the axes that the caller gave."""
    if ax is not None:
        if number != 1:
            rule = f"one axes cannot show {number} panels; expected a single metric"
            raise ArgumentError("ax", rule=rule)
        if size is not None:
            raise ArgumentError(
                "size", rule="cannot be combined with {ax}, whose figure has a size"
            )
        return cast("Figure", ax.get_figure(root=True)), [ax]
    columns, rows = (number, 1) if across else (1, number)
    natural = (width * max(columns, 1), height * max(rows, 1) + 0.9)
    figure = Plot(figsize=_checked(size) or natural, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(number)]


def _checked(size: Size) -> Size:
    if size is not None and not (len(size) == 2 and all(inches > 0 for inches in size)):  # noqa: PLR2004
        rule = "invalid size; expected width and height in inches, such as (7, 4)"
        raise ArgumentError("size", size, rule)
    return size


def save(figure: Figure, path: str | Path, result: Result) -> None:
    """Write a figure with its provenance in the metadata of the file."""
    data = encoded(figure, Path(path), provenance_line(result))
    derived_files.write(path, data, result.manifest_sha256)


def encoded(figure: Figure, path: Path, about: str) -> bytes:
    """Write a figure in a format; the same figure gives the same bytes."""
    kinds: dict[str, dict[str, str | None]] = {
        ".png": {"Title": about, "Software": "Sojourn"},
        ".svg": {"Title": about, "Creator": "Sojourn", "Date": None},
        ".pdf": {"Title": about, "Creator": "Sojourn", "CreationDate": None},
    }
    suffix = path.suffix.lower()
    if suffix == ".pgf":
        return written(figure, path, about)
    metadata = kinds.get(suffix)
    if metadata is None:
        message = f"{path}: unknown figure format; expected .png, .svg, .pdf or .pgf"
        raise _core.ResultError(message)
    data = BytesIO()
    # Identifiers in SVG are random without a salt; publishers reject the Type 3 fonts that
    # matplotlib embeds by default.
    with rc_context({"svg.hashsalt": "sojourn", "pdf.fonttype": 42}):
        figure.savefig(data, format=suffix.removeprefix("."), dpi=200, metadata=metadata)
    return data.getvalue()


def provenance_line(result: Result) -> str:
    """Write the provenance of the numbers in one line."""
    return result.origin


def _finished(figure: Figure, panels: Sequence[Axes], result: Result, ax: Axes | None) -> Figure:
    for axes in panels:
        drawing.add_grid(axes)
    if ax is not None:
        if ax.get_legend_handles_labels()[1]:
            ax.legend(frameon=False, fontsize="small")
        return figure
    if panels and panels[0].get_legend_handles_labels()[1]:
        add_legend(figure, *panels[0].get_legend_handles_labels())
    add_note(figure, provenance_line(result))
    return figure


def add_note(figure: Figure, text: str) -> None:
    """Add a line of small text at the bottom right, wrapped to the width of the figure."""
    line = textwrap.fill(text, int(figure.get_figwidth() * _SMALL_LETTERS)).replace("$", r"\$")
    figure.supxlabel(line, fontsize=6, color="#666666", x=0.99, ha="right")


def add_legend(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Add a legend above the panels, in as many columns as fit, and room for its rows."""
    longest = max(map(len, labels), default=1)
    # A name that is too long even for one column is broken.
    tries = [(columns, longest) for columns in range(min(_COLUMNS, len(labels)), 1, -1)]
    tries += [(1, letters) for letters in range(longest, 0, -_STEP)]
    for columns, letters in tries:
        legend = figure.legend(
            handles,
            [textwrap.fill(label, letters) for label in labels],
            loc="outside upper center",
            ncols=columns,
            frameon=False,
        )
        box = legend.get_window_extent()
        if box.width <= _LEGEND_SHARE * figure.bbox.width:
            break
        legend.remove()
    excess = box.height / figure.dpi - _LEGEND_ROOM
    figure.set_figheight(figure.get_figheight() + max(0.0, excess))
