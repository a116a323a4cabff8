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
from sojourn.traffic.connections import Quic, Tcp
from sojourn.traffic.datagrams import Ping, Udp
from sojourn.traffic.page import Page, PageObject

Traffic = Tcp | Quic | Udp | Ping | Web | Sessions | Request | Incast | Dash | Voip | Responsiveness

__all__ = [
    "Application",
    "Dash",
    "Incast",
    "Page",
    "PageObject",
    "Ping",
    "Quic",
    "Request",
    "Responsiveness",
    "Sessions",
    "Tcp",
    "Traffic",
    "Udp",
    "Voip",
    "Web",
]
