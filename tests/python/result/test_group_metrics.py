"""Metrics of groups, on a table small enough to check by hand."""

from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.result import metrics
from sojourn.result.validity.bottlenecks import LIMITS


def flow(group: str, **given: float | str | None) -> dict[str, float | str | None]:
    kind = "udp" if group == "cbr" else "tcp"
    return {
        "arm": "a", "replication": 0, "group": group, "kind": kind, "bytes": None,
        "started_s": 20.0, "goodput_mbit_per_s": None, "initial_losses": None,
        "handshake_losses": None, "connected_s": None, "fct_s": None,
        "sent_packets": 0, "received_packets": 0, "missing_packets": None,
        "lost_packets": None,
        "retransmits": None, "ack_rtt_ms_mean": None,
        "base_rtt_ms": 20.0, "direction": "up", "bottleneck": "up", "delivered_bytes": 0,
        **dict.fromkeys(LIMITS), **given,
    }  # fmt: skip


def transfer(
    fct_s: float | None, *, handshake: int = 0, initial: int = 0, at: float = 20.0
) -> dict[str, float | str | None]:
    return flow(
        "web",
        bytes=1000,
        fct_s=fct_s,
        handshake_losses=handshake,
        initial_losses=initial,
        started_s=at,
        goodput_mbit_per_s=99.0,
    )


def row(flows: list[dict[str, float | str | None]]) -> dict[str, float]:
    return groups(flows)[0]


def groups(flows: list[dict[str, float | str | None]]) -> list[dict[str, float]]:
    table = pl.DataFrame(flows, infer_schema_length=None)
    typed = table.cast(
        {
            "bytes": pl.UInt64,
            "connected_s": pl.Float64,
            "fct_s": pl.Float64,
            "goodput_mbit_per_s": pl.Float64,
            "initial_losses": pl.UInt64,
            "handshake_losses": pl.UInt64,
            "sent_packets": pl.UInt64,
            "received_packets": pl.UInt64,
            "missing_packets": pl.UInt64,
            "lost_packets": pl.UInt64,
            "retransmits": pl.UInt64,
            "ack_rtt_ms_mean": pl.Float64,
            "delivered_bytes": pl.UInt64,
        }
    )
    links = pl.DataFrame(
        {
            "arm": "a",
            "replication": 0,
            "link": ["up", "down"],
            "capacity_mbit_per_s": [8.0, 16.0],
        },
        schema_overrides={"replication": typed.schema["replication"]},
    )
    tables = {"flows": typed, "links": links}
    return metrics.of_tables("group", tables, warmup_s=10.0, measured_s=20.0).to_dicts()


def test_handshakes_are_timed_of_connections_that_opened() -> None:
    opened = [{**transfer(0.2), "connected_s": 20.05}, {**transfer(None), "connected_s": 21.05}]
    assert row([*opened, transfer(None)])["handshake_s_mean"] == pytest.approx(0.55)


def test_a_transfer_counts_if_its_whole_beginning_was_measured() -> None:
    web = row(
        [
            transfer(0.2),
            transfer(0.4, initial=2),
            transfer(1.6, handshake=1, initial=1),
            transfer(None),
            transfer(7.0, initial=3, at=9.9),
        ]
    )
    assert web["flows"] == 4
    assert web["initial_loss_percent"] == pytest.approx(50.0)
    assert web["handshake_loss_percent"] == pytest.approx(25.0)
    assert web["fct_s_mean"] == pytest.approx(2.2 / 3)
    assert web["fct_hit_s_mean"] == pytest.approx(1.0)
    assert web["jain"] is None
    assert web["goodput_mbit_per_s_mean"] is None


def test_fairness_is_that_of_connections_without_end() -> None:
    rates = [flow("long", goodput_mbit_per_s=rate, initial_losses=0, handshake_losses=0,
                  started_s=0.5) for rate in (1.0, 3.0)]  # fmt: skip
    found = row(rates)
    assert found["jain"] == pytest.approx(16.0 / 20.0)
    assert found["goodput_mbit_per_s_mean"] == pytest.approx(2.0)
    assert found["fct_s_mean"] is None


def test_a_group_shows_what_its_flows_got_and_paid() -> None:
    def sent(group: str, megabytes: int, rtt_ms: float, **given: float) -> dict[str, Any]:
        return flow(
            group,
            goodput_mbit_per_s=float(megabytes),
            delivered_bytes=megabytes * 1_000_000,
            ack_rtt_ms_mean=rtt_ms,
            sent_packets=1000,
            **given,
        )

    cubic, bbr, down = groups(
        [
            sent("cubic", 1, 30.0, retransmits=10, limited_by_link=0.2, limited_by_cwnd=0.8),
            sent("cubic", 2, 50.0, retransmits=20, limited_by_link=0.5, limited_by_cwnd=0.5),
            sent("bbr", 9, 80.0, retransmits=0),
            {**sent("down", 5, 20.0, retransmits=0), "direction": "down", "bottleneck": "down"},
        ]
    )
    # Of 20 MB and 40 MB.
    assert cubic["capacity_share_percent"] == pytest.approx(15.0)
    assert bbr["capacity_share_percent"] == pytest.approx(45.0)
    assert down["capacity_share_percent"] == pytest.approx(12.5)
    assert cubic["data_share_percent"] == pytest.approx(25.0)
    assert cubic["rtt_inflation_ms_mean"] == pytest.approx(20.0)
    assert cubic["retransmit_percent"] == pytest.approx(1.5)
    assert cubic["limited_by_link_percent"] == pytest.approx(35.0)
    assert bbr["limited_by_link_percent"] is None
    assert bbr["data_share_percent"] == pytest.approx(75.0)
    assert bbr["jain"] is None
    assert down["data_share_percent"] == pytest.approx(100.0)


def test_loss_is_that_of_datagrams() -> None:
    # Thirty of the received were sent before the warm-up; of the missing, four are in flight.
    counts = {"sent_packets": 84, "received_packets": 90, "missing_packets": 24, "lost_packets": 20}
    found = row([flow("cbr", goodput_mbit_per_s=1.0, **counts)])
    assert found["loss_percent"] == pytest.approx(25.0)
    assert found["initial_loss_percent"] is None
    older = row([flow("cbr", sent_packets=80, received_packets=60, goodput_mbit_per_s=1.0)])
    assert older["loss_percent"] == pytest.approx(25.0)


def test_a_deep_buffer_that_drops_nothing_has_no_loss() -> None:
    scenario = sj.Scenario(
        links={"up": sj.Link(rate="10mbit", qdisc="pfifo limit 100000"), "down": "unlimited"},
        traffic=[sj.Udp(direction="up", rate="12mbit")],
        rtt="20ms",
        duration="20s",
        warmup="5s",
    )
    result = sj.run(scenario)
    flow = result.flows.row(0, named=True)
    assert flow["missing_packets"] > 1_000, "they wait"
    assert flow["lost_packets"] == 0
    assert result.table("group")["loss_percent"].to_list() == [0.0]


def test_a_run_with_random_transfers_has_them(scenario: sj.Scenario) -> None:
    drawn = {"distribution": "lognormal", "median": "8kb", "sigma": 1.0}
    traffic = [
        sj.Tcp(direction="up", name="long", count=2),
        sj.Tcp(direction="up", name="web", count=20, bytes=drawn, start_jitter="5s"),
    ]
    built = scenario.replace(traffic=traffic, arms=(), replications=2, duration="8s", warmup="0s")
    result = sj.run(built)
    sizes = result.flows.filter(group="web")["bytes"]
    assert sizes.n_unique() > 30
    summary = result.summary("group")
    assert set(summary["group"]) == {"long", "web"}
    assert summary.filter(pl.col("metric") == "fct_s_mean")["n"].to_list() == [2]


def test_quic_transfers_are_a_group_as_those_of_tcp() -> None:
    result = sj.run(
        sj.Scenario(
            links={"link": sj.Link(rate="10mbit", qdisc="fq_codel")},
            traffic=[
                sj.Quic(name="endless", path=["link"]),
                sj.Quic(name="finite", path=["link"], bytes="100kb", start="2s"),
            ],
            rtt="20ms",
            duration="5s",
            warmup="1s",
        )
    )
    groups = {row["group"]: row for row in result.table("group").iter_rows(named=True)}
    assert groups["endless"]["goodput_mbit_per_s_mean"] > 7
    assert 0.1 < groups["finite"]["fct_s_mean"] < 1
    assert groups["finite"]["initial_loss_percent"] == 0


def test_received_datagrams_are_those_of_the_goodput_and_duplicates_are_none() -> None:
    scenario = sj.Scenario(
        links={
            "up": sj.Link(rate="5mbit", qdisc=sj.Pfifo(limit=1000), duplicate="10%"),
            "down": sj.Link(rate="5mbit", qdisc=sj.Pfifo()),
        },
        traffic=[
            # A queue of two seconds, which does not overflow, stands when measuring begins, and is
            # gone when it ends.
            sj.Udp(name="burst", direction="up", rate="6mbit", stop="5s"),
            sj.Udp(name="cbr", direction="up", rate="1mbit"),
        ],
        rtt="20ms",
        duration="20s",
        warmup="5s",
    )
    cbr = sj.run(scenario).flows.filter(group="cbr").row(0, named=True)
    assert cbr["delivered_bytes"] == 1_448 * cbr["received_packets"]
    # What it sent in the last 1.5 s of the warm-up waited when measuring began, and arrived later.
    assert 115 < cbr["received_packets"] - cbr["sent_packets"] < 140
    assert 0 <= cbr["missing_packets"] < 20
    assert cbr["goodput_mbit_per_s"] < 1.2


def test_a_connection_that_gives_up_is_reported() -> None:
    scenario = sj.Scenario(
        links={
            "up": sj.Link(rate="5mbit", qdisc=sj.Pfifo()),
            "down": sj.Link(rate="5mbit", qdisc=sj.Pfifo(), loss="100%"),
        },
        traffic=[
            sj.Quic(name="quic", direction="up", bytes="10kb", idle_timeout="3s"),
            sj.Tcp(name="stopped", direction="up", bytes="10kb", stop="4s"),
            sj.Ping(direction="up"),
        ],
        rtt="20ms",
        duration="20s",
        warmup="0s",
    )
    result = sj.run(scenario)
    aborted = dict(result.flows.select("group", "aborted").iter_rows())
    assert aborted == {"quic": True, "stopped": False, "ping up": None}
    findings = [finding.text for finding in result.validity.findings]
    assert any("1 of 1 connections of quic failed" in text for text in findings)


def test_rtt_inflation_excludes_the_delays_of_links() -> None:
    scenario = sj.Scenario(
        links={
            "first": sj.Link(rate="100mbit", qdisc="pfifo", delay="15ms"),
            "bottleneck": sj.Link(rate="20mbit", qdisc="fq_codel", delay="40ms"),
            "back": sj.Link(rate="100mbit", qdisc="pfifo", delay="5ms"),
        },
        traffic=[sj.Tcp(name="bulk", path=["first", "bottleneck"], reverse=["back"])],
        rtt="10ms",
        duration="12s",
        warmup="4s",
    )
    result = sj.run(scenario)
    flow = result.flows.row(0, named=True)
    assert (flow["rtt_ms"], flow["base_rtt_ms"]) == (10.0, 70.0)
    inflation = result.table("group")["rtt_inflation_ms_mean"].item()
    waited = result.links.filter(link="bottleneck")["sojourn_ms_mean"].item()
    assert waited < inflation < waited + 3


def test_a_group_has_its_share_of_the_capacity_of_its_bottleneck() -> None:
    scenario = sj.Scenario(
        links={
            "home": sj.Link(rate="100mbit", qdisc="cake bandwidth 4mbit"),
            "modem": sj.Link(rate="5mbit", qdisc="pfifo"),
            "down": sj.Link(
                rate="8mbit", qdisc="pfifo", changes=[sj.Change(at="9s", rate="4mbit")]
            ),
        },
        traffic=[
            sj.Tcp(name="bulk", path=["home", "modem"], reverse=[]),
            sj.Udp(name="cbr", path=["down"], rate="1.5mbit"),
        ],
        rtt="20ms",
        duration="14s",
        warmup="4s",
    )
    result = sj.run(scenario)
    bottlenecks = dict(result.flows.select("group", "bottleneck").iter_rows())
    assert bottlenecks == {"bulk": "home", "cbr": "down"}
    capacities = dict(result.links.select("link", "capacity_mbit_per_s").iter_rows())
    assert capacities == pytest.approx({"home": 4.0, "modem": 5.0, "down": 6.0})
    shares = dict(result.table("group").select("group", "capacity_share_percent").iter_rows())
    assert 90 < shares["bulk"] < 97
    assert shares["cbr"] == pytest.approx(25.0, rel=0.01)
