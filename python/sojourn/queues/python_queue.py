"""Queues written in Python."""

from random import Random

from sojourn import _core
from sojourn.queues.python_class import PythonClass


class _QueueType(PythonClass):
    """The class of :class:`PythonQueue`, which is given to scenarios as a class."""

    kind = "Python queue"
    needed = ("enqueue", "dequeue")

    def register(self, name: str, source: str) -> None:
        """Make the class usable as a queue."""
        _core.register_python_queue(name, self, source)


class PythonQueue(metaclass=_QueueType):
    """A queue discipline written in Python: subclass it and pass the class as a ``qdisc``.

    Every link of every run creates its own instance. A method that raises ends the run with a
    :class:`QueueError` that shows the traceback. The queue owns each packet from `enqueue`
    until it returns it from `dequeue` or drops it; losing a packet is an error.

    A queue with a timer also defines ``next_timer(self) -> float | None``, the simulated time in
    seconds of its next event, and ``on_timer(self, now)``, which is called then. Sojourn may call
    ``next_timer`` any number of times: it must change nothing.

    Parameters are class attributes: a variant is a subclass with other values. Two runs with the
    same seed must behave identically, which Sojourn cannot enforce: draw random numbers from
    `random` only, read no clock, and keep no state outside the object.

    Attributes
    ----------
    random
        Random numbers of this queue, seeded by the run.
    rate
        Rate of the link in bits per second; None if it varies.
    mtu
        Largest packet in bytes, Ethernet header included.

    Examples
    --------
    >>> from collections import deque
    >>> import sojourn as sj
    >>> class TailDrop(sj.PythonQueue):
    ...     limit = 100
    ...
    ...     def __init__(self):
    ...         self.packets = deque()
    ...
    ...     def enqueue(self, now, packet):
    ...         if len(self.packets) < self.limit:
    ...             self.packets.append(packet)
    ...         else:
    ...             packet.drop("overlimit")
    ...
    ...     def dequeue(self, now):
    ...         return self.packets.popleft() if self.packets else None
    >>> sj.testing.check_qdisc(TailDrop)
    >>> link = sj.Link(rate="10mbit", qdisc=TailDrop)
    """

    random: Random
    rate: int | None
    mtu: int

    def enqueue(self, now: float, packet: _core.Packet) -> None:
        """Take a packet that arrives: keep it or drop it.

        Parameters
        ----------
        now
            Simulated time in seconds.
        packet
            The packet.
        """
        raise NotImplementedError

    def dequeue(self, now: float) -> _core.Packet | None:
        """Return the next packet to send, or None if none may be sent now.

        Called only while packets wait. The method may mark packets and drop others before it
        returns one.

        Parameters
        ----------
        now
            Simulated time in seconds.

        Returns
        -------
        Packet or None
            A packet that waits in this queue.
        """
        raise NotImplementedError
