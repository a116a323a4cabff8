"""The test cases of RFC 8867: each runs and shows what its section says to observe.

The RFC states behaviour, not numbers. A rate follows the capacity here if it is between half and
all of what the video could get.
"""

from functools import cache
from typing import get_args

import polars as pl
import pytest

import sojourn as sj
from sojourn.scenario.media_cases import Case

AUDIO_MBIT = 0.02
MAX_MBIT = 1.5
MIN_MBIT = 0.15


@cache
def result(case: Case, control: str = "scream") -> sj.Result:
    scenario = sj.rfc8867(case, control=control, replications=1)  # type: ignore[arg-type]
    return sj.run(scenario)


def goodput(found: sj.Result, flow: str, start: float, end: float) -> float:
    """Return the mean goodput of a flow in Mbit/s."""
    series = found.flow_series.filter(
        pl.col("flow") == flow, pl.col("t_s") > start, pl.col("t_s") <= end
    )
    mean = series["goodput_mbit_per_s"].mean()
    assert isinstance(mean, float)
    return mean


def follows(mbit: float, capacity: float, flows: int = 1) -> bool:
    """Whether the sum of the rates of videos is between half and all of what they can get."""
    most = min(capacity - flows * AUDIO_MBIT, flows * MAX_MBIT)
    return 0.5 * most <= mbit <= 1.02 * most


@pytest.mark.parametrize("case", get_args(Case))
def test_a_case_runs_with_its_flows(case: Case) -> None:
    found = result(case)
    videos = found.applications.filter(pl.col("kind") == "media")
    assert len(videos) == {"5.2": 2, "5.3": 2, "5.4": 3, "5.5": 5, "5.7": 2, "5.8": 3}.get(case, 1)
    assert (videos["frames"] > 1000).all()
    assert (videos["feedback_packets"] > 1000).all()
    assert set(videos["target_mbit_per_s_mean"].is_between(MIN_MBIT, MAX_MBIT)) == {True}


@pytest.mark.parametrize("control", ["scream", "gcc"])
def test_the_rate_follows_the_capacity(control: str) -> None:
    """Section 5.1: converge to the capacity of the bottleneck."""
    found = result("5.1", control)
    for end, capacity in ((40, 1.0), (60, 2.5), (80, 0.6), (99, 1.0)):
        assert follows(goodput(found, "video 1", end - 8, end), capacity), (end, capacity)


def test_two_flows_adapt_to_the_capacity() -> None:
    """Section 5.2: decrease when the capacity drops, and ramp up again."""
    found = result("5.2")
    for end, capacity in ((25, 4.0), (50, 2.0), (75, 3.5), (100, 1.0), (124, 2.0)):
        both = sum(goodput(found, f"video {n}", end - 8, end) for n in (1, 2))
        assert follows(both, capacity, flows=2), (end, capacity)


def test_a_congested_feedback_link_does_not_stop_the_forward_flow() -> None:
    """Section 5.3: cope with the lack of feedback."""
    found = result("5.3")
    # The backward capacity is 0.8 Mbit/s from 35 to 70 s; the forward one is 2 Mbit/s from 60 s.
    for end, capacity in ((20, 2.0), (40, 1.0), (60, 0.5), (99, 2.0)):
        assert follows(goodput(found, "video 1", end - 8, end), capacity), (end, capacity)
    for end, capacity in ((35, 2.0), (70, 0.8), (99, 2.0)):
        assert follows(goodput(found, "video 2", end - 8, end), capacity), (end, capacity)


def test_competing_flows_share_the_capacity() -> None:
    """Section 5.4: room for two flows; the third saturates the link."""
    found = result("5.4")
    two = [goodput(found, f"video {n}", 32, 40) for n in (1, 2)]
    assert min(two) > 0.5 * MAX_MBIT
    three = [goodput(found, f"video {n}", 100, 119) for n in (1, 2, 3)]
    assert follows(sum(three), 3.5, flows=3)
    assert min(three) > 0.5 * max(three)


def test_flows_with_other_round_trip_times_are_not_starved() -> None:
    """Section 5.5: how fairly the flows converge whatever their RTT."""
    found = result("5.5")
    rates = [goodput(found, f"video {n}", 200, 299) for n in range(1, 6)]
    assert follows(sum(rates), 4.0, flows=5)
    assert min(rates) > MIN_MBIT


@pytest.mark.parametrize("control", ["scream", "gcc"])
def test_a_long_tcp_flow_leaves_at_least_the_smallest_rate(control: str) -> None:
    """Section 5.6: in the worst case, the media fall to the minimum rate."""
    found = result("5.6", control)
    assert goodput(found, "video 1", 60, 119) > 0.9 * MIN_MBIT
    assert goodput(found, "tcp", 60, 119) > MIN_MBIT


def test_short_tcp_flows_do_not_starve_media() -> None:
    """Section 5.7: streaming at least at the minimum rate."""
    found = result("5.7")
    for n in (1, 2):
        assert goodput(found, f"video {n}", 100, 299) > MIN_MBIT
    short = found.transactions.filter(pl.col("group").str.starts_with("short tcp"))
    assert len(short) > 100


def test_a_paused_flow_leaves_its_share_and_gets_it_back() -> None:
    """Section 5.8: the others reach the largest rate; then all return to a fair share."""
    found = result("5.8")
    assert goodput(found, "video 2", 41, 60) < 0.01
    for n in (1, 3):
        assert goodput(found, f"video {n}", 50, 60) > goodput(found, f"video {n}", 30, 40)
        assert goodput(found, f"video {n}", 50, 60) > 0.75 * MAX_MBIT
    shares = [goodput(found, f"video {n}", 100, 119) for n in (1, 2, 3)]
    assert min(shares) > 0.5 * max(shares)


def test_queues_are_arms() -> None:
    queues = {"fq_codel": sj.FqCoDel(), "dualpi2": sj.DualPi2()}
    scenario = sj.rfc8867("5.1", ecn="l4s", queues=queues)
    assert [arm.name for arm in scenario.arms or ()] == ["fq_codel", "dualpi2"]


def test_the_tail_drop_queue_takes_its_time_at_each_capacity() -> None:
    link = sj.rfc8867("5.1").links["down"]
    assert isinstance(link, sj.Link)
    limits = [link.qdisc, *(change.qdisc for change in link.changes or ())]  # type: ignore[union-attr]
    # 300 ms at 1, 2.5, 0.6 and 1 Mbit/s.
    assert limits == [sj.Bfifo(limit=f"{n}b") for n in (37_500, 93_750, 22_500, 37_500)]


@pytest.mark.parametrize("case", ["5.9", ""])
def test_an_unknown_case_is_refused(case: str) -> None:
    with pytest.raises(sj.ScenarioError, match=r"unknown; expected 5\.1, 5\.2, .* or 5\.8"):
        sj.rfc8867(case)  # type: ignore[arg-type]
