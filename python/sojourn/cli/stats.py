"""``sojourn stats``: print the statistics that each queue kept."""

from typing import Annotated

import typer

from sojourn.cli import tables
from sojourn.cli.options import Folder
from sojourn.result import Result, tc_stats


def stats(
    *,
    folder: Folder,
    arm: Annotated[str | None, typer.Option(help="An arm; by default the first.")] = None,
    replication: Annotated[int, typer.Option(min=0, help="Which of its runs.")] = 0,
    tc_json: Annotated[
        bool, typer.Option("--tc-json", help="Print what tc -j -s qdisc would.")
    ] = False,
) -> int:
    """Show what each queue of a saved run says of itself."""
    result = Result.load(folder)
    arm = arm or result.arms[0]
    queues = tc_stats.queues(result, arm=arm, replication=replication)
    tables.show_queues(queues, run=f"arm {arm}, run {replication}", as_json=tc_json)
    return 0
