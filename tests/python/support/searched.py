"""A small scenario that tests of searches change, and a runner of known functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

import sojourn as sj
from sojourn.scenario.quantities import in_base_units
from sojourn.search.runner import Runner

TEXT = """
name = "searched"
duration = "3s"
warmup = "1s"
rtt = "20ms"
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "ping", type = "ping", direction = "up", interval = "50ms" },
]
"""
ARMS = 'arms = [{ name = "a" }, { name = "b", set = { "links.up.qdisc" = "pfifo" } }]\n'
TARGET = {"links.up.qdisc.target": "loguniform(1ms,100ms)"}
XYZ = {
    "links.up.rate": "uniform(0mbit,1mbit)",
    "links.down.rate": "uniform(0mbit,1mbit)",
    "rtt": "uniform(0s,1s)",
}


class Known(Runner):
    """A runner whose metrics are known functions of the parameters instead of runs."""

    __slots__ = ("calls", "function")

    def __init__(self, function: Callable[[Sequence[float], int], Mapping[str, float]]) -> None:
        super().__init__()
        self.function = function
        self.calls: list[tuple[int, int]] = []

    def measure(
        self,
        scenario: sj.Scenario,
        changes: Sequence[Mapping[str, Any]],
        *,
        replications: int,
        seed: int,
    ) -> list[pl.DataFrame]:
        self.calls.append((len(changes), seed))
        return [
            pl.DataFrame(
                [
                    {"arm": arm, "replication": n, **self.function(_numbers(values), n)}
                    for arm in scenario.checked.arms
                    for n in range(replications)
                ]
            )
            for values in changes
        ]

    def invalid(self, scenario: sj.Scenario, values: Mapping[str, Any]) -> str | None:
        del scenario, values
        return None


def _numbers(values: Mapping[str, Any]) -> list[float]:
    """Return the parameters, each from 0 to 1."""
    return [
        in_base_units(value) / (1e6 if "rate" in path else 1.0) for path, value in values.items()
    ] or [0.5] * 3
