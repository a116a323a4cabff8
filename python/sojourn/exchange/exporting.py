"""Exports of results: the formats by name, tables as CSV, and where files are written."""

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Annotated

import polars as pl

from sojourn import _core, files
from sojourn.arguments import Argument, OutputError, Plan, takes
from sojourn.arguments.common import ARM, OUTPUT, REPLICATION, Force
from sojourn.exchange import flent_writer, mahimahi, packets, qlog
from sojourn.exchange.flent_writer import SUFFIX as FLENT_SUFFIX
from sojourn.exchange.selection import Product, Selection
from sojourn.result import Result
from sojourn.result.naming import described
from sojourn.result.rows import KEYS

# The frame with one row per run and one column per metric, which is not a table of the core.
METRICS = "metrics"
# The beginning of a formula in a spreadsheet.
_FORMULA = r"^[=+\-@\t\r]"
# Types of columns, as the documentation names them.
TYPES = {"text": "str", "count": "int", "real": "float", "flag": "bool"}


def _csv_files(selection: Selection) -> list[Product]:
    """Write every table that has rows as a CSV file, and the meaning of its columns."""
    result = selection.result
    catalogue = {entry["name"]: entry for entry in json.loads(_core.column_catalogue())}
    frames = {METRICS: selection.of(result.table())}
    frames |= {name: selection.of(getattr(result, name)) for name in catalogue}
    frames = {name: frame for name, frame in frames.items() if not frame.is_empty()}
    meanings = pl.DataFrame(
        [row for name, frame in frames.items() for row in _columns(name, frame, catalogue)],
        schema=["table", "column", "type", "unit", "description"],
        orient="row",
    )
    manifest = json.dumps(result.provenance, indent=2, sort_keys=True)
    return [
        *(_csv(name, frame) for name, frame in frames.items()),
        _csv("columns", meanings),
        Product(name="origin.json", data=f"{manifest}\n".encode()),
    ]


def _csv(name: str, frame: pl.DataFrame) -> Product:
    # Spreadsheets take such a text for a formula, which may read other cells and files.
    texts = pl.col(pl.String)
    safe = pl.when(texts.str.contains(_FORMULA)).then("'" + texts).otherwise(texts)
    return Product(
        name=f"{name}.csv", data=frame.with_columns(safe.name.keep()).write_csv().encode()
    )


def _columns(
    table: str, frame: pl.DataFrame, catalogue: dict[str, dict[str, list[dict[str, str]]]]
) -> Iterator[tuple[str, str, str, str, str]]:
    """List the columns of a table with type, unit and meaning."""
    flows = {column["name"]: column for column in catalogue["flows"]["columns"]}
    if table == METRICS:
        for name in frame.columns:
            if name in KEYS:
                of = flows[name]
                yield table, name, TYPES[of["type"]], "", of["description"]
            else:
                metric = described([name])[0]
                yield table, name, "float", metric.unit, metric.definition
        return
    for column in catalogue[table]["columns"]:
        unit = column["unit"] or ""
        yield table, column["name"], TYPES[column["type"]], unit, column["description"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of exports."""

    summary: str
    files: Callable[[Selection], list[Product]]


# A format is added here, and nowhere else.
FORMATS: Mapping[str, Format] = {
    "flent": Format(
        summary="data files of flent, one per run",
        files=flent_writer.files,
    ),
    "csv": Format(
        summary="the tables and metrics, one file each, with a description of their columns",
        files=_csv_files,
    ),
    "mahimahi": Format(
        summary="the capacity of each link as a trace for mm-link (a result does not record the "
        "arrival and departure of packets, which a log needs)",
        files=mahimahi.files,
    ),
    "pcapng": Format(
        summary="the packets of a simulated run, which the same build executes again; record a "
        "live run with pcap",
        files=packets.captures,
    ),
    "qlog": Format(
        summary="the TCP and QUIC connections of a simulated run, one log each, by executing it "
        "again as for pcapng",
        files=qlog.files,
    ),
}


@dataclass(frozen=True)
class ExportPlan(Plan):
    """The arguments of an export."""

    result: Annotated[Result, Argument(help="The result.", option="")]
    out: Annotated[
        Path | str,
        Argument(
            help="Directory for the files; created if needed, with its parents.",
            unset="the result's directory with the format appended, such as DIR-flent",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ]
    format: Annotated[
        str,
        Argument(
            help="Format of the files. "
            + "; ".join(f"{name}: {one.summary}" for name, one in FORMATS.items())
            + ".",
            known=tuple(FORMATS),
            metavar="NAME",
            heading=OUTPUT,
            completion="formats",
        ),
    ]
    _: KW_ONLY
    arm: Annotated[str | None, ARM] = None
    replication: Annotated[int | None, REPLICATION] = None
    force: Force = False


@takes(ExportPlan)
def export(plan: ExportPlan) -> list[Path]:
    """Write a result in the format of another program.

    Returns
    -------
    list of pathlib.Path
        The files.

    Raises
    ------
    ArgumentError
        The format, the arm or the replication is unknown, or an argument has another type.
    ResultError
        The format cannot express the result, or a file exists or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import sojourn as sj
    >>> links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
    >>> ping = sj.Ping(direction="up", interval="100ms")
    >>> result = sj.run(sj.Scenario(links=links, traffic=[ping], rtt="50ms", duration="4s"))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     [file.name for file in sj.export(result, directory, "mahimahi")]
    ['default-down.trace', 'default-up.trace']
    """
    return written(prepared(plan), Path(plan.out), force=plan.force)


def prepared(plan: ExportPlan) -> list[Product]:
    """Create the files of an export in memory."""
    selection = Selection(result=plan.result, arm=plan.arm, replication=plan.replication)
    selection.check()
    return _distinct(FORMATS[plan.format].files(selection))


def _distinct(products: list[Product]) -> list[Product]:
    """Append numbers to equal names, for example of the arms "a b" and "a_b"."""
    used: set[str] = set()
    renamed = []
    for product in products:
        stem, dot, ending = product.name.partition(".")
        if product.name.endswith(FLENT_SUFFIX):
            stem, dot, ending = product.name.removesuffix(FLENT_SUFFIX), FLENT_SUFFIX, ""
        name = next(
            name
            for number in itertools.count(1)
            if (name := stem + (f"_{number}" if number > 1 else "") + dot + ending) not in used
        )
        used.add(name)
        renamed.append(replace(product, name=name))
    return renamed


def written(products: list[Product], directory: Path, *, force: bool) -> list[Path]:
    """Write files to a directory, each atomically; after an error, remove those that are new."""
    target = Path(os.path.realpath(directory))
    paths = [directory / product.name for product in products]
    if (target / "manifest.json").exists():
        message = f"cannot export to {directory}: it contains a result; choose another directory"
        raise _core.ResultError(message)
    existing = [path for path in paths if os.path.lexists(path)]
    if existing and not force:
        message = "cannot write {path}: it exists; {force} replaces it"
        raise OutputError(message, path=existing[0])
    path = directory
    folders = itertools.takewhile(lambda one: not one.exists(), (target, *target.parents))
    with contextlib.ExitStack() as undone:
        for folder in reversed(list(folders)):
            undone.callback(_removed, folder.rmdir)
        try:
            target.mkdir(parents=True, exist_ok=True)
            for path, product in zip(paths, products, strict=True):
                if path not in existing:
                    undone.callback(_removed, (target / path.name).unlink)
                if product.write is None:
                    files.replace(target / path.name, product.data)
                else:
                    product.write(target / path.name)
        except OSError as error:
            message = f"cannot write {path}: {error.strerror or error}"
            raise _core.ResultError(message) from None
        undone.pop_all()
    return paths


def _removed(remove: Callable[[], object]) -> None:
    """Remove what may not exist, or a directory in which something else is."""
    with contextlib.suppress(OSError):
        remove()
