"""The evolution of Cocoa's limit, compared with a plot of its authors."""

import polars as pl
import pytest

import sojourn as sj
from sojourn.result import metrics
from support.shell import ROOT

# A packet of 1514 B at 100 Mbit/s.
PACKET_MS = 0.12112
BASE_RTT_MS = 50.03


@pytest.fixture(scope="module")
def result() -> sj.Result:
    """Run the module three times with the TCP of Linux 6.1, which takes both courses of the limit.

    The runs differ in the phase of the ticks of the hosts.
    """
    file = ROOT / "papers" / "cocoa" / "trajectory.toml"
    text = file.read_text(encoding="utf-8").replace('"linux-4.19"', '"linux"')
    scenario = sj.Scenario.from_toml(text)
    module = [arm for arm in scenario.arms if arm.name == "cocoa"]
    return sj.run(scenario.replace(replications=3, arms=module))


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
    published = [(0.3, 61.9), (20.4, 74.7), None, (132.0, 147.7), (197.4, 148.8)]
    for (at, limit), loss in zip(found, published, strict=True):
        # A burst made the third published loss come at 51.6 s, before the limit was reached.
        if loss is not None:
            assert at == pytest.approx(loss[0], rel=0.04, abs=0.2)
            assert limit * PACKET_MS + BASE_RTT_MS == pytest.approx(loss[1], rel=0.015)


def test_a_limit_that_leaves_a_standing_queue_shrinks_by_it(result: sj.Result) -> None:
    series = queue(result, 0)
    after = series.filter(pl.col("t_s").is_between(136.0, 200.0))
    # Published: 72.8 ms, the smallest mean of 0.2 s after the loss at 132 s; then a limit of 610.
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
    throughput = result.table("link").filter(group="down")["throughput_mbit_per_s"]
    assert throughput[0] == pytest.approx(97.8, abs=1.5)
    assert metrics.round_trips(result.flows)["ack_rtt_down_ms"][0] == pytest.approx(97.7, rel=0.04)
