"""Sections 4.6, 8.3, 11 and 12 of RFC 7928: tables for a discussion, from the catalogue of queues.

A run shows when a queue drops packets: packets of equal size arrive at a constant interval that
differs from their transmission time, so each drop coincides with either an arrival or a departure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sojourn.execute.run import run
from sojourn.queues.queue_file import catalogued
from sojourn.rfc7928_suite.topology import QueueUnderTest, bdp_packets
from sojourn.scenario import Link, Scenario
from sojourn.traffic import Udp

# 1472 B of payload are frames of 1514 B; one arrives every 0.8 ms, and one leaves per 1.2112 ms.
_GAP_S = 0.8e-3
_RATE = "14720kbit"
_DURATION_S = 3.0
# Packets arrive after half of this time, which is a multiple of the interval.
_RTT = "80ms"
# Larger than the rounding of times, smaller than the time between an arrival and a departure.
_TOLERANCE_S = 1e-6
# Shares up to this are 0 %.
_ROUNDED_AWAY = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    """A table for a discussion."""

    number: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def discuss(tested: QueueUnderTest, number: str) -> Discussion:
    """Write the table of a section for a queue."""
    head, rows = {
        "4.6": _scheduling,
        "8.3": _sensitivity,
        "11": _cost,
        "12": _tuning,
    }[number](tested)
    return Discussion(number=number, head=head, rows=tuple(rows))


Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]


def _scheduling(tested: QueueUnderTest) -> Table:
    classes = [key for key, unit in tested.units.items() if unit == "leaves"]
    nested = f"yes, by the parameter {classes[0]}" if classes else "no"
    return ("question", "answer"), [
        ("when packets are dropped", drop_times(tested)),
        ("contains other queues", nested),
        ("summary", str(catalogued(tested.text)["summary"])),
    ]


def _sensitivity(tested: QueueUnderTest) -> Table:
    rows = [
        (item["key"], item["default"], item["range"], item["meaning"])
        for item in catalogued(tested.text)["parameters"]
    ]
    return ("parameter", "default", "allowed", "description"), rows


def _cost(tested: QueueUnderTest) -> Table:
    entry = catalogued(tested.text)
    timers = [key for key, unit in tested.units.items() if unit == "time"]
    flows = [key for key in tested.units if key in {"flows", "buckets", "connections", "divisor"}]
    rows = [
        ("source", entry["source"]),
        ("reconstructed parts", entry["reconstruction"] or "none"),
        ("when packets are dropped", drop_times(tested)),
        ("parameters that are times", ", ".join(timers) or "none"),
        ("parameters that size a flow table", ", ".join(flows) or "none"),
        ("measured cost and memory", "make bench; docs/validation/performance.md, table S6"),
    ]
    return ("question", "answer"), rows


def _tuning(tested: QueueUnderTest) -> Table:
    given = set(tested.text.split())
    rows = [
        (
            item["key"],
            "set by the tester" if item["key"] in given else "default",
            "derived from others or from the link" if item["derived"] else "constant",
            item["provenance"],
        )
        for item in catalogued(tested.text)["parameters"]
    ]
    return ("parameter", "value", "default is", "source of the default"), rows


def drop_times(tested: QueueUnderTest) -> str:
    """Find out whether a queue under constant overload drops at arrivals or at departures."""
    packets = bdp_packets()
    scenario = Scenario(
        name="when packets are dropped",
        links={
            "down": Link(rate="10mbit", qdisc=tested.spec(packets)),
            "up": Link(rate="10mbit", qdisc="pfifo"),
        },
        traffic=[Udp(name="udp", direction="down", rate=_RATE, payload="1472b")],
        rtt=_RTT,
        duration=f"{_DURATION_S:g}s",
        warmup="0s",
        keep_events=True,
    )
    result = run(scenario, jobs=1)
    started_s = result.flows["started_s"].item()
    drops = result.events.filter(pl.col("action") == "drop")
    parts = []
    for reason, name in (("aqm", "AQM"), ("overlimit", "full buffer")):
        times = drops.filter(pl.col("reason") == reason)["t_s"].to_numpy() - started_s
        if not times.size:
            continue
        beside = np.abs(times / _GAP_S - np.round(times / _GAP_S)) * _GAP_S
        share = float((beside < _TOLERANCE_S).mean())
        kinds = [(share, "arrivals"), (1.0 - share, "departures or by a timer")]
        text = " and ".join(f"{part:.0%} at {kind}" for part, kind in kinds if part > _ROUNDED_AWAY)
        parts.append(f"{name}: {text}".replace("%", " %"))
    return "; ".join(parts) or "no packet was dropped under overload"
