"""``sojourn report``: write an HTML report of a saved result."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn import report as reports
from sojourn.cli.options import Folder, Strict, path
from sojourn.cli.session import judged, say
from sojourn.result import Result, derived


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
            help="HTML file; by default DIR/report.html.",
        ),
    ] = None,
    strict: Strict = False,
) -> int:
    """Write an HTML report of a saved result."""
    result = Result.load(folder)
    file = derived.inside(folder, "report.html") if out is None else out
    with derived.claimed(file):
        reports.write(result, file)
    say(f"wrote report to {file}")
    return judged([result], strict=strict)
