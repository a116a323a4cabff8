"""``sojourn report``: write an HTML report or a LaTeX table of a saved result or sweep."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn.arguments.common import OUTPUT
from sojourn.cli.options import Folder, Strict, path
from sojourn.cli.session import judged, say
from sojourn.result import Result, derived_files
from sojourn.sweeps import SweepResult
from sojourn.sweeps.reports import write_report

STANDARD_OUTPUT = Path("-")
# The heading of the options for the content of the LaTeX table.
TABLE = "LaTeX table"


def report(
    *,
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path,
            help="File of the HTML report.",
            show_default="DIR/report.html; none with --latex",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    latex: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path,
            help="Write the means of each arm as a LaTeX table to this file, such as delay.tex; - "
            "for standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="A metric, as in the JSON output of run. Repeatable.",
            show_default="the main ones",
            rich_help_panel=TABLE,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A traffic group, a class of a queue or a group of applications instead of the "
            "whole run.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="ARM",
            help="Paired differences from this arm instead of means.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    strict: Strict = False,
) -> int:
    """Write an HTML report or a LaTeX table of a saved result, or a report of a saved sweep."""
    if latex is None and (metric or group is not None or baseline is not None):
        message = "--metric, --group and --baseline choose the content of --latex"
        raise typer.BadParameter(message)
    if (folder / derived_files.SWEEP).exists():
        if latex is not None:
            message = (
                f"--latex: {folder} contains a sweep; expected a result; points.parquet has the "
                "means of the sweep"
            )
            raise typer.BadParameter(message)
        swept, file = SweepResult.load(folder), _file(folder, out)
        write_report(swept, file)
        say(f"wrote report to {file}")
        return 0
    result = Result.load(folder)
    if latex is not None:
        text = result.to_latex(metric or None, group=group, baseline=baseline)
        _write(latex, text, result)
    if latex is None or out is not None:
        file = _file(folder, out)
        write_report(result, file)
        say(f"wrote report to {file}")
    return judged([result], strict=strict)


def _file(folder: Path, out: Path | None) -> Path:
    """Return the file of a report; by default in the directory."""
    return derived_files.inside(folder, "report.html") if out is None else out


def _write(file: Path, text: str, result: Result) -> None:
    """Write a table, which replaces only a table."""
    if file == STANDARD_OUTPUT:
        print(text, end="")
        return
    with derived_files.claimed(file, derived_files.TABLE):
        derived_files.write(file, text.encode(), result.manifest_sha256)
    say(f"wrote table to {file}")
