"""Measure random scenarios: packets, events and memory beside their estimates."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sojourn as sj
from sojourn import _core
from support import random_scenarios


def measured(first: int, number: int, most: int) -> Iterator[dict[str, Any]]:
    """Run scenarios; yield packets, events and peak memory, each beside its estimate."""
    status = Path("/proc/self/status")

    def resident(key: str) -> int:
        found = re.search(rf"{key}:\s*(\d+) kB", status.read_text(encoding="utf-8"))
        assert found is not None
        return int(found[1]) * 1_024

    def run(tree: dict[str, object]) -> tuple[int, int]:
        scenario = sj.Scenario.from_json(json.dumps(tree))
        before = resident("VmRSS")
        # The peak starts again.
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        result = sj.run(scenario, jobs=1)
        result.summary(), result.validity
        return result.flows["sent_packets"].sum(), resident("VmHWM") - before

    link = {"rate": "1mbit", "qdisc": "pfifo"}
    ping = {"type": "ping", "direction": "up", "interval": "100ms"}
    tree: dict[str, object] = {
        "duration": "1s",
        "links": {"up": link, "down": link},
        "traffic": [ping],
    }
    run(tree)
    empty = resident("VmRSS")
    for seed in range(first, first + number):
        tree = random_scenarios.asymmetric(seed)
        try:
            checked = sj.Scenario.from_json(json.dumps(tree)).checked
        except sj.SojournError:
            continue
        estimate = json.loads(_core.estimate(checked, jobs=1))
        if estimate["packets"] > most:
            continue
        packets, growth = run(tree)
        events = _core.simulated_events(checked)
        blocks: list[dict[str, Any]] = tree["traffic"]  # type: ignore[assignment]
        yield {
            "seed": seed,
            "is_open": any(
                block.get("cc") == "hybla" and "quic" in (block["type"], block.get("transport"))
                for block in blocks
            ),
            "traffic": [block["type"] for block in blocks],
            "packets": (packets, estimate["packets"]),
            "events": (events, estimate["events"]),
            "memory": (empty + growth, estimate["peak_memory_bytes"]),
        }
