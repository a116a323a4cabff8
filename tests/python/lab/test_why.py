"""The lab explains a drop in the words of ``sojourn why``."""

import json

import pytest

import sojourn as sj
from sojourn import _core
from support import wasm

QUICK = ["codel", "pie"]
QUEUES = [
    "pfifo limit 20",
    "fq_codel",
    "red limit 400000 min 30000 max 90000 avpkt 1000 bandwidth 5mbit",
    "dualpi2",
    "cake bandwidth 4mbit",
    "sfb",
    "cobalt",
    "choke limit 1000 min 20 max 60 bandwidth 5mbit",
]


@pytest.mark.parametrize(
    "queue", [*QUICK, *(pytest.param(queue, marks=pytest.mark.slow) for queue in QUEUES)]
)
def test_decisions_are_explained_alike(queue: str) -> None:
    scenario = sj.Scenario(
        links={
            "up": sj.Link(rate="5mbit", qdisc=queue),
            "down": sj.Link(rate="50mbit", qdisc="pfifo"),
        },
        traffic=[sj.Tcp(direction="up", count=3), sj.Udp(direction="up", rate="1mbit")],
        duration="8s",
        warmup="0s",
        replications=1,
        keep_events=True,
        sample_state=True,
    )
    result = sj.run(scenario)
    events = result.events.to_dicts()
    assert len(events) > 3
    link = result.links.filter(link="up").to_dicts()[0]
    parameters = dict(_core.qdisc_parameters(link["qdisc"], 5_000_000))
    asked, expected = [], []
    for number in sorted({0, len(events) // 2, len(events) - 1}):
        why = result.why(drop=number)
        line = next(text for text in str(why).splitlines() if text.startswith("  decision"))
        event = events[number]
        asked.append(
            {
                "parameters": parameters,
                "event": {
                    **{key: event[key] for key in ("action", "reason")},
                    "waited_ms": why["waited_until_action_ms"],
                    "state": json.loads(event["state"]),
                },
            }
        )
        expected.append(line.removeprefix("  decision").strip())
    assert json.loads(wasm.node("why.mjs", text=json.dumps(asked))) == expected
