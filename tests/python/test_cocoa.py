"""The course of Cocoa's limit, as in the plots of its authors, on the simulator."""

import polars as pl
import pytest

import sojourn as sj
from shell import ROOT
from sojourn.studies import study

# A packet of 1514 B at 100 Mbit/s.
PACKET_MS = 0.12112
BASE_RTT_MS = 50.03


@pytest.fixture(scope="module")
def result() -> sj.Result:
    """Three runs; what differs between them is where the tick of the hosts stands."""
    scenario = sj.Scenario.from_file(ROOT / "papers" / "cocoa" / "trajectory.toml")
    return sj.run(scenario.replace(replications=3))


def queue(result: sj.Result, replication: int) -> pl.DataFrame:
    return result.link_series.filter(link="down", replication=replication)


def losses(series: pl.DataFrame) -> list[tuple[float, int]]:
    """List losses that come more than a second after the last one: when, and behind how many."""
    found: list[tuple[float, float, float]] = []
    lossy = series.filter(pl.col("drops_overlimit") > 0)
    for at, waited_ms in lossy.select("t_s", "sojourn_ms_max").rows():
        if found and at - found[-1][1] < 1.0:
            first, _, longest = found[-1]
            found[-1] = (first, at, max(longest, waited_ms))
        else:
            found.append((at, at, waited_ms))
    return [(first, round(longest / PACKET_MS)) for first, _, longest in found]


def test_the_limit_of_a_reno_flow_goes_the_published_way(result: sj.Result) -> None:
    found = losses(queue(result, 0))
    assert [limit for _, limit in found] == [100, 200, 400, 800, 800]
    published = [(0.3, 62.0), (20.5, 74.6), (55.0, 98.5), (131.0, 147.7), (198.0, 147.7)]
    for (at, limit), (published_at, peak_ms) in zip(found, published, strict=True):
        assert at == pytest.approx(published_at, rel=0.04, abs=0.2)
        assert limit * PACKET_MS + BASE_RTT_MS == pytest.approx(peak_ms, rel=0.01)


def test_a_limit_that_leaves_a_standing_queue_shrinks_by_it(result: sj.Result) -> None:
    series = queue(result, 0)
    after = series.filter(pl.col("t_s").is_between(136.0, 200.0))
    # Published: 72.8 ms, the least mean of 0.2 s after the loss at 131 s; then a limit of 610.
    floor = after["sojourn_ms_mean"].min()
    assert isinstance(floor, float)
    assert floor + BASE_RTT_MS == pytest.approx(72.8, rel=0.02)
    dropped = series.filter(pl.col("t_s").is_between(203.0, 205.0))["drops_overlimit"].sum()
    # All but the arrival that found no room were taken out of the queue.
    assert 800 - (dropped - 1) == pytest.approx(610, abs=10)


def test_one_packet_in_slow_start_decides_between_two_courses(result: sj.Result) -> None:
    found = losses(queue(result, 2))
    assert [limit for _, limit in found][1:] == [400, 800, 800, 616]
    early = [
        queue(result, run).filter(pl.col("t_s") < 1.0)["drops_overlimit"].sum() for run in (0, 2)
    ]
    assert early == [60, 61]


def test_throughput_and_rtt_of_the_run_are_the_published_ones(result: sj.Result) -> None:
    run = study.per_run(result).row(0, named=True)
    assert run["throughput_down_mbit_per_s"] == pytest.approx(97.8, abs=1.5)
    assert run["ack_rtt_down_ms"] == pytest.approx(97.7, rel=0.04)
