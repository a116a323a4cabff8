"""Programs in scenarios: Python objects and files agree, and the simulator rejects them."""

from pathlib import Path

import pytest

import sojourn as sj
from support.shell import Command

TOML = """
duration = "5s"
rtt = "50ms"
links.up = { rate = "10mbit", qdisc = "codel" }
links.down = { rate = "10mbit", qdisc = "codel" }
traffic = [
    { type = "ping", direction = "up" },
    { type = "program", direction = "up", command = ["a", "", "$SOJOURN_SERVER"], server = ["b"] },
]
"""
REJECTED = (
    'backend "sim" does not support traffic[1].type: a program (only live runs start programs)'
)


def _built() -> sj.Scenario:
    link = sj.Link(rate="10mbit", qdisc="codel")
    program = sj.Program(direction="up", command=("a", "", "$SOJOURN_SERVER"), server=["b"])
    return sj.Scenario(
        duration="5s",
        rtt="50ms",
        links={"up": link, "down": link},
        traffic=[sj.Ping(direction="up"), program],
    )


def test_objects_and_files_give_the_same_scenario() -> None:
    read = sj.Scenario.from_toml(TOML)
    assert _built() == read
    assert sj.Scenario.from_toml(read.to_toml()) == read
    program = read.traffic[1]
    assert isinstance(program, sj.Program)
    assert list(program.command) == ["a", "", "$SOJOURN_SERVER"]
    assert program.server == ["b"]
    changed = read.replace(traffic=[sj.Program(direction="up", command=["a"])])
    assert "server" not in changed.to_toml()


@pytest.mark.parametrize(
    ("command", "count", "message"),
    [
        ([], None, "^command: names no program; expected a list such as "),
        ("iperf3 -s", None, '^command: "iperf3 -s" is not a list; expected values between'),
        (["a", 5], None, r"^command\[1\]: 5 is not a string"),
        (["a", "\0"], None, "^command: string 2 contains a NUL character"),
        (["x" * 100_001], None, "^command: too long: 100001 bytes; expected at most 100000$"),
        (["a"], 2, "^count: too many programs: 2; expected 1"),
    ],
)
def test_mistakes_are_refused_at_construction(
    command: list[str], count: int | None, message: str
) -> None:
    with pytest.raises(sj.ScenarioError, match=message):
        sj.Program(direction="up", command=command, count=count)


def test_a_scenario_has_at_most_one_program() -> None:
    program = sj.Program(direction="up", command=["a"])
    with pytest.raises(sj.ScenarioError, match=r"^traffic\[2\]\.type: a second program; expected"):
        _built().replace(traffic=[program, sj.Ping(direction="up"), program])


def test_the_simulator_rejects_programs_before_it_writes_anything(
    sojourn: Command, tmp_path: Path
) -> None:
    with pytest.raises(sj.ScenarioError) as refused:
        sj.run(sj.Scenario.from_toml(TOML))
    assert str(refused.value) == REJECTED
    (tmp_path / "program.toml").write_text(TOML, encoding="utf-8")
    for options in ([], ["--dry-run"], ["--out", "result"], ["--json"]):
        done = sojourn("run", "program.toml", *options)
        assert (done.returncode, done.stdout) == (2, ""), options
        assert done.stderr == f"sojourn: {REJECTED}\n", options
    assert not (tmp_path / "result").exists()
