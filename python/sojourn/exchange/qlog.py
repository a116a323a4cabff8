"""qlog: the TCP and QUIC connections of simulated runs, one file each, as JSON text sequences.

Source: draft-ietf-quic-qlog-main-schema-14 (QlogFileSeq, the namespace ``simulation``) and
draft-ietf-quic-qlog-quic-events-13 (the namespace ``quic``). ``tests/python/exchange/qlog.cddl``
has their definitions and states which text of the drafts was read.

A result keeps no packets, so the run is repeated with a capture and a series of its senders. TCP
has no packet numbers: here they count the packets of the data sender, so that a retransmission has
a number of its own, as in QUIC. The payload of a TCP connection is stream 0. A datagram of QUIC is
logged as one packet.

There is no ``latest_rtt``: the capture has the time until an ACK enters the queue of the return
path, and the sender's sample includes that queue.
"""

import heapq
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.exchange import captures
from sojourn.exchange.captures import DROPPED, PASSING, RETRANSMISSION, SPURIOUS, Capture
from sojourn.exchange.packets import REMEDY
from sojourn.exchange.selection import Product, Selection, named
from sojourn.result import Result, repeated

SUFFIX = ".sqlog"
PLACE = "format qlog: "
# An internet-draft has its number in the URI of its schema (quic-events, "Draft Event Schema
# Identification").
SCHEMAS = ("urn:ietf:params:qlog:events:quic-13", "urn:ietf:params:qlog:events:simulation")
# Interval of the congestion window and the other metrics of the sender.
SAMPLE = "10ms"
KINDS = ("tcp", "quic")
# Ports of simulated hosts (crates/capture/src/endpoints.rs).
FIRST_PORT, PORTS = 49_152, 16_384
REASONS = {
    captures.OVERLIMIT: ("drop", "overlimit"),
    captures.AQM: ("drop", "aqm"),
    captures.ACK_FILTER: ("drop", "ack_filter"),
    captures.WIRE: ("loss", "lost on the wire"),
    captures.MARK_AQM: ("mark", "aqm"),
    captures.MARK_THRESHOLD: ("mark", "ce_threshold"),
}
Event = dict[str, Any]
RECORD_SEPARATOR, LINE_FEED = "\x1e", "\n"


def files(selection: Selection) -> list[Product]:
    """Create the logs of an export: one per connection of the traffic tcp and quic."""
    result = selection.result
    repeated.check(result, place=PLACE, remedy=REMEDY)
    for name in result.scenario.checked.external_queues:
        message = f"{PLACE}{name} is from outside Sojourn and may not be the same"
        raise _core.ResultError(message)
    replications = Counter(arm for arm, _ in selection.runs())
    products = []
    for arm, replication in selection.runs():
        several = selection.replication is None and replications[arm] > 1
        name = f"{arm}-{replication}" if several else arm
        products += _of_run(result, (arm, replication), name)
    if not products:
        message = f"{PLACE}no run has traffic of type tcp or quic"
        raise _core.ResultError(message)
    return products


def _of_run(result: Result, run: tuple[str, int], name: str) -> list[Product]:
    flows = result.flows.filter(arm=run[0], replication=run[1]).with_row_index("number")
    wanted = flows.filter(pl.col("kind").is_in(KINDS))
    if wanted.is_empty():
        return []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.pcapng"
        path.touch()
        fine = repeated.repeat(result, run, path, place=PLACE, sample=SAMPLE)
        capture = captures.load(path)
    products = []
    for flow in wanted.iter_rows(named=True):
        connection = _connection(capture, flow["number"])
        series = fine.flow_series.filter(flow=flow["flow"])
        if connection is not None:
            text = "".join(_records(result, flow, capture, connection, series))
            file = named(f"{name}-{flow['flow']}", SUFFIX)
            products.append(Product(name=file, data=text.encode()))
    return products


def _connection(capture: Capture, number: int) -> int | None:
    """Return the connection of a flow: one of its ports is the number of the flow."""
    port = FIRST_PORT + number % PORTS
    ports = (pl.col("port") == port) | (pl.col("other_port") == port)
    found = capture.flows.filter(ports, pl.col("protocol") != "ping")["connection"]
    return None if found.is_empty() else int(found[0])


def _records(
    result: Result, flow: dict[str, Any], capture: Capture, connection: int, series: pl.DataFrame
) -> Iterator[str]:
    """Write the header and the events of a connection."""
    packets = capture.packets.filter(pl.col("connection") == connection)
    # The sender of the data.
    sent = packets.group_by("direction").agg(pl.col("payload").sum()).sort("payload")
    sender = int(sent["direction"][-1])
    checked = result.scenario.checked
    header = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": f"{checked.name}: {flow['flow']}",
        "description": f"arm {flow['arm']}, replication {flow['replication']}, "
        f"Sojourn {_core.version()}",
        "trace": {
            "common_fields": {
                "group_id": flow["flow"],
                "time_format": "relative_to_epoch",
                "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
            },
            # Packets are seen where they enter the queues. The opener of a download over TCP is
            # its sender, the server.
            "vantage_point": {
                "name": "entry of the queues",
                "type": "network",
                "flow": "server" if flow["direction"] == "down" else "client",
            },
            "event_schemas": list(SCHEMAS),
        },
    }
    yield _record(header)
    details = {key: flow[key] for key in ("kind", "cc", "rtt_ms") if flow[key] is not None}
    yield _record(_event(0.0, "simulation:scenario", {"name": checked.name, "details": details}))
    segment = max(packets["payload"].drop_nulls().to_list(), default=0)
    wire = _Wire(sender=sender, connected_s=flow["connected_s"], is_quic=flow["kind"] == "quic")
    events = heapq.merge(
        wire.events(packets), _metrics(series, segment), key=lambda one: one["time"]
    )
    for event in events:
        yield _record(event)


def _record(value: Event) -> str:
    return RECORD_SEPARATOR + json.dumps(value, separators=(",", ":")) + LINE_FEED


def _event(at_s: float, name: str, data: Event) -> Event:
    return {"time": round(at_s * 1e3, 6), "name": name, "data": data}


@dataclass(slots=True, kw_only=True)
class _Wire:
    """Converts packets to events, and keeps what acknowledgements refer to."""

    sender: int
    connected_s: float | None
    is_quic: bool
    sent: int = 0
    received: int = 0
    # Packets that wait for their acknowledgement: end of the payload, and number.
    waiting: list[tuple[int, int]] = field(default_factory=list)
    # The last transmission of the payload at an offset.
    last: dict[int, int] = field(default_factory=dict)

    def events(self, packets: pl.DataFrame) -> Iterator[Event]:
        """Yield the events of packets in order."""
        columns = ("at_s", "direction", "point", "bytes", "payload", "kind", "offset")
        more = ("acked_until", "reason", "link")
        for row in packets.select(*columns, *more).iter_rows(named=True):
            if row["reason"]:
                yield self._decision(row)
            if row["point"] == PASSING:
                out = row["direction"] == self.sender
                yield from self._sent(row) if out else self._acknowledged(row)

    def _header(self, row: dict[str, Any], number: int) -> Event:
        connected = self.connected_s is not None and row["at_s"] >= self.connected_s
        return {"packet_type": "1RTT" if connected else "initial", "packet_number": number}

    def _raw(self, row: dict[str, Any]) -> Event:
        """Return the RawInfo of a packet: of TCP the IP packet, of QUIC the payload of UDP.

        Simulated QUIC does not state how many bytes of its packets are header and AEAD tag.
        """
        if self.is_quic:
            return {"length": row["payload"]}
        return {"length": row["bytes"], "payload_length": row["payload"]}

    def _sent(self, row: dict[str, Any]) -> Iterator[Event]:
        number, self.sent = self.sent, self.sent + 1
        header = self._header(row, number)
        data: Event = {"header": header, "raw": self._raw(row)}
        offset, payload = row["offset"], row["payload"]
        if payload and offset >= 0:
            if row["kind"] & RETRANSMISSION and not row["kind"] & SPURIOUS and offset in self.last:
                lost = {"header": header | {"packet_number": self.last[offset]}}
                yield _event(row["at_s"], "quic:packet_lost", lost)
            self.last[offset] = number
            heapq.heappush(self.waiting, (offset + payload, number))
            frame = {"frame_type": "stream", "stream_id": 0, "offset": offset}
            # The data of TCP has no header of its own.
            data["frames"] = [frame | {"raw": {"length": payload, "payload_length": payload}}]
        yield _event(row["at_s"], "quic:packet_sent", data)

    def _acknowledged(self, row: dict[str, Any]) -> Iterator[Event]:
        number, self.received = self.received, self.received + 1
        data: Event = {"header": self._header(row, number), "raw": self._raw(row)}
        numbers = []
        while self.waiting and self.waiting[0][0] <= row["acked_until"]:
            numbers.append(heapq.heappop(self.waiting)[1])
        if numbers:
            data["frames"] = [{"frame_type": "ack", "acked_ranges": _ranges(sorted(numbers))}]
        yield _event(row["at_s"], "quic:packet_received", data)

    def _decision(self, row: dict[str, Any]) -> Event:
        """Write what a queue did to a packet, which its sender does not know."""
        kind, reason = REASONS[row["reason"]]
        of = "" if row["point"] == DROPPED and kind == "loss" else f" by the queue of {row['link']}"
        message = reason if kind == "loss" else f"{kind}{of}: {reason}"
        return _event(row["at_s"], "simulation:marker", {"type": kind, "message": message})


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Join consecutive numbers.

    Examples
    --------
    >>> _ranges([1, 2, 3, 5])
    [[1, 3], [5]]
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return ranges


def _metrics(series: pl.DataFrame, segment: int) -> Iterator[Event]:
    """Yield what changed in the state of the sender, and its phases, interval by interval."""
    before: Event = {}
    phase = None
    for row in series.sort("t_s").iter_rows(named=True):
        window, threshold = row["cwnd_packets"], row["ssthresh_packets"]
        flying = row["in_flight_packets"]
        now = {
            "smoothed_rtt": row["srtt_ms"],
            "congestion_window": None if window is None else window * segment,
            "ssthresh": None if threshold is None else threshold * segment,
            "packets_in_flight": flying,
            "bytes_in_flight": None if flying is None else flying * segment,
        }
        changed = {k: v for k, v in now.items() if v is not None and v != before.get(k)}
        before |= changed
        if changed:
            yield _event(row["t_s"], "quic:recovery_metrics_updated", changed)
        if window is None:
            continue
        slow = threshold is None or window < threshold
        new = "slow_start" if slow else "congestion_avoidance"
        if new != phase:
            old: dict[str, str] = {} if phase is None else {"old": phase}
            yield _event(row["t_s"], "quic:congestion_state_updated", old | {"new": new})
        phase = new
