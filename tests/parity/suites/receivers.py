"""Suite W: receive windows, and receivers that read slowly or pause.

One flow, or four, at 10 Mbit/s. `scenarios` returns what the test bed of data/README.md needs:
rates in Mbit/s, times in seconds, base RTTs in ms, sizes in bytes. Of each scenario:

| key | meaning |
|---|---|
| `rcvbuf` | `SO_RCVBUF` of the listener; the kernel doubles it |
| `rmem` | maximum of `net.ipv4.tcp_rmem`; its default is the smaller of 131072 and this |
| `read_rate` | the server reads at most 16 KiB, and again when these have taken their time |
| `pause` | from when to when the server does not read |
"""

from typing import Any

DURATION = 40.0
SEGMENT = 1460
"""What Linux reserves of a fixed buffer: the window is that much smaller than `SO_RCVBUF`."""
FIFO = "pfifo limit 1000"


def scenarios(rep: int) -> list[dict[str, Any]]:
    """Return the scenarios of one repetition."""
    found: list[dict[str, Any]] = []

    def add(
        name: str, queue: str, rtt: float, flows: int = 1, cc: str = "cubic", **keys: Any
    ) -> None:
        flow = {"dir": "up", "cc": cc, "start": 0.0, "stop": DURATION, "bytes": 0, "rtt": None}
        label = {FIFO: "pfifo", "pfifo limit 60": "pfifo60"}.get(queue, queue)
        found.append(
            {
                "name": f"W_{name}_{rtt:g}ms_{label}",
                "suite": "W",
                "rep": rep,
                "label": label,
                "rate_up": 10,
                "rtt": rtt,
                "qdisc": queue,
                "flows": [dict(flow) for _ in range(flows)],
                "duration": DURATION,
                "warm": 10.0,
                **keys,
            }
        )

    for window, rtt, queue in (
        (16_384, 20, FIFO),
        (16_384, 100, FIFO),
        (65_536, 20, FIFO),
        (65_536, 20, "codel"),
        (65_536, 100, FIFO),
        (65_536, 200, "codel"),
        (262_144, 100, FIFO),
        (262_144, 100, "codel"),
        (262_144, 200, FIFO),
        (262_144, 200, "pfifo limit 60"),
    ):
        add(f"window{window // 1024}k", queue, rtt, rcvbuf=window + SEGMENT)
    add("window64k_4f", FIFO, 100, flows=4, rcvbuf=65_536 + SEGMENT)
    add("window64k_bbr", FIFO, 100, cc="bbr", rcvbuf=65_536 + SEGMENT)
    for most, rtt, queue in (
        (65_536, 50, FIFO),
        (131_072, 50, "codel"),
        (262_144, 50, FIFO),
        (262_144, 100, FIFO),
        (262_144, 200, "codel"),
        (524_288, 100, FIFO),
        (524_288, 100, "codel"),
        (1_048_576, 200, FIFO),
        (1_048_576, 200, "pfifo limit 60"),
    ):
        add(f"rmem{most // 1024}k", queue, rtt, rmem=most)
    add("rmem256k_4f", FIFO, 100, flows=4, rmem=262_144)
    add("read2m_window64k", FIFO, 50, read_rate=2, rcvbuf=65_536 + SEGMENT)
    add("read5m_window256k", "codel", 100, read_rate=5, rcvbuf=262_144 + SEGMENT)
    add("read5m_rmem1024k", FIFO, 50, read_rate=5, rmem=1_048_576)
    add("pause_window64k", FIFO, 50, pause=(15, 20), rcvbuf=65_536 + SEGMENT)
    add("pause_window64k", "codel", 100, pause=(15, 16), rcvbuf=65_536 + SEGMENT)
    add("pause_rmem1024k", FIFO, 50, pause=(15, 18), rmem=1_048_576)
    return found
