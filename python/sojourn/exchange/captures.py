"""Packet captures, pcap and pcapng, as measured runs: connections, RTT, marks, pings and queues."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl

from sojourn import _core
from sojourn.arguments import checked
from sojourn.exchange import untrusted
from sojourn.exchange.measurement import MEASURED, SIMULATED, Measurement
from sojourn.result.formatting import counted

# Width of the intervals of series, and how many of them a capture has at most.
STEP_S = 0.1
MOST_STEPS = 2000
# More flows have no intervals without data in their series.
MOST_FILLED = 1000
# A flow with data in this share of the intervals is endless, as bulk transfers are.
BUSY = 0.5
# The codes of crates/capture/src/analysis.rs.
PASSING, LEAVING, DROPPED = range(3)
NEW, RETRANSMISSION, OUT_OF_ORDER, SPURIOUS, PROBE, SYN, FIN, AFTER_GAP = (1 << n for n in range(8))
OVERLIMIT, AQM, ACK_FILTER, WIRE, MARK_AQM, MARK_THRESHOLD = range(1, 7)
NOT_ECT, CE = 0, 3
COUNTS = {
    "drops_overlimit": OVERLIMIT,
    "drops_aqm": AQM,
    "drops_ack_filter": ACK_FILTER,
    "marks_aqm": MARK_AQM,
    "marks_ce_threshold": MARK_THRESHOLD,
    "lost_packets": WIRE,
}
# The header of Ethernet, which the bytes of a link of a result include.
ETHERNET = 14
# The weight of a sample in the smoothed RTT (RFC 6298 section 2).
SMOOTHING = 1 / 8
# Longer than any packet on a wire: the network card splits it.
LONGEST_ON_WIRE = 9_216
DIRECTIONS = ("up", "down")
# The port of HTTP/3, which simulated QUIC has too.
QUIC = 443
# The year 5138, in s since 1970.
LATEST_S = 10**11
# Times in 1970, in ns: of simulated packets.
SIMULATED_NS = 10**6 * 10**9
LEFT_OUT = {
    "other": "of protocols other than TCP, UDP and ICMP echo, or of no flow of the capture",
    "cut": "cut within their headers; capture at least 128 bytes of each packet",
    "fragments": "fragments of IP packets",
    "malformed": "with contradictory headers",
    "repeated": "seen at a second interface",
    "timeless": "without a timestamp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The packets of a capture with their flows, and what was left out.

    `packets` has a row per packet and `flow`, `peer` (the flow of the other direction), `at_s`.
    """

    packets: pl.DataFrame
    flows: pl.DataFrame
    pings: pl.DataFrame
    links: list[str]
    began: str
    # What was added to times since the first packet.
    origin_ns: int
    # It has the packets of a simulated run, not of a network.
    is_simulated: bool
    notes: list[str]


@checked
def read_capture(path: str | Path) -> pl.DataFrame:
    """Read the packets of TCP, UDP and ICMP echo in a capture, and analyse their connections.

    Parameters
    ----------
    path
        The capture, pcap or pcapng, plain or compressed by gzip or bzip2.

    Returns
    -------
    polars.DataFrame
        One row per packet: ``time_s`` (from the first packet), ``flow``, ``direction``,
        ``interface``, ``bytes`` (of the IP packet), ``payload_bytes``, ``ecn`` (the two bits),
        ``event`` (``"retransmission"``, ``"spurious"``, ``"out of order"`` or ``"probe"``),
        ``wireshark_event`` (the same by the rule of Wireshark 4.0, to which a segment that is
        resent within the RTT of the handshake is out of order),
        ``acked_bytes`` (data of the other direction that the packet acknowledges first), ``rtt_ms``
        (time since the segment that it acknowledges, or since the request of an echo reply) and
        ``sojourn_ms`` (in captures of Sojourn).

    Raises
    ------
    ResultError
        The file cannot be read.
    DamagedResultError
        The file is not a capture, is damaged, or is too large; the message names the byte.
    """
    return _events(load(path))


def measured(path: str | Path, arm: str | None = None) -> Measurement:
    """Read a capture as a measured run."""
    capture = load(path)
    load_s, end_s = _window(capture)
    step = _step(capture)
    delivered = _delivered(capture)
    endless = _endless(delivered, load_s, end_s)
    prefix = SIMULATED if capture.is_simulated else MEASURED
    return Measurement(
        arm=prefix + (arm or Path(path).name),
        origin={"file": Path(path).name, "format": "packet capture", "time": capture.began},
        load_s=load_s,
        end_s=end_s,
        tables={
            "pings": capture.pings,
            "flow_series": _flow_series(capture, delivered, step),
            "link_series": _link_series(capture, step),
        },
        totals={
            "flows": partial(_flows, capture, delivered, endless, end_s),
            "links": partial(_links, capture),
            "sojourn": partial(_sojourn, capture),
        },
        series=_events(capture),
        notes=capture.notes,
    )


def load(path: str | Path) -> Capture:
    """Read a capture, part by part."""
    analysis = _core.CaptureAnalysis()
    try:
        for part in untrusted.chunks(path):
            analysis.feed(part)
        tables, counts, interfaces, first_at, ends_early = analysis.finish()
    except _core.DamagedResultError as error:
        # Those of the file itself name it already.
        if f"{error}".startswith(f"{path}: "):
            raise
        untrusted.damaged(path, f"{error}")
    frames = {name: pl.DataFrame(table) for name, table in tables}
    packets, connections = frames["packets"], frames["connections"]
    left_out = dict(counts)
    if packets.is_empty():
        untrusted.damaged(path, _nothing(left_out))
    links = _links_of(interfaces)
    flows = _named(packets, connections, links)
    keys = ["connection", "direction"]
    names = flows.select(*keys, "flow", "side")
    # A simulation starts in 1970: its packets have the times of the run.
    began = first_at or 0
    is_simulated = links[0] is not None and began < SIMULATED_NS
    origin = began if is_simulated else 0
    packets = packets.join(names, on=keys, how="left", maintain_order="left").with_columns(
        at_s=(pl.col("at") + origin) / 1e9,
        link=_link_of_packet(links, "side"),
        interface=pl.col("source").replace_strict(
            dict(enumerate(interfaces)), return_dtype=pl.String
        ),
    )
    requests = flows.filter(pl.col("direction") == 0).select("connection", "flow")
    pings = frames["pings"].join(requests, on="connection", how="left", maintain_order="left")
    return Capture(
        packets=packets,
        flows=flows,
        pings=pings.select(
            "flow",
            t_s=(pl.col("at") + origin) / 1e9,
            rtt_ms=pl.when(pl.col("rtt") >= 0).then(pl.col("rtt") / 1e6),
        ),
        links=list(dict.fromkeys(name for name in links if name is not None)),
        began=_time(first_at),
        origin_ns=origin,
        is_simulated=is_simulated,
        notes=[
            *_notes(packets, left_out, ends_early=ends_early),
            *([] if links[0] is None else _coverage(packets, flows, is_simulated=is_simulated)),
            *_of_quic(flows),
        ],
    )


def _nothing(left_out: dict[str, int]) -> str:
    """Explain why a capture has no packet that can be analysed."""
    if left_out["link_type"]:
        return (
            f"link type {left_out['unsupported']} is not supported; expected Ethernet, raw IP, "
            "loopback or Linux cooked capture"
        )
    seen = sum(left_out[name] for name in ("not_ip", *LEFT_OUT))
    return f"no TCP, UDP or ICMP echo among its {counted(seen, 'packet')}"


def _notes(packets: pl.DataFrame, left_out: dict[str, int], *, ends_early: bool) -> list[str]:
    notes = [
        f"{counted(left_out[name], 'packet')} left out: {why}"
        for name, why in LEFT_OUT.items()
        if left_out[name]
    ]
    if left_out["link_type"]:
        notes.append(
            f"{counted(left_out['link_type'], 'packet')} left out: link type "
            f"{left_out['unsupported']} is not supported"
        )
    resent = packets.filter(_is(RETRANSMISSION))
    early = resent.select(_is(OUT_OF_ORDER).sum()).item()
    if early:
        notes.append(
            f"Wireshark 4.0 counts {early} of the {counted(resent.height, 'retransmission')} as "
            "out of order, because they follow within the RTT of the handshake"
        )
    if ends_early:
        notes.append("the file ends in the middle of a packet, which was left out")
    longest = packets["bytes"].max()
    if isinstance(longest, int) and longest > LONGEST_ON_WIRE:
        notes.append(
            f"packets of up to {longest} bytes: the network card splits or merged them, so one "
            "packet or retransmission here can be several on the wire"
        )
    return notes


def _coverage(packets: pl.DataFrame, flows: pl.DataFrame, *, is_simulated: bool) -> Iterator[str]:
    """Say what RTT measured at the queues lacks, compared with that of a sender."""
    measured = packets.filter(pl.col("rtt") >= 0)["connection"].unique().implode()
    seen = flows.filter(pl.col("connection").is_in(measured))["protocol"].to_list()
    base = (
        ' and, of traffic with direction = "down", the base RTT, which the RTT of a simulated '
        "sender includes"
        if is_simulated
        else ""
    )
    if "tcp" in seen:
        yield (
            "RTT of TCP is the time from where a segment enters its first queue to where its ACK "
            "enters the first queue of the return path: it lacks the queues and delays of the "
            f"return path{base}"
        )
    if "ping" in seen:
        yield (
            "RTT of pings is the time from where a request enters its first queue to where the "
            "reply leaves its last queue: it lacks the transmission and delay of the last link"
            f"{base}"
        )


def _of_quic(flows: pl.DataFrame) -> Iterator[str]:
    is_quic = (pl.col("protocol") == "udp") & (
        (pl.col("port") == QUIC) | (pl.col("other_port") == QUIC)
    )
    if not flows.filter(is_quic).is_empty():
        yield (
            f"goodput of UDP port {QUIC} counts all datagrams: of QUIC it includes headers, ACKs "
            "and retransmissions, also in the direction without data"
        )


def _time(first_at: int | None) -> str:
    """Write the time of the first packet; a simulation starts in 1970."""
    seconds = 0 if first_at is None else first_at // 10**9
    if not SIMULATED_NS // 10**9 < seconds < LATEST_S:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _links_of(interfaces: list[str]) -> list[str | None]:
    """Return the link of each interface if all are observation points of Sojourn."""
    parts = [name.rpartition(".") for name in interfaces]
    if not all(link and point in {"enq", "deq", "drop"} for link, _, point in parts):
        return [None] * len(interfaces)
    return [link for link, _, _ in parts]


def _link_of_packet(links: list[str | None], side: str) -> pl.Expr:
    """Return the link of a packet: of its interface, or else its direction."""
    if any(link is not None for link in links):
        return pl.col("source").replace_strict(dict(enumerate(links)), return_dtype=pl.String)
    return pl.col(side)


def _named(
    packets: pl.DataFrame, connections: pl.DataFrame, links: list[str | None]
) -> pl.DataFrame:
    """Name both directions of each connection.

    `side` is up for packets from the opener; in captures of Sojourn it is the link that the first
    packet entered.
    """
    ends = connections.with_row_index("connection").with_columns(
        near=_endpoint("address", "port"), far=_endpoint("other_address", "other_port")
    )
    both = pl.concat(
        [
            ends.with_columns(direction=pl.lit(n, pl.UInt8), source=a, destination=b)
            for n, (a, b) in enumerate([("near", "far"), ("far", "near")])
        ]
    )
    first = (
        packets.filter(pl.col("point") == PASSING)
        .group_by("connection", "direction", maintain_order=True)
        .agg(pl.col("source").first().alias("entry"), pl.col("at").first().alias("started_at"))
    )
    side = pl.col("direction").replace_strict(dict(enumerate(DIRECTIONS)), return_dtype=pl.String)
    if any(link is not None for link in links):
        known = pl.col("entry").replace_strict(dict(enumerate(links)), return_dtype=pl.String)
        side = pl.coalesce(known, side)
    name = pl.col("source") + " > " + pl.col("destination")
    repeated = pl.int_range(pl.len()).over("protocol", "source", "destination") + 1
    return (
        both.join(first, on=["connection", "direction"], how="left", maintain_order="left")
        .sort("connection", "direction")
        .with_columns(
            side=side,
            flow=pl.when(pl.col("protocol") == "tcp")
            .then(pl.lit(""))
            .otherwise(pl.col("protocol") + " ")
            + name
            + pl.when(repeated > 1).then(pl.format(" #{}", repeated)).otherwise(pl.lit("")),
        )
        .with_columns(group=pl.col("protocol") + " " + pl.col("side"))
    )


def _endpoint(address: str, port: str) -> pl.Expr:
    """Write an endpoint; the identifier of a ping is no port."""
    is_v6 = pl.col(address).str.contains(":", literal=True)
    text = (
        pl.when(is_v6).then("[" + pl.col(address) + "]").otherwise(pl.col(address))
        + ":"
        + pl.col(port).cast(pl.String)
    )
    return pl.when(pl.col("protocol") == "ping").then(pl.col(address)).otherwise(text)


def _is(kind: int) -> pl.Expr:
    return (pl.col("kind") & kind) != 0


def _passing() -> pl.Expr:
    return pl.col("point") == PASSING


def _window(capture: Capture) -> tuple[float, float]:
    """Return begin and end of the load: of packets with data, or else of all packets."""
    loaded = capture.packets.filter(pl.col("payload") > 0, pl.col("flow").str.contains(":"))
    times = (loaded if not loaded.is_empty() else capture.packets)["at_s"]
    begin, end = times.min(), times.max()
    return (float(begin), float(end)) if isinstance(begin, float) else (0.0, 0.0)  # type: ignore[arg-type]


def _step(capture: Capture) -> float:
    """Return the width of the intervals of series: those of all packets are at most MOST_STEPS."""
    (span,) = capture.packets.select(pl.col("at_s").max() - pl.col("at_s").min()).to_series()
    return max(STEP_S, float(span) / MOST_STEPS)


def _delivered(capture: Capture) -> pl.DataFrame:
    """Return the data that reached the receiver: connection, direction, at_s, delivered.

    Of TCP, data counts when its acknowledgement is seen; without any packet of the other direction,
    when it is seen first. Of UDP, it counts when it passes, or leaves the queue.
    """
    keys = ["connection", "direction"]
    packets = capture.packets.join(
        capture.flows.select(*keys, "protocol"), on=keys, how="left", maintain_order="left"
    )
    tcp = packets.filter(pl.col("protocol") == "tcp", _passing())
    acks = tcp.filter(pl.col("acked") > 0).select(
        "connection", "at_s", direction=1 - pl.col("direction"), delivered="acked"
    )
    answered = tcp.select("connection", direction=1 - pl.col("direction")).unique()
    alone = (
        tcp.filter(_is(NEW))
        .join(answered, on=keys, how="anti", maintain_order="left")
        .select("connection", "at_s", "direction", delivered="payload")
    )
    udp = packets.filter(pl.col("protocol") == "udp")
    queued = udp.filter(pl.col("point") == LEAVING).select(keys).unique()
    udp = pl.concat(
        [
            udp.filter(_passing()).join(queued, on=keys, how="anti", maintain_order="left"),
            udp.filter(pl.col("point") == LEAVING),
            # What the wire lost had left the queue.
            udp.filter(pl.col("reason") == WIRE).with_columns(
                payload=-pl.col("payload").cast(pl.Int64)
            ),
        ],
        how="vertical_relaxed",
    ).select("connection", "at_s", "direction", delivered="payload")
    parts = [
        part.cast({"delivered": pl.Int64, "direction": pl.UInt8}).select(
            "connection", "direction", "at_s", "delivered"
        )
        for part in (acks, alone, udp)
    ]
    return pl.concat(parts).filter(pl.col("delivered") != 0)


def _endless(delivered: pl.DataFrame, begin: float, end: float) -> pl.DataFrame:
    """Return the flows that delivered data most of the time: all others are finite transfers."""
    step = max(STEP_S, (end - begin) / MOST_STEPS)
    slots = max(1.0, (end - begin) / step)
    return (
        delivered.group_by("connection", "direction")
        .agg(busy=((pl.col("at_s") - begin) / step).floor().n_unique() / slots)
        .select("connection", "direction", is_endless=pl.col("busy") >= BUSY)
    )


def _arriving(capture: Capture, begin: float) -> pl.DataFrame:
    """Return the packets as they reach the receiver, as far as the capture shows.

    At queues, this is where they leave the last one, with its marks: the one that packets of the
    flow left latest first.
    """
    since = capture.packets.filter(pl.col("at_s") >= begin)
    if not _is_queue(capture):
        return since.filter(_passing())
    left = since.filter(pl.col("point") == LEAVING)
    last = left.group_by("connection", "direction").agg(
        link=pl.col("link").unique(maintain_order=True).last()
    )
    return left.join(last, on=["connection", "direction", "link"], how="semi")


def _flows(
    capture: Capture, delivered: pl.DataFrame, endless: pl.DataFrame, end: float, begin: float
) -> pl.DataFrame:
    """Compute the totals of each flow over the measured time."""
    keys = ["connection", "direction"]
    packets = capture.packets.filter(_passing())
    since = packets.filter(pl.col("at_s") >= begin)
    has_data = pl.col("payload") > 0
    sent = since.group_by(keys).agg(
        sent_packets=has_data.sum(),
        sent_bytes=pl.col("bytes").cast(pl.Int64).sum(),
        retransmits=(_is(RETRANSMISSION) & ~_is(SYN)).sum(),
        syn_retransmits=(_is(RETRANSMISSION) & _is(SYN)).sum(),
    )
    marked = _arriving(capture, begin).group_by(keys).agg(ce_packets=(pl.col("ecn") == CE).sum())
    rtt = pl.col("rtt") / 1e6
    samples = since.filter(pl.col("rtt") >= 0).with_columns(direction=1 - pl.col("direction"))
    rtts = samples.group_by(keys).agg(
        ack_rtt_ms_mean=rtt.mean(),
        ack_rtt_ms_max=rtt.max(),
        ack_rtt_ms_p95=rtt.quantile(0.95, "linear"),
    )
    smooth = rtt.ewm_mean(alpha=SMOOTHING, adjust=False)
    smoothed = samples.group_by(keys).agg(srtt_ms_mean=smooth.mean())
    data = (
        delivered.filter(pl.col("at_s") >= begin)
        .group_by(keys)
        .agg(pl.col("delivered").sum().alias("delivered_bytes"))
    )
    whole = delivered.group_by(keys).agg(
        whole=pl.col("delivered").sum(), completed_s=pl.col("at_s").max()
    )
    found = capture.flows
    for part in (sent, marked, rtts, smoothed, data, whole, endless):
        found = found.join(part, on=keys, how="left", maintain_order="left")
    is_ping = pl.col("protocol") == "ping"
    is_tcp = pl.col("protocol") == "tcp"
    carries = pl.col("whole").is_not_null() | (pl.col("sent_packets") > 0)
    found = found.filter(pl.when(is_ping).then(pl.col("direction") == 0).otherwise(carries))
    is_finite = is_tcp & ~pl.col("is_endless").fill_null(value=False)
    # In the times of the other columns.
    shift = capture.origin_ns / 1e9
    opened = pl.coalesce("opened_at", "started_at") / 1e9
    bytes_ = pl.col("delivered_bytes").fill_null(0)
    length = max(end - begin, 1e-9)
    return found.select(
        "flow",
        "group",
        kind="protocol",
        direction=pl.when(~is_ping & pl.col("side").is_in(DIRECTIONS)).then("side"),
        started_s=opened + shift,
        connected_s=pl.when(is_tcp).then(pl.col("connected_at") / 1e9 + shift),
        fct_s=pl.when(is_finite & pl.col("is_closed")).then(pl.col("completed_s") - shift - opened),
        aborted=pl.when(is_tcp).then("is_reset"),
        bytes=pl.when(is_finite).then(pl.col("whole").fill_null(0)),
        delivered_bytes=pl.when(~is_ping).then(bytes_),
        goodput_mbit_per_s=pl.when(~is_ping).then(bytes_ * 8e-6 / length),
        sent_packets=pl.col("sent_packets").fill_null(0),
        sent_bytes=pl.col("sent_bytes").fill_null(0),
        retransmits=pl.when(is_tcp).then(pl.col("retransmits").fill_null(0)),
        syn_retransmits=pl.when(is_tcp).then(pl.col("syn_retransmits").fill_null(0)),
        srtt_ms_mean=pl.when(is_tcp).then("srtt_ms_mean"),
        ack_rtt_ms_mean=pl.when(is_tcp).then("ack_rtt_ms_mean"),
        ack_rtt_ms_p95=pl.when(is_tcp).then("ack_rtt_ms_p95"),
        ack_rtt_ms_max=pl.when(is_tcp).then("ack_rtt_ms_max"),
        ce_packets=pl.col("ce_packets").fill_null(0),
    )


def _slot(step: float) -> pl.Expr:
    """Return the end of the interval in which a packet was seen."""
    return ((pl.col("at_s") / step).floor() + 1) * step


def _flow_series(capture: Capture, delivered: pl.DataFrame, step: float) -> pl.DataFrame:
    """Compute goodput and smoothed RTT of each flow over intervals of equal length."""
    keys = ["connection", "direction"]
    rates = (
        delivered.group_by(*keys, t_s=_slot(step))
        .agg(goodput_mbit_per_s=pl.col("delivered").sum() * 8e-6 / step)
        .sort(*keys, "t_s")
    )
    if rates.select(keys).n_unique() <= MOST_FILLED and not rates.is_empty():
        rates = _filled(rates, keys, step)
    smooth = (pl.col("rtt") / 1e6).ewm_mean(alpha=SMOOTHING, adjust=False)
    srtt = (
        capture.packets.filter(_passing(), pl.col("rtt") >= 0)
        .with_columns(direction=1 - pl.col("direction"))
        .with_columns(srtt_ms=smooth.over(keys))
        .group_by(*keys, t_s=_slot(step))
        .agg(pl.col("srtt_ms").last())
    )
    names = capture.flows.filter(pl.col("protocol") != "ping").select(*keys, "flow", "group")
    # Equal numbers of intervals give equal times.
    return (
        rates.join(srtt, on=[*keys, "t_s"], how="left", maintain_order="left")
        .with_columns(pl.col("srtt_ms").forward_fill().over(keys))
        .join(names, on=keys, how="inner", maintain_order="left")
        .select("t_s", "flow", "group", "goodput_mbit_per_s", "srtt_ms")
    )


def _filled(rates: pl.DataFrame, keys: list[str], step: float) -> pl.DataFrame:
    """Add the intervals without data between the first and the last with data."""
    number = (pl.col("t_s") / step).round().cast(pl.Int64)
    whole = (
        rates.group_by(keys, maintain_order=True)
        .agg(number=pl.int_ranges(number.min(), number.max() + 1))
        .explode("number")
    )
    found = whole.join(
        rates.with_columns(number=number), on=[*keys, "number"], how="left", maintain_order="left"
    )
    return found.select(
        *keys,
        t_s=pl.col("number") * step,
        goodput_mbit_per_s=pl.col("goodput_mbit_per_s").fill_null(0.0),
    )


def _is_queue(capture: Capture) -> bool:
    """Whether the capture shows queues."""
    return bool(capture.links)


def _of_links(capture: Capture) -> dict[str, pl.Expr]:
    """Return the totals of packets of a link."""
    if not _is_queue(capture):
        # An observer sees marks, but not where they were made, and no drops.
        capable = (pl.col("ecn") != NOT_ECT).any()
        marks = (pl.col("ecn") == CE).sum()
        return {
            "sent_packets": pl.len(),
            "sent_bytes": (pl.col("bytes").cast(pl.Int64) + ETHERNET).sum(),
            "marks_aqm": pl.when(capable).then(marks),
            "marks_ce_threshold": pl.when(capable).then(0),
        }
    left = pl.col("point") == LEAVING
    sojourn = (pl.col("sojourn") / 1e6).filter(left & (pl.col("sojourn") >= 0))
    return {
        "sent_packets": left.sum(),
        "sent_bytes": (pl.col("bytes").cast(pl.Int64) + ETHERNET).filter(left).sum(),
        **{name: (pl.col("reason") == code).sum() for name, code in COUNTS.items()},
        "sojourn_ms_mean": sojourn.mean(),
        "sojourn_ms_max": sojourn.max(),
    }


def _links(capture: Capture, begin: float) -> pl.DataFrame:
    """Compute the totals of each link over the measured time."""
    sojourn = (pl.col("sojourn") / 1e6).filter(
        (pl.col("point") == LEAVING) & (pl.col("sojourn") >= 0)
    )
    quantiles = {
        f"sojourn_ms_p{percent}": sojourn.quantile(percent / 100, "linear")
        for percent in (50, 95, 99)
    }
    since = capture.packets.filter(pl.col("at_s") >= begin)
    return since.group_by("link", maintain_order=True).agg(
        **_of_links(capture), **(quantiles if _is_queue(capture) else {})
    )


def _link_series(capture: Capture, step: float) -> pl.DataFrame:
    """Compute series of each link; the backlog of queues is what entered minus what left."""
    by = [pl.col("link"), _slot(step).alias("t_s")]
    found = capture.packets.group_by(by, maintain_order=True).agg(**_of_links(capture))
    found = found.sort("link", "t_s")
    if not _is_queue(capture):
        return found
    # What the wire lost had left the queue before.
    change = (
        pl.when(_passing())
        .then(1)
        .when((pl.col("point") == LEAVING) | ((pl.col("reason") != WIRE) & (pl.col("reason") != 0)))
        .then(-1)
        .otherwise(0)
    )
    packets = capture.packets.with_columns(change=change)
    backlog = packets.group_by(by).agg(
        packets=pl.col("change").sum(), bytes=(pl.col("change") * pl.col("bytes")).sum()
    )
    return (
        found.join(backlog, on=["link", "t_s"], how="left", maintain_order="left")
        .with_columns(
            backlog_packets=pl.col("packets").cum_sum().over("link"),
            backlog_bytes=pl.col("bytes").cum_sum().over("link"),
        )
        .drop("packets", "bytes")
    )


# Width of the buckets of sojourn times, in ms.
BUCKET_MS = 0.1


def _sojourn(capture: Capture, begin: float) -> pl.DataFrame:
    """Count the sojourn times of the packets that left a queue."""
    left = capture.packets.filter(
        pl.col("point") == LEAVING, pl.col("sojourn") >= 0, pl.col("at_s") >= begin
    )
    place = (pl.col("sojourn") / 1e6 / BUCKET_MS).floor()
    counts = left.group_by("link", place=place).len().sort("link", "place")
    return counts.select(
        "link",
        low_ms=pl.col("place") * BUCKET_MS,
        high_ms=(pl.col("place") + 1) * BUCKET_MS,
        count=pl.col("len"),
    )


def _events(capture: Capture) -> pl.DataFrame:
    """Return the packets with readable columns."""
    again, early = (RETRANSMISSION, "retransmission"), (OUT_OF_ORDER, "out of order")
    event, wireshark = (
        pl.coalesce(*(pl.when(_is(bit)).then(pl.lit(name)) for bit, name in kinds))
        for kinds in (
            ((SPURIOUS, "spurious"), again, early, (PROBE, "probe")),
            ((SPURIOUS, "spurious"), early, again, (PROBE, "probe")),
        )
    )
    return capture.packets.select(
        time_s="at_s",
        flow="flow",
        direction="side",
        interface="interface",
        bytes=pl.col("bytes").cast(pl.Int64),
        payload_bytes=pl.col("payload").cast(pl.Int64),
        ecn=pl.col("ecn").cast(pl.Int64),
        event=event,
        wireshark_event=wireshark,
        acked_bytes=pl.col("acked").cast(pl.Int64),
        rtt_ms=pl.when(pl.col("rtt") >= 0).then(pl.col("rtt") / 1e6),
        sojourn_ms=pl.when(pl.col("sojourn") >= 0).then(pl.col("sojourn") / 1e6),
    )
