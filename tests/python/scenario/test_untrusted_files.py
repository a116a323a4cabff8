"""Scenarios and traces from anyone: only regular files are read, and messages are safe to print."""

import os
import re
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.scenario import files
from support.refusals import VALID, refused
from support.shell import Command
from support.stored import study

TRACED = VALID.replace('rate = "10mbit"', 'trace = "{}"', 1)
ESCAPE = "\x1b]0;title\x07\x1b[2J"


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "fifo")
    return "fifo"


def test_a_scenario_that_is_no_regular_file_is_refused_at_once(
    sojourn: Command, tmp_path: Path, fifo: str
) -> None:
    for name in (fifo, "/dev/zero"):
        refused(sojourn("run", name), 2, f"{name}: is not a regular file; expected a TOML file")
    refused(sojourn("run", "."), 2, "is a directory")
    with pytest.raises(sj.ScenarioError, match="not a regular file"):
        sj.Scenario.from_file(tmp_path / fifo)


def test_a_scenario_file_has_a_largest_size(
    sojourn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "large.toml"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    refused(sojourn("run", "large.toml"), 2, "large.toml: too large; expected .* 16000000 bytes")
    monkeypatch.setattr(files, "MAX_SCENARIO", len(VALID))
    file.write_text(VALID, encoding="utf-8")
    assert sj.Scenario.from_file(file).duration == "5s"
    file.write_text(VALID + " ", encoding="utf-8")
    with pytest.raises(sj.ScenarioError, match="too large"):
        sj.Scenario.from_file(file)


def test_a_trace_that_is_no_regular_file_is_refused_at_once(
    sojourn: Command, tmp_path: Path, fifo: str
) -> None:
    for name in (fifo, "/dev/zero"):
        (tmp_path / "traced.toml").write_text(TRACED.format(name), encoding="utf-8")
        refused(sojourn("run", "traced.toml"), 2, r"links\.up\.trace.*: not a regular file")
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    (tmp_path / "traced.toml").write_text(TRACED.format("sparse"), encoding="utf-8")
    refused(sojourn("run", "traced.toml"), 2, "too large; expected at most 120000000 bytes")


def test_the_content_of_a_foreign_file_is_not_shown(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("12\nroot:hunter2\n", encoding="utf-8")
    (tmp_path / "traced.toml").write_text(TRACED.format("secret"), encoding="utf-8")
    done = sojourn("run", "traced.toml")
    refused(done, 2, "secret, line 2: not a time; expected whole milliseconds")
    assert "hunter2" not in done.stderr


def test_control_characters_do_not_reach_the_terminal(sojourn: Command, tmp_path: Path) -> None:
    escaped = ESCAPE.replace("\x1b", "\\u001b").replace("\x07", "\\u0007")
    (tmp_path / "a.toml").write_text(
        VALID.replace('duration = "5s"', f'duration = "{escaped}"'), encoding="utf-8"
    )
    named = f"{ESCAPE}.toml"
    (tmp_path / named).write_text("duration = 5", encoding="utf-8")
    for arguments in (
        ["run", "a.toml"],
        ["run", named],
        ["run", f"{ESCAPE}absent"],
        ["run", "a.toml", "-s", f"x{ESCAPE}"],
        ["compare", ESCAPE],
        ["report", ESCAPE],
        [ESCAPE],
    ):
        done = sojourn(*arguments)
        assert done.returncode in {2, 3}, done.stderr
        assert "\\u001b" in done.stderr or "\\x1b" in done.stderr, done.stderr
        assert not any(ord(c) < 32 for c in done.stderr.strip()), done.stderr


def test_control_characters_in_names_of_results_do_not_reach_the_terminal(
    sojourn: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(VALID, encoding="utf-8")
    place = "\x07\x1b[2J"
    saved = sojourn("run", "a.toml", "--out", place, "--report", f"{place}.html")
    study(tmp_path, replications=1)
    folder = f"{place}study"
    for done in (
        saved,
        sojourn("report", place),
        sojourn("report", place, "--report", f"{place}/again.html"),
        sojourn("reproduce", "small", "--papers", "papers", "--out", folder),
    ):
        assert done.returncode == 0, done.stderr
        assert re.search(r"wrote .* to \\u0007\\u001b\[2J", done.stderr), done.stderr
        assert not any(ord(c) < 32 for c in done.stderr.replace("\n", "")), done.stderr


def test_titles_arms_and_notices_show_no_hidden_characters(
    sojourn: Command, tmp_path: Path
) -> None:
    arms = '[[arms]]\nname = "a\u202eb"\n[[arms]]\nname = "c"\n'
    text = f'name = "x\u202ey"\n{VALID}{arms}'
    (tmp_path / "hidden.toml").write_text(text, encoding="utf-8")
    for more in ([], ["--dry-run"]):
        done = sojourn("run", "hidden.toml", *more)
        assert done.returncode == 0, done.stderr
        assert "\u202e" not in done.stdout + done.stderr
        assert "x\\u202ey" in done.stdout
        assert "a\\u202eb" in done.stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('duration = "5s"', 'duration = "{}"'),
        ('rate = "10mbit"', 'rate = "{}"'),
        ('qdisc = "codel"', 'qdisc = "{}"'),
        ('qdisc = "codel"', 'qdisc = "codel target {}"'),
        ('direction = "up"', 'direction = "{}"'),
        ('direction = "up"', 'direction = "up"\ncc = "{}"'),
        ('direction = "up"', 'path = ["{}"]'),
        ('direction = "up"', 'direction = "up"\n{} = 1'),
        ("[links.up]", '[links."{}"]'),
        ('rate = "10mbit"', 'trace = "{}"'),
    ],
)
def test_a_long_value_is_cut(before: str, after: str) -> None:
    text = VALID.replace(before, after.format("y" * 100_000), 1)
    with pytest.raises(sj.ScenarioError) as caught:
        sj.Scenario.from_toml(text)
    assert "y" * 201 not in str(caught.value)
    assert len(str(caught.value)) < 1_000
