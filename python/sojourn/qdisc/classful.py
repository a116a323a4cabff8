"""Queue disciplines with others inside, as typed objects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sojourn.qdisc.base import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Drr(Queue):
    """Classes that take turns by bytes; the flow of a packet chooses one.

    Parameters
    ----------
    classes
        Number of classes that flows are hashed to.
    quantum
        Bytes that a class may send in its turn.
    leaf
        The queue of each class; one alone stands for all, a class without one has a ``pfifo``.

    Examples
    --------
    >>> from sojourn.qdisc import Sfq
    >>> Drr(classes=16, leaf=Sfq()).spec
    'drr classes 16 leaf sfq'
    """

    kind: ClassVar[str] = "drr"

    classes: int | None = None
    quantum: int | None = None
    leaf: Queue | Sequence[Queue] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prio(Queue):
    """Bands in strict order: the first that has a packet sends.

    Parameters
    ----------
    bands
        Number of bands.
    priomap
        The band of each of the 16 priorities that a DSCP may lead to.
    leaf
        The queue of each band; one alone stands for all, a band without one has a ``pfifo``.

    Examples
    --------
    >>> from sojourn.qdisc import CoDel, Pfifo
    >>> Prio(leaf=[CoDel(), Pfifo(limit=10)]).spec
    'prio leaf codel / pfifo limit 10'
    """

    kind: ClassVar[str] = "prio"

    bands: int | None = None
    priomap: Sequence[int] | None = None
    leaf: Queue | Sequence[Queue] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PfifoFast(Queue):
    """Three FIFOs in strict order; the DSCP of a packet chooses one.

    Parameters
    ----------
    limit
        Packets that each of them holds.
    profile
        Whose behaviour where implementations differ; see ``sojourn qdiscs pfifo_fast``.
    """

    kind: ClassVar[str] = "pfifo_fast"

    profile: str | None = None
    limit: int | None = None
