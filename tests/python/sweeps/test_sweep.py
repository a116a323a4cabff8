"""Sweeps: parameters, points, execution through the run store, figures, and the command."""

import json
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn.result import student
from sojourn.scenario.files import split
from sojourn.sweeps import storage
from sojourn.sweeps.execution import until
from sojourn.sweeps.parameters import parameters
from sojourn.sweeps.space import points, space
from support.shell import Command, environment
from support.stored import COMMAND, segments
from support.swept import ARMS, RATES, TEXT, parameter

# Bytes of some stored runs and the note before them.
STORED = 1_500


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture(scope="module")
def swept(base: sj.Scenario) -> sj.SweepResult:
    return sj.sweep(
        base, {"links.up.rate": ["8mbit", "2mbit"], "links.up.qdisc.target": "5ms,40ms"}
    )


@pytest.fixture
def swept_file(tmp_path: Path) -> Path:
    path = tmp_path / "swept.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1ms,5ms", ["1ms", "5ms"]),
        ("a=logspace(1mbit,1gbit,4)", ["1mbit", "10mbit", "100mbit", "1gbit"]),
        ("a=linspace(1ms,2ms,3)", ["1ms", "1.5ms", "2ms"]),
        ("a=range(0.1,0.5,0.1)", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("a=range(30ms,10ms,-10ms)", ["30ms", "20ms", "10ms"]),
        ("a=linspace(10p,20p,2)", ["10p", "20p"]),
        ("a=codel target 5ms,pie", ["codel target 5ms", "pie"]),
        ("a=1,linspace(2,4,2)", [1, 2, 4]),
        ("a=true,false", [True, False]),
    ],
)
def test_values_are_lists_and_generators(text: str, values: list[object]) -> None:
    assert [value for (value,) in parameter(text).values] == values


def test_parameters_with_a_comma_change_together() -> None:
    pairs = (("10mbit", "1mbit"), ("20mbit", "2mbit"))
    assert parameter("a,b=10mbit/1mbit,20mbit/2mbit").values == pairs
    generated = parameter("a,b=linspace(10mbit,20mbit,2)/linspace(1mbit,2mbit,2)")
    assert generated.values == pairs
    assert parameters({("a", "b"): [("10mbit", "1mbit"), ("20mbit", "2mbit")]})[0].values == pairs


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a=", "parameters['a']: empty value"),
        ("a=foo(1)", "parameters['a']: unknown function foo"),
        ("a=linspace(1ms,2mbit,3)", "units of different kinds"),
        ("a=linspace(1ms,2ms)", "expected 3 numbers"),
        ("a=logspace(1ms,2ms,3", "parameters['a']: logspace(1ms,2ms,3: the closing ) is missing"),
        ("a,b=range(1,2,1/range(1,2,1)", "range(1,2,1/range(1,2,1): the closing ) is missing"),
        ("a=linspace(1ms,2ms,1)", "expected a count from 2"),
        ("a=logspace(0,2,3)", "greater than 0"),
        ("a=range(1,2,-1)", "expected a step"),
        ("a=uniform(2,1)", "expected low < high"),
        ("a=integers(1.5,2)", "expected whole numbers"),
        ("a=1,1", "given twice"),
        ("a,b=1,2", "expected 2 values"),
        ("a,b=1/2,linspace(1,2,2)/linspace(1,2,3)", "different lengths"),
        ("a,a=1/2", "same path twice"),
        ("seed=1,2", "not a parameter of a sweep"),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_line(text: str, part: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        parameter(text)
    assert part in f"{error.value}"
    assert "\n" not in f"{error.value}"


def test_points_are_combined_and_meet_the_conditions(base: sj.Scenario) -> None:
    given = [parameter("links.down.rate=1mbit,9mbit"), parameter(RATES)]
    found = points(space(given, ["links.down.rate >= links.up.rate", "rtt == 20ms"]), base)
    assert [point.label for point in found] == [
        "links.down.rate=9mbit, links.up.rate=2mbit",
        "links.down.rate=9mbit, links.up.rate=4mbit",
    ]
    with pytest.raises(sj.ScenarioError, match="none of 4 points"):
        points(space(given, ["links.up.rate > 1gbit"]), base)
    with pytest.raises(sj.ScenarioError, match=r"unknown name links\.up\.raet"):
        points(space(given, ["links.up.raet > 1gbit"]), base)


def test_a_star_stands_for_what_has_the_key(base: sj.Scenario) -> None:
    (point,) = points(
        space([parameter("links.*.rate=3mbit"), parameter("traffic[*].cc=bbr")]), base
    )
    assert point.changes == {
        "links.up.rate": "3mbit",
        "links.down.rate": "3mbit",
        "traffic[0].cc": "bbr",
    }
    with pytest.raises(sj.ScenarioError, match="two parameters set this value"):
        points(space([parameter("links.*.rate=3mbit"), parameter("links.up.rate=4mbit")]), base)


@pytest.mark.parametrize("kind", ["lhs:8", "sobol:8"])
def test_samples_fill_the_ranges_and_depend_on_the_seed(base: sj.Scenario, kind: str) -> None:
    pytest.importorskip("scipy")
    ranged = "links.up.rate=loguniform(1mbit,100mbit)"
    given = [parameter(ranged), parameter("traffic.bulk.count=integers(1,4)")]
    found = list(points(space(given, sampling=kind), base))
    rates = sorted(sj._core.parse_rate_bits_per_s(f"{p.values['links.up.rate']}") for p in found)  # noqa: SLF001
    # One sample per eighth of the range.
    assert [int(8 * _position(rate)) for rate in rates] == list(range(8))
    assert {point.values["traffic.bulk.count"] for point in found} == {1, 2, 3, 4}
    assert list(points(space(given, sampling=kind), base)) == found
    assert list(points(space(given, sampling=kind), base.replace(seed=9))) != found
    crossed = [*given, parameter("links.up.qdisc=codel,pie")]
    assert len(points(space(crossed, sampling=kind), base)) == 16


def _position(rate: float) -> float:
    """Position of a rate between 1 and 100 Mbit/s on a logarithmic scale."""
    import math  # noqa: PLC0415

    return math.log(rate / 1e6) / math.log(100)


def test_a_range_requires_samples_and_samples_a_range() -> None:
    with pytest.raises(sj.ScenarioError, match="a range requires sampling"):
        space([parameter("a=uniform(1,2)")])
    with pytest.raises(sj.ScenarioError, match="no parameter has a range"):
        space([parameter("a=1,2")], sampling="lhs:4")
    with pytest.raises(sj.ScenarioError, match=r"power of two, such as sobol:4"):
        space([parameter("a=uniform(1,2)")], sampling="sobol:6")


def test_a_sweep_has_the_metrics_of_its_scenarios(base: sj.Scenario, swept: sj.SweepResult) -> None:
    assert swept.complete
    assert swept.runs.height == 8
    assert swept.points.select(swept.parameters).rows()[1] == ("8mbit", "40ms")
    changed = base.replace(
        links={**base.links, "up": sj.Link(rate="8mbit", qdisc="codel target 40ms")}
    )
    alone = sj.run(changed).table().drop("arm", "replication")
    columns = [column for column in alone.columns if column in swept.runs.columns]
    assert columns == alone.columns
    assert swept.runs.filter(pl.col("point") == 1).select(columns).equals(alone)
    means = sj.run(changed).summary()
    row = swept.points.row(1, named=True)
    for metric, mean, low, high in means.select("metric", "mean", "low", "high").iter_rows():
        assert (row[metric], row[f"{metric}_low"], row[f"{metric}_high"]) == (mean, low, high)


def test_runs_do_not_depend_on_jobs_or_the_store(base: sj.Scenario, tmp_path: Path) -> None:
    given = {"links.up.rate": "2mbit,4mbit", "traffic.bulk.count": [1, 3]}
    one = sj.sweep(base, given, jobs=1)
    stored = sj.sweep(base, given, jobs=2, store=tmp_path)
    assert stored.runs.equals(one.runs)
    size = sum(path.stat().st_size for path in segments(tmp_path))
    assert sj.sweep(base, given, store=tmp_path).runs.equals(one.runs)
    added = sum(path.stat().st_size for path in segments(tmp_path)) - size
    assert added < size / 10, "no run is stored twice"


def test_arms_are_run_at_each_point(base: sj.Scenario) -> None:
    scenario = sj.Scenario.from_toml(TEXT + ARMS)
    found = sj.sweep(scenario, {"links.up.qdisc.limit": ["20", "200"]})
    assert found.points.select("arm").to_series().to_list() == ["codel", "pie"] * 2
    with pytest.raises(sj.ScenarioError, match='arm "pie" sets this value or a part of it'):
        sj.sweep(scenario, {"links.up.qdisc": ["codel"]})
    with pytest.raises(sj.ScenarioError, match=r"interval.*point links.up.qdisc.interval=9ms; arm"):
        sj.sweep(scenario, {"links.up.qdisc.interval": ["9ms"]})
    with pytest.raises(sj.ScenarioError, match=r"rate.*\(point links.up.rate=fast\)"):
        sj.sweep(base, {"links.up.rate": ["1mbit", "fast"]})


def test_durations_can_be_swept(base: sj.Scenario) -> None:
    found = sj.sweep(base, {"duration": ["2s", "4s"]}, replications=1)
    rates = found.points["goodput_up_mbit_per_s"].to_list()
    assert rates == pytest.approx([4.6, 4.6], rel=0.1)


def test_replications_are_added_until_the_interval_is_narrow(base: sj.Scenario) -> None:
    found = sj.sweep(
        base, {"links.up.rate": ["2mbit"]}, until="ping_ms_p95 ±0.01 %", max_replications=7
    )
    assert found.points["n"].to_list() == [7]
    wide = sj.sweep(
        base, {"links.up.rate": ["2mbit"]}, until="goodput_up +-50%", max_replications=7
    )
    assert wide.points["n"].to_list() == [6]
    assert wide.runs.equals(found.runs.filter(pl.col("replication") < 6))
    # The interval in the table is the one that decided.
    values = wide.runs["goodput_up_mbit_per_s"].to_list()
    row = wide.points.row(0, named=True)
    shown = [row[f"goodput_up_mbit_per_s{end}"] for end in ("", "_low", "_high")]
    assert shown == list(student.mean_and_interval(values))
    assert wide.best("goodput_up").row(0, named=True)["goodput_up_mbit_per_s_low"] == shown[1]
    with pytest.raises(
        sj.ScenarioError, match="max_replications=1: expected at least 6, the number of"
    ):
        sj.sweep(base, {"links.up.rate": ["2mbit"]}, until="goodput_up +-50%", max_replications=1)
    assert until("drops ±2").relative is False
    for text in ("drops", "drops ±0", "±5 %"):
        with pytest.raises(sj.ScenarioError, match="until="):
            until(text)
    with pytest.raises(sj.ScenarioError, match='unknown metric "goodptu"'):
        sj.sweep(base, {"links.up.rate": ["2mbit"]}, until="goodptu ±5 %")


def test_a_metric_that_no_run_measures_ends_the_sweep(base: sj.Scenario) -> None:
    silent = base.replace(traffic=[base.traffic[0], replace(base.traffic[1], stop="500ms")])
    with pytest.raises(sj.ScenarioError, match=r"ping_ms_p99 ±5 %': no run of a point measured"):
        sj.sweep(
            silent, {"links.up.rate": ["2mbit"]}, until="ping_ms_p99 ±5 %", max_replications=60
        )


def test_pivots_rankings_and_figures(swept: sj.SweepResult) -> None:
    table = swept.pivot("goodput_up")
    assert table.columns == ["links.up.rate", "5ms", "40ms"]
    assert table["links.up.rate"].to_list() == ["2mbit", "8mbit"], "ordered by size"
    best = swept.best("goodput_up", largest=True)
    assert best["links.up.rate"].to_list()[:2] == ["8mbit", "8mbit"]
    assert best["difference"][0] == 0.0
    assert best["difference"][3] < -5.0
    with pytest.raises(sj.ArgumentError, match="metric='goodput': unknown metric"):
        swept.pivot("goodput")
    with pytest.raises(sj.ArgumentError, match=r"rows='links.down.rate': unknown parameter"):
        swept.pivot("drops", rows="links.down.rate")
    axes = swept.heatmap("drops").axes[0]
    labels = (axes.get_xlabel(), axes.get_ylabel())
    assert labels == ("links.up.rate [Mbit/s]", "links.up.qdisc.target [ms]")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "8"]
    lines = swept.lines("goodput_up").axes[0]
    # The ends of intervals are lines as well.
    joined = [line for line in lines.lines if line.get_linestyle() != "None"]
    assert len(lines.containers) == len(joined) == 2
    assert list(joined[0].get_xdata()) == [2.0, 8.0]
    means, low = (swept.points[f"goodput_up_mbit_per_s{end}"] for end in ("", "_low"))
    (bars,) = lines.containers[0].lines[2]
    assert bars.get_segments()[1][0][1] == pytest.approx(low[0]), "8 Mbit/s, 5 ms"
    assert list(joined[0].get_ydata())[1] == pytest.approx(means[0])
    (box,) = swept.box("drops", fixed={"links.up.rate": "2mbit"}).axes
    # Fewer than six runs are dots.
    found = swept.runs.filter(pl.col("links.up.rate") == "2mbit")["drops"]
    shown = [y for dots in box.collections for y in dots.get_offsets()[:, 1]]  # type: ignore[call-overload, index]
    assert 0 < found.len() < 6
    assert sorted(shown) == sorted(found)


def test_axes_of_parameters_and_metrics_are_logarithmic_where_linear_ones_hide(
    swept: sj.SweepResult,
) -> None:
    rates = {"8mbit": "100mbit", "2mbit": "1mbit"}
    delays = pl.when(pl.col("links.up.rate") == "2mbit").then(1.0).otherwise(200.0)
    runs = swept.runs.with_columns(
        pl.col("links.up.rate").replace(rates), ping_ms_p99=delays + pl.col("replication")
    )
    wide = sj.SweepResult(swept.manifest, runs)
    axes = wide.lines("ping_ms_p99").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_ylabel() == "ping p99 [ms], log scale"
    narrow = swept.lines("goodput_up").axes[0]
    assert (narrow.get_xscale(), narrow.get_yscale()) == ("linear", "linear")
    assert narrow.get_ylim()[0] == 0


def test_a_sweep_is_saved_and_loaded(swept: sj.SweepResult, tmp_path: Path) -> None:
    place = tmp_path / "saved"
    swept.save(place)
    swept.save(place)
    loaded = sj.SweepResult.load(place)
    assert loaded.runs.equals(swept.runs)
    assert loaded.points.equals(swept.points)
    assert loaded.scenario == swept.scenario
    other = sj.SweepResult({**swept.manifest, "replications": 9}, swept.runs)
    with pytest.raises(sj.ResultError, match="another sweep"):
        other.save(place)
    other.save(place, force=True)
    table = place / "runs.parquet"
    table.write_bytes(table.read_bytes()[:-9] + b"123456789")
    with pytest.raises(sj.DamagedResultError, match=r"runs\.parquet: damaged"):
        sj.SweepResult.load(place)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(sj.ResultError, match="contains other files"):
        swept.save(tmp_path / "other")
    with pytest.raises(sj.ResultError, match="no sweep"):
        sj.SweepResult.load(tmp_path / "nothing")


def test_tables_of_studies_are_no_part_of_a_scenario(base: sj.Scenario) -> None:
    text = (
        TEXT
        + '[sweep]\nsampling = "lhs:4"\n[[expect]]\nthat = "drops < 1"\n[links.lan]\nrate = "1x"\n'
    )
    scenario, tables = split(text)
    assert tables == {"sweep": {"sampling": "lhs:4"}, "expect": [{"that": "drops < 1"}]}
    assert scenario.count("\n") == text.count("\n")
    text = text[: text.index("[links.lan]")]
    pairs = '[sweep.parameters]\n"a,b" = [\n  ["1mbit", "2mbit"],\n  ["3mbit", "4mbit"]\n]\n'
    assert split(text + pairs)[0].strip() == TEXT.strip()
    assert sj.Scenario.from_toml(text).hash == base.hash
    with pytest.raises(sj.ScenarioError, match="expected tables with headers"):
        split('sweep = { sampling = "lhs:4" }\nduration = "1s"\n')


def test_the_command_repeats_nothing(sojourn: Command, swept_file: Path, store: Path) -> None:
    words = ("sweep", f"{swept_file}", "-p", RATES, "--out", "out", "--metric", "goodput_up")
    first = sojourn(*words)
    assert first.returncode == 0, first.stderr
    assert "2 points, 4 runs" in first.stderr
    assert "2mbit" in first.stdout
    size = sum(path.stat().st_size for path in segments(store))
    again = sojourn(*words, "--json")
    assert "4 runs of 4 were stored" in again.stderr
    assert sum(path.stat().st_size for path in segments(store)) < 1.1 * size
    document = json.loads(again.stdout)
    assert [point["values"]["links.up.rate"] for point in document["points"]] == ["2mbit", "4mbit"]
    assert set(document["points"][0]["metrics"]) == {"goodput_up_mbit_per_s"}
    loaded = sj.SweepResult.load(swept_file.parent / "out")
    assert loaded.points["n"].to_list() == [2, 2]


def test_the_table_of_a_file_and_of_traffic(sojourn: Command, swept_file: Path) -> None:
    text = f'{TEXT}[sweep]\nwhere = "rtt < 15ms"\n[sweep.parameters]\nrtt = "10ms,20ms"\n'
    swept_file.write_text(text, encoding="utf-8")
    planned = sojourn("sweep", f"{swept_file}", "-p", RATES, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "2 points, 1 arm, 4 runs of 3 s" in planned.stdout
    traffic = sojourn("sweep", "tcp_1up", "-p", "links.*.qdisc=codel,pie", "--dry-run")
    assert "2 points, 1 arm, 6 runs of 70 s" in traffic.stdout
    wrong = sojourn("sweep", "tcp_1upp", "-p", "links.*.qdisc=codel,pie", "--dry-run")
    assert wrong.returncode == 2
    assert "neither a file nor traffic" in wrong.stderr


def test_a_dry_run_names_arguments_as_they_are_given(sojourn: Command, swept_file: Path) -> None:
    words = ("-p", "rtt=uniform(5ms,9ms)", "--sampling", "sobol:2", "--until", "drops ±1")
    given = (*words, "--replications", "6", "--max-replications", "8")
    planned = sojourn("sweep", f"{swept_file}", *given, "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    document = json.loads(planned.stdout)
    assert (document["space"]["sampling"], document["max_replications"]) == ("sobol:2", 8)
    assert not {"sample", "most"} & {*document, *document["space"]}


def test_an_interrupted_sweep_keeps_its_runs(swept_file: Path, store: Path) -> None:
    words = ["sweep", f"{swept_file}", "-p", "rtt=linspace(10ms,50ms,20)", "-s", "duration=800s"]
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=swept_file.parent,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while sum(path.stat().st_size for path in segments(store)) < STORED:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "to continue: sojourn sweep" in err
    again = subprocess.run(
        [*COMMAND, *words, "--json"],
        cwd=swept_file.parent,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert " of 40 were stored" in again.stderr
    assert len(json.loads(again.stdout)["points"]) == 20


def test_a_queue_in_python_is_swept_on_processes(base: sj.Scenario) -> None:
    class Shared(sj.PythonQueue):
        def __init__(self) -> None:
            self.waiting: list[sj.Packet] = []

        def enqueue(self, _now: float, packet: sj.Packet) -> None:
            self.waiting.append(packet)

        def dequeue(self, _now: float) -> sj.Packet | None:
            return self.waiting.pop(0) if self.waiting else None

    scenario = base.replace(links={**base.links, "up": sj.Link(rate="2mbit", qdisc=Shared)})
    given = {"rtt": ["10ms", "40ms"]}
    on_processes = sj.sweep(scenario, given, replications=1, jobs=2)
    assert on_processes.runs.equals(sj.sweep(scenario, given, replications=1, jobs=1).runs)

    class Broken(Shared):
        def dequeue(self, _now: float) -> sj.Packet | None:
            raise ValueError

    scenario = base.replace(links={**base.links, "up": sj.Link(rate="2mbit", qdisc=Broken)})
    with pytest.raises(sj.QueueError, match=r'Broken.dequeue failed.*arm "default \(rtt=10ms\)"'):
        sj.sweep(scenario, {"rtt": ["10ms"]}, replications=1)


def test_a_killed_sweep_repeats_no_stored_run(swept_file: Path, store: Path) -> None:
    words = [*COMMAND, "sweep", f"{swept_file}", "-p", "rtt=linspace(10ms,50ms,40)", "--json"]
    words += ["-s", "duration=30s"]
    process = subprocess.Popen(
        words,
        cwd=swept_file.parent,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 30
    while sum(path.stat().st_size for path in segments(store)) < STORED:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate()
    found = []
    for _ in range(2):
        done = subprocess.run(
            words,
            cwd=swept_file.parent,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        found.append(done)
    assert " of 80 were stored" in found[0].stderr
    assert "80 runs of 80 were stored" in found[1].stderr
    assert found[0].stdout == found[1].stdout


def test_equal_samples_are_points_of_their_own(base: sj.Scenario) -> None:
    pytest.importorskip("scipy")
    swept = sj.sweep(
        base, {"traffic.bulk.count": "integers(1,2)"}, sampling="lhs:5", replications=1
    )
    assert len(swept.points) == 5
    assert swept.complete


def test_a_queue_is_replaced_before_its_parameters(base: sj.Scenario) -> None:
    given = parameters({"links.up.qdisc.target": "1ms,9ms", "links.up.qdisc": "codel,pie"})
    orders = {tuple(point.changes) for point in points(space(given), base)}
    assert orders == {("links.up.qdisc", "links.up.qdisc.target")}


def test_an_interrupted_sweep_never_replaces_a_complete_one(
    swept: sj.SweepResult, tmp_path: Path
) -> None:
    swept.save(tmp_path / "out")
    partial = {**swept.manifest, "complete": False}
    with pytest.raises(sj.ResultError, match="which an interrupted one never replaces"):
        storage.save(tmp_path / "out", partial, swept.runs, swept.points, force=False)
    assert sj.SweepResult.load(tmp_path / "out").complete
