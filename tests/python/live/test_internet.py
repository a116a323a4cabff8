"""Live runs with a way out: what the program reaches, at what rate, and what remains.

The machine of the run, the Internet behind it and another network are namespaces, so nothing leaves
the machine of the test.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.left_behind import Traces
from support.live_probe import (
    User,
    folder,
    link,
    needed,
    program,
    saved,
    unprivileged,
)
from support.testbed import Listener, Machine, connect, kill_runs, machines

__all__ = ["folder"]

# Addresses for documentation (RFC 5737).
HOST, INTERNET = "198.51.100.2", "198.51.100.1"
LAN_HOST, LAN = "203.0.113.1", "203.0.113.2"
MBIT = 8
FILE_BYTES = 1_500_000
# What a link carries of a full packet, as in test_live.py; slow start takes some of the time.
PAYLOAD = 1448 / 1514
LEAST_SHARE = 0.7
CONNECTED = ("live", "--internet", "--link", f"{MBIT}mbit", "--rtt", "10ms")
# Answers every question for an address with the one in its argument.
NAME_SERVER = textwrap.dedent("""
    import socket, sys
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], 53))
    while True:
        asked, client = server.recvfrom(512)
        end = asked.index(0, 12) + 5
        is_v4 = asked[end - 3] == 1
        head = asked[:2] + bytes([0x81, 0x80, 0, 1, 0, is_v4, 0, 0, 0, 0])
        record = bytes([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]) + socket.inet_aton(sys.argv[1])
        server.sendto(head + asked[12:end] + record * is_v4, client)
""")
# Mounts a file over another one for a command.
WITH_FILE = 'mount --bind "$1" "$2"; shift 2; exec "$@"'


@dataclass
class World:
    """The machine of the runs, and what is around it."""

    host: Machine
    lan: Listener
    user: User


@pytest.fixture
def world(folder: Path) -> Iterator[World]:
    """A machine with a default route to a server of pages and names, and with another network."""
    needed()
    program("curl", "ping", "sysctl", "unshare")
    (folder / "page").write_bytes(bytes(FILE_BYTES))
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver 127.0.0.1\nnameserver {INTERNET}\n")
    with machines("host", "internet", "lan") as (host, internet, lan):
        connect([(host, "up0"), (internet, "up1")], [f"{HOST}/24", f"{INTERNET}/24"])
        connect([(host, "lan0"), (lan, "lan1")], [f"{LAN_HOST}/24", f"{LAN}/24"])
        host.run("ip", "route", "add", "default", "via", INTERNET)
        pages = ("-m", "http.server", "--bind", INTERNET, "--directory", str(folder), "80")
        internet.start(sys.executable, *pages)
        internet.start(sys.executable, "-c", NAME_SERVER, INTERNET)
        host.run("sh", "-c", f"until curl -sf -o /dev/null http://{INTERNET}/; do sleep 0.1; done")
        mounting = ("unshare", "--mount", "sh", "-c", WITH_FILE, "sh")
        files = (str(resolver), os.path.realpath("/etc/resolv.conf"))
        listener = Listener(lan, "lan1")
        try:
            yield World(host, listener, User((*host.prefix, *mounting, *files)))
        finally:
            listener.close()


def test_a_page_of_the_internet_is_loaded_by_its_name_at_the_rate_of_the_link(
    world: World, folder: Path
) -> None:
    before = world.host.state()
    answer = "%{http_code} %{size_download} %{speed_download}"
    words = ("curl", "-sS", "-o", "/dev/null", "-w", answer, "http://page.test/page")
    done = world.user.run(*CONNECTED, "--out", "result", "--", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    code, size, speed = done.stdout.split()
    assert (code, size) == ("200", str(FILE_BYTES))
    assert LEAST_SHARE < int(speed) * 8 / (MBIT * 1e6 * PAYLOAD) < 1.01
    result = saved(folder)
    assert link(result, "down")["sent_bytes"] > FILE_BYTES
    facts = {fact["name"]: fact for fact in result.provenance["validity"]}
    assert facts["internet"]["value"] == "up0, masquerading by the kernel"
    assert "limit" not in facts
    assert world.host.state() == before
    assert world.lan.frames() == []


def test_the_way_to_the_internet_is_changed_from_within_the_run(
    world: World, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"{tmp_path}")
    ping = f"ping -c 3 -i 0.2 -W 2 {INTERNET}"
    change = f"{sys.executable} -m sojourn live ctl set links.up.delay=50ms"
    line = f"{ping} && {change} && {ping}"
    done = world.user.run(*CONNECTED, "--out", "result", "--", "sh", "-c", line, folder=folder)
    assert done.returncode == 0, done.stderr
    times = [float(one.split()[0]) for one in done.stdout.split("time=")[1:]]
    assert max(times[1:3]) < 50 < min(times[3:]), done.stdout
    (change_,) = saved(folder).link_changes.to_dicts()
    assert (change_["link"], change_["delay_ms"]) == ("up", 50)


def test_no_packet_reaches_another_network(world: World, folder: Path) -> None:
    line = f"ping -c 2 -i 0.2 -W 1 {INTERNET} && ! ping -c 2 -i 0.2 -W 1 {LAN}"
    done = world.user.run(*CONNECTED, "--", "sh", "-c", line, folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("bytes from") == 2
    assert world.lan.frames() == []


def test_without_the_option_no_packet_leaves_the_run(world: World, folder: Path) -> None:
    line = f"ping -c 1 -W 1 {INTERNET}; ping -c 1 -W 1 {LAN}; ping -c 1 -W 1 {HOST}; true"
    done = world.user.run("live", "--rtt", "0ms", "--", "sh", "-c", line, folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("100% packet loss") == 3


def test_two_runs_at_a_time_share_the_interface(world: World, folder: Path) -> None:
    before = world.host.state()
    marker = folder / "go"
    wait = f"until test -e {marker}; do sleep 0.05; done; ping -c 1 -W 2 {INTERNET}"
    short = world.user.popen(*CONNECTED, "--", "sh", "-c", f"ping -c 1 {INTERNET}", folder=folder)
    with world.user.popen(*CONNECTED, "--", "sh", "-c", wait, folder=folder) as long:
        out, err = short.communicate(timeout=60)
        assert short.returncode == 0, out + err
        marker.touch()
        out, err = long.communicate(timeout=60)
        assert long.returncode == 0, out + err
    assert world.host.state() == before


# The device for the user of the command, in a mount namespace of its own.
WITH_TUN = (
    "mount -t tmpfs -o mode=755 none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && "
    'chmod 666 /dev/net/tun && exec "$@"'
)


def test_without_root_pasta_connects_the_run_and_the_result_says_so(
    world: World, folder: Path
) -> None:
    program("pasta", "setpriv")
    own = unprivileged()
    with_tun = ("unshare", "--mount", "sh", "-c", WITH_TUN, "sh")
    user = User((*world.host.prefix, *with_tun, *own.prefix))
    before = world.host.state()
    url = f"http://{INTERNET}/page"
    words = ("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", url)
    done = user.run(*CONNECTED, "--", *words, folder=folder)
    assert (done.returncode, done.stdout) == (0, f"200 {FILE_BYTES}"), done.stderr
    limit = "TCP ends in pasta: the congestion control behind the queue is not the server's."
    assert f"warning: {limit}" in done.stderr
    traces = Traces()
    run = connected(user, folder, traces)
    assert any(b"pasta" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in traces.look())
    run.kill()
    run.communicate(timeout=30)
    assert traces.left() == []
    assert world.host.state() == before
    assert world.lan.frames() == []


def connected(user: User, folder: Path, traces: Traces) -> subprocess.Popen[str]:
    """Start a run with a way out, and wait until its program runs."""
    marker = folder / "started"
    os.environ.update(traces.environment)
    try:
        run = user.popen(*CONNECTED, "--", "sh", "-c", f"touch {marker}; sleep 60", folder=folder)
    finally:
        for name in traces.environment:
            del os.environ[name]
    deadline = time.monotonic() + 30
    while not marker.exists():
        assert run.poll() is None, run.communicate()[1]
        assert time.monotonic() < deadline, "the program did not start"
        time.sleep(0.02)
    return run


RUN = """
from sojourn.traffic import Program

command = Program(direction="down", command=["sleep", "60"])
run = sj.Scenario(links=links, traffic=[command], rtt="2ms", duration="60s").checked
where = {"internet": True}
"""


def test_kills_at_random_moments_leave_the_machine_as_it_was(world: World, folder: Path) -> None:
    kill_runs(RUN, world.user.prefix, world.host, folder, longest_s=0.5)


def test_forwarding_is_restricted_until_it_is_restored(world: World, folder: Path) -> None:
    before, traces = world.host.state(), Traces()
    run = connected(world.user, folder, traces)
    # A guard that gets no processor time after the run was killed.
    guards = [one for one in traces.look() if name_of(one) == "sojourn-guard"]
    assert guards
    for process in guards:
        os.kill(process, signal.SIGSTOP)
    try:
        for process in set(traces.look()) - set(guards):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        run.communicate(timeout=30)
        time.sleep(0.5)
        assert any("up0/forwarding:1" in line for line in world.host.state())
        assert re.fullmatch(r"sojourn-n0-\d+", *world.host.tables())
    finally:
        for process in guards:
            os.kill(process, signal.SIGCONT)
    deadline = time.monotonic() + 10
    while world.host.state() != before:
        assert time.monotonic() < deadline, set(world.host.state()) ^ set(before)
        time.sleep(0.1)


def name_of(process: int) -> str:
    """The name of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def test_the_next_run_restores_what_remains_if_the_guard_is_killed_too(
    world: World, folder: Path
) -> None:
    before, traces = world.host.state(), Traces()
    run = connected(world.user, folder, traces)
    for process in traces.look():
        os.kill(process, signal.SIGSTOP)
    for process in traces.look():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    run.communicate(timeout=30)
    assert traces.left() == []
    changed = set(world.host.state()) ^ set(before)
    assert any("up0/forwarding:1" in line for line in changed), changed
    done = world.user.run("live", "--", "true", folder=folder)
    assert done.returncode == 0, done.stderr
    assert world.host.state() == before


def test_a_machine_without_a_default_route_is_refused(folder: Path) -> None:
    needed()
    with machines("alone") as (alone,):
        done = alone.user.run(*CONNECTED, "--", "true", folder=folder)
        assert done.returncode == 3
        assert done.stderr.startswith("sojourn: the machine has no IPv4 default route; ")
