"""JSON of iperf3 and irtt as measured runs."""

import copy
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.exchange import importing
from sojourn.exchange.measurement import by_application, per_run
from support.refusals import refused
from support.shell import Command


def interval(socket: int, end: float, **values: Any) -> dict[str, Any]:
    """One second of a stream, as iperf 3.12 writes it."""
    return {
        "socket": socket,
        "start": end - 1,
        "end": end,
        "seconds": 1.0,
        "bytes": 1_000_000,
        "omitted": False,
    } | values


def iperf3(**changes: Any) -> dict[str, Any]:
    """A test of 2 s with a stream that this host sends and one that it receives."""
    sent = {"sender": True, "retransmits": 3, "snd_cwnd": 14_480, "rtt": 40_000}
    connected = [
        {
            "socket": n,
            "local_host": "10.0.0.1",
            "local_port": 4000 + n,
            "remote_host": "10.0.0.2",
            "remote_port": 5201,
        }
        for n in (5, 7)
    ]
    intervals = [
        {"streams": [interval(5, at, **sent), interval(7, at, sender=False, bytes=500_000)]}
        for at in (1.0, 2.0)
    ]
    return {
        "start": {
            "connected": connected,
            "version": "iperf 3.12",
            "timestamp": {"timesecs": 1_600_000_000},
            "tcp_mss_default": 1448,
            "test_start": {"protocol": "TCP"},
        },
        "intervals": intervals,
        "end": {
            "streams": [
                {
                    "sender": {"socket": 5, "bytes": 2_000_000},
                    "receiver": {"socket": 5, "bytes": 1_900_000},
                }
            ],
            "sender_tcp_congestion": "cubic",
        },
    } | changes


def irtt(**changes: Any) -> dict[str, Any]:
    """Four packets, of which the third was lost on its way and the fourth is late."""

    def trip(n: int, lost: str, **delay: float) -> dict[str, Any]:
        stamps = {"client": {"send": {"monotonic": 1_000_000 + n * 50_000_000}}}
        return {"seqno": n, "lost": lost, "timestamps": stamps, "delay": delay}

    return {
        "version": {"irtt": "0.9.0", "protocol": 1, "json_format": 1},
        "config": {
            "local_address": "10.0.0.1:9000",
            "remote_address": "10.0.0.2:2112",
            "params": {"interval": 50_000_000},
        },
        "stats": {"start_time": "2026-01-02T03:04:05.678Z"},
        "round_trips": [
            trip(0, "false", rtt=20e6, send=12e6, receive=8e6),
            trip(1, "false", rtt=22e6, send=14e6, receive=8e6),
            trip(2, "true_up"),
            trip(3, "false", rtt=40e6, send=30e6, receive=10e6),
        ],
    } | changes


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_events_of_a_stream_are_the_parts_of_a_test(tmp_path: Path) -> None:
    whole = iperf3()
    events = [
        ("start", whole["start"]),
        *(("interval", one) for one in whole["intervals"]),
        ("end", whole["end"]),
    ]
    lines = [json.dumps({"event": name, "data": data}) for name, data in events]
    (tmp_path / "a.json").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(whole), encoding="utf-8")
    one, other = (importing.measured([tmp_path / f"{name}.json"], "x")[0] for name in "ab")
    assert one.table("flows", warmup_s=0.0).equals(other.table("flows", warmup_s=0.0))
    assert one.notes == other.notes
    (tmp_path / "a.json").write_text(f"{lines[0]}\n{{\n", encoding="utf-8")
    with pytest.raises(sj.DamagedResultError, match=r"a\.json: line 2: not valid JSON"):
        importing.measured([tmp_path / "a.json"])


def test_the_retransmissions_of_a_test_that_only_receives_are_those_of_its_end(
    tmp_path: Path,
) -> None:
    sender = {"socket": 7, "bytes": 1_000_000, "retransmits": 9}
    end = {"streams": [{"sender": sender, "receiver": {"socket": 7, "bytes": 1_000_000}}]}
    (tmp_path / "a.json").write_text(json.dumps(iperf3(end=end)), encoding="utf-8")
    (one,) = importing.measured([tmp_path / "a.json"])
    down = one.table("flows", warmup_s=0.0).filter(direction="down")
    assert down["retransmits"].to_list() == [9]
    # They are not those after a warm-up.
    later = one.table("flows", warmup_s=1.0).filter(direction="down")
    assert later["retransmits"].to_list() == [None]


def test_streams_are_flows_with_rtt_window_and_retransmissions(tmp_path: Path) -> None:
    (one,) = importing.measured([written(tmp_path / "a.json", iperf3())])
    assert (one.load_s, one.end_s, one.origin["time"]) == (0.0, 2.0, "2020-09-13T12:26:40Z")
    row = per_run([one]).row(0, named=True)
    assert row["goodput_up_mbit_per_s"] == pytest.approx(8.0)
    assert row["goodput_down_mbit_per_s"] == pytest.approx(4.0)
    up, down = one.table("flows").to_dicts()
    assert (up["flow"], up["direction"]) == ("10.0.0.1:4005 > 10.0.0.2:5201", "up")
    assert (down["flow"], down["direction"]) == ("10.0.0.2:5201 > 10.0.0.1:4007", "down")
    assert (up["retransmits"], up["srtt_ms_mean"], up["cc"]) == (6, 40.0, "cubic")
    # A receiver does not know them.
    assert (down["retransmits"], down["srtt_ms_mean"]) == (None, None)
    assert one.table("flow_series")["cwnd_packets"].to_list() == [10, 10, None, None]
    assert one.table("flows", warmup_s=1.0)["retransmits"].to_list() == [3, None]
    assert "2000000 bytes; 1900000 bytes were received" in one.notes[0]


def test_the_list_of_flows_has_the_goodput_and_rtt(tmp_path: Path, sojourn: Command) -> None:
    written(tmp_path / "a.json", iperf3())
    lines = sojourn("import", "a.json").stdout.partition("flows\n")[2].splitlines()
    head, up, down = (re.split(r"\s{2,}", line.strip()) for line in lines[:3])
    shown = [head.index(name) for name in ("goodput [Mbit/s]", "smoothed RTT [ms]")]
    assert [up[at] for at in shown] == ["8.00", "40.00"]
    assert [down[at] for at in shown] == ["4.00", "–"]


def test_lost_datagrams_are_no_goodput(tmp_path: Path) -> None:
    document = iperf3()
    document["start"]["test_start"]["protocol"] = "UDP"
    udp = {"bytes": 2_000_000, "packets": 2_000}
    document["end"]["streams"] = [
        {"udp": {"socket": 5, "lost_packets": 50} | udp},
        # The intervals of a receiver have what arrived.
        {"udp": {"socket": 7, "lost_packets": 500} | udp},
    ]
    (one,) = importing.measured([written(tmp_path / "a.json", document)])
    up, down = one.table("flows").to_dicts()
    assert (up["delivered_bytes"], up["received_packets"]) == (1_950_000, 1_950)
    assert (down["delivered_bytes"], down["received_packets"]) == (1_000_000, 1_500)
    assert up["goodput_mbit_per_s"] == pytest.approx(7.8)
    assert down["goodput_mbit_per_s"] == pytest.approx(4.0)
    (note,) = one.notes
    assert '"10.0.0.1:4005 > 10.0.0.2:5201": 2.50 % of the datagrams were lost' in note


def test_omitted_intervals_do_not_count_and_a_server_sends_down(tmp_path: Path) -> None:
    document = iperf3()
    for one in document["intervals"][0]["streams"]:
        one["omitted"] = True
    document["start"]["accepted_connection"] = {}
    (measured,) = importing.measured([written(tmp_path / "a.json", document)])
    rows = measured.table("flows").to_dicts()
    assert [row["direction"] for row in rows] == ["down", "up"]
    assert [row["retransmits"] for row in rows] == [3, None]


def test_udp_has_losses(tmp_path: Path) -> None:
    document = iperf3(end={"streams": [{"udp": {"socket": 5, "packets": 100, "lost_packets": 4}}]})
    document["start"]["test_start"]["protocol"] = "UDP"
    (one,) = importing.measured([written(tmp_path / "a.json", document)])
    row = one.table("flows").row(0, named=True)
    assert (row["kind"], row["sent_packets"], row["missing_packets"]) == ("udp", 100, 4)
    assert row["received_packets"] == 96


def test_packets_of_irtt_are_pings_and_calls(tmp_path: Path) -> None:
    (one,) = importing.measured([written(tmp_path / "a.json", irtt())])
    assert one.table("pings").select("t_s", "rtt_ms").rows() == [
        (0.0, 20.0),
        (0.05, 22.0),
        (0.1, None),
        (0.15, 40.0),
    ]
    assert one.origin["time"] == "2026-01-02T03:04:05Z"
    rows = {row["group"]: row for row in by_application([one]).to_dicts()}
    assert rows["irtt up"]["voice_loss_percent_mean"] == 25.0
    assert rows["irtt down"]["voice_loss_percent_mean"] == 0.0
    assert rows["irtt up"]["owd_ms_mean"] == pytest.approx(56 / 3)
    assert per_run([one])["ping_ms_p95"].to_list() == [pytest.approx(38.2)]


def test_clocks_that_differ_give_no_delay_and_a_note(tmp_path: Path) -> None:
    document = irtt()
    document["round_trips"][0]["delay"]["receive"] = -5e6
    (one,) = importing.measured([written(tmp_path / "a.json", document)])
    row = next(row for row in by_application([one]).to_dicts() if row["group"] == "irtt down")
    assert row["owd_ms_mean"] is None
    assert "no one-way delay down" in one.notes[0]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (iperf3(error="unable to connect"), "iperf3 failed: unable to connect"),
        (iperf3(intervals=[]), "no stream with an interval; expected the JSON of iperf3"),
        (irtt(version={"json_format": 2}), "json_format 2; expected 1"),
        (irtt(round_trips=[]), "round_trips: expected a list of at least one"),
    ],
)
def test_other_content_is_refused(
    document: Any, said: str, sojourn: Command, tmp_path: Path
) -> None:
    written(tmp_path / "x.json", document)
    refused(sojourn("import", "x.json"), 4, f"^sojourn: x.json: {said}")


@pytest.mark.parametrize("make", [iperf3, irtt])
def test_values_of_any_type_end_in_one_line(make: Any, tmp_path: Path) -> None:
    """Each value in turn is replaced by one of another type."""
    others = [None, "x", -1, 1e300, [], {}, True, [None], {"a": 1}]

    def places(node: Any) -> list[tuple[Any, Any]]:
        items = list(node.items() if isinstance(node, dict) else enumerate(node))
        inner = [child for _, child in items if isinstance(child, dict | list)]
        return [(node, key) for key, _ in items] + [at for child in inner for at in places(child)]

    count = len(places(make()))
    for number in range(count):
        document = copy.deepcopy(make())
        holder, key = places(document)[number]
        holder[key] = random.Random(number).choice(others)  # noqa: S311 - not a secret
        file = written(tmp_path / "x.json", document)
        try:
            found = importing.measured([file])
            per_run(found)
            by_application(found)
        except sj.ResultError as error:
            said = f"{error}"
        else:
            continue
        assert said.startswith(f"{file}: ")
        assert "\n" not in said
