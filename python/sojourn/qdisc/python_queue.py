"""Queues written in Python."""

import hashlib
import inspect
import textwrap
from random import Random

from sojourn import _core

# The classes that scenarios of this process may name, and their sources.
_registered: dict[str, tuple[type, str]] = {}


def registered(name: str) -> tuple[type, str]:
    """Return the class that scenarios call `name`, and its source.

    Raises
    ------
    ScenarioError
        No class of this process has that name; a result only keeps the source.
    """
    if name not in _registered:
        message = (
            f"{name}: the class is not loaded; define the class and pass it as the qdisc again"
        )
        raise _core.ScenarioError(message)
    return _registered[name]


class _QueueType(type):
    """The class of :class:`PythonQueue`, which is given to scenarios as a class."""

    @property
    def spec(cls) -> str:
        """The name of the class in scenarios, such as ``python:TailDrop:0123456789ab``.

        It holds the first 12 digits of the SHA-256 of the source, so that an edited class is
        another queue.

        Raises
        ------
        ScenarioError
            The class lacks a method, or its source cannot be read.
        """
        for method in ("enqueue", "dequeue"):
            if getattr(cls, method) is getattr(PythonQueue, method):
                message = f"{cls.__name__}: a Python queue needs a method {method}"
                raise _core.ScenarioError(message)
        source = _source(cls)
        digest = hashlib.sha256(source.encode()).hexdigest()
        name = f"{_core.python_prefix()}{cls.__name__}:{digest[:12]}"
        _core.register_python_queue(name, cls, source)
        _registered[name] = (cls, source)
        return name


class PythonQueue(metaclass=_QueueType):
    """A queue discipline written in Python: subclass it and give the class as a ``qdisc``.

    Every link of every run builds an object of its own. A method that raises ends the run with a
    :class:`QueueError` whose cause has the traceback. The queue owns each packet from `enqueue`
    until it returns it from `dequeue` or drops it; a packet that is merely forgotten is an error.

    A queue with a timer also defines ``next_timer(self) -> float | None``, the simulated time in
    seconds of its next event, and ``on_timer(self, now)``, which is called then.

    Parameters are class attributes: a variant is a subclass with other values. Two runs with the
    same seed must do the same, so draw random numbers from `random` only and read no clock.

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

        Called only while packets wait. Packets may be marked or dropped on the way.

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


def _source(queue: type) -> str:
    """Return the source of the class and of its bases below :class:`PythonQueue`."""
    own = [base for base in queue.__mro__ if base not in PythonQueue.__mro__]
    return "\n".join(_source_of_class(base) for base in own)


def _source_of_class(cls: type) -> str:
    try:
        return textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        pass
    # In a notebook or an interactive session the source of functions is known, that of classes
    # may not be.
    parts = [f"class {cls.__qualname__}:"]
    for name, value in vars(cls).items():
        if inspect.isfunction(value):
            try:
                parts.append(textwrap.indent(textwrap.dedent(inspect.getsource(value)), "    "))
            except (OSError, TypeError):
                message = (
                    f"{cls.__name__}: the source of {name} cannot be read; "
                    "define the class in a file or a notebook"
                )
                raise _core.ScenarioError(message) from None
        elif not name.startswith("__"):
            parts.append(f"    {name} = {value!r}")
    return "\n".join(parts) + "\n"
