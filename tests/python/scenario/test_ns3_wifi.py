"""WiFi compared with ns-3; docs/validation/wifi.md has the table.

tests/ns3/wifi.json holds the results of ns-3, which the test does not need. Run as a program, it
prints the table.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj

ROOT = Path(__file__).parents[3]
RECORD: dict[str, Any] = json.loads((ROOT / "tests" / "ns3" / "wifi.json").read_text())
CASES = {case["name"]: case for case in RECORD["cases"]}
PAGE = ROOT / "docs" / "validation" / "wifi.md"

# Data bits per symbol of a stream of 20 MHz, by MCS.
BITS = (26, 52, 78, 104, 156, 208, 234, 260)
# As in the program for ns-3.
QUEUE = {"qdisc": "pfifo limit 1", "delay": "0ms"}
DRIVER = "500p"
# The driver here serves stations in turns, the queue of ns-3 is first in, first out.
IN_TURNS = "TCP, MCS 7 and 0, down"
# The TCP of ns-3 does not fill the link with so few ACKs; why was not examined.
STARVED = "TCP, MCS 7, down, ns-3: 14 segments per ACK"


def _rate(case: dict[str, Any], mcs: int) -> str:
    """Return the PHY rate as the tables of the standard print it."""
    micros = 3.6 if case.get("short") else 4.0
    return f"{BITS[mcs % 8] * (1 + mcs // 8) / micros:.1f}mbit"


def _scenario(case: dict[str, Any]) -> sj.Scenario:
    rates = [_rate(case, mcs) for mcs in case["mcs"]]
    air: dict[str, Any] = {
        "name": "air",
        "driver": DRIVER,
        "aggregate_packets": case.get("packets", 64),
        "mpdu_loss": f"{100 * case.get('loss', 0):g}%",
    }
    stations = [sj.Station(host=n, rate=rate) for n, rate in enumerate(rates)]
    links = {"down": sj.Link(rate=rates[0], **QUEUE, medium=sj.Wifi(**air, stations=stations))}
    for n, rate in enumerate(rates):
        links[f"up{n}"] = sj.Link(rate=rate, **QUEUE, medium=sj.Wifi(**air))
    traffic: list[sj.Tcp | sj.Udp] = []
    for n in range(len(rates)):
        there, back = ("up{n}", "down") if case.get("up") else ("down", "up{n}")
        path, reverse = [there.format(n=n)], [back.format(n=n)]
        if case.get("tcp"):
            traffic.append(sj.Tcp(name=f"{n}", path=path, reverse=reverse, cc="cubic", host=n))
        else:
            stream = {"rate": "150mbit", "payload": "1472b", "spacing": "poisson"}
            traffic.append(sj.Udp(name=f"{n}", path=path, **stream, host=n))
    return sj.Scenario(
        duration=f"{RECORD['seconds']}s",
        warmup=f"{RECORD['warmup']}s",
        replications=RECORD["runs"],
        rtt="2ms",
        links=links,
        traffic=traffic,
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """Goodput in Mbit/s of each station."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        return sum(self.ours) / sum(self.theirs)

    @property
    def ratios(self) -> list[float]:
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]


@cache
def _compare(name: str) -> Compared:
    case = CASES[name]
    groups = sj.run(_scenario(case)).table("group")
    column = pl.col("goodput_mbit_per_s_mean")
    means = groups.group_by("group").agg(column.mean()).sort("group")
    return Compared(list(means["goodput_mbit_per_s_mean"]), case["ns3"]["goodput_mbit_per_s"])


def table() -> str:
    """Return the table of the page."""
    rows = ["| case | Sojourn | ns-3 | ratio |", "|---|---|---|---|"]
    for name, case in CASES.items():
        found = _compare(name)
        one_rate = len(set(case["mcs"])) == 1
        columns = [found.ours, found.theirs, found.ratios]
        if one_rate:
            columns = [[sum(found.ours)], [sum(found.theirs)], [found.ratio]]
        texts = [
            ", ".join(f"{value:.{digits}f}" for value in column)
            for column, digits in zip(columns, (2, 2, 3), strict=True)
        ]
        rows.append(f"| {' | '.join([name, *texts])} |")
    return "\n".join(rows)


def _limit(case: dict[str, Any]) -> float:
    """Return how far goodput may be from that of ns-3; the page has the causes."""
    if case.get("tcp"):
        return 0.1
    contends = len(case["mcs"]) > 1
    return 0.06 if contends else 0.01


@pytest.mark.parametrize("name", [name for name in CASES if name not in {IN_TURNS, STARVED}])
def test_goodput_is_that_of_ns3(name: str) -> None:
    found = _compare(name)
    limit = _limit(CASES[name])
    assert found.ratio == pytest.approx(1, abs=limit)
    # Equal stations differ by chance only.
    if len(set(CASES[name]["mcs"])) > 1:
        assert found.ratios == pytest.approx([1, 1], abs=limit)


def test_stations_in_turns_help_the_fast_one() -> None:
    found = _compare(IN_TURNS)
    assert found.ratios[0] > 2
    assert found.ratios[1] < 1


def test_the_page_has_this_table() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")


def main() -> None:
    """Print the table of docs/validation/wifi.md."""
    print(f"# ns3\n{table()}")


if __name__ == "__main__":
    main()
