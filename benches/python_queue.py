"""What a packet costs more in a pass-through FIFO written in Python than in pfifo.

Best of several runs of each, in turns, in CPU time of this process. With ``--json FILE`` the result
is added to what `sojourn-bench` has written there.
"""

import argparse
import json
import sys
import time
from collections import deque
from pathlib import Path

import sojourn as sj

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))
BUDGET_US: float = REFERENCE["budgets"]["python_queue_us"]
ROUNDS = 5


class PassThrough(sj.PythonQueue):
    """A FIFO without limit."""

    def __init__(self) -> None:
        self.packets: deque[sj.Packet] = deque()

    def enqueue(self, now: float, packet: sj.Packet) -> None:  # noqa: ARG002
        """Keep the packet."""
        self.packets.append(packet)

    def dequeue(self, now: float) -> sj.Packet:  # noqa: ARG002
        """Return the oldest packet."""
        return self.packets.popleft()


def us_per_packet(qdisc: str | type[sj.PythonQueue]) -> float:
    """Run one scenario on one thread and return CPU microseconds per packet."""
    scenario = sj.Scenario(
        links={
            "up": sj.Link(rate="100mbit", qdisc=qdisc),
            "down": sj.Link(rate="100mbit", qdisc="pfifo limit 100000"),
        },
        traffic=[sj.Tcp(direction="up", count=2)],
        rtt="20ms",
        duration="20s",
        warmup="0s",
    )
    start = time.process_time()
    result = sj.run(scenario, jobs=1)
    spent = time.process_time() - start
    packets = int(result.links.filter(link="up")["sent_packets"].sum())
    return 1e6 * spent / packets


def main() -> int:
    """Print the figures; fail beyond the budget."""
    parser = argparse.ArgumentParser(description="Measure the cost of a queue in Python.")
    parser.add_argument("--json", type=Path, help="add the result to this file")
    path: Path | None = parser.parse_args().json
    rounds = [
        (us_per_packet("pfifo limit 100000"), us_per_packet(PassThrough)) for _ in range(ROUNDS)
    ]
    builtin, python = (min(column) for column in zip(*rounds, strict=True))
    more = python - builtin
    print(f"pfifo {builtin:.2f} µs, PythonQueue {python:.2f} µs per packet: {more:.2f} µs more")
    if path is not None:
        report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        report["python_queue"] = {"us_more_per_packet": more}
        path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(f"budget {BUDGET_US:.0f} µs: {'met' if more <= BUDGET_US else 'missed'}")
    return int(more > BUDGET_US)


if __name__ == "__main__":
    sys.exit(main())
