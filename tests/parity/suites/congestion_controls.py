"""Suite C1: the window-based congestion controls of Linux that other suites do not measure.

Each scenario has one flow, or one flow beside CUBIC, at 10 Mbit/s. Only the sender runs the
control. `scenarios` returns what the test bed of data/README.md needs: rates in Mbit/s, times in
seconds, base RTTs in ms, loss in per cent. Loss is random and independent, of data segments and
pings behind the bottleneck.
"""

from typing import Any

CONTROLS = (
    "westwood",
    "htcp",
    "scalable",
    "veno",
    "illinois",
    "bic",
    "hybla",
    "yeah",
    "lp",
)
LOSSY = ("westwood", "veno", "illinois", "hybla")
"""Controls that were made for paths with random loss, or that judge losses by the delay."""
NO_OFFSET = "net.ipv4.tcp_timestamps=2"
"""TCP-LP computes with the timestamps of both hosts, which otherwise have random offsets."""


def flow(cc: str, stop: float) -> dict[str, Any]:
    """Return a flow without end towards the server."""
    return {"dir": "up", "cc": cc, "start": 0.0, "stop": stop, "bytes": 0, "rtt": None}


def scenarios(rep: int) -> list[dict[str, Any]]:
    """Return the scenarios of one repetition, in the order of `CONTROLS`."""
    found: list[dict[str, Any]] = []

    def add(name: str, queue: str, rtt: float, flows: tuple[str, ...], loss: float = 0.0) -> None:
        duration = 60.0
        found.append(
            {
                "name": f"C1_{name}",
                "suite": "C1",
                "rep": rep,
                "label": name.rsplit("_", 1)[-1],
                "rate_up": 10,
                "rtt": rtt,
                "qdisc": queue,
                "flows": [flow(cc, duration) for cc in flows],
                "duration": duration,
                "warm": 10.0,
                "loss": loss,
                "sysctl": [NO_OFFSET] if "lp" in flows else [],
            }
        )

    for cc in CONTROLS:
        add(f"{cc}_100ms_pfifo84", "pfifo limit 84", 100, (cc,))
        add(f"{cc}_20ms_pfifo250", "pfifo limit 250", 20, (cc,))
        add(f"{cc}_50ms_codel", "codel", 50, (cc,))
        add(f"{cc}_cubic_50ms_pfifo84", "pfifo limit 84", 50, (cc, "cubic"))
        if cc in LOSSY:
            add(f"{cc}_50ms_loss_pfifo250", "pfifo limit 250", 50, (cc,), loss=0.5)
    return found
