"""TCP and QUIC connections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp:
    """TCP connections, as Linux has them.

    Parameters
    ----------
    direction
        ``"up"`` or ``"down"``: data crosses the link of that name, acknowledgements the other.
    path
        The links that data crosses, in order; instead of `direction`.
    reverse
        The links that acknowledgements cross, in order; with `path`.
    name
        Name of the group; its connections are numbered.
    count
        Number of connections.
    start
        When they start, with its unit.
    start_jitter
        Each start is moved by a random part of this, with its unit.
    stop
        When they are aborted, with its unit; by default they last as long as the run.
    rtt
        Round-trip time with empty queues, or one for each connection, with units.
    dscp
        Class of all packets, in both directions: ``"EF"``, ``"AF42"``, ``"LE"``, 0 to 63.
    host
        Client that they belong to, 0 to 126, for queues that share among hosts.
    cc
        Congestion control: ``"cubic"``, ``"reno"``, ``"highspeed"``, ``"dctcp"``,
        ``"prague"``, ``"bbr"``, ``"bbr3"``, ``"vegas"`` or ``"ledbat"``.
    slow_start
        How slow start ends besides by congestion: ``"standard"``, not at all; ``"hystart"``, for
        ``"cubic"``; or ``"hystart++"`` (RFC 9406). By default as Linux does.
    bytes
        Bytes to transfer, or the distribution that each connection draws them from, such as
        ``{"distribution": "lognormal", "median": "36kb", "sigma": 1.0}``; by default there is no
        end.
    ecn
        Negotiate ECN (RFC 3168); ``"accurate"``: Accurate ECN, which counts marks (RFC 9768).
    on_ce
        The answer to an echo of CE: ``"reduce"`` as at a loss (RFC 3168); ``"end-slow-start"``
        without reduction, then reduce to 0.8 (RFC 8511); or ``"end-slow-start-only"``.
    initial_window
        Initial window in segments.
    after_idle
        What becomes of the window in a pause: ``"decay"``, it halves each time-out, as in Linux;
        ``"restart"``, it is the initial window after one (RFC 5681); ``"keep"``; or
        ``"validate"`` (RFC 7661).
    pacing
        Spread transmissions over the round trip, as the queue ``fq`` at a Linux sender does: two
        windows a round trip in slow start, 1.2 later. ``"bbr"`` and ``"bbr3"`` are paced anyway.

    Examples
    --------
    >>> Tcp(direction="up", count=4, cc="cubic").count
    4
    """

    kind: ClassVar[str] = "tcp"

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
    cc: str | None = None
    slow_start: str | None = None
    bytes: str | int | Mapping[str, str | float] | None = None
    ecn: bool | str | None = None
    on_ce: str | None = None
    initial_window: int | None = None
    after_idle: str | None = None
    pacing: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quic:
    """QUIC connections, after RFC 9000 and RFC 9002.

    Parameters
    ----------
    direction
        ``"up"`` or ``"down"``: data crosses the link of that name, acknowledgements the other.
    path
        The links that data crosses, in order; instead of `direction`.
    reverse
        The links that acknowledgements cross, in order; with `path`.
    name
        Name of the group; its connections are numbered.
    count
        Number of connections.
    start
        When they start, with its unit.
    start_jitter
        Each start is moved by a random part of this, with its unit.
    stop
        When they are aborted, with its unit; by default they last as long as the run.
    rtt
        Round-trip time with empty queues, or one for each connection, with units.
    dscp
        Class of all packets, in both directions: ``"EF"``, ``"AF42"``, ``"LE"``, 0 to 63.
    host
        Client that they belong to, 0 to 126, for queues that share among hosts.
    cc
        Congestion control: ``"cubic"``, ``"reno"`` (the NewReno of RFC 9002), ``"highspeed"``,
        ``"dctcp"``, ``"prague"``, ``"bbr"``, ``"bbr3"``, ``"vegas"`` or ``"ledbat"``.
    slow_start
        How slow start ends besides by congestion, see `Tcp`; by default ``"hystart++"`` with
        ``"cubic"``.
    bytes
        Bytes to transfer, or the distribution that each connection draws them from, see `Tcp`; by
        default there is no end.
    ecn
        Packets are ECN-capable, and marks are answered as losses.
    initial_window
        Initial window in datagrams.
    client
        Which end of the data opens the connection: the ``"receiver"``, which asks for the data, or
        the ``"sender"``, which sends it at once.
    request
        Size of the receiver's request, with its unit.
    zero_rtt
        The client resumes a session: data follows its hello at once, and the server sends no
        certificates.
    certificate
        Size of what the server sends in Handshake packets, mostly its certificates, with its unit.
    max_datagram
        UDP payload of a full datagram once the handshake is confirmed: 1200 to 1472 bytes.
    max_data
        How much may be sent on all streams together before it is read, with its unit.
    max_stream_data
        The same of each stream.
    pacing
        Spread packets over the round trip (RFC 9002).
    ack_every
        How many packets are acknowledged together.
    max_ack_delay
        How long fewer wait to be acknowledged, with its unit.
    idle_timeout
        Silence of this length ends the connection, with its unit.

    Examples
    --------
    >>> Quic(direction="down", bytes="100kb", zero_rtt=True).zero_rtt
    True
    """

    kind: ClassVar[str] = "quic"

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
    cc: str | None = None
    slow_start: str | None = None
    bytes: str | int | Mapping[str, str | float] | None = None
    ecn: bool | None = None
    initial_window: int | None = None
    client: str | None = None
    request: str | int | None = None
    zero_rtt: bool | None = None
    certificate: str | int | None = None
    max_datagram: str | int | None = None
    max_data: str | int | None = None
    max_stream_data: str | int | None = None
    pacing: bool | None = None
    ack_every: int | None = None
    max_ack_delay: str | None = None
    idle_timeout: str | None = None
