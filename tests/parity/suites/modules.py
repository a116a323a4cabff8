"""Suite M: the queues of Sojourn's kernel modules (kernel/modules), on Linux 6.12.

Each queue has one CUBIC flow, four of them, and CUBIC beside Reno and datagrams; all at 10 Mbit/s
and 40 ms. The script adds the scenarios that `linux-6.12.json` does not have, with the times at
which flows start. Then measure them in a kernel that `sojourn kernel build 6.12` built:

    python tests/parity/suites/modules.py
    make parity-measure ONLY='^M_'
"""

import json
import random
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "data" / "linux-6.12.json"
QUEUES = {
    "cocoa": "cocoa",
    "cocoa20": "cocoa flow_limit 20",
    "afcd": "afcd",
    "afcd2012": "afcd target_scale 0.01 exponent 4 persist 10ms protect",
    "afq": "afq limit 100",
    "floq": "floq limit 100",
    "predict": "predict",
}
DURATION = 40.0
WARM = 10.0
REPETITIONS = 3
SPREAD = 0.05
"""Flows start at a random time in this many seconds."""


def scenario(load: str, queue: str, ccs: tuple[str, ...], udp_mbit: float) -> dict[str, Any]:
    """Return a scenario with the starts of its repetitions."""
    name = f"M_{load}_{queue}"
    rng = random.Random(name)  # noqa: S311 - starts of flows
    rtt = 40
    flow = {"dir": "up", "rtt": rtt, "stop": DURATION, "bytes": None}
    udp = {"rate_mbps": udp_mbit, "size": 1000, "start": 1.0, "stop": DURATION}
    measured = {"ping": {"n": 0, "mean": 0.0, "p95": 0.0}, "drops": {}, "udp": []}
    return {
        "name": name,
        "suite": "M",
        "label": queue,
        "rate_up": 10,
        "rate_down": 0.0,
        "qdisc": QUEUES[queue],
        "qdisc_down": "",
        "rtt": rtt,
        "duration": DURATION,
        "warm": WARM,
        "ping": 0.1,
        "ping_stop": DURATION,
        "drops_from": WARM,
        "drops_to": DURATION,
        "windows": {},
        "flows": [{**flow, "cc": cc} for cc in ccs],
        "udp": [udp] if udp_mbit else [],
        "reps": [
            {
                "rep": rep,
                "starts": [round(rng.uniform(0, SPREAD), 4) for _ in ccs],
                "ping_start": round(rng.uniform(0, 0.1), 4),
                **measured,
            }
            for rep in range(1, REPETITIONS + 1)
        ],
    }


def scenarios() -> list[dict[str, Any]]:
    """Return all scenarios of the suite."""
    loads = (
        ("1f", ("cubic",), 0.0),
        ("4f", ("cubic",) * 4, 0.0),
        ("mix", ("cubic", "reno"), 1.0),
    )
    return [scenario(load, queue, ccs, udp) for queue in QUEUES for load, ccs, udp in loads]


def main() -> None:
    """Add the scenarios that the file does not have; it has a line for each."""
    head, *lines, tail = FILE.read_text().splitlines()
    known = {json.loads(line.rstrip(","))["name"] for line in lines}
    new = [
        json.dumps(one, separators=(",", ":")) for one in scenarios() if one["name"] not in known
    ]
    kept = [line.rstrip(",") for line in lines]
    FILE.write_text("\n".join([head, ",\n".join([*kept, *new]), tail]) + "\n")


if __name__ == "__main__":
    main()
