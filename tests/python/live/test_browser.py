"""The dashboard in the browser: who may read it, how many, and what it shows; no live run."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium

import sojourn as sj
from sojourn.live import server
from sojourn.live.browser import Browser
from support.chromium import NARROW, WIDE, overflow, started, violations
from support.views import busy_second

__all__ = ["chromium"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    yield from started()


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as one:
        one.bind((address, 0))
        return int(one.getsockname()[1])


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def served(port: int) -> Iterator[Browser]:
    with closing(Browser(f":{port}", {"name": "a </script><b>run"})) as one:
        yield one


def status(port: int, path: str = "/", *, host: str | None = None, method: str = "GET") -> int:
    """Ask with a Host header; return the status."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as client:
        client.putrequest(method, path, skip_host=True)
        if host is not None:
            client.putheader("Host", host)
        client.endheaders()
        answer = client.getresponse()
        assert answer.getheader("Cache-Control") == "no-store"
        return answer.status


def stream(port: int, path: str = "/events") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=5)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
    return client


def events(client: socket.socket, wanted: int) -> list[tuple[str, Any]]:
    """Read events of a stream."""
    found: list[tuple[str, Any]] = []
    with client.makefile("r", encoding="utf-8", newline="\n") as lines:
        assert lines.readline() == "HTTP/1.1 200 OK\r\n"
        name = ""
        for line in lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                found.append((name, json.loads(line.removeprefix("data: "))))
                if len(found) == wanted:
                    break
    return found


def test_only_its_own_names_are_answered(served: Browser, port: int) -> None:
    assert served.url == f"http://127.0.0.1:{port}/"
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert status(port, host=f"{host}:{port}") == 200
    # A name of another site that resolves to this machine, another port, and none.
    for foreign in (
        f"evil.example:{port}",
        "127.0.0.1:1",
        "127.0.0.1",
        f"192.0.2.1:{port}",
        "",
        None,
    ):
        for path in ("/", "/events"):
            assert status(port, path, host=foreign) == 421, foreign


def test_it_changes_nothing_and_has_one_page(served: Browser, port: int) -> None:
    host = f"localhost:{port}"
    assert status(port, host=host, method="POST") == 405
    assert status(port, "/other", host=host) == 404
    assert status(port, "/events", host=host, method="HEAD") == 404
    del served


def test_a_stream_has_the_past_and_each_new_view(served: Browser, port: int) -> None:
    served.show([busy_second("down", 1.0, changes=[[0.5, '{qdisc = "pie"}']])])
    with stream(port) as client:
        while not len(served.streams):
            time.sleep(0.01)
        served.show([busy_second("down", 2.0)])
        (first, past), (second, view) = events(client, 2)
    assert (first, second) == ("history", "view")
    assert [one[0]["time_s"] for one in past["views"]] == [1.0]
    assert past["changes"] == [[0.5, "down", '{qdisc = "pie"}']]
    assert view[0]["time_s"] == 2.0
    assert view[0]["flows"][0]["name"] == "tcp 5201 > 43918"


def test_a_ninth_connection_is_refused_and_a_place_becomes_free(served: Browser, port: int) -> None:
    clients = [stream(port) for _ in range(server.MOST_CONNECTIONS)]
    for client in clients:
        assert client.recv(12) == b"HTTP/1.1 200"
    assert status(port, host=f"localhost:{port}") == 503
    clients.pop().close()
    deadline = time.monotonic() + 5
    # The server notices when it sends.
    while status(port, host=f"localhost:{port}") == 503:
        assert time.monotonic() < deadline
        served.show([busy_second("down", 1.0)])
        time.sleep(0.05)
    # The others were not disturbed.
    served.show([busy_second("down", 9.0)])
    for client in clients:
        client.settimeout(5)
        received = b""
        while b'"time_s":9.0' not in received:
            received += client.recv(65_536)
        client.close()


def test_a_client_that_does_not_read_is_dropped(
    served: Browser, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(server, "BEAT_S", 0.1)
    with stream(port) as client:
        # Without a request line, too.
        with socket.create_connection(("127.0.0.1", port), timeout=5) as silent:
            begun = time.monotonic()
            assert silent.recv(1) == b""
            assert time.monotonic() - begun < 3
        large = busy_second("down", 1.0) | {"changes": [[1.0, "x" * 400_000]]}
        for _ in range(20):
            served.show([large])
            time.sleep(0.02)
        deadline = time.monotonic() + 5
        while len(served.streams):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        del client


def test_other_machines_need_the_token(port: int) -> None:
    with closing(Browser(f"0.0.0.0:{port}", {"name": "run"})) as served:
        address, _, token = served.url.partition("?token=")
        assert address == f"http://{socket.gethostname()}:{port}/"
        assert len(token) >= 32
        host = f"192.0.2.1:{port}"
        for path in ("/", "/events"):
            assert status(port, path, host=host) == 403
            assert status(port, f"{path}?token=", host=host) == 403
            assert status(port, f"{path}?token={token[:-1]}x", host=host) == 403
        assert status(port, f"/?token={token}", host=host) == 200
        assert status(port, f"/?token={token}", host=f"evil.example:{port}") == 421
        with stream(port, f"/events?token={token}") as client:
            assert events(client, 1)[0][0] == "history"


@pytest.mark.parametrize("address", ["8080", ":0", ":65536", "127.0.0.1:x"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(sj.ScenarioError, match="expected ADDRESS:PORT or :PORT"):
        Browser(address, {"name": "run"})


@pytest.mark.parametrize("width", [WIDE, pytest.param(NARROW, marks=pytest.mark.slow)])
def test_the_page_shows_links_flows_and_changes(
    chromium: Chromium, served: Browser, port: int, width: int
) -> None:
    for second in range(1, 40):
        served.show([busy_second("down", second), busy_second("up", second)])
    context = chromium.new_context(viewport={"width": width, "height": 900}, bypass_csp=True)
    page = context.new_page()
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.on("pageerror", lambda one: problems.append(f"{one}"))
    page.goto(served.url)
    page.wait_for_selector("section h2")
    served.show(
        [busy_second("down", 40, changes=[[39.5, '{qdisc = "pie"}']]), busy_second("up", 40)]
    )
    page.wait_for_selector("#changes li")
    assert page.inner_text("#changes li") == '39.50 s, down: {qdisc = "pie"}'
    assert page.inner_text("h1") == "a </script><b>run"
    assert page.inner_text("#state") == "running"
    assert "8 overlimit" in page.inner_text("section .counts >> nth=0")
    assert page.locator("section tbody tr").count() == 4
    assert page.locator("svg path.a").count() >= 6
    assert overflow(page) == 0
    assert violations(page) == []
    assert problems == []
    assert {url.partition(f":{port}")[0] for url in asked if not url.startswith("data:")} == {
        "http://127.0.0.1"
    }
    served.close()
    page.wait_for_function("document.getElementById('state').textContent === 'ended'")
    context.close()


def test_the_policy_permits_the_script_of_the_page(chromium: Chromium, served: Browser) -> None:
    served.show([busy_second("down", 1.0)])
    page = chromium.new_page()
    said: list[str] = []
    page.on("console", lambda one: said.append(one.text))
    page.goto(served.url)
    page.wait_for_selector("section h2")
    assert said == []
    # Neither a style nor a script that is not of the page.
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p>')")
    assert any("Content Security Policy" in text for text in said)
    page.close()
