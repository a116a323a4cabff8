"""Checks for user-defined queues, and queues that a program drives."""

from sojourn import _core
from sojourn.document import needs, queue_text
from sojourn.errors import invalid
from sojourn.queues.base import AnyQueue

__all__ = ["DrivenQueue", "check_qdisc"]


def check_qdisc(queue: AnyQueue, *, cases: int = 100, seed: int = 1) -> None:
    """Check that a queue satisfies the contract of Sojourn's own queues.

    The queue is driven with random sequences of arrivals, departures and waits. After every
    call: no packet is lost, invented, altered or reordered within its flow, no packet that is
    not ECN-capable is marked, the backlog counts exactly the waiting packets, and a packet is
    returned whenever some are waiting, unless a timer is set. The same seed gives the same history,
    and a copy of the queue behaves like the original.

    Parameters
    ----------
    queue
        A subclass of :class:`sojourn.PythonQueue` or the file and name of one, such as
        ``"./mine.py:Ramp"``, a plug-in such as ``"./libramp.so"``, a queue object, or a string such
        as ``"fq_codel target 5ms"``.
    cases
        Number of sequences of up to 400 calls.
    seed
        Seed of the sequences.

    Raises
    ------
    AssertionError
        The queue breaks a rule; the message names it.
    ScenarioError
        An argument is not valid.
    QueueError
        A method of the queue raised.

    Examples
    --------
    >>> check_qdisc("fq_codel limit 20", cases=5)
    """
    largest = _core.max_seed()
    for name, value, lowest in (("cases", cases, 1), ("seed", seed, 0)):
        needs(name, value, int, "a whole number")
        if not lowest <= value <= largest:
            raise invalid(name, f"{value} is out of range; expected {lowest} to {largest}")
    text = queue_text("queue", queue)
    needs("queue", text, str, "a PythonQueue class, a queue object or a string")
    _core.check_qdisc(text, cases, seed)


class DrivenQueue:
    """A queue without a simulation: a program enqueues and dequeues its packets.

    Timers of the queue that are due run before each call. Times never decrease.

    Parameters
    ----------
    queue
        As :func:`check_qdisc`.
    rate
        Rate of the link, such as ``"10mbit"``; ``None``: unknown to the queue.
    mtu
        Largest frame of the link in bytes, Ethernet header included.
    seed
        Seed of the random numbers of the queue.

    Raises
    ------
    ScenarioError
        An argument is not valid.

    Examples
    --------
    >>> queue = DrivenQueue("pfifo limit 2")
    >>> for number in range(3):
    ...     queue.enqueue(0, number)
    >>> queue.dequeue(1_000_000), queue.drops, len(queue)
    ((0, 0), [2], 1)
    """

    def __init__(
        self, queue: AnyQueue, *, rate: str | None = None, mtu: int = 1514, seed: int = 1
    ) -> None:
        text = queue_text("queue", queue)
        needs("queue", text, str, "a PythonQueue class, a queue object or a string")
        bits = None if rate is None else round(_core.parse_rate_bits_per_s(rate))
        self._queue = _core.DrivenQueue(text, bits, mtu, seed)

    def enqueue(
        self, now_ns: int, number: int, *, size: int = 1514, flow: int = 0, tos: int = 0
    ) -> None:
        """Offer a packet to the queue.

        Parameters
        ----------
        now_ns
            Time in nanoseconds.
        number
            Identifies the packet.
        size
            Size of the frame in bytes, Ethernet header included.
        flow
            Packets with different numbers belong to different flows.
        tos
            The type-of-service byte; its last two bits are the ECN field: 0 Not-ECT, 1 ECT(1),
            2 ECT(0), 3 CE.
        """
        self._queue.enqueue(now_ns, number, flow, size, tos)

    def dequeue(self, now_ns: int) -> tuple[int, int] | None:
        """Ask the queue for a packet.

        Parameters
        ----------
        now_ns
            Time in nanoseconds.

        Returns
        -------
        tuple of int, or None
            Number and type-of-service byte of the packet that leaves; ``None``: none may leave.
        """
        return self._queue.dequeue(now_ns)

    @property
    def drops(self) -> list[int]:
        """Numbers of the packets dropped so far."""
        return self._queue.drops

    @property
    def marks(self) -> list[int]:
        """Numbers of the packets marked so far."""
        return self._queue.marks

    def __len__(self) -> int:
        """Return the number of packets that wait."""
        return len(self._queue)
