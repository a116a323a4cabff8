"""Figures for papers, drawn with matplotlib.

Every function returns the figure and shows nothing; a notebook displays the figure that a cell
returns. :func:`save` writes it with its provenance in the metadata of the file.
"""

import contextlib
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Protocol, cast

from matplotlib import rc_context, rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends import backend_pgf
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, checked
from sojourn.plot import drawing, quantities
from sojourn.plot.drawing import Kind, View
from sojourn.plot.quantities import Quantity
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
# Letters of the provenance and of the title of a panel per inch.
_SMALL_LETTERS, _TITLE_LETTERS = 18, 11

# Sizes of text in narrow figures, and the width in inches below which a figure is narrow.
_SMALL, _NARROW = 8, 4.5
# Width and height of a panel in inches, by kind of figure.
_NATURAL: dict[Kind, tuple[float, float]] = {"series": (7.0, 1.7), "ellipse": (4.4, 3.6)}
# Height in inches below which the arms of a quantity have no panels of their own.
_LOWEST = 0.8
# What is drawn unless the user names it.
_DEFAULTS: dict[Kind, tuple[str, ...]] = {
    "series": ("ping", "goodput", "sojourn", "backlog"),
    "ellipse": ("goodput",),
}

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
    return plot(result, metric, kind="ellipse", arms=arms, group=group, ax=ax, size=size)


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
    """Draw ping, goodput, sojourn time and backlog over time, as :meth:`sojourn.Result.plot` does.

    Parameters
    ----------
    result
        Any result.
    metric
        One or several names of quantities or metrics, as for :meth:`sojourn.Result.plot`.
    arms, group, kind, ax, size
        As for :meth:`sojourn.Result.plot`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, one panel per quantity.

    Raises
    ------
    ResultError
        An argument is not valid; the message says what is accepted.
    """
    default = _DEFAULTS["series"]
    return plot(result, metric, default, kind=kind, arms=arms, group=group, ax=ax, size=size)


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
    metric
        One or several names of quantities or metrics, as for :meth:`sojourn.Result.plot`; by
        default ``"ping"`` and the sojourn times of the links at which packets wait.
    arms, group, kind, ax, size
        As for :meth:`sojourn.Result.plot`.

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
    return plot(result, metric, kind=kind, arms=arms, group=group, ax=ax, size=size)


@checked
def plot(
    result: Result,
    metric: Metric = None,
    default: Sequence[str] = (),
    *,
    kind: Kind | None = None,
    arms: Sequence[str] | None = None,
    group: str | None = None,
    replication: int | None = None,
    ax: On = None,
    size: Size = None,
) -> Figure:
    """Draw quantities, a panel for each: those over time below each other, others side by side."""
    names = [metric] if isinstance(metric, str) else [*(metric or ())]
    if not names and not default:
        default = _DEFAULTS.get(kind or "series", ("ping", "sojourn"))
    drawn = quantities.chosen(result, names, group, default)
    kind = kind or ("series" if all(one.over_time for one in drawn) else "bars")
    over_time = kind == "series"
    view = _view(result, arms, replication, of_flows=over_time and any(o.of_flows for o in drawn))
    parts = [(quantity, view) for quantity in drawn]
    divided = [
        (quantity, replace(view, arms=arms))
        for quantity in drawn
        for arms in ([[arm] for arm in view.arms] if quantity.is_crowded else [view.arms])
    ]
    if over_time and ax is None and (size is None or size[1] >= _LOWEST * len(divided)):
        parts = divided
    width, height = _NATURAL.get(kind, (3.4, 3.2))
    with rc_context({"font.size": _SMALL} if ax is None and size and size[0] < _NARROW else {}):
        figure, panels = _panels(
            ax, len(parts), size, across=not over_time, width=width, height=height
        )
        for at, (axes, (quantity, of)) in enumerate(zip(panels, parts, strict=True)):
            drawing.draw(axes, quantity, kind, of)
            drawing.add_grid(axes)
            words = (
                quantity.part,
                of.arms[0] if len(of.arms) < len(view.arms) else "",
                "" if at else _which(view),
            )
            if title := ", ".join(filter(None, words)):
                letters = int(figure.get_figwidth() * _TITLE_LETTERS)
                axes.set_title(drawing.wrapped(title, letters), loc="left", fontsize="small")
        if ax is None:
            _finish(figure, panels, parts, view, kind)
        elif ax.get_legend_handles_labels()[1]:
            ax.legend(frameon=False, fontsize="small")
    return figure


def _view(
    result: Result, arms: Sequence[str] | None, replication: int | None, *, of_flows: bool
) -> View:
    """Return what to show; of series of flows, one replication, since means hide what they do."""
    known = _replications(result)
    if replication is None:
        replication = known[0] if of_flows and known else None
    elif replication not in known:
        rule = "no finished run; expected {known}"
        ends = " to ".join(dict.fromkeys(f"{known[at]}" for at in (0, -1) if known))
        raise ArgumentError("replication", replication, rule, known=ends or "a result with runs")
    return View(result=result, arms=_arms(result, arms), replication=replication)


def _replications(result: Result) -> list[int]:
    """List the replications of which a run finished."""
    found: list[int] = result.table()["replication"].unique().sort().to_list()
    return found


def _which(view: View) -> str:
    """Name the replication that a figure shows, if there are others."""
    number = len(_replications(view.result))
    if view.replication is None or number == 1:
        return ""
    return f"replication {view.replication}, one of {number}"


def _finish(
    figure: Figure,
    panels: Sequence[Axes],
    parts: Sequence[tuple[Quantity, View]],
    view: View,
    kind: Kind,
) -> None:
    """Add legend and provenance, give panels of one quantity one scale, let all labels fit."""
    scales: dict[tuple[str, str], list[Axes]] = {}
    labelled: dict[str, Artist] = {}
    for axes, (quantity, _) in zip(panels, parts, strict=True):
        handles, labels = axes.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
        scales.setdefault((quantity.name, quantity.part), []).append(axes)
        axes.tick_params(labelsize=rcParams["font.size"])
        if kind == "series" and axes is not panels[-1]:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
    for same in scales.values():
        lows, highs = zip(*(axes.get_ylim() for axes in same), strict=True)
        for axes in same:
            axes.set_ylim(min(lows), max(highs))
    if kind == "series":
        figure.align_ylabels()
    names = [arm for arm in view.arms if arm in labelled]
    if names:
        add_legend(figure, [labelled[name] for name in names], names)
    add_note(figure, f"{_caption(view, kind)}{view.result.origin}")
    fit(figure)


def _caption(view: View, kind: Kind) -> str:
    """Say what the marks of a figure are."""
    runs = 1 if view.replication is not None else len(_replications(view.result))
    few = runs < drawing.FEW
    texts = {
        "series": "Bands: 5th to 95th percentile of the runs. " if runs > 1 else "",
        "box": "Boxes: quartiles; whiskers: 5th and 95th percentile. ",
        "violin": "Black dots: medians. ",
        "bars": f"Bars: means{'; dots: runs' if few else ', with 95 % intervals'}. ",
        "ellipse": "Small dots: runs; large dots: medians; ellipses: 1 σ. ",
    }
    is_shaded = kind == "series" and view.result.scenario.checked.warmup_s > 0
    return ("Grey: warm-up. " if is_shaded else "") + texts.get(kind, "")


def fit(figure: Figure) -> None:
    """Wrap the labels of axes that are longer than their part of the figure."""
    figure.draw_without_rendering()
    whole = figure.bbox
    for axes in figure.axes:
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


class Source(Protocol):
    """A result or a sweep."""

    @property
    def origin(self) -> str:
        """Its provenance in one line."""

    @property
    def manifest_sha256(self) -> str | None:
        """The digest of its manifest, if it is saved."""


def save(figure: Figure, path: str | Path, result: Source) -> None:
    """Write a figure with its provenance in the metadata of the file."""
    data = encoded(figure, Path(path), result.origin)
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
