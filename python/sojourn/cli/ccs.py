"""``sojourn ccs``: list the congestion controls and their parameters."""

import json
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli.options import Json
from sojourn.cli.tables import print_table


def ccs(
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="CONTROL", help="Name of a congestion control (default: all)."),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the congestion controls and their parameters."""
    known: list[dict[str, Any]] = json.loads(_core.cc_catalogue())
    if name is not None:
        kind = _core.parse_cc(name).split()[0]
        known = [entry for entry in known if entry["name"] == kind]
    if as_json:
        print(json.dumps(known if name is None else known[0], indent=2))
    elif name is None:
        rows = [[entry["name"], entry["source"], entry["summary"]] for entry in known]
        head = ["control", "source", "summary"]
        print_table(head, rows, title="congestion controls", words=len(head))
    else:
        _describe(known[0])
    return 0


def _describe(entry: dict[str, Any]) -> None:
    print(f"{entry['name']}: {entry['summary']}")
    print(f"source: {entry['source']}")
    if entry["slow_starts"]:
        print(f"slow_start: {', '.join(entry['slow_starts'])} (the first is the default over TCP)")
    rows = [
        [
            item["key"],
            item["of"] if item["unit"] == "count" else item["unit"],
            str(item["default"]),
            item["meaning"],
            str(item["range"]),
        ]
        for item in entry["parameters"]
    ]
    head = ["parameter", "unit", "default", "meaning", "range"]
    print_table(head, rows, title="parameters", words=len(head))
