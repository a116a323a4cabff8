"""The metrics of a live run that are served while it runs; no live run takes place."""

import socket
import urllib.request

import pytest

import sojourn as sj
from sojourn.cli.live import Metrics


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
        said = f"metrics=':{port}': cannot listen there: Address already in use; expected"
        with pytest.raises(sj.ScenarioError, match=said):
            Metrics(f":{port}")
    # For documentation (RFC 3849).
    with pytest.raises(sj.ScenarioError, match="cannot listen there: "):
        Metrics("[2001:db8::1]:9100")
