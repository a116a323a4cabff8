"""The metrics of a live run that are served while it runs; no live run takes place."""

import resource
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

import sojourn as sj
from sojourn.live import server
from sojourn.live.metrics import Metrics


def free_port(address: str, family: socket.AddressFamily) -> int:
    """Return a free port at a local address; skip where this machine does not have it."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.bind((address, 0))
            return int(one.getsockname()[1])
    except OSError:
        pytest.skip(f"this machine does not have the address {address}")


@pytest.mark.parametrize(
    ("address", "at", "family"),
    [
        ("", "127.0.0.1", socket.AF_INET),
        ("127.0.0.1", "127.0.0.1", socket.AF_INET),
        ("localhost", "localhost", socket.AF_INET),
        ("[::1]", "::1", socket.AF_INET6),
        ("::1", "::1", socket.AF_INET6),
    ],
)
def test_metrics_are_served_at_addresses_of_both_families(
    address: str, at: str, family: socket.AddressFamily
) -> None:
    port = free_port(at, family)
    metrics = Metrics(f"{address}:{port}")
    try:
        host = f"[{at}]" if ":" in at else at
        with urllib.request.urlopen(f"http://{host}:{port}/", timeout=5) as answer:
            assert b"# TYPE sojourn_link_drops_total counter" in answer.read()
    finally:
        metrics.close()


def test_an_address_in_use_or_of_another_machine_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = f"prometheus=':{port}': cannot listen there: Address already in use; expected"
        with pytest.raises(sj.ScenarioError, match=said):
            Metrics(f":{port}")
    # For documentation (RFC 3849).
    with pytest.raises(sj.ScenarioError, match="cannot listen there: "):
        Metrics("[2001:db8::1]:9100")


@pytest.fixture
def served() -> Iterator[Metrics]:
    metrics = Metrics(f":{free_port('127.0.0.1', socket.AF_INET)}")
    yield metrics
    metrics.close()


def connected(metrics: Metrics, sent: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", metrics.port), timeout=5)
    client.sendall(sent)
    return client


def ended(client: socket.socket) -> bool:
    """Whether the server ends the connection within the time limit of the socket."""
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def answered(metrics: Metrics, request: bytes = b"GET / HTTP/1.1\r\n\r\n") -> bytes:
    with connected(metrics, request) as client, client.makefile("rb") as stream:
        return stream.read()


def test_requests_that_never_end_keep_nobody_from_the_metrics(served: Metrics) -> None:
    threads = threading.active_count()
    begun = time.monotonic()
    clients = [connected(served, b"GET / HTTP/1.1\r\nX: ") for _ in range(40)]
    assert b"sojourn_link_drops_total" in answered(served)
    # Without a wait for the time limit of the others.
    assert time.monotonic() - begun < server.TIMEOUT_S
    assert threading.active_count() == threads
    waiting = 0
    for client in clients:
        client.settimeout(0.01)
        waiting += not ended(client)
        client.close()
    assert 0 < waiting <= server.MOST_CONNECTIONS


def test_a_connection_has_a_time_limit(served: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (server.TIMEOUT_S, server.MOST_CONNECTIONS) == (5, 8)
    monkeypatch.setattr(server, "TIMEOUT_S", 0.3)
    begun = time.monotonic()
    with connected(served, b"GET / HTTP/1.1\r\nX: ") as client:
        # A client that always sends in time does not get more of it.
        for _ in range(5):
            time.sleep(0.1)
            try:
                client.sendall(b"y")
            except OSError:
                break
        assert ended(client)
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    ("request_", "status", "has_body"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"200 OK", True),
        (b"HEAD / HTTP/1.0\r\n\r\n", b"200 OK", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 9999\r\n\r\n", b"405 Method Not Allowed", False),
        (b"\x00\xff\r\n\r\n", b"405 Method Not Allowed", False),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"431 ", False),
    ],
)
def test_requests_are_of_limited_size_and_kind(
    served: Metrics, request_: bytes, status: bytes, *, has_body: bool
) -> None:
    try:
        head, _, body = answered(served, request_).partition(b"\r\n\r\n")
    except ConnectionResetError:
        # It ends a connection although bytes are unread, so the answer may be lost.
        assert len(request_) > server.MOST_HEAD
    else:
        assert head.startswith(b"HTTP/1.1 " + status)
        assert bool(body) is has_body
    assert answered(served).startswith(b"HTTP/1.1 200 OK")


_FULL = """
import os, resource, sys, time
from sojourn.live.metrics import Metrics
metrics = Metrics(":" + sys.argv[1])
files = []
try:
    while True:
        files.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
print("full", flush=True)
sys.stdin.readline()
used = time.process_time()
time.sleep(1)
print(time.process_time() - used, flush=True)
for file in files:
    os.close(file)
sys.stdin.readline()
"""


def test_a_process_without_free_descriptors_does_not_spin() -> None:
    port = free_port("127.0.0.1", socket.AF_INET)
    process = subprocess.Popen(
        [sys.executable, "-c", _FULL, f"{port}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)),  # noqa: PLW1509
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "full\n"
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            print(file=process.stdin, flush=True)
            assert float(process.stdout.readline()) < 0.2
            assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
        process.stdin.close()
    assert process.returncode == 0
