"""Ranges of numbers: one line that names the option, the value and the range."""

import json
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.arguments import read_table
from sojourn.arguments.common import MAX_REPLICATIONS
from sojourn.cli.app import app
from sojourn.search.tune import tune
from sojourn.sweeps.run import SweepPlan, prepared, sweep
from support.saved import ONE
from support.shell import ROOT

SEEDS = f"expected 0 to {_core.max_seed()}"
RUNS = "expected 1 to 100000"
PRECISE = ("--until", "drops ±5")
SWEEP = ("sweep", "FILE", "-p", "rtt=1ms,2ms")


@pytest.mark.parametrize(
    ("words", "option", "value", "expected"),
    [
        (("run", "FILE"), "--replications", "0", RUNS),
        (("run", "FILE"), "--replications", "100001", RUNS),
        (("run", "FILE"), "--seed", "-1", SEEDS),
        (("run", "FILE"), "--seed", "9" * 30, SEEDS),
        (("compare", "pfifo"), "--replications", "0", RUNS),
        (("compare", "pfifo"), "--seed", "-1", SEEDS),
        (("test", "FILE"), "--replications", "0", RUNS),
        (("test", "FILE"), "--seed", "-1", SEEDS),
        (SWEEP, "--replications", "0", RUNS),
        (SWEEP, "--seed", "-1", SEEDS),
        ((*SWEEP, *PRECISE), "--max-replications", "0", RUNS),
        ((*SWEEP, *PRECISE), "--max-replications", "100001", RUNS),
        (("advise",), "--seed", "-1", SEEDS),
        (("rfc7928", "pie"), "--seed", "-1", SEEDS),
        (("tune", "FILE", "--objective", "min drops"), "--seed", "-1", SEEDS),
        (("agree", "FILE"), "--replications", "0", RUNS),
        (("agree", "FILE"), "--simulated-replications", "0", RUNS),
        (("stats", "DIR"), "--replication", "-1", "expected 0 to 99999"),
        (("export", "DIR", "--format", "csv"), "--replication", "-1", "expected 0 to 99999"),
        (("live", "true"), "--view-flows", "-1", "expected at least 0"),
    ],
)
def test_options_name_their_range(
    file: Path, words: tuple[str, ...], option: str, value: str, expected: str
) -> None:
    first, *rest = (f"{file}" if word == "FILE" else word for word in words)
    with pytest.raises(sj.ScenarioError) as error:
        app([first, option, value, *rest], standalone_mode=False)
    assert f"{error.value}" == f"{option} {value}: {expected}"


def test_functions_and_tables_check_the_same_ranges() -> None:
    scenario = sj.Scenario.from_toml(ONE)
    values = {"rtt": ["1ms", "2ms"]}
    with pytest.raises(sj.ScenarioError, match=f"^replications=0: {RUNS}$"):
        sweep(scenario, values, replications=0)
    with pytest.raises(sj.ScenarioError, match=f"^max_replications=200000: {RUNS}$"):
        sweep(scenario, values, until="drops ±5", max_replications=200_000)
    with pytest.raises(sj.ScenarioError, match=f"^sweep.replications 0: {RUNS}$"):
        read_table(SweepPlan, "sweep", {"parameters": values, "replications": 0})
    with pytest.raises(sj.ScenarioError, match=r"^trials=0: expected 1 to 100000$"):
        tune(scenario, {"rtt": "1ms..2ms"}, "min drops", trials=0)


def test_the_ten_times_of_until_end_at_the_limit() -> None:
    plan = SweepPlan(
        sj.Scenario.from_toml(ONE), {"rtt": ["1ms"]}, replications=20_000, until="drops ±5"
    )
    assert prepared(plan).most == MAX_REPLICATIONS


def test_the_range_of_replications_is_that_of_the_schema() -> None:
    schema = json.loads((ROOT / "docs/schema/scenario.schema.json").read_text(encoding="utf-8"))
    assert schema["properties"]["replications"]["maximum"] == MAX_REPLICATIONS


@pytest.mark.parametrize("replications", [1, MAX_REPLICATIONS])
def test_both_ends_of_a_range_are_in_it(replications: int) -> None:
    given = {"replications": replications}
    assert read_table(SweepPlan, "sweep", given) == given
