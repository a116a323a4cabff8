"""Logs of Mahimahi's ``mm-link`` as frames."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sojourn.exchange.untrusted import content, damaged

SCHEMA = {
    "time_s": pl.Float64,
    "event": pl.String,
    "packets": pl.Int64,
    "bytes": pl.Int64,
    "delay_ms": pl.Int64,
}
EVENTS = {"#": "opportunity", "+": "arrival", "-": "departure", "d": "drop"}
# Numbers after the sign: of a departure, bytes and delay; of a drop, packets and bytes.
COUNTS = {"#": 1, "+": 1, "-": 2, "d": 2}
LINKS = {"uplink": "up", "downlink": "down"}
MAX_DIGITS = 15
Row = tuple[float, str, int | None, int, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLog:
    """A log of one link."""

    link: str
    header: list[str]
    events: pl.DataFrame


def read_mahimahi_log(path: str | Path) -> pl.DataFrame:
    """Read a log that ``mm-link --uplink-log`` or ``--downlink-log`` wrote.

    Parameters
    ----------
    path
        The log, plain or compressed by gzip or bzip2.

    Returns
    -------
    polars.DataFrame
        One row per line: ``time_s`` (from the base timestamp of the log), ``event``
        (``"opportunity"``, ``"arrival"``, ``"departure"`` or ``"drop"``), ``packets`` (of a drop),
        ``bytes`` and ``delay_ms`` (of a departure: the time since its arrival).

    Raises
    ------
    ResultError
        The file cannot be read.
    DamagedResultError
        The file is not an mm-link log, or is too large; the message names the line.
    """
    return load(path).events


def load(path: str | Path) -> LinkLog:
    """Read a log with its header, as :func:`read_mahimahi_log` does."""
    try:
        lines = content(path).decode("ascii", errors="strict").splitlines()
    except UnicodeDecodeError:
        damaged(path, "not a log of mm-link; expected text")
    header: list[str] = []
    rows: list[Row] = []
    base = 0
    for index, line in enumerate(lines, 1):
        if line.startswith("#"):
            said = line.removeprefix("#").strip()
            header.append(said)
            key, _, value = said.partition("base timestamp:")
            if not key and value.strip().isdecimal() and len(value.strip()) <= MAX_DIGITS:
                base = int(value)
            continue
        row = _row(line.split(), base)
        if row is None:
            damaged(path, f"line {index}: not a line of a log of mm-link, such as 12 - 1504 3")
        rows.append(row)
    if not header and not rows:
        damaged(path, "empty; expected a log of mm-link")
    side = next((LINKS[name] for name in LINKS if header and f"({name})" in header[0]), "link")
    events = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return LinkLog(link=side, header=header, events=events)


def _row(words: list[str], base: int) -> Row | None:
    """Parse the words of a line; None if it is not a line of a log."""
    if len(words) < 2 or words[1] not in EVENTS:  # noqa: PLR2004 - time and sign
        return None
    numbers = [words[0], *words[2:]]
    sign = words[1]
    # The manual omits the delay of a departure.
    allowed = {COUNTS[sign], 1} if sign == "-" else {COUNTS[sign]}
    if len(numbers) - 1 not in allowed:
        return None
    if not all(one.isdecimal() and len(one) <= MAX_DIGITS for one in numbers):
        return None
    at, *rest = map(int, numbers)
    time_s = (at - base) / 1e3
    if sign == "d":
        return time_s, EVENTS[sign], rest[0], rest[1], None
    return time_s, EVENTS[sign], None, rest[0], rest[1] if len(rest) > 1 else None
