"""qlog of simulated connections: the fields that the drafts require, and the numbers of the run."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj

# Fields of events, as quic-events and main-schema define them.
FIELDS = {
    "quic:packet_sent": {"header", "frames", "raw"},
    "quic:packet_received": {"header", "frames", "raw"},
    "quic:packet_lost": {"header"},
    "quic:recovery_metrics_updated": {
        "smoothed_rtt",
        "latest_rtt",
        "congestion_window",
        "bytes_in_flight",
        "packets_in_flight",
        "ssthresh",
    },
    "quic:congestion_state_updated": {"old", "new"},
    "simulation:scenario": {"name", "details"},
    "simulation:marker": {"type", "message"},
}


def records(file: Path) -> list[dict[str, Any]]:
    """Split a JSON text sequence (RFC 7464)."""
    first, *texts = file.read_text(encoding="utf-8").split("\x1e")
    assert first == ""
    assert all(text.endswith("\n") for text in texts)
    return [json.loads(text) for text in texts]


def test_each_connection_has_a_log_of_its_packets(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="5mbit", qdisc="codel") for side in ("up", "down")}
    traffic = [sj.Tcp(direction="up"), sj.Quic(direction="down")]
    result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="3s"))
    files = sj.export(result, tmp_path / "q", "qlog")
    assert [file.name for file in files] == ["default-tcp_up.sqlog", "default-quic_down.sqlog"]
    for file in files:
        header, *events = records(file)
        assert header["file_schema"] == "urn:ietf:params:qlog:file:sequential"
        assert header["serialization_format"] == "application/qlog+json-seq"
        times = [event["time"] for event in events]
        assert times == sorted(times)
        for event in events:
            assert set(event) == {"time", "name", "data"}
            assert set(event["data"]) <= FIELDS[event["name"]]
    _, *events = records(files[0])
    of = [event["data"] for event in events if event["name"] == "quic:packet_lost"]
    assert len(of) == result.flows["retransmits"][0] > 0
    sent = [event["data"] for event in events if event["name"] == "quic:packet_sent"]
    assert [one["header"]["packet_number"] for one in sent] == list(range(len(sent)))
    decisions = [event["data"]["type"] for event in events if event["name"] == "simulation:marker"]
    assert decisions.count("drop") >= len(of)


def test_a_run_without_connections_is_refused(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="5mbit", qdisc="codel") for side in ("up", "down")}
    traffic = [sj.Udp(direction="up", rate="1mbit")]
    result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="3s"))
    with pytest.raises(sj.ResultError, match="format qlog: no run has traffic of type tcp or quic"):
        sj.export(result, tmp_path / "q", "qlog")
