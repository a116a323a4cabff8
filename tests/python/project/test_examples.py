"""The scenario files in examples run, and their results are valid."""

import re
from pathlib import Path

import pytest

import sojourn as sj
from support.shell import ROOT, Command

FILES = sorted((ROOT / "examples").glob("*.sojourn.toml"))
# The others take up to 10 s of CPU time each.
QUICK = {"expectations.sojourn.toml", "vdsl_overhead.sojourn.toml"}


def test_the_list_of_examples_is_complete() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\((\w+\.sojourn\.toml)\)", text)
    assert sorted(listed) == [file.name for file in FILES]
    assert {file.name for file in FILES} > QUICK


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_example_begins_with_what_it_shows_and_is_accepted(file: Path, sojourn: Command) -> None:
    first, second, third, *_ = file.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    assert second.startswith("# ")
    assert third.startswith("name = ")
    done = sojourn("run", str(file), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, marks=() if file.name in QUICK else pytest.mark.slow, id=file.name)
        for file in FILES
    ],
)
def test_the_result_of_an_example_is_valid(file: Path) -> None:
    scenario = sj.Scenario.from_file(file)
    result = sj.run(scenario)
    assert result.validity.verdict == "valid", result.validity.findings


def test_the_example_for_ci_passes(sojourn: Command) -> None:
    done = sojourn("test", str(ROOT / "examples" / "expectations.sojourn.toml"))
    assert done.returncode == 0, done.stdout
