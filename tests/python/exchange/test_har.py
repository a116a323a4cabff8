"""HAR files as pages of the application web."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from support.refusals import refused
from support.shell import Command


def entry(url: str, begin: int, took: float, **changes: Any) -> dict[str, Any]:
    """A request at `begin` ms."""
    return {
        "pageref": "p",
        "startedDateTime": f"2024-01-01T00:00:00.{begin:03d}Z",
        "time": took,
        "request": {"url": url},
        "response": {"status": 200, "_transferSize": 20_000},
        "timings": {"connect": -1, "wait": 0},
    } | changes


def har(*entries: dict[str, Any]) -> str:
    return json.dumps({"log": {"version": "1.2", "pages": [{"id": "p"}], "entries": entries}})


DOCUMENT = entry("https://a/", 0, 100, timings={"connect": 60, "ssl": 40, "wait": 50})


def test_an_object_follows_its_initiator_or_the_last_before_it(tmp_path: Path) -> None:
    file = tmp_path / "a.har"
    file.write_text(
        har(
            entry("https://a/3", 250, 10, _initiator={"url": "https://a/"}),
            DOCUMENT,
            entry(
                "https://a/2", 110, 60, response={"status": 200, "headersSize": 9, "bodySize": 1}
            ),
            entry("https://b/4", 180, 60, timings={"connect": 30, "ssl": -1, "wait": 35}),
            entry("https://a/aborted", 180, 60, response={"status": 0}),
            entry("https://a/early", 50, 10),
        ),
        encoding="utf-8",
    )
    (page,) = sj.read_har(file).values()
    document, early, second, other, third = page.objects
    # The handshake to a took 20 ms, which the wait includes.
    assert (document.bytes, document.work, document.after) == ("20000b", "30000us", None)
    # Requested while the document arrived.
    assert (early.after, early.delay) == (["document"], None)
    assert (second.bytes, second.after, second.delay) == ("10b", ["document"], "10000us")
    assert (other.after, other.origin, other.work) == (["object3"], "b", "5000us")
    assert (third.after, third.delay) == (["document"], "150000us")
    links = {side: sj.Link(rate="10mbit", qdisc="fq_codel") for side in ("up", "down")}
    web = sj.Web(direction="down", page="mine", visits=1)
    scenario = sj.Scenario(
        links=links, traffic=[web], pages={"mine": page}, rtt="20ms", duration="5s"
    )
    assert sj.run(scenario).transactions["bytes"].to_list() == [80_010]


def test_the_command_prints_pages_for_a_scenario_file(sojourn: Command, tmp_path: Path) -> None:
    (tmp_path / "a.har").write_text(har(DOCUMENT, entry("https://b/2", 120, 5)), encoding="utf-8")
    done = sojourn("import", "a.har")
    assert done.returncode == 0, done.stderr
    head = (
        'duration = "3s"\nrtt = "20ms"\n[links.down]\nrate = "10mbit"\nqdisc = "pfifo"\n'
        '[links.up]\nrate = "10mbit"\nqdisc = "pfifo"\n'
        '[[traffic]]\ntype = "web"\ndirection = "down"\npage = "page1"\n'
    )
    (tmp_path / "s.toml").write_text(head + done.stdout, encoding="utf-8")
    assert sojourn("run", "s.toml").returncode == 0
    refused(
        sojourn("import", "a.har", "--out", "m"),
        2,
        "a.har: --out is only for measurements$",
    )
    (tmp_path / "b.har").write_text(har(DOCUMENT), encoding="utf-8")
    refused(sojourn("import", "a.har", "b.har"), 2, "a.har: a HAR file describes pages; import")


def test_objects_that_a_page_requests_too_late_are_counted(
    tmp_path: Path, sojourn: Command
) -> None:
    late = entry("https://a/late", 150, 10, _initiator={"url": "https://a/"})
    early = [entry(f"https://a/{n}", 20 + n, 10) for n in (1, 2)]
    (tmp_path / "a.har").write_text(har(DOCUMENT, late, *early), encoding="utf-8")
    assert sojourn("import", "a.har").stderr == (
        "note: a.har: page1: 2 of 4 objects were requested before the object in after was "
        "complete; the page requests them later than the browser\n"
    )
    (tmp_path / "b.har").write_text(har(DOCUMENT, late), encoding="utf-8")
    assert sojourn("import", "b.har").stderr == ""


def test_unknown_sizes_and_open_connections_are_noted(tmp_path: Path, sojourn: Command) -> None:
    unknown = {"status": 200, "headersSize": 100, "bodySize": -1, "content": {"size": -1}}
    empty = {"status": 204, "headersSize": -1, "bodySize": 0}
    timings = {"connect": -1, "ssl": -1, "wait": 60}
    (tmp_path / "a.har").write_text(
        har(
            DOCUMENT,
            entry("https://a/2", 110, 5, response=unknown),
            entry("https://a/3", 120, 5, response=empty),
            entry("https://b/4", 130, 70, timings=timings),
        ),
        encoding="utf-8",
    )
    assert sojourn("import", "a.har").stderr.splitlines() == [
        "note: a.har: page1: 1 of 4 objects has no size, so 1 byte is read",
        (
            "note: a.har: page1: the file has no handshake to b, so work is the whole time to the "
            "first byte, with a round trip; record the page without open connections, or reduce "
            "work by the RTT"
        ),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"log": {}}', "log.entries: expected a list, as in a HAR file"),
        (har(), "no request with a response"),
        (har(entry("x", 0, 1)), "no request with a response"),
        (har(entry("https://a/", 0, -1)), "no request with a response"),
        (har(DOCUMENT | {"startedDateTime": "never"}), "no request with a response"),
    ],
)
def test_other_content_is_refused(
    content: str, said: str, sojourn: Command, tmp_path: Path
) -> None:
    (tmp_path / "x.har").write_text(content, encoding="utf-8")
    refused(sojourn("import", "x.har"), 4, f"^sojourn: x.har: {said}")
