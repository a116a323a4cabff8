"""Quality of Outcome: the draft's formula, and the pings and goodput that enter it."""

import numpy as np
import polars as pl
import pytest

import sojourn as sj

NEEDED = sj.Outcome(
    latency={99: (200, 500), 99.9: (300, 600)}, loss_percent=(1, 5), throughput_mbit_per_s=4
)


@pytest.mark.parametrize(
    ("latency", "loss", "throughput", "expected"),
    [
        # The example of the draft.
        ({99: 350, 99.9: 375}, 2, 28, 50),
        ({99: 200, 99.9: 300}, 1, 4, 100),
        ({99: 100, 99.9: 100}, 0, 3.99, 0),
        ({99: 500, 99.9: 300}, 0, 9, 0),
        ({99: 900, 99.9: 300}, 0, 9, 0),
        ({99: 10, 99.9: 10}, 4, 9, 25),
        ({99: 10, 99.9: 10}, None, 9, None),
        ({99: 10, 99.9: 10}, 0, None, None),
    ],
)
def test_the_score_is_the_worst_part(
    latency: dict[float, float], loss: float | None, throughput: float | None, expected: float
) -> None:
    found = NEEDED.scores(latency, loss_percent=loss, throughput_mbit_per_s=throughput)
    assert found["qoo"] == expected


def test_a_run_is_scored_by_its_pings_and_goodput() -> None:
    links = {side: sj.Link(rate="4mbit", qdisc="pfifo limit 100") for side in ("up", "down")}
    traffic = [sj.Tcp(direction="down"), sj.Ping(direction="up", interval="20ms")]
    scenario = sj.Scenario(
        links=links, traffic=traffic, rtt="20ms", duration="8s", warmup="2s", replications=2
    )
    result = sj.run(scenario)
    needed = sj.Outcome(latency={50: (50, 400), 95: (100, 500)}, loss_percent=(1, 20))
    frame = sj.qoo(result, needed)
    assert frame.columns == [
        "arm",
        "replication",
        "qoo",
        "qoo_latency",
        "qoo_loss",
        "qoo_throughput",
    ]
    for row in frame.iter_rows(named=True):
        pings = result.pings.filter(pl.col("t_s") >= 2.0, replication=row["replication"])
        times = pings["rtt_ms"].drop_nulls().to_numpy()
        median, tail = np.percentile(times, [50, 95])
        parts = (1 - (median - 50) / 350, 1 - (tail - 100) / 400)
        assert row["qoo_latency"] == pytest.approx(100 * min(parts))
        assert 0 < row["qoo_latency"] < 100
        assert row["qoo"] == min(row["qoo_latency"], row["qoo_loss"], row["qoo_throughput"])
    slow = sj.Outcome(latency={50: (5000, 6000)}, throughput_mbit_per_s=10)
    assert sj.qoo(result, slow)["qoo"].to_list() == [0.0, 0.0]
    # No flow has this direction.
    assert sj.qoo(result, slow, direction="up")["qoo"].to_list() == [None, None]


def test_a_run_without_pings_has_no_score() -> None:
    links = {side: sj.Link(rate="4mbit", qdisc="pfifo") for side in ("up", "down")}
    scenario = sj.Scenario(links=links, traffic=[sj.Tcp(direction="up")], rtt="20ms", duration="3s")
    assert sj.qoo(sj.run(scenario), NEEDED)["qoo"].to_list() == [None]


def test_wrong_requirements_are_refused() -> None:
    with pytest.raises(sj.ArgumentError, match=r"latency=.*at least one percentile"):
        sj.Outcome(latency={})
    with pytest.raises(sj.ArgumentError, match="percentiles from 0 to 100"):
        sj.Outcome(latency={101: (1, 2)})
    with pytest.raises(sj.ArgumentError, match=r"latency=0\.999: .*did you mean 99\.9\?"):
        sj.Outcome(latency={0.999: (1, 2)})
    with pytest.raises(sj.ArgumentError, match=r"latency\[99\]=.*two numbers >= 0"):
        sj.Outcome(latency={99: (2, 2)})
    with pytest.raises(sj.ArgumentError, match="loss_percent="):
        sj.Outcome(latency={99: (1, 2)}, loss_percent=(-1, 2))
    links = {side: sj.Link(rate="4mbit", qdisc="pfifo") for side in ("up", "down")}
    scenario = sj.Scenario(links=links, traffic=[sj.Tcp(direction="up")], rtt="20ms", duration="3s")
    with pytest.raises(sj.ArgumentError, match=r'direction=.*"down", "up" or "total"'):
        sj.qoo(sj.run(scenario), NEEDED, direction="left")
