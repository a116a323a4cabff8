"""The network of the QUIC interop runner in namespaces: client, simulator and server, and programs.

The programs are those of aioquic and of ngtcp2 (the Debian packages ngtcp2-client and
ngtcp2-server). Client and server reach each other as in ``endpoint/setup.sh`` of
quic-network-simulator: all addresses of both networks, also those nearby, are behind the simulator.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.live_probe import User, exclusively, needed, program, saved
from support.shell import environment
from support.testbed import Machine, connect, entered, machines

PROGRAMS = ("aioquic", "ngtcp2")
CLIENT, SERVER = "193.167.0.100", "193.167.100.100"
CLIENT6, SERVER6 = "fd00:cafe:cafe::100", "fd00:cafe:cafe:100::100"
ROUTER = "193.167.0.2"
PORT = 443
READY = 57832
# What a container may do that docker starts with the capabilities of the service: those of all
# containers, and NET_ADMIN; settings of the kernel are read-only.
CAPABILITIES = (
    "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw"
    " sys_chroot mknod audit_write setfcap net_admin"
)
CONTAINED = (
    "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && "
    f'exec setpriv --bounding-set "-all,+{CAPABILITIES.replace(" ", ",+")}" "$@"'
)
ENDPOINT = Path(__file__).with_name("quic_endpoint.py")
LINE = "--delay=15ms --bandwidth=10Mbps --queue=25"
# What a packet of the captures begins with, and their link type: packets of IP.
PCAP_MAGIC, LINKTYPE_RAW = 0xA1B2C3D4, 101


def available(name: str) -> None:
    """Skip where a program is missing."""
    if name == "aioquic":
        pytest.importorskip("aioquic")
    else:
        program("gtlsclient", "gtlsserver")


@cache
def _certificate() -> tuple[bytes, bytes]:
    """Return a certificate and its key in PEM."""
    from cryptography import x509  # noqa: PLC0415 - may be missing
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - same
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - same

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server4")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    builder = builder.not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
    certificate = builder.sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    return certificate.public_bytes(pem), key.private_bytes(pem, form, plain)


@dataclass(frozen=True)
class Packet:
    """A packet of a capture."""

    at: float
    source: tuple[str, int]
    destination: tuple[str, int]
    ecn: int
    payload: bytes


def packets(capture: Path) -> list[Packet]:
    """Return the UDP packets of a capture of the simulator."""
    data = capture.read_bytes()
    magic, _, _, _, _, _, kind = struct.unpack_from("=IHHIIII", data)
    assert (magic, kind) == (PCAP_MAGIC, LINKTYPE_RAW)
    found, at = [], 24
    while at < len(data):
        seconds, micros, length, whole = struct.unpack_from("=IIII", data, at)
        assert length == whole
        packet = data[at + 16 : at + 16 + length]
        at += 16 + length
        if packet[0] >> 4 == 4:
            protocol, ecn, header, family, places = packet[9], packet[1] & 3, 20, "", (12, 16, 4)
        else:
            protocol, ecn, header, family, places = (
                packet[6],
                packet[1] >> 4 & 3,
                40,
                "6",
                (8, 24, 16),
            )
        if protocol != socket.IPPROTO_UDP:
            continue
        version = socket.AF_INET6 if family else socket.AF_INET
        source, destination = (
            socket.inet_ntop(version, packet[place : place + places[2]]) for place in places[:2]
        )
        ports = struct.unpack_from("!HH", packet, header)
        found.append(
            Packet(
                at=seconds + micros / 1e6,
                source=(source, ports[0]),
                destination=(destination, ports[1]),
                ecn=ecn,
                payload=packet[header + 8 :],
            )
        )
    return found


@dataclass
class Case:
    """What is downloaded in which scenario.

    Parameters
    ----------
    scenario
        The scenario, as the interop runner passes it.
    files
        The sizes of the files, in bytes.
    connections
        How often they are downloaded, one after the other.
    """

    scenario: str
    files: Sequence[int] = (1 << 10,)
    connections: int = 1
    ipv6: bool = False
    timeout_s: float = 60


@dataclass
class Done:
    """What a download has shown.

    Parameters
    ----------
    seconds
        The time of all connections.
    goodput
        Payload of QUIC to the client, from the first to the last packet, in Mbit/s.
    facts
        The facts of validity of the run.
    left, right
        The captures.
    """

    seconds: float
    goodput: float
    facts: dict[str, Any]
    left: list[Packet]
    right: list[Packet]
    links: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def client_endpoints(self) -> set[tuple[str, int]]:
        """The endpoints of the client as the server has seen them."""
        return {packet.source for packet in self.right if packet.destination[1] == PORT}


@dataclass
class Bed:
    """A client and a server in different networks, and the simulator between them."""

    client: Machine
    server: Machine
    sim: Machine
    folder: Path

    def run(self, case: Case, client: str, server: str) -> Done:
        """Download the files of a case, and check that they arrive unchanged."""
        www, downloads, logs = (self.folder / name for name in ("www", "downloads", "logs"))
        for place in (www, downloads, logs):
            place.mkdir()
        names = []
        for number, size in enumerate(case.files):
            names.append(f"file{number}")
            (www / names[-1]).write_bytes(os.urandom(size))
        with exclusively(), self.simulated(case.scenario, logs), self.served(server, www):
            began = time.monotonic()
            for _ in range(case.connections):
                self.download(client, case, names, downloads)
                for name in names:
                    arrived = downloads / name
                    assert arrived.read_bytes() == (www / name).read_bytes(), name
                    arrived.unlink()
            seconds = time.monotonic() - began
        result = saved(self.folder)
        facts = {fact["name"]: fact for fact in result.provenance["validity"]}
        left, right = (packets(logs / f"trace_node_{side}.pcap") for side in ("left", "right"))
        times = [one.at for one in left if one.source[1] == PORT]
        total = sum(case.files) * case.connections
        goodput = total * 8 / max(times[-1] - times[0], 1e-3) / 1e6
        links = {row["link"]: row for row in result.links.to_dicts()}
        return Done(seconds, goodput, facts, left, right, links)

    @contextlib.contextmanager
    def simulated(self, scenario: str, logs: Path) -> Iterator[None]:
        """Run the simulator, and end it as ``docker stop`` does."""
        words = ("interop", scenario, "--logs", str(logs), "--out", "result")
        contained = User((*self.sim.prefix, "unshare", "--mount", "sh", "-c", CONTAINED, "sh"))
        with contained.popen(*words, folder=self.folder) as process:
            try:
                self.wait(process)
                yield
                process.send_signal(signal.SIGTERM)
                _, err = process.communicate(timeout=30)
            finally:
                process.kill()
            assert process.returncode == 128 + signal.SIGTERM, err
            assert "Traceback" not in err

    def wait(self, process: subprocess.Popen[str]) -> None:
        """Wait until the simulator is ready, as the clients of the interop runner do."""
        deadline = time.monotonic() + 20
        while True:
            with entered(self.client.name), contextlib.suppress(OSError):
                socket.create_connection((ROUTER, READY), timeout=1).close()
                return
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "the simulator is not ready"
            time.sleep(0.05)

    @contextlib.contextmanager
    def served(self, server: str, www: Path) -> Iterator[None]:
        """Run a server."""
        certificate, key = self.folder / "cert.pem", self.folder / "priv.key"
        for place, data in zip((certificate, key), _certificate(), strict=True):
            place.write_bytes(data)
        if server == "aioquic":
            words = [sys.executable, ENDPOINT, "server", PORT, www, certificate, key]
        else:
            words = ["gtlsserver", "-q", "-d", www, "*", PORT, key, certificate]
        process = self._start(self.server, words)
        try:
            self._listens(process)
            yield
        finally:
            process.kill()
            process.communicate()

    def _listens(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 20
        listening = f":{PORT:04X} "
        while listening not in self.server.run("sh", "-c", "cat /proc/net/udp /proc/net/udp6"):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.05)

    def download(self, client: str, case: Case, names: list[str], downloads: Path) -> None:
        """Run a client that downloads files over one connection."""
        host = SERVER6 if case.ipv6 else SERVER
        place = f"[{host}]" if case.ipv6 else host
        urls = [f"https://{place}:{PORT}/{name}" for name in names]
        if client == "aioquic":
            words = [sys.executable, ENDPOINT, "client", downloads, *urls]
        else:
            quiet = ("-q", "--no-quic-dump", "--no-http-dump", "--exit-on-all-streams-close")
            words = ["gtlsclient", *quiet, f"--download={downloads}", host, PORT, *urls]
        process = self._start(self.client, words)
        try:
            _, err = process.communicate(timeout=case.timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
            pytest.fail(f"{client} takes longer than {case.timeout_s} s: {err.decode()[-2000:]}")
        assert process.returncode == 0, err.decode()[-2000:]

    def _start(self, machine: Machine, words: Sequence[object]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*machine.prefix, *map(str, words)],
            cwd=self.folder,
            env=environment() | {"PATH": f"{os.environ['PATH']}:/usr/sbin"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )


@contextlib.contextmanager
def bed(folder: Path) -> Iterator[Bed]:
    """Client and server, each behind an interface of the simulator."""
    needed()
    program("setpriv", "sysctl", "unshare")
    with machines("client", "server", "sim") as (client, server, sim):
        connect([(client, "eth0"), (sim, "eth0")], [f"{CLIENT}/24", f"{ROUTER}/24"], ipv6=True)
        connect([(server, "eth0"), (sim, "eth1")], [f"{SERVER}/24", "193.167.100.2/24"], ipv6=True)
        addresses = [
            (client, "eth0", CLIENT6),
            (sim, "eth0", "fd00:cafe:cafe::2"),
            (server, "eth0", SERVER6),
            (sim, "eth1", "fd00:cafe:cafe:100::2"),
        ]
        for machine, name, address in addresses:
            machine.run("ip", "address", "add", f"{address}/64", "dev", name, "nodad")
        # As in a container: the kernel itself would forward packets, too.
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            sim.run("sysctl", "-q", "-w", f"{key}=1")
        for machine, own, own6 in (
            (client, "193.167.0", "fd00:cafe:cafe:"),
            (server, "193.167.100", "fd00:cafe:cafe:100:"),
        ):
            machine.run("ip", "route", "add", "193.167.0.0/16", "via", f"{own}.2")
            machine.run("ip", "-6", "route", "add", "fd00:cafe:cafe::/48", "via", f"{own6}:2")
            # The router is a neighbour; all others are behind it.
            machine.run("ip", "route", "add", f"{own}.2/32", "dev", "eth0")
            machine.run("ip", "route", "delete", f"{own}.0/24")
            machine.run("ip", "-6", "route", "add", f"{own6}:2/128", "dev", "eth0")
            machine.run("ip", "-6", "route", "delete", f"{own6}:/64")
        yield Bed(client, server, sim, folder)


def note(row: dict[str, object]) -> None:
    """Append a row to the table that ``SOJOURN_INTEROP`` names, for ``make interop``."""
    if name := os.environ.get("SOJOURN_INTEROP"):
        table = Path(name)
        is_new = not table.exists()
        with table.open("a", encoding="utf-8") as file:
            if is_new:
                print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}", file=file)
            values = ("" if value is None else f"{value}" for value in row.values())
            print(f"| {' | '.join(values)} |", file=file)
