"""The quantities of claims, each against a value computed by hand from the tables of a result."""

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.result import student
from sojourn.studies import series
from sojourn.studies.claims import Subject
from sojourn.studies.quantities import Quantities
from support.studied import SCENARIO

RUNS = (0, 1, 2)
# After the warm-up.
MEASURED_S = 8.0
Row = dict[str, Any]


@pytest.fixture(scope="module")
def result() -> sj.Result:
    return sj.run(sj.Scenario.from_toml(SCENARIO), seed=1)


@pytest.fixture(scope="module")
def quantities(result: sj.Result) -> Quantities:
    return Quantities(result)


def rows(result: sj.Result, table: str, run: int, **of: object) -> list[Row]:
    """The rows of a run of the arm codel."""
    found = getattr(result, table).rows(named=True)
    wanted = {"arm": "codel", "replication": run, **of}
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def mean(values: Iterable[float | None]) -> float:
    return statistics.fmean(value for value in values if value is not None)


def over_runs(of_run: Callable[[int], float]) -> float:
    return mean(of_run(run) for run in RUNS)


def data(result: sj.Result, run: int, **of: object) -> list[Row]:
    return [row for row in rows(result, "flows", run, **of) if row["kind"] != "ping"]


def carried(row: Row) -> float:
    """Goodput; of a transfer of a given size, averaged over the measured time."""
    if row["bytes"] is None:
        return float(row["goodput_mbit_per_s"])
    return float(row["delivered_bytes"] * 8e-6 / MEASURED_S)


def jain(values: list[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def link(column: str) -> Callable[[sj.Result, int], float]:
    def of(result: sj.Result, run: int) -> float:
        (row,) = rows(result, "links", run, link="down")
        return float(row[column])

    return of


def lost(result: sj.Result, run: int) -> float:
    (row,) = rows(result, "links", run, link="down")
    dropped = row["drops_overlimit"] + row["drops_aqm"]
    return float(100 * dropped / (dropped + row["sent_packets"]))


def throughput(result: sj.Result, run: int) -> float:
    (row,) = rows(result, "links", run, link="down")
    return float((row["sent_bytes"] - 14 * row["sent_packets"]) * 8e-6 / MEASURED_S)


def counted(result: sj.Result, run: int) -> float:
    (row,) = rows(result, "queue_statistics", run, link="down", name="maxpacket")
    return float(row["value"])


def rises(result: sj.Result, run: int) -> list[float]:
    found = (
        row["ack_rtt_ms_max"] - row["base_rtt_ms"]
        for row in rows(result, "flows", run, kind="tcp")
        if row["ack_rtt_ms_max"] is not None
    )
    return list(found)


OF_RUNS: dict[str, Callable[[sj.Result, int], float]] = {
    "goodput_mbit_per_s": lambda result, run: sum(map(carried, data(result, run))),
    "jain": lambda result, run: jain(
        [row["goodput_mbit_per_s"] for row in data(result, run) if row["goodput_mbit_per_s"]]
    ),
    "throughput_down_mbit_per_s": throughput,
    "ack_rtt_down_ms": lambda result, run: mean(
        row["ack_rtt_ms_mean"] for row in rows(result, "flows", run, kind="tcp")
    ),
    "sojourn_ms_mean": link("sojourn_ms_mean"),
    "sojourn_ms_max": link("sojourn_ms_max"),
    "sojourn_down_ms_mean": link("sojourn_ms_mean"),
    "sojourn_down_ms_p50": link("sojourn_ms_p50"),
    "sojourn_down_ms_p95": link("sojourn_ms_p95"),
    "sojourn_down_ms_p99": link("sojourn_ms_p99"),
    "sojourn_down_ms_max": link("sojourn_ms_max"),
    "utilisation_down": link("utilisation"),
    "loss_down_percent": lost,
    "queue_down_maxpacket": counted,
    "ack_rtt_rise_ms_best": lambda result, run: min(rises(result, run)),
    "ack_rtt_rise_ms_worst": lambda result, run: max(rises(result, run)),
    "drops": lambda result, run: sum(
        row["drops_overlimit"] + row["drops_aqm"] for row in rows(result, "links", run)
    ),
}


@pytest.mark.parametrize("metric", OF_RUNS)
def test_a_quantity_of_runs(result: sj.Result, quantities: Quantities, metric: str) -> None:
    found = quantities.estimate(Subject("two", "codel", None, metric))
    assert found.n == 3
    assert found.mean == pytest.approx(over_runs(lambda run: OF_RUNS[metric](result, run)))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.mean <= found.high


def started(result: sj.Result, table: str, run: int, group: str) -> list[Row]:
    """The transfers or transactions of a group that began after the warm-up."""
    return [row for row in rows(result, table, run, group=group) if row["started_s"] >= 4.0]


OF_GROUPS: dict[tuple[str, str], Callable[[sj.Result, int], float]] = {
    ("udp", "goodput_mbit_per_s"): lambda result, run: sum(
        map(carried, data(result, run, group="udp"))
    ),
    ("files", "goodput_mbit_per_s"): lambda result, run: sum(
        map(carried, data(result, run, group="files"))
    ),
    ("tcp", "share_percent"): lambda result, run: (
        100
        * sum(map(carried, data(result, run, group="tcp")))
        / sum(map(carried, data(result, run)))
    ),
    ("tcp", "jain"): lambda result, run: jain(
        [row["goodput_mbit_per_s"] for row in data(result, run, group="tcp")]
    ),
    ("files", "fct_s_mean"): lambda result, run: mean(
        row["fct_s"] for row in started(result, "flows", run, "files")
    ),
    ("web", "duration_s_mean"): lambda result, run: mean(
        row["duration_s"] for row in started(result, "transactions", run, "web")
    ),
}


@pytest.mark.parametrize(("group", "metric"), OF_GROUPS)
def test_a_quantity_of_a_group(
    result: sj.Result, quantities: Quantities, group: str, metric: str
) -> None:
    found = quantities.estimate(Subject("two", "codel", group, metric))
    expected = over_runs(lambda run: OF_GROUPS[group, metric](result, run))
    assert found.mean == pytest.approx(expected)


def test_shares_add_up(quantities: Quantities) -> None:
    groups = ("udp", "tcp", "files", "web")
    shares = [
        quantities.estimate(Subject("two", "pfifo", group, "share_percent")).mean
        for group in groups
    ]
    # Bytes of pages are no flows of their own.
    assert sum(share or 0.0 for share in shares) == pytest.approx(100.0)


def samples(result: sj.Result, table: str, run: int, **of: object) -> list[Row]:
    """The samples from 5 s to 9 s."""
    return [row for row in rows(result, table, run, **of) if 5.0 <= row["t_s"] <= 9.0]


def by_time(found: list[Row], column: str, combine: Callable[[list[float]], float]) -> list[float]:
    """Combine the values of several flows at each sample."""
    at: dict[float, list[float]] = {}
    for row in found:
        if row[column] is not None:
            at.setdefault(row["t_s"], []).append(row[column])
    return [combine(values) for values in at.values()]


def of_link(result: sj.Result, run: int, column: str) -> list[float]:
    found = (row[column] for row in samples(result, "link_series", run, link="down"))
    return [value for value in found if value is not None]


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def connections(result: sj.Result, run: int, column: str) -> list[float]:
    names = {row["flow"] for row in rows(result, "flows", run) if row["kind"] == "tcp"}
    found = [row for row in samples(result, "flow_series", run) if row["flow"] in names]
    return by_time(found, column, statistics.fmean)


SERIES: dict[tuple[str, str | None], Callable[[sj.Result, int], float]] = {
    ("ping_ms_mean", None): lambda result, run: mean(
        row["rtt_ms"] for row in samples(result, "pings", run)
    ),
    ("ping_ms_p95", "ping"): lambda result, run: percentile(
        [row["rtt_ms"] for row in samples(result, "pings", run) if row["rtt_ms"] is not None], 0.95
    ),
    ("sojourn_down_ms_min", None): lambda result, run: min(of_link(result, run, "sojourn_ms_mean")),
    # The longest sojourn time, not the largest of the means of the samples.
    ("sojourn_down_ms_max", None): lambda result, run: max(of_link(result, run, "sojourn_ms_max")),
    ("backlog_down_packets_p50", None): lambda result, run: percentile(
        of_link(result, run, "backlog_packets"), 0.5
    ),
    ("throughput_down_mbit_per_s_mean", None): lambda result, run: mean(
        (row["sent_bytes"] - 14 * row["sent_packets"]) * 8e-6 / 0.2
        for row in samples(result, "link_series", run, link="down")
    ),
    ("goodput_mbit_per_s_mean", "tcp"): lambda result, run: mean(
        by_time(samples(result, "flow_series", run, group="tcp"), "goodput_mbit_per_s", sum)
    ),
    ("goodput_mbit_per_s_p25", None): lambda result, run: percentile(
        by_time(samples(result, "flow_series", run), "goodput_mbit_per_s", sum), 0.25
    ),
    ("cwnd_packets_mean", None): lambda result, run: mean(connections(result, run, "cwnd_packets")),
    ("srtt_ms_max", "tcp"): lambda result, run: max(
        by_time(samples(result, "flow_series", run, group="tcp"), "srtt_ms", statistics.fmean)
    ),
}


@pytest.mark.parametrize(("metric", "group"), SERIES)
def test_a_statistic_of_a_series(
    result: sj.Result, quantities: Quantities, metric: str, group: str | None
) -> None:
    found = quantities.estimate(Subject("two", "codel", group, f"{metric}[5,9]"))
    assert found.n == 3
    expected = over_runs(lambda run: SERIES[metric, group](result, run))
    assert found.mean == pytest.approx(expected)


def test_a_peak_is_that_of_the_mean_over_the_runs(
    result: sj.Result, quantities: Quantities
) -> None:
    at: dict[int, list[float]] = {}
    for run in RUNS:
        for row in samples(result, "link_series", run, link="down"):
            at.setdefault(round(row["t_s"] / 0.2), []).append(row["backlog_packets"])
    assert all(len(values) == 3 for values in at.values())
    number, value = max(((n, mean(values)) for n, values in at.items()), key=lambda one: one[1])
    subject = Subject("two", "codel", None, "backlog_down_packets_peak[5,9]")
    found = quantities.estimate(subject)
    assert (found.n, found.mean) == (3, pytest.approx(value))
    # The jackknife: two thirds of the squared deviations of the peaks without one run each.
    without = [
        max(mean(values[:run] + values[run + 1 :]) for values in at.values()) for run in RUNS
    ]
    error = math.sqrt(2 / 3 * sum((one - statistics.fmean(without)) ** 2 for one in without))
    assert found.high is not None
    assert found.high - value == pytest.approx(student.quantile(2) * error)
    # The middle of the sample interval that ends there.
    time = quantities.estimate(Subject("two", "codel", None, "backlog_down_packets_peak_s[5,9]"))
    assert time.mean == pytest.approx(number * 0.2 - 0.1)


@pytest.mark.parametrize(
    ("runs", "early", "expected"),
    [
        # The mean of all runs is largest at the late maximum.
        (8, 3, (3.1, 1.1, 3.1)),
        # Of every sample of the runs, at the early one.
        (8, 8, (1.1, 1.1, 1.1)),
        (5, 2, (3.1, None, None)),
    ],
)
def test_the_time_of_a_peak_may_jump_from_one_maximum_to_another(
    monkeypatch: pytest.MonkeyPatch,
    result: sj.Result,
    runs: int,
    early: int,
    expected: tuple[float, float | None, float | None],
) -> None:
    found = pl.DataFrame(
        [
            {"arm": "codel", "replication": run, "t_s": t_s, "value": value}
            for run in range(runs)
            for t_s, value in ((1.2, 9.0 * (run < early)), (2.2, 1.0), (3.2, 9.0 * (run >= early)))
        ]
    )
    monkeypatch.setattr(series, "samples", lambda *_, **__: found)
    subject = Subject("two", "codel", None, "backlog_down_packets_peak_s[0,4]")
    one = Quantities(result).estimate(subject)
    assert (one.mean, one.low, one.high) == pytest.approx(expected)


def test_the_time_of_the_largest_sample_is_that_of_each_run(
    result: sj.Result, quantities: Quantities
) -> None:
    def of(run: int) -> float:
        found = samples(result, "link_series", run, link="down")
        return max(found, key=lambda row: row["backlog_packets"])["t_s"] - 0.1

    found = quantities.estimate(Subject("two", "codel", None, "backlog_down_packets_max_s[5,9]"))
    assert found.values == pytest.approx([of(run) for run in RUNS])


def test_samples_at_the_ends_of_intervals_have_an_interval_each(result: sj.Result) -> None:
    found = series.samples(result, "backlog_down_packets")
    one = found.filter(arm="codel", replication=0)
    means = series.averaged(one, 0.2)
    # 0.6 / 0.2 is less than 3.
    assert means.height == one.height == 60
    assert means["value"].to_list() == one["value"].to_list()
    assert means["t_s"].to_list() == pytest.approx([0.2 * n + 0.1 for n in range(60)])


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject("two", "pie", None, "jain"), 'no arm "pie"; expected one of pfifo, codel'),
        (Subject("two", "codel", None, "speed"), 'no metric "speed"; expected one of '),
        (Subject("two", "codel", "video", "share_percent"), 'no group "video"; expected one of '),
        (Subject("two", "codel", None, "backlog_up_packets_mean[1,2]"), 'no series "backlog_up_pa'),
    ],
)
def test_what_does_not_exist_is_reported(
    quantities: Quantities, subject: Subject, expected: str
) -> None:
    with pytest.raises(sj.ResultError) as raised:
        quantities.estimate(subject)
    assert expected in str(raised.value)


def test_a_metric_that_no_run_has_has_no_value(quantities: Quantities) -> None:
    found = quantities.estimate(Subject("two", "codel", "udp", "fct_s_mean"))
    assert (found.n, found.mean, found.low, found.high) == (0, None, None, None)


@pytest.mark.parametrize(
    ("group", "metric"), [(None, "sojourn_down_ms_mean"), ("tcp", "goodput_mbit_per_s_mean")]
)
def test_a_median_over_the_runs_has_no_interval(
    result: sj.Result, quantities: Quantities, group: str | None, metric: str
) -> None:
    def of(run: int) -> float:
        if group is None:
            return link("sojourn_ms_mean")(result, run)
        return mean(row["goodput_mbit_per_s"] for row in data(result, run, group=group))

    found = quantities.estimate(Subject("two", "codel", group, f"median_{metric}"))
    assert found.mean == pytest.approx(statistics.median(of(run) for run in RUNS))
    assert (found.n, found.low, found.high) == (3, None, None)


def test_an_unknown_metric_is_named_without_the_prefix(quantities: Quantities) -> None:
    with pytest.raises(sj.ResultError, match='no metric "speed"; expected one of'):
        quantities.estimate(Subject("two", "codel", None, "median_speed"))
