"""Mahimahi: logs of ``mm-link`` as frames and as measured runs, and its traces of links."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, count, repeat, takewhile
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.arguments import checked
from sojourn.errors import invalid_file
from sojourn.exchange.measurement import MEASURED, Measurement
from sojourn.exchange.selection import Product, Selection, named
from sojourn.exchange.untrusted import damaged, parts

SCHEMA = {
    "time_s": pl.Float64,
    "event": pl.String,
    "packets": pl.Int64,
    "bytes": pl.Int64,
    "delay_ms": pl.Int64,
}
EVENTS = {"#": "opportunity", "+": "arrival", "-": "departure", "d": "drop"}
EVENT = pl.Enum(EVENTS.values())
# Time and sign, then bytes; of a departure, bytes and delay, which the manual omits; of a drop,
# packets and bytes.
NUMBER = r"(\d{1,15})"
LINE = (
    rf"^\s*{NUMBER}\s+(?:(?P<sign>[#+])\s+{NUMBER}|(?P<left>-)\s+{NUMBER}(?:\s+{NUMBER})?"
    rf"|(?P<dropped>d)\s+{NUMBER}\s+{NUMBER})\s*$"
)
LINKS = {"uplink": "up", "downlink": "down"}
MAX_DIGITS = 15
MAX_HEADER = 100
# As many events as links of 100 Mbit/s have in some minutes; each takes 60 B while it is read.
MAX_EVENTS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLog:
    """A log of one link."""

    link: str
    header: list[str]
    events: pl.DataFrame


@checked
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
    return load(path).events.with_columns(pl.col("event").cast(pl.String))


def load(path: str | Path) -> LinkLog:
    """Read a log with its header, part by part, as :func:`read_mahimahi_log` does."""
    header: list[str] = []
    events: list[pl.DataFrame] = []
    base = lines = 0
    for part in parts(path):
        try:
            text = part.decode("ascii")
        except UnicodeDecodeError:
            damaged(path, "not a log of mm-link; expected text")
        frame = pl.DataFrame({"line": text.splitlines()}).with_row_index("index", lines + 1)
        lines += frame.height
        if lines > MAX_EVENTS:
            damaged(path, f"too long; expected at most {MAX_EVENTS} lines")
        is_comment = pl.col("line").str.starts_with("#")
        for line in frame.filter(is_comment)["line"]:
            said = line.removeprefix("#").strip()
            header.append(said)
            key, _, value = said.partition("base timestamp:")
            if not key and value.strip().isdecimal() and len(value.strip()) <= MAX_DIGITS:
                base = int(value)
        if len(header) > MAX_HEADER:
            damaged(path, f"more than {MAX_HEADER} lines of comments")
        events.append(_events(path, frame.filter(~is_comment), base))
    if not lines:
        damaged(path, "empty; expected a log of mm-link")
    side = next((LINKS[name] for name in LINKS if header and f"({name})" in header[0]), "link")
    return LinkLog(link=side, header=header, events=pl.concat(events))


def _events(path: str | Path, frame: pl.DataFrame, base: int) -> pl.DataFrame:
    """Parse lines of a log."""
    found = frame.select("index", of=pl.col("line").str.extract_groups(LINE)).unnest("of")
    wrong = found.filter(pl.col("1").is_null())["index"]
    if not wrong.is_empty():
        damaged(path, f"line {wrong[0]}: not a line of a log of mm-link, such as 12 - 1504 3")
    sign = pl.coalesce("sign", "left", "dropped")
    # NumPy divides; polars would multiply by 0.001, which rounds twice.
    times = (found["1"].cast(pl.Int64) - base).to_numpy() / 1e3
    return found.select(
        time_s=pl.Series(times, dtype=pl.Float64),
        event=sign.replace_strict(EVENTS, return_dtype=EVENT),
        packets=pl.col("8").cast(pl.Int64),
        bytes=pl.coalesce("3", "5", "9").cast(pl.Int64),
        delay_ms=pl.col("6").cast(pl.Int64),
    )


# Size of one opportunity of a trace: a full-sized IP packet with its Ethernet header.
FULL_FRAME = 1514
# As in the reader of traces.
MAX_LINES = 10_000_000
CELL, CELL_PAYLOAD, PTM_BLOCK = 53, 48, 64
Table = dict[str, Any]


def files(selection: Selection) -> list[Product]:
    """Write the capacity of each link of each arm as a trace of delivery opportunities."""
    if selection.replication is not None:
        message = "replication: a trace is the same for every replication; omit it"
        raise _core.ResultError(message)
    checked = selection.result.scenario.checked
    arms = dict.fromkeys(arm for arm, _ in selection.runs())
    written = []
    for arm in arms:
        links = _of_arm(checked, arm)["links"]
        for name, link in links.items():
            if isinstance(link, str):
                continue  # A link that is not simulated.
            data, notes = _trace(f'arm "{arm}", links.{name}', link, checked.duration_s)
            written.append(Product(name=named(f"{arm}-{name}", ".trace"), data=data, notes=notes))
    if not written:
        message = "no link has a rate or a trace"
        raise _core.ResultError(message)
    return written


def _of_arm(checked: _core.Scenario, arm: str) -> Table:
    """Return the scenario of an arm, with the values that the arm sets."""
    document: Table = json.loads(checked.to_json())
    for one in document.pop("arms", []):
        if one["name"] == arm:
            changes = [(path, json.dumps(value)) for path, value in one["set"].items()]
            alone = _core.Scenario.from_json(json.dumps(document))
            changed: Table = json.loads(alone.changed(changes).to_json())
            return changed
    return document


def _trace(place: str, link: Table, duration_s: float) -> tuple[bytes, list[str]]:
    """Write the trace of a link; return it with notes on what it does not express."""
    if "medium" in link:
        raise invalid_file(
            place, "a trace cannot express a wireless link; its rate depends on the load"
        )
    notes = [f"{place}: {text}" for text in _not_expressed(link)]
    if "trace" in link:
        times = list(accumulate(_gaps(link["trace"]["gaps_ms"])))
    else:
        frame = _charged(place, link)
        times = list(_opportunities(place, _rates(link, duration_s), frame))
    if not times or times[-1] == 0:
        raise invalid_file(
            place, "too slow for a trace; the link sends no full-sized packet in the run"
        )
    return "".join(f"{at}\n" for at in times).encode(), notes


def _gaps(text: str) -> Iterator[int]:
    """Yield the gaps of a trace.

    Examples
    --------
    >>> list(_gaps("1 2x3"))
    [1, 2, 2, 2]
    """
    for word in text.split():
        gap, _, times = word.partition("x")
        yield from repeat(int(gap), int(times or "1"))


def _not_expressed(link: Table) -> Iterator[str]:
    delayed = _core.parse_time_s(link["delay"]) > 0
    delayed |= any("delay" in change for change in link.get("changes", []))
    keys = ("delay_trace", "loss", "loss_trace", "duplicate", "jitter", "burst")
    for key in [*(["delay"] if delayed else []), *(key for key in keys if key in link)]:
        yield f"{key} is not part of a trace"
    words = link["qdisc"].split()
    if "bandwidth" in words or words[0] == "tbf":
        yield "the rate of the shaper in the queue is not part of a trace"


def _charged(place: str, link: Table) -> int:
    """Return the bytes that the link counts for an IP packet of 1500 B."""
    try:
        # Sizes of scenarios have no sign.
        overhead = link["overhead"]
        sign = -1 if overhead.startswith("-") else 1
        extra = sign * _core.parse_size_bytes(overhead.removeprefix("-"))
    except _core.ScenarioError:
        message = (
            f'{place}.overhead: "{link["overhead"]}" cannot be exported; expected a number of '
            'bytes, such as "16b"'
        )
        raise _core.ResultError(message) from None
    size = max(FULL_FRAME + extra, _core.parse_size_bytes(link.get("mpu", "0b")))
    framing = link.get("framing", "noatm")
    if framing == "atm":
        return CELL * math.ceil(size / CELL_PAYLOAD)
    return size + math.ceil(size / PTM_BLOCK) if framing == "ptm" else size


def _rates(link: Table, duration_s: float) -> list[tuple[float, float, int]]:
    """List the intervals of constant rate: begin and end in seconds, and bits per second."""
    if "rate_trace" in link:
        steps = list(_repeated(link["rate_trace"], duration_s))
    else:
        steps = [(0.0, _core.parse_rate_bits_per_s(link["rate"]))]
        for change in link.get("changes", []):
            if "rate" in change:
                at = _core.parse_time_s(change["at"])
                steps.append((at, _core.parse_rate_bits_per_s(change["rate"])))
    ends = [begin for begin, _ in steps[1:]] + [duration_s]
    return [
        (begin, min(end, duration_s), rate)
        for (begin, rate), end in zip(steps, ends, strict=True)
        if begin < duration_s
    ]


def _repeated(trace: Table, duration_s: float) -> Iterator[tuple[float, int]]:
    """Yield the points of a trace of rates up to the end of the run: time in s, bits per second."""
    points = []
    for point in trace["points"].split(","):
        at, rate = point.split()
        # Only in a trace, a rate may be 0.
        points.append(
            (_core.parse_time_s(at), 0 if rate == "0bit" else _core.parse_rate_bits_per_s(rate))
        )
    period = _core.parse_time_s(trace["period"])
    for begin in takewhile(lambda begin: begin < duration_s, count(0.0, period)):
        yield from ((begin + at, rate) for at, rate in points)


def _opportunities(place: str, rates: list[tuple[float, float, int]], frame: int) -> Iterator[int]:
    """Yield the times in ms at which a full-sized packet has been sent, at full load."""
    total = sum((end - begin) * rate for begin, end, rate in rates) / (8 * frame)
    if total > MAX_LINES:
        raise invalid_file(
            place,
            f"the trace would have {total:.3g} lines, more than {MAX_LINES}; "
            "a shorter duration gives a shorter trace",
        )
    sent = 0.0
    number = 1
    for begin, end, rate in rates:
        after = sent + (end - begin) * rate / (8 * frame)
        # Without the margin, rounding loses an opportunity on the boundary.
        while number <= after + 1e-9:
            at_s = begin + (number - sent) * 8 * frame / rate
            yield math.ceil(round(at_s * 1e3, 6))
            number += 1
        sent = after


# Width of the intervals of series, in seconds.
STEP = 0.1
# Packets of a log begin with the 4 B header of the tun device; those of a result with the 14 B
# header of Ethernet.
TUN, ETHERNET = 4, 14


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read a log of Mahimahi as a measured run of one link."""
    log = load(path)
    end_s = _or_0(log.events["time_s"].max())
    arrivals = log.events.filter(event="arrival")["time_s"]
    return Measurement(
        arm=MEASURED + (arm or Path(path).name),
        origin={"file": Path(path).name, "format": "Mahimahi log", "header": log.header},
        load_s=_or_0(arrivals.min()),
        end_s=end_s,
        tables={"link_series": _series(log)},
        totals={
            "links": lambda begin: _links(log, begin, end_s),
            "sojourn": lambda begin: _sojourn(log, begin),
        },
        series=log.events,
    )


def _or_0(value: Any) -> float:
    """Convert a time; 0 if there is none."""
    return 0.0 if value is None else float(value)


def _departures(log: LinkLog, begin: float) -> pl.DataFrame:
    return log.events.filter(pl.col("event") == "departure", pl.col("time_s") >= begin)


def _links(log: LinkLog, begin: float, end: float) -> pl.DataFrame:
    """Compute the totals of the link over the measured time."""
    departed = _departures(log, begin)
    delays = departed["delay_ms"].cast(pl.Float64)
    since = log.events.filter(pl.col("time_s") >= begin)
    offered = since.filter(event="opportunity")["bytes"].sum()
    rate = float(offered) * 8e-6 / (end - begin) if end > begin else None
    return pl.DataFrame(
        {
            "link": [log.link],
            "capacity_mbit_per_s": [rate],
            "sent_packets": [departed.height],
            "sent_bytes": [departed["bytes"].sum() + (ETHERNET - TUN) * departed.height],
            "drops_overlimit": [since.filter(event="drop")["packets"].sum()],
            "drops_aqm": [0],
            "drops_ack_filter": [0],
            "drops_replaced": [0],
            "sojourn_ms_mean": [delays.mean()],
            **{
                f"sojourn_ms_p{percent}": [delays.quantile(percent / 100, "linear")]
                for percent in (50, 95, 99)
            },
            "sojourn_ms_max": [delays.max()],
        }
    )


def _sojourn(log: LinkLog, begin: float) -> pl.DataFrame:
    """Count delays, which a log states in whole milliseconds."""
    counts = (
        _departures(log, begin).drop_nulls("delay_ms").group_by("delay_ms").len().sort("delay_ms")
    )
    return counts.select(
        link=pl.lit(log.link),
        low_ms=pl.col("delay_ms"),
        high_ms=pl.col("delay_ms") + 1,
        count=pl.col("len"),
    )


def _series(log: LinkLog) -> pl.DataFrame:
    """Compute series of the log over intervals of equal length."""
    change = {"arrival": 1, "departure": -1}
    counted = (
        pl.col("event").cast(pl.String).replace_strict(change, default=0, return_dtype=pl.Int64)
    )
    dropped = pl.when(pl.col("event") == "drop").then(pl.col("packets")).otherwise(0)
    left = pl.col("event") == "departure"
    return (
        log.events.with_columns(
            t_s=((pl.col("time_s") / STEP).floor() + 1) * STEP,
            change=counted - dropped,
            byte_change=pl.when(pl.col("event") == "drop")
            .then(-pl.col("bytes"))
            .otherwise(counted * pl.col("bytes")),
        )
        .group_by("t_s", maintain_order=True)
        .agg(
            pl.col("change", "byte_change").sum(),
            sent_packets=left.sum(),
            sent_bytes=pl.col("bytes").filter(left).sum(),
            sojourn_ms_mean=pl.col("delay_ms").filter(left).mean(),
            sojourn_ms_max=pl.col("delay_ms").filter(left).max(),
            drops_overlimit=pl.col("packets").filter(pl.col("event") == "drop").sum(),
        )
        .with_columns(
            link=pl.lit(log.link),
            backlog_packets=pl.col("change").cum_sum(),
            backlog_bytes=pl.col("byte_change").cum_sum(),
            sent_bytes=pl.col("sent_bytes") + (ETHERNET - TUN) * pl.col("sent_packets"),
            drops_aqm=pl.lit(0),
            drops_ack_filter=pl.lit(0),
            drops_replaced=pl.lit(0),
        )
    )
