"""UDP streams and pings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Udp:
    """UDP streams of constant bit rate, which heed no signal.

    Parameters
    ----------
    rate
        Rate of the payload, with its unit.
    direction
        ``"up"`` or ``"down"``: the link of that name is crossed.
    path
        The links that are crossed, in order; instead of `direction`.
    reverse
        The links of the way back, in order; with `path`.
    name
        Name of the group; its streams are numbered.
    count
        Number of streams.
    start
        When they start, with its unit.
    start_jitter
        Each start is moved by a random part of this, with its unit.
    stop
        When they end, with its unit; by default with the run.
    rtt
        Round-trip time with empty queues, or one for each stream, with units.
    dscp
        Class of all packets, in both directions: ``"EF"``, ``"AF42"``, ``"LE"``, 0 to 63.
    host
        Client that they belong to, 0 to 126, for queues that share among hosts.
    payload
        Payload of a datagram: a size with its unit.
    spread
        Each gap is scaled by a random factor within 1 ± `spread`; 0 to 1.
    spacing
        ``"poisson"``: gaps are exponential; ``"even"`` is the default.

    Examples
    --------
    >>> Udp(direction="up", rate="12mbit").rate
    '12mbit'
    """

    kind: ClassVar[str] = "udp"

    rate: str
    direction: str | None = None
    path: Sequence[str] | None = None
    reverse: Sequence[str] | None = None
    name: str | None = None
    count: int | None = None
    start: str | None = None
    start_jitter: str | None = None
    stop: str | None = None
    rtt: str | Sequence[str] | None = None
    dscp: str | int | None = None
    host: int | None = None
    payload: str | int | None = None
    spread: float | None = None
    spacing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Requests that are answered at once, which measure the round trip through all queues.

    Parameters
    ----------
    direction
        ``"up"`` or ``"down"``: requests cross the link of that name, replies the other.
    path
        The links that requests cross, in order; instead of `direction`.
    reverse
        The links that replies cross, in order; with `path`.
    name
        Name of the group; its flows are numbered.
    count
        Number of flows.
    start
        When they start, with its unit.
    start_jitter
        Each start is moved by a random part of this, with its unit.
    stop
        When they end, with its unit; by default with the run.
    rtt
        Round-trip time with empty queues, or one for each flow, with units.
    dscp
        Class of all packets, in both directions: ``"EF"``, ``"AF42"``, ``"LE"``, 0 to 63.
    host
        Client that they belong to, 0 to 126, for queues that share among hosts.
    interval
        Time between requests, with its unit, or ``"back-to-back"``: UDP, each when the reply to the
        one before is there, as netperf's ``UDP_RR``.
    protocol
        ``"icmp"`` or ``"udp"``; by default the former.
    payload
        Of requests by UDP and their replies, with its unit; by default 1 B.
    timeout
        After how long without reply a request that goes back-to-back is given up, with its unit.

    Examples
    --------
    >>> Ping(direction="up", protocol="udp", interval="200ms", dscp="EF").protocol
    'udp'
    """

    kind: ClassVar[str] = "ping"

    direction: str | None = None
    path: Sequence[str] | None = None
    reverse: Sequence[str] | None = None
    name: str | None = None
    count: int | None = None
    start: str | None = None
    start_jitter: str | None = None
    stop: str | None = None
    rtt: str | Sequence[str] | None = None
    dscp: str | int | None = None
    host: int | None = None
    interval: str | None = None
    protocol: str | None = None
    payload: str | int | None = None
    timeout: str | None = None
