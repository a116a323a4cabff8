"""``sojourn bridge``: real frames between two interfaces, of which the machine stays the owner.

Clients, servers and the machine with the bridge are namespaces, connected by veth pairs.
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sojourn.live import sockets
from support.live_probe import exclusively, folder, link, needed, program, saved
from support.shell import environment
from support.testbed import Listener, Machine, connect, entered, kill_runs, machines

__all__ = ["folder"]

CLIENT, SERVER = "192.0.2.1", "192.0.2.2"
CLIENT6, SERVER6 = "2001:db8::1", "2001:db8::2"
MBIT = 20
RTT_MS = 10
LINE = ("--link", f"{MBIT}mbit", "--rtt", f"{RTT_MS}ms", "--qdisc", "fq_codel")
# What a link carries of a full packet, as in test_live.py.
PAYLOAD = 1448 / 1514
LOCALLY_ADMINISTERED = bytes([2, 0, 0, 0, 0])
VLAN = 7


@dataclass
class Bed:
    """A client and a server with a machine between them, which also has another network."""

    client: Machine
    server: Machine
    middle: Machine
    other: Listener

    @contextlib.contextmanager
    def bridged(self, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
        """Run a bridge until the block ends, then end it as Ctrl-C does."""
        words = ("bridge", "b0", "b1", *LINE, *options)
        with exclusively(), self.middle.user.popen(*words, folder=folder) as process:
            try:
                self.wait(process)
                yield process
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=30)
            finally:
                process.kill()
            assert process.returncode == 130, err
            assert "Traceback" not in err

    def wait(self, process: subprocess.Popen[str]) -> None:
        """Wait until a ping crosses the bridge."""
        deadline = time.monotonic() + 20
        ping = [*self.client.prefix, "ping", "-c", "1", "-W", "1", SERVER]
        while subprocess.run(ping, capture_output=True, check=False).returncode:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "no ping crosses the bridge"


@pytest.fixture
def bed() -> Iterator[Bed]:
    """Client and server in one subnet, at the interfaces b0 and b1 of the machine between them."""
    needed()
    program("ping", "sysctl")
    with machines("client", "server", "middle", "other") as (client, server, middle, other):
        connect([(client, "c0"), (middle, "b0")], [f"{CLIENT}/24", None], ipv6=True)
        connect([(server, "s0"), (middle, "b1")], [f"{SERVER}/24", None], ipv6=True)
        connect([(middle, "x0"), (other, "x1")], ["192.0.2.3/24", None])
        # An address in the subnet of client and server: the machine must not answer for it.
        middle.run("ip", "address", "add", "192.0.2.4/24", "dev", "b0")
        for machine, name, address in ((client, "c0", CLIENT6), (server, "s0", SERVER6)):
            machine.run("sysctl", "-q", "-w", f"net.ipv6.conf.{name}.disable_ipv6=0")
            machine.run("ip", "address", "add", f"{address}/64", "dev", name, "nodad")
        listener = Listener(other, "x1")
        try:
            yield Bed(client, server, middle, listener)
        finally:
            listener.close()


def rtts_ms(text: str) -> list[float]:
    return [float(time) for time in re.findall(r"time=([\d.]+) ms", text)]


def test_pings_of_both_versions_cross_the_line_and_no_other_network(bed: Bed, folder: Path) -> None:
    before = bed.middle.state()
    bed.other.frames()
    with bed.bridged(folder, "--out", "result"):
        for server in (SERVER, SERVER6):
            # Also finds the neighbour: by ARP, and by neighbour discovery.
            bed.client.run("ip", "neighbour", "flush", "all")
            text = bed.client.run("ping", "-c", "5", "-i", "0.1", "-W", "2", server)
            # The first one waits for the neighbour, which takes another round trip.
            assert all(RTT_MS <= ms < 3 * RTT_MS for ms in rtts_ms(text)[1:]), text
        # The machine between them neither answers nor asks.
        bed.client.run("sh", "-c", "! ping -c 1 -W 1 192.0.2.4")
        bed.client.run("sh", "-c", "! ping -c 1 -W 1 192.0.2.3")
    assert bed.middle.state() == before
    assert bed.other.frames() == []
    result = saved(folder)
    facts = {fact["name"]: fact for fact in result.provenance["validity"]}
    assert facts["devices"]["value"] == "b0 and b1 with packet sockets"
    assert facts["larger_than_mtu"]["value"] == "0 packets"
    assert facts["lost_outside_queue"]["passed"]
    assert {flow["flow"] for flow in result.flows.to_dicts()} == {"down", "up"}


def test_a_bridge_is_changed_while_it_runs(
    bed: Bed, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", f"{tmp_path}")
    with bed.bridged(folder, "--out", "result"):
        (run,) = sockets.running()
        answer = run.ask(("links.down.delay", "40ms"), ("links.up.qdisc", "pie"))
        assert answer["links"]["down"]["delay"] == "40ms"
        text = bed.client.run("ping", "-c", "5", "-i", "0.2", "-W", "2", SERVER)
        assert all(RTT_MS + 40 <= ms < 3 * RTT_MS + 40 for ms in rtts_ms(text)), text
    changes = saved(folder).link_changes.to_dicts()
    assert [(one["link"], one["change"]) for one in changes] == [
        ("down", '{delay = "40ms"}'),
        ("up", '{qdisc = "pie"}'),
    ]


def test_a_connection_reaches_the_rate_of_the_line(bed: Bed, folder: Path) -> None:
    program("iperf3")
    bed.server.start("iperf3", "-s")
    with bed.bridged(folder, "--out", "result", "--pcap", "packets.pcapng"):
        report = json.loads(
            bed.client.run("iperf3", "-c", SERVER, "-t", "3", "--json", "-C", "cubic")
        )
        reverse = bed.client.run("iperf3", "-c", SERVER, "-t", "2", "-R", "--json", "-C", "cubic")
    for one in (report, json.loads(reverse)):
        rate = one["end"]["sum_received"]["bits_per_second"]
        assert 0.8 < rate / (MBIT * 1e6 * PAYLOAD) < 1.01
    result = saved(folder)
    facts = {fact["name"]: fact["value"] for fact in result.provenance["validity"]}
    # Hosts at a veth pair send segments that are not split yet.
    assert int(facts["merged_frames"].split()[0]) > 0
    assert link(result, "up")["sent_bytes"] > 3 * 0.8 * MBIT * 1e6 / 8 * PAYLOAD
    assert link(result, "up")["drops_aqm"] > 0
    assert (folder / "packets.pcapng").stat().st_size > 100_000


def frame(source: int, destination: int, protocol: int, *, tag: int | None = None) -> bytes:
    """A frame of Ethernet with 60 bytes."""
    head = LOCALLY_ADMINISTERED + bytes([destination]) + LOCALLY_ADMINISTERED + bytes([source])
    if tag is not None:
        head += struct.pack("!HH", 0x8100, tag)
    return (head + struct.pack("!H", protocol) + b"frame of a test").ljust(60, b"\0")


def test_tags_and_unknown_protocols_pass_unchanged(bed: Bed, folder: Path) -> None:
    # The protocols are for experiments (IEEE 802), and 0x88A8 is a second tag in front of it.
    plain = frame(1, 2, 0x88B5)
    tagged = frame(1, 2, 0x88B6, tag=0x2000 | VLAN)
    near, far = Listener(bed.client, "c0"), Listener(bed.server, "s0")
    try:
        with bed.bridged(folder):
            far.frames()
            near.send(plain)
            near.send(tagged)
            time.sleep(0.5)
            found = [(data, tag) for data, tag in far.frames() if b"frame of a test" in data]
    finally:
        near.close()
        far.close()
    # A packet socket shows a frame without its tag, and the tag beside it.
    assert found == [(plain, None), (tagged[:12] + tagged[16:], 0x2000 | VLAN)]


@pytest.mark.parametrize("mtu", [1504, 1508])
def test_frames_with_more_tags_than_the_mtu_has_room_for_are_named(
    bed: Bed, folder: Path, mtu: int
) -> None:
    packet = struct.pack("!H", 0x88B5) + b"full".ljust(1500, b"\0")
    customer, service = (struct.pack("!HH", kind, VLAN) for kind in (0x8100, 0x88A8))
    head = frame(1, 2, 0)[:12]
    sent = {"none": b"", "802.1Q": customer, "802.1ad": service, "QinQ": service + customer}
    for machine, name, size in (
        (bed.client, "c0", 1600),
        (bed.server, "s0", 1600),
        (bed.middle, "b0", mtu),
        (bed.middle, "b1", mtu),
    ):
        machine.run("ip", "link", "set", name, "mtu", f"{size}")
    near, far = Listener(bed.client, "c0"), Listener(bed.server, "s0")
    try:
        with bed.bridged(folder, "--out", "result"):
            far.frames()
            for tags in sent.values():
                near.send(head + tags + packet)
            time.sleep(0.5)
            found = [(len(data), tag) for data, tag in far.frames() if b"full" in data]
    finally:
        near.close()
        far.close()
    # A packet socket shows a frame without its first tag.
    all_of_them = [(1514, None), (1514, VLAN), (1514, VLAN), (1518, VLAN)]
    facts = {fact["name"]: fact for fact in saved(folder).provenance["validity"]}
    lost = facts["lost_outside_queue"]
    if mtu == 1508:
        assert found == all_of_them
        assert lost["passed"], lost
    else:
        assert found == all_of_them[:3]
        assert "1 written to b1 (Message too long)" in lost["value"]
        assert not lost["passed"]


# From if_tun.h and virtio_net.h of the kernel.
TUNSETIFF = 0x400454CA
IFF_TAP_NO_PI_VNET_HDR = 0x0002 | 0x1000 | 0x4000
NEEDS_CHECKSUM, MERGED_FRAGMENTS = 1, 3


def test_a_merged_packet_that_the_kernel_cannot_describe_does_not_end_the_bridge(
    bed: Bed, folder: Path
) -> None:
    with entered(bed.middle.name):
        try:
            tap = os.open("/dev/net/tun", os.O_RDWR)
        except OSError as error:
            pytest.skip(f"no TAP device: {error}")
    try:
        name = struct.pack("16sH22x", b"tap0", IFF_TAP_NO_PI_VNET_HDR)
        fcntl.ioctl(tap, TUNSETIFF, name)
        bed.middle.run("ip", "link", "set", "tap0", "up")
        far = Listener(bed.server, "s0")
        datagram = bytes([0x45, 0]) + struct.pack("!HHHBBH", 3028, 1, 0, 64, 17, 0)
        datagram += bytes([192, 0, 2, 1, 192, 0, 2, 2]) + struct.pack("!HHHH", 7, 7, 3008, 0)
        merged = frame(1, 2, 0x0800)[:14] + datagram + bytes(3000)
        header = struct.pack("=BBHHHH", NEEDS_CHECKSUM, MERGED_FRAGMENTS, 42, 1000, 34, 6)
        plain = frame(1, 2, 0x88B5)
        words = ("bridge", "tap0", "b1", *LINE, "--duration", "4s", "--out", "result")
        with exclusively(), bed.middle.user.popen(*words, folder=folder) as process:
            # The bridge runs as soon as frames pass.
            found: list[bytes] = []
            while not found and process.poll() is None:
                os.write(tap, bytes(10) + plain)
                time.sleep(0.05)
                found = [data for data, _ in far.frames() if b"frame of a test" in data]
            os.write(tap, header + merged)
            os.write(tap, bytes(10) + plain)
            time.sleep(0.2)
            found = [data for data, _ in far.frames() if b"frame of a test" in data]
            _, err = process.communicate(timeout=30)
        far.close()
    finally:
        os.close(tap)
    assert process.returncode == 0, err
    assert found[-1] == plain
    facts = {fact["name"]: fact for fact in saved(folder).provenance["validity"]}
    assert facts["larger_than_mtu"]["value"] == "1 packets"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("b0", "b0"), "both interfaces are the same"),
        (("b0", "lo"), "lo is not an Ethernet interface"),
        (("b0", "nosuch"), "there is no interface nosuch"),
        (("x0", "nosuch"), "there is no interface nosuch"),
        (("b0", "x0"), "x0 carries the default route of the machine;"),
        (("b0", "low0"), "low0 carries the default route of the machine, through above0;"),
        (("b0", "down0"), "down0 is down"),
        (("b0", "small0"), "the MTU of b0 is 1500, that of small0 is 1400"),
        (("b0", "port0"), "port0 belongs to a bridge, bond or VRF"),
    ],
)
def test_an_interface_that_cannot_be_bridged_is_refused(
    bed: Bed, folder: Path, arguments: tuple[str, str], said: str
) -> None:
    middle = bed.middle
    middle.run("ip", "route", "add", "default", "via", "192.0.2.9", "dev", "x0")
    for name in ("down0", "small0", "port0"):
        middle.run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p")
    # What is above low0 has another default route; not every kernel has VLANs.
    middle.run("ip", "link", "add", "low0", "type", "veth", "peer", "name", "low0p")
    middle.run("ip", "link", "add", "link", "low0", "name", "above0", "type", "macvlan")
    for name in ("low0", "low0p", "above0"):
        middle.run("ip", "link", "set", name, "up")
    middle.run("ip", "route", "add", "default", "dev", "above0", "metric", "99")
    middle.run("ip", "link", "set", "small0", "mtu", "1400", "up")
    middle.run("ip", "link", "add", "br0", "type", "bridge")
    middle.run("ip", "link", "set", "port0", "master", "br0", "up")
    before = middle.state()
    done = middle.user.run("bridge", *arguments, *LINE, folder=folder)
    assert done.returncode == 3
    assert done.stderr.startswith(f"sojourn: {said}"), done.stderr
    assert middle.state() == before


def test_an_interface_with_the_default_route_is_bridged_on_request(bed: Bed, folder: Path) -> None:
    bed.middle.run("ip", "route", "add", "default", "via", "192.0.2.9", "dev", "x0")
    words = ("bridge", "b0", "x0", *LINE, "--duration", "1s", "--out", "result")
    # A result that is replaced is another matter.
    refused = bed.middle.user.run(*words, "--force", folder=folder)
    assert refused.returncode == 3, refused.stderr
    assert "--default-route" in refused.stderr
    done = bed.middle.user.run(*words, "--default-route", folder=folder)
    assert done.returncode in (0, 1), done.stderr
    assert (folder / "result").is_dir()


def test_an_interface_is_in_one_bridge_at_a_time(bed: Bed, folder: Path) -> None:
    with bed.bridged(folder):
        done = subprocess.run(
            [*bed.middle.prefix, sys.executable, "-m", "sojourn", "bridge", "b1", "x0"],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 3
        assert done.stderr.startswith("sojourn: cannot take b1 from the machine: "), done.stderr
        assert "end the other bridge first" in done.stderr


def test_a_scenario_has_the_line(bed: Bed, folder: Path) -> None:
    (folder / "line.toml").write_text(
        'duration = "6s"\nwarmup = "0s"\nrtt = "40ms"\n'
        'links.up = { rate = "5mbit", qdisc = "pfifo" }\n'
        'links.down = { rate = "5mbit", qdisc = "codel" }\n'
        'traffic = [{ type = "tcp", direction = "up" }]\n'
    )
    words = ("bridge", "b0", "b1", "line.toml", "--out", "result")
    with exclusively(), bed.middle.user.popen(*words, folder=folder) as process:
        bed.wait(process)
        text = bed.client.run("ping", "-c", "3", "-i", "0.2", "-W", "2", SERVER)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "the hosts behind the interfaces send the packets" in err
    assert all(40 <= ms < 60 for ms in rtts_ms(text)[1:]), text
    assert link(saved(folder), "up")["qdisc"].startswith("pfifo")


RUN = """
from sojourn.traffic import Bridged

packets = [Bridged(name=name, direction=name) for name in ("down", "up")]
run = sj.Scenario(links=links, traffic=packets, rtt="2ms", duration="60s").checked
where = {"bridge": ("b0", "b1")}
"""


def test_kills_at_random_moments_leave_the_interfaces_as_they_were(bed: Bed, folder: Path) -> None:
    kill_runs(RUN, bed.middle.prefix, bed.middle, folder, longest_s=0.2)
