"""Figures for papers, drawn with matplotlib.

Every function returns the figure and shows nothing; :func:`save` writes it with its provenance
in the metadata of the file.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn import _core
from sojourn.document import needs
from sojourn.plot import curves, palette
from sojourn.result import Result

# A logarithmic axis that spans less than this has room for labels at 2 and 5.
_NARROW = 400.0
# Columns of a legend, and its height in inches for which every figure has room.
_COLUMNS = 4
_LEGEND_ROOM = 0.6
# Largest share of the width of a figure that a legend takes, and the step, in letters, in which
# longer names are broken.
_LEGEND_SHARE = 0.98
_STEP = 4
# Letters of the provenance per inch.
_SMALL_LETTERS = 18
_DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)))


def plot_ellipse(result: Result) -> Figure:
    """Draw goodput against induced latency: one panel per direction, one ellipse per arm.

    Small dots are runs, the ellipse is their 1-σ spread, the large dot their median. The delay
    axis is logarithmic and reversed: up and to the right is better.

    Parameters
    ----------
    result
        A result with pings.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    needs("result", result, Result, "a Result")
    sides = curves.directions(result)
    figure = _figure(columns=len(sides), rows=1, width=4.4, height=3.6)
    for index, side in enumerate(sides):
        axes = figure.add_subplot(1, len(sides), index + 1)
        for ellipse in curves.ellipses(result, side):
            colour = palette.colour(result.arms.index(ellipse.arm))
            if ellipse.outline:
                xs, ys = zip(*ellipse.outline, strict=True)
                axes.fill(xs, ys, color=colour, alpha=0.3, linewidth=0)
                axes.plot(xs, ys, color=colour, linewidth=1.2)
            axes.scatter(
                ellipse.delay_ms, ellipse.goodput_mbit_per_s, s=4, color=colour, linewidths=0
            )
            axes.scatter(
                *ellipse.centre,
                s=16,
                color=colour,
                edgecolors="white",
                linewidths=0.6,
                zorder=3,
                label=ellipse.arm,
            )
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.margins(0.12)
        _plain_log(axes.xaxis)
        axes.set_xlabel("induced latency [ms], smaller to the right")
        axes.set_ylabel(f"goodput {side} [Mbit/s]")
    return _finished(figure, result)


def plot_series(result: Result) -> Figure:
    """Draw ping, goodput, sojourn time and backlog over time; one line per arm.

    Lines are means over short intervals and over replications.

    Parameters
    ----------
    result
        Any result.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, one panel per quantity.
    """
    needs("result", result, Result, "a Result")
    panels: list[tuple[str, Sequence[curves.Curve], bool]] = [
        ("ping [ms]", curves.ping_curves(result), True)
    ]
    panels += [
        (f"goodput {side} [Mbit/s]", curves.goodput_curves(result, side), False)
        for side in curves.directions(result)
    ]
    for link in curves.link_names(result):
        panels.append((f"sojourn time {link} [ms]", curves.sojourn_curves(result, link), True))
        panels.append((f"backlog {link} [packets]", curves.backlog_curves(result, link), False))
    # A queue that was never used has nothing to show, least of all on a logarithmic axis.
    panels = [panel for panel in panels if any(max(line.y) > 0.0 for line in panel[1])]
    figure = _figure(columns=1, rows=len(panels), width=7.0, height=1.7)
    for index, (label, lines, logarithmic) in enumerate(panels):
        axes = figure.add_subplot(len(panels), 1, index + 1)
        _draw(axes, lines, result.arms)
        axes.set_ylabel(label, fontsize="small")
        if logarithmic:
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            if low < curves.SMALLEST_MS < high:
                axes.set_ylim(bottom=curves.SMALLEST_MS)
            _plain_log(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlim(0, result.scenario.checked.duration_s)
        if index == len(panels) - 1:
            axes.set_xlabel("time [s]")
        else:
            axes.tick_params(labelbottom=False)
    figure.align_ylabels()
    return _finished(figure, result)


def plot_cdf(result: Result) -> Figure:
    """Draw the distributions of ping and sojourn times after the warm-up.

    Parameters
    ----------
    result
        Any result.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: one panel for pings, one per link.
    """
    needs("result", result, Result, "a Result")
    panels: list[tuple[str, Sequence[curves.Curve]]] = [("ping [ms]", curves.ping_cdfs(result))]
    panels += [
        (f"sojourn time {link} [ms]", curves.sojourn_cdfs(result, link))
        for link in curves.link_names(result)
    ]
    panels = [(label, lines) for label, lines in panels if _visible(lines)]
    figure = _figure(columns=len(panels), rows=1, width=3.4, height=3.2)
    for index, (label, lines) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), index + 1)
        _draw(axes, lines, result.arms)
        axes.set_xscale("log")
        _plain_log(axes.xaxis)
        axes.set_ylim(0, 1)
        axes.set_xlabel(label)
        if index == 0:
            axes.set_ylabel("cumulative share")
    return _finished(figure, result)


def save(figure: Figure, path: str | Path, result: Result) -> None:
    """Write a figure with its provenance in the metadata of the file.

    Parameters
    ----------
    figure
        A figure of a ``plot_*`` function.
    path
        The file; its suffix selects PNG, SVG or PDF.
    result
        The result that the figure shows.

    Raises
    ------
    ResultError
        The suffix is none of these, or the file cannot be written.
    """
    about = provenance_line(result)
    kinds: dict[str, dict[str, str | None]] = {
        ".png": {"Title": about, "Software": "Sojourn"},
        ".svg": {"Title": about, "Creator": "Sojourn", "Date": None},
        ".pdf": {"Title": about, "Creator": "Sojourn", "CreationDate": None},
    }
    metadata = kinds.get(Path(path).suffix.lower())
    if metadata is None:
        message = f"{path}: unknown figure format; expected .png, .svg or .pdf"
        raise _core.ResultError(message)
    try:
        figure.savefig(path, dpi=200, metadata=metadata)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None


def provenance_line(result: Result) -> str:
    """Write the provenance of the numbers in one line."""
    checked = result.scenario.checked
    return (
        f"{checked.name}; {result.finished} of {result.total} runs, seed {result.scenario.seed}, "
        f"scenario {checked.hash[:12]}, Sojourn {result.build}"
    )


def _figure(*, columns: int, rows: int, width: float, height: float) -> Figure:
    figure = Figure(figsize=(width * columns, height * rows + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _visible(lines: Sequence[curves.Curve]) -> bool:
    """Whether a distribution is more than the line of a queue that was never used."""
    return any(max(line.x) > curves.SMALLEST_MS for line in lines)


def _draw(axes: Axes, lines: Sequence[curves.Curve], arms: Sequence[str]) -> None:
    for line in lines:
        index = arms.index(line.arm)
        axes.plot(
            line.x,
            line.y,
            label=line.arm,
            color=palette.colour(index),
            linestyle=_DASHES[index // len(palette.COLOURS) % len(_DASHES)],
            linewidth=1.3,
        )


def _plain_log(axis: Axis) -> None:
    """Write 10 and 0.5 on a logarithmic axis rather than powers; 2 and 5 where there is room."""
    low, high = sorted(axis.get_view_interval())
    narrow = high / max(low, curves.SMALLEST_MS) < _NARROW
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _finished(figure: Figure, result: Result) -> Figure:
    for axes in figure.axes:
        axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    if figure.axes:
        _add_legend(figure)
    line = textwrap.fill(provenance_line(result), int(figure.get_figwidth() * _SMALL_LETTERS))
    figure.supxlabel(line, fontsize=6, color="#666666", x=0.99, ha="right")
    return figure


def _add_legend(figure: Figure) -> None:
    """Add a legend above the panels, in as many columns as fit, and room for its rows."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
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
