"""``sojourn qdiscs``: list the queues and their parameters."""

import json
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli import catalogue, completion
from sojourn.cli.options import Json


def qdiscs(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="QDISC",
            autocompletion=completion.queues,
            help="Name of a queue.",
            show_default="all",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the queues and their parameters."""
    catalogue.show(
        json.loads(_core.qdisc_catalogue()),
        name,
        parse=_core.parse_qdisc,
        head="queue",
        title="queues",
        as_json=as_json,
    )
    return 0
