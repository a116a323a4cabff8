"""Changes of an experiment that mean nothing: over many draws they must change no result."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import sojourn as sj

DRAWS = 200
# Quantile of the t distribution of a 99.9 % interval: 199 degrees of freedom.
T_999 = 3.340
QUEUES = ("pfifo limit 60", "codel", "pie", "fq_codel", "cake", "dualpi2", "sfq", "red")


def draw(number: int) -> dict[str, Any]:
    """Return experiment `number`: queue, rate, RTT and traffic are drawn."""
    random = np.random.default_rng(number)
    rate = random.uniform(2.0, 12.0)
    ends = {"path": ["there"], "return": ["back"]}
    stream = {"type": "udp", "rate": f"{random.uniform(0.1, 0.6) * rate:.3f}mbit"}
    return {
        "seed": number,
        "duration": "4s",
        "warmup": "1s",
        "rtt": f"{random.uniform(5.0, 80.0):.3f}ms",
        "links": {
            "there": {"rate": f"{rate:.3f}mbit", "qdisc": f"{random.choice(QUEUES)}"},
            "back": {"rate": "20mbit", "qdisc": "pfifo limit 200"},
        },
        "traffic": [
            {"type": "tcp", "name": "bulk", "count": 4, "start_jitter": "200ms", **ends},
            {**stream, "name": "first", "path": ["there"]},
            {**stream, "name": "second", "path": ["there"]},
            {"type": "ping", "name": "ping", "interval": "50ms", **ends},
        ],
    }


def permuted(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the experiment with its traffic in the opposite order."""
    return {**scenario, "traffic": scenario["traffic"][::-1]}


def renamed(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the experiment with other names of its links, in another order of the alphabet."""
    text = json.dumps(scenario)
    changed: dict[str, Any] = json.loads(text.replace('"there"', '"a"').replace('"back"', '"b"'))
    return changed


def shifted(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the experiment with the starts of every second block 1 ns later."""
    blocks = enumerate(scenario["traffic"])
    return {**scenario, "traffic": [{**b, "start": "1ns"} if n % 2 else b for n, b in blocks]}


def divided(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the experiment with its class of four flows as two classes of two."""
    bulk, *others = scenario["traffic"]
    halves = [{**bulk, "name": name, "count": 2} for name in ("bulk", "more")]
    return {**scenario, "traffic": [*halves, *others]}


def exchanged(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the experiment with the names of its two equal streams exchanged."""
    bulk, first, second, ping = scenario["traffic"]
    streams = [{**first, "name": "second"}, {**second, "name": "first"}]
    return {**scenario, "traffic": [bulk, *streams, ping]}


def measured(scenario: dict[str, Any]) -> list[float]:
    """Run an experiment and return goodput, loss and delay, as shares of the possible."""
    result = sj.run(sj.Scenario.from_json(json.dumps(scenario)), jobs=1)
    run = result.table().row(0, named=True)
    groups = {row["group"]: row for row in result.table("group").iter_rows(named=True)}
    link = max(result.table("link").iter_rows(named=True), key=lambda row: row["sojourn_ms_mean"])
    tcp = sum(groups[name]["data_share_percent"] for name in ("bulk", "more") if name in groups)
    # A shift of 1 ns is no change, but is seen in the last digits.
    metrics = [
        tcp,
        groups["first"]["data_share_percent"],
        groups["second"]["data_share_percent"],
        groups["first"]["loss_percent"],
        groups["second"]["loss_percent"],
        100 * link["utilisation"],
        link["loss_percent"],
        link["sojourn_ms_mean"],
        link["sojourn_ms_p95"],
        run["induced_latency_ms"],
    ]
    return [round(metric, 3) for metric in metrics]


@cache
def originals() -> list[list[float]]:
    """Return the metrics of the experiments without a change."""
    return [measured(draw(number)) for number in range(DRAWS)]


@pytest.mark.parametrize("change", [permuted, renamed, shifted, divided, exchanged])
def test_a_change_without_meaning_changes_no_result(
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    changed = [measured(change(draw(number))) for number in range(DRAWS)]
    differences = np.subtract(changed, originals())
    assert np.isfinite(differences).all()
    mean = differences.mean(axis=0)
    half = T_999 * differences.std(axis=0, ddof=1) / np.sqrt(DRAWS)
    assert (np.abs(mean) <= half).all(), (mean, half)
