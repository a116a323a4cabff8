"""qlog of simulated connections: the CDDL of the drafts, and the numbers of the run."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from cddl_verifier import Validator
from cddl_verifier.cbor import encode, float_width

import sojourn as sj
from sojourn.exchange import importing, measurement
from sojourn.report import measured
from support.shell import Command


def records(file: Path) -> list[dict[str, Any]]:
    """Split a JSON text sequence (RFC 7464)."""
    first, *texts = file.read_text(encoding="utf-8").split("\x1e")
    assert first == ""
    assert all(text.endswith("\n") for text in texts)
    return [json.loads(text) for text in texts]


def test_a_run_without_connections_is_refused(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="5mbit", qdisc="codel") for side in ("up", "down")}
    traffic = [sj.Udp(direction="up", rate="1mbit")]
    result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="3s"))
    with pytest.raises(sj.ResultError, match="format qlog: no run has traffic of type tcp or quic"):
        sj.export(result, tmp_path / "q", "qlog")


# Definitions of the drafts, and the type of each event of an export.
CDDL = Validator(Path(__file__).with_name("qlog.cddl"))
HEADER = "QlogFileSeq"
EVENTS = {
    "quic:packet_sent": "QUICPacketSent",
    "quic:packet_received": "QUICPacketReceived",
    "quic:packet_lost": "QUICPacketLost",
    "quic:recovery_metrics_updated": "QUICRecoveryMetricsUpdated",
    "quic:congestion_state_updated": "QUICCongestionStateUpdated",
    "simulation:scenario": "SimulationScenario",
    "simulation:marker": "SimulationMarker",
}


def cbor(value: Any, name: str = "") -> Any:
    """Give numbers of JSON, which have no width, that of the CDDL: only ``time`` is a float64."""
    if isinstance(value, dict):
        return {key: cbor(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [cbor(one) for one in value]
    if not isinstance(value, float):
        return value
    (single,) = struct.unpack("f", struct.pack("f", value))
    return float_width(value, 64) if name == "time" else float_width(single, 32)


def violation(value: Any, rule: str) -> str:
    """Name the first place where a value differs from a rule of the CDDL; empty: none."""
    found = CDDL.validate(encode(cbor(value)), root_type=rule).diagnostics
    return f"{found[0].path_text}: {found[0].message}" if found else ""


def event_violation(event: dict[str, Any]) -> str:
    """Validate an event; the drafts bind the type of its data to its name only in their text."""
    if event["name"] not in EVENTS:
        return f"{event['name']}: not in qlog.cddl"
    return violation(event["data"], EVENTS[event["name"]]) or violation(event, "Event")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[sj.Result, list[Path]]:
    """A run with losses, and the logs of its connections."""
    links = {side: sj.Link(rate="5mbit", qdisc="codel") for side in ("up", "down")}
    traffic = (sj.Tcp(direction="up"), sj.Quic(direction="down"))
    result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="3s"))
    return result, sj.export(result, tmp_path_factory.mktemp("qlog") / "q", "qlog")


def test_each_connection_has_a_log_of_its_packets(exported: tuple[sj.Result, list[Path]]) -> None:
    result, files = exported
    assert [file.name for file in files] == ["default-tcp_up.sqlog", "default-quic_down.sqlog"]
    for file in files:
        header, *events = records(file)
        assert header["file_schema"] == "urn:ietf:params:qlog:file:sequential"
        assert header["serialization_format"] == "application/qlog+json-seq"
        times = [event["time"] for event in events]
        assert times == sorted(times)
        assert all(set(event) == {"time", "name", "data"} for event in events)
    _, *events = records(files[0])
    of = [event["data"] for event in events if event["name"] == "quic:packet_lost"]
    assert len(of) == result.flows["retransmits"][0] > 0
    sent = [event["data"] for event in events if event["name"] == "quic:packet_sent"]
    assert [one["header"]["packet_number"] for one in sent] == list(range(len(sent)))
    decisions = [event["data"]["type"] for event in events if event["name"] == "simulation:marker"]
    assert decisions.count("drop") >= len(of)


def test_every_rtt_of_a_log_is_that_of_the_sender(tmp_path: Path) -> None:
    # The ACKs of the upload wait behind the download.
    links = {side: sj.Link(rate="5mbit", qdisc="pfifo limit 50") for side in ("up", "down")}
    traffic = (sj.Tcp(direction="up"), sj.Quic(direction="down"))
    result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="5s"))
    files = sj.export(result, tmp_path / "q", "qlog")
    for file, (of_acks,) in zip(files, result.flows.select("ack_rtt_ms_mean").rows(), strict=True):
        metrics = [
            event["data"]
            for event in records(file)[1:]
            if event["name"] == "quic:recovery_metrics_updated"
        ]
        rtts = {
            name: [one[name] for one in metrics if name in one]
            for name in ("smoothed_rtt", "latest_rtt")
        }
        smoothed = sum(rtts["smoothed_rtt"]) / len(rtts["smoothed_rtt"])
        assert smoothed == pytest.approx(of_acks, rel=0.2)
        assert all(abs(one / smoothed - 1) < 0.2 for one in rtts["latest_rtt"])


def test_every_record_is_valid_by_the_cddl(exported: tuple[sj.Result, list[Path]]) -> None:
    seen = set()
    for file in exported[1]:
        header, *events = records(file)
        assert violation(header, HEADER) == ""
        assert [one for event in events if (one := event_violation(event))] == []
        seen |= {event["name"] for event in events}
    assert seen == set(EVENTS)


RAW = {"length": 1500, "payload_length": 1448}
STREAM = {"frame_type": "stream", "stream_id": 0, "offset": 1448, "raw": RAW}
ACK = {"frame_type": "ack", "acked_ranges": [[0], [2, 3]]}
PACKET = {"packet_type": "1RTT", "packet_number": 4}
SENT = {"header": PACKET, "raw": RAW, "frames": [STREAM, ACK]}
FILE = {"file_schema": "a", "serialization_format": "b", "trace": {"event_schemas": ["c"]}}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("packet_sent", SENT, ""),
        (
            "packet_sent",
            SENT | {"header": PACKET | {"packet_number": "4"}},
            "/header/packet_number",
        ),
        ("packet_sent", SENT | {"header": PACKET | {"packet_number": -1}}, "/header/packet_number"),
        ("packet_sent", SENT | {"header": PACKET | {"packet_type": "2RTT"}}, "/header/packet_type"),
        ("packet_sent", {"raw": RAW}, "'header'"),
        ("packet_sent", SENT | {"size": 1}, "'size'"),
        ("packet_sent", SENT | {"raw": {"length": 1.5}}, "/raw/length"),
        ("packet_sent", SENT | {"frames": [STREAM | {"size": 1}]}, "'size'"),
        ("packet_sent", SENT | {"frames": [{"frame_type": "stream"}]}, "'stream_id'"),
        ("packet_sent", SENT | {"frames": [STREAM, {"frame_type": "ping"}]}, "/frames/1"),
        ("packet_sent", SENT | {"frames": [ACK | {"acked_ranges": []}]}, "/frames/0"),
        ("packet_sent", SENT | {"frames": [ACK | {"acked_ranges": [[0], [1, 2, 3]]}]}, "/frames/0"),
        ("recovery_metrics_updated", {"latest_rtt": 20}, "/latest_rtt"),
        ("congestion_state_updated", {"old": "slow_start"}, "'new'"),
        ("packets_lost", {"header": PACKET}, "quic:packets_lost: not in qlog.cddl"),
    ],
)
def test_the_cddl_refuses_other_events(name: str, data: dict[str, Any], said: str) -> None:
    found = event_violation({"time": 0.5, "name": f"quic:{name}", "data": data})
    assert bool(found) == bool(said)
    assert said in found


@pytest.mark.parametrize(
    ("value", "rule", "said"),
    [
        (FILE, HEADER, ""),
        (FILE | {"trace": {}}, HEADER, "'event_schemas'"),
        (FILE | {"trace": {"event_schemas": []}}, HEADER, "/trace/event_schemas"),
        ({"file_schema": "a", "trace": FILE["trace"]}, HEADER, "'serialization_format'"),
        (FILE | {"qlog_version": "0.3"}, HEADER, "'qlog_version'"),
        ({"time": 1, "name": "a", "data": SENT}, "Event", "/time"),
        ({"name": "a", "data": SENT}, "Event", "'time'"),
        ({"time": 0.5, "name": "a", "data": {"header": {}}}, "Event", "/data"),
    ],
)
def test_the_cddl_refuses_other_headers_and_events(
    value: dict[str, Any], rule: str, said: str
) -> None:
    found = violation(value, rule)
    assert bool(found) == bool(said)
    assert said in found


def test_lengths_of_packets_and_frames(exported: tuple[sj.Result, list[Path]]) -> None:
    tcp, quic = (
        [event["data"] for event in records(file)[1:] if event["name"] == "quic:packet_sent"]
        for file in exported[1]
    )
    full = max(tcp, key=lambda one: one["raw"]["length"])
    assert full["raw"] == {"length": 1500, "payload_length": 1448}
    (frame,) = full["frames"]
    assert frame["raw"] == {"length": 1448, "payload_length": 1448}
    # The default max_datagram of QUIC is a UDP payload, without 28 bytes of headers.
    assert {key for one in quic for key in one["raw"]} == {"length"}
    assert max(one["raw"]["length"] for one in quic) == 1452


def test_an_exported_connection_is_imported_with_the_numbers_of_the_run(
    exported: tuple[sj.Result, list[Path]],
) -> None:
    result, files = exported
    (one,) = importing.measured(files[:1])
    assert one.origin["format"] == "qlog"
    row = one.table("flows", warmup_s=0.0).filter(direction="up").row(0, named=True)
    run = result.flows.row(0, named=True)
    assert row["retransmits"] == run["retransmits"] > 0
    whole = run["goodput_mbit_per_s"]
    ours = one.table("flows", warmup_s=result.scenario.checked.warmup_s)
    same = ours.filter(direction="up").row(0, named=True)
    assert same["goodput_mbit_per_s"] == pytest.approx(whole, rel=0.03)
    assert same["srtt_ms_mean"] == pytest.approx(run["srtt_ms_mean"], rel=0.05)
    series = one.table("flow_series").filter(flow=row["flow"])
    assert series["cwnd_packets"].drop_nulls().max() > 10  # type: ignore[operator]
    # Simulated QUIC has no frames.
    (quic,) = importing.measured(files[1:])
    assert "goodput is unknown" in quic.notes[0]
    row = quic.table("flows", warmup_s=0.0).filter(direction="down").row(0, named=True)
    assert (row["delivered_bytes"], row["retransmits"]) == (None, None)


@pytest.mark.slow
def test_an_exported_download_is_imported_as_one(tmp_path: Path, sojourn: Command) -> None:
    links = {side: sj.Link(rate="5mbit", qdisc="codel") for side in ("up", "down")}
    traffic = [sj.Tcp(direction="down"), sj.Tcp(direction="down", name="host", host=3)]
    result = sj.run(sj.Scenario(links=links, traffic=traffic, rtt="30ms", duration="3s"))
    result.save(tmp_path / "r")
    files = sj.export(result, tmp_path / "q", "qlog")
    for file, run in zip(files, result.flows.iter_rows(named=True), strict=True):
        header, *events = records(file)
        assert violation(header, HEADER) == ""
        assert [one for event in events if (one := event_violation(event))] == []
        (one,) = importing.measured([file])
        flows = one.table("flows", warmup_s=result.scenario.checked.warmup_s)
        row = flows.filter(direction="down").row(0, named=True)
        assert row["goodput_mbit_per_s"] == pytest.approx(run["goodput_mbit_per_s"], rel=0.05)
        assert row["retransmits"] == pytest.approx(run["retransmits"], abs=1)
        assert flows.filter(direction="up")["delivered_bytes"].to_list() == [None]
    done = sojourn("import", f"{files[0]}", "--beside", "r")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.partition("flows\n")[0]
    assert re.search(r"(?m)^simulated: default-tcp_down.sqlog +1 +\d", shown)


def test_flows_are_listed_without_frames_and_are_named_simulated(
    exported: tuple[sj.Result, list[Path]], sojourn: Command
) -> None:
    result, files = exported
    done = sojourn("import", f"{files[1]}")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.partition("flows\n")[2].splitlines()
    shown = [re.split(r"\s{2,}", row.strip()) for row in rows if row.strip()]
    assert re.split(r"\s{2,}", head)[2:4] == ["packets", "data [kB]"]
    assert [row[:2] for row in shown] == [
        ["simulated: default-quic_down.sqlog", f"quic down {way}"] for way in ("down", "up")
    ]
    # Of data, goodput and retransmissions nothing is known.
    assert [row[3:6] for row in shown] == [["–"] * 3] * 2
    sent = result.flows.filter(flow="quic down")["sent_packets"].item()
    assert int(shown[0][2]) == pytest.approx(sent, rel=0.01)
    assert float(shown[0][6]) > 30


def test_the_goodput_and_the_kind_of_a_log_are_listed(
    exported: tuple[sj.Result, list[Path]], sojourn: Command
) -> None:
    result, files = exported
    done = sojourn("import", f"{files[0]}")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.partition("flows\n")[2].splitlines()
    titles = re.split(r"\s{2,}", head.strip())
    shown = dict(zip(titles, re.split(r"\s{2,}", rows[0].strip()), strict=True))
    flow = result.flows.row(0, named=True)
    assert float(shown["goodput [Mbit/s]"]) == pytest.approx(flow["goodput_mbit_per_s"], rel=0.1)
    assert float(shown["smoothed RTT [ms]"]) == pytest.approx(flow["srtt_ms_mean"], rel=0.1)
    (one,) = importing.measured(files[:1])
    assert one.table("flows")["kind"].unique().to_list() == ["tcp"]
    assert one.table("flows")["group"].to_list() == ["tcp up", "tcp down"]


def test_of_a_log_beside_a_result_the_time_after_its_warm_up_counts(
    exported: tuple[sj.Result, list[Path]],
) -> None:
    result, files = exported
    late = result.scenario.replace(warmup="2s")
    measurements = importing.measured(files[:1])
    (whole,), (part,) = (
        [block for block in measured.connections(measurements, simulated) if block.rows]
        for simulated in (None, sj.run(late))
    )
    packets = [[int(row[2]) for row in table.rows if "tcp up up" in row] for table in (whole, part)]  # type: ignore[union-attr]
    assert packets[1][0] < packets[0][0] / 2


def test_packets_of_a_simulated_run_are_named_simulated(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="5mbit", qdisc="codel") for side in ("up", "down")}
    scenario = sj.Scenario(links=links, traffic=[sj.Tcp(direction="up")], rtt="9ms", duration="1s")
    sj.run(scenario, pcap=tmp_path / "s.pcapng")
    (one,) = importing.measured([tmp_path / "s.pcapng"])
    assert one.arm == "simulated: s.pcapng"
    (named,) = importing.measured([tmp_path / "s.pcapng"], "fifo")
    assert named.arm == "simulated: fifo"


LOG = {
    "qlog_version": "0.3",
    "qlog_format": "JSON",
    "traces": [
        {
            "vantage_point": {"type": "server"},
            "common_fields": {"time_format": "relative", "group_id": "abc"},
            "events": [
                {
                    "time": 0,
                    "name": "transport:packet_sent",
                    "data": {
                        "header": {"packet_type": "1RTT", "packet_number": 0},
                        "raw": {"length": 1200},
                        "frames": [
                            {"frame_type": "stream", "stream_id": 4, "offset": 0, "length": 1000}
                        ],
                    },
                },
                {
                    "time": 20,
                    "name": "transport:packet_received",
                    "data": {
                        "header": {"packet_type": "1RTT", "packet_number": 0},
                        "raw": {"length": 40},
                        "frames": [{"frame_type": "ack", "acked_ranges": [[0, 0]], "ce": 3}],
                    },
                },
                {
                    "time": 20,
                    "name": "recovery:metrics_updated",
                    "data": {
                        "smoothed_rtt": 20.5,
                        "latest_rtt": 20,
                        "congestion_window": 12_000,
                    },
                },
                {"time": 90, "name": "recovery:packet_lost", "data": {}},
            ],
        }
    ],
}


def test_json_of_an_earlier_draft_is_read(tmp_path: Path) -> None:
    file = tmp_path / "server.qlog"
    file.write_text(json.dumps(LOG), encoding="utf-8")
    (one,) = importing.measured([file])
    row = one.table("flows", warmup_s=0.0).filter(direction="down").row(0, named=True)
    assert (row["flow"], row["group"]) == ("abc down", "quic down")
    assert (row["sent_packets"], row["delivered_bytes"]) == (1, 1000)
    assert (row["retransmits"], row["ack_rtt_ms_max"], row["ce_packets"]) == (1, 20.0, 3)
    link = one.table("links", warmup_s=0.0).filter(link="down").row(0, named=True)
    assert (link["sent_packets"], link["marks_aqm"]) == (1, 3)
    assert one.table("flow_series")["cwnd_packets"].max() == 10
    # Of a run too, which counts marks of all causes.
    assert measurement.per_run([one])["marks"].to_list() == [3]
    # The client sends only acknowledgements.
    assert one.notes == []


def events(space: str, number: int, begin: int) -> list[dict[str, object]]:
    """Return a packet of a space with 1000 bytes of data, and its acknowledgement with a mark."""
    header = {"packet_type": space, "packet_number": number}
    data = {"frame_type": "stream", "stream_id": 0, "offset": begin, "length": 1000}
    answered = {"packet_type": "1RTT" if space == "0RTT" else space, "packet_number": number}
    ack = {"frame_type": "ack", "acked_ranges": [[number, number]], "ce": 1}
    return [
        {"name": "transport:packet_sent", "data": {"header": header, "frames": [data]}},
        {"name": "transport:packet_received", "data": {"header": answered, "frames": [ack]}},
    ]


def test_each_space_of_packet_numbers_has_its_own_acknowledgements(tmp_path: Path) -> None:
    spaces = ("initial", "handshake", "0RTT")
    pairs = [events(space, 0, 1000 * n) for n, space in enumerate(spaces)]
    # All are sent before any is acknowledged.
    sequence = [sent for sent, _ in pairs] + [acked for _, acked in pairs]
    trace = {"vantage_point": {"type": "client"}, "common_fields": {"group_id": "a"}}
    timed = [{"time": 10 * n, **event} for n, event in enumerate(sequence)]
    file = tmp_path / "c.qlog"
    file.write_text(json.dumps({"qlog_version": "0.3", "traces": [trace | {"events": timed}]}))
    (one,) = importing.measured([file])
    row = one.table("flows", warmup_s=0.0).filter(direction="up").row(0, named=True)
    assert (row["delivered_bytes"], row["ce_packets"]) == (3000, 3)
    # Data that no packet acknowledges.
    file.write_text(json.dumps({"qlog_version": "0.3", "traces": [trace | {"events": timed[:3]}]}))
    (one,) = importing.measured([file])
    assert one.notes == [
        '"a up": the log has no acknowledgement of its data, so the goodput is unknown'
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"qlog_version": "0.3"}', "no trace; expected a qlog file"),
        ('{"qlog_version": "0.3", "traces": [{"event_fields": []}]}', "events as arrays"),
        ('{"qlog_version": "0.3", "traces": [{"events": [{"name": "a"}]}]}', "trace 1: an event"),
        ("\x1e{}\n", "no event; expected a qlog file"),
        ("\x1e{\n\x1e{}\n", "record 1: not valid JSON"),
    ],
)
def test_damaged_logs_are_refused_in_one_line(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.qlog"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(sj.ResultError, match=said) as caught:
        importing.measured([file])
    assert "\n" not in f"{caught.value}"
