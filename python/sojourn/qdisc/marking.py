"""Queue disciplines that signal at random, as typed objects."""

from dataclasses import dataclass
from typing import ClassVar

from sojourn.qdisc.base import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Choke(Queue):
    """RED that drops an arrival together with a packet drawn at random if both are of one flow.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    min
        Average backlog in packets above which arrivals are compared.
    max
        Average backlog in packets above which everything is signalled.
    avpkt
        Typical packet size in bytes.
    burst
        Packets of a burst that the average rides out.
    probability
        Largest signalling probability below `max`.
    bandwidth
        Rate of the link, with its unit; used to age the average over idle time.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    harddrop
        Drop above `max` even what could be marked.
    """

    kind: ClassVar[str] = "choke"

    limit: int | None = None
    min: int | None = None
    max: int | None = None
    avpkt: int | None = None
    burst: int | None = None
    probability: float | None = None
    bandwidth: str | None = None
    ecn: bool | None = None
    harddrop: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blue(Queue):
    """A signalling probability that losses raise and idle times lower; in part a reconstruction.

    How often an idle link lowers the probability is ours.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    increment
        Rise of the probability when a packet does not fit.
    decrement
        Fall of the probability when the link idles.
    freeze
        Least time between two changes of the probability, with its unit.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "blue"

    limit: int | None = None
    increment: float | None = None
    decrement: float | None = None
    freeze: str | None = None
    ecn: bool | None = None
