"""Replays a test vector of the kernel on a queue; ../README.md specifies the format."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass
class Packet:
    """A packet. A queue marks it by setting the two lowest bits of ``tos``."""

    number: int
    flow: int
    size: int
    tos: int


class Queue(Protocol):
    """What is tested. ``now`` is in nanoseconds."""

    def enqueue(self, now: int, packet: Packet) -> None: ...
    def dequeue(self, now: int) -> Packet | None: ...


def check(vector: dict[str, Any], queue: Queue) -> str | None:
    """Return the first difference from the kernel; ``None``: there is none."""

    def text(p: Packet | None) -> str:
        return f"packet {p.number}{' with CE' if p.tos & 3 == 3 else ''}" if p else "no packet"

    tos: list[int] = []
    for now, first, *rest in vector["events"]:
        if rest:
            queue.enqueue(now, Packet(len(tos), first, *rest))
            tos.append(rest[1])
        else:
            expected = text(Packet(first, 0, 0, 3 if first in vector["marks"] else tos[first]))
            if (got := text(queue.dequeue(now))) != expected:
                return f"at {now} ns: expected {expected}, got {got}"
    left = queue.dequeue(now)
    return f"at the end: expected no packet, got {text(left)}" if left else None
