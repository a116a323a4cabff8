"""JSON of iperf3 as measured runs: goodput, RTT, windows and retransmissions.

The fields are those that iperf 3.12 writes and its manual describes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.exchange.measurement import MEASURED, Measurement, Sample
from sojourn.exchange.untrusted import beginning, damaged, number, read_object, read_records, text

# How a file begins whose lines are events.
STREAM = re.compile(rb'\{\s*"event"\s*:\s*"')
# A year in the far future, in seconds since 1970.
LATEST_S = 10**11
# Difference between what was sent and received that is named, as a share.
NAMED = 0.01
FLOWS = {
    **dict.fromkeys(("flow", "group", "kind", "direction", "cc"), pl.String),
    **dict.fromkeys(("started_s", "srtt_ms_mean"), pl.Float64),
    **dict.fromkeys(
        ("delivered_bytes", "sent_packets", "received_packets", "missing_packets", "retransmits"),
        pl.Int64,
    ),
}
SERIES = {
    **dict.fromkeys(("flow", "group"), pl.String),
    **dict.fromkeys(("t_s", "goodput_mbit_per_s", "srtt_ms"), pl.Float64),
    **dict.fromkeys(("cwnd_packets", "retransmits"), pl.Int64),
}


@dataclass(slots=True, kw_only=True)
class Stream:
    """A stream of a test: its intervals and its totals."""

    flow: str
    direction: str
    kind: str
    intervals: list[dict[str, Any]] = field(default_factory=list)
    totals: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The name of its group of flows."""
        return f"{self.kind} {self.direction}"

    @property
    def arrived(self) -> float:
        """The share of the bytes of its intervals that arrived.

        A sender of UDP counts what it sends; the totals of the test have the datagrams that the
        receiver missed.
        """
        udp = _object(self.totals, "udp")
        packets, lost = _count(udp.get("packets")), _count(udp.get("lost_packets"))
        if not self.intervals[0].get("sender") or not packets or lost is None:
            return 1.0
        return max(1 - lost / packets, 0.0)


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read the result of a test as a measured run."""
    is_stream = STREAM.match(beginning(path).lstrip()) is not None
    document = _joined(read_records(path)) if is_stream else read_object(path)
    if error := text(document.get("error")):
        damaged(path, f"iperf3 failed: {error.splitlines()[0][:200]}")
    start, end = _object(document, "start"), _object(document, "end")
    streams = _streams(document, start, end)
    if not streams:
        damaged(path, "no stream with an interval; expected the JSON of iperf3")
    segment = number(start.get("tcp_mss_default")) or number(start.get("tcp_mss")) or 0.0
    samples = {one.flow: _samples(one) for one in streams}
    ends = [sample.end_s for of in samples.values() for sample in of]
    series = pl.DataFrame(
        [row for one in streams for row in _rows(one, segment)], schema=SERIES, orient="row"
    )
    control = text(end.get("sender_tcp_congestion"))
    return Measurement(
        arm=MEASURED + (arm or Path(path).name),
        origin={
            "file": Path(path).name,
            "format": text(start.get("version")) or "iperf3",
            "time": _time(_object(start, "timestamp")),
        },
        load_s=0.0,
        end_s=max(ends, default=0.0),
        tables={"flow_series": series},
        totals={"flows": partial(_flows, streams, control)},
        series=series.rename({"t_s": "time_s"}),
        goodput=samples,
        notes=[note for one in streams for note in _difference(one)],
    )


def _joined(records: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Return the document of a test whose parts are the events of a stream."""
    parts = {text(one.get("event")): one.get("data") for one in records}
    intervals = [one.get("data") for one in records if one.get("event") == "interval"]
    return {**parts, "intervals": intervals}


def _object(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = of.get(key)
    return found if isinstance(found, dict) else {}


def _objects(of: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = of.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _time(stamp: Mapping[str, Any]) -> str:
    seconds = number(stamp.get("timesecs"))
    if seconds is None or not 0 < seconds < LATEST_S:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _streams(
    document: Mapping[str, Any], start: Mapping[str, Any], end: Mapping[str, Any]
) -> list[Stream]:
    """Return the streams by socket, without the intervals that iperf3 omits."""
    kind = text(_object(start, "test_start").get("protocol")).lower() or "tcp"
    # A server writes the same, with itself as the local host.
    is_server = "accepted_connection" in start
    ends = {one.get("socket"): one for one in _objects(start, "connected")}
    streams: dict[Any, Stream] = {}
    for interval in _objects(document, "intervals"):
        for one in _objects(interval, "streams"):
            key = number(one.get("socket"))
            if key is None or one.get("omitted") is True or number(one.get("end")) is None:
                continue
            direction = "up" if (one.get("sender") is True) != is_server else "down"
            if key not in streams:
                name = _named(ends.get(key, {}), key, is_sender=one.get("sender") is True)
                streams[key] = Stream(flow=name, direction=direction, kind=kind)
            streams[key].intervals.append(one)
    for one in _objects(end, "streams"):
        for part in ("udp", "sender", "receiver"):
            of = _object(one, part)
            if (stream := streams.get(number(of.get("socket")))) is not None:
                stream.totals = {**stream.totals, part: of}
    return list(streams.values())


def _named(ends: Mapping[str, Any], socket: float, *, is_sender: bool) -> str:
    """Name a stream as a flow of a capture is named."""

    def endpoint(side: str) -> str:
        host, port = text(ends.get(f"{side}_host")), number(ends.get(f"{side}_port"))
        shown = f"[{host}]" if ":" in host else host
        return f"{shown}:{port or 0:.0f}"

    if not ends:
        return f"stream {socket:.0f}"
    sides = ("local", "remote") if is_sender else ("remote", "local")
    return " > ".join(map(endpoint, sides))


def _samples(stream: Stream) -> list[Sample]:
    """Return the rate of each interval; impossible ones are left out."""
    found = []
    for one in stream.intervals:
        at, length, size = (number(one.get(key)) for key in ("end", "seconds", "bytes"))
        if at is not None and length is not None and size is not None and length > 0 <= size:
            found.append(Sample(at, length, stream.arrived * size * 8e-6 / length))
    return found


def _rows(stream: Stream, segment: float) -> list[dict[str, Any]]:
    """Return the series of a stream; the RTT is the smoothed one of the kernel, in µs."""
    rows = []
    for one, sample in zip(stream.intervals, _samples(stream), strict=False):
        rtt, window = number(one.get("rtt")), number(one.get("snd_cwnd"))
        rows.append(
            {
                "t_s": sample.end_s,
                "flow": stream.flow,
                "group": stream.group,
                "goodput_mbit_per_s": sample.mbit_per_s,
                "srtt_ms": rtt / 1e3 if rtt else None,
                "cwnd_packets": round(window / segment) if window and segment else None,
                "retransmits": _count(one.get("retransmits")),
            }
        )
    return rows


def _count(value: Any) -> int | None:
    found = number(value)
    return None if found is None or not 0 <= found < 2**53 else round(found)


def _flows(streams: Sequence[Stream], control: str, begin: float) -> pl.DataFrame:
    """Compute the totals of each stream from the intervals that end after `begin`."""
    rows = []
    for one in streams:
        since = [of for of in one.intervals if (number(of.get("end")) or 0.0) > begin]
        resent = [_count(of.get("retransmits")) for of in since]
        known = [count for count in resent if count is not None]
        whole = _count(_object(one.totals, "sender").get("retransmits"))
        if not known and begin <= 0 and whole is not None:
            # A receiver has only the total of the sender.
            known = [whole]
        rtts = [rtt for of in since if (rtt := number(of.get("rtt")))]
        udp = _object(one.totals, "udp") if begin <= 0 else {}
        packets, lost = _count(udp.get("packets")), _count(udp.get("lost_packets"))
        sizes = [_count(of.get("bytes")) or 0 for of in since]
        rows.append(
            {
                "flow": one.flow,
                "group": one.group,
                "kind": one.kind,
                "direction": one.direction,
                "cc": control or None,
                "started_s": 0.0,
                "delivered_bytes": round(sum(sizes) * one.arrived),
                "srtt_ms_mean": sum(rtts) / len(rtts) / 1e3 if rtts else None,
                "sent_packets": packets,
                "received_packets": None if packets is None or lost is None else packets - lost,
                "missing_packets": lost,
                "retransmits": sum(known) if known else None,
            }
        )
    return pl.DataFrame(rows, schema=FLOWS, orient="row")


def _difference(stream: Stream) -> list[str]:
    """Say how much less was received than a sender reports in its intervals."""
    if (lost := 1 - stream.arrived) > NAMED:
        share = f"{lost:.2%}".replace("%", " %")
        reduced = "goodput is what was sent in each interval, less this share"
        return [f'"{stream.flow}": {share} of the datagrams were lost in the test; {reduced}']
    sent = number(_object(stream.totals, "sender").get("bytes"))
    received = number(_object(stream.totals, "receiver").get("bytes"))
    if not stream.intervals[0].get("sender") or not sent or received is None:
        return []
    if abs(sent - received) <= NAMED * sent:
        return []
    wrote = f"goodput is what the sender wrote, {sent:.0f} bytes"
    return [f'"{stream.flow}": {wrote}; {received:.0f} bytes were received in the test']
