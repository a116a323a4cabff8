"""A server that speaks the protocol of S3, with faults: moto's, in a thread of the test."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "team"
# What servers answer to requests that change something.
FULL = ("507 Insufficient Storage", "XMinioStorageFull", "Storage backend has reached its minimum")
DENIED = ("403 Forbidden", "AccessDenied", "Access Denied")
BUSY = ("503 Slow Down", "SlowDown", "Reduce your request rate")


class _Silent(WSGIRequestHandler):
    def log(self, *_arguments: object, **_named: object) -> None:
        """Print nothing."""


class Server:
    """A server with the empty bucket ``team``.

    Attributes
    ----------
    fault
        The answer to requests that write: status, code and message; None if there is no fault.
    written
        Number of requests that wrote an object.
    """

    def __init__(self) -> None:
        self.fault: tuple[str, str, str] | None = None
        self.written = 0
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=_Silent
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        self.request("PUT", BUCKET)

    def request(self, method: str, path: str) -> None:
        connection = HTTPConnection("127.0.0.1", self._server.server_port, timeout=10)
        connection.request(method, f"/{path}")
        assert connection.getresponse().status == 200
        connection.close()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        writes = environ["REQUEST_METHOD"] in {"PUT", "POST", "DELETE"}
        if writes and self.fault is not None:
            status, code, message = self.fault
            start(status, [("Content-Type", "application/xml")])
            text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
            return [text.encode()]
        self.written += environ["REQUEST_METHOD"] == "PUT"
        answered: Iterable[bytes] = self._moto(environ, start)
        return answered


@contextmanager
def server() -> Iterator[Server]:
    started = Server()
    try:
        # Objects stay in the memory of moto between servers.
        started.request("POST", "moto-api/reset")
        started.request("PUT", BUCKET)
        yield started
    finally:
        started.close()
