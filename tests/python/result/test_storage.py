"""Where results go: what can be written, what is replaced, what a failure leaves."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.cli import continued
from sojourn.result import storage
from support.manifests import edit
from support.saved import names, refused, scenario
from support.shell import Command, environment
from support.stored import COLUMNS, DESCRIPTION


def test_a_result_is_saved_to_a_mount_point(
    mounted: Callable[..., Path], sojourn: Command, file: Path
) -> None:
    place = mounted("volume", "-t", "tmpfs", "-o", "size=5m", "tmpfs")
    done = sojourn("run", str(file), "--out", "volume")
    assert done.returncode == 0, done.stderr
    assert sj.Result.load(place).complete


def test_a_result_that_fills_the_disk_is_printed_and_saved_elsewhere(
    mounted: Callable[..., Path], file: Path, tmp_path: Path
) -> None:
    place = mounted("small", "-t", "tmpfs", "-o", "size=32k", "tmpfs")
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", "run", str(file), "--out", str(place), "--json"],
        env={**environment(), "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["finished_runs"] == 1
    found = re.search(r"No space left .*; the result was saved to (\S+) instead", done.stderr)
    assert found is not None, done.stderr
    assert Path(found[1]).parent == tmp_path / "temporary"
    assert sj.Result.load(found[1]).complete
    assert names(place) == []


def test_a_result_is_saved_to_a_bind_mount(
    mounted: Callable[..., Path], sojourn: Command, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    place = mounted("bound", "--bind", str(tmp_path / "data"))
    done = sojourn("run", str(file), "--out", "bound")
    assert done.returncode == 0, done.stderr
    again = sojourn("run", str(file), "--out", "bound", "--seed", "2", "--force")
    assert again.returncode == 0, again.stderr
    assert sj.Result.load(tmp_path / "data").scenario.seed == 2
    assert sj.Result.load(place).complete


def test_a_result_is_saved_to_the_working_directory(tmp_path: Path, file: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", "run", str(file), "--out", "."],
        cwd=tmp_path / "empty",
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sj.Result.load(tmp_path / "empty").complete


def test_the_parent_of_the_directory_need_not_be_writable(tmp_path: Path, file: Path) -> None:
    parent, place = tmp_path / "parent", tmp_path / "parent" / "out"
    place.mkdir(parents=True)
    parent.chmod(0o555)
    command = [sys.executable, "-m", "sojourn", "run", str(file), "--out", str(place)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write to any directory, and there is no setpriv")
        drop = "-dac_override"
        command = ["setpriv", f"--inh-caps={drop}", f"--bounding-set={drop}", *command]
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=100, check=False
        )
    finally:
        parent.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert sj.Result.load(place).complete


def test_a_link_is_followed_and_not_replaced(tmp_path: Path, sojourn: Command, file: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    done = sojourn("run", str(file), "--out", "out", "--report", "out/report.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").is_symlink()
    assert sj.Result.load(tmp_path / "disk").complete
    assert (tmp_path / "disk" / "report.html").exists()


def test_an_existing_result_is_refused_before_any_run_without_force(
    tmp_path: Path, sojourn: Command, file: Path
) -> None:
    assert sojourn("run", str(file), "--out", "out").returncode == 0
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    # The runs would take hours.
    long = ("compare", "--link", "1gbit", "--duration", "10000s", "--replications", "1000")
    # What takes too much memory is refused before the directory is looked at.
    long += ("--max-memory", "10000gb")
    said = "out: contains a result (1 of 1 runs)"
    refused(sojourn(*long, "--out", "out"), said, "or --force to replace it")
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before
    done = sojourn("run", str(file), "--out", "out", "--seed", "7", "--force")
    assert done.returncode == 0, done.stderr
    assert sj.Result.load(tmp_path / "out").scenario.seed == 7


def test_a_full_disk_is_named_without_words_of_the_library(
    mounted: Callable[..., Path], sojourn: Command, file: Path
) -> None:
    place = mounted("full", "-t", "tmpfs", "-o", "size=16k", "tmpfs")
    done = sojourn("run", str(file), "--out", "full/out")
    assert done.returncode == 3, done.stderr
    said, _, kept = done.stderr.splitlines()[-1].partition("; the result was saved to ")
    assert said == "sojourn: full/out: cannot be written: No space left on device (os error 28)"
    shutil.rmtree(kept.removesuffix(" instead"))
    assert names(place) == []


def test_python_names_the_argument_that_replaces_a_result(tmp_path: Path) -> None:
    first, second = sj.run(scenario()), sj.run(scenario(seed=2))
    first.save(tmp_path / "out")
    said = r"out: contains a result \(1 of 1 runs\); .* new directory, or force to replace it$"
    with pytest.raises(sj.ResultError, match=said):
        second.save(tmp_path / "out")
    second.save(tmp_path / "out", force=True)


_FLOCK = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
int flock(int file, int operation) { errno = atoi(getenv("FLOCK_ERRNO")); return -1; }
"""


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_written_to_and_named(
    tmp_path: Path, file: Path, number: int
) -> None:
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("no C compiler")
    (tmp_path / "flock.c").write_text(_FLOCK)
    build = [compiler, "-shared", "-fPIC", "-o", "flock.so", "flock.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    locks = {"LD_PRELOAD": str(tmp_path / "flock.so"), "FLOCK_ERRNO": str(number)}
    sweep = ("sweep", str(file), "-p", "rtt=10ms,20ms")
    for command in (("run", str(file)), sweep):
        place = command[0]
        done = subprocess.run(
            [sys.executable, "-m", "sojourn", *command, "--out", place],
            cwd=tmp_path,
            env=environment() | locks,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said = f"warning: {place}: the file system has no locks; let only one process write to it"
        assert done.stderr.splitlines().count(said) == 1, done.stderr
    assert sj.Result.load(tmp_path / "run").complete


def test_reproduce_replaces_results_only_with_force(
    tmp_path: Path, sojourn: Command, file: Path
) -> None:
    study = tmp_path / "papers" / "small"
    study.mkdir(parents=True)
    (study / "short.toml").write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    (study / "study.toml").write_text(DESCRIPTION, encoding="utf-8")
    line = "A,Fig. 1,text,delay,short,default,,sojourn_ms_mean,at_least,,0,,\n"
    (study / "claims.csv").write_text(f"{COLUMNS}\n{line}", encoding="utf-8")
    arguments = ("reproduce", "small", "--papers", "papers", "--out", "study")
    first = sojourn(*arguments)
    assert first.returncode == 0, first.stderr
    other = (*arguments, "--replications", "2")
    again = sojourn(*other)
    assert again.returncode == 3, again.stderr
    last = again.stderr.splitlines()[-1]
    assert "study/scenarios/short: contains a result" in last
    assert "or --force to replace it" in last
    assert sojourn(*other, "--force").returncode == 0


def test_two_writers_of_a_directory_exclude_each_other(
    tmp_path: Path, sojourn: Command, file: Path
) -> None:
    with storage.claimed(tmp_path / "out"):
        refused(sojourn("run", str(file), "--out", "out"), "out: another process is writing to it")
    assert not (tmp_path / "out").exists()
    assert sojourn("run", str(file), "--out", "out").returncode == 0


def test_a_result_that_cannot_be_saved_is_printed_and_saved_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    out = tmp_path / "out"

    def run_and_break(*_arguments: object, **_options: object) -> continued.KeptResult:
        (out / "thesis").mkdir(parents=True)
        return continued.KeptResult(sj.run(scenario()), None)

    monkeypatch.setattr("sojourn.cli.continued.run", run_and_break)
    monkeypatch.setattr("sys.argv", ["sojourn", "run", str(file), "--out", str(out)])
    from sojourn import cli  # noqa: PLC0415 - after the functions are replaced

    assert cli.main() == 3
    printed = capsys.readouterr()
    assert "default" in printed.out
    expected = r"sojourn: .*out: is not empty .*; the result was saved to (\S+) instead"
    found = re.search(expected, printed.err)
    assert found is not None, printed.err
    assert sj.Result.load(found[1]).complete
    assert names(out) == ["thesis"]


def test_a_result_is_saved_at_home_if_no_other_directory_can_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", none)
    monkeypatch.setattr(Path, "cwd", none)
    monkeypatch.setenv("HOME", str(home))
    result = sj.run(scenario())
    for can_be_saved in (True, False):
        with storage.claimed(tmp_path / "out") as claim:
            assert claim is not None
            (tmp_path / "out" / "thesis").mkdir(parents=True, exist_ok=True)
            with pytest.raises(storage.NotSavedError, match="out: is not empty") as caught:
                storage.save(result, claim)
        (tmp_path / "out" / "thesis").rmdir()
        place = caught.value.place
        if can_be_saved:
            assert place is not None
            assert place.parent == home
            assert sj.Result.load(place).complete
            shutil.rmtree(home)
        else:
            assert place is None
            assert "No usable temporary directory" in str(caught.value)
            assert f"{home}" in str(caught.value)


def test_an_incomplete_result_never_replaces_a_complete_one(tmp_path: Path) -> None:
    complete = sj.run(scenario().replace(replications=3))
    complete.save(tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "part")
    edit(tmp_path / "part", {"complete": False, "finished": 2})
    part = sj.Result.load(tmp_path / "part")
    assert not part.complete
    expected = r"complete result \(3 runs\), which an incomplete one \(2 of 3 runs\) does not"
    with pytest.raises(sj.ResultError, match=expected):
        part.save(tmp_path / "out", force=True)
    assert sj.Result.load(tmp_path / "out").complete
    complete.save(tmp_path / "part", force=True)


def test_a_result_may_be_limited_in_memory(tmp_path: Path) -> None:
    sj.run(scenario()).save(tmp_path / "out")
    assert sj.Result.load(tmp_path / "out", max_bytes=10_000_000).complete
    with pytest.raises(sj.ResultError, match=r"expected at most|more memory|too large"):
        sj.Result.load(tmp_path / "out", max_bytes=100)
