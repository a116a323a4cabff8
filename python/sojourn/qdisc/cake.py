"""CAKE and its law, as typed objects."""

from dataclasses import dataclass
from typing import ClassVar

from sojourn.qdisc.base import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Cake(Queue):
    """CAKE: a shaper, classes, fair shares of hosts and flows, COBALT in each.

    Parameters
    ----------
    bandwidth
        Rate of the shaper, with its unit; without it the link sets the pace.
    diffserv
        Classes: ``"diffserv3"``, ``"diffserv4"``, ``"diffserv8"``, ``"precedence"`` or
        ``"besteffort"``.
    flowmode
        Who gets fair shares: ``"triple-isolate"``, ``"dual-srchost"``, ``"dual-dsthost"``,
        ``"flows"``, ``"hosts"``, ``"srchost"``, ``"dsthost"`` or ``"flowblind"``.
    nat
        Accepted: flows here bear their own addresses.
    wash
        Clear the class of packets.
    ack_filter
        Drop superfluous TCP ACKs: ``"no-ack-filter"``, ``"ack-filter"`` or
        ``"ack-filter-aggressive"``.
    rtt
        Round-trip time that COBALT is tuned for, with its unit.
    framing
        How the link packs bytes: ``"noatm"``, ``"atm"`` or ``"ptm"``.
    overhead
        What the link adds to an IP packet, in bytes.
    mpu
        What the smallest packet counts, in bytes.
    memlimit
        Bytes that the queue holds.
    ingress
        Count what is dropped as sent.
    """

    kind: ClassVar[str] = "cake"

    bandwidth: str | None = None
    diffserv: str | None = None
    flowmode: str | None = None
    nat: bool | None = None
    wash: bool | None = None
    ack_filter: str | None = None
    rtt: str | None = None
    framing: str | None = None
    overhead: int | None = None
    mpu: int | None = None
    memlimit: int | str | None = None
    ingress: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cobalt(Queue):
    """The law of CAKE on a FIFO: CoDel for delay, BLUE for a full buffer.

    Parameters
    ----------
    limit
        Packets that the queue holds.
    target
        Acceptable standing delay, with its unit.
    interval
        A little more than the longest common RTT, with its unit.
    increment
        Rise of BLUE's probability when the buffer is full.
    decrement
        Fall of BLUE's probability when the buffer is empty.
    ecn
        Mark packets that can carry the mark instead of dropping them.
    """

    kind: ClassVar[str] = "cobalt"

    limit: int | None = None
    target: str | None = None
    interval: str | None = None
    increment: float | None = None
    decrement: float | None = None
    ecn: bool | None = None
