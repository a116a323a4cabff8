"""`sojourn store`: what the run store contains after an execution that was interrupted."""

import json
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.cli.app import app
from sojourn.execute import runs
from support.stored import SCENARIO, segments


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with two of four runs of an execution that has ended."""
    folder = tmp_path / "store"
    monkeypatch.setenv("SOJOURN_STORE", str(folder))
    scenario = sj.Scenario.from_toml(SCENARIO.format(duration="2s", replications=2)).checked
    begun = _core.RunStore(folder).begin(scenario, binary="test")
    for number in range(2):
        begun.append(number, _core.run_one(scenario, number))
    begun.close()
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = app(["store", *words], standalone_mode=False)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.usefixtures("store")
def test_interrupted_executions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "ls", "--json")
    (found,) = json.loads(out)
    assert code == 0
    assert (found["name"], found["runs"], found["active"]) == ("many", 2, False)
    assert found["bytes"] > 1000
    assert found["age_s"] < 60
    code, out, _ = run(capsys, "ls")
    assert code == 0
    assert "many" in out
    assert "stored" in out
    code, out, _ = run(capsys, "du")
    assert "2 runs of 1 scenario " in out


def test_an_execution_that_goes_on_is_neither_old_nor_removed(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = sj.Scenario.from_toml(SCENARIO.format(duration="3s", replications=2)).checked
    begun = _core.RunStore(store).begin(scenario, binary="test")
    begun.append(0, _core.run_one(scenario, 0))
    begun.flush()
    found = json.loads(run(capsys, "ls", "--json")[1])
    assert sorted(one["active"] for one in found) == [False, True]
    run(capsys, "gc", "--older-than", "0s")
    (left,) = json.loads(run(capsys, "ls", "--json")[1])
    assert left["active"]
    begun.close()


def test_old_runs_are_removed_and_younger_ones_kept(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "gc")[1] == "removed 0 B\n"
    assert len(segments(store)) == 1
    code, out, _ = run(capsys, "gc", "--older-than", "0s")
    assert code == 0
    assert out.startswith("removed ")
    assert "0 B" not in out
    assert segments(store) == []


def test_damaged_runs_are_found(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify")[:2] == (0, "3 records, 0 damaged\n")
    (segment,) = segments(store)
    content = bytearray(segment.read_bytes())
    content[-10] ^= 0xFF
    segment.write_bytes(content)
    code, out, err = run(capsys, "verify")
    assert code == 4
    assert out == "3 records, 1 damaged\n"
    assert f"{segment}: 1 damaged records" in err.replace("\n", "")


def test_a_check_repairs_nothing_before_it_reads(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (segment,) = segments(store)
    content = bytearray(segment.read_bytes())
    # The header of the last record, which any other command would cut off.
    content[content.rindex(b"run\n") + 20] ^= 0xFF
    segment.write_bytes(content)
    for _ in range(2):
        assert run(capsys, "verify")[:2] == (4, "3 records, 1 damaged\n")
    assert segment.read_bytes() == bytes(content)


def test_an_age_that_is_none_is_refused(store: Path) -> None:
    assert runs.default_folder() == store
    with pytest.raises(_core.ScenarioError, match="--older-than: '7 days' is not a time"):
        app(["store", "gc", "--older-than", "7 days"], standalone_mode=False)
