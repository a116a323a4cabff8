"""``sojourn interop``: QUIC programs over the network of the QUIC interop runner.

The gate has one case; ``make interop`` has all of them, with each program as client and as server.
"""

import os
import shlex
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from sojourn import _core
from sojourn.cli import interop
from support.interop import (
    CLIENT,
    LINE,
    PORT,
    PROGRAMS,
    SERVER,
    Bed,
    Case,
    Done,
    available,
    bed,
    note,
)
from support.live_probe import folder, needed
from support.testbed import kill_runs

__all__ = ["folder"]

MIB = 1 << 20
MBIT = 10
# Payload of QUIC per bit of the link: 1,200 bytes and more per packet, and acknowledgements of the
# handshake, slow start and losses take the rest.
LEAST_SHARE = 0.6
# Packets of a direction that the end of a run may find on the link.
ON_THE_WAY = 50
RATES = "--rate_to_client={0} --rate_to_server={0} --burst_to_client=3 --burst_to_server=3"

# As the test cases of the interop runner, except that a loss of handshakes has 10 connections
# instead of 50, and those that have no name there.
CASES = {
    "handshake": Case(f"simple-p2p {LINE}"),
    "longrtt": Case("simple-p2p --delay=750ms --bandwidth=10Mbps --queue=25"),
    "transfer": Case(f"simple-p2p {LINE}", (2 * MIB, 3 * MIB, 5 * MIB)),
    "ipv6": Case(f"simple-p2p {LINE}", (5 << 10, 10 << 10), ipv6=True),
    "amplificationlimit": Case(f"droplist {LINE} --drops_to_server=2,3,4,5,6,7", (5 << 10,)),
    "handshakeloss": Case(f"drop-rate {LINE} {RATES.format(30)}", connections=10),
    "transferloss": Case(f"drop-rate {LINE} {RATES.format(2)}", (2 * MIB,)),
    "handshakecorruption": Case(f"corrupt-rate {LINE} {RATES.format(30)}", connections=10),
    "transfercorruption": Case(f"corrupt-rate {LINE} {RATES.format(2)}", (2 * MIB,)),
    "blackhole": Case(f"blackhole {LINE} --on=5s --off=2s", (10 * MIB,)),
    "rebind-port": Case(f"rebind {LINE} --first-rebind=1s --rebind-freq=5s", (10 * MIB,)),
    "rebind-addr": Case(
        f"rebind {LINE} --first-rebind=1s --rebind-freq=5s --rebind-addr", (10 * MIB,)
    ),
    "goodput": Case(f"simple-p2p {LINE}", (10 * MIB,)),
    "goodput-100": Case("simple-p2p --delay=15ms --bandwidth=100Mbps --queue=250", (10 * MIB,)),
    "crosstraffic": Case(f"tcp-cross-traffic {LINE}", (10 * MIB,), timeout_s=120),
    "udpcrosstraffic": Case(
        f"udp-cross-traffic {LINE} --crossdatarate=5Mbps", (25 * MIB,), timeout_s=120
    ),
    "fifo": Case("simple-p2p --delay=15ms --bandwidth=10Mbps --queue=200", (5 * MIB,)),
    "aqm": Case("aqm --delay=15ms --bandwidth=10Mbps --qdisc=fq_codel", (5 * MIB,)),
    "l4s": Case("l4s --delay=15ms --bandwidth=10Mbps", (5 * MIB,)),
}


RUN = f"""
from sojourn.cli import interop

words = "rebind {LINE} --first-rebind=1s".split()
described = _core.Interop(words, ("eth0", "eth1"), ready=57832)
run = interop.composed("kills", described, "60s").checked
where = {{"interop": described}}
"""


@pytest.fixture
def network(folder: Path) -> Iterator[Bed]:
    """Client, simulator and server."""
    with bed(folder) as made:
        yield made


def impairment(done: Done) -> str:
    """Return what was done to packets."""
    value = done.facts["impairment"]["value"]
    assert isinstance(value, str)
    return value


def numbers(done: Done) -> list[int]:
    """Return the numbers in what was done to packets: of those to the client and to the server."""
    return [int(word) for word in impairment(done).replace(";", "").split() if word.isdecimal()]


def check_rebinding(done: Done) -> None:
    seen = done.client_endpoints
    rebindings = numbers(done)[0]
    # The capture may end before the client uses the last one.
    assert len(seen) > 1
    assert rebindings <= len(seen) <= rebindings + 1
    # The client itself notices nothing.
    assert {one.source for one in done.left if one.destination[1] == PORT} == {
        (CLIENT, next(one.source[1] for one in done.left if one.destination[1] == PORT))
    }


def check_ports(done: Done) -> None:
    check_rebinding(done)
    assert {address for address, _ in done.client_endpoints} == {CLIENT}


def check_addresses(done: Done) -> None:
    check_rebinding(done)
    assert len({address for address, _ in done.client_endpoints}) == len(done.client_endpoints)


def check_losses(done: Done) -> None:
    lost_down, all_down, lost_up, all_up = numbers(done)
    # Packets to the client that are lost, or on the way at the end, are only in the right capture.
    sent = sum(one.source[1] == PORT for one in done.right)
    arrived = sum(one.source[1] == PORT for one in done.left)
    assert all_down - lost_down == arrived
    assert 0 <= sent - arrived - lost_down <= ON_THE_WAY
    assert lost_down + lost_up > 0
    assert all_up > 0


def check_blackhole(done: Done) -> None:
    times = [one.at for one in done.left if one.source[1] == PORT]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps) >= 2.0


def check_corruption(done: Done) -> None:
    corrupted_down, _, corrupted_up, _ = numbers(done)
    assert corrupted_down + corrupted_up > 0
    sent = [one.payload for one in done.right if one.source[1] == PORT]
    arrived = [one.payload for one in done.left if one.source[1] == PORT]
    # Nothing is lost, and as many arrive changed as were corrupted.
    assert 0 <= len(sent) - len(arrived) <= ON_THE_WAY
    changed = sum(one != other for one, other in zip(sent, arrived, strict=False))
    assert changed == corrupted_down


def check_droplist(done: Done) -> None:
    sent = [one.payload for one in done.left if one.destination == (SERVER, PORT)]
    arrived = [one.payload for one in done.right if one.destination == (SERVER, PORT)]
    assert arrived[:3] == [sent[0], *sent[7:9]]


def check_goodput(done: Done) -> None:
    assert LEAST_SHARE * MBIT < done.goodput < MBIT


def cross_mbit(done: Done) -> float:
    """Return the goodput of the cross traffic in Mbit/s."""
    return int(done.facts["cross_traffic"]["value"].split()[-2]) / 1e3


def check_shared(done: Done) -> None:
    # Reno and the controls of the programs, CUBIC and Reno, are not equal, but none starves.
    both = done.goodput + cross_mbit(done)
    assert LEAST_SHARE * MBIT < both < MBIT
    assert min(done.goodput, cross_mbit(done)) > 0.15 * both


def check_datagrams(done: Done) -> None:
    # All of the rate from 20 s on, but for what is on the link at the end.
    assert 4.5 < cross_mbit(done) <= 5


def check_short_queue(done: Done) -> None:
    # With the FIFO of the case before, 78 ms to 111 ms; slow start is a large part of a download.
    assert done.links["down"]["sojourn_ms_p95"] < 60


def check_long_queue(done: Done) -> None:
    assert done.links["down"]["sojourn_ms_p95"] > 60


def check_ngtcp2(name: str, done: Done) -> None:
    if name == "goodput-100":
        assert done.goodput > LEAST_SHARE * 100
    else:
        assert done.links["down"]["marks_aqm"] > 0


CHECKS: dict[str, Callable[[Done], None]] = {
    "amplificationlimit": check_droplist,
    "transferloss": check_losses,
    "handshakeloss": check_losses,
    "handshakecorruption": check_corruption,
    "transfercorruption": check_corruption,
    "blackhole": check_blackhole,
    "rebind-port": check_ports,
    "rebind-addr": check_addresses,
    "goodput": check_goodput,
    "crosstraffic": check_shared,
    "udpcrosstraffic": check_datagrams,
    "aqm": check_short_queue,
    "l4s": check_short_queue,
    "fifo": check_long_queue,
}
PAIRS = [(client, server) for client in PROGRAMS for server in PROGRAMS if client != server]
# Of the programs, only ngtcp2 reports ECN, and fills a link of 100 Mbit/s.
FAST = ("goodput-100", "aqm", "l4s")
MATRIX = [(name, *pair) for name in CASES for pair in PAIRS]
MATRIX += [(name, "ngtcp2", "ngtcp2") for name in FAST]


def check(name: str, case: Case, network: Bed, client: str, server: str) -> Done:
    for one in (client, server):
        available(one)
    done = network.run(case, client, server)
    down = done.links["down"]
    path = (done.facts.get(name, {}).get("value") for name in ("impairment", "cross_traffic"))
    note(
        {
            "case": name,
            "client": client,
            "server": server,
            "time [s]": f"{done.seconds:.2f}",
            "goodput [Mbit/s]": f"{done.goodput:.2f}" if sum(case.files) >= MIB else None,
            "queue p95 [ms]": f"{down['sojourn_ms_p95']:.1f}",
            "marks": down["marks_aqm"] + down["marks_ce_threshold"],
            "on the path": "; ".join(one for one in path if one),
            "lateness": done.facts["datapath_lateness"]["value"],
            "lost outside the queue": done.facts["lost_outside_queue"]["value"],
        }
    )
    assert done.facts["larger_than_mtu"]["passed"]
    if name in CHECKS:
        CHECKS[name](done)
    return done


def test_a_connection_survives_losses_that_the_captures_show(network: Bed) -> None:
    # Of the gate: the first answer of the server is lost, and so is another packet later on.
    case = Case(f"droplist {LINE} --drops_to_client=1,20", (200 << 10,))
    done = check("gate", case, network, "ngtcp2", "aioquic")
    assert network.sim.tables() == []
    sent = [one.payload for one in done.right if one.source == (SERVER, PORT)]
    arrived = [one.payload for one in done.left if one.source == (SERVER, PORT)]
    assert arrived[:19] == [*sent[1:19], sent[20]]
    # 15 ms each way: the server sees a packet of the client that long after it was sent.
    delays = [
        there.at - here.at
        for here, there in zip(
            (one for one in done.left if one.destination[1] == PORT),
            (one for one in done.right if one.destination[1] == PORT),
            strict=False,
        )
    ]
    assert 0.015 <= statistics.median(delays) < 0.020


if "SOJOURN_INTEROP" in os.environ:

    @pytest.mark.timeout(300)
    @pytest.mark.parametrize(("name", "client", "server"), MATRIX)
    def test_programs_pass(name: str, client: str, server: str, network: Bed) -> None:
        done = check(name, CASES[name], network, client, server)
        if client == server:
            check_ngtcp2(name, done)


if "SOJOURN_KILLS" in os.environ:

    def test_kills_at_random_moments_leave_nothing(network: Bed, folder: Path) -> None:
        # Until the kernel has added its routes of IPv6.
        time.sleep(3)
        kill_runs(RUN, network.sim.prefix, network.sim, folder, longest_s=0.2)


def test_a_scenario_that_is_not_valid_is_refused(folder: Path) -> None:
    user = needed()
    cases = {
        "": "no scenario; expected one of simple-p2p, drop-rate, ",
        "simple-p2p --delay='15ms": "no closing quotation",
        f"simple-p2p {LINE} --qdisc=fq_coddle": '--qdisc=fq_coddle": unknown queue "fq_coddle"',
    }
    for text, said in cases.items():
        done = user.run("interop", text, folder=folder)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
    done = user.run("interop", f"simple-p2p {LINE}", "--left", "nosuch", folder=folder)
    assert done.returncode == 3
    assert "there is no interface nosuch" in done.stderr
    done = user.run("interop", f"simple-p2p {LINE}", "--logs", "nosuch", folder=folder)
    assert done.returncode == 2
    assert "expected an existing directory" in done.stderr
    done = user.run("interop", f"simple-p2p {LINE}", "--duration", "0s", folder=folder)
    assert done.returncode == 2
    assert done.stderr == "sojourn: --duration 0s: must be > 0\n"


def test_the_link_counts_bytes_as_ns3_does() -> None:
    text = f"simple-p2p {LINE} --qdisc_to_server='fq_codel target 13ms'"
    words = shlex.split(text)
    described = _core.Interop(words, ("eth0", "eth1"))
    scenario = interop.composed(text, described, "5s")
    up, down = scenario.links["up"], scenario.links["down"]
    assert (described.bits_per_s, described.delay_ns) == (10_000_000, 15_000_000)
    assert described.qdiscs == ("pfifo limit 26", "fq_codel target 13ms")
    for link in (up, down):
        # 1,500 bytes of IP and 2 of the point-to-point protocol.
        assert link.overhead == "-12b"
    assert scenario.name == text


def test_the_simulator_waits_for_a_server_that_answers_with_its_versions() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)

        def answer() -> None:
            probe, client = server.recvfrom(2048)
            assert len(probe) >= 1200
            server.sendto(b"something else", client)
            _, client = server.recvfrom(2048)
            server.sendto(bytes([0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), client)

        thread = threading.Thread(target=answer)
        thread.start()
        interop.wait_for(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interop, "WAIT_S", 0.2)
    monkeypatch.setattr(interop, "PROBE_EVERY_S", 0.05)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(_core.ScenarioError, match="no QUIC server answers there"):
            interop.wait_for(place)
    with pytest.raises(_core.ScenarioError, match="expected HOST:PORT"):
        interop.wait_for("server")
