"""Network namespaces that stand for machines, and what a run has changed in one of them."""

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from support.left_behind import Traces
from support.live_probe import User, program
from support.shell import environment

# From the kernel's uapi headers netlink.h, nfnetlink.h, nf_tables.h and if_packet.h.
NETLINK_NETFILTER = 12
NFT_MSG_GETTABLE = 10 << 8 | 1
NLM_F_REQUEST_DUMP = 0x301
NLMSG_DONE = 3
NFTA_TABLE_NAME = 1
ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_AUXDATA = 8
PACKET_OUTGOING = 4
TP_STATUS_VLAN_VALID = 0x10
# Where runs keep former values.
STATE = Path("/run/sojourn")


def _ip(*words: str) -> None:
    subprocess.run(["/bin/sh", "-c", 'ip "$@"', "sh", *words], check=True, capture_output=True)


@dataclass
class Machine:
    """A namespace with the interfaces and addresses of a machine."""

    name: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def prefix(self) -> tuple[str, ...]:
        """What is written before a command, so that it runs on the machine."""
        return ("ip", "netns", "exec", self.name)

    @property
    def user(self) -> User:
        """Root of the machine."""
        return User(self.prefix)

    def run(self, *words: str) -> str:
        """Run a command that must succeed; return its output."""
        done = subprocess.run([*self.prefix, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *words: str) -> None:
        """Start a command that runs until the machine ends."""
        quiet = subprocess.DEVNULL
        self.processes.append(subprocess.Popen([*self.prefix, *words], stdout=quiet, stderr=quiet))

    def state(self) -> list[str]:
        """Interfaces, addresses, routes, rules, tables of nftables, and settings."""
        settings = (
            "cd /proc/sys/net; grep -r . ipv4/conf ipv6/conf ipv4/ip_forward 2>/dev/null; true"
        )
        lines = [
            # The kernel takes "tentative" away a second after an interface is up.
            *self.run("ip", "-d", "address").replace(" tentative", "").splitlines(),
            *self.run("ip", "route", "show", "table", "all").splitlines(),
            *self.run("ip", "-6", "route", "show", "table", "all").splitlines(),
            *self.run("ip", "rule").splitlines(),
            *self.run("sh", "-c", settings).splitlines(),
            *(f"table {name}" for name in self.tables()),
            *(f"file {path}" for path in STATE.glob("forwarding-*") if path.stat().st_size),
        ]
        return sorted(lines)

    def tables(self) -> list[str]:
        """The names of the tables of nftables."""
        with entered(self.name):
            netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        names = []
        with netlink:
            head = struct.pack("=LHHLL", 20, NFT_MSG_GETTABLE, NLM_F_REQUEST_DUMP, 1, 0)
            netlink.send(head + bytes(4))
            while True:
                reply = netlink.recv(1 << 16)
                while reply:
                    length, kind = struct.unpack_from("=LH", reply)
                    if kind == NLMSG_DONE:
                        return names
                    size, attribute = struct.unpack_from("=HH", reply, 20)
                    assert attribute == NFTA_TABLE_NAME
                    names.append(reply[24 : 20 + size - 1].decode())
                    reply = reply[length + -length % 4 :]


@contextlib.contextmanager
def entered(name: str) -> Iterator[None]:
    """Move the calling thread into a namespace, and back."""
    import ctypes  # noqa: PLC0415 - only here

    library = ctypes.CDLL(None, use_errno=True)
    places = (Path("/proc/thread-self/ns/net"), Path("/run/netns", name))
    with places[0].open("rb") as own, places[1].open("rb") as other:
        assert library.setns(other.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert library.setns(own.fileno(), 0) == 0


class Listener:
    """Records the frames that an interface receives."""

    def __init__(self, machine: Machine, interface: str) -> None:
        with entered(machine.name):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self._socket.bind((interface, 0))
        self._socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._socket.settimeout(0)

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        self._socket.send(frame)

    def frames(self) -> list[tuple[bytes, int | None]]:
        """The frames since the last call, each with the number of its VLAN."""
        found = []
        while True:
            try:
                data, control, _, address = self._socket.recvmsg(1 << 16, 256)
            except BlockingIOError:
                return found
            if address[2] == PACKET_OUTGOING:
                continue
            status, *_, tag, _ = struct.unpack("=IIIHHHH", control[0][2][:20])
            found.append((data, tag if status & TP_STATUS_VLAN_VALID else None))

    def close(self) -> None:
        """Stop."""
        self._socket.close()


@contextlib.contextmanager
def machines(*names: str) -> Iterator[list[Machine]]:
    """Create machines without interfaces, and remove them."""
    program("ip")
    made = [Machine(f"sj{os.getpid()}-{name}") for name in names]
    try:
        for machine in made:
            _ip("netns", "add", machine.name)
            machine.run("ip", "link", "set", "lo", "up")
        yield made
    finally:
        for machine in made:
            for process in machine.processes:
                process.kill()
                process.wait()
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", machine.name)


def connect(
    ends: Sequence[tuple[Machine, str]], addresses: Sequence[str | None], *, ipv6: bool = False
) -> None:
    """Connect two machines by a cable, whose ends may have an address."""
    (near, near_name), (far, far_name) = ends
    peer = ("peer", "name", far_name, "netns", far.name)
    _ip("-n", near.name, "link", "add", near_name, "type", "veth", *peer)
    for (machine, name), address in zip(ends, addresses, strict=True):
        if not ipv6 or address is None:
            # No packets of its own.
            off = f"net.ipv6.conf.{name}.disable_ipv6=1"
            machine.run("sysctl", "-q", "-w", off)
        if address is not None:
            machine.run("ip", "address", "add", address, "dev", name)
        machine.run("ip", "link", "set", name, "up")


# Runs, one after the other, what a test defines: the scenario `run`, and `where` it takes place.
SERVER = """
import os, sys
from sojourn import _core
import sojourn as sj

links = {{name: sj.Link(rate="10mbit", qdisc="fq_codel") for name in ("down", "up")}}
{run}
for _ in sys.stdin:
    if (child := os.fork()) == 0:
        os.setpgid(0, 0)
        _core.run_program(run, **where)
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


@dataclass(frozen=True)
class Starter:
    """A process that starts runs one by one, as ``SERVER`` does."""

    pid: int
    to: IO[str]
    said: IO[str]

    def start(self) -> int:
        """Start a run; return its process."""
        print("go", file=self.to)
        return int(self.said.readline())

    def await_death(self) -> None:
        """Wait until the run is dead."""
        assert self.said.readline() == "dead\n"


@contextlib.contextmanager
def starting(words: Sequence[str], folder: Path, traces: Traces) -> Iterator[Starter]:
    """Start a process that starts runs; it has to end by itself when it is no longer asked."""
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment() | traces.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield Starter(server.pid, server.stdin, server.stdout)
        server.stdin.close()
        assert server.wait(timeout=30) == 0


def kill_runs(
    run: str, prefix: Sequence[str], machine: Machine, folder: Path, *, longest_s: float
) -> None:
    """Kill runs at random moments, or with them their process groups; the machine stays as it was.

    ``SOJOURN_KILLS`` is the number of kills: 4 by default, 200 in ``make live-kills``.
    """
    kills = int(os.environ.get("SOJOURN_KILLS", "4"))
    chance = random.Random(1)  # noqa: S311 - for the moments of the kills
    before, hit = machine.state(), set()
    traces = Traces()
    with starting(
        [*prefix, sys.executable, "-c", SERVER.format(run=run)], folder, traces
    ) as server:
        for number in range(kills):
            process = server.start()
            time.sleep(chance.uniform(0.0, longest_s))
            hit.add(tuple(machine.tables()))
            kill = chance.choice([os.kill, os.killpg])
            with contextlib.suppress(ProcessLookupError):
                kill(process, signal.SIGKILL)
            server.await_death()
            deadline = time.monotonic() + 10
            while (after := machine.state()) != before and time.monotonic() < deadline:
                time.sleep(0.02)
            assert after == before, f"kill {number}: {set(after) ^ set(before)}"
            assert traces.left(server.pid) == [], f"kill {number}"
    assert any(hit), "no kill hit a run"
