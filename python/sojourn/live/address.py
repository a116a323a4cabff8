"""Addresses at which a run listens."""

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NoReturn

from sojourn.arguments import ArgumentError

MAX_PORT = 65535
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Address:
    """A place to listen at, as an argument has it."""

    argument: str
    text: str
    host: str
    port: int

    @classmethod
    def read(cls, argument: str, text: str) -> "Address":
        """Read ``ADDRESS:PORT`` or ``:PORT``, which is on the loopback interface."""
        host, colon, port = text.rpartition(":")
        if not colon or not port:
            _refuse(argument, text, "no port")
        if not port.isdecimal():
            _refuse(argument, text, "not a port")
        if not 1 <= int(port) <= MAX_PORT:
            _refuse(argument, text, f"port {port} is out of range")
        return cls(argument, text, host.strip("[]") or LOOPBACK, int(port))

    def listening(self) -> socket.socket:
        """Listen at an address of IPv4 or IPv6, or at that of a name."""
        try:
            (family, _, _, _, place), *_ = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM
            )
            listening = socket.socket(family, socket.SOCK_STREAM)
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listening.bind(place)
                listening.listen()
            except OSError:
                listening.close()
                raise
        except OSError as error:
            _refuse(self.argument, self.text, f"cannot listen there: {error.strerror}")
        except UnicodeError:
            _refuse(self.argument, self.text, f"{self.host} is not a host name")
        return listening


def is_loopback(listening: socket.socket) -> bool:
    """Whether a socket can be reached from this machine only."""
    return ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def _refuse(argument: str, text: str, problem: str) -> NoReturn:
    rule = "{problem}; expected ADDRESS:PORT or :PORT, PORT from 1 to {most}"
    raise ArgumentError(argument, text, rule, problem=problem, most=MAX_PORT) from None
