"""Changes during a run: the socket, ``sojourn live ctl``, and what the result says."""

import json
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import pytest

import sojourn as sj
from sojourn.cli import app
from sojourn.live import links, server, sockets
from sojourn.live.sockets import ControlSocket, NoSocketError
from support.live_probe import User, exclusively, folder, link, needed, program, saved

__all__ = ["folder"]

SETTINGS: dict[str, dict[str, Any]] = {
    "down": {"rate": "10mbit", "qdisc": "codel limit 1000p target 5ms"},
    "up": {"qdisc": "pie"},
}


class FakeLinks(links.Links):
    """A run that accepts every change."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def now(self) -> tuple[float, links.Settings]:
        return 2.5, SETTINGS

    def change(self, assignments: Any) -> tuple[float, links.Settings]:
        self.asked.append(links.requests(assignments, SETTINGS))
        return self.now()


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"{tmp_path}")
    return tmp_path / "sojourn"


@pytest.fixture
def control(runtime: Path) -> Iterator[ControlSocket]:
    with closing(ControlSocket(FakeLinks(), {"name": "curl"})) as one:
        assert one.path.parent == runtime
        yield one


def test_only_the_user_can_open_the_socket(control: ControlSocket) -> None:
    found = control.path.stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(control.path.parent.stat().st_mode) == 0o700
    assert sorted(one.name for one in control.path.parent.iterdir()) == [control.path.name]
    control.close()
    assert not control.path.exists()


def test_a_directory_that_others_can_enter_is_not_used(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.mkdir(mode=0o755)
    monkeypatch.setattr(sockets, "folders", lambda: [runtime])
    with pytest.raises(NoSocketError, match=r"other users may enter .*; expected mode 0700"):
        ControlSocket(FakeLinks(), {"name": "curl"})
    runtime.rmdir()
    runtime.symlink_to(runtime.parent)
    with pytest.raises(NoSocketError, match="is not a directory of this user"):
        ControlSocket(FakeLinks(), {"name": "curl"})
    assert sockets.running(runtime) == []


def test_a_long_path_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"{long}")
    assert [one.name for one in sockets.folders()] == ["sojourn", f"sojourn-{os.getuid()}"]
    with closing(ControlSocket(FakeLinks(), {"name": "curl"})) as one:
        assert one.path.parent == sockets.folders()[1]


def test_the_socket_of_a_killed_run_is_removed(control: ControlSocket) -> None:
    left = control.path.with_name("1.sock")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"{left}")
    assert [run.path for run in sockets.running()] == [control.path]
    assert not left.exists()


def test_two_runs_of_one_number_have_two_sockets(control: ControlSocket) -> None:
    with closing(ControlSocket(FakeLinks(), {"name": "ping"})) as other:
        assert other.path.name == f"{os.getpid()}-2.sock"
        assert {run.ask()["name"] for run in sockets.running()} == {"curl", "ping"}
    assert len(sockets.running()) == 1
    del control


def test_a_question_that_is_none_is_refused_and_the_others_are_answered(
    control: ControlSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TIMEOUT_S", 0.3)
    for question in (b"\n", b"{}\n", b'{"set": 3}\n', b'{"set": [1]}\n', b"\xff" * 20_000):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{control.path}")
            client.sendall(question)
            answer = json.loads(client.makefile().readline())
            assert answer["error"].startswith("expected a line of JSON"), question
    silent = [socket.socket(socket.AF_UNIX) for _ in range(server.MOST_CONNECTIONS)]
    for client in silent:
        client.connect(f"{control.path}")
    # They end after the time of a connection.
    time.sleep(0.5)
    (run,) = sockets.running()
    assert run.ask()["links"] == SETTINGS
    for client in silent:
        client.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("links.down.qdisc", "links.down.qdisc: expected PATH=VALUE"),
        ("links.down.qdisc=", "links.down.qdisc=: expected PATH=VALUE"),
        ("links.dwn.rate=1mbit", "links.dwn: unknown link; expected down, up or *"),
        ("links.down.rat=1mbit", "links.down.rat: unknown key; did you mean rate?"),
        (
            "links.down.overhead=8",
            "links.down.overhead: cannot change during a run; expected rate, ",
        ),
        ("rtt=3ms", "rtt: cannot change during a run; expected links.NAME.KEY, KEY: rate, "),
        ("links.down.loss.to_bad=1%", "links.down.loss.to_bad: does not change alone; expected "),
    ],
)
def test_a_path_that_cannot_change_is_refused(text: str, problem: str) -> None:
    with pytest.raises(sj.ScenarioError) as refused:
        links.requests([links.assignment(text)], SETTINGS)
    assert f"{refused.value}".startswith(problem)


def test_assignments_of_one_link_are_one_change() -> None:
    texts = ["links.*.rate=5mbit", "links.down.qdisc.target=9ms", "links.down.qdisc.ecn=true"]
    assert links.requests(map(links.assignment, texts), SETTINGS) == {
        "down": {"rate": "5mbit", "qdisc": {"kind": "codel", "target": "9ms", "ecn": True}},
        "up": {"rate": "5mbit"},
    }
    for twice in (["links.up.rate=1mbit"], ["links.down.qdisc=pie"]):
        with pytest.raises(sj.ScenarioError, match="given twice"):
            links.requests(map(links.assignment, [*texts, *twice]), SETTINGS)


class Ctl:
    """``sojourn live ctl``, in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["sojourn", "live", "ctl", *words])
        self._capsys.readouterr()
        code = app.execute()
        return code, *self._capsys.readouterr()


@pytest.fixture
def ctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ctl:
    return Ctl(monkeypatch, capsys)


def test_without_a_run_the_message_says_how_to_start_one(ctl: Ctl, runtime: Path) -> None:
    del runtime
    assert ctl("ls") == (0, "no live runs; start one with sojourn live or sojourn bridge\n", "")
    code, _, err = ctl("set", "links.down.rate=1mbit")
    assert code == app.USAGE
    assert err == (
        "sojourn: no live run of this user; start one with sojourn live or sojourn bridge\n"
    )


def test_an_empty_word_is_refused_by_its_name(ctl: Ctl, runtime: Path) -> None:
    del runtime
    code, _, err = ctl("get", "")
    assert (code, err) == (
        app.USAGE,
        'sojourn: PATH "": empty; expected a path such as links.down.qdisc\n',
    )
    code, _, err = ctl("set", "links.up.rate=1mbit", "")
    assert (code, err) == (
        app.USAGE,
        'sojourn: PATH=VALUE "": empty; expected one such as links.down.qdisc=pie\n',
    )


def test_units_that_may_surprise_are_noted(ctl: Ctl, control: ControlSocket) -> None:
    del control
    code, _, err = ctl("set", "links.down.rate=10Mbps", "links.down.qdisc=codel target 13")
    assert (code, err.splitlines()) == (
        0,
        [
            "warning: 10Mbps is a rate in bytes per second, as in tc: 80 Mbit/s",
            "note: codel: target 13: tc reads 13 as 13us; write 13us",
        ],
    )


def test_several_runs_are_named(ctl: Ctl, control: ControlSocket) -> None:
    number = os.getpid()
    with closing(ControlSocket(FakeLinks(), {"name": "ping"})):
        code, _, err = ctl("get")
        listed = f"{number}-2 (ping), {number} (curl)"
        assert (code, err) == (
            app.USAGE,
            f"sojourn: several live runs: {listed}; name one with --run\n",
        )
        code, out, _ = ctl("get", "links.down.rate", "--run", "ping")
        assert (code, out) == (0, "links.down.rate=10mbit\n")
        code, out, _ = ctl("get", "links.down.qdisc.target", "--run", f"{number}")
        assert (code, out) == (0, "links.down.qdisc.target=5ms\n")
        code, _, err = ctl("get", "--run", "x")
        assert (code, err[:26]) == (app.USAGE, "sojourn: --run x: no such ")
        code, out, _ = ctl("ls", "--json")
        assert {(one["run"], one["name"]) for one in json.loads(out)} == {
            (f"{number}-2", "ping"),
            (f"{number}", "curl"),
        }
    del control


class Watched:
    """A run of a program that ends when the block does."""

    def __init__(self, user: User, folder: Path, *options: str) -> None:
        self._words = ("live", "--link", "10mbit", "--rtt", "20ms", *options)
        self._user, self._folder = user, folder

    def __enter__(self) -> Self:
        client = "iperf3 -c $SOJOURN_SERVER -R -P 4 -t 60 > /dev/null"
        self._lock = exclusively()
        self._lock.__enter__()
        self.process = self._user.popen(
            *self._words,
            "--out",
            "result",
            "--server",
            "iperf3 -s -1",
            "--",
            "sh",
            "-c",
            client,
            folder=self._folder,
        )
        deadline = time.monotonic() + 20
        while not sockets.running() or self.time_s() < 3:
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return self

    def time_s(self) -> float:
        (run,) = sockets.running()
        return float(run.ask()["time_s"])

    def __exit__(self, *error: object) -> None:
        self.process.send_signal(2)
        try:
            _, self.err = self.process.communicate(timeout=30)
        finally:
            self.process.kill()
            self._lock.__exit__(None, None, None)


def test_a_change_of_the_queue_shows_in_the_result(ctl: Ctl, folder: Path, runtime: Path) -> None:
    user = needed()
    program("iperf3")
    del runtime
    with Watched(user, folder, "--qdisc", "pfifo limit 200") as run:
        code, out, err = ctl("set", "links.down.qdisc=pie", "links.up.rate=5mbit")
        assert code == 0, err
        assert out.splitlines()[1].startswith("links.down.qdisc=pie ")
        assert out.splitlines()[2] == "links.up.rate=5mbit"
        time.sleep(1.5)
        code, out, _ = ctl("set", "links.down.qdisc=fq_codel")
        changed_s = float(out.split()[0])
        code, out, _ = ctl("set", "links.down.qdisc.target=15ms")
        assert "target=15ms" in out
        code, _, err = ctl("set", "links.down.qdisc=fq_cdel", "links.up.rate=1mbit")
        assert code == app.USAGE
        assert err.startswith('sojourn: links.down.qdisc: unknown queue "fq_cdel"'), err
        assert "did you mean" in err
        code, _, err = ctl("set", "links.down.rate=0mbit")
        assert (code, err[:26]) == (app.USAGE, "sojourn: links.down.rate: ")
        # Nothing of the refused change was made.
        assert ctl("get", "links.up.rate")[1] == "links.up.rate=5mbit\n"
        time.sleep(1.5)
        assert run.process.poll() is None
    assert run.process.returncode == 130, run.err
    result = saved(folder)
    changes = result.link_changes.to_dicts()
    assert [(one["link"], one["change"]) for one in changes] == [
        ("down", '{qdisc = "pie"}'),
        ("up", '{rate = "5mbit"}'),
        ("down", '{qdisc = "fq_codel"}'),
        ("down", '{qdisc = {kind = "fq_codel", target = "15ms"}}'),
    ]
    # Both links at the same time.
    assert changes[0]["t_s"] == changes[1]["t_s"]
    assert abs(changes[2]["t_s"] - changed_s) < 0.01
    # The queue of 240 ms has gone, and was dropped.
    down = link(result, "down")
    assert down["drops_replaced"] > 0
    series = [one for one in result.link_series.to_dicts() if one["link"] == "down"]
    full = max(one["backlog_packets"] for one in series if one["t_s"] < changes[0]["t_s"])
    late = [one["backlog_packets"] for one in series if one["t_s"] > changed_s + 0.5]
    assert full > 60
    assert max(late) < full / 2
    assert "the links were changed during the run" in run.err


def test_a_run_that_nobody_changes_says_nothing(folder: Path, runtime: Path) -> None:
    user = needed()
    done = user.run("live", "--out", "result", "--", "true", folder=folder)
    assert done.returncode == 0, done.stderr
    result = saved(folder)
    assert result.link_changes.to_dicts() == []
    assert "changed" not in done.stderr
    # The socket has gone, the directory is for the next run.
    assert list(runtime.iterdir()) == []


@pytest.mark.slow
def test_several_who_ask_at_once_are_all_answered(folder: Path, runtime: Path) -> None:
    user = needed()
    program("iperf3")
    del runtime
    with Watched(user, folder):
        (run,) = sockets.running()
        answers: list[Any] = []

        def ask(n: int) -> None:
            answers.append(run.ask(("links.down.rate", f"{5 + n}mbit")))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 6
    assert len(saved(folder).link_changes.to_dicts()) == 6


@pytest.mark.slow
def test_a_run_is_watched_from_another_terminal(ctl: Ctl, folder: Path, runtime: Path) -> None:
    user = needed()
    program("iperf3")
    del runtime
    with Watched(user, folder):
        (run,) = sockets.running()
        watched = sockets.Watched(run)
        views = watched.views()
        first = next(views)
        assert [one["link"] for one in first] == ["down", "up"]
        watched.change([("links.down.rate", "4mbit")])
        deadline = time.monotonic() + 20
        while not (made := next(views)[0]["changes"]):
            assert time.monotonic() < deadline
        assert made[0][1] == '{rate = "4mbit"}'
        # Flows are counted from then on.
        assert max(len(one["flows"]) for one in next(views)) >= 4
        watched.end()
        assert list(views) == []
    code, _, err = ctl("view")
    assert code == app.USAGE
    assert "no live run of this user" in err
