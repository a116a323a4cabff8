"""``sojourn qdiscs``: list the queues and their parameters."""

import json
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli.options import Json
from sojourn.cli.tables import print_table


def qdiscs(
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="QDISC", help="Name of a queue (default: all)."),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the queues and their parameters."""
    known: list[dict[str, Any]] = json.loads(_core.qdisc_catalogue())
    if name is not None:
        known = [_named(known, name)]
    if as_json:
        print(json.dumps(known if name is None else known[0], indent=2))
    elif name is None:
        rows = [[entry["name"], entry["source"], entry["summary"]] for entry in known]
        print_table(["queue", "source", "summary"], rows, title="queues", words=3)
    else:
        _describe(known[0])
    return 0


def _named(known: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for entry in known:
        if entry["name"] == name:
            return entry
    kind = _core.parse_qdisc(name).split()[0]
    return next(entry for entry in known if entry["name"] == kind)


def _range(item: dict[str, Any]) -> str:
    """Write the allowed values; flags have none to list."""
    return "" if item["unit"] == "flag" else str(item["range"])


def _describe(entry: dict[str, Any]) -> None:
    print(f"{entry['name']}: {entry['summary']}")
    print(f"source: {entry['source']}")
    if entry["reconstruction"]:
        print(f"reconstruction: {entry['reconstruction']}")
    if entry["profiles"]:
        print(f"profiles: {', '.join(entry['profiles'])} (the first is the default)")
    rows = [
        [item["key"], item["unit"], str(item["default"]), item["meaning"], _range(item)]
        for item in entry["parameters"]
    ]
    head = ["parameter", "unit", "default", "meaning", "range"]
    print_table(head, rows, title="parameters", words=len(head))
    rows = [[item["key"], item["provenance"]] for item in entry["parameters"]]
    print_table(["parameter", "provenance"], rows, title="provenance", words=2)
