"""A second program for decisions of queues: from a capture, the RFCs and a paper alone.

``reread`` reads the packets of a capture. ``Codel`` is RFC 8289 section 5, ``FqCodel`` RFC 8290
section 4, ``Pie`` RFC 8033 appendix A and ``red`` Floyd and Jacobson (1993). They replay the
packets of a link and compute what the queue must have done, with the numbers behind each decision.
"""

import math
import struct
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import sojourn as sj

# Of packets that still wait at the end.
WAITS = 1 << 62
RTT_MS, RATE = 40, "5mbit"
NS = 1e9
ETHERNET = 14


def scenario(qdisc: Any, **changes: Any) -> sj.Scenario:
    """Both directions loaded, with datagrams and ECN."""
    links = {side: sj.Link(rate=RATE, qdisc=qdisc) for side in ("up", "down")}
    traffic = [
        sj.Tcp(direction="up", count=2, start_jitter="200ms"),
        sj.Tcp(direction="down", cc="reno", ecn=True),
        sj.Udp(direction="up", rate="1mbit"),
        sj.Ping(direction="down", interval="100ms"),
    ]
    base = sj.Scenario(
        links=links,
        traffic=traffic,
        rtt=f"{RTT_MS}ms",
        duration="6s",
        warmup="1s",
        keep_events=True,
        seed=5,
    )
    return base.replace(**changes)


class Seen(NamedTuple):
    """A packet at one link, from the positions of its records; `queue` is the inner queue."""

    number: int
    first: int
    last: int
    arrived: int
    left: int
    ports: tuple[int, ...]
    bytes: int
    comment: str
    queue: int | None = None

    @property
    def is_dropped(self) -> bool:
        """Whether the queue dropped it."""
        return self.comment.startswith("dropped")


def reread(file: Path) -> dict[str, list[Seen]]:
    """Read the packets of each link, as nothing in the package does."""
    data, offset, names = file.read_bytes(), 0, []
    entered: dict[tuple[str, int], tuple[int, int, tuple[int, ...], int, int | None]] = {}
    seen = defaultdict(list)
    position = 0
    while offset < len(data):
        kind, size = struct.unpack("<2I", data[offset : offset + 8])
        options = {}
        at = {1: 16, 6: 28 + (struct.unpack("<I", data[offset + 20 : offset + 24])[0] + 3) // 4 * 4}
        here = offset + at.get(kind, size)
        while here < offset + size - 4:
            code, length = struct.unpack("<2H", data[here : here + 4])
            options[code] = data[here + 4 : here + 4 + length]
            here += 4 + (length + 3) // 4 * 4
        if kind == 1:
            names.append(options[2].decode())
        elif kind == 6:
            place, high, low = struct.unpack("<3I", data[offset + 8 : offset + 20])
            whole = struct.unpack("<I", data[offset + 24 : offset + 28])[0]
            ip = data[offset + 28 : offset + 68]
            # Echo messages have no ports, but a number.
            ports = (ip[24], ip[25]) if ip[9] == 1 else tuple(sorted(ip[20:24]))
            link, _, point = names[place].partition(".")
            now, number = high * 2**32 + low, int.from_bytes(options[5], "little")
            if point == "enq":
                queue = int.from_bytes(options[6], "little") if 6 in options else None
                entered[link, number] = position, now, ports, whole + ETHERNET, queue
            else:
                first, arrived, ports, length, queue = entered.pop((link, number))
                comment = options.get(1, b"").decode()
                seen[link].append(
                    Seen(number, first, position, arrived, now, ports, length, comment, queue)
                )
            position += 1
        offset += size
    # Those that still wait at the end.
    for (link, number), (first, arrived, ports, length, queue) in entered.items():
        seen[link].append(Seen(number, first, position, arrived, WAITS, ports, length, "", queue))
    return seen


def ahead(packets: list[Seen], of: Seen) -> list[Seen]:
    """List the packets in the queue when one arrived."""
    return [one for one in packets if one.first < of.first < one.last]


class Drop(NamedTuple):
    """A decision to drop a packet, with the state after it; times are nanoseconds."""

    number: int
    count: int = 0
    # When the next is due if the delay stays; since when the delay has been too long.
    drop_next: float = 0
    above_since: float = 0


MTU = 1514


@dataclass
class Codel:
    """The state and functions of RFC 8289 section 5; queues hold (number, arrived, bytes)."""

    target: int = 5_000_000
    interval: int = 100_000_000
    queue: deque[tuple[int, int, int]] = field(default_factory=deque)
    bytes: int = 0
    first_above_time: float = 0
    drop_next: float = 0
    count: int = 0
    lastcount: int = 0
    dropping: bool = False

    def enqueue(self, number: int, now: int, size: int) -> None:
        self.queue.append((number, now, size))
        self.bytes += size

    def dodequeue(self, now: int) -> tuple[int | None, bool]:
        if not self.queue:
            self.first_above_time = 0
            return None, False
        number, arrived, size = self.queue.popleft()
        self.bytes -= size
        ok_to_drop = False
        if now - arrived < self.target or self.bytes <= MTU:
            self.first_above_time = 0
        elif self.first_above_time == 0:
            self.first_above_time = now + self.interval
        elif now >= self.first_above_time:
            ok_to_drop = True
        return number, ok_to_drop

    def control_law(self, t: float, count: int) -> float:
        return t + self.interval / math.sqrt(count)

    def dequeue(self, now: int) -> tuple[int | None, list[Drop]]:
        """Return the packet to send and the drops before it."""
        drops: list[Drop] = []
        number, ok_to_drop = self.dodequeue(now)
        if self.dropping:
            if not ok_to_drop:
                self.dropping = False
            while now >= self.drop_next and self.dropping:
                since = self.first_above_time - self.interval
                self.count += 1
                after = self.control_law(self.drop_next, self.count)
                drops.append(Drop(number or 0, self.count, after, since))
                number, ok_to_drop = self.dodequeue(now)
                if not ok_to_drop:
                    self.dropping = False
                else:
                    self.drop_next = after
        elif ok_to_drop:
            since = self.first_above_time - self.interval
            dropped = number or 0
            number, ok_to_drop = self.dodequeue(now)
            self.dropping = True
            delta = self.count - self.lastcount
            self.count = 1
            if delta > 1 and now - self.drop_next < 16 * self.interval:
                self.count = delta
            self.drop_next = self.control_law(now, self.count)
            self.lastcount = self.count
            drops.append(Drop(dropped, self.count, self.drop_next, since))
        return number, drops


@dataclass
class Flow(Codel):
    """A queue of FQ-CoDel."""

    credits: int = 0


class FqCodel:
    """RFC 8290 section 4; the number of the queue of a packet stands in the capture."""

    def __init__(self) -> None:
        self.flows: dict[int, Flow] = {}
        self.new: deque[Flow] = deque()
        self.old: deque[Flow] = deque()

    def enqueue(self, number: int, now: int, size: int, queue: int) -> None:
        flow = self.flows.setdefault(queue, Flow())
        flow.enqueue(number, now, size)
        if not any(flow is one for one in (*self.new, *self.old)):
            flow.credits = MTU
            self.new.append(flow)

    def dequeue(self, now: int) -> tuple[int | None, list[Drop]]:
        """Return the packet to send and the drops before it."""
        drops: list[Drop] = []
        while chosen := self.new or self.old:
            flow = chosen[0]
            if flow.credits <= 0:
                flow.credits += MTU
                self.old.append(chosen.popleft())
                continue
            number, dropped = flow.dequeue(now)
            drops += dropped
            if number is None:
                chosen.popleft()
                if chosen is self.new:
                    self.old.append(flow)
                continue
            flow.credits -= self.sizes[number]
            return number, drops
        return None, drops

    sizes: dict[int, int]


def replay(packets: list[Seen], queue: Codel | FqCodel, rate: int) -> Iterator[tuple[int, Drop]]:
    """Let the packets of a link arrive, and the link take packets when it did; yield all drops.

    Each packet must leave when it did. The link also asks when it has sent a packet and none waits.
    """
    sizes = {one.number: one.bytes for one in packets}
    if isinstance(queue, FqCodel):
        queue.sizes = sizes
    waiting, idle_at = 0, None
    expected: deque[int] = deque()
    for _, one, enters in moves(packets):
        if enters:
            if idle_at is not None and idle_at <= one.arrived:
                assert queue.dequeue(idle_at) == (None, [])
            idle_at = None
            number = () if isinstance(queue, Codel) else (one.queue,)
            queue.enqueue(one.number, one.arrived, one.bytes, *number)  # type: ignore[arg-type]
            waiting += 1
            continue
        if not expected:
            sent, drops = queue.dequeue(one.left)
            expected.extend(drop.number for drop in drops)
            if sent is not None:
                expected.append(sent)
            yield from ((one.left, drop) for drop in drops)
        assert one.number == expected.popleft(), f"packet {one.number} at {one.left} ns"
        assert one.is_dropped == bool(expected), f"packet {one.number} at {one.left} ns"
        waiting -= 1
        if not waiting:
            idle_at = one.left + -(-one.bytes * 8 * 10**9 // rate)


class Chance(NamedTuple):
    """An arrival at PIE or RED, and what is determined of its fate."""

    number: int
    probability: float
    # Of RED, the average and the packets since the last drop; of PIE, the sum of probabilities.
    average: float = 0
    count: int = 0
    # Dropped whatever is drawn, or passed.
    certain: bool | None = None


# Divisors of the change of PIE's probability below these bounds.
SCALES = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2), (2.0, 1))
QDELAY_REF, T_UPDATE, ALPHA, BETA, MAX_BURST = 0.015, 15_000_000, 0.125, 1.25, 0.15


@dataclass
class Pie:
    """The variables and functions of RFC 8033 appendix A; times are seconds."""

    drop_prob: float = 0.0
    accu_prob: float = 0.0
    burst_allowance: float = MAX_BURST
    delay: float = 0.0
    delay_old: float = 0.0
    backlog: int = 0

    def calculate(self) -> None:
        p = ALPHA * (self.delay - QDELAY_REF) + BETA * (self.delay - self.delay_old)
        p /= next(divisor for bound, divisor in SCALES if self.drop_prob < bound)
        if self.drop_prob >= 0.1:
            p = min(p, 0.02)
        self.drop_prob += p
        if self.delay == self.delay_old == 0:
            self.drop_prob *= 0.98
        self.drop_prob = min(max(self.drop_prob, 0.0), 1.0)
        self.delay_old = self.delay
        self.burst_allowance = max(self.burst_allowance - T_UPDATE / NS, 0)

    def arrival(self) -> bool | None:
        """Whether the next packet is certainly dropped or certainly not; None: it is drawn."""
        low = self.delay_old < QDELAY_REF / 2
        if self.drop_prob == 0 and low and self.delay < QDELAY_REF / 2:
            self.burst_allowance = MAX_BURST
        if self.burst_allowance > 1e-12 or (low and self.drop_prob < 0.2):
            return False
        if self.backlog <= 2 * MTU:
            return False
        self.accu_prob = self.accu_prob + self.drop_prob if self.drop_prob else 0.0
        if self.accu_prob < 0.85:
            return False
        return True if self.accu_prob >= 8.5 else None


def pie(packets: list[Seen]) -> Iterator[Chance]:
    """Replay the packets of a link with PIE."""
    state, next_update = Pie(), T_UPDATE
    for now, one, enters in moves(packets):
        while next_update <= now:
            state.calculate()
            next_update += T_UPDATE
        if enters:
            certain = state.arrival()
            yield Chance(one.number, state.drop_prob, average=state.accu_prob, certain=certain)
            if one.is_dropped:
                state.accu_prob = 0.0
            else:
                state.backlog += one.bytes
        elif not one.is_dropped:
            state.delay = (one.left - one.arrived) / NS
            state.backlog -= one.bytes


def moves(packets: list[Seen]) -> Iterator[tuple[int, Seen, bool]]:
    """List arrivals and departures in the order of the capture, with their time."""
    records = [(one.first, one.arrived, one, True) for one in packets]
    records += [(one.last, one.left, one, False) for one in packets if one.left < WAITS]
    for _, now, one, enters in sorted(records, key=lambda record: record[0]):
        yield now, one, enters


def red(packets: list[Seen], parameters: dict[str, Any], rate: int) -> Iterator[Chance]:
    """Floyd and Jacobson, section 4, with the weight of their equation 3 as a power of two."""
    low, high, most = parameters["min"], parameters["max"], parameters["probability"]
    burst, unit = parameters["burst"], parameters["avpkt"]
    weight = next(
        w
        for w in (2.0**-k for k in range(1, 32))
        if (burst + 1 - low / unit) <= (1 - (1 - w) ** burst) / w
    )
    average, count, backlog = 0.0, -1, 0
    waiting, idle_since = 0, None
    for _, one, enters in moves(packets):
        if not enters:
            if not one.is_dropped:
                backlog -= one.bytes
                waiting -= 1
                if not waiting:
                    idle_since = one.left + one.bytes * 8 * NS / rate
            continue
        if idle_since is not None and waiting == 0 and idle_since < one.arrived:
            sent = (one.arrived - idle_since) / NS * rate / (8 * unit)
            average *= (1 - weight) ** sent
        else:
            average += weight * (backlog - average)
        idle_since = None
        certain: bool | None = None
        base = most * (average - low) / (high - low)
        if average < low:
            count, base, certain = -1, 0.0, False
        elif average >= high:
            count, base, certain = -1, 1.0, True
        else:
            count += 1
            certain = False if count == 0 else None
        yield Chance(one.number, base, average=average, count=count, certain=certain)
        if one.is_dropped:
            count = 0 if low <= average < high else -1
        else:
            backlog += one.bytes
            waiting += 1
