"""UDP streams and pings."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from sojourn.traffic.block import TrafficBlock
from sojourn.traffic.distributions import Size

Spacing = Literal["even", "poisson"]
PingProtocol = Literal["icmp", "udp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Udp(TrafficBlock):
    """Unresponsive UDP streams of constant mean bit rate.

    The remaining parameters are those of :class:`TrafficBlock`.

    Parameters
    ----------
    rate
        Rate of the payload, with its unit.
    payload
        Payload of a datagram: a size with its unit.
    spread
        Each gap is scaled by a random factor within 1 ± `spread`; 0 to 1.
    spacing
        ``"even"`` (the default) or ``"poisson"``, with exponential gaps.
    phase
        Time from the start of a flow to its first datagram, with its unit; by default random,
        within the mean gap.

    Examples
    --------
    >>> Udp(direction="up", rate="12mbit").rate
    '12mbit'
    """

    kind: ClassVar[str] = "udp"

    rate: str
    payload: Size | None = None
    spread: float | None = None
    spacing: Spacing | None = None
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping(TrafficBlock):
    """Echo requests, which measure the round-trip time through all queues.

    The remaining parameters are those of :class:`TrafficBlock`.

    Parameters
    ----------
    interval
        Time between requests, with its unit; or ``"back-to-back"``: over UDP, each request
        follows the reply to the one before, as netperf's ``UDP_RR`` does.
    phase
        Time from the start to the first request, with its unit; all intervals are then equal. By
        default each request leaves at a random time in its interval.
    protocol
        ``"icmp"`` (the default) or ``"udp"``.
    payload
        Payload of UDP requests and replies, with its unit; by default 1 B.
    timeout
        Time after which a back-to-back request without a reply is abandoned, with its unit.

    Examples
    --------
    >>> Ping(direction="up", protocol="udp", interval="200ms", dscp="EF").protocol
    'udp'
    """

    kind: ClassVar[str] = "ping"

    interval: str | None = None
    phase: str | None = None
    protocol: PingProtocol | None = None
    payload: Size | None = None
    timeout: str | None = None
