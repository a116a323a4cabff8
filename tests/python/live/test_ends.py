"""How live runs end: signals, kills at random moments, and what they leave behind.

Nothing is measured, so these runs may take place beside others.
"""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from support.left_behind import Traces, children
from support.live_probe import (
    SERVER,
    User,
    folder,
    link,
    needed,
    program,
    saved,
    unprivileged,
)
from support.shell import environment
from support.testbed import starting

__all__ = ["folder"]

# Processes that ignore signals, leave their session and start more.
STUBBORN = "trap '' INT TERM HUP; setsid sleep 300 & (sleep 300 &) ; sleep 300"
# The program starts when the server listens.
STUBBORN_SERVER = f"iperf3 -s > /dev/null & {STUBBORN}"


def started(traces: Traces, marker: Path) -> None:
    """Wait until the program of a run has written a file."""
    deadline = time.monotonic() + 30
    while not marker.exists():
        assert time.monotonic() < deadline, "the program did not start"
        time.sleep(0.01)
    time.sleep(0.2)
    traces.look()


def start(
    user: User, folder: Path, traces: Traces, *options: str, words: str = STUBBORN
) -> subprocess.Popen[str]:
    """Start a run with a server, and wait until its program runs."""
    marker = folder / "started"
    program("iperf3")
    server = ("--server", f'sh -c "{STUBBORN_SERVER}"')
    line = f"touch {marker}; {words}"
    os.environ.update(traces.environment)
    try:
        process = user.popen("live", *options, *server, "--", "sh", "-c", line, folder=folder)
    finally:
        for name in traces.environment:
            del os.environ[name]
    started(traces, marker)
    return process


def _all_of_the_terminal(process: subprocess.Popen[str], by: signal.Signals) -> None:
    os.killpg(process.pid, by)


@pytest.mark.parametrize(
    ("send", "by"),
    [
        (subprocess.Popen.send_signal, signal.SIGTERM),
        (subprocess.Popen.send_signal, signal.SIGINT),
        (_all_of_the_terminal, signal.SIGINT),
    ],
)
def test_a_signal_ends_the_run_and_keeps_its_result(
    folder: Path, send: Callable[..., None], by: signal.Signals
) -> None:
    user = needed()
    program("ping")
    traces = Traces()
    ping = f"ping -i 0.1 {SERVER} > /dev/null"
    with start(user, folder, traces, "--out", "result", words=ping) as process:
        time.sleep(0.7)
        sent = time.monotonic()
        send(process, by)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 128 + by, err
        # Packing and saving the result takes longer on a busy machine; the ping would not end.
        assert time.monotonic() - sent < 20
    assert "Traceback" not in err
    saves, interrupted = err.splitlines()[-2:]
    assert saves == "saved result to result"
    assert re.fullmatch(r"interrupted after \d\.\d s", interrupted)
    # The signal has ended the server as well, which is no failure of it.
    assert "check server" not in err
    assert traces.namespaces >= 2
    assert traces.left() == []
    assert link(saved(folder), "down")["sent_packets"] > 5


def _itself(process: subprocess.Popen[str]) -> int:
    return process.pid


def _first_child(process: subprocess.Popen[str]) -> int:
    return children(process.pid)[-1]


def _first_of_the_namespace(process: subprocess.Popen[str]) -> int:
    return children(_first_child(process))[0]


def _program(process: subprocess.Popen[str]) -> int:
    return children(_first_of_the_namespace(process))[0]


@pytest.mark.parametrize(
    ("whose", "target"),
    [
        (needed, _itself),
        (needed, _first_child),
        (needed, _first_of_the_namespace),
        (needed, _program),
        (unprivileged, _itself),
        (unprivileged, _first_child),
    ],
)
def test_nothing_remains_after_a_kill(
    folder: Path, target: Callable[[subprocess.Popen[str]], int], whose: Callable[[], User]
) -> None:
    user = whose()
    traces = Traces()
    with start(user, folder, traces) as process:
        os.kill(target(process), signal.SIGKILL)
        _, err = process.communicate(timeout=30)
    # The exit code of a program that a signal has ended.
    assert process.returncode == (-9 if target is _itself else 137), err
    assert "Traceback" not in err
    assert traces.namespaces >= 2
    assert traces.left() == []


def test_metrics_are_served_while_the_run_lasts(folder: Path) -> None:
    user = needed()
    program("ping")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    traces = Traces()
    ping = f"ping -q -i 0.05 -w 3 {SERVER}"
    with start(user, folder, traces, "--prometheus", f":{port}", words=ping) as process:
        time.sleep(1.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            kind, text = answer.headers["Content-Type"], answer.read().decode()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    values = metrics(text)
    assert values['sojourn_link_sent_packets_total{link="down"}'] > 10
    assert values['sojourn_link_sent_bytes_total{link="up"}'] > 10 * 98
    assert values['sojourn_link_drops_total{link="down"}'] == 0
    assert 0 <= values['sojourn_link_sojourn_seconds{link="down",quantile="0.5"}'] < 0.1
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)


def metrics(text: str) -> dict[str, float]:
    """Parse the text format of Prometheus; every value has a type that was declared before."""
    values = {}
    types: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if found := re.fullmatch(r"# TYPE (\w+) (counter|gauge)", line):
            types[found[1]] = found[2]
            continue
        sample = re.fullmatch(r'((\w+)\{(?:\w+="[^"]*",?)+\}) (\S+)', line)
        assert sample, line
        assert sample[2] in types, line
        values[sample[1]] = float(sample[3])
    return values


CYCLES = textwrap.dedent("""
    import glob, os, sys, time
    from sojourn import _core

    # Before anything starts a thread; root does not need it.
    _core.enter_user_namespace()
    import sojourn as sj
    from sojourn.traffic import Program

    def scenario(command, server=None):
        links = {name: sj.Link(rate="10mbit", qdisc="fq_codel") for name in ("down", "up")}
        program = Program(direction="down", command=command, server=server)
        return sj.Scenario(links=links, traffic=[program], rtt="2ms", duration="30s").checked

    def state():
        tasks = [open(place).read() for place in glob.glob("/proc/self/task/*/comm")]
        # The allocator of polars starts threads of its own when it has work for them.
        own = [name for name in tasks if not name.startswith(("jemalloc", "polars"))]
        places = glob.glob("/proc/self/task/*/ns/net")
        namespaces = {os.readlink(place) for place in places}
        fds, mounts = os.listdir("/proc/self/fd"), open("/proc/self/mountinfo").readlines()
        return len(own), len(namespaces), len(fds), len(mounts)

    def cycles(number):
        short = [scenario(["true"]), scenario(["sh", "-c", "true &"], ["iperf3", "-s"])]
        _core.run_program(short[0])
        before, began = state(), time.monotonic()
        for n in range(number):
            _, status, interrupted = _core.run_program(short[n % 2])
            assert (status, interrupted) == (0, False), (n, status)
        taken = time.monotonic() - began
        # The threads that have started programs end soon after the runs.
        while (after := state()) != before and time.monotonic() < began + taken + 5:
            time.sleep(0.01)
        print(*before, *after, taken / max(number, 1), flush=True)

    def kills(stubborn, server):
        long = scenario(["sh", "-c", stubborn], ["sh", "-c", server])
        for _ in sys.stdin:
            if (child := os.fork()) == 0:
                _core.run_program(long)
                os._exit(0)
            print(child, flush=True)
            os.waitpid(child, 0)
            print("dead", flush=True)

    if sys.argv[1] == "cycles":
        cycles(int(sys.argv[2]))
    else:
        kills(*sys.argv[2:])
""")


def test_runs_in_one_process_leave_nothing(folder: Path) -> None:
    """``SOJOURN_CYCLES`` is the number of runs: 10 by default, 1,000 in ``make live-kills``."""
    needed()
    program("iperf3")
    number = int(os.environ.get("SOJOURN_CYCLES", "10"))
    traces = Traces()
    done = subprocess.run(
        [sys.executable, "-c", CYCLES, "cycles", str(number)],
        cwd=folder,
        env=environment() | traces.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *counts, seconds = done.stdout.split()
    assert counts[:4] == counts[4:], "threads, namespaces, file descriptors, mounts"
    assert traces.left() == []
    print(f"{number} runs of {float(seconds):.3f} s")


def test_kills_at_random_moments_leave_nothing(folder: Path) -> None:
    """``SOJOURN_KILLS`` is the number of kills: 10 by default, 200 in ``make live-kills``."""
    needed()
    program("iperf3")
    kills = int(os.environ.get("SOJOURN_KILLS", "10"))
    chance = random.Random(1)  # noqa: S311 - for the moments of the kills
    traces = Traces()
    hit = set()
    words = [sys.executable, "-c", CYCLES, "kills", STUBBORN, STUBBORN_SERVER]
    with starting(words, folder, traces) as server:
        for number in range(kills):
            run = server.start()
            time.sleep(chance.uniform(0.0, 0.5))
            processes = [pid for pid in traces.look() if pid != server.pid]
            hit.add(len(processes))
            # One of its processes, and soon after it the run itself.
            for target in (chance.choice([run, *processes]), run):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(target, signal.SIGKILL)
                time.sleep(chance.uniform(0.0, 0.02))
            server.await_death()
            assert traces.left(server.pid) == [], f"kill {number}"
    assert len(hit) > 1, "all kills hit the same state of a run"
    assert traces.namespaces >= 2
