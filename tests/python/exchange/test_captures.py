"""Packet captures as measured runs, compared with the simulated run and with tshark."""

import gzip
import json
import random
import struct
import time
from pathlib import Path
from typing import Literal

import polars as pl
import pytest

import sojourn as sj
from sojourn.exchange import importing
from sojourn.exchange.captures import load
from sojourn.exchange.measurement import per_run
from support import captures
from support.refusals import refused
from support.shell import Command

MUTATIONS, EVERY = 100, 10_000


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[sj.Result, Path]:
    """A run with TCP, UDP and pings through queues that mark and drop, and its packets."""
    file = tmp_path_factory.mktemp("captured") / "run.pcapng"
    links = {side: sj.Link(rate="5mbit", qdisc="codel ecn limit 40") for side in ("up", "down")}
    traffic = [
        # To tshark, a SYN at time 0 has no time, and the handshake no RTT.
        sj.Tcp(direction="up", ecn=True, start="1ms"),
        sj.Tcp(direction="down", cc="reno"),
        sj.Udp(direction="down", rate="1mbit"),
        sj.Ping(direction="up", interval="50ms"),
    ]
    scenario = sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="6s", name="both")
    return sj.run(scenario, pcap=file), file


def test_a_capture_has_the_numbers_of_the_run(captured: tuple[sj.Result, Path]) -> None:
    result, file = captured
    (one,) = importing.measured([file])
    assert one.arm == "simulated: run.pcapng"
    warmup_s = result.scenario.checked.warmup_s
    measured, simulated = one.table("links", warmup_s=warmup_s), result.links
    counts = ["link", "sent_packets", "sent_bytes", "drops_overlimit", "drops_aqm", "marks_aqm"]
    by_link = measured.sort("link"), simulated.sort("link")
    assert by_link[0].select(counts).rows() == by_link[1].select(counts).rows()
    assert measured["marks_aqm"].sum() > 0
    assert measured["drops_aqm"].sum() > 0
    for name in ("sojourn_ms_mean", "sojourn_ms_p50", "sojourn_ms_p95", "sojourn_ms_p99"):
        # The histogram of a result has buckets of 1.6 %.
        assert by_link[0][name].to_list() == pytest.approx(by_link[1][name].to_list(), rel=0.02)
    flows = one.table("flows", warmup_s=warmup_s)
    names = {"tcp up", "tcp down", "udp down"}
    of = {row["group"]: row for row in flows.iter_rows(named=True) if row["group"] in names}
    for group, row in {row["group"]: row for row in result.flows.iter_rows(named=True)}.items():
        if group not in names:
            continue
        assert of[group]["direction"] == row["direction"]
        assert of[group]["retransmits"] == row["retransmits"]
        assert of[group]["sent_packets"] == pytest.approx(row["sent_packets"], abs=2)
        assert of[group]["ce_packets"] == pytest.approx(row["ce_packets"] or 0, abs=1)
        assert of[group]["goodput_mbit_per_s"] == pytest.approx(row["goodput_mbit_per_s"], rel=0.02)
    pings = one.tables["pings"]
    assert pings.height == result.pings.height
    both = pl.DataFrame({"ours": pings["rtt_ms"], "run": result.pings["rtt_ms"]}).drop_nulls()
    assert both.height > 100
    # A capture lacks the delay of the last link.
    lacking = both["run"] - both["ours"]
    assert lacking.max() - lacking.min() < 1e-3  # type: ignore[operator]
    assert of["tcp up"]["ce_packets"] > 0
    assert one.load_s < one.end_s < 6.1
    row = per_run([one], warmup_s=warmup_s).row(0, named=True)
    expected = result.table().row(0, named=True)
    for metric in ("goodput_up_mbit_per_s", "goodput_down_mbit_per_s"):
        assert row[metric] == pytest.approx(expected[metric], rel=0.02)
    assert (row["drops"], row["marks"]) == (expected["drops"], expected["marks"])


def test_marks_of_several_queues_are_those_behind_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "run.pcapng"
    links = {
        "first": sj.Link(rate="6mbit", qdisc="codel ecn"),
        "last": sj.Link(rate="5mbit", qdisc="codel ecn"),
        "back": sj.Link(rate="50mbit", qdisc="pfifo"),
    }
    tcp = sj.Tcp(path=["first", "last"], reverse=["back"], ecn=True)
    scenario = sj.Scenario(links=links, traffic=[tcp], rtt="30ms", duration="6s")
    result = sj.run(scenario, pcap=file)
    (one,) = importing.measured([file])
    flows = one.table("flows", warmup_s=result.scenario.checked.warmup_s)
    marks = result.flows["ce_packets"][0]
    assert flows["ce_packets"].max() == pytest.approx(marks, abs=1)
    assert marks > 10


def test_series_have_the_backlog_and_add_up(captured: tuple[sj.Result, Path]) -> None:
    _, file = captured
    (one,) = importing.measured([file])
    series, links = one.table("link_series"), one.table("links", warmup_s=0.0)
    for link in ("up", "down"):
        of = series.filter(link=link)
        total = links.filter(link=link).row(0, named=True)
        for name in ("sent_packets", "drops_aqm", "marks_aqm"):
            assert of[name].sum() == total[name]
        assert of["backlog_packets"].min() >= 0  # type: ignore[operator]
        assert of["backlog_packets"].max() > 3  # type: ignore[operator]
    flows = one.table("flows", warmup_s=0.0)
    step = 0.1
    for flow, delivered in (
        flows.drop_nulls("delivered_bytes").select("flow", "delivered_bytes").iter_rows()
    ):
        rates = one.table("flow_series").filter(flow=flow)["goodput_mbit_per_s"]
        assert rates.sum() * step / 8e-6 == pytest.approx(delivered, rel=1e-6)
    # From the same time on: the default is the begin of the load, after the handshakes.
    counted = one.table("sojourn", warmup_s=0.0)["count"].sum()
    assert counted == links["sent_packets"].sum()


def test_the_command_shows_measured_beside_simulated(
    captured: tuple[sj.Result, Path], sojourn: Command, tmp_path: Path
) -> None:
    result, file = captured
    result.save(tmp_path / "r")
    (tmp_path / "a.pcapng.gz").write_bytes(gzip.compress(file.read_bytes()))
    done = sojourn("import", "a.pcapng.gz", "--beside", "r", "--out", "m")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    row = next(line for line in lines if line.startswith("simulated: a.pcapng.gz"))
    assert "goodput up [Mbit/s]" in done.stdout
    assert any(line.startswith("default") for line in lines)
    assert "198.18.0.1:49152 > 198.18.0.2:5001" in done.stdout
    assert row
    kept = pl.read_parquet(tmp_path / "m" / "series.parquet")
    assert kept.height == sj.read_capture(file).height
    done = sojourn("import", "a.pcapng.gz", "--beside", "r", "--json")
    found = json.loads(done.stdout)
    arms = {entry["arm"] for entry in found["beside"]}
    assert arms == {"default", "simulated: a.pcapng.gz"}
    assert {"retransmits", "ack_rtt_ms_mean"} <= set(found["flows"][0])


def test_notes_state_how_rtt_and_goodput_differ_from_those_of_a_simulation(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="5mbit", qdisc="codel") for side in ("up", "down")}
    said = {}
    for name, traffic in (
        ("tcp", sj.Tcp(direction="up")),
        ("quic", sj.Quic(direction="down")),
        ("udp", sj.Udp(direction="up", rate="1mbit")),
        ("ping", sj.Ping(direction="up")),
    ):
        file = tmp_path / f"{name}.pcapng"
        scenario = sj.Scenario(links=links, traffic=[traffic], rtt="9ms", duration="1s")
        sj.run(scenario, pcap=file)
        said[name] = " ".join(load(file).notes)
    texts = ("RTT of TCP is", "RTT of pings is", "UDP port 443 counts all datagrams")
    assert {name: tuple(text in of for text in texts) for name, of in said.items()} == {
        "tcp": (True, False, False),
        "ping": (False, True, False),
        "quic": (False, False, True),
        "udp": (False, False, False),
    }


@pytest.mark.parametrize("direction", ["up", "down"])
def test_rtt_lacks_what_the_notes_say(direction: Literal["up", "down"], tmp_path: Path) -> None:
    delays = {"up": 3, "down": 7}
    links = {
        side: sj.Link(rate="50mbit", qdisc="pfifo limit 40", delay=f"{ms}ms")
        for side, ms in delays.items()
    }
    traffic = [
        sj.Tcp(direction=direction),
        sj.Ping(direction=direction, interval="50ms"),
    ]
    scenario = sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="6s")
    file = tmp_path / "c.pcapng"
    result = sj.run(scenario, pcap=file)
    (one,) = importing.measured([file])
    base = 30 if direction == "down" else 0
    back = delays["up" if direction == "down" else "down"]
    flows = one.table("flows", warmup_s=result.scenario.checked.warmup_s)
    ours = flows.filter(kind="tcp")["ack_rtt_ms_mean"].drop_nulls().item()
    run = result.flows.filter(kind="tcp")["ack_rtt_ms_mean"].item()
    assert run - ours == pytest.approx(base + back, abs=1.5)
    both = [table["rtt_ms"].drop_nulls().mean() for table in (result.pings, one.tables["pings"])]
    assert both[0] - both[1] == pytest.approx(base + back, abs=0.5)  # type: ignore[operator]
    assert (
        sum('of traffic with direction = "down", the base RTT' in note for note in one.notes) == 2
    )


@pytest.mark.skipif(captures.TSHARK is None, reason="tshark is not installed")
def test_tshark_counts_the_same(captured: tuple[sj.Result, Path]) -> None:
    """At the points where packets enter the queues, as Wireshark should analyse them."""
    _, file = captured
    entry = captures.at(file, "up.enq", "down.enq")
    agree_with_tshark(entry)


def agree_with_tshark(file: Path) -> None:
    """Compare bytes, payload, retransmissions and RTT of every TCP stream."""
    names = ("ip.src", "tcp.srcport", "ip.len", "tcp.len", "tcp.analysis.retransmission")
    more = ("tcp.analysis.out_of_order", "tcp.analysis.ack_rtt")
    theirs: dict[str, list[float]] = {}
    for source, port, length, payload, resent, early, rtt in captures.fields(
        file, "tcp", *names, *more
    ):
        of = theirs.setdefault(f"{source}:{port}", [0.0] * 6)
        of[0] += int(length)
        of[1] += int(payload)
        of[2] += bool(resent)
        of[3] += bool(early)
        of[4] += bool(rtt)
        of[5] += float(rtt or 0) * 1e3
    packets = sj.read_capture(file)
    tcp = packets.filter(~pl.col("flow").str.contains("^(udp|ping) "))
    event = pl.col("wireshark_event")
    ours = tcp.group_by(source=pl.col("flow").str.extract("^(.*) > ")).agg(
        pl.col("bytes").sum(),
        pl.col("payload_bytes").sum(),
        resent=event.is_in(["retransmission", "spurious"]).sum(),
        early=(event == "out of order").sum(),
        samples=pl.col("rtt_ms").count(),
        rtt=pl.col("rtt_ms").sum(),
    )
    assert ours.height == len(theirs) > 1
    for source, *values in ours.iter_rows():
        assert values == pytest.approx(theirs[source], rel=1e-4), source


def pcap(*packets: bytes, link_type: int = 101) -> bytes:
    """A pcap file of these packets, a millisecond apart."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link_type)
    return head + b"".join(
        struct.pack("<IIII", 1_600_000_000, 1000 * n, len(data), len(data)) + data
        for n, data in enumerate(packets)
    )


def datagram(payload: int, ecn: int = 0) -> bytes:
    """A UDP datagram from 10.0.0.1:5000 to 10.0.0.2:6000."""
    length = 28 + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, ecn, length, 0, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2")
    return ip + struct.pack(">HHHH", 5000, 6000, 8 + payload, 0) + bytes(payload)


def test_a_capture_without_queues_has_marks_only_if_packets_can_be_marked(tmp_path: Path) -> None:
    for ecn, marks in ((0, None), (2, 0), (3, 2)):
        file = tmp_path / f"{ecn}.pcap"
        file.write_bytes(pcap(datagram(100, ecn), datagram(100, ecn)))
        (one,) = importing.measured([file])
        link = one.table("links").row(0, named=True)
        assert (link["link"], link["sent_packets"], link["marks_aqm"]) == ("up", 2, marks)
        assert (link["drops_aqm"], link["sojourn_ms_mean"]) == (None, None)
        assert one.origin["time"] == "2020-09-13T12:26:40Z"
        flow = one.table("flows").row(0, named=True)
        assert (flow["flow"], flow["group"]) == ("udp 10.0.0.1:5000 > 10.0.0.2:6000", "udp up")
        assert flow["delivered_bytes"] == 200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pcap()[:20], "byte 0: ends within its header"),
        (pcap(), "no TCP, UDP or ICMP echo among its 0 packets"),
        (pcap(b"\x45"), "no TCP, UDP or ICMP echo among its 1 packet"),
        (pcap(datagram(1), link_type=127), "link type 127 is not supported; expected Ethernet"),
        (pcap() + b"\xff" * 16, "byte 24: a packet of 4294967295 captured bytes; expected at most"),
    ],
)
def test_damaged_captures_are_refused_in_one_line(
    content: bytes, said: str, sojourn: Command, tmp_path: Path
) -> None:
    (tmp_path / "x.pcap").write_bytes(content)
    refused(sojourn("import", "x.pcap"), 4, f"^sojourn: x.pcap: {said}")


def test_a_file_that_ends_early_and_other_protocols_are_noted(tmp_path: Path) -> None:
    file = tmp_path / "x.pcap"
    other = bytearray(datagram(10))
    other[9] = 47
    file.write_bytes(pcap(datagram(10), bytes(other), datagram(10))[:-5])
    notes = load(file).notes
    assert notes[0].startswith("1 packet left out: of protocols other than TCP, UDP")
    assert notes[1] == "the file ends in the middle of a packet, which was left out"


@pytest.mark.parametrize(
    "count", [MUTATIONS, pytest.param(EVERY, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_mutated_captures_end_in_one_line(
    count: int, captured: tuple[sj.Result, Path], tmp_path: Path
) -> None:
    whole = captured[1].read_bytes()[:20_000]
    plain = pcap(*(datagram(n) for n in range(40)), link_type=101)
    refusals = 0
    for number in range(count):
        rng = random.Random(number)  # noqa: S311 - not a secret
        content = bytearray(plain if number % 3 == 0 else whole)
        for _ in range(rng.randrange(1, 6)):
            content[rng.randrange(len(content))] = rng.choice([0, 1, 255, rng.randrange(256)])
        if rng.random() < 0.2:
            del content[rng.randrange(len(content)) :]
        file = tmp_path / "x.pcap"
        file.write_bytes(content)
        try:
            found = importing.measured([file])
            per_run(found)
        except sj.ResultError as error:
            message = f"{error}"
            assert message.startswith(f"{file}: ")
            assert "\n" not in message
            assert len(message) < 400
            refusals += 1
    assert 0 < refusals < count


def test_a_million_packets_take_less_than_10_s(tmp_path: Path) -> None:
    record = struct.pack("<IIII", 1, 0, 128, 1028) + datagram(1000)[:128]
    head = pcap()
    file = tmp_path / "x.pcap"
    file.write_bytes(head + record * 1_000_000)
    begin = time.process_time()
    (one,) = importing.measured([file])
    assert one.table("flows")["sent_packets"].to_list() == [1_000_000]
    assert time.process_time() - begin < 10
