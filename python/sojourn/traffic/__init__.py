"""Traffic: TCP and QUIC connections, UDP streams, pings and applications."""

from sojourn.traffic.applications import (
    Application,
    Dash,
    Incast,
    Request,
    Responsiveness,
    Sessions,
    Voip,
    Web,
)
from sojourn.traffic.block import TrafficBlock
from sojourn.traffic.connections import Quic, Tcp, TcpSender
from sojourn.traffic.datagrams import Ping, Udp
from sojourn.traffic.distributions import Exponential, Lognormal, Pareto
from sojourn.traffic.page import Page, PageObject

Traffic = Tcp | Quic | Udp | Ping | Web | Sessions | Request | Incast | Dash | Voip | Responsiveness

# The class of each type of traffic, by its name in scenario files.
TYPES: dict[str, type[Traffic]] = {
    cls.kind: cls
    for cls in (
        Tcp,
        Quic,
        Udp,
        Ping,
        Web,
        Sessions,
        Request,
        Incast,
        Dash,
        Voip,
        Responsiveness,
    )
}

__all__ = [
    "TYPES",
    "Application",
    "Dash",
    "Exponential",
    "Incast",
    "Lognormal",
    "Page",
    "PageObject",
    "Pareto",
    "Ping",
    "Quic",
    "Request",
    "Responsiveness",
    "Sessions",
    "Tcp",
    "TcpSender",
    "Traffic",
    "TrafficBlock",
    "Udp",
    "Voip",
    "Web",
]
