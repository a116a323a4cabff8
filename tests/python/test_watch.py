"""The metrics of a live run that are served while it runs; no live run takes place."""

import socket
import urllib.request

import pytest

import sojourn as sj
from sojourn.cli.watch import Metrics


def can_listen(address: str, family: socket.AddressFamily) -> bool:
    """Whether this machine has a local address."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.bind((address, 0))
    except OSError:
        return False
    return True


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
    if not can_listen(at, family):
        pytest.skip(f"this machine does not have the address {at}")
    metrics = Metrics(f"{address}:0")
    try:
        host = f"[{at}]" if ":" in at else at
        with urllib.request.urlopen(f"http://{host}:{metrics.port}/", timeout=5) as answer:
            assert b"# TYPE sojourn_link_drops_total counter" in answer.read()
    finally:
        metrics.close()


@pytest.mark.parametrize("address", ["9100", "nine:x", ":70000", ":-1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(sj.ScenarioError, match="is not ADDRESS:PORT; expected"):
        Metrics(address)


def test_an_address_in_use_or_of_another_machine_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(sj.ScenarioError, match=f"cannot listen at :{port}: Address already"):
            Metrics(f":{port}")
    # For documentation (RFC 3849).
    with pytest.raises(sj.ScenarioError, match=r"cannot listen at \[2001:db8::1\]:0: "):
        Metrics("[2001:db8::1]:0")
