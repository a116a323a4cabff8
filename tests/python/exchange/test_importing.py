"""Imports: files of flent and logs of Mahimahi as tables, metrics and a report."""

import bz2
import gzip
import hashlib
import importlib.metadata
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.exchange import importing, mahimahi, untrusted
from sojourn.exchange.measurement import Beside, per_run
from sojourn.report import measured as page
from support.flent_program import program
from support.refusals import refused
from support.saved import names
from support.shell import Command

T0 = 1_600_000_000.0
META: dict[str, Any] = {"NAME": "tcp_nup", "TITLE": "office", "T0": "2020-09-13T12:26:40.0Z"}
RATES = [None, 4.0, 6.0]
LOG = """\
# mahimahi mm-link (uplink) [t.trace] > up.log
# command line: mm-link t.trace t.trace
# queue: droptail [packets=2]
# init timestamp: 900
# base timestamp: 1000
1000 # 1504
1010 + 1504
1011 + 104
1012 + 1504
1012 d 1 1504
1013 # 1504
1013 - 1504 3
1020 # 1504
1020 - 104 9
1110 # 1504
"""


def flent_file(version: int = 4, **changes: Any) -> dict[str, Any]:
    """A run of 0.6 s with one upload, pings over ICMP and UDP, and a queue."""
    raw = {
        "TCP upload::1": [
            {"t": T0 + 0.2, "val": 4.0, "dur": 0.2},
            {"t": T0 + 0.3, "tcp_cwnd": 12, "tcp_rtt": 20.5},
            {"t": T0 + 0.4, "val": 6.0, "dur": 0.2},
        ],
        "Ping (ms) ICMP": [{"t": T0 + 0.1 * n, "val": 10.0 * n, "seq": n} for n in (1, 2, 3)],
        "Ping (ms) UDP BE": [{"t": T0 + 0.2, "val": 50.0, "dur": 0.2}],
        "qdisc_stats_box": [
            {"t": T0 + 0.2, "dropped": 5, "ecn_mark": 0, "backlog_bytes": 100},
            {"t": T0 + 0.4, "dropped": 7, "ecn_mark": 1, "backlog_bytes": 200},
        ],
    }
    document = {
        "version": version,
        "x_values": [0.0, 0.2, 0.4],
        "results": {"TCP upload::1": RATES, "TCP upload sum": RATES, "Ping (ms) avg": [1, 2, None]},
        "raw_values": raw,
        "metadata": META | {"SERIES_META": {"TCP upload::1": {"UNITS": "Mbits/s"}}},
    }
    return document | changes


def written(path: Path, document: Any) -> Path:
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text, encoding="utf-8")
    return path


def series(frame: pl.DataFrame, name: str) -> list[tuple[float, float]]:
    rows = frame.filter(series=name).select("time_s", "value").rows()
    return [(round(at, 6), round(value, 6)) for at, value in rows]


def test_values_are_read_as_measured(tmp_path: Path) -> None:
    file = written(tmp_path / "a.flent", flent_file())
    frame = sj.read_flent(file)
    assert frame["run"].unique().to_list() == ["office"]
    assert series(frame, "TCP upload::1") == [(0.2, 4.0), (0.4, 6.0)]
    assert series(frame, "TCP upload::1::tcp_cwnd") == [(0.3, 12.0)]
    # Without raw values, those on the grid; null is no value.
    assert series(frame, "TCP upload sum") == [(0.2, 4.0), (0.4, 6.0)]
    units = dict(frame.select("series", "unit").iter_rows())
    assert units["TCP upload::1"] == "Mbits/s"
    assert units["TCP upload::1::tcp_rtt"] == "ms"
    assert units["TCP upload sum"] is None
    for name, data in (
        ("b.flent.gz", gzip.compress(file.read_bytes())),
        ("c.flent.bz2", bz2.compress(file.read_bytes())),
    ):
        (tmp_path / name).write_bytes(data)
        assert sj.read_flent(tmp_path / name).equals(frame)


@pytest.mark.parametrize("version", [2, 3])
def test_values_of_older_versions_are_converted(version: int, tmp_path: Path) -> None:
    document = flent_file(version)
    document["raw_values"]["HTTP latency"] = [{"t": T0, "val": 0.25}]
    frame = sj.read_flent(written(tmp_path / "a", document))
    # Transactions per second, seconds, and counts since the begin.
    assert series(frame, "Ping (ms) UDP BE") == [(0.2, 20.0)]
    assert series(frame, "Ping (ms) ICMP")[0] == (0.1, 10.0)
    assert series(frame, "HTTP latency") == [(0.0, 250.0)]
    assert series(frame, "qdisc_stats_box::dropped") == [(0.2, 0.0), (0.4, 2.0)]
    assert series(sj.read_flent(written(tmp_path / "b", flent_file())), "Ping (ms) UDP BE") == [
        (0.2, 50.0)
    ]


def test_version_1_keeps_raw_values_in_the_metadata(tmp_path: Path) -> None:
    document = flent_file()
    raw = document.pop("raw_values")["TCP upload::1"]
    del document["version"]
    # Local time, two hours ahead, without its zone.
    document["metadata"] = META | {
        "T0": "2020-09-13T14:26:40.0",
        "SERIES_META": {"TCP upload::1": {"RAW_VALUES": raw}},
    }
    frame = sj.read_flent(written(tmp_path / "a", document))
    assert series(frame, "TCP upload::1") == [(0.2, 4.0), (0.4, 6.0)]
    del document["metadata"]["SERIES_META"]
    frame = sj.read_flent(written(tmp_path / "b", document))
    assert series(frame, "TCP upload::1") == [(0.2, 4.0), (0.4, 6.0)]


def test_measured_runs_have_the_metrics_of_simulated_ones(tmp_path: Path) -> None:
    file = written(tmp_path / "a", flent_file())
    (one,) = importing.measured([file])
    assert one.arm == "measured: office (tcp_nup)"
    assert (one.load_s, one.end_s) == pytest.approx((0.0, 0.4), abs=1e-6)
    row = per_run([one]).row(0, named=True)
    assert row["goodput_up_mbit_per_s"] == pytest.approx(5.0)
    assert row["drops"] == 12
    assert row["marks"] == 1
    # Pings were sent before their replies: those sent in the load count.
    pings = one.table("pings").filter(pl.col("t_s") >= 0.2)["rtt_ms"].to_list()
    assert pings == [30.0]
    assert row["ping_ms_p95"] == pytest.approx(47.0)
    assert not any(name.startswith("sojourn") for name in row)


def test_what_lies_outside_the_measured_time_is_missing(tmp_path: Path) -> None:
    document = flent_file()
    late = [{"t": T0 + 0.7, "val": 900.0}, {"t": T0 + 9.0, "val": 900.0}]
    document["raw_values"]["Ping (ms) ICMP"] += late
    del document["raw_values"]["qdisc_stats_box"]
    found = importing.measured([written(tmp_path / "a", document)])
    # Both replies came after the load; one request was sent before.
    assert found[0].table("pings")["rtt_ms"].to_list() == [10.0, 20.0, 30.0, 900.0, 50.0]
    assert sj.read_flent(tmp_path / "a")["value"].max() == 900.0
    after = per_run(found, warmup_s=5.0)
    assert not {"goodput_up_mbit_per_s", "drops", "marks"} & set(after.columns)


def test_runs_of_the_same_test_and_title_are_one_arm(tmp_path: Path) -> None:
    same = [written(tmp_path / name, flent_file()) for name in ("a", "b")]
    other = written(tmp_path / "c", flent_file(metadata=META | {"NAME": "rrul"}))
    found = [(one.arm, one.replication) for one in importing.measured([*same, other])]
    office = "measured: office (tcp_nup)"
    assert found == [(office, 0), (office, 1), ("measured: office (rrul)", 0)]
    named = importing.measured([*same, other], "dsl")
    assert [(one.arm, one.replication) for one in named] == [("measured: dsl", n) for n in range(3)]


def test_an_exported_run_has_its_numbers_after_import(result: sj.Result, tmp_path: Path) -> None:
    files = sj.export(result, tmp_path, "flent", arm="fq")
    found = importing.measured(files)
    assert {one.arm for one in found} == {
        f"simulated: small fq rep:{n} (rrul_be_nflows)" for n in range(3)
    }
    warmup_s = result.scenario.checked.warmup_s
    mine = result.table().filter(arm="fq")
    back = per_run(found, warmup_s=warmup_s)
    for column, tolerance in (
        ("goodput_up_mbit_per_s", 0.001),
        ("goodput_down_mbit_per_s", 0.001),
        ("induced_latency_ms", 0.02),
        ("latency_above_base_ms", 0.001),
        ("ping_ms_p95", 0.001),
        ("drops", 1e-9),
        ("jain_up", 0.001),
    ):
        expected = pytest.approx(mine[column].to_list(), rel=tolerance)
        assert back[column].to_list() == expected, column
    pings = found[0].table("pings")
    mine = result.pings.filter(arm="fq", replication=0).drop_nulls("rtt_ms")
    assert pings["t_s"].to_list() == pytest.approx(mine["t_s"].to_list(), abs=2e-6)


def test_files_of_flent_itself_are_read() -> None:
    program()
    try:
        listed = importlib.metadata.files("flent") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("flent is installed elsewhere, without its sample files")
    samples = [file for file in listed if file.name.endswith(".flent.gz")]
    assert samples
    for sample in samples:
        frame = sj.read_flent(str(sample.locate()))
        assert frame.height > 100
        assert frame["time_s"].min() > -5  # type: ignore[operator]
        pings = frame.filter(series="Ping (ms) ICMP", unit="ms")["value"]
        assert pings.is_empty() or 1 < pings.median() < 1000  # type: ignore[operator]


def test_a_log_of_mahimahi_is_read(tmp_path: Path) -> None:
    file = written(tmp_path / "up.log", LOG)
    frame = sj.read_mahimahi_log(file)
    assert frame["event"].value_counts(sort=True).rows()[0] == ("opportunity", 4)
    assert frame.filter(event="departure").rows() == [
        (0.013, "departure", None, 1504, 3),
        (0.02, "departure", None, 104, 9),
    ]
    assert frame.filter(event="drop").rows() == [(0.012, "drop", 1, 1504, None)]
    (one,) = importing.measured([file])
    row = per_run([one]).row(0, named=True)
    assert row["drops"] == 1
    # IP packets of 1500 and 100 B between 0.01 s and 0.11 s.
    assert row["throughput_up_mbit_per_s"] == pytest.approx(8 * 1600 / 0.1 / 1e6)
    link = one.table("links").row(0, named=True)
    assert link["capacity_mbit_per_s"] == pytest.approx(8 * 3 * 1504 / 0.1 / 1e6)
    assert (link["sojourn_ms_mean"], link["sojourn_ms_max"]) == (6.0, 9.0)
    assert "marks" not in row
    assert one.table("link_series")["backlog_packets"].to_list() == [0, 0]
    assert one.table("sojourn").select("low_ms", "count").rows() == [(3.0, 1), (9.0, 1)]


def test_measured_runs_stand_beside_simulated_ones(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "r")
    sj.export(result, tmp_path / "f", "flent", arm="fq")
    written(tmp_path / "up.log", LOG)
    exported = sorted(f"f/{name}" for name in names(tmp_path / "f"))
    done = sojourn(
        "import", *exported, "up.log", "--out", "m", "--beside", "r", "--report", "o.html"
    )
    assert done.returncode == 0, done.stderr
    note, *said = done.stderr.splitlines()
    assert note.startswith("note: rrul_be_nflows-2000-01-01T000000.000000.small_fq_rep_0.flent.gz")
    assert 'and 2 others: no metric uses "qdisc_stats_down: delay"' in note
    assert said == ["wrote 4 measured runs to m", "wrote report to o.html"]
    assert "goodput up [Mbit/s]" in done.stdout
    html = (tmp_path / "o.html").read_text(encoding="utf-8")
    for arm in ("fifo", "fq", "measured: up.log", "simulated: small fq rep:0 (rrul_be_nflows)"):
        assert f"{arm}</th>" in html
    assert "<script" not in html
    # A curve of each, in the same figure.
    figure = re.search(r"<figcaption>Distribution of ping times</figcaption>.*?</figure>", html)
    assert figure is not None
    assert {"a0", "a1", "a2", "a3", "a4"} <= set(re.findall(r"\ba\d\b", figure[0]))
    # Not paired: no differences, and the simulated means are unchanged.
    assert "Difference from" not in html
    beside = Beside(result, importing.measured([tmp_path / "up.log"]))
    assert beside.summary().filter(arm="fq").equals(result.summary().filter(arm="fq"))
    assert page.html(beside).count("–</td>") > 5
    kept = json.loads((tmp_path / "m" / "import.json").read_text(encoding="utf-8"))
    assert kept["backend"] == "imported"
    assert [run["file"] for run in kept["runs"]][-1] == "up.log"
    assert kept["runs"][-1]["sha256"] == hashlib.sha256(LOG.encode()).hexdigest()
    pings = pl.read_parquet(tmp_path / "m" / "pings.parquet")
    assert pings.columns == result.pings.columns
    assert pings.height == result.pings.filter(arm="fq").drop_nulls("rtt_ms").height


def test_files_of_an_import_are_replaced_only_on_request(sojourn: Command, tmp_path: Path) -> None:
    written(tmp_path / "up.log", LOG)
    assert sojourn("import", "up.log", "--out", "m").returncode == 0
    refused(sojourn("import", "up.log", "--out", "m"), 3, "m/import.json: it exists; --force")
    assert sojourn("import", "up.log", "--out", "m", "--force").returncode == 0
    done = sojourn("import", "up.log", "--json")
    summary = json.loads(done.stdout)["summary"]
    assert {"arm": "measured: up.log", "metric": "drops", "n": 1}.items() <= summary[1].items()
    refused(sojourn("import", "up.log", "--report", "o.html"), 2, "--report: needs --beside DIR")
    refused(sojourn("import"), 2, "FILE")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "unknown format; expected a packet capture, JSON of iperf3 or irtt, a qlog"),
        ("hello", "unknown format"),
        ("{", "not valid JSON"),
        ('{"a": 1}', "not a data file of flent"),
        ('{"a":' * 100_000, "nested too deeply"),
        (flent_file(5), "format version 5 is too new; expected at most 4"),
        (flent_file("4"), "version: expected a positive integer"),  # type: ignore[arg-type]
        (flent_file(x_values=3), "x_values: expected a list"),
        (flent_file(results=[1]), "results: expected an object"),
        (flent_file(results={"a": [1]}), 'results: "a": expected a list as long as x_values'),
        (flent_file(raw_values={"a": 1}), 'raw_values: "a": expected a list'),
        (flent_file(metadata="x"), "metadata: expected an object"),
        (LOG + "1200 - x 3\n", "line 16: not a line of a log"),
        (LOG + "1200 + -4\n", "line 16"),
        (LOG + f"{'9' * 5000} + 4\n", "line 16"),
        (LOG + "ü\n", "not a log of mm-link; expected text"),
    ],
)
def test_malformed_files_are_refused_in_one_line(
    content: Any, said: str, sojourn: Command, tmp_path: Path
) -> None:
    written(tmp_path / "x", content)
    refused(sojourn("import", "x", "--out", "m"), 4, f"^sojourn: x: {re.escape(said)}")
    assert names(tmp_path) == ["x"]


def test_a_log_of_cake_autorate_is_for_traces(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "ca.log").write_text("LOAD_HEADER; LOG_DATETIME; LOG_TIMESTAMP\nLOAD; x; 1\n")
    refused(sojourn("import", "ca.log"), 4, "ca.log: .*rate_trace or delay_trace of a link")


def test_a_directory_is_refused_with_what_is_expected(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    said = "x: is a directory; expected a packet capture"
    refused(sojourn("import", "x", "--out", "m"), 3, f"^sojourn: {said}")


def test_values_that_are_no_numbers_are_missing(tmp_path: Path) -> None:
    results = {"TCP upload::1": [True, "9", float("nan")], "y": [None, [], float("inf")]}
    raw = {"TCP upload::1": [3, {}, {"t": "x", "val": 1}, {"t": T0, "val": 10**400}, None]}
    meta = {"NAME": 3, "TITLE": None, "T0": "x" * 9999, "SERIES_META": [1]}
    file = written(tmp_path / "a", flent_file(results=results, raw_values=raw, metadata=meta))
    assert sj.read_flent(file).is_empty()
    assert per_run(importing.measured([file])).columns == ["arm", "replication"]


def peak_of(read: Callable[[], object]) -> float:
    """Run a function that refuses a file, and return the memory that it needed, in MB."""
    tracemalloc.start()
    try:
        with pytest.raises(sj.ResultError):
            read()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_a_bomb_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, data = tmp_path / "log.gz", tmp_path / "data.gz"
    log.write_bytes(gzip.compress(LOG.encode() + b"1200 + 1504\n" * 20_000_000, 1))
    # 64 MB of text, and 2 GB of objects.
    values = b'{"version": 4, "x_values": [' + b"[]," * 21_000_000 + b"0]}"
    data.write_bytes(gzip.compress(values, 1))
    monkeypatch.setattr(mahimahi, "MAX_EVENTS", 500_000)
    with pytest.raises(sj.ResultError, match="too long; expected at most 500000 lines"):
        sj.read_mahimahi_log(log)
    with pytest.raises(sj.ResultError, match="too large; expected at most 3000000 values"):
        sj.read_flent(data)
    assert peak_of(lambda: sj.read_mahimahi_log(log)) < 60
    assert peak_of(lambda: sj.read_flent(data)) < 3 * len(values) / 1e6
    log.write_bytes(gzip.compress(LOG.encode() + b"x" * 20_000_000, 1))
    with pytest.raises(sj.ResultError, match="a line is longer than 4096 bytes"):
        sj.read_mahimahi_log(log)
    log.write_bytes(gzip.compress(b"# a\n" * 1000, 1))
    with pytest.raises(sj.ResultError, match="more than 100 lines of comments"):
        sj.read_mahimahi_log(log)


def test_sizes_are_limited_before_and_after_decompression(
    sojourn: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bomb").write_bytes(gzip.compress(b"{" + b" " * untrusted.MAX_JSON))
    done = sojourn("import", "bomb")
    refused(done, 4, "bomb: too large; expected at most 67108864 bytes of content")
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    refused(sojourn("import", "sparse"), 4, "sparse: too large; expected at most 17179869184 bytes")
    (tmp_path / "cut").write_bytes(gzip.compress(json.dumps(flent_file()).encode())[:100])
    refused(sojourn("import", "cut"), 4, "cut: the compressed data are damaged")
    refused(sojourn("import", "/dev/zero"), 3, "/dev/zero: is not a regular file")
    refused(sojourn("import", "none"), 3, "none: No such file")
    monkeypatch.setattr(untrusted, "MAX_FILE", len(LOG))
    file = written(tmp_path / "up.log", LOG)
    assert sj.read_mahimahi_log(file).height == 10
    written(file, LOG + "1200 + 4\n")
    with pytest.raises(sj.DamagedResultError, match="too large"):
        sj.read_mahimahi_log(file)
