"""Exports: flent reads its files, CSV files have the numbers of the tables, traces the rates."""

import csv
import errno
import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn import files
from sojourn.exchange.flent import fitted
from sojourn.scenario import presets
from support.flent_program import flent
from support.refusals import refused
from support.saved import names, scenario
from support.shell import Command, completed

RATES = presets.Rates(down="10mbit", up="2mbit")


def of(traffic: str) -> sj.Result:
    """Run a preset on an access link, one arm, 9 s."""
    queue = {"fq": sj.qdisc("fq_codel")}
    groups = presets.traffic(traffic, RATES)
    access = presets.access_link(
        rates=RATES,
        groups=groups,
        queues=queue,
        rtt="50ms",
        duration="9s",
        warmup="6s",
        replications=1,
        seed=1,
        name=traffic,
    )
    return sj.run(access)


def document(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return content


@pytest.mark.parametrize(
    ("traffic", "test", "series"),
    [
        ("tcp_3up", "tcp_nup", "TCP upload::3"),
        pytest.param("tcp_2down", "tcp_ndown", "TCP download::2", marks=pytest.mark.slow),
        pytest.param("tcp_1up_1down", "tcp_bidirectional", "TCP download", marks=pytest.mark.slow),
        pytest.param(
            "tcp_1up_3down", "rrul_be_nflows", "TCP download BE::3", marks=pytest.mark.slow
        ),
        pytest.param("rrul_be", "rrul_be", "TCP upload BE4", marks=pytest.mark.slow),
        ("rrul", "rrul", "Ping (ms) UDP BK"),
        pytest.param("udp_flood", "udp_flood", "UDP upload", marks=pytest.mark.slow),
        ("web+tcp_1down", "http-1down", "HTTP latency"),
        pytest.param("voip", "ping", "Ping (ms) ICMP", marks=pytest.mark.slow),
    ],
)
def test_flent_plots_a_run_by_a_test_that_fits_its_traffic(
    traffic: str, test: str, series: str, tmp_path: Path
) -> None:
    (file,) = sj.export(of(traffic), tmp_path, "flent")
    content = document(file)
    assert (
        file.name
        == f"{test}-2000-01-01T000000.000000.{content['metadata']['TITLE']}".replace(" ", "_")
        .replace(":", "_")
        .replace("+", "_")
        + ".flent.gz"
    )
    assert content["version"] == 4
    assert content["metadata"]["NAME"] == test
    assert series in content["raw_values"]
    assert {len(values) for values in content["results"].values()} == {len(content["x_values"])}
    printed = flent("-f", "summary", file.name, folder=tmp_path)
    assert series in printed
    flent("-f", "plot", "-o", "plot.svg", file.name, folder=tmp_path)
    drawn = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    # An empty plot has neither lines nor boxes; it has the same size as one with a few lines.
    assert drawn.count("<path ") > 10
    for plot in ("delay", "backlog", "drops"):
        flent("-f", "plot", "-p", plot, "-o", f"{plot}.png", file.name, folder=tmp_path)
        assert (tmp_path / f"{plot}.png").stat().st_size > 10_000


def test_flent_computes_the_same_goodput_and_latency(tmp_path: Path) -> None:
    result = of("rrul_be")
    (file,) = sj.export(result, tmp_path, "flent")
    printed = flent("-f", "summary", file.name, folder=tmp_path)
    means = {
        line.split(" :")[0].strip(): float(line.split(":")[-1].split()[0])
        for line in printed.splitlines()
        if " : " in line
    }
    up = result.flows.filter(kind="tcp", direction="up")["flow"].to_list()
    series = result.flow_series.filter(pl.col("flow").is_in(up))
    sums = series.group_by("t_s").agg(pl.col("goodput_mbit_per_s").sum())
    assert means["TCP upload sum"] == pytest.approx(sums["goodput_mbit_per_s"].mean(), abs=0.01)
    assert means["Ping (ms) ICMP"] == pytest.approx(result.pings["rtt_ms"].mean(), rel=0.02)


def test_a_file_has_every_sample_and_where_it_comes_from(result: sj.Result, tmp_path: Path) -> None:
    files = sj.export(result, tmp_path, "flent", arm="fq", replication=2)
    (file,) = files
    content = document(file)
    meta = content["metadata"]
    assert meta["TEST_PARAMETERS"]["upload_streams"] == "2"
    assert meta["TEST_PARAMETERS"]["qdisc_stats_hosts"] == "down,up"
    assert meta["SOJOURN"]["scenario_sha256"] == result.scenario.hash
    assert (meta["SOJOURN"]["arm"], meta["SOJOURN"]["replication"]) == ("fq", 2)
    name = meta["SOJOURN"]["series"]["tcp up/2"]
    assert name == "TCP upload BE::2"
    mine = result.flow_series.filter(arm="fq", replication=2, flow="tcp up/2")
    entries = content["raw_values"][name]
    assert [entry["val"] for entry in entries] == mine["goodput_mbit_per_s"].to_list()
    assert [entry["tcp_cwnd"] for entry in entries] == mine["cwnd_packets"].to_list()
    pings = result.pings.filter(arm="fq", replication=2).drop_nulls("rtt_ms")
    values = [entry["val"] for entry in content["raw_values"]["Ping (ms) ICMP"]]
    assert values == pings["rtt_ms"].to_list()
    queue = result.link_series.filter(arm="fq", replication=2, link="up")
    drops = (queue["drops_overlimit"] + queue["drops_aqm"]).to_list()
    assert [entry["dropped"] for entry in content["raw_values"]["qdisc_stats_up"]] == drops
    again = tmp_path / "again"
    (same,) = sj.export(result, again, "flent", arm="fq", replication=2)
    assert same.read_bytes() == file.read_bytes()


def test_traffic_without_a_series_is_left_out_and_named(sojourn: Command, tmp_path: Path) -> None:
    of("voip").save(tmp_path / "voip")
    done = sojourn("export", "voip", "--format", "flent")
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "note: voip down: flent has no series for it; left out\n"
        "note: voip up: flent has no series for it; left out\n"
        "wrote 1 file to voip-flent\n"
    )
    assert document(next((tmp_path / "voip-flent").iterdir()))["metadata"]["SOJOURN"][
        "left_out"
    ] == ["voip down", "voip up"]


def test_traffic_without_a_test_is_refused(sojourn: Command, tmp_path: Path) -> None:
    assert fitted([], {}) is None
    links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
    dash = sj.Voip(direction="up")
    sj.run(sj.Scenario(links=links, traffic=[dash], rtt="50ms", duration="2s")).save(tmp_path / "r")
    done = sojourn("export", "r", "--format", "flent")
    refused(done, 3, r'arm "default": flent has no test for this traffic \(voip\); expected TCP')
    assert names(tmp_path) == ["r"]


def test_a_run_without_links_is_exported(tmp_path: Path) -> None:
    traffic = [sj.Tcp(direction="up"), sj.Ping(direction="up")]
    bare = sj.Scenario(
        links={"up": "unlimited", "down": sj.Link(rate="9mbit", qdisc="pfifo")},
        traffic=traffic,
        rtt="20ms",
        duration="2s",
    )
    (file,) = sj.export(sj.run(bare), tmp_path, "flent")
    content = document(file)
    assert len(content["x_values"]) == 20
    assert content["metadata"]["TEST_PARAMETERS"]["qdisc_stats_hosts"] == "down"
    assert [one for one in content["results"]["TCP upload::1"] if one is not None]


def test_csv_files_have_the_numbers_of_the_tables(result: sj.Result, tmp_path: Path) -> None:
    files = {file.stem: file for file in sj.export(result, tmp_path, "csv", arm="fq")}
    assert {"metrics", "flows", "links", "pings", "columns", "origin"} <= set(files)
    # A table without rows has no file.
    assert "transactions" not in files
    pings = pl.read_csv(files["pings"])
    expected = result.pings.filter(arm="fq")
    assert pings.columns == expected.columns
    assert pings["rtt_ms"].to_list() == expected["rtt_ms"].to_list()
    metrics = pl.read_csv(files["metrics"])
    assert metrics["arm"].to_list() == ["fq"] * 3
    assert (
        metrics["ping_ms_p95"].to_list() == result.table().filter(arm="fq")["ping_ms_p95"].to_list()
    )
    with files["columns"].open(encoding="utf-8", newline="") as stream:
        columns = {(row["table"], row["column"]): row for row in csv.DictReader(stream)}
    assert columns["pings", "rtt_ms"]["unit"] == "ms"
    assert columns["metrics", "ping_ms_p95"]["unit"] == "ms"
    for name, file in files.items():
        if name not in {"columns", "origin"}:
            heads = file.read_text(encoding="utf-8").partition("\n")[0].split(",")
            assert [column for table, column in columns if table == name] == heads
    origin = json.loads(files["origin"].read_text(encoding="utf-8"))
    assert origin["scenario_sha256"] == result.scenario.hash


def test_an_export_that_fails_leaves_nothing_new(
    result: sj.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/metrics.csv").write_text("mine")
    replace, written = files.replace, []

    def full(path: Path, data: bytes) -> None:
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(path, data)
        written.append(path)

    monkeypatch.setattr(files, "replace", full)
    for place in ("new/a/b", "old"):
        written.clear()
        with pytest.raises(sj.ResultError, match=f"cannot write .*{place}/.*: No space left"):
            sj.export(result, tmp_path / place, "csv", force=True)
        assert len(written) == 3
    assert names(tmp_path) == ["old"]
    assert names(tmp_path / "old") == ["metrics.csv"]


def test_a_name_in_a_csv_file_is_no_formula(tmp_path: Path) -> None:
    arms = [
        sj.Arm(name="=1+1", set={"links.up.qdisc": "pfifo"}),
        sj.Arm(name="b=2", set={"links.up.qdisc": "codel"}),
    ]
    result = sj.run(scenario().replace(arms=arms, replications=1))
    files = {file.stem: file for file in sj.export(result, tmp_path, "csv")}
    assert set(pl.read_csv(files["metrics"])["arm"]) == {"'=1+1", "b=2"}
    # Numbers keep their signs.
    assert all("'-" not in file.read_text(encoding="utf-8") for file in files.values())


def test_a_trace_carries_as_many_full_packets_as_the_link(tmp_path: Path) -> None:
    links = {
        "up": sj.Link(
            rate="2mbit",
            qdisc="pfifo",
            delay="5ms",
            changes=[sj.Change(at="2s", rate="4mbit"), sj.Change(at="3s", delay="10ms")],
        ),
        "down": sj.Link(rate="1mbit", qdisc="pfifo", framing="atm", overhead="16b"),
    }
    load = sj.Udp(direction="down", rate="2mbit", payload="1472b")
    both = sj.Scenario(
        links=links,
        traffic=[load],
        rtt="20ms",
        duration="4s",
        arms=[
            sj.Arm(name="a b", set={"links.up.rate": "1mbit"}),
            sj.Arm(name="a/b", set={"links.down.framing": "noatm"}),
        ],
    )
    result = sj.run(both)
    files = {file.name: file for file in sj.export(result, tmp_path, "mahimahi")}
    assert list(files) == [
        "a_b-down.trace",
        "a_b-up.trace",
        "a_b-down_2.trace",
        "a_b-up_2.trace",
    ]
    times = {
        name: [int(line) for line in file.read_text().splitlines()] for name, file in files.items()
    }
    for one in times.values():
        assert one == sorted(one)
        assert 0 < one[-1] <= 4000
    # Of 1514 B: 2 s at 2 Mbit/s and 2 s at 4 Mbit/s.
    assert len(times["a_b-up_2.trace"]) == int((2 * 2e6 + 2 * 4e6) / 8 / 1514)
    assert len(times["a_b-up.trace"]) == int((2 * 1e6 + 2 * 4e6) / 8 / 1514)
    # What the simulated link sent at full load, but for the packet that it was sending.
    for name, arm in (("a_b-down.trace", "a b"), ("a_b-down_2.trace", "a/b")):
        sent = result.links.filter(arm=arm, link="down")["sent_packets"].item()
        assert abs(len(times[name]) - sent) <= 2
    assert len(times["a_b-down.trace"]) == int(4e6 / 8 / (53 * 32))


def test_a_trace_is_exported_as_it_was(sojourn: Command, tmp_path: Path) -> None:
    # The scenario has the three gaps of 4 ms as 4x3.
    times = "0\n3\n3\n10\n14\n18\n22\n"
    (tmp_path / "t").write_text(times, encoding="utf-8")
    link = sj.Link(trace=tmp_path / "t", qdisc="codel")
    ping = sj.Ping(direction="up")
    traced = sj.Scenario(
        links={"up": link, "down": "unlimited"}, traffic=[ping], rtt="20ms", duration="2s"
    )
    sj.run(traced).save(tmp_path / "traced")
    done = sojourn("export", "traced", "--format", "mahimahi", "--out", "x/y")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "x" / "y") == ["default-up.trace"]
    assert (tmp_path / "x" / "y" / "default-up.trace").read_text() == times
    done = sojourn("export", "traced", "--format", "mahimahi", "--replication", "0")
    refused(done, 3, "a trace is the same for every replication")


def test_a_trace_of_rates_is_exported_as_opportunities(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("0,2\n1,0\n1.5,4\n3,1\n", encoding="utf-8")
    (tmp_path / "d.csv").write_text("0,2\n1,5\n", encoding="utf-8")
    link = sj.Link(
        rate_trace=tmp_path / "r.csv", delay_trace=tmp_path / "d.csv", qdisc="pfifo", overhead="10b"
    )
    load = sj.Udp(direction="up", rate="8mbit", payload="1472b")
    traced = sj.Scenario(
        links={"up": link, "down": "unlimited"}, traffic=[load], rtt="20ms", duration="10s"
    )
    result = sj.run(traced)
    (file,) = sj.export(result, tmp_path / "x", "mahimahi")
    times = [int(line) for line in file.read_text().splitlines()]
    # After 4.5 s, the trace repeats.
    assert not [at for at in times if 1000 < at <= 1500 or 5500 < at <= 6000]
    for begin, end, rate in (
        (0, 1000, 2e6),
        (1500, 3000, 4e6),
        (3000, 4500, 1e6),
        (6000, 7500, 4e6),
    ):
        count = sum(begin < at <= end for at in times)
        assert abs(count - (end - begin) / 1e3 * rate / 8 / 1524) <= 1
    assert abs(len(times) - result.links["sent_packets"].item()) <= 2


def test_what_a_trace_cannot_express_is_said(sojourn: Command, tmp_path: Path) -> None:
    ping = sj.Ping(direction="up")
    for link, said in (
        (sj.Link(rate="54mbit", qdisc="pfifo", medium=sj.Wifi()), "cannot express a wireless link"),
        (sj.Link(rate="9kbit", qdisc="pfifo"), "too slow for a trace"),
        (sj.Link(rate="200gbit", qdisc="pfifo"), "the trace would have 1.65e.07 lines"),
        (sj.Link(rate="9mbit", qdisc="pfifo", overhead="pppoe-ptm"), '"pppoe-ptm" cannot be'),
    ):
        of_link = sj.Scenario(
            links={"up": link, "down": "unlimited"}, traffic=[ping], rtt="20ms", duration="1s"
        )
        sj.run(of_link).save(tmp_path / "r", force=True)
        refused(sojourn("export", "r", "--format", "mahimahi"), 3, said, r"links\.up")
    noted = sj.Link(rate="9mbit", qdisc="cake bandwidth 5mbit", loss="1%", delay="5ms")
    of_link = sj.Scenario(
        links={"up": noted, "down": "unlimited"}, traffic=[ping], rtt="20ms", duration="1s"
    )
    sj.run(of_link).save(tmp_path / "r", force=True)
    done = sojourn("export", "r", "--format", "mahimahi")
    assert done.returncode == 0, done.stderr
    for text in ("delay is not", "loss is not", "the rate of the shaper in the queue is not"):
        assert f'note: arm "default", links.up: {text} part of a trace' in done.stderr


def test_files_are_replaced_only_on_request(sojourn: Command, tmp_path: Path) -> None:
    sj.run(scenario()).save(tmp_path / "r")
    first = sojourn("export", "r", "--format", "csv", "--out", "out")
    assert first.returncode == 0, first.stderr
    mine = tmp_path / "out" / "mine"
    mine.write_text("mine", encoding="utf-8")
    pings = tmp_path / "out" / "pings.csv"
    pings.write_text("changed", encoding="utf-8")
    done = sojourn("export", "r", "--format", "csv", "--out", "out")
    refused(done, 3, "cannot write out/.*csv: it exists; --force replaces it")
    assert pings.read_text(encoding="utf-8") == "changed"
    assert sojourn("export", "r", "--format", "csv", "--out", "out", "--force").returncode == 0
    assert pings.read_text(encoding="utf-8").startswith("arm,replication")
    assert mine.read_text(encoding="utf-8") == "mine"
    refused(sojourn("export", "r", "--format", "csv", "--out", "r"), 3, "r: it contains a result")
    refused(
        sojourn("export", "r", "--format", "csv", "--out", "out/mine"), 3, "cannot write out/mine"
    )


def test_wrong_options_are_refused_in_one_line(
    sojourn: Command, result: sj.Result, tmp_path: Path
) -> None:
    result.save(tmp_path / "r")
    refused(
        sojourn("export", "r", "--format", "xlsx"),
        2,
        "--format xlsx: unknown; expected flent, csv, ",
    )
    refused(sojourn("export", "r"), 2, "format")
    refused(sojourn("export", "none", "--format", "csv"), 3, "none: does not exist")
    done = sojourn("export", "r", "--format", "csv", "--arm", "x")
    refused(done, 2, "--arm x: no finished run of this arm; expected one of fifo, fq")
    done = sojourn("export", "r", "--format", "csv", "--replication", "3")
    refused(done, 2, "--replication 3: no finished run; expected 0 to 2")
    with pytest.raises(sj.ScenarioError, match="format='xlsx': unknown; expected flent, csv"):
        sj.export(result, tmp_path / "x", "xlsx")
    assert names(tmp_path) == ["r"]
    assert completed("export", "--format", "fl", cwd=tmp_path) == ["flent"]
