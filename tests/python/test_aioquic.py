"""aioquic, unmodified, over ``sojourn.Path`` in virtual time."""

import hashlib
import math
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

import pytest

import sojourn as sj

connection = pytest.importorskip("aioquic.quic.connection")
configuration = pytest.importorskip("aioquic.quic.configuration")
quic_events = pytest.importorskip("aioquic.quic.events")
x509 = pytest.importorskip("cryptography.x509")

CLIENT, SERVER = ("10.0.0.1", 443), ("10.0.0.2", 443)


@cache
def certificate() -> tuple[Any, Any]:
    """Return a certificate and its key; signatures of RSA have all the same size."""
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - may be missing
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - may be missing

    key = rsa.generate_private_key(65_537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    builder = builder.not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
    return builder.sign(key, hashes.SHA256()), key


class Run(NamedTuple):
    """What a download did."""

    received: int
    events: int
    digest: str
    dropped: int
    sojourn_p95: float


class Side:
    """Client or server, with its application."""

    def __init__(self, quic: Any, direction: str, response: bytes | None = None) -> None:
        self.quic = quic
        self.direction = direction
        self.response = response
        self.received = 0
        #: A server begins with the first datagram.
        self.has_begun = response is None

    def deliver(self, data: bytes, peer: tuple[str, int], now: float) -> None:
        """Receive a datagram."""
        self.has_begun = True
        self.quic.receive_datagram(data, peer, now)

    def turn(self, now: float, path: sj.Path) -> float:
        """Run timers and the application, send, and return the time of the next timer."""
        if not self.has_begun:
            return math.inf
        due = self.quic.get_timer()
        if due is not None and due <= now:
            self.quic.handle_timer(now)
        while (event := self.quic.next_event()) is not None:
            if isinstance(event, quic_events.HandshakeCompleted) and self.response is None:
                self.quic.send_stream_data(0, b"get", end_stream=True)
            elif isinstance(event, quic_events.StreamDataReceived):
                self.received += len(event.data)
                if self.response is not None:
                    self.quic.send_stream_data(0, self.response)
        for datagram, _ in self.quic.datagrams_to_send(now):
            path.push(now, datagram, direction=self.direction, flow=1)
        due = self.quic.get_timer()
        # A timer may be between two nanoseconds.
        return math.inf if due is None else max(due, now + 1e-9)


def sides(response: int) -> tuple[Side, Side]:
    """Return client and server, before the handshake."""
    common = {"alpn_protocols": ["get"], "max_data": 1 << 30, "max_stream_data": 1 << 30}
    of_client = configuration.QuicConfiguration(is_client=True, verify_mode=0, **common)
    of_server = configuration.QuicConfiguration(is_client=False, **common)
    of_server.certificate, of_server.private_key = certificate()
    client = connection.QuicConnection(configuration=of_client)
    client.connect(SERVER, now=0.0)
    first = client.original_destination_connection_id
    server = connection.QuicConnection(
        configuration=of_server, original_destination_connection_id=first
    )
    return Side(client, "reverse"), Side(server, "forward", bytes(response))


def download(path: sj.Path, seconds: float) -> Run:
    """Download over one connection; the server sends in the forward direction."""
    # More than the link carries.
    client, server = sides(int(seconds * 3e6))
    digest, events, now = hashlib.sha256(), 0, 0.0
    while now <= seconds:
        for delivery in path.poll(now):
            to, peer = (client, SERVER) if delivery.direction == "forward" else (server, CLIENT)
            to.deliver(delivery.data, peer, now)
        timers = [client.turn(now, path), server.turn(now, path)]
        for happened in path.events():
            digest.update(repr(happened).encode())
            events += 1
        deadline = path.deadline()
        now = min(*timers, math.inf if deadline is None else deadline)
    dropped = path.counters()["drops_aqm"] + path.counters()["drops_overlimit"]
    p95 = path.sojourn(0.95)
    assert p95 is not None
    return Run(client.received, events, digest.hexdigest(), dropped, p95)


def trace() -> str:
    """Return opportunities for 10 s: 4 to 60 Mbit/s, another rate every 100 ms."""
    lines, state, per_ms, credit = [], 1, 1.7, 0.0
    for ms in range(1, 10_001):
        if ms % 100 == 0:
            # A linear congruential generator (Knuth, MMIX).
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            draw = (state >> 33) / 2**31
            per_ms = min(max(per_ms * (0.5 + 1.5 * draw**1.5), 0.33), 5.0)
        credit += per_ms
        while credit >= 1:
            credit -= 1
            lines.append(f"{ms}\n")
    return "".join(lines)


def wired(qdisc: str) -> sj.Path:
    """Return a bottleneck of 20 Mbit/s with an RTT of 40 ms."""
    return sj.Path(f"rate 20mbit delay 20ms qdisc {qdisc}", seed=1, events=True)


def cellular() -> sj.Path:
    """Return the same over a link whose rate varies as that of a cellular link."""
    text = "delay 20ms qdisc fq_codel"
    return sj.Path(text, "delay 20ms", forward_trace=trace(), seed=1, events=True)


def test_a_download_over_fq_codel_has_the_same_packets_twice() -> None:
    first, second = (download(wired("fq_codel"), 2) for _ in range(2))
    assert first == second
    assert first.received > 1e6


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("make", "least", "most"),
    [
        pytest.param(lambda: wired("fq_codel"), 15e6, 0.02, id="fq_codel"),
        pytest.param(lambda: wired("dualpi2"), 14e6, 0.06, id="dualpi2"),
        pytest.param(cellular, 8e6, 0.2, id="trace"),
    ],
)
def test_downloads_of_30_s_have_the_same_packets_twice(
    make: Any, least: float, most: float
) -> None:
    first, second = (download(make(), 30) for _ in range(2))
    assert first == second
    assert first.received * 8 / 30 > least, first
    assert first.sojourn_p95 < most, first
    assert first.dropped > 0, first
