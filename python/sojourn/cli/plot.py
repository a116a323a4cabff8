"""``sojourn plot``: figures of saved results and sweeps."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from sojourn.arguments import Argument, ArgumentError
from sojourn.arguments.common import ARM, OUTPUT, REPLICATION, SELECTION
from sojourn.cli.options import Folder
from sojourn.cli.plans import command
from sojourn.cli.process import say
from sojourn.presentation.model import text_table
from sojourn.presentation.terminal import print_table
from sojourn.result import Result, derived_files
from sojourn.result.naming import described
from sojourn.sweeps import SweepResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sojourn.plot.panels import Kind

OF_SWEEPS = ("lines", "box", "heatmap")


@command()
def plot(
    *,
    folder: Folder,
    metric: Annotated[
        Sequence[str],
        Argument(
            help="What to draw, such as cwnd, backlog_up or ping_ms_p99.",
            option="METRIC",
            unset="the main quantities over time",
        ),
    ] = (),
    kind: Annotated[
        str | None,
        Argument(
            help="Kind of figure: series (over time), ecdf, box, violin, bars (means) or ellipse "
            "(goodput against latency); of a sweep, lines, box or heatmap.",
            unset="series, or bars of metrics; lines of a sweep",
            metavar="KIND",
            heading=OUTPUT,
        ),
    ] = None,
    arms: Annotated[Sequence[str], replace(ARM, help="Draw only this arm.", option="--arm")] = (),
    group: Annotated[
        str | None,
        Argument(
            help="Draw only the flows of this traffic group.", metavar="NAME", heading=SELECTION
        ),
    ] = None,
    replication: Annotated[
        int | None,
        replace(REPLICATION, unset="all; the first for series with quantities of connections"),
    ] = None,
    words: Annotated[
        bool,
        Argument(
            help="Print what can be drawn, with unit and meaning, and draw nothing.",
            option="--list",
            heading=OUTPUT,
        ),
    ] = False,
    out: Annotated[
        Path | None,
        Argument(
            help="File to write; its suffix selects the format: .svg, .pdf, .png or .pgf (LaTeX). "
            "An existing file is replaced only if it is a figure by Sojourn.",
            short="-o",
            unset="DIR/METRIC.svg",
            metavar="FILE",
            heading=OUTPUT,
        ),
    ] = None,
) -> int:
    """Draw a saved result or sweep: over time, as distributions, means or ellipses."""
    from sojourn.plot import figures, quantities  # noqa: PLC0415 - matplotlib is slow to import

    of_sweep = (folder / derived_files.SWEEP).exists()
    result = SweepResult.load(folder) if of_sweep else Result.load(folder)
    if words:
        rows = (
            [(one.column, one.unit, one.definition) for one in described(result.metrics)]
            if isinstance(result, SweepResult)
            else [(one.name, one.unit, one.meaning) for one in quantities.listed(result, group)]
        )
        print_table(text_table(["metric", "unit", "meaning"], rows, f"{folder}"))
        return 0
    file = derived_files.inside(folder, _name(metric, kind)) if out is None else out
    with derived_files.claimed(file, derived_files.FIGURE):
        if isinstance(result, SweepResult):
            for name, value in (("group", group), ("replication", replication)):
                if value is not None:
                    raise ArgumentError(name, value, "a sweep has none; expected a saved result")
            figure = _of_sweep(result, metric, kind or "lines", arms)
        else:
            figure = figures.plot(
                result,
                metric,
                # Checked there.
                kind=cast("Kind | None", kind),
                arms=arms or None,
                group=group,
                replication=replication,
            )
        figures.save(figure, file, result)
    say(f"wrote figure to {file}")
    return 0


def _name(metrics: Sequence[str], kind: str | None) -> str:
    """Return the default name of a figure."""
    words = [*metrics, *([kind] if kind else [])] or ["series"]
    return f"{'-'.join(re.sub(r'[^A-Za-z0-9_]+', '_', word) for word in words)[:100]}.svg"


def _of_sweep(
    swept: SweepResult, metrics: Sequence[str], kind: str, arms: Sequence[str]
) -> "Figure":
    """Draw a metric of a sweep over its parameters."""
    if kind not in OF_SWEEPS:
        rule = "a sweep keeps no series; expected {known}"
        known = f"{', '.join(OF_SWEEPS[:-1])} or {OF_SWEEPS[-1]}"
        raise ArgumentError("kind", kind, rule, known=known)
    if len(metrics) != 1:
        rule = "{problem}; expected one metric, such as {example}"
        problem = "more than one" if metrics else "missing"
        raise ArgumentError("metric", rule=rule, problem=problem, example=swept.metrics[0])
    if len(arms) > 1:
        rule = "more than one; expected one arm, such as {example}"
        raise ArgumentError("arms", rule=rule, example=swept.arms[0])
    draw = getattr(swept, kind)
    figure: Figure = draw(metrics[0], arm=arms[0] if arms else None)
    return figure
