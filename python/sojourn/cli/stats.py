"""``sojourn stats``: print the queue statistics of a saved run."""

from typing import Annotated

import typer

from sojourn.arguments.common import OUTPUT
from sojourn.cli import tables
from sojourn.cli.options import REPLICATION, SELECTION, Folder
from sojourn.result import Result, tc_stats


def stats(
    *,
    folder: Folder,
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="ARM",
            help="Use only this arm.",
            show_default="the first",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    replication: Annotated[
        int,
        typer.Option(
            metavar="N",
            callback=REPLICATION,
            help="Use only this replication, counted from 0.",
            rich_help_panel=SELECTION,
        ),
    ] = 0,
    tc_json: Annotated[
        bool,
        typer.Option(
            "--tc-json",
            help="Print JSON in the format of tc -j -s qdisc.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> int:
    """Print the queue statistics of a saved run."""
    result = Result.load(folder)
    arm = arm or result.arms[0]
    queues = tc_stats.queues(result, arm=arm, replication=replication)
    tables.show_queues(queues, run=f"arm {arm}, replication {replication}", as_json=tc_json)
    return 0
