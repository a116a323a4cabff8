"""Captures of simulated traffic over IPv6, compared with tshark and with packets of Linux."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.exchange import importing
from support import captures

pytestmark = pytest.mark.skipif(captures.TSHARK is None, reason="tshark is not installed")

# Findings of at least a warning, and checksums that are wrong. A retransmission soon after newer
# data is out of order to tshark, which is a warning.
FAULTY = (
    "_ws.malformed || tcp.checksum.status == 0 || udp.checksum.status == 0 "
    "|| icmpv6.checksum.status == 0 "
    "|| (_ws.expert.severity >= 6291456 && !tcp.analysis.out_of_order)"
)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[sj.Result, Path]:
    """A run with all transports over IPv6 through a queue that marks and drops, and its packets."""
    file = tmp_path_factory.mktemp("captured") / "run.pcapng"
    links = {side: sj.Link(rate="5mbit", qdisc="codel ecn limit 40") for side in ("up", "down")}
    scenario = sj.Scenario(
        links=links,
        traffic=[
            sj.Tcp(direction="up", ecn=True, start="1ms", ip=6, dscp="AF11"),
            sj.Tcp(direction="down", cc="reno", ip=6),
            sj.Quic(direction="down", bytes="100kb", ip=6),
            sj.Udp(direction="down", rate="1mbit", ip=6),
            sj.Ping(direction="up", interval="50ms", ip=6),
        ],
        rtt="30ms",
        duration="6s",
    )
    return sj.run(scenario, pcap=file), file


def test_tshark_has_no_findings(captured: tuple[sj.Result, Path]) -> None:
    _, file = captured
    # Here each packet is seen once, before it may be dropped.
    selected = captures.at(file, "up.enq", "down.enq")
    assert captures.fields(selected, FAULTY, "frame.number", "_ws.expert.message") == []
    assert captures.fields(selected, "ip", "frame.number") == []
    packets = captures.fields(selected, "ipv6.flow == 0 && ipv6.hlim == 64", "ipv6.src", "ipv6.dst")
    assert len(packets) > 1000
    assert {end for ends in packets for end in ends} == {"2001:2::1", "2001:2::2"}


def test_dscp_and_ecn_are_in_the_traffic_class(captured: tuple[sj.Result, Path]) -> None:
    result, file = captured
    up = captures.fields(
        file, 'frame.interface_name == "up.deq" && tcp.len > 0', "ipv6.tclass.dscp"
    )
    assert {dscp for (dscp,) in up} == {"10"}
    marked = captures.fields(
        file, 'ipv6.tclass.ecn == 3 && frame.interface_name == "up.deq"', "frame.comment"
    )
    marks = result.links.filter(link="up")["marks_aqm"].sum()
    assert marks > 0
    # The capture has those of the warm-up too.
    assert len(marked) >= marks
    assert {comment for (comment,) in marked} == {"marked CE: codel aqm"}


def test_our_import_has_the_numbers_of_the_run(captured: tuple[sj.Result, Path]) -> None:
    result, file = captured
    (one,) = importing.measured([file])
    warmup_s = result.scenario.checked.warmup_s
    counts = ["link", "sent_packets", "sent_bytes", "drops_overlimit", "drops_aqm", "marks_aqm"]
    measured = one.table("links", warmup_s=warmup_s).sort("link").select(counts)
    assert measured.rows() == result.links.sort("link").select(counts).rows()
    assert one.tables["pings"].height == result.pings.height


def test_packets_have_the_sizes_of_those_of_linux(tmp_path: Path) -> None:
    """Linux 6.18 over IPv6: iperf3 through ``pie``, captured by a live run."""
    linux = tmp_path / "linux.pcapng"
    linux.write_bytes(gzip.decompress((captures.FOLDER / "cubic_v6.pcapng.gz").read_bytes()))
    ours = tmp_path / "ours.pcapng"
    links = {side: sj.Link(rate="2mbit", qdisc="pie") for side in ("up", "down")}
    scenario = sj.Scenario(
        links=links,
        traffic=[sj.Tcp(direction="up", ip=6)],
        rtt="40ms",
        duration="8s",
    )
    sj.run(scenario, pcap=ours)
    kept = "tcp && tcp.flags.reset == 0"
    names = ("frame.len", "tcp.len", "tcp.hdr_len", "tcp.flags.syn", "tcp.options.mss_val")
    rows = [captures.fields(file, kept, *names) for file in (linux, ours)]
    headers = [{tuple(row[2:]) for row in packets} for packets in rows]
    # A SYN, which announces 1500 - 40 - 20 B; then without and with one to three SACK blocks.
    assert (
        headers[0]
        == headers[1]
        == {
            ("40", "1", "1440"),
            *((f"{32 + sacks}", "0", "") for sacks in (0, 12, 20, 28)),
        }
    )
    for packets in rows:
        assert all(
            int(length) - int(data) - int(header) == 40 for length, data, header, *_ in packets
        )
        assert _most(packets) == (1500, 1428)


def _most(packets: Iterable[list[str]]) -> tuple[int, int]:
    """Lengths of the largest packet and of its payload."""
    return max((int(length), int(data)) for length, data, *_ in packets)
