"""Figures for papers, drawn with matplotlib.

Every function returns the figure and shows nothing; a notebook displays the figure that a cell
returns. :func:`save` writes it with its provenance in the metadata of the file.
"""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Annotated, Protocol

from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.backends import backend_pgf
from matplotlib.figure import Figure as Canvas

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, checked
from sojourn.plot import quantities
from sojourn.plot.panels import Kind, View, panel
from sojourn.presentation import draw, latex
from sojourn.presentation.figure import FEW, Figure, Line, Mark, Panel, Points
from sojourn.result import Result, derived_files
from sojourn.result.estimates import check_arms

# Programs that can measure text, in the order in which they are tried.
_PROGRAMS = ("pdflatex", "lualatex", "xelatex")
_NEEDS_TEX = (
    "PGF needs TeX to measure text; install TeX Live with pdflatex and the LaTeX packages pgf and "
    "underscore, or save the figure as .pdf and include it with \\includegraphics"
)


def written(figure: Canvas, path: str | Path, origin: str) -> bytes:
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


def _picture(figure: Canvas, program: str) -> bytes:
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


@checked
def plot_ellipse(
    result: Result,
    metric: Metric = None,
    *,
    arms: Sequence[str] | None = None,
    group: str | None = None,
    ax: On = None,
    size: Size = None,
) -> Canvas:
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
) -> Canvas:
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
) -> Canvas:
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
) -> Canvas:
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
    panels = []
    for at, (quantity, of) in enumerate(parts):
        one = panel(quantity, kind, of)
        words = (
            quantity.part,
            of.arms[0] if len(of.arms) < len(view.arms) else "",
            "" if at else _which(view),
        )
        panels.append(replace(one, title=", ".join(filter(None, words))))
    width, height = _NATURAL.get(kind, (3.4, 3.2))
    figure = Figure(
        title=", ".join(one.label for one in drawn),
        panels=panels,
        colours=view.colours,
        legend=_legend(panels, view, kind),
        note=_caption(view, kind),
        columns=1 if over_time else len(panels),
        width=width,
        height=height,
        shared=over_time,
    )
    if ax is not None and len(panels) != 1:
        rule = f"one axes cannot show {len(panels)} panels; expected a single metric"
        raise ArgumentError("ax", rule=rule)
    if ax is not None and size is not None:
        raise ArgumentError("size", rule="cannot be combined with {ax}, whose figure has a size")
    return draw.draw(figure, size=_checked(size), on=ax, origin=result.origin)


def _legend(panels: Sequence[Panel], view: View, kind: Kind) -> list[Mark]:
    """Return samples of the arms that are drawn, unless they have names below them."""
    if kind not in {"series", "ecdf", "ellipse"}:
        return []
    drawn = {mark.name for one in panels for mark in one.marks if isinstance(mark, Line | Points)}
    sample = Points if kind == "ellipse" else Line
    return [sample(name=arm) for arm in view.arms if arm in drawn]


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


def _caption(view: View, kind: Kind) -> str:
    """Say what the marks of a figure are."""
    runs = 1 if view.replication is not None else len(_replications(view.result))
    few = runs < FEW
    texts = {
        "series": "Bands: 5th to 95th percentile of the runs." if runs > 1 else "",
        "box": "Boxes: quartiles; whiskers: 5th and 95th percentile.",
        "violin": "Black dots: medians.",
        "bars": f"Bars: means{'; dots: runs' if few else ', with 95 % intervals'}.",
        "ellipse": "Small dots: runs; large dots: medians; ellipses: 1 σ.",
    }
    is_shaded = kind == "series" and view.result.scenario.checked.warmup_s > 0
    return " ".join(filter(None, ["Grey: warm-up." if is_shaded else "", texts.get(kind, "")]))


def _arms(result: Result, arms: Sequence[str] | None) -> list[str]:
    """Return the arms to draw, in the order of the scenario."""
    if arms is None:
        return result.arms
    check_arms(result.table()["arm"], "arms", *arms)
    return [arm for arm in result.arms if arm in arms]


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


def save(figure: Canvas, path: str | Path, result: Source) -> None:
    """Write a figure with its provenance in the metadata of the file."""
    data = encoded(figure, Path(path), result.origin)
    derived_files.write(path, data, result.manifest_sha256)


def encoded(figure: Canvas, path: Path, about: str) -> bytes:
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
