"""Suite S: acknowledgement policy, GRO, bursts of TSO, and TCP sources with a rate.

One flow, or several, at 10 Mbit/s. `scenarios` returns what the test bed of data/README.md needs:
rates in Mbit/s, times in seconds, base RTTs in ms, sizes in bytes. Of each scenario:

| key | meaning |
|---|---|
| `quickack` | the server's route has `quickack 1`: it acknowledges each segment |
| `gro` | the server's device has `gro on`, this `gro_flush_timeout` in ns and this
`napi_defer_hard_irqs` |
| `min_tso_segs` | `net.ipv4.tcp_min_tso_segs` |
| `gso_max_segs` | `ip link set dev c0 gso_max_segs` of the client's device |
| `tso` | `ethtool -K c0 tso on` at the client; only with `cake`, which splits what arrives |
| `write_rate` | the client writes a block whenever less was written than this rate permits |
| `write_block` | size of a block |
"""

from typing import Any

DURATION = 40.0
FIFO = "pfifo limit 1000"
SHORT = "pfifo limit 60"
CAKE = "root cake bandwidth 10000kbit"
MS = 1_000_000
"""Nanoseconds."""


def scenarios(rep: int) -> list[dict[str, Any]]:
    """Return the scenarios of one repetition."""
    found: list[dict[str, Any]] = []

    def add(
        name: str, queue: str, rtt: float, flows: int = 1, cc: str = "cubic", **keys: Any
    ) -> None:
        flow = {"dir": "up", "cc": cc, "start": 0.0, "stop": DURATION, "bytes": 0, "rtt": None}
        label = {FIFO: "pfifo", SHORT: "pfifo60", CAKE: "cakebw"}.get(queue, queue)
        found.append(
            {
                "name": f"S_{name}_{rtt:g}ms_{label}",
                "suite": "S",
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

    add("quickack", FIFO, 50, quickack=1)
    add("quickack", "codel", 50, quickack=1)
    add("quickack_reno", SHORT, 20, cc="reno", quickack=1)
    add("quickack_bbr", "codel", 100, cc="bbr", quickack=1)
    add("quickack_4f", "fq_codel", 50, flows=4, quickack=1)
    add("gro2ms", FIFO, 50, gro=[2 * MS, 1])
    add("gro5ms", "codel", 50, gro=[5 * MS, 1])
    add("gro5ms_bbr", SHORT, 50, cc="bbr", gro=[5 * MS, 1])
    add("gro10ms_4f", FIFO, 50, flows=4, gro=[10 * MS, 1])
    add("gro10ms_min8", FIFO, 50, gro=[10 * MS, 1], min_tso_segs=8)
    add("gro20ms_min16", "codel", 100, gro=[20 * MS, 1], min_tso_segs=16)
    add("gro20ms_min16_reno", SHORT, 100, cc="reno", gro=[20 * MS, 1], min_tso_segs=16)
    add("min1", SHORT, 50, min_tso_segs=1)
    add("min8", "codel", 50, min_tso_segs=8)
    add("min16", SHORT, 100, min_tso_segs=16)
    add("min16_reno", "codel", 20, cc="reno", min_tso_segs=16)
    add("min16_4f", FIFO, 50, flows=4, min_tso_segs=16)
    add("max1", "codel", 50, gso_max_segs=1)
    add("max1", SHORT, 100, gso_max_segs=1)
    add("max1_bbr", FIFO, 50, cc="bbr", gso_max_segs=1)
    add("tso", CAKE, 50, tso=1)
    add("tso_min16", CAKE, 50, tso=1, min_tso_segs=16)
    add("rate2m_128k", FIFO, 50, write_rate=2)
    add("rate2m_128k", "codel", 100, write_rate=2)
    add("rate2m_8k", FIFO, 50, write_rate=2, write_block=8_192)
    add("rate8m_128k", "codel", 50, write_rate=8)
    add("rate8m_128k", SHORT, 50, write_rate=8)
    add("rate4m_128k_2f", "fq_codel", 50, flows=2, write_rate=4)
    add("rate4m_128k_bbr", "codel", 50, cc="bbr", write_rate=4)
    return found
