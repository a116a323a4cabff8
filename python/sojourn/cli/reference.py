"""``sojourn qdiscs``, ``ccs``, ``schema`` and ``doctor``: what this version and machine have."""

import json as js
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments import Argument
from sojourn.arguments.common import Json
from sojourn.cli.plans import command
from sojourn.cli.process import say
from sojourn.document import may_name_file
from sojourn.presentation.model import text_table
from sojourn.presentation.terminal import print_table
from sojourn.queues import qdisc
from sojourn.queues.queue_file import catalogued, short

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
        print(js.dumps(shown, indent=2))
    elif isinstance(shown, list):
        rows = [[entry["name"], entry["source"], entry["summary"]] for entry in shown]
        print_table(text_table([head, "source", "summary"], rows, title))
    else:
        _describe(shown)


def _named(known: list[Entry], name: str, parse: Callable[[str], str]) -> Entry:
    entries = {entry["name"]: entry for entry in known}
    return entries[name] if name in entries else entries[parse(name).split()[0]]


def _describe(entry: Entry) -> None:
    print(f"{short(entry['name'])}: {entry['summary']}")
    print(f"source: {entry['source']}")
    if entry.get("sha256"):
        print(f"plug-in: {entry['file']}, version {entry['version']}, SHA-256 {entry['sha256']}")
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
    print_table(text_table(head, rows, "parameters"))
    rows = [[item["key"], item["provenance"]] for item in parameters]
    print_table(text_table(["parameter", "provenance"], rows, "provenance"))


def _unit(item: Entry) -> str:
    """Write the unit; that of a count says what it counts, if it is known."""
    of: str = item.get("of", "") if item["unit"] == "count" else ""
    return of or str(item["unit"])


def _range(item: Entry) -> str:
    """Write the allowed values; flags have none to list."""
    return "" if item["unit"] == "flag" else str(item["range"])


@command()
def qdiscs(
    *,
    name: Annotated[
        str | None,
        Argument(help="Name of a queue.", unset="all", option="QDISC", completion="queues"),
    ] = None,
    json: Json = False,
) -> int:
    """List the queues and their parameters."""
    known = js.loads(_core.qdisc_catalogue())
    if name is not None and may_name_file(name):
        name = qdisc(name).spec
        known.append(catalogued(name))
    show(
        known,
        name,
        parse=_core.parse_qdisc,
        head="queue",
        title="queues",
        as_json=json,
    )
    return 0


@command()
def ccs(
    *,
    name: Annotated[
        str | None,
        Argument(
            help="Name of a congestion control.",
            unset="all",
            option="CONTROL",
            completion="controls",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """List the congestion controls and their parameters."""
    show(
        js.loads(_core.cc_catalogue()),
        name,
        parse=_core.parse_cc,
        head="control",
        title="congestion controls",
        as_json=json,
    )
    return 0


Schema = dict[str, Any]


@command()
def schema() -> int:
    """Print the JSON Schema of scenario files."""
    print(document(), end="")
    return 0


def document() -> str:
    """Return the schema: that of the core, with the tables that the core does not read."""
    found = js.loads(_core.scenario_schema())
    found["properties"] |= _tables()
    return js.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _tables() -> dict[str, Schema]:
    # Slow to import.
    from sojourn.arguments import table_schema  # noqa: PLC0415
    from sojourn.expectations.expectation import ExpectPlan  # noqa: PLC0415
    from sojourn.search.tune import TunePlan  # noqa: PLC0415
    from sojourn.sweeps.run import SweepPlan  # noqa: PLC0415

    """Return the schemas of the tables ``[sweep]``, ``[tune]`` and ``[[expect]]``."""
    return {
        "sweep": table_schema(SweepPlan, "Points for `sojourn sweep`; not part of the scenario."),
        "tune": table_schema(TunePlan, "Search of `sojourn tune`; not part of the scenario."),
        "expect": {
            "type": "array",
            "description": "Expectations, which `sojourn test` judges; not part of the scenario.",
            "items": table_schema(ExpectPlan, "Expectation.", is_whole=True),
        },
    }


HEAD = ("check", "finding", "verdict", "remedy")


@command()
def doctor(*, json: Json = False) -> int:
    """Check whether this machine supports live runs, and suggest remedies."""
    from sojourn.cli.session import ENVIRONMENT  # noqa: PLC0415 - slow to import
    from sojourn.host import checks, facts  # noqa: PLC0415 - of this command only

    found = checks.assess(facts.read())
    if json:
        print(js.dumps([asdict(check) for check in found], indent=2))
    else:
        rows = [[one.name, one.finding, one.verdict, one.remedy] for one in found]
        print_table(text_table(HEAD, rows, "live runs on this machine"))
    if checks.possible(found):
        say("live runs are possible")
        return 0
    missing = ", ".join(
        one.name for one in found if one.required and one.verdict is checks.Verdict.MISSING
    )
    say(f"live runs are not possible: {missing}")
    return ENVIRONMENT
