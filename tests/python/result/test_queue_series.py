"""The state of queues over time: the table ``queue_series``."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core

STATISTIC = ["link", "part", "part_number", "name"]


def scenario(qdisc: str, **keys: object) -> sj.Scenario:
    document = {
        "duration": "4s",
        "sample": "15ms",
        "rtt": "20ms",
        "sample_state": True,
        "links": {
            "up": {"rate": "5mbit", "qdisc": qdisc},
            "down": {"rate": "50mbit", "qdisc": "pfifo"},
        },
        "traffic": [{"type": "tcp", "direction": "up", "count": 4}],
    }
    return sj.Scenario.from_json(json.dumps(document | keys))


def state(result: sj.Result, *names: str) -> pl.DataFrame:
    """Return these statistics of the whole queue ``up``, a column each."""
    whole = result.queue_series.filter(pl.col("link") == "up", pl.col("part").is_null())
    wide = whole.pivot("name", index="t_s", values="value", maintain_order=True)
    return wide.select("t_s", *names)


def test_pie_moves_its_probability_by_the_delays_that_it_had() -> None:
    # Of RFC 8033: 15 ms are the target and the time between updates, which the samples follow.
    result = sj.run(scenario("pie profile rfc"))
    rows = state(result, "delay", "prob").rows()
    assert len(rows) == 266
    expected, before = 0.0, 0.0
    for n, (_, delay_us, prob) in enumerate(rows):
        # Delays are in whole microseconds. A sample comes before the update at the same time.
        assert prob == pytest.approx(expected, abs=2e-6 * n), n
        delay = delay_us / 1e6
        change = 0.125 * (delay - 0.015) + 1.25 * (delay - before)
        steps = [(1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (0.1, 2)]
        change /= next((divisor for below, divisor in steps if expected < below), 1)
        if expected >= 0.1:
            change = min(change, 0.02)
        expected = min(max(expected + change, 0.0), 1.0)
        if delay == before == 0.0:
            expected *= 0.98
        before = delay
    assert max(prob for *_, prob in rows) > 0.5


def test_red_signals_as_often_as_its_probability_says() -> None:
    red = "red limit 400kb min 15kb max 90kb avpkt 1514 probability 0.1 bandwidth 5mbit"
    result = sj.run(scenario(red, duration="60s"))
    rows = state(result, "average", "prob", "max_prob").rows()
    assert len(rows) == 4_000
    for _, average, prob, max_prob in rows:
        fraction = (average - 15 * 1_024) / (75 * 1_024)
        assert max_prob == pytest.approx(0.1)
        expected = 1.0 if fraction >= 1 else 0.1 * max(fraction, 0.0)
        assert prob == pytest.approx(expected, abs=2e-6)
    series = result.link_series.filter(pl.col("link") == "up")
    offered = series["sent_packets"] + series["drops_aqm"]
    probs = pl.Series([prob for *_, prob, _ in rows])
    # Gaps between signals are uniform up to 1/p, so that their mean is half of that.
    assert series["drops_aqm"].sum() == pytest.approx(2 * (offered * probs).sum(), rel=0.15)


@pytest.mark.parametrize(
    "qdisc",
    [
        "codel",
        "fq_codel",
        "cake bandwidth 4mbit diffserv4",
        "dualpi2",
        "drr classes 2 leaf pie",
        "red limit 400kb leaf cobalt",
        "cocoa",
    ],
)
def test_the_last_sample_of_a_run_is_its_final_statistics(qdisc: str) -> None:
    result = sj.run(scenario(qdisc, duration="3s"))
    series = result.queue_series
    last = series.filter(pl.col("t_s") == 3.0)
    final = result.queue_statistics.filter(pl.col("link") == "up")
    assert final.height > 0
    shared = last.join(final, on=STATISTIC, how="semi", nulls_equal=True)
    assert shared.select(*STATISTIC, "value").equals(final.select(*STATISTIC, "value"))
    times = result.link_series.filter(pl.col("link") == "up")["t_s"]
    assert series["t_s"].unique(maintain_order=True).equals(times)


def test_radios_have_their_counters_in_the_series() -> None:
    wifi = {"rate": "65mbit", "medium": {"type": "wifi", "name": "home"}, "qdisc": "pfifo"}
    result = sj.run(scenario("pfifo", links={"up": wifi, "down": wifi}, duration="1.5s"))
    last = result.queue_series.filter(pl.col("t_s") == 1.5).drop("t_s")
    assert last.height == 8
    assert last.equals(result.queue_statistics.drop("type"))


def test_nothing_is_recorded_unless_the_scenario_asks_and_nothing_else_changes(
    tmp_path: Path,
) -> None:
    sampled = sj.run(scenario("codel"))
    plain = sj.run(scenario("codel", sample_state=False))
    assert plain.queue_series.is_empty()
    assert plain.queue_series.schema == sampled.queue_series.schema
    for table in json.loads(_core.column_catalogue()):
        if (name := table["name"]) != "queue_series":
            assert getattr(plain, name).equals(getattr(sampled, name)), name
    sampled.save(tmp_path / "sampled")
    loaded = sj.Result.load(tmp_path / "sampled")
    assert loaded.scenario.sample_state is True
    assert loaded.queue_series.equals(sampled.queue_series)


def test_the_estimate_counts_the_rows() -> None:
    def rows(of: Callable[[], sj.Scenario]) -> dict[str, int]:
        estimate = json.loads(_core.estimate(of().checked, jobs=1))
        return {part["cause"]: part["bytes"] for part in estimate["memory"]}

    parts = rows(lambda: scenario("codel", duration="15s"))
    # 16 statistics at most in each of 1000 samples.
    assert parts["16000 rows of queue_series per run"] > 16_000 * 100
    assert not any("queue_series" in cause for cause in rows(lambda: scenario("pfifo")))


def test_a_sweep_has_the_same_metrics_with_it() -> None:
    rates = {"links.up.rate": ["5mbit", "10mbit"]}
    with_it, without = (
        sj.sweep(scenario("codel", sample_state=sample), rates).runs for sample in (True, False)
    )
    assert with_it.equals(without)


def test_events_have_what_the_packet_met_and_with_samples_the_state() -> None:
    result = sj.run(scenario("pie profile rfc", keep_events=True))
    events = result.events.filter(link="up").with_columns(
        prob=pl.col("state").str.json_path_match("$.prob").cast(float)
    )
    assert events.height > 10
    # The probability changes right after a sample.
    before = state(result, "prob").rename({"prob": "sampled"})
    joined = events.join_asof(before, on="t_s", strategy="forward")
    assert joined["prob"].to_list() == pytest.approx(joined["sampled"].to_list())
    series = result.link_series.filter(link="up").select("t_s", "backlog_packets")
    most = series["backlog_packets"].max()
    assert isinstance(most, int)
    assert 0 < (events["backlog_packets"].max() or 0) <= most + 20
    assert events["sojourn_ms"].to_list() == [0] * events.height
    plain = sj.run(scenario("pie profile rfc", keep_events=True, sample_state=False)).events
    assert plain.drop("state").equals(result.events.drop("state"))
    assert plain["state"].null_count() == plain.height
    down = {"rate": "50mbit", "qdisc": "pfifo"}
    lossy = {"up": {"rate": "5mbit", "qdisc": "pie", "loss": "1%"}, "down": down}
    lost = sj.run(scenario("pie", keep_events=True, links=lossy)).events.filter(action="loss")
    assert lost.height > 0
    assert (
        lost.select("sojourn_ms", "backlog_packets", "backlog_bytes", "state").null_count().row(0)
        == (lost.height,) * 4
    )
