"""Servers of a run: few connections, each for a limited time, on one thread; and their HTTP."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

# The time of a request, the number of connections, the bytes of a request, and the time until a
# server listens again if it cannot accept a connection.
TIMEOUT_S = 5.0
MOST_CONNECTIONS = 8
MOST_HEAD = 16_384
RETRY_S = 1.0
# Of clients that stay connected: the time after which one without news gets a sign of life, which
# also shows that it has gone, and the news that it may be late.
BEAT_S = 10.0
LAST_S = 0.5
MOST_LATE = 16
_END_OF_HEAD = b"\r\n\r\n"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Server:
    """Answers connections to a socket that listens.

    When there are :data:`MOST_CONNECTIONS`, a new one ends the oldest, or, if there is an answer
    for this case (`full`), gets this answer: clients that do not read or that never complete a
    request neither use up the descriptors of the run nor slow it.
    """

    def __init__(
        self,
        listening: socket.socket,
        answer: Callable[[socket.socket], Awaitable[None]],
        *,
        full: bytes | None = None,
    ) -> None:
        listening.settimeout(0)
        self._listening = listening
        self._answer = answer
        self._full = full
        # The connections, the oldest first.
        self._open: dict[asyncio.Task[None], socket.socket] = {}
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._last: Callable[[], Awaitable[None]] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._listening, asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        # The end of the runner ends it and the connections.
        accepting = self._loop.create_task(self._accept())
        await self._ended.wait()
        accepting.cancel()
        if self._last is not None:
            await self._last()
            if self._open:
                await asyncio.wait(self._open, timeout=LAST_S)

    async def _accept(self) -> None:
        while True:
            await self._readable()
            try:
                # Not awaited: a client that has been accepted is always closed.
                client, _ = self._listening.accept()
            except BlockingIOError:
                continue
            except OSError:
                # No descriptor is free, for example.
                await asyncio.sleep(RETRY_S)
                continue
            client.settimeout(0)
            if len(self._open) == MOST_CONNECTIONS:
                if self._full is not None:
                    _refuse(client, self._full)
                    continue
                oldest = next(iter(self._open))
                oldest.cancel()
                await asyncio.wait([oldest])
            task = self._loop.create_task(self._answered(client))
            self._open[task] = client
            task.add_done_callback(self._close)

    async def _readable(self) -> None:
        """Wait until a client connects."""
        ready = asyncio.Event()
        self._loop.add_reader(self._listening, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(self._listening)

    def _close(self, task: "asyncio.Task[None]") -> None:
        # Not at the end of the coroutine: a task can end before it has started.
        self._open.pop(task).close()

    async def _answered(self, client: socket.socket) -> None:
        # The client has gone, is too slow, or is replaced by another.
        with suppress(OSError, asyncio.CancelledError):
            await self._answer(client)

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._listening.getsockname()[1])

    def call(self, function: Callable[[], None]) -> None:
        """Call a function on the thread of the server; nothing happens if the server has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def close(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """Stop serving, after `last`, whose clients have a moment to read."""
        self._last = last
        self.call(self._ended.set)
        self._thread.join()


def _refuse(client: socket.socket, answer: bytes) -> None:
    """Answer a connection that is not read, without a wait."""
    with client:
        try:
            client.send(answer)
            client.shutdown(socket.SHUT_WR)
            # Bytes that are unread when the connection closes could reset it before the answer.
            client.recv(MOST_HEAD)
        except OSError:
            pass


class Streams:
    """Clients that stay connected, and what each has yet to be sent."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Queue[bytes | None]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def send(self, news: bytes) -> None:
        """Send something to all clients; one that is too slow misses some."""
        for waiting in self._waiting:
            if waiting.qsize() < MOST_LATE:
                waiting.put_nowait(news)

    def end(self) -> None:
        """Let all clients end after what they have yet to be sent."""
        for waiting in self._waiting:
            waiting.put_nowait(None)

    async def follow(self, client: socket.socket, first: bytes, beat: bytes) -> None:
        """Send news until the client closes or does not read; `beat` where there are none."""
        waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self._waiting.add(waiting)
        try:
            news: bytes | None = first
            while news is not None:
                async with asyncio.timeout(TIMEOUT_S):
                    await loop.sock_sendall(client, news)
                try:
                    async with asyncio.timeout(BEAT_S):
                        news = await waiting.get()
                except TimeoutError:
                    news = beat
        finally:
            self._waiting.discard(waiting)


async def received(client: socket.socket, end: bytes) -> bytes:
    """Receive up to `end`, :data:`MOST_HEAD` bytes at most; empty: the client has closed."""
    loop = asyncio.get_running_loop()
    head = b""
    while end not in head and len(head) < MOST_HEAD:
        part = await loop.sock_recv(client, MOST_HEAD)
        if not part:
            return b""
        head += part
    return head


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request of HTTP, as far as the servers read it."""

    method: str
    path: str
    query: Mapping[str, str]
    host: str

    @classmethod
    def read(cls, head: bytes) -> "Request | HTTPStatus":
        """Read a head; a status: why it is refused."""
        if _END_OF_HEAD not in head:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        first, *lines = head.partition(_END_OF_HEAD)[0].decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        if method not in {"GET", "HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED
        try:
            target = urlsplit(rest.partition(" ")[0])
        except ValueError:
            return HTTPStatus.BAD_REQUEST
        hosts = [
            value.strip()
            for name, _, value in (line.partition(":") for line in lines)
            if name.lower() == "host"
        ]
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        # RFC 9112, section 3.2: exactly one.
        return cls(method, target.path, query, hosts[0] if len(hosts) == 1 else "")


def response(
    status: HTTPStatus, kind: str, body: bytes, headers: Mapping[str, str] = NO_HEADERS
) -> bytes:
    """Write a response whose connection then ends."""
    lines = {"Content-Type": kind, "Content-Length": f"{len(body)}", **headers}
    return response_head(status, {**lines, "Connection": "close"}) + body


def response_head(status: HTTPStatus, headers: Mapping[str, str]) -> bytes:
    """Write the head of a response."""
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()
