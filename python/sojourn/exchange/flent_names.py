"""The test of flent that fits the traffic of a run, and the names of its series.

The metadata of a data file name a test, and flent (https://flent.org) plots the file according to
the definition of this test. The test must therefore exist, and the series must have its names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SIDES = {"up": "upload", "down": "download"}
# The series of the tests `rrul` and `rrul_be` for one direction.
RRUL = ("BE", "BK", "CS5", "EF")
RRUL_BE = ("BE", "BE2", "BE3", "BE4")
HTTP = "HTTP latency"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A test of flent and the series of a run."""

    test: str
    parameters: dict[str, str]
    series: dict[str, str]
    totals: dict[str, str]


def fitted(flows: Sequence[Row], udp_pings: Mapping[str, str | None]) -> Fit | None:
    """Choose a test for the flows of a run."""
    tcp = {
        side: [flow["flow"] for flow in flows if _is_bulk(flow) and flow["direction"] == side]
        for side in SIDES
    }
    pings = [flow for flow in flows if flow["kind"] == "ping"]
    web = [flow["flow"] for flow in flows if flow["kind"] == "web"]
    udp = [flow["flow"] for flow in flows if flow["kind"] == "udp" and flow["direction"] == "up"]
    chosen = _test(tcp, web=web, udp=udp, pings=len(pings))
    if chosen is None:
        return None
    test, names = chosen
    parameters = {}
    if test in {"tcp_nup", "rrul_be_nflows"}:
        parameters["upload_streams"] = str(len(tcp["up"]))
    if test in {"tcp_ndown", "rrul_be_nflows"}:
        parameters["download_streams"] = str(len(tcp["down"]))
    names |= _pings(pings, udp_pings, test)
    # The tests with one flow per direction compute no sums.
    summed = test.startswith(("rrul", "tcp_n"))
    totals = {side: f"TCP {SIDES[side]}" for side in SIDES if tcp[side]} if summed else {}
    return Fit(test=test, parameters=parameters, series=names, totals=totals)


def _is_bulk(flow: Row) -> bool:
    return flow["kind"] == "tcp" and flow["direction"] in SIDES


def _test(
    tcp: Mapping[str, list[str]], *, web: list[str], udp: list[str], pings: int
) -> tuple[str, dict[str, str]] | None:
    """Return the name of a test and the series of the flows that load the links."""
    up, down = len(tcp["up"]), len(tcp["down"])
    names = {
        flow: f"TCP {SIDES[side]} {mark}"
        for side in SIDES
        for flow, mark in zip(tcp[side], RRUL, strict=False)
    }
    if up == down == len(RRUL) and all(flow == name for flow, name in names.items()):
        return "rrul", names
    if web and up + down <= 1:
        side = "up" if up else "down"
        test = f"http-1{side}" if up + down else "http"
        series = dict.fromkeys(tcp[side], f"TCP {SIDES[side]}")
        return test, series | _numbered(HTTP, web)
    if up and down:
        return _both(tcp)
    for side, test in (("up", "tcp_nup"), ("down", "tcp_ndown")):
        if tcp[side]:
            prefix = f"TCP {SIDES[side]}"
            return test, {flow: f"{prefix}::{n}" for n, flow in enumerate(tcp[side], 1)}
    if len(udp) == 1:
        return "udp_flood", {udp[0]: "UDP upload"}
    return ("ping", {}) if pings else None


def _both(tcp: Mapping[str, list[str]]) -> tuple[str, dict[str, str]]:
    """Choose among the tests with best-effort flows in both directions."""
    counts = {side: len(flows) for side, flows in tcp.items()}
    if set(counts.values()) == {1}:
        return "tcp_bidirectional", {flows[0]: f"TCP {SIDES[side]}" for side, flows in tcp.items()}
    if set(counts.values()) == {len(RRUL_BE)}:
        return "rrul_be", {
            flow: f"TCP {SIDES[side]} {mark}"
            for side, flows in tcp.items()
            for flow, mark in zip(flows, RRUL_BE, strict=True)
        }
    return "rrul_be_nflows", {
        flow: f"TCP {SIDES[side]} BE::{number}"
        for side, flows in tcp.items()
        for number, flow in enumerate(flows, 1)
    }


def _numbered(name: str, flows: Sequence[str]) -> dict[str, str]:
    """Name the series of flows of one kind: the first without a number."""
    return {flow: name if n == 1 else f"{name}::{n}" for n, flow in enumerate(flows, 1)}


def _pings(pings: Sequence[Row], udp_pings: Mapping[str, str | None], test: str) -> dict[str, str]:
    """Name the series of pings."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    marks = {"CS1": "BK", "EF": "EF"}
    for ping in pings:
        if ping["group"] not in udp_pings:
            base = "Ping (ms) ICMP"
        elif test == "ping":
            base = "Ping (ms) UDP"
        else:
            base = f"Ping (ms) UDP {marks.get(udp_pings[ping['group']] or '', 'BE')}"
        counts[base] = counts.get(base, 0) + 1
        # `rrul_be` numbers its best-effort pings from 1.
        plain = counts[base] == 1 and not (test == "rrul_be" and base.endswith("BE"))
        between = "" if test == "rrul_be" else "::"
        names[ping["flow"]] = base if plain else f"{base}{between}{counts[base]}"
    return names
