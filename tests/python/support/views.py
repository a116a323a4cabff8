"""Views of a live run as the extension passes them."""

import math
from typing import Any


def busy_second(
    link: str, time_s: float, *, changes: list[list[Any]] | None = None, qdisc: str = "fq_codel"
) -> dict[str, Any]:
    """A second of a link with a download and a ping, which varies with the time."""
    load = 1 + math.sin(time_s / 3)
    flow = {
        "protocol": 6,
        "ports": [5201, 43918],
        "bits_per_s": 4e6 * load,
        "sojourn_ms": [4.0 * load, 12.0],
        "backlog_bytes": round(9_000 * load),
        "drops": 2,
        "marks": 0,
    }
    ping = flow | {"protocol": 1, "ports": [0, 77], "bits_per_s": 800.0, "backlog_bytes": 0}
    return {
        "link": link,
        "time_s": float(time_s),
        "bits_per_s": 4e6 * load,
        "backlog_packets": round(6 * load),
        "backlog_bytes": round(9_000 * load),
        "sojourn_ms": [4.0 * load, 11.0 * load, 14.0 * load],
        "drops": 10,
        "marks": 3,
        "dropped": {"overlimit": 8, "aqm": 2},
        "marked": {"aqm": 3},
        "lost": 1,
        "sent_packets": 5_000,
        "sent_bytes": 7_000_000,
        "settings": {
            "rate": "10mbit",
            "delay": "0ms",
            "loss": "0%",
            "duplicate": "0%",
            "jitter": "0ms",
            "qdisc": qdisc,
        },
        "changes": changes or [],
        "flows": [ping, flow],
    }
