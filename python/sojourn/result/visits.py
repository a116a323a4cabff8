"""The visits of packets to the queues of a run, replayed from its capture."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import Struct

from sojourn.result import captures

# Queues count the Ethernet header, which a capture of a simulated run has not.
ETHERNET = 14
# Packets behind a queue that the wire may still lose: more than a frame of WiFi has.
_BEHIND = 1024
_ICMP, _TCP = 1, 6
_PROTOCOL, _ADDRESSES, _PORTS, _SEQUENCE = 9, slice(12, 20), 20, slice(12, 28)
_PAIR, _ECHO, _TOTAL = Struct(">HH"), Struct(">H"), Struct(">H")
# Of sojourn-capture: client ports begin with the first, servers have others; see its endpoints.rs.
_CLIENTS, _PER_PORT, _SERVER, _QUIC = 49_152, 16_384, 5_001, 443
_SYN, _FIN = 2, 1


@dataclass(slots=True, kw_only=True)
class Ahead:
    """What waited in a queue, or in an inner queue, when a packet arrived."""

    packets: int = 0
    bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Visit:
    """A packet in the queue of a link; times are nanoseconds since the start of the run."""

    link: str
    number: int
    flow: int
    length: int
    head: bytes = field(repr=False)
    arrived: int
    ahead: Ahead
    flows_ahead: int
    # The number of the inner queue, and what waited in it.
    inner: int | None
    inner_ahead: Ahead | None
    left: int = 0
    # When the wire lost it.
    lost: int | None = None
    # As in the capture; empty if the packet passed.
    comment: str = ""
    # Other packets of its flow that waited when it arrived, and when it had left.
    of_flow_ahead: int = 0
    of_flow_behind: int = 0
    flows_behind: int = 0

    @property
    def waited(self) -> int:
        """The sojourn time in nanoseconds."""
        return self.left - self.arrived

    @property
    def is_dropped(self) -> bool:
        """Whether the queue dropped it."""
        return self.comment.startswith("dropped")

    @property
    def source(self) -> str:
        """The address of the sender."""
        return ".".join(map(str, self.head[12:16]))

    @property
    def kind(self) -> str:
        """What the packet is."""
        protocol = self.head[_PROTOCOL]
        if protocol == _ICMP:
            return "echo request" if self.head[20] else "echo reply"
        if protocol != _TCP:
            return "datagram"
        flags = self.head[33]
        if flags & _SYN:
            return "SYN"
        if flags & _FIN:
            return "FIN"
        return "segment" if _payload(self.head) else "acknowledgement"

    @property
    def segment(self) -> bytes | None:
        """The addresses, ports and sequence number of TCP data; None of other packets."""
        return _segment(self.head) if self.kind in {"segment", "SYN", "FIN"} else None


def _segment(head: bytes) -> bytes:
    return head[_SEQUENCE]


def _payload(head: bytes) -> int:
    """Return the bytes of payload of a TCP segment."""
    return int(_TOTAL.unpack_from(head, 2)[0]) - 20 - (head[32] >> 4) * 4


def flow_number(head: bytes) -> int:
    """Return the number of the flow, or of the connection of an application, from the headers."""
    if head[_PROTOCOL] == _ICMP:
        return int(_ECHO.unpack_from(head, 24)[0])
    low, high = sorted(_PAIR.unpack_from(head, _PORTS))
    server = _SERVER if low >= _SERVER else _QUIC
    return int((low - server) * _PER_PORT + high - _CLIENTS)


class _Queue:
    """The packets in the queue of a link."""

    def __init__(self, link: str) -> None:
        self._link = link
        self._waiting: dict[int, deque[Visit]] = {}
        self._whole = Ahead()
        self._by_flow: dict[int, int] = {}
        self._inner: dict[int, Ahead] = {}
        self._behind: deque[Visit] = deque(maxlen=_BEHIND)

    def enter(self, record: captures.Record) -> None:
        """Let a packet enter."""
        own = None
        if record.queue is not None:
            own = self._inner.setdefault(record.queue, Ahead())
        visit = Visit(
            link=self._link,
            number=record.number,
            flow=flow_number(record.head),
            length=record.length + ETHERNET,
            head=record.head,
            arrived=record.at,
            ahead=replace(self._whole),
            flows_ahead=len(self._by_flow),
            inner=record.queue,
            inner_ahead=None if own is None else replace(own),
        )
        visit.of_flow_ahead = self._by_flow.get(visit.flow, 0)
        # Both copies of a duplicated packet have the same number.
        self._waiting.setdefault(record.number, deque()).append(visit)
        self._by_flow[visit.flow] = self._by_flow.get(visit.flow, 0) + 1
        self._count(visit, 1)

    def leave(self, record: captures.Record) -> Visit:
        """Let a packet leave."""
        same = self._waiting[record.number]
        visit = same.popleft()
        if not same:
            del self._waiting[record.number]
        self._by_flow[visit.flow] -= 1
        if not self._by_flow[visit.flow]:
            del self._by_flow[visit.flow]
        self._count(visit, -1)
        visit.left, visit.comment = record.at, record.comment
        visit.of_flow_behind = self._by_flow.get(visit.flow, 0)
        visit.flows_behind = len(self._by_flow)
        if not visit.is_dropped:
            self._behind.append(visit)
        return visit

    def lost(self, record: captures.Record) -> Visit:
        """Return the visit of a packet that the wire lost, with the comment on the loss."""
        return next(
            replace(one, comment=record.comment, lost=record.at)
            for one in reversed(self._behind)
            if one.number == record.number
        )

    def _count(self, visit: Visit, sign: int) -> None:
        whole = [self._whole]
        for one in whole if visit.inner is None else [*whole, self._inner[visit.inner]]:
            one.packets += sign
            one.bytes += sign * visit.length


def visits(path: Path) -> Iterator[Visit]:
    """Replay a capture: yield each visit when it ends, and those of lost packets once more."""
    queues: dict[str, _Queue] = {}
    for record in captures.records(path):
        link, _, place = record.point.rpartition(".")
        queue = queues.get(link) or queues.setdefault(link, _Queue(link))
        if place == "enq":
            queue.enter(record)
        elif record.comment.startswith("lost"):
            yield queue.lost(record)
        else:
            yield queue.leave(record)


def way(path: Path, visit: Visit) -> tuple[int, int | None]:
    """Return when a packet entered its first queue, and when the same segment was sent again."""
    first = None
    segment = visit.segment if visit.comment and not visit.comment.startswith("marked") else None
    for record in captures.records(path):
        if not record.point.endswith(".enq"):
            continue
        if first is None:
            if record.number == visit.number:
                first = record.at
        elif segment is None:
            break
        elif record.number > visit.number and _segment(record.head) == segment:
            return first, record.at
    return visit.arrived if first is None else first, None
