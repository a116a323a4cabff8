"""``sojourn report``: write an HTML report or a LaTeX table of a saved result or sweep."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.options import Folder, Strict, path
from sojourn.cli.session import judged, say
from sojourn.result import Result, derived_files
from sojourn.sweeps import SweepResult
from sojourn.sweeps.reports import write_report

STANDARD_OUTPUT = Path("-")


def report(
    *,
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--output",
            "-o",
            metavar="PATH",
            parser=path,
            help="HTML file; by default DIR/report.html, or none with --table.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            parser=path,
            help="Write the means of each arm as a LaTeX table to this file, such as delay.tex; - "
            "for standard output.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --table: a metric, as in the JSON output of run; repeatable. By default the "
            "main ones.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --table: a traffic group, a class of a queue or a group of applications "
            "instead of the whole run.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="ARM", help="With --table: paired differences from this arm instead of means."
        ),
    ] = None,
    strict: Strict = False,
) -> int:
    """Write an HTML report or a LaTeX table of a saved result, or a report of a saved sweep."""
    if table is None and (metric or group is not None or baseline is not None):
        message = "--metric, --group and --baseline choose the content of --table"
        raise typer.BadParameter(message)
    if (folder / derived_files.SWEEP).exists():
        if table is not None:
            message = (
                f"--table: {folder} contains a sweep; expected a result; points.parquet has the "
                "means of the sweep"
            )
            raise typer.BadParameter(message)
        swept, file = SweepResult.load(folder), _file(folder, out)
        write_report(swept, file)
        say(f"wrote report to {file}")
        return 0
    result = Result.load(folder)
    if table is not None:
        text = result.to_latex(metric or None, group=group, baseline=baseline)
        _write(table, text, result)
    if table is None or out is not None:
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
