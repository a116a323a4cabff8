"""Measured runs of flent files: bytes over time, gaps, directions, applications, ranges."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.exchange import importing
from sojourn.exchange.measurement import Beside, Measurement, by_application, notes, per_run
from sojourn.report import measured as page
from support.shell import Command

T0 = 946_684_800.0
Raw = list[dict[str, Any]]


def document(raw: dict[str, Raw], *, step: float = 0.2, **metadata: Any) -> dict[str, Any]:
    """A data file in the form that flent 2 writes, with its grid of interpolated values."""
    every = [one["t"] - T0 for of in raw.values() for one in of]
    times = [step * n for n in range(round(max(every, default=0) / step) + 1)]
    grid = {name: [_interpolated(of, at) for at in times] for name, of in raw.items()}
    about = {name: {"UNITS": "ms" if "Ping" in name else "Mbits/s"} for name in raw}
    stated = {
        "NAME": "tcp_upload",
        "TITLE": "case",
        "LENGTH": 60,
        "TOTAL_LENGTH": 70,
        "T0": "2000-01-01T00:00:00.000000Z",
        "SERIES_META": about,
    }
    return {
        "version": 4,
        "x_values": times,
        "results": grid,
        "raw_values": raw,
        "metadata": stated | metadata,
    }


def _interpolated(raw: Raw, at: float) -> float | None:
    """Interpolate as flent does: no value where the next sample is more than five steps away."""
    known = [(one["t"] - T0, one["val"]) for one in raw if "val" in one]
    before = [point for point in known if point[0] <= at]
    after = [point for point in known if point[0] >= at]
    if not before or not after or min(after)[0] - max(before)[0] > 1.0 + 1e-6:
        return None
    (a, x), (b, y) = max(before), min(after)
    return x if a == b else x + (y - x) * (at - a) / (b - a)


def read(folder: Path, content: dict[str, Any]) -> list[Measurement]:
    file = folder / "case.flent.gz"
    file.write_bytes(gzip.compress(json.dumps(content).encode(), 1))
    return importing.measured([file])


def samples(*steps: tuple[float, float, int], begin: float = 5.0) -> Raw:
    """Samples of (length, Mbit/s, how many), one after the other."""
    at = T0 + begin
    found = []
    for length, rate, count in steps:
        for _ in range(count):
            at += length
            found.append({"t": at, "val": rate, "dur": length})
    return found


def pings(until: float = 70.0) -> Raw:
    return [{"t": T0 + 0.2 * n, "val": 20.0, "seq": n} for n in range(round(until / 0.2))]


def goodput(found: list[Measurement], side: str = "up") -> float:
    value: float = per_run(found)[f"goodput_{side}_mbit_per_s"][0]
    return value


# A public file behind each: dtaht/blog-cerowrt, dslreports_8dn and tcp_4up_squarewave.
@pytest.mark.parametrize(
    ("series", "test"),
    [("TCP upload", "tcp_upload"), ("TCP bbr 1", "tcp_4up_squarewave")],
)
def test_goodput_is_bytes_over_time(series: str, test: str, tmp_path: Path) -> None:
    # 10 Mbit/s in short samples for 30 s, then 1 Mbit/s in long ones: the grid has 9.4.
    raw = {series: samples((0.2, 10.0, 150), (3.0, 1.0, 10)), "Ping (ms) ICMP": pings()}
    found = read(tmp_path, document(raw, NAME=test))
    assert goodput(found) == pytest.approx(5.5)
    assert notes(found) == []


def test_a_stall_counts_as_time_and_is_named(tmp_path: Path) -> None:
    # Neither the stall within nor the one at the end has samples.
    raw = {
        "TCP upload": samples((0.2, 30.0, 50)) + samples((0.2, 30.0, 50), begin=35.0),
        "Ping (ms) ICMP": pings(),
    }
    found = read(tmp_path, document(raw))
    assert goodput(found) == pytest.approx(30.0 * 20 / 60)
    (note,) = notes(found)
    assert note == (
        'case.flent.gz: "TCP upload": no samples for 40.0 s of the load (15.0 to 35.0 s, '
        "45.0 to 65.0 s); they count as 0 bytes"
    )
    # A test that was stopped is not longer than its pings.
    raw["Ping (ms) ICMP"] = pings(45.0)
    assert goodput(read(tmp_path, document(raw))) == pytest.approx(30.0 * 20 / 40)


def test_a_sample_without_a_value_changes_no_other_and_a_repeated_one_counts_once(
    tmp_path: Path,
) -> None:
    of_flow = samples((3.0, 10.0, 20))
    raw = {"TCP upload": of_flow, "Ping (ms) ICMP": pings()}
    content = document(raw)
    lacking = {"t": of_flow[7]["t"], "val": None, "dur": 0.2}
    content["raw_values"]["TCP upload"] = [*of_flow[:7], lacking, *of_flow[7:]]
    found = read(tmp_path, content)
    assert goodput(found) == pytest.approx(10.0)
    assert notes(found) == []
    short = samples((0.2, 10.0, 300))
    content = document(raw | {"TCP upload": short})
    content["raw_values"]["TCP upload"] = [*short, *short[50:60]]
    found = read(tmp_path, content)
    assert goodput(found) == pytest.approx(10.0)
    assert notes(found) == [
        'case.flent.gz: "TCP upload": samples overlap by 2.0 s, which count once'
    ]


def test_a_flow_that_is_silent_in_the_measured_time_has_a_goodput_of_0(tmp_path: Path) -> None:
    raw = {
        "TCP upload::1": samples((0.2, 8.0, 300)),
        "TCP upload::2": samples((0.2, 8.0, 50)),
        "Ping (ms) ICMP": pings(),
    }
    found = read(tmp_path, document(raw, NAME="tcp_nup"))
    assert goodput(found) == pytest.approx(8.0 * (60 + 10) / 60)
    # The second flow fell silent at 15 s.
    row = per_run(found, warmup_s=20.0).row(0, named=True)
    assert row["goodput_up_mbit_per_s"] == pytest.approx(8.0)
    assert row["jain_up"] == pytest.approx(0.5)


def drawn(random_: random.Random) -> tuple[dict[str, Any], dict[str, float]]:
    """A random file, and the data of each direction in Mbit divided by the time of the load."""
    raw: dict[str, Raw] = {}
    data = {"up": 0.0, "down": 0.0}
    begin, end = 1e9, 0.0
    for number in range(random_.randint(1, 6)):
        side = random_.choice(["up", "down"])
        name = f"TCP {side}load::{number}"
        at = random_.uniform(4, 8)
        rate = random_.lognormvariate(1, 1)
        of_flow: Raw = []
        while at < 60:
            kind = random_.random()
            length = random_.uniform(0.1, 0.4)
            if kind < 0.02:
                length = random_.uniform(2, 15)  # A stall that one long sample covers.
            if kind > 0.98:
                at += random_.uniform(1.5, 10)  # Missing samples, or a restarted program.
            value = rate * random_.uniform(0, 2) * (0.02 if length > 1 else 1)
            begin = min(begin, at)
            at += length
            of_flow.append({"t": T0 + at, "val": value, "dur": length})
            data[side] += value * length
            end = max(end, at)
        raw[name] = of_flow
    raw["Ping (ms) ICMP"] = pings(64)
    return document(raw, step=20.0, LENGTH=0), {
        side: one / (end - begin) for side, one in data.items()
    }


def test_goodput_of_random_files_is_that_of_their_samples(tmp_path: Path) -> None:
    random_ = random.Random(30)  # noqa: S311 - not cryptography
    for case in range(40):
        content, expected = drawn(random_)
        found = read(tmp_path, content)
        row = per_run(found).row(0, named=True)
        for side, value in expected.items():
            if value:
                measured = row[f"goodput_{side}_mbit_per_s"]
                assert measured == pytest.approx(value, rel=1e-4), (case, side)
        assert all("samples for" in note for note in found[0].notes), found[0].notes


def test_samples_that_are_impossible_are_left_out_with_a_note(tmp_path: Path) -> None:
    good = samples((0.5, 8.0, 120))
    raw = {
        "TCP upload": [
            *good,
            {"t": T0 + 20, "val": -5.0, "dur": 0.5},
            {"t": T0 + 21, "val": 5.0, "dur": 1e9},
            {"t": T0 + 22, "val": 5.0, "dur": 0.0},
        ],
        # Its program restarted and reports the whole time since the start again.
        "TCP download": [*good, {"t": T0 + 65.5, "val": 8.0, "dur": 60.5}],
    }
    found = read(tmp_path, document(raw))
    assert goodput(found) == pytest.approx(8.0, rel=0.02)
    assert goodput(found, "down") == pytest.approx(8.0)
    said = notes(found)
    assert any('"TCP upload": 3 samples left out: a negative rate, or' in note for note in said)
    assert any('"TCP download": samples overlap by 60.0 s, which count once' in n for n in said)


def test_a_counter_that_restarts_gives_no_negative_count(tmp_path: Path) -> None:
    queue = [
        {"t": T0 + n, "dropped": dropped, "ecn_mark": 0}
        for n, dropped in enumerate([0, 4, 6, -10, 3, 1e300])
    ]
    raw = {"TCP upload": samples((0.5, 8.0, 10), begin=0.0), "qdisc_stats_eth0": queue}
    found = read(tmp_path, document(raw))
    assert per_run(found)["drops"].to_list() == [13]
    (note,) = [one for one in notes(found) if "counter" in one]
    assert note.endswith(
        '"qdisc_stats_eth0": dropped: the counter restarted at 3.0 s; counts left out: 2'
    )
    # Older versions have counts since the queue was installed.
    for one, count in zip(queue, [100, 104, 110, 2, 5, 5], strict=True):
        one["dropped"] = count
    found = read(tmp_path, document(raw) | {"version": 3})
    assert per_run(found)["drops"].to_list() == [15]


@pytest.mark.parametrize(
    ("case", "column", "said"),
    [
        (("TCP cubic 2", {"COMMAND": "netperf -D -t TCP_STREAM -l 60"}, "x"), "up", ""),
        (("TCP cubic 2", {"COMMAND": "netperf -D -t TCP_MAERTS -l 60"}, "x"), "down", ""),
        (("Stream 1", {"RUNNER": "NetperfDemoRunner"}, "tcp_8down"), "down", ""),
        (("SCTP upload CS0", {}, "sctp_vs_tcp"), "up", ""),
        (("TCP upload", {"COMMAND": "netperf -t TCP_MAERTS"}, "x"), "up", "its command sends down"),
        (("TCP cubic 2", {}, "bursts"), "total", "states no direction; counted as goodput total"),
    ],
)
def test_the_direction_is_that_of_the_metadata(
    case: tuple[str, dict[str, str], str], column: str, said: str, tmp_path: Path
) -> None:
    name, about, test = case
    content = document({name: samples((0.2, 5.0, 50))}, NAME=test, LENGTH=10)
    content["metadata"]["SERIES_META"][name] = about | {"UNITS": "Mbits/s"}
    found = read(tmp_path, content)
    assert goodput(found, column) == pytest.approx(5.0)
    assert [said in note for note in notes(found)] == ([True] if said else [])


def test_series_without_durations_use_the_grid_and_say_so(tmp_path: Path) -> None:
    raw = {"UDP upload": [{"t": T0 + 5 + 0.2 * n, "val": 6.0} for n in range(51)]}
    found = read(tmp_path, document(raw, LENGTH=10))
    assert goodput(found) == pytest.approx(6.0)
    assert 'goodput of "UDP upload" is the mean of values that flent' in notes(found)[0]


def test_pages_and_calls_are_applications(sojourn: Command, tmp_path: Path) -> None:
    raw: dict[str, Raw] = {
        "TCP upload": samples((0.5, 8.0, 120)),
        "HTTP latency": [{"t": T0 + 6 + n, "val": 250.0} for n in range(20)],
        "VoIP": [
            {"t": T0 + 6 + n / 100, "val": 30.0 + n % 2, "seq": n % 600, "size": 92}
            for n in range(1000)
            if n % 600 not in {100, 101, 300}
        ],
    }
    found = read(tmp_path, document(raw))
    web, voice = by_application(found).rows(named=True)
    assert (web["group"], web["transactions"]) == ("HTTP latency", 20)
    assert web["duration_s_mean"] == pytest.approx(0.25)
    # The counter of the packets restarts after 600: 6 packets are lost, in 4 runs.
    assert voice["voice_loss_percent_mean"] == pytest.approx(0.6)
    assert voice["loss_interval_packets_mean"] == pytest.approx(1000 / 4)
    assert voice["owd_ms_mean"] == pytest.approx(30.5, abs=0.01)
    assert voice["jitter_ms_mean"] == pytest.approx(1.0, abs=0.01)
    done = sojourn("import", "case.flent.gz", "--json")
    shown = json.loads(done.stdout)["applications"]
    assert {"HTTP latency", "VoIP"} == {row["group"] for row in shown}
    done = sojourn("import", "case.flent.gz", "--out", "m")
    assert "measured runs: HTTP latency\n" in done.stdout
    assert "one-way delay [ms]" in done.stdout
    assert (tmp_path / "m" / "application_metrics.parquet").exists()
    assert (tmp_path / "m" / "transactions.parquet").exists()


def test_packets_that_irtt_lost_count_and_clocks_that_differ_give_no_delay(tmp_path: Path) -> None:
    call: Raw = [
        {"t": T0 + n / 10, "val": 40.0, "owd_up": -3.0, "seq": n}
        if n % 10
        else {"t": T0 + n / 10, "lost": True, "seq": n}
        for n in range(100)
    ]
    found = read(tmp_path, document({"VoIP": call, "Ping (ms) ICMP": pings(10)}))
    row = by_application(found).row(0, named=True)
    assert row["voice_loss_percent_mean"] == pytest.approx(10.0)
    assert "owd_ms_mean" not in row


def test_series_that_no_metric_uses_are_named(tmp_path: Path) -> None:
    raw = {
        "TCP upload": samples((0.5, 8.0, 20)),
        "cpu_stats_box": [{"t": T0 + 1, "load": 0.5}],
        "Mystery": [{"t": T0 + 1, "val": 0.5}],
    }
    raw["TCP upload"].append({"t": T0 + 6, "tcp_cwnd": 12, "tcp_rtt_var": 1.5})
    content = document(raw, LENGTH=10)
    content["metadata"]["SERIES_META"].pop("cpu_stats_box")
    content["metadata"]["SERIES_META"]["Mystery"] = {"UNITS": "misc"}
    found = read(tmp_path, content)
    (note,) = notes(found)
    assert note == (
        'case.flent.gz: no metric uses "Mystery", "TCP upload: tcp_rtt_var", "cpu_stats_box"; '
        "their values are in series.parquet"
    )
    assert found[0].table("flow_series")["cwnd_packets"].drop_nulls().to_list() == [12]


def test_a_metric_outside_of_its_possible_range_is_left_out(
    result: sj.Result, tmp_path: Path
) -> None:
    content = document({"TCP upload": samples((0.5, 250.0, 120))})
    content["metadata"]["EGRESS_INFO"] = {"link_params": {"speed": "100Mb/s"}}
    found = read(tmp_path, content)
    assert "goodput_up_mbit_per_s" not in per_run(found).columns
    assert notes(found) == [
        "case.flent.gz: goodput up 250 Mbit/s left out: impossible; expected 0 to 100"
    ]
    html = page.html(Beside(result, found))
    assert "left out: impossible" in html
