"""Show a live run while it runs: lines on standard error, and metrics for Prometheus."""

import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn

from sojourn import _core
from sojourn.arguments import ArgumentError

_METRICS = (
    ("sent_bytes", "counter", "Bytes taken from the queue."),
    ("sent_packets", "counter", "Packets taken from the queue."),
    ("drops", "counter", "Packets discarded by the queue."),
    ("marks", "counter", "Packets CE-marked by the queue."),
    ("backlog_bytes", "gauge", "Bytes waiting in the queue."),
    ("backlog_packets", "gauge", "Packets waiting in the queue."),
)
MAX_PORT = 65535
_QUANTILES = ("0.5", "0.95", "0.99")
_UP = "\x1b[{}F"
_CLEAR = "\x1b[K"


_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}


class View:
    """Prints the links of a run once per second: in place on a terminal, else as lines."""

    def __init__(self, flows: int = 0) -> None:
        self._flows = flows
        self._lines = 0

    def show(self, links: list[dict[str, Any]]) -> None:
        """Print one line per link, and one per flow of it."""
        lines = []
        for link in links:
            lines.append(_line(link))
            lines += [_flow_line(flow) for flow in link["flows"][: self._flows]]
        if sys.stderr.isatty():
            back = _UP.format(self._lines) if self._lines else ""
            # Flows that have ended leave lines behind.
            lines += [""] * (self._lines - len(lines))
            text = back + "".join(f"{_CLEAR}{line}\n" for line in lines)
        else:
            text = "".join(f"{line}\n" for line in lines)
        self._lines = len(lines)
        sys.stderr.write(text)
        sys.stderr.flush()


def _line(link: dict[str, Any]) -> str:
    """Describe a link in the last second."""
    sojourn = link["sojourn_ms"]
    delays = "-" if sojourn is None else "/".join(f"{ms:.1f}" for ms in sojourn)
    return (
        f"{link['time_s']:6.0f} s  {_core.printable(link['link']):<8} "
        f"{link['bits_per_s'] / 1e6:8.2f} Mbit/s  "
        f"backlog {link['backlog_packets']:5} packets {link['backlog_bytes'] / 1e3:8.1f} kB  "
        f"sojourn p50/p95/p99 {delays} ms  drops {link['drops']}  marks {link['marks']}"
    )


def _flow_line(flow: dict[str, Any]) -> str:
    """Describe a transport flow at a link in the last second."""
    protocol = _PROTOCOLS.get(flow["protocol"], f"protocol {flow['protocol']}")
    source, destination = flow["ports"]
    # Echo requests have an identifier instead of ports.
    name = f"{protocol} {source} > {destination}" if source else f"{protocol} id {destination}"
    sojourn = flow["sojourn_ms"]
    delays = "-" if sojourn is None else "/".join(f"{ms:.1f}" for ms in sojourn)
    return (
        f"           {name:<18} {flow['bits_per_s'] / 1e6:8.2f} Mbit/s  "
        f"sojourn mean/max {delays} ms  drops {flow['drops']}  marks {flow['marks']}"
    )


class _Server(ThreadingHTTPServer):
    """Listens at an address of IPv4 or IPv6, or at that of a name."""

    daemon_threads = True

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        (self.address_family, _, _, _, place), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )
        super().__init__((str(place[0]), port), handler)


class Metrics:
    """Serves the last view in the text format of Prometheus."""

    def __init__(self, address: str) -> None:
        def refuse(problem: str) -> NoReturn:
            rule = "{problem}; expected ADDRESS:PORT or :PORT, PORT from 1 to {most}"
            raise ArgumentError("metrics", address, rule, problem=problem, most=MAX_PORT) from None

        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal():
            refuse("no port")
        if not 1 <= int(port) <= MAX_PORT:
            refuse(f"port {port} is out of range")
        self._links: list[dict[str, Any]] = []
        try:
            self._server = _Server(host.strip("[]") or "127.0.0.1", int(port), self._handler())
        except OSError as error:
            refuse(f"cannot listen there: {error.strerror}")
        except UnicodeError:
            refuse(f"{host} is not a host name")
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = metrics.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing: standard error is for the view."""

        return Handler

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._server.server_address[1])

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
        self._server.shutdown()
        self._server.server_close()


def _label(link: dict[str, Any]) -> str:
    name = link["link"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'link="{name}"'


def watcher(*shown: View | Metrics | None) -> Any:
    """Return a function that passes a view, given as JSON, to all of these; None without any."""
    wanted = [one for one in shown if one is not None]
    if not wanted:
        return None

    def show(text: str) -> None:
        links = json.loads(text)
        for one in wanted:
            one.show(links)

    return show
