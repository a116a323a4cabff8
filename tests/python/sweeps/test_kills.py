"""Sweeps whose processes are killed at random moments: the command, and workers of a cluster.

``SOJOURN_KILLS`` is the number of kills: a few by default, 200 in ``make sweep-kills``, where runs
take at least 0.5 s of CPU time.
"""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sojourn import _core
from sojourn.storage.store import Store
from support.shell import environment
from support.stored import COMMAND, segments

SCENARIO = """
name = "killed"
duration = "{duration}"
warmup = "1s"
rtt = "20ms"
replications = {replications}
links.up = {{ rate = "500mbit", qdisc = "codel" }}
links.down = "unlimited"
traffic = [
    {{ name = "bulk", type = "tcp", direction = "up" }},
    {{ name = "ping", type = "ping", direction = "up", interval = "50ms" }},
]
"""
TARGETS = "links.up.qdisc.target=3ms,5ms,8ms,13ms,20ms"
POINTS = 5
FILES = ("runs.parquet", "points.parquet", "sweep.json")


@dataclass(frozen=True)
class Size:
    """How large the sweep is, and how often its processes are killed."""

    kills: int
    replications: int
    duration: str
    # The longest time from the moment when enough runs are stored to the kill.
    delay_s: float
    # No kill waits longer for runs.
    patience_s: float
    jobs: int

    @property
    def runs(self) -> int:
        return POINTS * self.replications


LONG = "SOJOURN_KILLS" in os.environ


def size(quick_kills: int) -> Size:
    if LONG:
        return Size(int(os.environ["SOJOURN_KILLS"]) // 2, 100, "180s", 0.7, 120.0, 2)
    return Size(quick_kills, 6, "10s", 0.05, 30.0, 1)


class Killer:
    """Starts a sweep again and again until it has been killed often enough, and then lets it end.

    Parameters
    ----------
    folder
        Where its files are.
    options
        Those of the command.
    stored
        Returns the number of rows in the store.
    of_size
        The sweep.
    """

    def __init__(
        self, folder: Path, options: list[str], stored: Callable[[], int], of_size: Size
    ) -> None:
        self._folder = folder
        self._options = options
        self._stored = stored
        self._size = of_size
        self._chance = random.Random(1)  # noqa: S311 - for the moments of the kills
        self.kills = {"command": 0, "worker": 0}

    def run(self, workers: Callable[[int], list[int]] | None = None) -> None:
        """Run the sweep; `workers` returns those of a command, which are killed as often."""
        process: subprocess.Popen[bytes] | None = None
        for number in range(self._size.kills):
            if process is None:
                process = self._started()
            # Every kill is while work is unfinished, and after some more of it is done.
            self._wait_for(process, number * (self._size.runs - 12) // self._size.kills)
            victim = process.pid
            if workers is not None and number % 2 == 0:
                found = self._all_of(workers, process)
                victim = self._chance.choice(found)
            time.sleep(self._chance.uniform(0.0, self._size.delay_s))
            assert self._stored() < self._size.runs, "no work was left"
            os.kill(victim, signal.SIGKILL)
            self.kills["command" if victim == process.pid else "worker"] += 1
            if victim == process.pid:
                process.wait()
                process = None
        if process is None:
            process = self._started()
        assert process.wait(timeout=10 * self._size.patience_s) == 0

    def _wait_for(self, process: subprocess.Popen[bytes], least: int) -> None:
        deadline = time.monotonic() + self._size.patience_s
        while (rows := self._stored()) < least:
            assert process.poll() is None, "it has ended before it was killed"
            assert time.monotonic() < deadline, f"{rows} of {least} rows"
            time.sleep(0.02)

    def _all_of(
        self, workers: Callable[[int], list[int]], process: subprocess.Popen[bytes]
    ) -> list[int]:
        """Wait until all workers of a command have started."""
        deadline = time.monotonic() + self._size.patience_s
        while len(found := workers(process.pid)) < self._size.jobs:
            assert process.poll() is None, "it has ended before it was killed"
            assert time.monotonic() < deadline, f"{len(found)} workers"
            time.sleep(0.02)
        return found

    def _started(self) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                sweep_command(*self._options),
                cwd=self._folder,
                env=environment(),
                stdout=log,
                stderr=log,
            )


def sweep_command(*options: str) -> list[str]:
    return [*COMMAND, "sweep", "killed.toml", "-p", TARGETS, "--metric", "ping_ms_p99", *options]


def workers_of(pid: int) -> list[int]:
    """The workers of a command: processes that multiprocessing has started."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        found = [int(child) for child in children]
        # Threads start processes as well.
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
        return sorted({child for child in found if b"spawn_main" in words_of(child)})
    return []


def words_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a sweep that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write(folder)
    before = os.times().children_user
    subprocess.run(
        sweep_command("--out", "out"),
        cwd=folder,
        env={**environment(), "SOJOURN_STORE": f"{folder / 'store'}"},
        capture_output=True,
        check=True,
    )
    if LONG:
        used_s = os.times().children_user - before
        assert used_s / size(0).runs > 0.5, "runs of at least 0.5 s of CPU time"
    return files(folder / "out")


def write(folder: Path) -> None:
    of_size = size(0)
    text = SCENARIO.format(duration=of_size.duration, replications=of_size.replications)
    (folder / "killed.toml").write_text(text, encoding="utf-8")


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.mark.timeout(3600)
def test_a_killed_sweep_is_completed_without_repetition(
    tmp_path: Path, store: Path, undisturbed: dict[str, bytes]
) -> None:
    of_size = size(3)
    write(tmp_path)

    def stored() -> int:
        # Each segment has a note.
        return _core.RunStore.verify(store)[0] - len(segments(store)) if store.exists() else 0

    killer = Killer(tmp_path, ["--out", "out"], stored, of_size)
    killer.run()
    assert files(tmp_path / "out") == undisturbed
    # A run that is computed twice after it was stored is stored twice.
    assert stored() == of_size.runs
    assert killer.kills == {"command": of_size.kills, "worker": 0}


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("store")
def test_a_cluster_whose_processes_are_killed_completes_without_repetition(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    of_size = size(2)
    write(tmp_path)
    shared = Store.at(f"{tmp_path / 'shared'}")
    options = ["--out", "out", "--on", "dask", "--jobs", f"{of_size.jobs}", "--shared", shared.url]
    killer = Killer(tmp_path, options, lambda: shared.verify()[0], of_size)
    killer.run(workers_of)
    assert files(tmp_path / "out") == undisturbed
    assert shared.verify() == (of_size.runs, [])
    assert killer.kills == {"command": of_size.kills // 2, "worker": of_size.kills // 2}
