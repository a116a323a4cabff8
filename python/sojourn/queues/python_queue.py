"""Queues written in Python."""

import hashlib
from random import Random

from sojourn import _core
from sojourn.errors import invalid
from sojourn.queues.identity import Identity, identity

# The classes that scenarios of this process may name.
_registered: dict[str, type] = {}


def registered(name: str) -> tuple[type, str]:
    """Return the class that scenarios call `name`, and its source."""
    if name not in _registered:
        raise invalid(
            name, "the class is not loaded; define the class and pass it as the qdisc again"
        )
    queue = _registered[name]
    source = _identity(queue).text
    if _name(queue, source) != name:
        raise invalid(
            name,
            "the class, or a value that it reads, has changed since the class was passed "
            "as a qdisc; define variants as subclasses, keep state in the instance, and pass the "
            "class again",
        )
    return queue, source


def _name(queue: type, source: str) -> str:
    digest = hashlib.sha256(source.encode()).hexdigest()
    return f"{_core.python_prefix()}{queue.__name__}:{digest[:12]}"


class _QueueType(type):
    """The class of :class:`PythonQueue`, which is given to scenarios as a class."""

    @property
    def spec(cls) -> str:
        """The name of the class in scenarios, such as ``python:TailDrop:0123456789ab``.

        It holds the first 12 digits of the SHA-256 of the source and of the values that the
        class reads, so an edited class or a variant is a different queue.
        """
        for method in ("enqueue", "dequeue"):
            if getattr(cls, method) is getattr(PythonQueue, method):
                raise invalid(
                    cls.__name__,
                    f"missing method {method}; a Python queue must define enqueue and dequeue",
                )
        own = _identity(cls)
        name = _name(cls, own.text)
        other = _registered.get(name, cls)
        if other is not cls:
            others = _identity(other)
            # A class that has changed since is no longer what the name says.
            if others.text == own.text and not others.equals(own):
                raise invalid(
                    cls.__name__,
                    "two different classes have this name and the same source; "
                    "make the difference a class attribute, or name one of them differently",
                )
        _core.register_python_queue(name, cls, own.text)
        _registered[name] = cls
        return name


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


def defining(queue: type) -> list[type]:
    """Return the class and its bases below :class:`PythonQueue`."""
    return [base for base in queue.__mro__ if base not in PythonQueue.__mro__]


def _identity(queue: type) -> Identity:
    return identity(defining(queue))
