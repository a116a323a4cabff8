"""HAR files of browsers as page descriptions of the application ``web``.

Source: "HTTP Archive (HAR) format", version 1.2 (W3C Web Performance Working Group, 2012). Chrome
and Firefox add ``_transferSize``, and Chrome ``_initiator``.

A HAR file states when a request was sent, but not why. An object depends on its initiator, where
the browser names it, and else on the object that completed last before the request. The delay of
the client is the time between the two; the work of the server is the time to the first byte of the
response, without the round trip that the TCP handshakes to the server took.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sojourn.arguments import checked
from sojourn.exchange.untrusted import damaged, number, read_object, text
from sojourn.result.formatting import counted
from sojourn.traffic import Page, PageObject

# Of a page, as in the scenario.
MOST_OBJECTS = 10_000
# What a response has at least: its header.
LEAST_BYTES = 1
# No page loads for so long: an hour, in ms.
LONGEST_MS = 3_600_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A request with its response; times in ms."""

    url: str
    host: str
    begin: float
    end: float
    # None: the file does not state it.
    size: int | None
    wait: float
    # The time of the TCP handshake, if the request opened a connection.
    handshake: float | None
    initiator: str


@checked
def read_har(path: str | Path) -> dict[str, Page]:
    """Read the pages that a browser saved as HAR.

    Parameters
    ----------
    path
        The file, plain or compressed by gzip or bzip2.

    Returns
    -------
    dict of str to Page
        The pages by name, for the `pages` of a scenario: ``"page1"`` and so on.

    Raises
    ------
    ResultError
        The file cannot be read.
    DamagedResultError
        The file is not a HAR file, or has no page with a response.
    """
    return {name: page for name, (page, _) in _pages(path).items()}


def _pages(path: str | Path) -> dict[str, tuple[Page, list[str]]]:
    """Read the pages, and what to note about each."""
    log = read_object(path).get("log")
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        damaged(path, "log.entries: expected a list, as in a HAR file")
    pages: dict[str, list[Entry]] = {}
    for one in entries:
        if isinstance(one, dict) and (entry := _entry(one)) is not None:
            pages.setdefault(text(one.get("pageref")), []).append(entry)
    if not pages:
        damaged(path, "no request with a response")
    for of in pages.values():
        if len(of) > MOST_OBJECTS:
            damaged(path, f"a page of {len(of)} requests; expected at most {MOST_OBJECTS}")
    return {f"page{n}": _page(of) for n, of in enumerate(pages.values(), 1)}


def toml(path: str | Path) -> tuple[str, list[str]]:
    """Write the pages of a HAR file as a part of a scenario file, and what to note about them."""
    notes = []
    lines = [f"# Pages of {Path(path).name}, for traffic of type web with page = NAME."]
    for name, (page, said) in _pages(path).items():
        notes += [f"{path}: {name}: {note}" for note in said]
        for one in page.objects:
            lines += ["", f"[[pages.{name}.objects]]", f'name = "{one.name}"']
            lines += [f'bytes = "{one.bytes}"']
            if one.after:
                lines.append(f'after = ["{one.after[0]}"]')
            lines += [
                f'{key} = "{value}"'
                for key in ("delay", "work", "origin")
                if (value := getattr(one, key)) is not None
            ]
    return "\n".join(lines), notes


def _inner(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = of.get(key)
    return found if isinstance(found, dict) else {}


def _entry(of: Mapping[str, Any]) -> Entry | None:
    """Read an entry; None if it has no response, as of a cache or of an aborted request."""
    request, response, timings = (_inner(of, key) for key in ("request", "response", "timings"))
    took = number(of.get("time"))
    status = number(response.get("status"))
    try:
        begin = datetime.fromisoformat(text(of.get("startedDateTime"))).timestamp() * 1e3
        parts = urlsplit(text(request.get("url")))
    except (ValueError, OverflowError):
        return None
    if took is None or not 0 <= took <= LONGEST_MS or not status or not parts.hostname:
        return None
    sizes = [
        whole
        for whole in (
            number(response.get("_transferSize")),
            _sum(response, "headersSize", "bodySize"),
            number(_inner(response, "content").get("size")),
        )
        if whole is not None and whole >= 0
    ]
    # Of a response from a cache, the first is 0.
    size = next(filter(None, sizes), LEAST_BYTES if sizes else None)
    connect, tls = number(timings.get("connect")), number(timings.get("ssl"))
    handshake = None
    if connect is not None and connect >= 0:
        # The time of TLS is a part of the connection.
        handshake = max(connect - max(tls or 0.0, 0.0), 0.0)
    initiator = _inner(of, "_initiator")
    return Entry(
        url=text(request.get("url")),
        host=parts.hostname,
        begin=begin,
        end=begin + took,
        size=None if size is None else round(min(size, 2.0**40)),
        wait=max(number(timings.get("wait")) or 0.0, 0.0),
        handshake=handshake,
        initiator=text(initiator.get("url")),
    )


def _sum(of: Mapping[str, Any], *keys: str) -> float | None:
    """Add sizes, of which −1 is unknown; None if the last one is."""
    sizes = [number(of.get(key)) for key in keys]
    if sizes[-1] is None or sizes[-1] < 0:
        return None
    return sum(max(size or 0.0, 0.0) for size in sizes)


def _page(entries: list[Entry]) -> tuple[Page, list[str]]:
    """Describe a page, whose first request is that of the document, as :func:`_pages` does."""
    ordered = sorted(entries, key=lambda one: (one.begin, one.end))
    trips: dict[str, float] = {}
    for one in ordered:
        if one.handshake is not None:
            trips[one.host] = min(one.handshake, trips.get(one.host, one.handshake))
    names = ["document", *(f"object{n}" for n in range(2, len(ordered) + 1))]
    objects = []
    by_url: dict[str, int] = {}
    early = sizeless = 0
    for n, one in enumerate(ordered):
        before = _cause(ordered, n, by_url)
        by_url.setdefault(one.url, n)
        work = max(one.wait - trips.get(one.host, 0.0), 0.0)
        delay = one.begin - ordered[before].end if before is not None else 0.0
        early += delay < 0
        sizeless += one.size is None
        objects.append(
            PageObject(
                name=names[n],
                bytes=f"{LEAST_BYTES if one.size is None else one.size}b",
                after=None if before is None else [names[before]],
                delay=_time(delay),
                work=_time(work),
                origin=None if one.host == ordered[0].host else one.host,
            )
        )
    return Page(objects=objects), [
        *_notes(early, sizeless, len(objects)),
        *_reused(ordered, trips),
    ]


def _notes(early: int, sizeless: int, objects: int) -> Iterator[str]:
    of = f"of {counted(objects, 'object')}"
    if early:
        yield (
            f"{early} {of} {'was' if early == 1 else 'were'} requested before the object in after "
            "was complete; the page requests them later than the browser"
        )
    if sizeless:
        yield f"{sizeless} {of} {'has' if sizeless == 1 else 'have'} no size, so 1 byte is read"


def _reused(ordered: list[Entry], trips: Mapping[str, float]) -> Iterator[str]:
    """Name the hosts to which the file has no handshake: their connections were open before."""
    hosts = list(dict.fromkeys(one.host for one in ordered if one.host not in trips and one.wait))
    if hosts:
        more = f" and {counted(len(hosts) - 1, 'other host')}" if len(hosts) > 1 else ""
        yield (
            f"the file has no handshake to {hosts[0]}{more}, so work is the whole time to the "
            "first byte, with a round trip; record the page without open connections, or reduce "
            "work by the RTT"
        )


def _cause(ordered: list[Entry], n: int, by_url: Mapping[str, int]) -> int | None:
    """Find the object that a request waited for."""
    one = ordered[n]
    named = by_url.get(one.initiator)
    if named is not None:
        return named
    done = [before for before in range(n) if ordered[before].end <= one.begin]
    if done:
        return max(done, key=lambda before: ordered[before].end)
    # Browsers request objects while the document arrives.
    return 0 if n else None


def _time(ms: float) -> str | None:
    """Write a time in µs; None for less."""
    return f"{round(min(ms, LONGEST_MS) * 1e3)}us" if ms >= 1e-3 else None  # noqa: PLR2004 - 1 µs
