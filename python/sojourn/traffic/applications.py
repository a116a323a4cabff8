"""Applications: users that open connections and wait for responses, and web pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from sojourn import _core
from sojourn.document import Table, check, check_within, convert, needs
from sojourn.traffic.block import Conversions, TrafficBlock
from sojourn.traffic.connections import TcpSender
from sojourn.traffic.distributions import SIZES, WAITS, RandomSize, Size, Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class PageObject(Table):
    """One object of a web page, or several of the same kind.

    Parameters
    ----------
    name
        Name of the object, for the `after` of others.
    bytes
        Size of the response, or a distribution such as :class:`Lognormal`.
    count
        Number of objects of this kind. Objects that depend on it wait for all of them.
    after
        Names of the objects that must be complete before this one is requested.
    delay
        Processing time of the client before the request, with its unit.
    work
        Processing time of the server before the response, with its unit.
    origin
        Name of the server, if other than that of the page; each has its own connections.

    Examples
    --------
    >>> PageObject(name="picture", bytes="20kb", count=12, after=["document"]).count
    12
    """

    name: str
    bytes: RandomSize
    count: int | None = None
    after: Sequence[str] | None = None
    delay: str | None = None
    work: str | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        """Have the core check the object, apart from the names in `after`."""
        alone = {key: value for key, value in self.document().items() if key != "after"}
        check_within("page", {"objects": [alone]}, "objects[0]")
        convert(self, "bytes", *SIZES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Table):
    """A web page.

    Parameters
    ----------
    objects
        The objects of the page. Those without `after` are requested first.

    Examples
    --------
    >>> Page(objects=[PageObject(name="document", bytes="15kb")]).objects[0].name
    'document'
    """

    objects: Sequence[PageObject]

    def __post_init__(self) -> None:
        """Have the core check the page."""
        needs("objects", self.objects, list | tuple, "a list of PageObjects")
        for index, item in enumerate(self.objects):
            needs(f"objects[{index}]", item, PageObject, "a PageObject")
        check("page", self.document())


Http = Literal["1.1", "2", "3"]
Transport = Literal["tcp", "quic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application(TcpSender):
    """Base class of all applications.

    Responses cross the links of `direction` or `path`, requests those of the return path. The
    parameters of :class:`TcpSender` apply to the connections at both ends.

    Parameters
    ----------
    transport
        Transport of the connections, ``"tcp"`` or ``"quic"``; by default ``"tcp"``, or QUIC for
        HTTP/3. Over QUIC `profile`, `on_ce`, `after_idle`, `mss`, `pacing` and accurate ECN do
        not apply.
    """

    transport: Transport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Web(Application):
    """Users who load web pages, one after another.

    The remaining parameters are those of :class:`Application`.

    Parameters
    ----------
    page
        The page: ``"small"``, ``"large"``, ``"objects50"``, or a name in the scenario's `pages`.
    http
        ``"1.1"`` with up to six connections per server, ``"2"`` with one, or ``"3"`` with one
        over QUIC.
    tls
        Connections begin with a TLS 1.3 handshake; true by default.
    zero_rtt
        HTTP/3: resume a session, so that requests follow the ClientHello at once.
    max_data, max_stream_data
        HTTP/3: flow-control windows, as for :class:`Quic`.
    request
        Size of a request, with its unit.
    think
        Time from one page to the next, with its unit, or :class:`Exponential`.
    visits
        Number of pages per user; by default as many as fit into the run.

    Examples
    --------
    >>> Web(direction="down", page="large", http="1.1").page
    'large'
    """

    kind: ClassVar[str] = "web"
    converted: ClassVar[Conversions] = {"think": WAITS}

    page: str
    http: Http | None = None
    tls: bool | None = None
    zero_rtt: bool | None = None
    max_data: Size | None = None
    max_stream_data: Size | None = None
    request: Size | None = None
    think: Wait | None = None
    visits: int | None = None

    def __post_init__(self) -> None:
        """Have the core check the block."""
        if isinstance(self.page, Page):
            message = (
                "page: expected the name of a page, not a Page; define the page in the scenario's "
                "pages and pass its name"
            )
            raise _core.ScenarioError(message)
        TrafficBlock.__post_init__(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions(Application):
    """Short connections that arrive at random times, one response each (Harpoon's model).

    Arrivals do not depend on whether earlier connections have ended. The remaining parameters
    are those of :class:`Application`.

    Parameters
    ----------
    every
        Time from one arrival to the next: :class:`Exponential`, or a time with its unit.
    bytes
        Size of a response, or a distribution such as :class:`Pareto`.
    request
        Size of a request, with its unit.

    Examples
    --------
    >>> Sessions(direction="down", every="50ms", bytes="20kb").every
    '50ms'
    """

    kind: ClassVar[str] = "sessions"
    converted: ClassVar[Conversions] = {"every": WAITS, "bytes": SIZES}

    every: Wait
    bytes: RandomSize
    request: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRounds(Application):
    """Base class of clients that send requests and wait for the responses.

    The remaining parameters are those of :class:`Application`.

    Parameters
    ----------
    bytes
        Size of a response, or a distribution such as :class:`Lognormal`.
    request
        Size of a request, with its unit.
    work
        Processing time of a server per response, with its unit.
    think
        Time from the last response to the next request, with its unit, or :class:`Exponential`;
        by default 0.
    rounds
        Number of rounds; by default as many as fit into the run.
    """

    converted: ClassVar[Conversions] = {"bytes": SIZES, "think": WAITS}

    bytes: RandomSize
    request: Size | None = None
    work: str | None = None
    think: Wait | None = None
    rounds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(RequestRounds):
    """Clients that send requests to a server, one after another, over a persistent connection.

    The parameters are those of :class:`RequestRounds`; a round is one request.

    Examples
    --------
    >>> Request(direction="down", bytes="32kb", think="100ms").bytes
    '32kb'
    """

    kind: ClassVar[str] = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incast(RequestRounds):
    """Clients that send a request to many servers at once and wait for the last response.

    The remaining parameters are those of :class:`RequestRounds`; a round is one request to each
    server.

    Parameters
    ----------
    servers
        Number of servers, at least 2, each over a persistent connection.

    Examples
    --------
    >>> Incast(direction="down", servers=32, bytes="32kb").servers
    32
    """

    kind: ClassVar[str] = "incast"

    servers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dash(Application):
    """Players of adaptive video (DASH), whose traffic alternates between on and off.

    The remaining parameters are those of :class:`Application`.

    Parameters
    ----------
    ladder
        Bit rates to choose from, ascending, with units; by default 300 kbit/s, doubled four times.
    segment
        Duration of a segment, with its unit.
    buffer
        Capacity of the playout buffer, with its unit.
    begin
        Buffer level at which playback begins, with its unit; by default one segment.
    phase
        Time from the start of a player to its first request, with its unit; by default random,
        within a segment.
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
    phase: str | None = None
    request: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Responsiveness(Application):
    """Tests of responsiveness under working conditions, in round trips per minute (RPM).

    The test follows draft-ietf-ippm-responsiveness: it adds connections until they fill the link
    and times probes meanwhile (``docs/metrics.md``). The remaining parameters are those of
    :class:`Application`.

    Parameters
    ----------
    connections
        Largest number of load-generating connections, added one per second; by default 16.
    load
        Whether to generate load; if not, an idle connection is probed.
    tls
        Whether connections begin with a TLS 1.3 handshake, which is then measured too.
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
    request: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Voip(TrafficBlock):
    """Voice calls: G.711 in datagrams of 172 B every 20 ms, rated by the E-model.

    The remaining parameters are those of :class:`TrafficBlock`.

    Parameters
    ----------
    jitter_buffer
        ``"adaptive"``, the default: the playout delay follows the delay of recent packets and is
        set once per second; or a fixed playout delay above the shortest delay of the call, with
        its unit. A packet that arrives later counts as lost.
    phase
        Time from the start of a call to its first packet, with its unit; by default random, within
        20 ms.

    Examples
    --------
    >>> Voip(direction="up", dscp="EF").dscp
    'EF'
    """

    kind: ClassVar[str] = "voip"

    jitter_buffer: str | None = None
    phase: str | None = None


MediaControl = Literal["scream", "gcc", "constant"]
MediaEcn = Literal["off", "classic", "l4s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Media(TrafficBlock):
    """Real-time video in RTP packets of at most 1200 B, with congestion control and feedback.

    The sources are draft-ietf-ccwg-rfc8298bis-screamv2 (SCReAMv2), draft-ietf-rmcat-gcc-02 (GCC)
    and RFC 8888 (feedback). The defaults of the encoder are those of RFC 8867, section 4.3. The
    remaining parameters are those of :class:`TrafficBlock`.

    Parameters
    ----------
    control
        ``"scream"`` (the default), ``"gcc"`` or ``"constant"``.
    min_rate, max_rate
        Smallest and largest target bit rate of the encoder, RTP headers included, with units; by
        default 150 kbit/s and 1.5 Mbit/s.
    start_rate
        Target bit rate at the start, with its unit; by default `min_rate`. With the control
        ``"constant"``, the rate of the whole run.
    fps
        Frames per second, 1 to 1000; by default 30.
    variation
        Frame sizes are uniformly distributed within ± this share of the mean; 0 to 1, by default
        0.05.
    encoder_lag
        Time until the encoder follows a new target bit rate, with its unit; by default 100 ms.
    key_frame_interval, key_frame_factor
        Time from one key frame to the next, with its unit; by default all frames are alike. Size
        of a key frame relative to the others, 1 to 100; by default 3.
    pause, resume
        Times after the start of the flow at which the encoder pauses and resumes, with units.
    ecn
        ``"off"`` (the default), ``"classic"`` with ECT(0), or ``"l4s"`` with ECT(1).
    feedback_interval
        Minimum time between two reports of the receiver, with its unit; by default it reports at
        the end of each frame, after 16 packets and after 40 ms.
    phase
        Time from the start of a flow to its first frame, with its unit; by default random, within
        the time between two frames.

    Examples
    --------
    >>> Media(direction="up", max_rate="4mbit", ecn="l4s").max_rate
    '4mbit'
    """

    kind: ClassVar[str] = "media"

    control: MediaControl | None = None
    min_rate: str | None = None
    max_rate: str | None = None
    start_rate: str | None = None
    fps: float | None = None
    variation: float | None = None
    encoder_lag: str | None = None
    key_frame_interval: str | None = None
    key_frame_factor: float | None = None
    pause: str | None = None
    resume: str | None = None
    ecn: MediaEcn | None = None
    feedback_interval: str | None = None
    phase: str | None = None
