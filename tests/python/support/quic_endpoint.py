"""A client and a server of HTTP/3 with aioquic, for ``support.interop``; a program of its own.

``server PORT DIRECTORY CERTIFICATE KEY`` serves files, ``client DIRECTORY URL...`` downloads them
over one connection.
"""

import asyncio
import ssl
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated

WINDOW = 16 << 20


class Endpoint(QuicConnectionProtocol):
    """A connection of HTTP/3."""

    http: H3Connection

    def quic_event_received(self, event: Any) -> None:
        """Pass an event of QUIC to HTTP/3."""
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if hasattr(self, "http"):
            for happened in self.http.handle_event(event):
                self.on_http(happened)

    def on_http(self, event: Any) -> None:
        """Process an event of HTTP/3."""
        raise NotImplementedError


class Server(Endpoint):
    """Answers requests with files."""

    def __init__(self, *arguments: Any, directory: Path, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.directory = directory

    def on_http(self, event: Any) -> None:
        """Answer a request."""
        if isinstance(event, HeadersReceived):
            path = dict(event.headers)[b":path"].decode().rpartition("/")[2]
            data = (self.directory / path).read_bytes()
            self.http.send_headers(event.stream_id, [(b":status", b"200")])
            self.http.send_data(event.stream_id, data, end_stream=True)
            self.transmit()


class Client(Endpoint):
    """Downloads files."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.data: dict[int, bytearray] = {}
        self.open: set[int] = set()
        self.done = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event: Any) -> None:
        """Note the end of the connection."""
        if isinstance(event, ConnectionTerminated) and not self.done.done():
            self.done.set_exception(ConnectionError(event.reason_phrase or "connection closed"))
        super().quic_event_received(event)

    def get(self, host: str, path: str) -> int:
        """Request a file."""
        stream = self._quic.get_next_available_stream_id()
        head = {b":method": b"GET", b":scheme": b"https", b":authority": host.encode()}
        head[b":path"] = path.encode()
        self.http.send_headers(stream, list(head.items()), end_stream=True)
        self.data[stream] = bytearray()
        self.open.add(stream)
        return stream

    def on_http(self, event: Any) -> None:
        """Store data of a response."""
        if isinstance(event, DataReceived):
            self.data[event.stream_id] += event.data
        if event.stream_ended:
            self.open.discard(event.stream_id)
            if not self.open and not self.done.done():
                self.done.set_result(None)


def configuration(*, is_client: bool) -> QuicConfiguration:
    """Return the settings of both endpoints."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=H3_ALPN,
        max_data=WINDOW,
        max_stream_data=WINDOW,
        verify_mode=ssl.CERT_NONE if is_client else None,
    )


async def be_server(port: int, directory: Path, certificate: Path, key: Path) -> None:
    """Serve files until the process ends."""
    settings = configuration(is_client=False)
    settings.load_cert_chain(certificate, key)
    await serve(
        "::",
        port,
        configuration=settings,
        create_protocol=partial(Server, directory=directory),
    )
    await asyncio.Event().wait()


async def be_client(directory: Path, urls: list[str]) -> None:
    """Download files."""
    first = urlsplit(urls[0])
    host = first.hostname or ""
    settings = configuration(is_client=True)
    async with connect(
        host, first.port or 443, configuration=settings, create_protocol=Client
    ) as client:
        names = {}
        for url in urls:
            path = urlsplit(url).path
            names[client.get(first.netloc, path)] = path.rpartition("/")[2]
        client.transmit()
        await client.done
        for stream, name in names.items():
            (directory / name).write_bytes(client.data[stream])


def main() -> None:
    """Run the program."""
    role, *words = sys.argv[1:]
    if role == "server":
        port, *places = words
        asyncio.run(be_server(int(port), *map(Path, places)))
    else:
        asyncio.run(be_client(Path(words[0]), words[1:]))


if __name__ == "__main__":
    main()
