"""FIFO queues, CoDel, RED and fair queues, as typed objects."""

from dataclasses import dataclass
from typing import ClassVar

from sojourn.qdisc.base import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Pfifo(Queue):
    """First in, first out, limited in packets.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    ce_threshold
        Delay above which every packet that can carry the mark is marked, with its unit.
    """

    kind: ClassVar[str] = "pfifo"

    limit: int | None = None
    ce_threshold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PfifoHeadDrop(Pfifo):
    """First in, first out, that makes room by dropping the oldest packet."""

    kind: ClassVar[str] = "pfifo_head_drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bfifo(Queue):
    """First in, first out, limited in bytes.

    Parameters
    ----------
    limit
        Size that the queue holds, with its unit, or bytes.
    headdrop
        Make room by dropping the oldest packet.
    ce_threshold
        Delay above which every packet that can carry the mark is marked, with its unit.
    """

    kind: ClassVar[str] = "bfifo"

    limit: str | int | None = None
    headdrop: bool | None = None
    ce_threshold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoDel(Queue):
    """Controlled Delay (RFC 8289).

    Parameters
    ----------
    limit
        Packets that the queue holds.
    target
        Acceptable standing delay, with its unit.
    interval
        A little more than the longest common RTT, with its unit.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    ce_threshold
        Delay above which every such packet is marked, with its unit.
    profile
        Whose behaviour where implementations differ; see ``sojourn qdiscs codel``.
    """

    kind: ClassVar[str] = "codel"

    profile: str | None = None
    limit: int | None = None
    target: str | None = None
    interval: str | None = None
    ecn: bool | None = None
    ce_threshold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FqCoDel(Queue):
    """Flow queues served by deficit round robin, each under CoDel (RFC 8290).

    Parameters
    ----------
    limit
        Packets that all flow queues together hold.
    flows
        Number of flow queues.
    target
        Acceptable standing delay of a flow queue, with its unit.
    interval
        A little more than the longest common RTT, with its unit.
    quantum
        Bytes that a flow may send in its turn.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    ce_threshold
        Delay above which every such packet is marked, with its unit.
    memory_limit
        Memory that the packets may take, with its unit.
    drop_batch
        Packets dropped at once when the queue overflows.
    profile
        Whose behaviour where implementations differ; see ``sojourn qdiscs fq_codel``.
    """

    kind: ClassVar[str] = "fq_codel"

    profile: str | None = None
    limit: int | None = None
    flows: int | None = None
    target: str | None = None
    interval: str | None = None
    quantum: int | None = None
    ecn: bool | None = None
    ce_threshold: str | None = None
    memory_limit: str | None = None
    drop_batch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FqNoCoDel(FqCoDel):
    """The flow queues of :class:`FqCoDel` without a law: its target is never reached."""

    kind: ClassVar[str] = "fq_nocodel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Red(Queue):
    """Random Early Detection on the average backlog in bytes; adaptive on request.

    Parameters
    ----------
    limit
        Bytes that the queue holds.
    avpkt
        Typical packet size in bytes.
    min
        Average backlog in bytes below which nothing is signalled.
    max
        Average backlog in bytes from which everything is signalled.
    burst
        Packets of a burst that the average rides out.
    bandwidth
        Rate of the link, with its unit; used to age the average over idle time.
    probability
        Largest signalling probability below `max`.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    adaptive
        Adapt the probability to keep the average in the middle of its band.
    gentle
        Above `max`, let the probability rise slowly to 1.
    harddrop
        Drop from `max` on even what could be marked.
    nodrop
        Queue what cannot be marked; needs `ecn`.
    leaf
        Where packets wait, with the limits that it has, instead of a FIFO of `limit` bytes.
    """

    kind: ClassVar[str] = "red"

    limit: int | None = None
    avpkt: int | None = None
    min: int | None = None
    max: int | None = None
    burst: int | None = None
    bandwidth: str | None = None
    probability: float | None = None
    ecn: bool | None = None
    adaptive: bool | None = None
    gentle: bool | None = None
    harddrop: bool | None = None
    nodrop: bool | None = None
    leaf: Queue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ared(Red):
    """RED whose probability follows the load: :class:`Red` with `adaptive` on."""

    kind: ClassVar[str] = "ared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sfq(Queue):
    """Stochastic fair queueing: hashed flow queues served round robin.

    Parameters
    ----------
    limit
        Packets that all flow queues together hold.
    depth
        Packets that one flow queue holds.
    flows
        Number of flows served at once.
    divisor
        Number of hash buckets.
    quantum
        Bytes that a flow may send in its turn.
    perturb
        Time between two changes of the hash, with its unit.
    headdrop
        Drop the oldest packet of a slot, not the newest.
    ce_threshold
        Delay above which every packet that can carry the mark is marked, with its unit.
    """

    kind: ClassVar[str] = "sfq"

    limit: int | None = None
    depth: int | None = None
    flows: int | None = None
    divisor: int | None = None
    quantum: int | None = None
    perturb: str | None = None
    headdrop: bool | None = None
    ce_threshold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fq(Queue):
    """Flow queues served by deficit round robin, each with a limit of its own.

    Parameters
    ----------
    limit
        Packets that all flow queues together hold.
    flow_limit
        Packets that one flow queue holds.
    quantum
        Bytes that a flow may send in its turn.
    initial_quantum
        Bytes that a flow may send in its first turn.
    refill_delay
        Absence after which a flow comes back with a quantum of credit, with its unit.
    orphan_mask
        Bits of the hash that tell flows apart.
    ce_threshold
        Delay above which every packet that can carry the mark is marked, with its unit.
    maxrate
        Most that a flow may send, with its unit.
    low_rate_threshold
        A `maxrate` up to this is kept packet by packet, with its unit.
    """

    kind: ClassVar[str] = "fq"

    limit: int | None = None
    flow_limit: int | None = None
    quantum: int | None = None
    initial_quantum: int | None = None
    refill_delay: str | None = None
    orphan_mask: int | None = None
    ce_threshold: str | None = None
    maxrate: str | None = None
    low_rate_threshold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cocoa(Queue):
    """Flow queues as in :class:`Fq`, each limited to what its congestion control needs.

    Parameters
    ----------
    limit
        Packets that all flow queues together hold.
    flow_limit
        Packets that one flow queue holds at first.
    quantum
        Bytes that a flow may send in its turn.
    initial_quantum
        Bytes that a flow may send in its first turn.
    refill_delay
        Absence after which a flow comes back with a quantum of credit, with its unit.
    orphan_mask
        Bits of the hash that tell flows apart.
    guard_interval
        Intervals without loss for which a limit is watched before it may shrink.
    max_increase
        Most that a limit is multiplied with at once.
    max_monitoring_interval
        Longest time for which a limit is watched, with its unit.
    profile
        Whose behaviour where implementations differ; see ``sojourn qdiscs cocoa``.
    """

    kind: ClassVar[str] = "cocoa"

    profile: str | None = None
    limit: int | None = None
    flow_limit: int | None = None
    quantum: int | None = None
    initial_quantum: int | None = None
    refill_delay: str | None = None
    orphan_mask: int | None = None
    guard_interval: float | None = None
    max_increase: float | None = None
    max_monitoring_interval: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sfb(Queue):
    """Stochastic Fair Blue: a signalling probability per flow, in bins that flows share.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    rehash
        Time between two changes of the hash, with its unit.
    db
        Time before a change in which penalised flows enter the next hash, with its unit.
    target
        Packets of a bin at which its probability rises.
    max
        Packets that one flow holds.
    increment
        Rise of the probability of a full bin at an arrival.
    decrement
        Fall of the probability of an empty bin at an arrival.
    penalty_rate
        Packets a second of flows that do not answer.
    penalty_burst
        Packets at once of flows that do not answer.
    leaf
        Where packets wait instead of a FIFO.
    """

    kind: ClassVar[str] = "sfb"

    limit: int | None = None
    rehash: str | None = None
    db: str | None = None
    target: int | None = None
    max: int | None = None
    increment: float | None = None
    decrement: float | None = None
    penalty_rate: int | None = None
    penalty_burst: int | None = None
    leaf: Queue | None = None
