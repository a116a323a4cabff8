"""``sojourn export``: write a saved result in the format of another program."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn.arguments.common import OUTPUT
from sojourn.cli import completion
from sojourn.cli.options import REPLICATION, SELECTION, Arm, Folder, Force, path
from sojourn.cli.session import say
from sojourn.exchange import exporting
from sojourn.exchange.selection import Selection
from sojourn.result import Result, formatting

_FORMATS = "; ".join(f"{name}: {one.summary}" for name, one in exporting.FORMATS.items())


def _known(name: str) -> str:
    """Refuse an unknown format before anything is read."""
    if (reason := exporting.unknown(name)) is not None:
        raise typer.BadParameter(reason)
    return name


def export(
    *,
    folder: Folder,
    kind: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            callback=_known,
            autocompletion=completion.formats,
            help=f"Format of the files. {_FORMATS}.",
            rich_help_panel=OUTPUT,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=path,
            help="Directory for the files; created if needed, with its parents.",
            show_default="that of the result with the format appended, such as DIR-flent",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    arm: Arm = None,
    replication: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            callback=REPLICATION,
            help="Use only this replication, counted from 0.",
            show_default="all",
            rich_help_panel=SELECTION,
        ),
    ] = None,
) -> int:
    """Write a saved result in the format of another program."""
    result = Result.load(folder)
    selection = Selection(result=result, arm=arm, replication=replication)
    products = exporting.prepared(selection, kind)
    place = _beside(folder, kind) if out is None else out
    paths = exporting.written(products, place, force=force)
    for note in dict.fromkeys(note for product in products for note in product.notes):
        say(f"note: {note}")
    say(f"wrote {formatting.counted(len(paths), 'file')} to {place}")
    return 0


def _beside(folder: Path, kind: str) -> Path:
    """Return the default directory of an export."""
    whole = folder.resolve() if folder.name in {"", ".."} else folder
    return whole.with_name(f"{whole.name}-{kind}")
