"""``sojourn import``: read measurements of other programs."""

import json as js
from pathlib import Path
from typing import Annotated

import typer

from sojourn.arguments.common import OUTPUT
from sojourn.cli import tables
from sojourn.cli.options import SELECTION, Force, Json, ReportFile, path
from sojourn.cli.session import say
from sojourn.exchange import exporting, importing
from sojourn.exchange.measurement import Beside, per_run, products
from sojourn.report import measured as page
from sojourn.result import Result, derived_files, formatting, metrics

_NOTE = "measured from the start to the end of the load; – marks values missing from a file"


def import_(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            parser=path,
            help="Data files of flent (format versions 1 to 4) and logs of Mahimahi's mm-link, "
            "plain or compressed with gzip or bzip2. Files with the same title are runs of an arm.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the arm of all files.",
            show_default="the title of each file",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=path,
            help="With --report: compare the measured runs with this saved result.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=path,
            help="Directory for the tables as Parquet files, with import.json, which states their "
            "origin; created if needed, with its parents.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
) -> int:
    """Read measurements of flent and Mahimahi, and compare them with a saved result."""
    if (beside is None) != (report is None):
        message = "--beside and --report must be given together"
        raise typer.BadParameter(message)
    measurements = importing.measured(paths, name)
    simulated = None if beside is None else Result.load(beside)
    with derived_files.claimed(report):
        if out is not None:
            exporting.written(products(measurements), out, force=force)
        runs = per_run(measurements)
        summary = metrics.summary(runs, metrics.metrics_of(runs))
        if json:
            print(js.dumps({"summary": summary.to_dicts(), "runs": runs.to_dicts()}, indent=2))
        else:
            arms = list(dict.fromkeys(one.arm for one in measurements))
            tables.print_estimates(
                summary, metrics.metrics_of(runs), arms=arms, title="measured runs"
            )
            print(_NOTE)
        if out is not None:
            count = formatting.counted(len(measurements), "measured run")
            say(f"wrote {count} to {out}")
        if simulated is not None and report is not None:
            page.write(Beside(simulated, measurements), report)
            say(f"wrote report to {report}")
    return 0
