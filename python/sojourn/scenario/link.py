"""Links: rate, queue, delay, link layer, and what happens to packets on the wire or on the air."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from sojourn import _core
from sojourn.document import Table, check, check_within, convert
from sojourn.errors import invalid_value
from sojourn.queues.base import AnyQueue

JitterDistribution = Literal["uniform", "normal", "pareto", "paretonormal"]
PacketOrder = Literal["kept", "free"]
Framing = Literal["noatm", "atm", "ptm"]
EcnRewrite = Literal["not-ect", "ect0", "ect1", "ce", "mark"]
Bucket = Literal["htb", "tbf"]
WifiStandard = Literal["802.11n", "802.11ac"]
WifiSharing = Literal["turns", "airtime"]
WifiRateControl = Literal["fixed", "minstrel_ht"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GilbertElliott(Table):
    """Loss in bursts: a two-state Markov chain that may change state with each packet.

    Parameters
    ----------
    to_bad, to_good
        Probability of a change to that state, such as ``"1%"``.
    in_bad, in_good
        Share of packets lost in that state; by default ``"100%"`` and ``"0%"``.

    Examples
    --------
    >>> GilbertElliott(to_bad="1%", to_good="25%").to_bad
    '1%'
    """

    tag = ("model", "gilbert-elliott")

    to_bad: str
    to_good: str
    in_bad: str | None = None
    in_good: str | None = None

    def __post_init__(self) -> None:
        """Have the core check the model."""
        _check("loss", self.document())


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Independent loss: each packet is lost with the same probability.

    Parameters
    ----------
    share
        Share of packets lost, such as ``"1%"``.

    Examples
    --------
    >>> Bernoulli("1%").spec
    '1%'
    """

    share: str

    def __post_init__(self) -> None:
        """Have the core check the share."""
        _check("loss", self.share)

    @property
    def spec(self) -> str:
        """The loss in the syntax of scenario files."""
        return self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter(Table):
    """Random deviation of the propagation delay.

    Parameters
    ----------
    spread
        Scale of the deviation, as a time: its maximum if uniform, its standard
        deviation if normal, a scale factor if pareto or paretonormal.
    distribution
        ``"uniform"`` (the default), ``"normal"``, ``"pareto"`` or ``"paretonormal"``.
    order
        ``"kept"`` (the default): packets do not overtake each other; ``"free"``: they may.

    Examples
    --------
    >>> Jitter(spread="5ms", distribution="normal").distribution
    'normal'
    """

    spread: str
    distribution: JitterDistribution | None = None
    order: PacketOrder | None = None

    def __post_init__(self) -> None:
        """Have the core check the jitter."""
        _check("jitter", self.document())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Table):
    """A change of a link during the run; at least one value besides the time.

    Parameters
    ----------
    at
        Time of the change, with its unit.
    rate, delay
        The new rate and the new propagation delay, with units.
    loss
        The new loss: a share of packets such as ``"1%"``, :class:`Bernoulli` or
        :class:`GilbertElliott`; ``"0%"`` ends it.
    duplicate
        The new share of packets that arrive twice.
    jitter
        The new :class:`Jitter`, or a time for a uniform deviation; ``"0s"`` ends it.
    qdisc
        A string such as ``"codel target 10ms"``, or an object such as ``CoDel()``. Of the same
        kind as the queue at that time, the parameters that it names change, and the queue keeps
        its packets and state, as after ``tc qdisc change``; an object names those that it was
        given. Another kind replaces the queue, whose packets are dropped.

    Examples
    --------
    >>> Change(at="10s", rate="5mbit", qdisc="codel target 10ms").rate
    '5mbit'
    """

    at: str
    rate: str | None = None
    delay: str | None = None
    loss: str | Bernoulli | GilbertElliott | Mapping[str, str] | None = None
    duplicate: str | None = None
    jitter: str | Jitter | Mapping[str, str] | None = None
    qdisc: AnyQueue | None = None

    def __post_init__(self) -> None:
        """Have the core check the change, except what depends on the queue before it."""
        checked = self.document()
        if checked.pop("qdisc", None) is None or len(checked) > 1:
            _check("changes", [checked], "[0]")
        convert(self, "loss", GilbertElliott)
        convert(self, "jitter", Jitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station(Table):
    """A station of a WiFi medium with a rate of its own.

    Parameters
    ----------
    host
        Number of the station, the ``host`` of its traffic: 0 to 126.
    rate
        Its PHY rate, with its unit.
    weight
        Weight in the airtime fairness of the queue ``mac80211``: 1 to 65535, by default 256.
    snr_db, mpdu_loss
        Those of the medium, for this station.

    Examples
    --------
    >>> Station(host=1, rate="6500kbit").host
    1
    """

    host: int
    rate: str
    weight: int | None = None
    snr_db: float | None = None
    mpdu_loss: str | None = None

    def __post_init__(self) -> None:
        """Have the core check the station."""
        _check("medium", {"type": "wifi", "stations": [self.document()]}, ".stations[0]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wifi(Table):
    """A WiFi medium that several links share.

    Parameters
    ----------
    name
        Name of the medium. Links with the same name compete for the same airtime.
    standard
        ``"802.11n"`` (the default) or ``"802.11ac"``.
    driver
        Limit of the driver queue below the queue discipline: a number of packets such as
        ``"1000p"``, or an airtime such as ``"12ms"``; below the queue ``mac80211`` also a number of
        aggregates per access category, such as ``"2 aggregates"``.
    stations
        Stations with rates of their own.
    sharing
        ``"turns"`` (the default): stations send in turn; ``"airtime"``: each gets the same airtime.
    aggregate_time, aggregate_packets
        Limits of an aggregate: airtime up to ``"5484us"`` (the default), and 1 to 64 packets (64).
    rate_control
        ``"fixed"`` (the default): always the PHY rate; ``"minstrel_ht"``: a simplified Minstrel-HT,
        for which the PHY rate is that of the highest MCS.
    snr_db
        Signal-to-noise ratio in dB, from which the errors at each MCS follow; needs `rate_control`.
    mpdu_loss
        Share of MPDUs that are lost at any rate, such as ``"10%"``.

    Examples
    --------
    >>> Wifi(name="home", driver="12ms").driver
    '12ms'
    """

    tag = ("type", "wifi")

    name: str | None = None
    standard: WifiStandard | None = None
    driver: str | None = None
    stations: Sequence[Station] | None = None
    sharing: WifiSharing | None = None
    aggregate_time: str | None = None
    aggregate_packets: int | None = None
    rate_control: WifiRateControl | None = None
    snr_db: float | None = None
    mpdu_loss: str | None = None

    def __post_init__(self) -> None:
        """Have the core check the medium."""
        _check("medium", self.document())
        convert(self, "stations", Station)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(Table):
    """A transmitter with a queue in front and a wire behind.

    Parameters
    ----------
    rate
        Bits per second of Ethernet frames (14 B header, no FCS) plus `overhead`, with its unit.
    qdisc
        The queue: a string such as ``"codel target 5ms"``, an object or class such as ``CoDel()``
        or ``CoDel``, a subclass of :class:`PythonQueue`, the file and name of one, such as
        ``"./mine.py:Ramp"``, or a plug-in, such as ``"./libramp.so"``.
    delay
        Propagation delay of the wire, with its unit.
    overhead
        Bytes that the link adds to each frame, with unit; may be negative. Or a link layer by
        its name in ``tc``, such as ``"ethernet"`` or ``"pppoe-ptm"``, with ``"ether-vlan"``
        after it for a VLAN tag.
    mpu
        Smallest size that a frame counts as, overhead included, with its unit.
    framing
        Link-layer framing: ``"noatm"`` (none), ``"atm"`` or ``"ptm"``.
    trace
        Instead of `rate`: the file of a Mahimahi capacity trace. Each line is a time in
        milliseconds at which 1504 B may leave. A scenario keeps the contents of the file.
    rate_trace, delay_trace, loss_trace
        Instead of `rate`, `delay` and `loss`: a file with the value over time, in Mbit/s, ms and
        percent, or a mapping with ``file``, ``column`` and ``unit``. A scenario keeps the points.
    drop
        Numbers of packets that the wire loses, from 1 in the order in which the link sends them.
    burst
        Enforce the rate by a token bucket of this size, with its unit, or ``"htb"`` for the
        size that Linux's ``htb`` takes; by default by serialisation, as a wire does.
    bucket
        Discipline of the token bucket: ``"htb"`` (default), where a packet leaves while there are
        any tokens, or ``"tbf"``, where it leaves once there are enough for all of it.
    tx_ring
        Packets that the transmit ring of the device holds below the queue; by default the device
        takes a packet when it can send it.
    bql
        With `tx_ring`: byte queue limits bound the bytes in the ring (default).
    tx_coalesce
        With `tx_ring`: time from a transmission to the interrupt that reports it and those that
        follow; by default 0.
    loss
        Loss on the wire: a share of packets such as ``"1%"``, :class:`Bernoulli` or
        :class:`GilbertElliott`.
    duplicate
        Share of packets that arrive twice, such as ``"0.1%"``.
    ecn
        IP ECN field that the wire writes into every packet: ``"not-ect"``, ``"ect0"``, ``"ect1"``
        or ``"ce"``; or ``"mark"``: it writes CE into every ECN-capable packet.
    jitter
        :class:`Jitter` of the delay, or a time with its unit for a uniform deviation that keeps
        packets in order.
    changes
        Changes during the run, each a :class:`Change`, in order of time.
    medium
        A :class:`Wifi` medium that the link shares with others. `rate` is its PHY rate.

    Raises
    ------
    ScenarioError
        A value is not valid; the message is that of a scenario file.

    Examples
    --------
    >>> Link(rate="10mbit", qdisc="codel").rate
    '10mbit'
    """

    rate: str | None = None
    trace: str | Path | Mapping[str, str] | None = None
    rate_trace: str | Path | Mapping[str, str] | None = None
    qdisc: AnyQueue
    delay: str | None = None
    delay_trace: str | Path | Mapping[str, str] | None = None
    overhead: str | int | None = None
    mpu: str | None = None
    framing: Framing | None = None
    burst: str | None = None
    bucket: Bucket | None = None
    tx_ring: int | None = None
    bql: bool | None = None
    tx_coalesce: str | None = None
    loss: str | Bernoulli | GilbertElliott | Mapping[str, str] | None = None
    loss_trace: str | Path | Mapping[str, str] | None = None
    drop: Sequence[int] | None = None
    duplicate: str | None = None
    ecn: EcnRewrite | None = None
    jitter: str | Jitter | Mapping[str, str] | None = None
    changes: Sequence[Change | Mapping[str, Any]] | None = None
    medium: Wifi | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Have the core check the link."""
        check("link", self.document())
        convert(self, "loss", GilbertElliott)
        convert(self, "jitter", Jitter)
        convert(self, "changes", Change)
        convert(self, "medium", Wifi)

    @property
    def bits_per_s(self) -> float:
        """The highest rate of the link, or the mean rate of its trace."""
        if isinstance(self.trace, Mapping):
            return float(_core.parse_trace_bits_per_s(self.trace["gaps_ms"]))
        if isinstance(self.rate_trace, Mapping) and "points" in self.rate_trace:
            return _mean_rate(self.rate_trace["points"], self.rate_trace["period"])
        later = [change.rate for change in self.changes or () if isinstance(change, Change)]
        rates = [rate for rate in (self.rate, *later) if rate is not None]
        return float(max((_core.parse_rate_bits_per_s(rate) for rate in rates), default=0))


def _mean_rate(points: str, period: str) -> float:
    """Return the mean of the rates of a trace, which may be zero, in bit/s."""
    pairs = [point.split() for point in points.split(",")]
    times = [_core.parse_time_s(at) for at in (*(at for at, _ in pairs), period)]
    rates = [
        0.0 if re.fullmatch(r"0[a-z]*", rate) else _core.parse_rate_bits_per_s(rate)
        for _, rate in pairs
    ]
    bits = sum(
        rate * (end - start) for rate, start, end in zip(rates, times[:-1], times[1:], strict=True)
    )
    return bits / times[-1]


def _check(key: str, value: Any, below: str = "") -> None:
    """Have the core check one key of a link, or what stands `below` it."""
    link = {"rate": "1gbit", "qdisc": "pfifo", key: value}
    check_within("link", link, key + below)


# Bytes of the Ethernet header, which queues see and `cake` subtracts.
ETHERNET_HEADER = 14
# The keyword of `tc` for a VLAN tag, which Sojourn's `cake` does not have, and its bytes.
_VLAN, _TAG = "ether-vlan", 4
# Names that `tc` does not have.
_OWN = {
    "ip": "overhead 0 mpu 0 noatm",
    "ethernet-l2": "overhead 18 mpu 64 noatm",
    "pppoe-atm": "pppoe-llcsnap",
    "pppoa-atm": "pppoa-vcmux",
    "pppoe-ptm-vlan": "pppoe-ptm ether-vlan",
}
# The other names of `tc` that `--layer` suggests; any keyword of `cake` is accepted.
NAMES = ("docsis", "ethernet", "pppoe-ptm", "bridged-ptm", "pppoe-vcmux", "conservative", *_OWN)
_CANONICAL = re.compile(
    r"\b(?P<framing>noatm|atm|ptm)(?: overhead (?P<overhead>\d+)b)? mpu (?P<mpu>\d+)b"
)
_KEYWORDS = re.compile(
    r"(?:(?:ethernet|docsis|conservative|noatm|atm|ptm|(?:overhead|mpu) \d+"
    r"|(?:pppoe|pppoa|ipoa|bridged)-[a-z]+)(?: |$))+"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """A link layer."""

    overhead: int
    mpu: int
    framing: Framing
    keywords: str

    @property
    def of_link(self) -> dict[str, str]:
        """The keys of a link in a scenario, which count from the Ethernet frame."""
        return {
            "overhead": f"{self.overhead - ETHERNET_HEADER}b",
            "mpu": f"{self.mpu}b",
            "framing": self.framing,
        }


def layer(name: str) -> Layer:
    """Read a link layer.

    Examples
    --------
    >>> layer("docsis")
    Layer(overhead=18, mpu=64, framing='noatm', keywords='docsis')
    """
    words = _OWN.get(" ".join(name.split()), name).split()
    tags = words.count(_VLAN)
    keywords = " ".join(word for word in words if word != _VLAN)
    expected = f'expected a link layer such as {", ".join(NAMES)}, or "overhead 44 mpu 84"'
    unknown = invalid_value("layer", name, expected)
    if not _KEYWORDS.fullmatch(keywords):
        raise unknown
    try:
        canonical = _core.parse_qdisc(f"cake bandwidth 1mbit {keywords}")
    except _core.ScenarioError:
        raise unknown from None
    found = _CANONICAL.search(canonical)
    if found is None or found["overhead"] is None:
        raise unknown
    framing = cast("Framing", found["framing"])
    overhead, mpu = int(found["overhead"]) + tags * _TAG, int(found["mpu"])
    if tags:
        keywords = f"overhead {overhead} mpu {mpu} {framing}"
    return Layer(overhead, mpu, framing, keywords)
