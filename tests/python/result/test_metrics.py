"""Metrics on tables small enough to check by hand."""

import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sojourn.result import metrics
from sojourn.result.estimates import metrics_of


def flows(rates: dict[tuple[str, int], list[float]]) -> pl.DataFrame:
    """Uploads with the given goodputs, by arm and replication."""
    rows = [
        (arm, replication, f"tcp {index}", "tcp", "up", rate, 0.1)
        for (arm, replication), values in rates.items()
        for index, rate in enumerate(values)
    ]
    columns = [
        "arm",
        "replication",
        "flow",
        "kind",
        "direction",
        "goodput_mbit_per_s",
        "connected_s",
    ]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        ping_loss=pl.lit(None, dtype=pl.Float64),
        fct_s=pl.lit(None, dtype=pl.Float64),
        started_s=pl.lit(5.0),
        group=pl.lit("tcp"),
        aborted=pl.lit(value=False),
        bytes=pl.lit(None, dtype=pl.UInt64),
        delivered_bytes=pl.lit(1_000_000),
    )


def links(busy: float, *, arms: tuple[str, ...] = ("a",), replications: int = 1) -> pl.DataFrame:
    rows = [
        (arm, replication, "up", 7.0, None, 2, 1, 1, 1, 4, 5, busy, 0.5)
        for arm in arms
        for replication in range(replications)
    ]
    columns = [
        "arm", "replication", "link", "sojourn_ms_p95", "driver_ms_p95", "drops_overlimit",
        "drops_aqm", "drops_ack_filter", "drops_replaced", "marks_aqm", "marks_ce_threshold",
        "busy_share", "utilisation",
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame.with_columns(pl.col("driver_ms_p95").cast(pl.Float64))


def pings(values: list[tuple[float, float | None]]) -> pl.DataFrame:
    rows = [("a", 0, at, "ping", rtt) for at, rtt in values]
    return pl.DataFrame(rows, schema=["arm", "replication", "t_s", "flow", "rtt_ms"], orient="row")


def per_run(
    flows: pl.DataFrame, links: pl.DataFrame, pings: pl.DataFrame, **span: float
) -> pl.DataFrame:
    return metrics.of_tables("run", {"links": links, "flows": flows, "pings": pings}, **span)


def test_goodput_is_the_sum_and_jain_the_index_over_flows() -> None:
    run = per_run(
        flows({("a", 0): [3.0, 1.0]}), links(0.9), pings([]), warmup_s=0.0, measured_s=2.0
    ).row(0, named=True)
    assert run["goodput_up_mbit_per_s"] == 4.0
    assert run["jain_up"] == pytest.approx(16.0 / (2.0 * 10.0))


def test_a_transfer_counts_for_all_the_time_and_not_in_jain() -> None:
    size = pl.when(pl.col("flow") == "tcp 2").then(1_000_000)
    seen = flows({("a", 0): [3.0, 1.0, 90.0]}).with_columns(bytes=size)
    run = per_run(seen, links(0.9), pings([]), warmup_s=0.0, measured_s=2.0).row(0, named=True)
    # 8 Mbit within 2 s, not 90 Mbit/s for a moment.
    assert run["goodput_up_mbit_per_s"] == pytest.approx(3.0 + 1.0 + 4.0)
    assert run["jain_up"] == pytest.approx(16.0 / (2.0 * 10.0))


def test_one_flow_has_no_fairness_and_no_pings_no_delay() -> None:
    columns = per_run(
        flows({("a", 0): [3.0]}), links(0.9), pings([]), warmup_s=0.0, measured_s=2.0
    ).columns
    assert "jain_up" not in columns
    assert "induced_latency_ms" not in columns


def test_flows_that_got_nothing_have_no_fairness_rather_than_a_wrong_one() -> None:
    run = per_run(
        flows({("a", 0): [0.0, 0.0]}), links(0.9), pings([]), warmup_s=0.0, measured_s=2.0
    ).row(0, named=True)
    assert run["jain_up"] is None


def latencies(
    seen: pl.DataFrame, *, warmup_s: float, load_s: float = 5.0
) -> tuple[float | None, float | None]:
    load = flows({("a", 0): [1.0, 1.0]}).with_columns(started_s=pl.Series([load_s, 9.0]))
    run = per_run(load, links(0.9), seen, warmup_s=warmup_s, measured_s=2.0).row(0, named=True)
    return run["induced_latency_ms"], run["latency_above_base_ms"]


def replies(values: list[tuple[float, float]], *, flow: str = "ping") -> pl.DataFrame:
    """Pings from pairs of the time of the reply in seconds and the RTT in ms."""
    sent = [(at - rtt / 1e3, rtt) for at, rtt in values]
    return pings(list(sent)).with_columns(flow=pl.lit(flow))


def test_induced_latency_is_the_mean_under_load_above_the_smallest_under_load() -> None:
    # One point of the grid each; the last reply ends it.
    series = [(0.6, 40.0), (0.8, 50.0), (1.0, 60.0), (1.2, 90.0), (1.4, 150.0), (1.59, 150.0)]
    induced, above = latencies(replies(series), warmup_s=0.95)
    assert induced == pytest.approx((60.0 + 90.0 + 150.0) / 3 - 60.0)
    assert above == pytest.approx((90.0 + 150.0 + 150.0) / 3 - 40.0)


@pytest.mark.parametrize(("load_s", "smallest"), [(1.1, 50.0), (0.9, 40.0), (1.3, 60.0)])
def test_the_smallest_is_that_of_the_load_from_a_step_before_it_on(
    load_s: float, smallest: float
) -> None:
    series = [(0.75, 40.0), (0.95, 50.0), (1.15, 60.0), (1.35, 90.0), (1.5, 90.0)]
    induced, _ = latencies(replies(series), warmup_s=1.3, load_s=load_s)
    assert induced == pytest.approx(90.0 - smallest)


def test_induced_latency_interpolates_and_averages_the_series_as_flent_does() -> None:
    first = replies([(0.0, 10.0), (0.2, 10.0), (0.4, 30.0), (0.55, 30.0)])
    # At 0.2 s: 30, at 0.4 s: 50; none before 0.1 s, which is half a step.
    second = replies([(0.15, 25.0), (0.25, 35.0), (0.45, 55.0), (0.55, 70.0)], flow="other")
    induced, _ = latencies(pl.concat([first, second]), warmup_s=0.0)
    points = [10.0, (10.0 + 30.0) / 2, (30.0 + 50.0) / 2]
    assert induced == pytest.approx(sum(points) / 3 - 10.0)
    series = metrics.averaged(pl.concat([first, second]))
    assert series["value"].to_list() == pytest.approx(points)
    assert series["t_s"].to_list() == pytest.approx([0.0, 0.2, 0.4])


def test_induced_latency_is_what_flent_itself_computes() -> None:
    """Series with losses, gaps and unequal ends, and what flent made of them."""
    file = Path(__file__).parents[1] / "data" / "flent_mean_span.json"
    cases = json.loads(file.read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 8
    for case in cases:
        seen = pl.concat([replies(values, flow=name) for name, values in case["series"].items()])
        begin = min(values[0][0] for values in case["series"].values())
        # A point stands at 5 s, within rounding.
        induced, _ = latencies(seen, warmup_s=begin + 4.999, load_s=9.0)
        assert induced == pytest.approx(case["mean_span_ms"], abs=1e-6)


def test_pings_that_are_all_alike_have_no_induced_latency_not_even_rounding() -> None:
    # The floating-point mean of equal numbers is not always that number.
    alike = [(0.2 * step, 50.01568) for step in range(1, 46)]
    many = pings(alike)
    assert latencies(many, warmup_s=0.9, load_s=1.0) == (0.0, 0.0)
    three = pl.concat([many.with_columns(flow=pl.lit(name)) for name in "abc"])
    assert latencies(three, warmup_s=0.9, load_s=1.0) == (0.0, 0.0)


def test_a_gap_of_more_than_a_second_has_no_points() -> None:
    # Grid 0.0 .. 2.2; from 0.2 on the next value is further than 1 s, until 1.2.
    induced, _ = latencies(replies([(0.0, 10.0), (0.1, 10.0), (2.3, 120.0)]), warmup_s=0.0)
    slope = (120.0 - 10.0) / 2.2
    points = [10.0, *(10.0 + slope * (at / 10 - 0.1) for at in (14, 16, 18, 20, 22))]
    assert induced == pytest.approx(sum(points) / len(points) - 10.0)


def test_a_series_that_ends_counts_once_past_its_end() -> None:
    first = replies([(0.0, 10.0), (0.5, 10.0), (0.99, 10.0)])
    second = replies([(0.0, 30.0), (0.3, 30.0)], flow="other")
    induced, _ = latencies(pl.concat([first, second]), warmup_s=0.0)
    assert induced == pytest.approx((3 * 20.0 + 2 * 10.0) / 5 - 10.0)


def test_a_run_without_replies_has_no_latency() -> None:
    assert latencies(pings([(0.5, None), (1.0, None)]), warmup_s=0.0) == (None, None)
    # Nor one whose replies all came before the load.
    assert latencies(pings([(0.5, 50.0), (1.0, None)]), warmup_s=0.9) == (None, None)


def test_the_delay_below_the_queue_is_reported_of_links_that_have_a_driver() -> None:
    wired = links(0.5, arms=("a", "b"))
    air = wired.with_columns(link=pl.lit("down"), driver_ms_p95=pl.lit(12.5))
    described = {"warmup_s": 0.0, "measured_s": 10.0}
    one_flow = flows({("a", 0): [1.0], ("b", 0): [1.0]})
    mixed = per_run(one_flow, pl.concat([wired, air]), pings([]), **described)
    assert mixed["driver_down_ms_p95"].to_list() == [12.5, 12.5]
    assert "driver_up_ms_p95" not in mixed.columns
    headings = [metric.heading for metric in metrics_of(mixed.columns)]
    assert "driver down p95 [ms]" in headings
    # An arm may do without a medium.
    only_a = pl.concat([wired, air.filter(arm="a")])
    some = per_run(one_flow, only_a, pings([]), **described)
    assert some["driver_down_ms_p95"].to_list() == [12.5, None]
    none = per_run(one_flow, wired, pings([]), **described)
    assert not [column for column in none.columns if column.startswith("driver")]


def test_signals_are_summed_over_links_and_reasons() -> None:
    run = per_run(
        flows({("a", 0): [1.0]}), links(0.9), pings([]), warmup_s=0.0, measured_s=2.0
    ).row(0, named=True)
    assert (run["drops"], run["marks"]) == (5.0, 9.0)


def test_throughput_is_that_of_ip_and_round_trip_times_are_averaged_over_flows() -> None:
    seen = flows({("a", 0): [1.0, 2.0, 3.0]}).with_columns(
        ack_rtt_ms_mean=pl.Series([50.0, 70.0, None])
    )
    sent = links(0.9).with_columns(
        pl.lit(None).alias(f"sojourn_ms_{name}") for name in ("mean", "p50", "p99", "max")
    )
    sent = sent.with_columns(sent_bytes=pl.lit(1_514_000), sent_packets=pl.lit(1_000))
    found = metrics.of_tables("link", {"links": sent}, warmup_s=0.0, measured_s=2.0)
    (link,) = found.to_dicts()
    assert link["group"] == "up"
    assert link["throughput_mbit_per_s"] == pytest.approx(8 * 1_500_000 / 2.0 / 1e6)
    assert (link["drops"], link["marks"]) == (5.0, 9.0)
    assert link["loss_percent"] == pytest.approx(100 * 5 / 1_005)
    assert link["sojourn_ms_mean"] is None
    assert (
        metrics.of_links(found)["throughput_up_mbit_per_s"].item() == link["throughput_mbit_per_s"]
    )
    assert metrics.round_trips(seen)["ack_rtt_up_ms"].item() == pytest.approx(60.0)


def test_one_run_has_a_mean_and_no_interval() -> None:
    run = per_run(flows({("a", 0): [1.0]}), links(0.9), pings([]), warmup_s=0.0, measured_s=2.0)
    row = metrics.summary(run, metrics_of(run.columns)).row(0, named=True)
    assert (row["n"], row["mean"], row["low"], row["high"]) == (1, 1.0, None, None)


def test_differences_are_paired_by_replication() -> None:
    rates = {("a", k): [1.0 * k] for k in range(6)} | {("b", k): [1.0 * k + 0.5] for k in range(6)}
    both = links(0.9, arms=("a", "b"), replications=6)
    runs = per_run(flows(rates), both, pings([]), warmup_s=0.0, measured_s=2.0)
    of_runs = metrics_of(runs.columns)
    row = metrics.difference(runs, of_runs, "a", "b").row(0, named=True)
    assert (row["n"], row["mean"], row["low"], row["high"]) == (6, 0.5, 0.5, 0.5)
    assert row["significant"]
    opposite = metrics.difference(runs, of_runs, "b", "a")
    assert_frame_equal(opposite.select("mean").head(1), pl.DataFrame({"mean": [-0.5]}))
