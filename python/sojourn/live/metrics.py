"""Metrics of a running run in the text format of Prometheus."""

import asyncio
import socket
from http import HTTPStatus
from typing import Any

from sojourn.live import server
from sojourn.live.address import Address
from sojourn.live.server import Request, Server, received, response

_METRICS = (
    ("sent_bytes", "counter", "Bytes taken from the queue."),
    ("sent_packets", "counter", "Packets taken from the queue."),
    ("drops", "counter", "Packets discarded by the queue."),
    ("marks", "counter", "Packets CE-marked by the queue."),
    ("backlog_bytes", "gauge", "Bytes waiting in the queue."),
    ("backlog_packets", "gauge", "Packets waiting in the queue."),
)
_QUANTILES = ("0.5", "0.95", "0.99")
_KIND = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Serves the last view; a new connection ends the oldest when there are too many."""

    def __init__(self, address: str) -> None:
        self._links: list[dict[str, Any]] = []
        self._server = Server(Address.read("prometheus", address).listening(), self._answer)

    async def _answer(self, client: socket.socket) -> None:
        """Answer one request."""
        async with asyncio.timeout(server.TIMEOUT_S):
            if head := await received(client, b"\r\n\r\n"):
                await asyncio.get_running_loop().sock_sendall(client, self._response(head))

    def _response(self, head: bytes) -> bytes:
        """Return the response to the head of a request."""
        request = Request.read(head)
        if isinstance(request, HTTPStatus):
            return response(request, _KIND, b"")
        body = b"" if request.method == "HEAD" else self.text().encode()
        return response(HTTPStatus.OK, _KIND, body)

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return self._server.port

    def show(self, links: list[dict[str, Any]]) -> None:
        """Replace the served metrics."""
        self._links = links

    def text(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        lines = []
        for name, kind, meaning in _METRICS:
            full = f"sojourn_link_{name}" + ("_total" if kind == "counter" else "")
            lines += [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
            lines += [f"{full}{{{_label(link)}}} {link[name]}" for link in self._links]
        full = "sojourn_link_sojourn_seconds"
        lines += [
            f"# HELP {full} Time in the queue of the packets sent in the last second.",
            f"# TYPE {full} gauge",
        ]
        for link in self._links:
            pairs = zip(_QUANTILES, link["sojourn_ms"] or (), strict=False)
            lines += [f'{full}{{{_label(link)},quantile="{q}"}} {ms / 1e3:.9f}' for q, ms in pairs]
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        """Stop serving."""
        self._server.close()


def _label(link: dict[str, Any]) -> str:
    name = link["link"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'link="{name}"'
