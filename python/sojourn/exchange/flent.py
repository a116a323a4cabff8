"""Data files of flent, format versions 1 to 4, as frames; the tests that fit a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.arguments import checked
from sojourn.exchange.untrusted import damaged, number, read_object, text

Points = list[tuple[float, float]]
SCHEMA = {
    "run": pl.String,
    "series": pl.String,
    "time_s": pl.Float64,
    "value": pl.Float64,
    "unit": pl.String,
}
# Keys of raw values other than the value of the series.
UNITS = {
    "tcp_rtt": "ms",
    "tcp_rtt_var": "ms",
    "tcp_cwnd": "packets",
    "delay": "ms",
    "backlog_bytes": "B",
    "backlog_pkts": "packets",
    "dropped": "packets",
    "ecn_mark": "packets",
    "sent_bytes": "B",
    "sent_pkts": "packets",
    "dur": "s",
}
# Counts per interval of queues, and the largest that is plausible.
COUNTS = ("dropped", "ecn_mark")
LARGEST_COUNT = 1e12
# Flag of a packet that irtt did not get back.
LOST = "lost"
# Time zones differ by multiples of this.
ZONE_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class FlentRun:
    """A data file of flent."""

    version: int
    metadata: dict[str, Any]
    grid: dict[str, Points]
    raw: dict[str, dict[str, Points]]
    about: dict[str, dict[str, Any]]
    # Why some of its values are missing or changed.
    notes: list[str]

    def unit(self, name: str) -> str | None:
        """Return the unit of a series, if the file states it."""
        return text(self.about.get(name, {}).get("UNITS")) or None

    @property
    def test(self) -> str:
        """Name of the test."""
        return text(self.metadata.get("NAME")) or "unknown test"

    @property
    def title(self) -> str:
        """Title of the run, or the name of the test."""
        return text(self.metadata.get("TITLE")).strip() or self.test

    def frame(self) -> pl.DataFrame:
        """Return all series in one frame: as measured, or else on the grid of times."""
        rows: list[tuple[str, str, float, float, str | None]] = []
        for name in dict.fromkeys([*self.raw, *self.grid]):
            keys = self.raw.get(name) or {"val": self.grid[name]}
            for key, points in keys.items():
                series = name if key == "val" else f"{name}::{key}"
                unit = self.unit(name) if key == "val" else UNITS.get(key)
                rows += [(self.title, series, at, value, unit) for at, value in points]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@checked
def read_flent(path: str | Path) -> pl.DataFrame:
    """Read a data file of flent.

    Parameters
    ----------
    path
        The file: ``.flent``, ``.flent.gz`` or ``.flent.bz2``, format version 1 to 4.

    Returns
    -------
    polars.DataFrame
        One row per value: ``run`` (the title), ``series``, ``time_s`` (from the start of the
        test), ``value`` and ``unit`` (null if the file does not state it). Values are as measured;
        computed series and series without raw values are on the grid of times of the file. Other
        raw values of a series are series of their own, such as ``TCP upload::1::tcp_cwnd``.

    Raises
    ------
    ResultError
        The file cannot be read.
    DamagedResultError
        The file is not a data file of flent, is damaged, too large, or of a newer version.
    """
    return load(path).frame()


def load(path: str | Path) -> FlentRun:
    """Read a data file of flent with its metadata, as :func:`read_flent` does."""
    document = read_object(path)
    version = _version(path, document)
    metadata = _table(path, document, "metadata")
    about = _described(metadata)
    if version > 1:
        raw = _table(path, document, "raw_values")
    else:
        raw = {name: of.get("RAW_VALUES") or [] for name, of in about.items()}
    times = document.get("x_values")
    if not isinstance(times, list):
        damaged(path, "x_values: expected a list")
    grid = {}
    for name, values in _table(path, document, "results").items():
        if not isinstance(values, list) or len(values) != len(times):
            damaged(path, f'results: "{name}": expected a list as long as x_values')
        points = zip(map(number, times), map(number, values), strict=True)
        grid[name] = [(at, y) for at, y in points if at is not None and y is not None]
    keyed = {name: _keyed(path, name, entries) for name, entries in raw.items()}
    begin = _begin(metadata, keyed)
    notes: list[str] = []
    for name, keys in keyed.items():
        if version < VERSION:
            _convert(name, keys)
        _check_counts(name, keys, begin, notes)
        for key, measured in keys.items():
            keys[key] = [(at - begin, value) for at, value in measured]
    return FlentRun(
        version=version,
        metadata=metadata,
        grid=grid,
        raw={name: keys for name, keys in keyed.items() if any(keys.values())},
        about=about,
        notes=notes,
    )


def _version(path: str | Path, document: dict[str, Any]) -> int:
    if "results" not in document or "metadata" not in document:
        damaged(path, "not a data file of flent; expected results and metadata")
    version = document.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        damaged(path, "version: expected a positive integer")
    if version > VERSION:
        damaged(path, f"format version {version} is too new; expected at most {VERSION}")
    return version


def _table(path: str | Path, document: dict[str, Any], key: str) -> dict[str, Any]:
    table = document.get(key) or {}
    if not isinstance(table, dict):
        damaged(path, f"{key}: expected an object")
    return table


def _described(metadata: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the metadata state about each series."""
    described = metadata.get("SERIES_META")
    if not isinstance(described, dict):
        return {}
    return {name: about for name, about in described.items() if isinstance(about, dict)}


def _keyed(path: str | Path, name: str, entries: Any) -> dict[str, Points]:
    """Group raw values by key; values that are not numbers are omitted."""
    if not isinstance(entries, list):
        damaged(path, f'raw_values: "{name}": expected a list')
    found: dict[str, Points] = {}
    for entry in entries:
        at = number(entry.get("t")) if isinstance(entry, dict) else None
        if at is None:
            continue
        # A duration without a value is that of no sample.
        lacking = {"t"} if number(entry.get("val")) is not None else {"t", "dur"}
        for key, value in entry.items():
            known = 1.0 if key == LOST and value is True else number(value)
            if key not in lacking and known is not None:
                found.setdefault(key, []).append((at, known))
    return found


def _begin(metadata: dict[str, Any], keyed: dict[str, dict[str, Points]]) -> float:
    """Return the Unix time at which the times of the series begin."""
    times = [points[0][0] for keys in keyed.values() for points in keys.values() if points]
    first = min(times, default=0.0)
    stated = text(metadata.get("T0")) or text(metadata.get("TIME"))
    try:
        parsed = datetime.fromisoformat(stated.removesuffix("Z")).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return first
    # Old files state local time, without its zone.
    return parsed + ZONE_S * round((first - parsed) / ZONE_S) if times else parsed


def _convert(name: str, keys: dict[str, Points]) -> None:
    """Convert raw values of versions before 4, which have other units."""
    values = keys.get("val", [])
    if name.startswith("Ping") and "UDP" in name and "dur" in keys:
        # Transactions per second of one echo request at a time.
        measured = {at for at, _ in keys["dur"]}
        keys["val"] = [
            (at, 1e3 / y if at in measured else y) for at, y in values if at not in measured or y
        ]
    elif name == "HTTP latency":
        keys["val"] = [(at, 1e3 * y) for at, y in values]
    for key in COUNTS:
        # Counts since the queue was installed; a smaller count is one since it was replaced.
        points = keys.get(key, [])
        before = points[:1] + points[:-1]
        if points:
            keys[key] = [
                (at, y - last if y >= last else y)
                for (at, y), (_, last) in zip(points, before, strict=True)
            ]


def _check_counts(name: str, keys: dict[str, Points], begin: float, notes: list[str]) -> None:
    """Leave out impossible counts, which flent writes when a counter restarts."""
    for key in COUNTS:
        points = keys.get(key, [])
        bad = [at for at, y in points if not 0 <= y <= LARGEST_COUNT]
        if bad:
            keys[key] = [(at, y) for at, y in points if 0 <= y <= LARGEST_COUNT]
            notes.append(
                f'"{name}": {key}: the counter restarted at {bad[0] - begin:.1f} s; '
                f"counts left out: {len(bad)}"
            )


SIDES = {"up": "upload", "down": "download"}
# The series of the tests `rrul` and `rrul_be` for one direction.
RRUL = ("BE", "BK", "CS5", "EF")
RRUL_BE = ("BE", "BE2", "BE3", "BE4")
# The version of the format that is written.
VERSION = 4
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
