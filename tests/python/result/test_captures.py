"""Captures of packets: ``sojourn run --pcap``, checked with tshark."""

import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.result import captures
from support.captures import TSHARK, at, fields
from support.shell import Command, environment

SCENARIO = """
name = "traffic of all kinds"
duration = "12s"
warmup = "2s"
rtt = "40ms"
seed = 7

[links.up]
rate = "4mbit"
qdisc = "codel"

[links.down]
rate = "12mbit"
qdisc = "fq_codel"

[[traffic]]
name = "transfer"
type = "tcp"
direction = "down"
bytes = "3mb"
# After the warm-up: all of its bytes count.
start = "2500ms"

[[traffic]]
type = "tcp"
direction = "up"
ecn = true

[[traffic]]
type = "ping"
direction = "up"
interval = "20ms"

[[traffic]]
type = "voip"
direction = "down"

[[traffic]]
type = "web"
direction = "down"
page = "small"
think = "200ms"

[[traffic]]
type = "quic"
direction = "down"
bytes = "500kb"
"""
ARMS = """
[[arms]]
name = "a"
set = { "links.up.qdisc" = "pie" }

[[arms]]
name = "b"
set = { "links.up.qdisc" = "pfifo" }
"""
# Findings of at least a warning, malformed packets and wrong checksums of IP. Wireshark suspects
# that some retransmissions are out of order; whether they are retransmissions is checked below.
# It warns about D-SACK, which receivers may send (RFC 2883).
FAULTY = (
    "_ws.malformed || ip.checksum.status == 0 || (_ws.expert.severity >= 6291456 "
    "&& !tcp.analysis.out_of_order && !tcp.options.sack.dsack)"
)
AGAIN = "(tcp.analysis.retransmission || tcp.analysis.out_of_order)"
TRANSFER_BYTES = 3 << 20

needs_tshark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a scenario, its result and its capture."""
    path = tmp_path_factory.mktemp("captures")
    (path / "all.toml").write_text(SCENARIO, encoding="utf-8")
    command = ["run", "all.toml", "--pcap", "all.pcapng", "--out", "result"]
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", *command],
        cwd=path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "wrote packets to all.pcapng" in done.stderr.splitlines()
    return path


def test_a_run_with_a_capture_has_the_same_result(folder: Path) -> None:
    captured = sj.Result.load(folder / "result")
    plain = sj.run(sj.Scenario.from_file(folder / "all.toml"))
    assert plain.flows.equals(captured.flows)
    assert plain.links.equals(captured.links)
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def test_the_section_says_which_run_it_is(folder: Path) -> None:
    data = (folder / "all.pcapng").read_bytes()
    (length,) = struct.unpack_from("<I", data, 4)
    section = data[:length].decode("latin-1")
    scenario = sj.Scenario.from_file(folder / "all.toml")
    for text in ('scenario "traffic of all kinds"', scenario.hash, "seed 7", "simulated"):
        assert text in section


@needs_tshark
def test_wireshark_finds_no_fault_where_packets_enter(folder: Path) -> None:
    entered = at(folder / "all.pcapng", "up.enq", "down.enq")
    found = Counter(row[0] for row in fields(entered, FAULTY, "_ws.expert.message"))
    assert found == {}
    protocols = Counter(row[0] for row in fields(entered, "ip", "ip.proto"))
    # ICMP, TCP, and UDP of calls and QUIC.
    assert set(protocols) == {"1", "6", "17"}
    assert min(protocols.values()) > 400
    # No port is used by two connections.
    assert not fields(entered, "tcp.analysis.reused_ports", "frame.number")


@needs_tshark
def test_packets_are_those_of_the_result(folder: Path) -> None:
    result = sj.Result.load(folder / "result")
    rows = fields(
        folder / "all.pcapng",
        "frame",
        "frame.interface_name",
        "frame.time_epoch",
        "frame.packet_id",
        "frame.comment",
    )
    counted = Counter(row[0] for row in rows if float(row[1]) >= result.scenario.checked.warmup_s)
    comments = Counter(
        (row[0], row[3]) for row in rows if float(row[1]) >= result.scenario.checked.warmup_s
    )
    for link in result.links.iter_rows(named=True):
        name = link["link"]
        queue = {"up": "codel", "down": "fq_codel"}[name]
        # A packet at the very end of the warm-up may count on either side.
        assert abs(counted[f"{name}.deq"] - link["sent_packets"]) <= 1
        assert abs(comments[f"{name}.drop", f"dropped: {queue} aqm"] - link["drops_aqm"]) <= 1
        assert abs(comments[f"{name}.deq", f"marked CE: {queue} aqm"] - link["marks_aqm"]) <= 1
    # A fair queue numbers its queues; every packet has the same number where it enters and leaves.
    queues = fields(
        folder / "all.pcapng",
        'frame.interface_name matches "enq|deq|drop"',
        "frame.interface_name",
        "frame.packet_id",
        "frame.interface_queue",
        "frame.comment",
    )
    fair = [row for row in queues if row[0].startswith("down.")]
    assert {row[2] for row in queues if not row[0].startswith("down.")} == {""}
    assert all(row[2] for row in fair if row[3] != "lost on the wire")
    assert len({(row[1], row[2]) for row in fair}) == len({row[1] for row in fair})
    assert 2 < len({row[2] for row in fair}) < 1_024
    entered = {row[2] for row in rows if row[0] == "up.enq"}
    left = {row[2] for row in rows if row[0] in {"up.deq", "up.drop"}}
    assert left <= entered
    assert len(entered - left) < 100


@needs_tshark
def test_the_bytes_of_a_transfer_are_those_delivered(folder: Path) -> None:
    result = sj.Result.load(folder / "result")
    left = at(folder / "all.pcapng", "up.deq", "down.deq")
    syns = fields(left, "tcp.flags.syn == 1 && tcp.flags.ack == 0", "tcp.stream", "ip.src")
    assert len({row[0] for row in syns}) == len(syns) > 10
    # The first flow of the scenario: the first of the dynamic ports.
    sent = fields(left, "tcp.srcport == 49152 && tcp.len > 0", "tcp.seq", "tcp.len")
    covered: set[int] = set()
    for first, length in sent:
        covered.update(range(int(first), int(first) + int(length)))
    assert covered == set(range(1, TRANSFER_BYTES + 1))
    acknowledged = fields(left, "tcp.dstport == 49152", "tcp.ack")
    # The SYN and the FIN have a number each.
    assert max(int(row[0]) for row in acknowledged) == TRANSFER_BYTES + 2
    assert result.flows.row(0, named=True)["delivered_bytes"] == TRANSFER_BYTES
    # Everything that was sent again, and nothing else, has been sent before.
    entered = at(folder / "all.pcapng", "up.enq", "down.enq")
    segment = ("tcp.stream", "tcp.srcport", "tcp.seq")
    again = fields(entered, f"tcp.len > 0 && {AGAIN}", *segment)
    seen = Counter(map(tuple, fields(entered, "tcp.len > 0", *segment)))
    repeated = Counter({packet: number - 1 for packet, number in seen.items() if number > 1})
    assert Counter(map(tuple, again)) == repeated
    assert repeated.total() > 20


def test_only_one_run_is_captured(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO + ARMS, encoding="utf-8")
    asked = ("run", "s.toml", "--pcap", "s.pcapng", "-s", "duration=3s")
    for more in ((), ("--arm", "a", "--replications", "2"), ("--dry-run",)):
        done = sojourn(*asked, *more)
        assert done.returncode == 2
        assert done.stderr.startswith("sojourn: --pcap s.pcapng: requires one arm and one repl")
        assert len(done.stderr.splitlines()) == 1
    done = sojourn(*asked, "--arm", "c")
    assert (done.returncode, done.stderr) == (
        2,
        "sojourn: --arm c: unknown arm; expected one of a, b\n",
    )
    assert not (tmp_path / "s.pcapng").exists()
    done = sojourn(*asked, "--arm", "b")
    assert done.returncode == 0, done.stderr
    data = (tmp_path / "s.pcapng").read_bytes()
    assert b'arm "b"' in data
    assert b"queue: pfifo" in data
    # Neither a stored run nor a saved result has packets.
    again = sojourn(*asked, "--arm", "b", "--out", "kept", "--force")
    assert again.returncode == 0, again.stderr
    again = sojourn(*asked, "--arm", "b", "--out", "kept", "--force")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "s.pcapng").read_bytes() == data


def test_files_are_replaced_on_request_and_only_captures(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    asked = ("run", "s.toml", "-s", "duration=3s", "--pcap")
    first = sojourn(*asked, "deep/s.pcapng")
    assert first.returncode == 0, first.stderr
    capture = tmp_path / "deep" / "s.pcapng"
    whole = capture.read_bytes()
    done = sojourn(*asked, "deep/s.pcapng")
    assert done.returncode == 3
    assert "it exists; --force" in done.stderr
    done = sojourn(*asked, "deep/s.pcapng", "--force")
    assert done.returncode == 0
    assert capture.read_bytes() == whole
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to("deep/s.pcapng")
    for name in ("notes.txt", "link", "deep"):
        done = sojourn(*asked, name, "--force")
        assert done.returncode == 3
        assert f"cannot write {name}: it exists and is not a pcapng file" in done.stderr
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["s.pcapng"]


def test_the_packets_of_an_interrupted_run_are_kept(tmp_path: Path) -> None:
    long = SCENARIO.replace('duration = "12s"', 'duration = "20000s"')
    (tmp_path / "s.toml").write_text(long, encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, "-m", "sojourn", "run", "s.toml", "--pcap", "s.pcapng"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if any(path.stat().st_size > 1 << 20 for path in tmp_path.glob(".sojourn-tmp-*")):
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "its packets are in s.pcapng.partial" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.pcapng.partial", "s.toml"]
    rest = tmp_path / "s.pcapng.partial"
    assert captures.is_capture(rest)
    # It ends with the statistics of a point, whose last word is the length of the block.
    data = rest.read_bytes()
    (length,) = struct.unpack("<I", data[-4:])
    assert struct.unpack_from("<II", data, len(data) - length) == (5, length)


def test_a_full_disk_does_not_cost_the_result(tmp_path: Path) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "from sojourn.cli import main; sys.exit(main())"
    )
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "s.toml", "--pcap", "s.pcapng", "--out", "r"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "sojourn: cannot write s.pcapng: File too large" in done.stderr
    assert sj.Result.load(tmp_path / "r").complete
    assert (tmp_path / "s.pcapng.partial").stat().st_size <= 1 << 20
    assert not (tmp_path / "s.pcapng").exists()


def test_an_error_of_a_callback_is_not_one_of_the_capture(tmp_path: Path) -> None:
    def progress(_finished: int, _total: int) -> None:
        raise BlockingIOError(11, "the pipe is full", "status")

    text = SCENARIO.replace('"12s"', '"3s"').replace('"2s"', '"1s"')
    scenario = sj.Scenario.from_toml(text)
    with pytest.raises(BlockingIOError, match="the pipe is full: 'status'"):
        sj.run(scenario, progress=progress, pcap=tmp_path / "run.pcapng")
    # What was captured before is kept.
    (left,) = tmp_path.iterdir()
    assert left == captures.partial(tmp_path / "run.pcapng")


def test_a_capture_in_python(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
    ping = sj.Ping(direction="up", interval="100ms")
    scenario = sj.Scenario(links=links, traffic=[ping], rtt="50ms", duration="4s", warmup="1s")
    file = tmp_path / "ping.pcapng"
    sj.run(scenario, pcap=file)
    whole = file.read_bytes()
    with pytest.raises(sj.ResultError, match="it exists; force replaces it"):
        sj.run(scenario, pcap=file)
    sj.run(scenario, pcap=file, force=True)
    assert file.read_bytes() == whole
    with pytest.raises(sj.ScenarioError, match="requires one arm and one replication"):
        sj.run(scenario.replace(replications=2), pcap=tmp_path / "other.pcapng")
    with pytest.raises(sj.ResultError, match="cannot write"):
        sj.run(scenario, pcap=file / "in a file.pcapng")
