"""qlog of simulated connections: the fields that the drafts require, and the numbers of the run."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.exchange import importing


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


# What the CDDL of quic-events (RFC 8610) and main-schema permits in the events of an export: fields
# and types; a question mark: optional. Extension fields are not used.
UINT, FLOAT, TEXT, ANY = "uint", "float", "text", "any"
RAW = {"length?": UINT, "payload_length?": UINT}
HEADER = {"packet_type": {"initial", "handshake", "0RTT", "1RTT"}, "packet_number?": UINT}
STREAM = {"frame_type": {"stream"}, "stream_id": UINT, "offset?": UINT, "raw?": RAW}
ACK = {"frame_type": {"ack"}, "acked_ranges?": [[UINT]]}
PACKET = {"header": HEADER, "frames?": [(STREAM, ACK)], "raw?": RAW}
SIDES = {"client", "server", "network", "unknown"}
CLOCK = {"clock_type": TEXT, "epoch": TEXT}
TRACE = {
    "common_fields?": {
        "group_id?": TEXT,
        "time_format?": {"relative_to_epoch"},
        "reference_time?": CLOCK,
    },
    "vantage_point?": {"name?": TEXT, "type": SIDES, "flow?": SIDES},
    "event_schemas": [TEXT],
}
FILE = {
    "file_schema": TEXT,
    "serialization_format": TEXT,
    "title?": TEXT,
    "description?": TEXT,
    "trace": TRACE,
}
CDDL: dict[str, dict[str, Any]] = {
    "quic:packet_sent": PACKET,
    "quic:packet_received": PACKET,
    "quic:packet_lost": {"header?": HEADER},
    "quic:recovery_metrics_updated": {
        "smoothed_rtt?": FLOAT,
        "latest_rtt?": FLOAT,
        "congestion_window?": UINT,
        "bytes_in_flight?": UINT,
        "ssthresh?": UINT,
        "packets_in_flight?": UINT,
    },
    "quic:congestion_state_updated": {"old?": TEXT, "new": TEXT},
    "simulation:scenario": {"name?": TEXT, "details?": ANY},
    "simulation:marker": {"type?": TEXT, "message?": TEXT},
}


def violation(value: Any, rule: Any, place: str = "") -> str:
    """Name the first place where a value differs from its rule; empty: none."""
    if isinstance(rule, dict) and isinstance(value, dict):
        names = {name.removesuffix("?"): name for name in rule}
        wrong = [name for name in value if name not in names]
        wrong += [n for n in rule if not n.endswith("?") and n not in value]
        parts = (violation(value[n], rule[names[n]], f"{place}.{n}") for n in value if n in names)
        return f"{place}: {wrong}" if wrong else next(filter(None, parts), "")
    if isinstance(rule, list) and isinstance(value, list) and value:
        return next(filter(None, (violation(one, rule[0], f"{place}[]") for one in value)), "")
    if isinstance(rule, tuple):
        found = [violation(value, one, place) for one in rule]
        return "" if "" in found else found[0]
    if isinstance(rule, set):
        fits = value in rule
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        kinds = {
            UINT: is_number and isinstance(value, int) and value >= 0,
            FLOAT: is_number,
            TEXT: isinstance(value, str),
            ANY: isinstance(value, dict),
        }
        fits = isinstance(rule, str) and kinds[rule]
    return "" if fits else f"{place}: {value!r} does not fit {rule}"


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


def test_every_event_agrees_with_the_cddl(exported: tuple[sj.Result, list[Path]]) -> None:
    seen = set()
    for file in exported[1]:
        header, *events = records(file)
        assert violation(header, FILE) == ""
        for event in events:
            assert violation(event["data"], CDDL[event["name"]], event["name"]) == ""
            seen.add(event["name"])
    assert seen == set(CDDL)
    assert violation({"header": {}}, PACKET) == ".header: ['packet_type']"
    assert (
        violation({"new": 1}, CDDL["quic:congestion_state_updated"]) == ".new: 1 does not fit text"
    )


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
    assert (row["retransmits"], row["ack_rtt_ms_max"]) == (1, 20.0)
    link = one.table("links", warmup_s=0.0).filter(link="down").row(0, named=True)
    assert (link["sent_packets"], link["marks_aqm"]) == (1, 3)
    assert one.table("flow_series")["cwnd_packets"].max() == 10


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
