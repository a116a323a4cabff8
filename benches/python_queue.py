"""What a packet costs more in a pass-through FIFO written in Python than in pfifo.

Best of several runs of each, in turns, in CPU time of this process. The budget is 3 µs.
"""

import sys
import time
from collections import deque

import sojourn as sj

BUDGET_US = 3.0
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
    rounds = [
        (us_per_packet("pfifo limit 100000"), us_per_packet(PassThrough)) for _ in range(ROUNDS)
    ]
    builtin, python = (min(column) for column in zip(*rounds, strict=True))
    more = python - builtin
    print(f"pfifo {builtin:.2f} µs, PythonQueue {python:.2f} µs per packet: {more:.2f} µs more")
    print(f"budget {BUDGET_US:.0f} µs: {'met' if more <= BUDGET_US else 'missed'}")
    return int(more > BUDGET_US)


if __name__ == "__main__":
    sys.exit(main())
