"""The tables of a result as CSV files, with a file that describes their columns."""

import json
from collections.abc import Iterator

import polars as pl

from sojourn import _core
from sojourn.exchange.selection import Product, Selection
from sojourn.result.metrics import KEYS
from sojourn.result.naming import described

# The frame with one row per run and one column per metric, which is not a table of the core.
METRICS = "metrics"
# Types of columns, as the documentation names them.
TYPES = {"text": "str", "count": "int", "real": "float", "flag": "bool"}


def files(selection: Selection) -> list[Product]:
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
    return Product(name=f"{name}.csv", data=frame.write_csv().encode())


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
                text = metric.description.replace("*", "").replace("`", "")
                yield table, name, "float", metric.unit, text
        return
    for column in catalogue[table]["columns"]:
        unit = column["unit"] or ""
        yield table, column["name"], TYPES[column["type"]], unit, column["description"]
