"""A directory with a commit that was interrupted, and commands that continue."""

from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.result import storage
from support.stored import command, scenario_file


def interrupted(folder: Path) -> tuple[Path, sj.Scenario]:
    """A directory as a process leaves it that dies after the commit, and its scenario."""
    scenario = sj.Scenario.from_toml(
        scenario_file(folder, duration="2s", replications=1).read_text(encoding="utf-8")
    )
    result = sj.run(scenario)
    result.save(folder / "kept" / ".sojourn-commit")
    return folder / "kept", scenario


@pytest.mark.parametrize("seed", [None, 4])
def test_an_interrupted_commit_is_finished_before_scenarios_are_compared(
    tmp_path: Path, seed: int | None
) -> None:
    kept, scenario = interrupted(tmp_path)
    if seed is None:
        with storage.claimed(kept, resumed=scenario):
            pass
    else:
        with (
            pytest.raises(sj.ResultError, match=r"contains a result \(2 of 2 runs\); expected"),
            storage.claimed(kept, resumed=scenario.replace(seed=seed)),
        ):
            pass
    assert not (kept / ".sojourn-commit").exists()
    assert sj.Result.load(kept).complete


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"[]"])
def test_a_manifest_that_is_none_is_not_continued(tmp_path: Path, content: bytes) -> None:
    file = scenario_file(tmp_path, duration="2s", replications=1)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "manifest.json").write_bytes(content)
    done = command("run", file, "--out", "kept", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("sojourn: kept: is not empty and not a Sojourn result")
    assert (tmp_path / "kept" / "manifest.json").read_bytes() == content


@pytest.mark.usefixtures("store")
def test_a_command_finds_the_result_of_an_interrupted_commit(tmp_path: Path) -> None:
    kept, _ = interrupted(tmp_path)
    file = tmp_path / "many.toml"
    done = command("run", file, "--out", "kept", folder=tmp_path)
    # The commit of a build with uncommitted changes may stand for different code.
    expected = 3 if _core.commit().endswith("-dirty") else 0
    assert done.returncode == expected, done.stderr
    assert done.stderr.count("contains a result (2 of 2 runs); expected") == expected // 3
    assert sj.Result.load(kept).complete
    for flags in (["--fresh"], ["--seed", 4]):
        done = command("run", file, "--out", "kept", *flags, folder=tmp_path)
        assert done.returncode == 3
        assert "kept: contains a result (2 of 2 runs); expected" in done.stderr
