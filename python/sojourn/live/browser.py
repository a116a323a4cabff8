"""The dashboard of a run in a browser: one page, and events that the server sends it."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import socket
from http import HTTPStatus
from importlib.resources import files
from ipaddress import ip_address
from typing import Any

from sojourn.live import server
from sojourn.live.address import Address, is_loopback
from sojourn.live.history import History, Links
from sojourn.live.server import Request, Server, Streams, received, response, response_head

PAGE, EVENTS = "/", "/events"
_TEXT, _HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
_SAFE = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_BUSY = response(
    HTTPStatus.SERVICE_UNAVAILABLE,
    _TEXT,
    f"{server.MOST_CONNECTIONS} connections are open; close a page of this run first.\n".encode(),
    {"Retry-After": "5", **_SAFE},
)


class Browser:
    """Serves the dashboard at an address; it shows the run and changes nothing.

    A request must name the server in its ``Host`` header, so that no page of another site can read
    the run through a name that resolves to this address. If other machines can reach the address,
    a request also needs a token.
    """

    def __init__(self, address: str, about: dict[str, Any]) -> None:
        place = Address.read("view", address)
        listening = place.listening()
        self._place = place
        self._token = None if is_loopback(listening) else secrets.token_urlsafe(24)
        self._any_address = ip_address(listening.getsockname()[0].partition("%")[0]).is_unspecified
        self._about = about
        self._history = History()
        self._page, self._policy = _page(about)
        self.streams = Streams()
        self._server = Server(listening, self._answer, full=_BUSY)

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        host = self._place.host
        if self._any_address:
            host = socket.gethostname()
        host = f"[{host}]" if ":" in host else host
        token = "" if self._token is None else f"?token={self._token}"
        return f"http://{host}:{self._place.port}{PAGE}{token}"

    def show(self, links: Links) -> None:
        """Send a view to all pages."""
        self._server.call(lambda: self._add(links))

    def _add(self, links: Links) -> None:
        self.streams.send(_event("view", self._history.add(links)))

    def close(self) -> None:
        """Tell the pages that the run has ended, and stop serving."""
        self._server.close(self._end)

    async def _end(self) -> None:
        self.streams.send(_event("end", {}))
        self.streams.end()

    async def _answer(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(server.TIMEOUT_S):
            head = await received(client, b"\r\n\r\n")
            if not head:
                return
            request = Request.read(head)
            if isinstance(request, HTTPStatus):
                answer = response(request, _TEXT, b"", _SAFE)
            elif self._is_stream(request):
                answer = response_head(
                    HTTPStatus.OK, {"Content-Type": "text/event-stream", **_SAFE}
                )
            else:
                answer = self._response(request)
            await loop.sock_sendall(client, answer)
        if isinstance(request, Request) and self._is_stream(request):
            await self._stream(client)

    def _is_stream(self, request: Request) -> bool:
        is_asked = request.method == "GET" and request.path == EVENTS
        return is_asked and self._refusal(request) is None

    def _refusal(self, request: Request) -> tuple[HTTPStatus, str] | None:
        """Why a request gets no answer; None: it gets one."""
        if not self._is_own(request.host):
            return (
                HTTPStatus.MISDIRECTED_REQUEST,
                "The Host header does not name this server; open the address that sojourn printed.",
            )
        given = request.query.get("token", "")
        if self._token is not None and not hmac.compare_digest(
            given.encode(), self._token.encode()
        ):
            return (
                HTTPStatus.FORBIDDEN,
                "The token is missing or wrong; open the address that sojourn printed.",
            )
        return None

    def _is_own(self, host: str) -> bool:
        """Whether a ``Host`` header names this server."""
        name, _, port = host.rpartition(":")
        if port != f"{self._place.port}":
            return False
        name = name.strip("[]").lower()
        if name in {self._place.host.lower(), "localhost"}:
            return True
        if self._any_address and name == socket.gethostname().lower():
            return True
        try:
            # No other site can have an address as its name.
            return ip_address(name).is_loopback or self._any_address
        except ValueError:
            return False

    def _response(self, request: Request) -> bytes:
        """Answer a request for a page."""
        refusal = self._refusal(request)
        if refusal is not None:
            status, text = refusal
            return response(status, _TEXT, f"{text}\n".encode(), _SAFE)
        if request.path != PAGE:
            return response(HTTPStatus.NOT_FOUND, _TEXT, b"", _SAFE)
        body = b"" if request.method == "HEAD" else self._page
        return response(
            HTTPStatus.OK, _HTML, body, {"Content-Security-Policy": self._policy, **_SAFE}
        )

    async def _stream(self, client: socket.socket) -> None:
        """Send the views so far, then each new one."""
        history = self._history
        so_far = {"views": list(history.views), "changes": list(history.changes)}
        await self.streams.follow(client, _event("history", so_far), b":\n\n")


def _event(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _page(about: dict[str, Any]) -> tuple[bytes, str]:
    """Return the page, and the policy that permits its script and its style and nothing else."""
    text = files("sojourn.live").joinpath("dashboard.html").read_text(encoding="utf-8")
    # In an element of its own, as data: no name can end it.
    shown = json.dumps(about).replace("<", "\\u003c")
    text = text.replace("__ABOUT__", shown)
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    style = text.partition("<style>")[2].partition("</style>")[0]
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return text.encode(), policy


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
