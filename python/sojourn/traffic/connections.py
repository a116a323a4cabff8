"""TCP and QUIC connections."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from sojourn.controls import CongestionControl
from sojourn.traffic.block import Conversions, TrafficBlock
from sojourn.traffic.distributions import SIZES, RandomSize, Size

SlowStart = Literal["standard", "hystart", "hystart++", "search", "careful-resume", "rapid-start"]
Ecn = bool | Literal["accurate"]
PeerEcn = Literal["none", "classic", "accurate", "reserved", "reflecting", "zeroed"]
Profile = Literal["linux", "linux-4.19", "linux-3.14", "linux-2.6.34", "ns-2"]
OnCe = Literal["reduce", "abe", "end-slow-start", "end-slow-start-only"]
AfterIdle = Literal["decay", "restart", "keep", "validate"]
QuicClient = Literal["receiver", "sender"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSender(TrafficBlock):
    """Base class of traffic that is sent over TCP.

    The remaining parameters are those of :class:`TrafficBlock`.

    Parameters
    ----------
    profile
        Implementation that both ends follow: ``"linux"`` (6.1, the default), ``"linux-4.19"``,
        ``"linux-3.14"``, ``"linux-2.6.34"`` or ``"ns-2"``.
    cc
        Congestion control, such as ``"cubic"``, with parameters as in ``"cubic beta 0.8"`` or
        ``Cubic(beta=0.8)``; ``sojourn ccs`` lists the controls.
    slow_start
        Slow-start exit heuristic: ``"standard"`` (none), ``"hystart"`` (with ``"cubic"``),
        ``"hystart++"`` (RFC 9406), ``"search"`` (draft-chung-ccwg-search-09) or
        ``"careful-resume"`` (RFC 9959; needs ``saved_cwnd`` of the control, and pacing). The
        default is that of Linux.
    ecn
        Negotiate ECN (RFC 3168); ``"accurate"`` negotiates Accurate ECN (RFC 9768).
    on_ce
        Response to an echo of CE: ``"reduce"``: as for a loss (RFC 3168); ``"abe"``: in congestion
        avoidance reduce the window to 0.8 with Reno or 0.85 with CUBIC (RFC 8511, only for these);
        ``"end-slow-start"``:
        leave slow start without a reduction, and later reduce the window to 0.8 of its size
        (RFC 8511); or ``"end-slow-start-only"``.
    mss
        Payload of a full-sized segment in bytes, 128 to 1448; 1448 by default. Over IPv6 at most
        1428, the default.
    initial_window
        Initial window in segments; by default 10, with ``"linux-2.6.34"`` 3.
    after_idle
        Congestion window after an idle period: ``"decay"`` halves it per RTO, as Linux does;
        ``"restart"`` sets it to the initial window after one RTO (RFC 5681); ``"keep"`` leaves it;
        ``"validate"`` follows RFC 7661.
    pacing
        Pace transmissions, as the queue ``fq`` at a Linux sender does: at two windows per round
        trip in slow start, later at 1.2. ``"bbr"`` and ``"bbr3"`` always pace.
    receive_window
        Largest receive window, such as ``"64kb"`` (65536 B), without auto-tuning: what Linux
        advertises with an ``SO_RCVBUF`` of 1460 bytes more. By default the window has no limit.
    receive_buffer
        Largest receive buffer that auto-tuning may choose, such as ``"6mb"`` (the maximum of
        ``tcp_rmem``); the window is at most half of it.
    ack_every
        Full segments per acknowledgement of the receiver, 1 to 255 (RFC 5681 section 4.2); 2 by
        default, as in Linux.
    ack_delay
        Longest delay of an acknowledgement, up to ``"500ms"`` (RFC 9293 section 3.8.6.3); by
        default 40 to 200 ms, as Linux adapts it.
    quick_acks
        Whether the receiver acknowledges each of the first segments, as Linux does by default.
    gro
        Whether the receiver's device merges segments that arrive together (generic receive
        offload, as in Linux), which are then acknowledged together.
    gro_flush_timeout
        Time between polls of that device while packets arrive, such as ``"2ms"``; by default each
        arrival causes one. Needs `gro`.
    min_tso_segs
        Minimum number of segments in a burst that the sender hands to its device if the window has
        room for them (``net.ipv4.tcp_min_tso_segs``), 1 to 255; 2 by default. Controls that set a
        pacing rate have a minimum of their own.
    gso_max_segs
        Maximum number of segments in such a burst (``ip link set gso_max_segs``), 1 to 254; by
        default up to 64 kB.
    """

    profile: Profile | None = None
    cc: CongestionControl | str | None = None
    slow_start: SlowStart | None = None
    ecn: Ecn | None = None
    on_ce: OnCe | None = None
    mss: int | None = None
    initial_window: int | None = None
    after_idle: AfterIdle | None = None
    pacing: bool | None = None
    receive_window: Size | None = None
    receive_buffer: Size | None = None
    ack_every: int | None = None
    ack_delay: str | None = None
    quick_acks: bool | None = None
    gro: bool | None = None
    gro_flush_timeout: str | None = None
    min_tso_segs: int | None = None
    gso_max_segs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp(TcpSender):
    """Bulk transfers over TCP, modelled on Linux.

    The remaining parameters are those of :class:`TcpSender` and :class:`TrafficBlock`.

    Parameters
    ----------
    bytes
        Bytes to transfer, or a distribution from which each connection draws them, such as
        :class:`Lognormal`; by default the transfer is endless.
    rate
        Rate at which the sender writes, such as ``"5mbit"`` (as ``iperf3 -b`` does); by default it
        always has data to send.
    block
        Bytes that a sender with a rate writes at a time, with the unit; by default 128 KiB, as in
        iperf3.
    read_rate
        Rate at which the receiver reads, at most 16 KiB at a time; by default it reads data as soon
        as it arrives. Needs `receive_window` or `receive_buffer`, as `read_pause` does.
    read_pause
        Start and end of the time in the run during which the receiver does not read.
    peer_ecn
        ECN that the receiver supports: ``"none"``, ``"classic"`` (RFC 3168) or ``"accurate"``
        (RFC 9768); or a fault: ``"reserved"`` (its SYN-ACK has the reserved combination of AE, CWR
        and ECE), ``"reflecting"`` (its SYN-ACK has the bits of the SYN) or ``"zeroed"`` (its
        acknowledgements have an ACE field of 0). By default it supports what the sender offers.

    Examples
    --------
    >>> Tcp(direction="up", count=4, cc="cubic").count
    4
    """

    kind: ClassVar[str] = "tcp"
    converted: ClassVar[Conversions] = {"bytes": SIZES}

    bytes: RandomSize | None = None
    rate: str | None = None
    block: Size | None = None
    read_rate: str | None = None
    read_pause: Sequence[str] | None = None
    peer_ecn: PeerEcn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quic(TrafficBlock):
    """Transfers over QUIC (RFC 9000, RFC 9002).

    The remaining parameters are those of :class:`TrafficBlock`.

    Parameters
    ----------
    cc
        Congestion control, with parameters as for :class:`Tcp`; ``"reno"`` is the NewReno of
        RFC 9002. ``sojourn ccs`` lists the controls.
    slow_start
        Slow-start exit heuristic, as for :class:`Tcp`, or ``"rapid-start"``
        (draft-kazuho-ccwg-rapid-start-02); by default ``"hystart++"`` with ``"cubic"``.
    bytes
        Bytes to transfer, or a distribution from which each connection draws them, as for
        :class:`Tcp`; by default the transfer is endless.
    ecn
        Send ECN-capable packets; the response to a mark is the same as to a loss.
    initial_window
        Initial window in datagrams.
    client
        The end that opens the connection: the ``"receiver"``, which requests the data, or the
        ``"sender"``, which sends at once.
    request
        Size of the receiver's request, with its unit.
    zero_rtt
        The client resumes a session: data follows its ClientHello at once, and the server sends
        no certificates.
    certificate
        Bytes that the server sends in Handshake packets, mostly certificates, with its unit.
    max_datagram
        UDP payload of a full datagram once the handshake is confirmed: 1200 to 1472 bytes,
        over IPv6 at most 1452.
    max_data
        Flow-control window of the connection, with its unit.
    max_stream_data
        Flow-control window of each stream, with its unit.
    pacing
        Pace packets over the round trip (RFC 9002).
    ack_every
        Number of packets per acknowledgement.
    max_ack_delay
        Longest time for which the receiver delays an acknowledgement, with its unit.
    idle_timeout
        Idle time after which an endpoint closes the connection, with its unit.

    Examples
    --------
    >>> Quic(direction="down", bytes="100kb", zero_rtt=True).zero_rtt
    True
    """

    kind: ClassVar[str] = "quic"
    converted: ClassVar[Conversions] = {"bytes": SIZES}

    cc: CongestionControl | str | None = None
    slow_start: SlowStart | None = None
    bytes: RandomSize | None = None
    ecn: bool | None = None
    initial_window: int | None = None
    client: QuicClient | None = None
    request: Size | None = None
    zero_rtt: bool | None = None
    certificate: Size | None = None
    max_datagram: Size | None = None
    max_data: Size | None = None
    max_stream_data: Size | None = None
    pacing: bool | None = None
    ack_every: int | None = None
    max_ack_delay: str | None = None
    idle_timeout: str | None = None
