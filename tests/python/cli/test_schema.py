"""The JSON Schema of the tables of scenario files that are not part of the scenario."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import sojourn as sj
from sojourn.arguments import declared, read_table
from sojourn.cli.reference import document
from sojourn.expectations.expectation import expectations
from sojourn.search import tune
from sojourn.sweeps import run
from support.searched import TEXT
from support.shell import ROOT

BASE = sj.Scenario.from_toml(TEXT)
SCHEMA = json.loads(document())
SWEEP = {"parameters": {"rtt": "9ms,20ms"}}
TUNE = {"parameters": {"rtt": "uniform(9ms,20ms)"}, "objectives": "min drops"}


def planned_sweep(table: Any) -> object:
    return run.prepared(run.SweepPlan(BASE, **read_table(run.SweepPlan, "sweep", table)))


def planned_search(table: Any) -> object:
    return tune.prepared(tune.TunePlan(BASE, **read_table(tune.TunePlan, "tune", table)))


READERS: dict[str, Callable[[Any], object]] = {
    "sweep": planned_sweep,
    "tune": planned_search,
    "expect": lambda table: expectations([table]),
}
# A table that is accepted, per key: those with which the key is accepted.
CONTEXTS: dict[str, dict[str, Any]] = {
    "sweep": SWEEP,
    "sweep.sampling": {"parameters": {"rtt": "uniform(9ms,20ms)"}},
    "sweep.max_replications": {**SWEEP, "until": "drops ±5"},
    "tune": TUNE,
    "expect": {"that": "drops < 1"},
}
VALUES: list[Any] = [
    *("", "x", "drops", "lhs:4", "sobol:8", " lhs:4 ", "lhs:0", "lhs", "rtt > 1ms", "drops ±5 %"),
    *("min drops", " max drops", "mindrops", "drops < 3", "default", ["default"], [], ["rtt > 1s"]),
    *(["rtt > 1ms"], ["min drops", "max goodput_up"], ["min drops", 3], {}, {"rtt": "9ms"}),
    *({"rtt": ["9ms"]}, {"rtt": []}, {"rtt": 9}, {"rtt,links.up.rate": [["9ms", "1mbit"]]}),
    *(True, -1, 0, 1, 2, 10, 10_000, 10_001, 100_000, 100_001, 1_000_001, 1.5),
]


def keys_of(name: str) -> set[str]:
    """The keys that the schema has for a table."""
    schema = SCHEMA["properties"][name]
    return set(schema.get("items", schema)["properties"])


def is_valid(name: str, table: dict[str, Any]) -> bool:
    found = json.loads(BASE.checked.to_json())
    found[name] = [table] if name == "expect" else table
    return Draft202012Validator(SCHEMA).is_valid(found)


def is_read(name: str, table: dict[str, Any]) -> bool:
    try:
        READERS[name](table)
    except sj.ScenarioError:
        return False
    return True


@pytest.mark.parametrize("name", READERS)
def test_the_schema_has_the_keys_of_the_reader(name: str) -> None:
    with pytest.raises(sj.ScenarioError, match="unknown key; expected one of ") as error:
        READERS[name]({**CONTEXTS[name], "x": 1})
    listed = f"{error.value}".partition("expected one of ")[2]
    assert set(re.split(", ", listed)) == keys_of(name)
    assert not is_valid(name, {**CONTEXTS[name], "x": 1})


@pytest.mark.parametrize("name", READERS)
def test_the_schema_refuses_no_table_that_is_read(name: str) -> None:
    accepted = refused = 0
    for key in keys_of(name):
        context = CONTEXTS.get(f"{name}.{key}", CONTEXTS[name])
        for value in VALUES:
            table = {**context, key: value}
            if is_read(name, table):
                assert is_valid(name, table), table
                accepted += 1
            else:
                refused += not is_valid(name, table)
    # Most of the refused tables are refused by both.
    assert accepted > 2 * len(keys_of(name))
    assert refused > 10 * len(keys_of(name))


@pytest.mark.parametrize("name", ["sweep", "tune"])
def test_the_schema_and_the_reference_state_the_defaults(name: str) -> None:
    plan = {"sweep": run.SweepPlan, "tune": tune.TunePlan}[name]
    table = json.loads(document())["properties"][name]["properties"]
    page = (ROOT / "docs/reference/scenario.md").read_text(encoding="utf-8")
    rows = page.split(f"\n### `{name}`\n")[1].split("\n### ")[0]
    stated = 0
    for one in declared(plan):
        if one.name not in table or (one.default in {None, ()} and one.argument.unset is None):
            continue
        key = "default" if one.argument.unset is None else "x-default"
        assert table[one.name][key] == (one.argument.unset or one.default)
        shown = one.argument.unset or f"`{one.default}`"
        assert re.search(rf"^\| `{one.name}` \| \w+ \| {re.escape(shown)} \|", rows, re.MULTILINE)
        stated += 1
    assert stated >= 2
