"""WiFi compared with published measurements; docs/validation/wifi.md has the numbers.

Run as a program, it prints the tables of that page.
"""

import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest

import sojourn as sj

# MCS 15 and MCS 0 of HT20 with the short guard interval: two fast stations and a slow one.
FAST, SLOW = "144400kbit", "7200kbit"
# Limits of aggregates in ath9k.
ATH9K = {"aggregate_time": "4ms", "aggregate_packets": 32}
# The queue of the access point, and the limit of its driver.
QUEUES = {
    "FIFO": ("pfifo limit 1000", "123p"),
    "FQ-CoDel": ("fq_codel", "123p"),
    "FQ-MAC": ("mac80211 noaql noairtime", "2 aggregates"),
    "airtime": ("mac80211 noaql", "2 aggregates"),
    "Linux 6.1": ("mac80211", "1000p"),
}
# TCP below a FIFO differs between runs.
REPLICATIONS = {"udp": 1, "tcp": 5}
# Goodput in Mbit/s of the stations before and after airtime fairness: commit 63fefa050477 of Linux,
# "ath9k: Introduce airtime fairness scheduling between stations".
PATCH = {"FQ-MAC": (19.17, 19.83, 2.58), "airtime": (25.09, 25.21, 1.77)}


def _medium(**keys: object) -> sj.Wifi:
    return sj.Wifi(name="home", **ATH9K, **keys)  # type: ignore[arg-type]


def _scenario(queue: str, traffic: list[Any], replications: int) -> sj.Scenario:
    """Return an access point with three stations, each with a radio of its own."""
    qdisc, driver = QUEUES[queue]
    rates = {0: FAST, 1: FAST, 2: SLOW}
    down = _medium(driver=driver, stations=[sj.Station(host=n, rate=r) for n, r in rates.items()])
    ups = {
        f"up{n}": sj.Link(rate=rate, qdisc="pfifo limit 1000", medium=_medium(driver="123p"))
        for n, rate in rates.items()
    }
    return sj.Scenario(
        name="three stations",
        duration="25s",
        warmup="5s",
        replications=replications,
        rtt="2ms",
        seed=1,
        links={"down": sj.Link(rate=FAST, qdisc=qdisc, medium=down), **ups},
        traffic=traffic,
    )


def _udp(host: int) -> sj.Udp:
    return sj.Udp(name=f"udp {host}", path=["down"], rate="100mbit", payload="1472b", host=host)


def _tcp(host: int) -> sj.Tcp:
    return sj.Tcp(name=f"tcp {host}", path=["down"], reverse=[f"up{host}"], cc="cubic", host=host)


def _ping(host: int) -> sj.Ping:
    return sj.Ping(
        name=f"ping {host}", path=["down"], reverse=[f"up{host}"], interval="100ms", host=host
    )


@cache
def _run(queue: str, kind: str) -> sj.Result:
    builders: dict[str, list[Callable[[int], Any]]] = {"udp": [_udp], "tcp": [_tcp, _ping]}
    traffic = [build(host) for build in builders[kind] for host in range(3)]
    return sj.run(_scenario(queue, traffic, REPLICATIONS[kind]))


def _goodput(result: sj.Result, kind: str) -> list[float]:
    groups = result.table("group")
    column = "goodput_mbit_per_s_mean"
    of_hosts = [groups.filter(pl.col("group") == f"{kind} {host}") for host in range(3)]
    return [statistics.mean(rows[column].to_list()) for rows in of_hosts]


def _airtime(result: sj.Result) -> list[float]:
    """Return the shares of airtime of the stations in percent."""
    rows = result.queue_statistics.filter(pl.col("name") == "airtime_us")
    totals = rows.group_by("part_number").agg(pl.col("value").sum()).sort("part_number")
    micros = [float(value) for value in totals["value"]]
    return [100 * value / sum(micros) for value in micros]


def _ping_ms(result: sj.Result, host: int) -> float:
    pings = result.pings.filter(pl.col("flow").str.starts_with(f"ping {host}"))
    return statistics.median(pings["rtt_ms"].drop_nulls().to_list())


@pytest.mark.parametrize(
    ("medium", "message"),
    [
        (
            {"driver": "2 aggregates"},
            "links.down.medium.driver: a limit in aggregates needs the queue mac80211; expected",
        ),
        (
            {"snr_db": 20},
            'links.down.medium.snr_db: needs rate_control = "minstrel_ht"; expected mpdu_loss',
        ),
        (
            {"stations": [{"host": 1, "rate": "13mbit", "snr_db": 20}]},
            'links.down.medium.stations[0].snr_db: needs rate_control = "minstrel_ht"',
        ),
    ],
)
def test_what_does_not_fit_is_refused(medium: dict[str, Any], message: str) -> None:
    link = sj.Link(rate="65mbit", qdisc="pfifo", medium={"type": "wifi", **medium})
    with pytest.raises(sj.ScenarioError) as caught:
        sj.run(sj.Scenario(duration="1s", links={"down": link}, traffic=[_udp(1)]))
    assert str(caught.value).startswith(message)


def test_rate_control_loses_less_than_a_rate_that_is_too_high() -> None:
    def goodput(**keys: object) -> float:
        medium = _medium(driver="2 aggregates", **keys)
        down = sj.Link(rate="65mbit", qdisc="mac80211", medium=medium)
        result = sj.run(
            sj.Scenario(duration="10s", warmup="2s", links={"down": down}, traffic=[_udp(1)])
        )
        return float(result.table("group")["goodput_mbit_per_s_mean"][0])

    by_snr = [goodput(rate_control="minstrel_ht", snr_db=snr_db) for snr_db in (5, 12, 18, 30)]
    print("goodput by SNR:", by_snr)
    assert by_snr == sorted(by_snr)
    assert by_snr[-1] > 0.95 * goodput()
    assert 0.65 < goodput(mpdu_loss="20%") / goodput() < 0.85


def test_probing_higher_rates_costs_a_few_per_cent() -> None:
    def goodput(rate: str, **keys: object) -> float:
        medium = _medium(driver="2 aggregates", **keys)
        down = sj.Link(rate=rate, qdisc="mac80211", medium=medium)
        result = sj.run(
            sj.Scenario(duration="10s", warmup="2s", links={"down": down}, traffic=[_udp(1)])
        )
        return float(result.table("group")["goodput_mbit_per_s_mean"][0])

    # MCS 4 has 39 Mbit/s and no losses at this SNR, and MCS 5 only losses.
    found = goodput("65mbit", rate_control="minstrel_ht", snr_db=19)
    assert found > 0.93 * goodput("39mbit")


@pytest.mark.parametrize("kind", ["udp", "tcp"])
def test_airtime_is_shared_equally(kind: str) -> None:
    assert _airtime(_run("airtime", kind)) == pytest.approx([100 / 3] * 3, abs=1)


def test_with_aql_the_driver_shares_the_air() -> None:
    turns = _airtime(_run("FQ-MAC", "udp"))
    assert _airtime(_run("Linux 6.1", "udp")) == pytest.approx(turns, abs=1)
    assert turns[2] > 36


def test_airtime_fairness_changes_tcp_as_in_ath9k() -> None:
    before, after = (_goodput(_run(queue, "tcp"), "tcp") for queue in ("FQ-MAC", "airtime"))
    published = [new / old for old, new in zip(*PATCH.values(), strict=True)]
    ours = [new / old for old, new in zip(before, after, strict=True)]
    print("goodput after / before:", published, ours)
    assert all(new > old for old, new in zip(before[:2], after[:2], strict=True))
    assert after[2] < before[2]


def test_the_anomaly_goes_and_delay_falls_by_an_order_of_magnitude() -> None:
    anomaly, fair = (sum(_goodput(_run(queue, "udp"), "udp")) for queue in ("FIFO", "airtime"))
    assert fair > 2 * anomaly
    for host in (0, 1):
        slow, fast = (_ping_ms(_run(queue, "tcp"), host) for queue in ("FIFO", "airtime"))
        assert fast < slow / 9


def main() -> None:
    """Print the tables of docs/validation/wifi.md."""
    for kind in ("udp", "tcp"):
        for queue in QUEUES:
            result = _run(queue, kind)
            goodput = _goodput(result, kind)
            air = _airtime(result) if queue not in {"FIFO", "FQ-CoDel"} else []
            pings = [_ping_ms(result, host) for host in range(3)] if kind == "tcp" else []
            cells = (*goodput, sum(goodput), *air, *pings)
            print(f"| {kind} | {queue} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
