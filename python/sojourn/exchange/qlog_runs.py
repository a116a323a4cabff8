"""qlog files of QUIC programs as measured runs: goodput, RTT, windows, losses and ECN.

Source: as :mod:`sojourn.exchange.qlog`, and the names of events in earlier versions of the drafts
(``transport:packet_sent``, ``recovery:metrics_updated``). JSON with traces and JSON text sequences
are read.
"""

import bisect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.exchange.measurement import MEASURED, SIMULATED, Measurement, Sample
from sojourn.exchange.untrusted import (
    MAX_JSON,
    MAX_VALUES,
    beginning,
    content,
    damaged,
    number,
    read_object,
    text,
)

RECORD_SEPARATOR = b"\x1e"
# Width of the intervals of series, and how many of them a log has at most.
STEP_S, MOST_STEPS = 0.1, 2000
# Times in s that count from 1970: later ones than of any log that counts from its begin.
FROM_1970_S = 10**6
# The largest number of bytes or packets that a field may state.
MOST = 2**53
# Differences to the event before; all other formats are relative to one time.
DELTAS = {"relative_to_previous_event", "delta"}
SENT, RECEIVED, LOST = "packet_sent", "packet_received", "packet_lost"
METRICS = {"recovery_metrics_updated", "metrics_updated"}
SCENARIO = "simulation:scenario"
# Spaces of packet numbers, by the type of a packet (RFC 9000, section 12.3); others share one.
SPACES = ("initial", "handshake")
# Of the connections that Sojourn exports.
KINDS = ("tcp", "quic")
PARAMETERS = {"recovery_parameters_set", "parameters_set"}
FLOWS = {
    **dict.fromkeys(("flow", "group", "kind", "direction"), pl.String),
    **dict.fromkeys(("started_s", "srtt_ms_mean"), pl.Float64),
    **dict.fromkeys(("ack_rtt_ms_mean", "ack_rtt_ms_p95", "ack_rtt_ms_max"), pl.Float64),
    **dict.fromkeys(("delivered_bytes", "sent_packets", "retransmits", "ce_packets"), pl.Int64),
}
SERIES = {
    **dict.fromkeys(("flow", "group"), pl.String),
    **dict.fromkeys(("t_s", "goodput_mbit_per_s", "srtt_ms"), pl.Float64),
    **dict.fromkeys(("cwnd_packets", "ssthresh_packets", "in_flight_packets"), pl.Int64),
}
Object = Mapping[str, Any]


def begins_qlog(begin: bytes) -> bool:
    """Whether a file with this begin is a qlog file."""
    if begin.startswith(RECORD_SEPARATOR):
        return True
    return begin.startswith(b"{") and any(
        key in begin for key in (b'"qlog_version"', b'"qlog_format"', b"params:qlog:file:")
    )


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read a qlog file as a measured run: each trace is a connection."""
    logs = list(_logs(path))
    if not any(log.is_known for log in logs):
        damaged(path, "no event that states packets or metrics of QUIC; expected a qlog file")
    ways = [way for log in logs for way in (log.out, log.back) if way.sent or way.delivered]
    times = [at for log in logs for at in log.times]
    origin = min(times) if min(times) > FROM_1970_S else 0.0
    load_s, end_s = min(times) - origin, max(times) - origin
    step = max(STEP_S, (end_s - load_s) / MOST_STEPS)
    samples = {way.flow: way.samples(origin, step) for way in ways if way.delivered}
    series = pl.DataFrame(
        [row for way in ways for row in way.rows(origin, step)], schema=SERIES, orient="row"
    )
    prefix = SIMULATED if any(log.is_simulated for log in logs) else MEASURED
    return Measurement(
        arm=prefix + (arm or Path(path).name),
        origin={"file": Path(path).name, "format": "qlog", "time": ""},
        load_s=load_s,
        end_s=end_s,
        tables={"flow_series": series},
        totals={
            "flows": partial(_flows, ways, origin, end_s),
            "links": partial(_links, ways, origin),
        },
        series=series.rename({"t_s": "time_s"}),
        goodput=samples,
        notes=[note for log in logs for note in log.notes()],
    )


@dataclass(slots=True)
class Way:
    """What one endpoint of a connection sent, and the state of its congestion control."""

    flow: str = ""
    direction: str = ""
    kind: str = "quic"
    sent: list[float] = field(default_factory=list)
    delivered: list[tuple[float, int]] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    # None: no ACK frame has counts of ECN.
    marks: list[tuple[float, int]] | None = None
    rtts: list[tuple[float, float]] = field(default_factory=list)
    # Time, smoothed RTT in ms, window, threshold and data in flight in bytes.
    states: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    segment: float = 0.0
    streams: dict[float, list[tuple[float, float]]] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The name of its group of flows."""
        return f"{self.kind} {self.direction}"

    def deliver(self, at: float, frames: list[Object]) -> None:
        """Note the data of frames that the other endpoint has; bytes count once."""
        size = 0.0
        for frame in frames:
            begin, length = number(frame.get("offset")) or 0.0, _length(frame)
            if text(frame.get("frame_type")) == "stream" and 0 < length < MOST > begin >= 0:
                stream = number(frame.get("stream_id")) or 0.0
                size += _added(self.streams.setdefault(stream, []), begin, begin + length)
        if size:
            self.delivered.append((at, round(size)))

    def samples(self, origin: float, step: float) -> list[Sample]:
        """Return the rate of each interval, also of those without data in between."""
        sums: dict[int, int] = {}
        for at, size in self.delivered:
            slot = int((at - origin) // step)
            sums[slot] = sums.get(slot, 0) + size
        return [
            Sample((slot + 1) * step, step, sums.get(slot, 0) * 8e-6 / step)
            for slot in range(min(sums), max(sums) + 1)
        ]

    def rows(self, origin: float, step: float) -> Iterator[dict[str, Any]]:
        """Return the series: goodput, and the last state of each interval."""
        rates = (
            {round(one.end_s / step): one for one in self.samples(origin, step)}
            if (self.delivered)
            else {}
        )
        last: dict[int, dict[str, float]] = {}
        for at, changed in self.states:
            last.setdefault(int((at - origin) // step) + 1, {}).update(changed)
        state: dict[str, float] = {}
        for slot in sorted({*rates, *last}):
            state |= last.get(slot, {})
            row = {"t_s": slot * step, "flow": self.flow, "group": self.group}
            rate = rates.get(slot)
            row["goodput_mbit_per_s"] = None if rate is None else rate.mbit_per_s
            row["srtt_ms"] = state.get("smoothed_rtt")
            for name, key in (
                ("cwnd_packets", "congestion_window"),
                ("ssthresh_packets", "ssthresh"),
                ("in_flight_packets", "bytes_in_flight"),
            ):
                size = state.get(key)
                known = size is not None and self.segment > 0
                row[name] = round(size / self.segment) if known and size is not None else None
            yield row


@dataclass(slots=True)
class Log:
    """The connection of a trace, seen by one endpoint."""

    out: Way = field(default_factory=Way)
    back: Way = field(default_factory=Way)
    times: list[float] = field(default_factory=list)
    is_known: bool = False
    is_simulated: bool = False
    # Frames of packets that wait for their acknowledgement, by space and packet number.
    waiting: dict[str, dict[float, list[Object]]] = field(default_factory=dict)
    # The largest count of CE, by space.
    ce: dict[str, float] = field(default_factory=dict)
    has_data: bool = False

    def add(self, at: float, name: str, data: Object) -> None:
        """Note an event."""
        self.times.append(at)
        kind = name.rpartition(":")[2]
        frames: list[Object] = [one for one in _list(data, "frames") if isinstance(one, dict)]
        header = _object(data, "header")
        packet = number(header.get("packet_number"))
        # Earlier drafts have the type beside the header.
        of = text(header.get("packet_type")) or text(data.get("packet_type"))
        space = of if of in SPACES else ""
        if kind == SENT:
            raw = _object(data, "raw")
            size = number(raw.get("length")) or 0.0
            payload = number(raw.get("payload_length")) or size
            self.out.sent.append(at)
            self.out.segment = max(self.out.segment, min(payload, MOST))
            if packet is not None and frames:
                self.waiting.setdefault(space, {})[packet] = frames
                self.has_data |= any(text(one.get("frame_type")) == "stream" for one in frames)
        elif kind == RECEIVED:
            self.back.sent.append(at)
            self.back.deliver(at, frames)
            for frame in frames:
                if text(frame.get("frame_type")) == "ack":
                    self._acknowledge(at, space, frame)
        elif kind == LOST:
            self.out.lost.append(at)
        elif kind in METRICS:
            self._metrics(at, data)
        elif kind in PARAMETERS:
            self.out.segment = number(data.get("max_datagram_size")) or self.out.segment
        if name == SCENARIO:
            self._simulated(data)
        self.is_known |= kind in {SENT, RECEIVED} or kind in METRICS

    def notes(self) -> Iterator[str]:
        """Say whose goodput is unknown; one endpoint often sends nothing but acknowledgements."""
        for way, other in ((self.out, self.back), (self.back, self.out)):
            is_missing = way is self.out and self.has_data
            if way.delivered or not way.sent or (other.delivered and not is_missing):
                continue
            what = "acknowledgement of its data" if is_missing else "frames with data"
            yield f'"{way.flow}": the log has no {what}, so the goodput is unknown'

    def _simulated(self, data: Object) -> None:
        """Note the kind of a simulated connection."""
        self.is_simulated = True
        kind = text(_object(data, "details").get("kind"))
        if kind in KINDS:
            self.out.kind = self.back.kind = kind

    def _acknowledge(self, at: float, space: str, frame: Object) -> None:
        waiting = self.waiting.get(space, {})
        for one in _list(frame, "acked_ranges"):
            ends = [number(end) for end in one] if isinstance(one, list) else [number(one)]
            first, last = (ends[0], ends[-1]) if ends else (None, None)
            if first is None or last is None:
                continue
            # A range may be much longer than what waits.
            if last - first > len(waiting):
                acked = sorted(key for key in waiting if first <= key <= last)
            else:
                acked = list(map(float, range(int(first), int(last) + 1)))
            for key in acked:
                if (frames := waiting.pop(key, None)) is not None:
                    self.out.deliver(at, frames)
        ce = number(frame.get("ce"))
        if ce is None or not 0 <= ce < MOST:
            return
        if self.out.marks is None:
            self.out.marks = []
        if (before := self.ce.get(space, 0.0)) < ce:
            self.out.marks.append((at, round(ce - before)))
            self.ce[space] = ce

    def _metrics(self, at: float, data: Object) -> None:
        keys = ("smoothed_rtt", "congestion_window", "ssthresh", "bytes_in_flight")
        found = {key: number(data.get(key)) for key in keys}
        state = {key: v for key, v in found.items() if v is not None and 0 <= v < MOST}
        if state:
            self.out.states.append((at, state))
        latest = number(data.get("latest_rtt"))
        if latest is not None and latest >= 0:
            self.out.rtts.append((at, latest))


def _object(of: Object, key: str) -> Object:
    found = of.get(key)
    return found if isinstance(found, dict) else {}


def _list(of: Object, key: str) -> list[Any]:
    found = of.get(key)
    return found if isinstance(found, list) else []


def _length(frame: Object) -> float:
    """Return the data of a frame in bytes; earlier drafts have it in the frame."""
    raw = _object(frame, "raw")
    places = (raw.get("payload_length"), frame.get("length"), raw.get("length"))
    return next((found for one in places if (found := number(one)) is not None), 0.0)


def _added(known: list[tuple[float, float]], begin: float, end: float) -> float:
    """Add a range to disjoint sorted ranges; return how much of it is new.

    Examples
    --------
    >>> ranges = [(0.0, 10.0), (20.0, 30.0)]
    >>> _added(ranges, 5.0, 25.0), ranges
    (10.0, [(0.0, 30.0)])
    """
    low = bisect.bisect_left(known, begin, key=lambda one: one[1])
    high = bisect.bisect_right(known, end, key=lambda one: one[0])
    before = sum(one[1] - one[0] for one in known[low:high])
    joined = (
        min([begin, *(one[0] for one in known[low:high])]),
        max([end, *(one[1] for one in known[low:high])]),
    )
    known[low:high] = [joined]
    return joined[1] - joined[0] - before


def _logs(path: str | Path) -> Iterator[Log]:
    """Read the traces of a file."""
    if beginning(path).startswith(RECORD_SEPARATOR):
        records = _records(path)
        yield _log(path, 1, _object(records[0], "trace"), records[1:])
        return
    traces = [one for one in _list(read_object(path), "traces") if isinstance(one, dict)]
    for position, trace in enumerate(traces, 1):
        if "event_fields" in trace:
            damaged(path, "events as arrays, of draft-marx-qlog-01; expected later versions")
        if events := [one for one in _list(trace, "events") if isinstance(one, dict)]:
            yield _log(path, position, trace, events)
    if not traces:
        damaged(path, "no trace; expected a qlog file")


def _records(path: str | Path) -> list[dict[str, Any]]:
    """Read a JSON text sequence (RFC 7464); the last record may be cut."""
    data = content(path, MAX_JSON)
    if sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        damaged(path, f"too large; expected at most {MAX_VALUES} values")
    texts = data.split(RECORD_SEPARATOR)[1:]
    records: list[dict[str, Any]] = []
    for position, one in enumerate(texts, 1):
        try:
            found = json.loads(one, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            if position == len(texts) > 1:
                break
            damaged(path, f"record {position}: not valid JSON")
        if not isinstance(found, dict):
            damaged(path, f"record {position}: expected a JSON object")
        records.append(found)
    if len(records) < 2:  # noqa: PLR2004 - the header and an event
        damaged(path, "no event; expected a qlog file")
    return records


def _log(path: str | Path, position: int, trace: Object, events: list[dict[str, Any]]) -> Log:
    common, vantage = _object(trace, "common_fields"), _object(trace, "vantage_point")
    side = text(vantage.get("flow")) if vantage.get("type") == "network" else ""
    is_server = (side or text(vantage.get("type"))) == "server"
    name = text(common.get("group_id")) or text(trace.get("title")) or f"connection {position}"
    name = " ".join(name.split())[:80]
    up, down = (Way(f"{name} {way}", way) for way in ("up", "down"))
    log = Log(out=down, back=up) if is_server else Log(out=up, back=down)
    is_delta = text(common.get("time_format")) in DELTAS
    at = 0.0
    for event in events:
        time = number(event.get("time"))
        if time is None:
            damaged(path, f"trace {position}: an event without a time")
        at = at + time / 1e3 if is_delta else time / 1e3
        log.add(at, text(event.get("name")), _object(event, "data"))
    return log


def _mean(values: list[tuple[float, float]], begin: float, end: float) -> float | None:
    """Average a value over time: it is logged when it changes.

    Examples
    --------
    >>> _mean([(0.0, 1.0), (3.0, 5.0)], 2.0, 4.0)
    3.0
    """
    ends = [at for at, _ in values[1:]] + [end]
    spans = [
        (min(until, end) - max(at, begin), value)
        for (at, value), until in zip(values, ends, strict=False)
    ]
    known = [(length, value) for length, value in spans if length > 0]
    total = sum(length for length, _ in known)
    return sum(length * value for length, value in known) / total if total else None


def _flows(ways: list[Way], origin: float, end_s: float, begin: float) -> pl.DataFrame:
    """Compute the totals of each direction from `begin` on."""
    rows = []
    since = begin + origin
    for way in ways:
        rtts = pl.Series([rtt for at, rtt in way.rtts if at >= since], dtype=pl.Float64)
        smoothed = [
            (at, state["smoothed_rtt"]) for at, state in way.states if "smoothed_rtt" in state
        ]
        # The log of an endpoint has losses of what it sends; one without frames, of simulated
        # QUIC, has none.
        sends = bool((way.states or way.rtts) and way.delivered) or bool(way.lost)
        rows.append(
            {
                "flow": way.flow,
                "group": way.group,
                "kind": way.kind,
                "direction": way.direction,
                "started_s": min(way.sent, default=since) - origin,
                "srtt_ms_mean": _mean(smoothed, since, end_s + origin),
                "ack_rtt_ms_mean": rtts.mean(),
                "ack_rtt_ms_p95": rtts.quantile(0.95, "linear") if len(rtts) else None,
                "ack_rtt_ms_max": rtts.max(),
                "delivered_bytes": sum(size for at, size in way.delivered if at >= since)
                if way.delivered
                else None,
                "sent_packets": sum(at >= since for at in way.sent),
                "retransmits": sum(at >= since for at in way.lost) if sends else None,
                "ce_packets": _marks([way], since),
            }
        )
    return pl.DataFrame(rows, schema=FLOWS, orient="row")


def _marks(ways: list[Way], since: float) -> int | None:
    """Return how many packets arrived with CE, as ACK frames count; None if none does."""
    known = [way.marks for way in ways if way.marks is not None]
    return sum(n for of in known for at, n in of if at >= since) if known else None


def _links(ways: list[Way], origin: float, begin: float) -> pl.DataFrame:
    """Compute the totals of each direction; marks are those that ACK frames count."""
    rows = [
        {
            "link": direction,
            "sent_packets": sum(at - origin >= begin for way in of for at in way.sent),
            "marks_aqm": (marks := _marks(of, begin + origin)),
            # The cause of a mark is not in the log, as in a capture.
            "marks_ce_threshold": None if marks is None else 0,
        }
        for direction in ("up", "down")
        if (of := [way for way in ways if way.direction == direction])
    ]
    counts = ("sent_packets", "marks_aqm", "marks_ce_threshold")
    kinds = {"link": pl.String, **dict.fromkeys(counts, pl.Int64)}
    return pl.DataFrame(rows, schema=kinds, orient="row")
