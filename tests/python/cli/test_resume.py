"""Interrupted commands: what they stored, how they are continued, and that nothing is repeated."""

import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.cli import continued
from support.shell import ROOT, environment
from support.stored import COMMAND, command, scenario_file, segments, study


def stored_bytes(store: Path) -> int:
    return sum(path.stat().st_size for path in segments(store))


def interrupted(
    *arguments: object, folder: Path, store: Path, by: signal.Signals, after: int = 20_000
) -> subprocess.CompletedProcess[str]:
    """Start a command; send a signal once it has stored `after` bytes."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while stored_bytes(store) < after and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    sent = time.monotonic()
    process.send_signal(by)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - sent < 2.5, "a signal takes effect within a second"
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def long_scenario(folder: Path) -> Path:
    """A scenario of 120 runs that takes a few seconds: many commits of the store."""
    return scenario_file(folder, duration="60s")


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """What an uninterrupted run prints and saves."""
    folder = tmp_path_factory.mktemp("whole")
    done = command("run", long_scenario(folder), "--out", "kept", "--seed", 3, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, files(folder / "kept")


@pytest.mark.parametrize(
    "by",
    [
        signal.SIGINT,
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_is_continued_to_the_same_bytes(
    tmp_path: Path, store: Path, whole: tuple[str, dict[str, bytes]], by: signal.Signals
) -> None:
    file = long_scenario(tmp_path)
    cut = interrupted("run", file, "--seed", 3, folder=tmp_path, store=store, by=by)
    if by == signal.SIGKILL:
        assert cut.returncode == -signal.SIGKILL
    else:
        assert cut.returncode == 128 + by, cut.stderr
        assert "Traceback" not in cut.stderr
        assert f"sojourn run {file} --seed 3\n" in cut.stderr
    assert len(segments(store)) == 1

    done = command("run", file, "--seed", 3, "--out", "again", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    said = re.search(
        r"continuing: (\d+) of 120 runs of many are stored; --fresh repeats them", done.stderr
    )
    assert said is not None, done.stderr
    assert int(said[1]) > 0
    assert (done.stdout, files(tmp_path / "again")) == whole
    assert segments(store) == [], "a complete result leaves nothing in the store"


def test_fresh_repeats_stored_runs(tmp_path: Path, store: Path) -> None:
    file = long_scenario(tmp_path)
    interrupted("run", file, "--seed", 3, folder=tmp_path, store=store, by=signal.SIGINT)
    done = command("run", file, "--seed", 3, "--fresh", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "continuing" not in done.stderr


def test_a_complete_result_of_the_same_build_is_printed_and_nothing_is_run(
    tmp_path: Path, store: Path
) -> None:
    file = scenario_file(tmp_path, replications=2)
    first = command("run", file, "--out", "kept", folder=tmp_path)
    before = files(tmp_path / "kept")
    again = command("run", file, "--out", "kept", folder=tmp_path)
    assert files(tmp_path / "kept") == before
    if _core.commit().endswith("-dirty"):
        # The same commit may stand for different code.
        assert again.returncode == 3
        assert "kept: contains a result (4 of 4 runs); expected" in again.stderr
    else:
        assert again.returncode == 0, again.stderr
        assert "kept contains the complete result of 4 runs; --fresh --force" in again.stderr
        assert again.stdout == first.stdout
        refused = command("run", file, "--out", "kept", "--fresh", folder=tmp_path)
        assert "kept: contains a result (4 of 4 runs); expected" in refused.stderr
    # With more replications, it is the result of another scenario.
    more = scenario_file(tmp_path, replications=3)
    done = command("run", more, "--out", "kept", folder=tmp_path)
    assert done.returncode == 3
    assert "kept: contains a result" in done.stderr
    assert not segments(store)


def test_a_signal_says_how_many_runs_are_stored(tmp_path: Path, store: Path) -> None:
    # The tables of this many runs take longer than a signal may take.
    file = scenario_file(tmp_path, duration="20s", replications=500)
    cut = interrupted("run", file, folder=tmp_path, store=store, by=signal.SIGTERM, after=500_000)
    assert cut.returncode == 128 + signal.SIGTERM, cut.stderr
    said = re.search(r"interrupted: (?:finished )?(\d+) of 1000 runs", cut.stderr)
    assert said is not None, cut.stderr
    assert int(said[1]) > 0


def test_another_seed_is_another_scenario(tmp_path: Path, store: Path) -> None:
    file = long_scenario(tmp_path)
    interrupted("run", file, "--seed", 3, folder=tmp_path, store=store, by=signal.SIGINT)
    done = command("run", file, "--seed", 4, folder=tmp_path)
    assert "continuing" not in done.stderr
    assert len(segments(store)) == 1, "the other interrupted run can still be continued"


def test_compare_is_continued(tmp_path: Path, store: Path) -> None:
    flags = ["compare", "pfifo", "fq_codel", "--duration", "100s", "--replications", "30"]
    whole = command(*flags, folder=tmp_path)
    cut = interrupted(*flags, folder=tmp_path, store=store, by=signal.SIGTERM, after=100_000)
    assert cut.returncode == 128 + signal.SIGTERM
    assert "interrupted: finished" in cut.stderr
    done = command(*flags, folder=tmp_path)
    assert "of 60 runs of rrul_be 10mbit are stored" in done.stderr
    assert done.stdout == whole.stdout


def test_reproduce_repeats_no_scenario_that_is_finished(tmp_path: Path, store: Path) -> None:
    study(tmp_path, replications=8)
    place = tmp_path / "papers" / "small"
    text = (place / "many.toml").read_text("utf-8").replace('"10s"', '"200s"')
    (place / "many.toml").write_text(text, encoding="utf-8")
    (place / "more.toml").write_text(text, encoding="utf-8")
    claims = (place / "claims.csv").read_text("utf-8")
    more = claims.splitlines()[-1].replace("A,", "B,", 1).replace(",many,", ",more,")
    (place / "claims.csv").write_text(f"{claims}{more}\n", encoding="utf-8")
    flags = ["reproduce", "small", "--papers", "papers"]
    whole = command(*flags, "--out", "whole", folder=tmp_path)
    assert whole.returncode == 0, whole.stderr
    process = subprocess.Popen(
        [*COMMAND, *map(str, flags), "--out", "again"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # The second scenario has begun.
    deadline = time.monotonic() + 60
    while len(segments(store)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait(timeout=10)
    done = command(*flags, "--out", "again", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "small: using 1 result that is already in again" in done.stderr
    assert done.stderr.count("continuing: ") <= 1
    assert done.stdout == whole.stdout
    for name, content in files(tmp_path / "whole").items():
        if name.endswith((".parquet", "manifest.json")):
            assert files(tmp_path / "again")[name] == content, name
    assert segments(store) == []


QUEUE = textwrap.dedent('''
    """Runs with a queue written in Python, on processes."""

    import sys

    import sojourn as sj


    class Tail(sj.PythonQueue):
        """A FIFO."""

        def __init__(self):
            self.packets = []

        def enqueue(self, now, packet):
            self.packets.append(packet)

        def dequeue(self, now):
            return self.packets.pop(0) if self.packets else None


    if __name__ == "__main__":
        scenario = sj.Scenario(
            links={"up": sj.Link(rate="5mbit", qdisc=Tail), "down": "unlimited"},
            traffic=[sj.Tcp(direction="up")],
            rtt="20ms", duration="20s", warmup="1s", replications=40,
        )
        said = []
        try:
            result = sj.run(
                scenario, jobs=2, store=sys.argv[1],
                progress=lambda n, total: (said.append(n), print(n, flush=True)),
            )
        except sj.Interrupted as interrupted:
            print("interrupted", interrupted.result.finished, flush=True)
            sys.exit(7)
        print("first", said[0] if said else None)
        result.save(sys.argv[2])
''')


def test_python_queues_on_processes_are_resumed(tmp_path: Path, store: Path) -> None:
    program = tmp_path / "tail.py"
    program.write_text(QUEUE, encoding="utf-8")
    start = [sys.executable, str(program), str(store)]
    whole = subprocess.run([*start, "whole"], cwd=tmp_path, check=True, timeout=120)
    assert whole.returncode == 0
    process = subprocess.Popen(
        [*start, "again"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "4":
            break
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    process.stdout.close()
    assert process.wait(timeout=60) == 7
    finished = int(rest.split("interrupted")[1])
    done = subprocess.run(
        [*start, "again"],
        cwd=tmp_path,
        check=True,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout.split("first")[1]) == finished + 1
    assert files(tmp_path / "again") == files(tmp_path / "whole")
    assert segments(store) == []


def test_a_script_gets_an_exception_with_the_finished_runs(
    scenario: sj.Scenario, tmp_path: Path
) -> None:
    def stop(_finished: int, _total: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(sj.Interrupted) as caught:
        sj.run(scenario.replace(replications=200), jobs=1, progress=stop, store=tmp_path)
    assert isinstance(caught.value, KeyboardInterrupt)
    partial = caught.value.result
    assert 0 < partial.finished < partial.total
    assert not partial.complete
    # Runs of all arms are there, in the order of the arms.
    assert partial.flows["arm"].unique(maintain_order=True).to_list()[0] == scenario.checked.arms[0]
    seen: list[int] = []
    whole = scenario.replace(replications=200)
    result = sj.run(whole, store=tmp_path, progress=lambda n, _: seen.append(n))
    assert result.complete
    assert len(segments(tmp_path)) == 2
    result.save(tmp_path / "result")
    assert segments(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("compare --jobs 2", "compare --jobs 2"),
        ("compare --fresh pfifo", "compare pfifo"),
        ("compare --fresh -- codel pfifo", "compare -- codel pfifo"),
        ("live -- sojourn --fresh", "live -- sojourn --fresh"),
        ("run 'a b.toml'", "run 'a b.toml'"),
    ],
)
def test_the_command_that_continues_can_be_run(
    monkeypatch: pytest.MonkeyPatch, given: str, printed: str
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/sojourn", *shlex.split(given)])
    assert continued.continuation() == f"sojourn {printed}"


def test_a_comparison_with_queues_behind_two_dashes_is_continued(
    tmp_path: Path, store: Path
) -> None:
    flags = ["compare", "--duration", "8s", "--warmup", "6s", "--replications", "1"]
    flags += ["--out", "kept", "--", "pfifo"]
    done = without_space(*flags, folder=tmp_path)
    found = re.search(r"^to continue: sojourn (.*)$", done.stderr, re.MULTILINE)
    assert found is not None, done.stderr
    again = command(*shlex.split(found[1]), folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "1 of 1 runs" in again.stderr
    assert segments(store) == []


def test_a_store_that_cannot_be_opened_is_a_warning(tmp_path: Path, store: Path) -> None:
    store.write_text("a file")
    file = scenario_file(tmp_path, replications=2)
    done = command("run", file, folder=tmp_path)
    assert done.returncode == 0
    assert re.search(r"warning: run store .*/store: .*; runs are not stored", done.stderr)
    assert len([line for line in done.stderr.splitlines() if "store" in line]) == 1
    with pytest.raises(sj.ResultError, match="run store"):
        sj.run(sj.Scenario.from_file(file), store=store)


# No directory takes a result, as on a machine whose disks are full except that of the store.
FULL = textwrap.dedent("""
    import sys

    import sojourn as sj
    from sojourn import _core, cli, report


    def refuse(_result, place, *_page, **_options):
        raise _core.ResultError(f"{place}: cannot be written: No space left on device")


    sj.Result.save = sj.Result.save_claimed = report.write = refuse
    sys.exit(cli.main())
""")


def without_space(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FULL, *map(str, arguments)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_result_that_is_saved_nowhere_leaves_its_runs_in_the_store(
    tmp_path: Path, store: Path
) -> None:
    file = scenario_file(tmp_path, replications=2)
    done = without_space("run", file, "--out", "kept", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "it could not be saved elsewhere either" in done.stderr
    assert f"to continue: sojourn run {file} --out kept\n" in done.stderr
    assert len(segments(store)) == 1
    again = command("run", file, "--out", "kept", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "continuing: 4 of 4 runs of many are stored" in again.stderr
    assert again.stdout == done.stdout
    assert sj.Result.load(tmp_path / "kept").complete
    assert segments(store) == []


def test_a_study_that_cannot_be_saved_leaves_its_runs_in_the_store(
    tmp_path: Path, store: Path
) -> None:
    study(tmp_path)
    flags = ["reproduce", "small", "--papers", "papers"]
    done = without_space(*flags, folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert f"to continue: sojourn {' '.join(flags)}\n" in done.stderr
    again = command(*flags, folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "continuing: 4 of 4 runs of many are stored" in again.stderr
    assert segments(store) == []


def test_a_report_that_cannot_be_written_leaves_the_runs_without_a_saved_result(
    tmp_path: Path, store: Path
) -> None:
    file = scenario_file(tmp_path, replications=2)
    done = without_space("run", file, "--report", "page.html", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert f"to continue: sojourn run {file} --report page.html\n" in done.stderr
    again = command("run", file, "--report", "page.html", folder=tmp_path)
    assert "continuing: 4 of 4 runs of many are stored" in again.stderr
    assert (tmp_path / "page.html").is_file()
    assert segments(store) == []


def test_a_full_disk_leaves_the_runs_in_the_store(
    mounted: Callable[..., Path], tmp_path: Path, store: Path
) -> None:
    file = scenario_file(tmp_path, replications=2)
    full = mounted("full", "-t", "tmpfs", "-o", "size=64k", "tmpfs")
    arguments = ["run", file, "--out", full / "kept"]
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=full,
        env=environment() | {"TMPDIR": str(full), "HOME": str(full)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "it could not be saved elsewhere either" in done.stderr
    assert "No space left on device" in done.stderr
    again = command("run", file, "--out", "kept", folder=tmp_path)
    assert "continuing: 4 of 4 runs of many are stored" in again.stderr
    assert sj.Result.load(tmp_path / "kept").complete
    assert segments(store) == []


def test_a_damaged_result_has_an_exit_code_of_its_own(tmp_path: Path, store: Path) -> None:
    file = scenario_file(tmp_path, replications=1)
    assert command("run", file, "--out", "kept", folder=tmp_path).returncode == 0
    table = tmp_path / "kept" / "pings.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    assert command("stats", "kept", folder=tmp_path).returncode == 4
    table.unlink()
    assert command("report", "kept", folder=tmp_path).returncode == 4
    assert command("stats", "nowhere", folder=tmp_path).returncode == 3
    assert command("run", "nowhere.toml", folder=tmp_path).returncode == 2
    assert segments(store) == []


def test_the_help_lists_the_exit_codes_and_the_place_of_the_store(tmp_path: Path) -> None:
    described = " ".join(command("--help", folder=tmp_path).stdout.split())
    listed = described[described.index("Exit codes:") : described.index("Finished runs")]
    policy = (ROOT / "docs" / "policy.md").read_text("utf-8")
    documented = re.findall(r"^\| (\d+) \| (.*) \|$", policy, re.MULTILINE)
    assert [code for code, _ in documented] == re.findall(r"\b(\d+) [A-Za-z]", listed)
    meanings = dict(documented)
    for code, word in (("2", "scenario"), ("3", "report"), ("4", "--strict")):
        assert word in re.findall(rf"\b{code} ([^\d]+)", listed)[0]
        assert word in meanings[code]
    assert "$SOJOURN_STORE" in described
    for name in ("run", "compare", "reproduce"):
        assert "--fresh" in command(name, "--help-all", folder=tmp_path).stdout
