"""``sojourn ccs``: list the congestion controls and their parameters."""

import json
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli import catalogue, completion
from sojourn.cli.options import Json


def ccs(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="CONTROL",
            autocompletion=completion.controls,
            help="Name of a congestion control.",
            show_default="all",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the congestion controls and their parameters."""
    catalogue.show(
        json.loads(_core.cc_catalogue()),
        name,
        parse=_core.parse_cc,
        head="control",
        title="congestion controls",
        as_json=as_json,
    )
    return 0
