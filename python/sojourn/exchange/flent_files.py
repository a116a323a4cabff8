"""Data files of flent, format versions 1 to 4, as frames."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.exchange.flent_writer import VERSION
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
# Time zones differ by multiples of this.
ZONE_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class FlentRun:
    """A data file of flent."""

    version: int
    metadata: dict[str, Any]
    grid: dict[str, Points]
    raw: dict[str, dict[str, Points]]
    units: dict[str, str]

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
                unit = self.units.get(name) if key == "val" else UNITS.get(key)
                rows += [(self.title, series, at, value, unit) for at, value in points]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")


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
    units, raw = _described(metadata)
    if version > 1:
        raw = _table(path, document, "raw_values")
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
    for name, keys in keyed.items():
        if version < VERSION:
            _convert(name, keys)
        for key, measured in keys.items():
            keys[key] = [(at - begin, value) for at, value in measured]
    return FlentRun(
        version=version,
        metadata=metadata,
        grid=grid,
        raw={name: keys for name, keys in keyed.items() if any(keys.values())},
        units=units,
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


def _described(metadata: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the units of series, and the raw values that version 1 keeps in the metadata."""
    units, raw = {}, {}
    described = metadata.get("SERIES_META")
    for name, about in described.items() if isinstance(described, dict) else ():
        if isinstance(about, dict):
            if unit := text(about.get("UNITS")):
                units[name] = unit
            raw[name] = about.get("RAW_VALUES") or []
    return units, raw


def _keyed(path: str | Path, name: str, entries: Any) -> dict[str, Points]:
    """Group raw values by key; values that are not numbers are omitted."""
    if not isinstance(entries, list):
        damaged(path, f'raw_values: "{name}": expected a list')
    found: dict[str, Points] = {}
    for entry in entries:
        at = number(entry.get("t")) if isinstance(entry, dict) else None
        if at is None:
            continue
        for key, value in entry.items():
            if key != "t" and (known := number(value)) is not None:
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
    if "UDP" in name and "dur" in keys:
        # Transactions per second of one echo request at a time.
        measured = {at for at, _ in keys["dur"]}
        keys["val"] = [
            (at, 1e3 / y if at in measured else y) for at, y in values if at not in measured or y
        ]
    elif name == "HTTP latency":
        keys["val"] = [(at, 1e3 * y) for at, y in values]
    for key in ("dropped", "ecn_mark"):
        # Counts since the queue was installed.
        points = keys.get(key, [])
        before = points[:1] + points[:-1]
        if points:
            keys[key] = [(at, y - last) for (at, y), (_, last) in zip(points, before, strict=True)]
