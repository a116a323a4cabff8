"""A directory with a commit that was interrupted, and `--resume`."""

import shutil
from pathlib import Path

import pytest

from stored import command, scenario_file


def interrupt_the_commit(result: Path) -> None:
    """Leave of a result what a process leaves that dies behind the commit."""
    moved = result.with_name("moved")
    result.rename(moved)
    result.mkdir()
    moved.rename(result / ".sojourn-commit")


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"[]"])
def test_a_manifest_that_is_none_is_not_continued(tmp_path: Path, content: bytes) -> None:
    file = scenario_file(tmp_path, duration="2s", replications=1)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "manifest.json").write_bytes(content)
    done = command("run", file, "--out", "kept", "--resume", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("sojourn: kept: is not empty and not a Sojourn result")
    assert (tmp_path / "kept" / "manifest.json").read_bytes() == content


@pytest.mark.usefixtures("store")
def test_an_interrupted_commit_is_continued_by_the_same_scenario_alone(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, duration="2s", replications=1)
    assert command("run", file, "--out", "kept", folder=tmp_path).returncode == 0
    kept, copy = tmp_path / "kept", tmp_path / "copy"
    manifest = (kept / "manifest.json").read_bytes()
    interrupt_the_commit(kept)
    shutil.copytree(kept, copy)
    assert not (kept / "manifest.json").exists()

    done = command("run", file, "--out", "kept", "--resume", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (kept / "manifest.json").read_bytes() == manifest
    assert not (kept / ".sojourn-commit").exists()

    for flags in (["--resume", "--seed", 4], []):
        done = command("run", file, "--out", "copy", *flags, folder=tmp_path)
        assert done.returncode == 3
        assert "copy: contains a result (2 of 2 runs); expected" in done.stderr
