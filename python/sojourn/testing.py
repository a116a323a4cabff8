"""Checks for user-defined queues."""

from sojourn import _core
from sojourn.document import needs, queue_text
from sojourn.errors import invalid
from sojourn.queues.base import AnyQueue

__all__ = ["check_qdisc"]


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
