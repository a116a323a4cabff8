"""Lists and descriptions of the entries of a catalogue: queues and congestion controls."""

import json
from collections.abc import Callable
from typing import Any

from sojourn.cli.tables import print_table

Entry = dict[str, Any]

ECN = {
    "optional": "optional",
    "required": "required: negotiated without `ecn = true`",
    "accurate": "required: Accurate ECN (RFC 9768), negotiated without `ecn = true`",
}


def show(
    known: list[Entry],
    name: str | None,
    *,
    parse: Callable[[str], str],
    head: str,
    title: str,
    as_json: bool,
) -> None:
    """Print all entries, or the one called `name`.

    `name` may be a specification with parameters; `parse` returns its canonical form and raises the
    error for an unknown name. `head` is the heading of the names.
    """
    shown = known if name is None else _named(known, name, parse)
    if as_json:
        print(json.dumps(shown, indent=2))
    elif isinstance(shown, list):
        rows = [[entry["name"], entry["source"], entry["summary"]] for entry in shown]
        print_table([head, "source", "summary"], rows, title=title, words=3)
    else:
        _describe(shown)


def _named(known: list[Entry], name: str, parse: Callable[[str], str]) -> Entry:
    entries = {entry["name"]: entry for entry in known}
    return entries[name] if name in entries else entries[parse(name).split()[0]]


def _describe(entry: Entry) -> None:
    print(f"{entry['name']}: {entry['summary']}")
    print(f"source: {entry['source']}")
    if entry.get("reconstruction"):
        print(f"reconstruction: {entry['reconstruction']}")
    if entry.get("slow_starts"):
        over = entry["quic_slow_start"]
        default = "the first is the default"
        if over is not None:
            default += f" over TCP, {over} over QUIC"
        print(f"slow_start: {', '.join(entry['slow_starts'])} ({default})")
    if "ecn" in entry:
        print(f"ecn: {ECN[entry['ecn']]}")
    if entry.get("profiles"):
        print(f"profiles: {', '.join(entry['profiles'])} (the first is the default)")
    parameters = entry["parameters"]
    if not parameters:
        return
    rows = [
        [item["key"], _unit(item), item["default"], item["meaning"], _range(item)]
        for item in parameters
    ]
    head = ["parameter", "unit", "default", "meaning", "range"]
    print_table(head, rows, title="parameters", words=len(head))
    rows = [[item["key"], item["provenance"]] for item in parameters]
    print_table(["parameter", "provenance"], rows, title="provenance", words=2)


def _unit(item: Entry) -> str:
    """Write the unit; that of a count says what it counts, if it is known."""
    of: str = item.get("of", "") if item["unit"] == "count" else ""
    return of or str(item["unit"])


def _range(item: Entry) -> str:
    """Write the allowed values; flags have none to list."""
    return "" if item["unit"] == "flag" else str(item["range"])
