"""Searches of traffic and arms, and the commands that they propose."""

import json
import re
import shlex
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.cli.app import app
from sojourn.scenario import presets
from support.searched import TEXT
from support.shell import Command

FEW = ("--trials", "4", "--replications", "1", "--final-replications", "2")
SHORT = ("-s", "duration=8s", "-s", "warmup=6s")
TARGET = ("-p", "links.*.qdisc.target=loguniform(1ms,50ms)")


@pytest.fixture
def searched_file(tmp_path: Path) -> Path:
    path = tmp_path / "searched.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def proposed(output: str) -> list[str]:
    """The command that a search proposes, in the first lines."""
    (line,) = (line for line in output.splitlines()[:6] if line.startswith("  sojourn "))
    return shlex.split(line)[1:]


def test_traffic_is_tuned_and_the_proposed_command_runs_it(sojourn: Command) -> None:
    traffic = ("tcp_1up", "--link", "5/2mbit", "--rtt", "20ms", "--qdisc", "codel")
    # The second change describes the original scenario alone.
    changes = (*SHORT, "-s", "links.up.qdisc.target=7ms")
    tuned = sojourn("tune", *traffic, *changes, *TARGET, "--objective", "min ping_ms_p99", *FEW)
    assert tuned.returncode == 0, tuned.stderr
    words = proposed(tuned.stdout)
    assert words[: 8 + len(SHORT)] == ["sweep", *traffic, *SHORT]
    assert re.fullmatch(r"links\.down\.qdisc\.target=\d.*ms", words[-3])
    assert re.fullmatch(r"links\.up\.qdisc\.target=\d.*ms", words[-1])
    again = sojourn(*words)
    assert again.returncode == 0, again.stderr
    assert again.stderr.startswith("1 point, 3 runs;")


def test_the_scenario_of_traffic_is_that_of_sweeps(sojourn: Command) -> None:
    words = ("tcp_1up", *SHORT, "--method", "morris", "--samples", "2", "--replications", "1")
    found = sojourn(
        "sensitivity", *words, "-p", "rtt=9ms,90ms", "--metric", "ping_ms_p99", "--json"
    )
    assert found.returncode == 0, found.stderr
    rates = presets.link_rates("10mbit")
    scenario = presets.access_link(
        rates=rates,
        groups=presets.traffic("tcp_1up", rates),
        queues={"fq_codel": sj.qdisc("fq_codel")},
        rtt="50ms",
        duration="8s",
        warmup="6s",
        replications=3,
        seed=1,
        name="fq_codel",
    )
    same = sj.sensitivity(
        scenario,
        {"rtt": ["9ms", "90ms"]},
        "ping_ms_p99",
        method="morris",
        samples=2,
        replications=1,
    )
    assert json.loads(found.stdout)["indices"] == same.indices.to_dicts()


def test_the_proposed_command_runs_the_tuned_arm(sojourn: Command, searched_file: Path) -> None:
    # The parameter exists only in the arm.
    text = TEXT.replace('qdisc = "codel"', 'qdisc = "pfifo"')
    arms = 'arms = [{ name = "a" }, { name = "b", set = { "links.up.qdisc" = "codel" } }]\n'
    searched_file.write_text(text + arms, encoding="utf-8")
    words = ("tune", searched_file, "--arm", "b", "-s", "rtt=30ms", "--objective", "min drops")
    tuned = sojourn(*words, "-p", "links.up.qdisc.target=1ms,9ms", *FEW)
    assert tuned.returncode == 0, tuned.stderr
    command = proposed(tuned.stdout)
    assert command[:6] == ["sweep", f"{searched_file}", "--arm", "b", "-s", "rtt=30ms"]
    again = sojourn(*command)
    assert again.returncode == 0, again.stderr
    assert again.stderr.startswith("1 point, 1 run;")


def test_the_proposed_command_repeats_changes(sojourn: Command, searched_file: Path) -> None:
    words = ("tune", searched_file, "-s", "rtt=30ms", "--objective", "min drops")
    tuned = sojourn(*words, "-p", "links.up.qdisc.target=9ms,10ms", *FEW)
    *before, found = proposed(tuned.stdout)
    assert before == ["run", f"{searched_file}", "-s", "rtt=30ms", "-s"]
    assert found in {"links.up.qdisc.target=9ms", "links.up.qdisc.target=10ms"}


@pytest.mark.parametrize("command", ["tune", "sensitivity"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("FILE", "--qdisc", "pie"),
            "--qdisc: requires TRAFFIC instead of FILE; expected -s links.down.qdisc=",
        ),
        (("FILE", "--rtt", "9ms"), "--rtt: requires TRAFFIC instead of FILE; expected -s rtt=9ms"),
        (("tpc_1up",), "tpc_1up: neither a file nor traffic; did you mean tcp_1up?"),
        (
            ("rrul", "--link", "10x"),
            "--link 10x: not a rate: unknown unit; the units are bit, kbit",
        ),
        (
            ("FILE", "-p", "links.up.qdisc.target=5ms"),
            "-p links.up.qdisc.target: only one value, 5ms; expected a range such as uniform(",
        ),
    ],
)
def test_wrong_traffic_is_refused(
    command: str, words: tuple[str, ...], said: str, searched_file: Path
) -> None:
    given = [f"{searched_file}" if word == "FILE" else word for word in words]
    of = {"tune": ("--objective", "min drops"), "sensitivity": ("--metric", "drops")}[command]
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(said)}"):
        app([command, *given, "-p", "rtt=1ms,9ms", *of, "--dry-run"], standalone_mode=False)


@pytest.mark.parametrize(
    "words",
    [
        ("tune", "FILE", "--objective", "min goodput_dwon"),
        ("sensitivity", "FILE", "--metric", "goodput_dwon"),
        ("adversary", "--loser", "codel", "--against", "pie", "--score", "min goodput_dwon"),
    ],
)
def test_a_metric_of_an_unknown_link_is_refused_before_the_runs(
    words: tuple[str, ...], searched_file: Path
) -> None:
    given = [f"{searched_file}" if word == "FILE" else word for word in words]
    said = r'unknown metric( "goodput_dwon")?; did you mean "goodput_down_mbit_per_s"\?'
    with pytest.raises(sj.ScenarioError, match=said):
        app([*given, "-p", "rtt=1ms,9ms", "--dry-run"], standalone_mode=False)


def test_an_arm_of_a_file_without_arms_is_refused(searched_file: Path) -> None:
    words = ("adversary", f"{searched_file}", "--loser", "x", "--against", "y", "--dry-run")
    with pytest.raises(sj.ScenarioError, match=r"^--loser x: the scenario has no arms$"):
        app([*words], standalone_mode=False)


def test_traffic_is_no_file_of_an_adversary() -> None:
    said = "rrul_be: adversary takes no traffic; expected a scenario file with both arms, or no FI"
    with pytest.raises(sj.ScenarioError, match=f"^{said}"):
        app(["adversary", "rrul_be", "--loser", "codel", "--against", "pie"], standalone_mode=False)


def test_a_change_that_all_points_of_an_analysis_replace_is_refused(searched_file: Path) -> None:
    words = ("sensitivity", f"{searched_file}", "--metric", "drops", "-s", "rtt=5ms", "--dry-run")
    said = "-s rtt=5ms: each point of the analysis sets rtt; expected either -s or a parameter"
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(said)}"):
        app([*words, "-p", "rtt=1ms,9ms"], standalone_mode=False)
