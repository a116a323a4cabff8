"""``sojourn export``: write a saved result in the format of another program."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli import completion
from sojourn.cli.options import REPLICATION, Folder, path
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
            help=f"{_FORMATS}.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--output",
            "-o",
            metavar="PATH",
            parser=path,
            help="Directory for the files; by default DIR with the format appended, such as "
            "DIR-flent.",
        ),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Export only this arm.")] = None,
    replication: Annotated[
        int | None,
        typer.Option(callback=REPLICATION, help="Export only this replication, counted from 0."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
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
