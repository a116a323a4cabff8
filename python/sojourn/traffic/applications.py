"""Applications: users that open connections and wait for what comes over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What all applications have.

    Parameters
    ----------
    direction
        ``"up"`` or ``"down"``: responses cross the link of that name, requests the other.
    path
        The links that responses cross, in order; instead of `direction`.
    reverse
        The links that requests cross, in order; with `path`.
    name
        Name of the group; its users are numbered.
    count
        Number of users.
    start
        When they start, with its unit.
    start_jitter
        Each start is moved by a random part of this, with its unit.
    stop
        When they stop, with its unit; by default with the run.
    rtt
        Round-trip time with empty queues, or one for each user, with units.
    dscp
        Class of all packets, in both directions: ``"EF"``, ``"AF42"``, ``"LE"``, 0 to 63.
    host
        Client that they belong to, 0 to 126, for queues that share among hosts.
    cc
        Congestion control of their connections, at both ends.
    ecn
        Negotiate ECN (RFC 3168); ``"accurate"``: Accurate ECN (RFC 9768), of TCP alone.
    on_ce
        The answer to an echo of CE, as of :class:`Tcp`.
    initial_window
        Initial window in segments.
    slow_start, after_idle, pacing
        As of :class:`Tcp`.
    """

    kind: ClassVar[str] = ""

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
    ecn: bool | str | None = None
    on_ce: str | None = None
    initial_window: int | None = None
    slow_start: str | None = None
    after_idle: str | None = None
    pacing: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Web(Application):
    """Users who look at web pages, one after another.

    The remaining parameters are those of :class:`Application`.

    Parameters
    ----------
    page
        What they look at: ``"small"``, ``"large"``, ``"objects50"``, or a name in the scenario's
        `pages`.
    http
        ``"2"``, one connection to a server, ``"1.1"``, up to six, or ``"3"``, one of QUIC.
    tls
        Connections begin with the handshake of TLS 1.3; by default they do.
    zero_rtt
        HTTP/3: users have been there before, so requests follow the client's hello at once.
    max_data, max_stream_data
        HTTP/3: how much may be sent before it is read, as of :class:`Quic`.
    request
        Size of a request, with its unit.
    think
        From one page to the next: a time with its unit, or ``{"distribution": "exponential",
        "mean": "5s"}``.
    visits
        How many pages each looks at; by default as many as the run lasts.

    Examples
    --------
    >>> Web(direction="down", page="large", http="1.1").page
    'large'
    """

    kind: ClassVar[str] = "web"

    page: str
    http: str | None = None
    tls: bool | None = None
    zero_rtt: bool | None = None
    max_data: str | int | None = None
    max_stream_data: str | int | None = None
    request: str | int | None = None
    think: str | Mapping[str, str] | None = None
    visits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions(Application):
    """Connections that come at random times, get one response each and close (Harpoon's model).

    They come whether or not earlier ones have ended. The remaining parameters are those of
    :class:`Application`.

    Parameters
    ----------
    every
        From one to the next: ``{"distribution": "exponential", "mean": "200ms"}``, or a time with
        its unit.
    bytes
        Size of a response, or a distribution, as of :class:`Tcp`.
    request
        Size of a request, with its unit.

    Examples
    --------
    >>> Sessions(direction="down", every="50ms", bytes="20kb").every
    '50ms'
    """

    kind: ClassVar[str] = "sessions"

    every: str | Mapping[str, str]
    bytes: str | int | Mapping[str, str | float]
    request: str | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Application):
    """Clients that ask a server again and again over a connection that stays.

    The remaining parameters are those of :class:`Application`.

    Parameters
    ----------
    bytes
        Size of a response, or a distribution, as of :class:`Tcp`.
    request
        Size of a request, with its unit.
    work
        How long the server works on a response, with its unit.
    think
        From a response to the next request: a time with its unit, or a distribution as of
        :class:`Web`; by default the next request goes at once.
    rounds
        How many are asked for; by default as many as the run lasts.

    Examples
    --------
    >>> Request(direction="down", bytes="32kb", think="100ms").bytes
    '32kb'
    """

    kind: ClassVar[str] = "request"

    bytes: str | int | Mapping[str, str | float]
    request: str | int | None = None
    work: str | None = None
    think: str | Mapping[str, str] | None = None
    rounds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incast(Application):
    """Clients that ask many servers at once and wait for the last response.

    The remaining parameters are those of :class:`Application`.

    Parameters
    ----------
    servers
        How many are asked, from 2 on, each over a connection that stays.
    bytes
        Size of a response, or a distribution, as of :class:`Tcp`.
    request
        Size of a request, with its unit.
    work
        How long a server works on a response, with its unit.
    think
        From the last response to the next round, as of :class:`Request`.
    rounds
        How many rounds; by default as many as the run lasts.

    Examples
    --------
    >>> Incast(direction="down", servers=32, bytes="32kb").servers
    32
    """

    kind: ClassVar[str] = "incast"

    servers: int
    bytes: str | int | Mapping[str, str | float]
    request: str | int | None = None
    work: str | None = None
    think: str | Mapping[str, str] | None = None
    rounds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dash(Application):
    """Players of adaptive video, whose traffic is on and off.

    The remaining parameters are those of :class:`Application`.

    Parameters
    ----------
    ladder
        Bit rates to choose from, ascending, with units; by default 300 kbit/s, doubled four times.
    segment
        How long a segment plays, with its unit.
    buffer
        How much the buffer holds, with its unit.
    begin
        What must be in it before playing begins, with its unit; by default a segment.
    request
        Size of a request, with its unit.

    Examples
    --------
    >>> Dash(direction="down", ladder=["1mbit", "4mbit"]).segment is None
    True
    """

    kind: ClassVar[str] = "dash"

    ladder: Sequence[str] | None = None
    segment: str | None = None
    buffer: str | None = None
    begin: str | None = None
    request: str | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Responsiveness(Application):
    """Tests of responsiveness under working conditions, in round trips per minute (RPM).

    As draft-ietf-ippm-responsiveness has it: connections are added until they fill the link, and
    probes are timed meanwhile (``docs/metrics.md``). The remaining parameters are those of
    :class:`Application`.

    Parameters
    ----------
    connections
        Load-generating connections, at most; one more each second. By default 16.
    load
        Whether to generate load; without, an idle connection is probed.
    tls
        Whether connections begin with the handshake of TLS 1.3, which then is measured too.
    request
        Size of a request, with its unit.

    Examples
    --------
    >>> Responsiveness(direction="down", connections=8).connections
    8
    """

    kind: ClassVar[str] = "responsiveness"

    connections: int | None = None
    load: bool | None = None
    tls: bool | None = None
    request: str | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Voip:
    """Voices: G.711 in datagrams of 172 B each 20 ms, rated by the E-model.

    Parameters
    ----------
    direction
        ``"up"`` or ``"down"``: the link of that name is crossed.
    path
        The links that are crossed, in order; instead of `direction`.
    reverse
        The links of the way back, in order; with `path`.
    name
        Name of the group; its voices are numbered.
    count
        Number of voices.
    start
        When they start, with its unit.
    start_jitter
        Each start is moved by a random part of this, with its unit.
    stop
        When they end, with its unit; by default with the run.
    rtt
        Round-trip time with empty queues, or one for each voice, with units.
    dscp
        Class of all packets: ``"EF"``, ``"AF42"``, ``"LE"``, 0 to 63.
    host
        Client that they belong to, 0 to 126, for queues that share among hosts.
    jitter_buffer
        ``"adaptive"``, the default: the listener waits for a packet as long as recent ones took,
        set anew each second; or how much longer than the shortest delay of the call, with its unit.
        What comes later counts as lost.

    Examples
    --------
    >>> Voip(direction="up", dscp="EF").dscp
    'EF'
    """

    kind: ClassVar[str] = "voip"

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
    jitter_buffer: str | None = None
