"""What the tests share: one small result, and the command as users run it."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from support import preloaded
from support.saved import ONE
from support.shell import Command, environment


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Add the reasons of skipped tests to the file of ``tools/skipped.py``."""
    path = os.environ.get("SOJOURN_SKIPPED")
    # Workers of xdist report to the process that started them.
    if path and not hasattr(terminalreporter.config, "workerinput"):
        with Path(path).open("a", encoding="utf-8") as file:
            for report in terminalreporter.stats.get("skipped", ()):
                reason = f"{report.longrepr[2]}".removeprefix("Skipped: ")
                print(" ".join(reason.split()), file=file)


@pytest.fixture(scope="session", autouse=True)
def _store(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the run store of the user out of the tests: commands inherit the environment."""
    os.environ["SOJOURN_STORE"] = str(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session", autouse=True)
def _signals() -> None:
    """Let commands handle signals that the parent of the tests ignores, as nohup and CI do."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def scenario() -> sj.Scenario:
    """Two queues on 10/1 Mbit/s with traffic both ways, three replications."""
    return sj.Scenario(
        name="small",
        links={
            "up": sj.Link(rate="1mbit", qdisc="pfifo"),
            "down": sj.Link(rate="10mbit", qdisc="pfifo"),
        },
        traffic=[
            sj.Tcp(name="tcp up", direction="up", count=2, start="1s", start_jitter="50ms"),
            sj.Tcp(name="tcp down", direction="down", count=2, start="1s", start_jitter="50ms"),
            sj.Ping(name="ping", direction="up", interval="100ms"),
        ],
        arms=[
            sj.Arm(name="fifo", set={"links.up.qdisc": sj.Pfifo(limit=127)}),
            sj.Arm(name="fq", set={"links.up.qdisc": sj.FqCoDel(), "links.down.qdisc": "fq_codel"}),
        ],
        rtt="50ms",
        duration="14s",
        warmup="2s",
        replications=3,
    )


@pytest.fixture(scope="session")
def result(scenario: sj.Scenario) -> sj.Result:
    """What the scenario gives."""
    return sj.run(scenario, seed=1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run store of this test alone, which the command uses."""
    folder = tmp_path / "store"
    monkeypatch.setenv("SOJOURN_STORE", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A scenario file of a run that takes some milliseconds."""
    path = tmp_path / "one.toml"
    path.write_text(ONE, encoding="utf-8")
    return path


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mount something on a new directory; skip where this is not possible."""
    made: list[Path] = []

    def mount(name: str, *arguments: str) -> Path:
        place = tmp_path / name
        place.mkdir()
        command = ["mount", *arguments, str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount: {done.stderr.strip()}")
        made.append(place)
        return place

    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount")
    yield mount
    for place in made:
        subprocess.run(["/bin/umount", str(place)], check=True)


@pytest.fixture
def sojourn(tmp_path: Path) -> Command:
    """The command, run in an empty folder."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in arguments]
        return preloaded.run(words, folder=tmp_path, environment=environment(), timeout=100)

    return run
