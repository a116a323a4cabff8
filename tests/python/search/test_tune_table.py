"""The table ``[tune]`` of scenario files."""

import re
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.cli.app import app
from sojourn.scenario.files import split
from support.searched import ARMS, TEXT
from support.shell import Command

TABLE = """
[tune]
objectives = "min ping_ms_p99"
where = "rtt < 25ms or links.up.rate == 2mbit"
trials = 10
replications = 1
final_replications = 2

[tune.parameters]
"links.up.qdisc.target" = "loguniform(1ms,50ms)"
"rtt,links.up.rate" = [["20ms", "5mbit"], ["30ms", "5mbit"], ["30ms", "2mbit"]]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "searched.toml"
    path.write_text(TEXT + TABLE, encoding="utf-8")
    return path


def test_a_table_is_the_search_of_the_function(sojourn: Command, file: Path) -> None:
    found = sojourn("tune", f"{file}", "--out", "out")
    assert found.returncode == 0, found.stderr
    same = sj.tune(
        sj.Scenario.from_toml(TEXT),
        {
            "links.up.qdisc.target": "loguniform(1ms,50ms)",
            ("rtt", "links.up.rate"): [("20ms", "5mbit"), ("30ms", "5mbit"), ("30ms", "2mbit")],
        },
        "min ping_ms_p99",
        where="rtt < 25ms or links.up.rate == 2mbit",
        trials=10,
        replications=1,
        final_replications=2,
    )
    loaded = sj.TuneResult.load(file.parent / "out")
    assert loaded.manifest == same.manifest
    assert loaded.trials.equals(same.trials)
    assert "pruned" in loaded.trials["state"]


def test_options_replace_the_values_of_a_table(sojourn: Command, file: Path) -> None:
    options = (
        *("--objective", "max goodput_up", "--where", "rtt > 1ms", "--trials", "3"),
        *("--replications", "2", "--final-replications", "3", "--seed", "7"),
        *("-p", "links.up.qdisc.target=5ms,6ms", "-p", "rtt=8ms,9ms"),
        *("-p", "links.up.rate=4mbit,5mbit"),
    )
    found = sojourn("tune", f"{file}", *options, "--out", "out")
    assert found.returncode == 0, found.stderr
    manifest = sj.TuneResult.load(file.parent / "out").manifest
    expected = {
        "objectives": ["max goodput_up"],
        "where": ["rtt > 1ms"],
        "trials": 3,
        "replications": 2,
        "intervals": 3,
        "seed": 7,
        "paths": ["links.up.qdisc.target", "rtt", "links.up.rate"],
    }
    assert {key: manifest[key] for key in expected} == expected


def test_a_table_selects_an_arm(sojourn: Command, file: Path) -> None:
    text = TEXT + ARMS + TABLE.replace("trials = 10", 'trials = 2\narm = "a"')
    file.write_text(text, encoding="utf-8")
    found = sojourn("tune", f"{file}")
    assert found.returncode == 0, found.stderr
    assert f"sojourn sweep {file} --arm a -p " in found.stdout
    other = sojourn("tune", f"{file}", "--arm", "b", "--dry-run")
    # The queue of the other arm has no target.
    assert other.returncode == 2
    assert 'pfifo: unknown parameter "target"' in other.stderr


def test_a_table_is_no_part_of_a_scenario(sojourn: Command, file: Path) -> None:
    scenario, tables = split(TEXT + TABLE)
    assert tables["tune"]["trials"] == 10
    assert scenario.strip() == TEXT.strip()
    assert sj.Scenario.from_toml(TEXT + TABLE).hash == sj.Scenario.from_toml(TEXT).hash
    for words in (("run",), ("sweep", "-p", "rtt=9ms"), ("sensitivity", "-p", "rtt=9ms,10ms")):
        metric = ("--metric", "drops") if words[0] == "sensitivity" else ()
        found = sojourn(words[0], f"{file}", *words[1:], *metric, "--dry-run")
        assert found.returncode == 0, found.stderr
    with pytest.raises(
        sj.ScenarioError, match=r"^tune and expect: expected .* such as \[tune\] and \[\[expect\]\]"
    ):
        split('tune = { trials = 4 }\nexpect = [{ that = "drops < 1" }]\nduration = "1s"\n')


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("trials = 10", "trials = true", "tune.trials: expected a whole number, not a value of"),
        ("trials = 10", "trials = 0", "tune.trials 0: expected 1 to 100000"),
        ("trials = 10", "trails = 8", 'tune.trails: unknown key; did you mean "trials"?'),
        (
            "trials = 10",
            "intervals = 8",
            "tune.intervals: unknown key; expected one of parameters, objectives, arm, where",
        ),
        (
            "final_replications = 2",
            "final_replications = 1",
            "tune.final_replications 1: expected 2 to",
        ),
        ('"min ping_ms_p99"', "[3]", "tune.objectives: expected texts, not a value of type int"),
        ('"min ping_ms_p99"', "[]", "tune.objectives: none given; expected at least one"),
        ('"min ping_ms_p99"', '"drops"', 'tune.objectives "drops": expected min or max and'),
        ("trials = 10", "arm = 3", "tune.arm: expected a text, not a value of type int"),
        ("trials = 10", 'arm = "x"', 'tune.arm "x": the scenario has no arms'),
        ("rtt < 25ms or links.up.rate == 2mbit", "rtt > 1", 'tune.where "rtt > 1": compares a'),
        ('"min ping_ms_p99"', '"min dorps"', 'tune.objectives "min dorps": unknown metric "dorps"'),
        (
            '"min ping_ms_p99"',
            '"min goodput_dwn"',
            'tune.objectives "min goodput_dwn": unknown metric',
        ),
        (
            '"loguniform(1ms,50ms)"',
            "5",
            "tune.parameters: links.up.qdisc.target: expected a list of values",
        ),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(old: str, new: str, said: str, file: Path) -> None:
    assert old in TABLE
    file.write_text(TEXT + TABLE.replace(old, new), encoding="utf-8")
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(f'{file}: {said}')}") as error:
        app(["tune", f"{file}", "--dry-run"], standalone_mode=False)
    line = re.fullmatch(r".* \(line (\d+)\)", f"{error.value}")
    assert line is not None
    assert new in file.read_text(encoding="utf-8").splitlines()[int(line[1]) - 1]


def test_a_condition_that_no_trial_meets_is_named_by_its_key(file: Path) -> None:
    table = TABLE.replace("rtt < 25ms or links.up.rate == 2mbit", "rtt > 9s")
    file.write_text(TEXT + table, encoding="utf-8")
    with pytest.raises(
        sj.ScenarioError, match=r": tune\.where: no trial meets the conditions; expected .* \(line "
    ):
        app(["tune", f"{file}"], standalone_mode=False)


def test_parameters_that_change_together_are_replaced_together(file: Path) -> None:
    said = "-p rtt: [tune.parameters] changes it together with links.up.rate; expected values for"
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(said)}"):
        app(["tune", f"{file}", "-p", "rtt=9ms", "--dry-run"], standalone_mode=False)
