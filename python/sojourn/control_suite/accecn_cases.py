"""Cases of Accurate ECN (RFC 9768): peers and paths that its sections describe.

They are judged by the tables of a result. The link before the bottleneck stands for the part of the
path that overwrites ECN fields.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from sojourn.control_suite.topology import (
    RATE_MBIT,
    RTT_MS,
    Builders,
    ControlCase,
    ControlUnderTest,
    Form,
    Measure,
    rate,
    single,
)
from sojourn.result import Result
from sojourn.result.rows import KEYS
from sojourn.scenario import Link

_CODEL = "codel limit 1000 ecn"
_STEP = "pfifo limit 10000 ce_threshold 1ms"
# Long enough that the initial window is acknowledged much later than it is sent.
_LONG_RTT_MS = 200.0


def _measures(*, is_unsafe: bool, rtt_ms: float) -> Measure:
    """Compute what the cases judge: packets by their ECN field, the window, the first flight."""
    rtt_s = rtt_ms / 1e3

    def measures(result: Result, _: ControlCase) -> pl.DataFrame:
        ect, ce, reported = (
            pl.col(name) for name in ("ect_packets", "ce_packets", "reported_ce_packets")
        )
        packets = result.flows.select(
            *KEYS,
            "started_s",
            ect_packets=ect,
            ect_percent=ect / pl.col("sent_packets") * 100,
            ce_packets=ce,
            reported_packets=reported,
            reported_percent=reported / ce * 100,
            missed_packets=pl.max_horizontal(ce.cast(pl.Int64) - reported.cast(pl.Int64), 0),
            surplus_packets=pl.max_horizontal(reported.cast(pl.Int64) - ce.cast(pl.Int64), 0),
            unsafe_ect_packets=ect if is_unsafe else pl.lit(0),
        )
        series = result.flow_series.join(packets.select(*KEYS, "started_s"), on=KEYS)
        end_s = result.scenario.checked.duration_s
        # Between the handshake and the first acknowledgement of data.
        since = pl.col("t_s") - pl.col("started_s")
        first_flight = since.is_between(1.2 * rtt_s, 1.8 * rtt_s)
        windows = series.group_by(KEYS, maintain_order=True).agg(
            window_packets=pl.col("cwnd_packets").filter(pl.col("t_s") > end_s / 2).mean(),
            initial_packets=pl.col("in_flight_packets").filter(first_flight).max(),
        )
        return (
            packets.drop("started_s")
            .join(windows, on=KEYS)
            .with_columns(pl.exclude(KEYS).cast(pl.Float64))
        )

    return measures


def _case(
    tested: ControlUnderTest,
    form: Form,
    name: str,
    *,
    queue: str = _CODEL,
    path: Mapping[str, Any] | None = None,
    down: Mapping[str, Any] | None = None,
    back: Mapping[str, Any] | None = None,
    is_unsafe: bool = False,
    rtt_ms: float = RTT_MS,
    **traffic: Any,
) -> ControlCase:
    return single(
        tested,
        form,
        name,
        Link(rate=rate(RATE_MBIT), qdisc=queue, **(down or {})),
        _measures(is_unsafe=is_unsafe, rtt_ms=rtt_ms),
        options={"ecn": "accurate", **traffic},
        first=path,
        back=back,
        rtt_ms=rtt_ms,
    )


def _peers(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    return [
        _case(tested, form, f"receiver {name}", peer_ecn=peer)
        for name, peer in (
            ("without ECN", "none"),
            ("with classic ECN", "classic"),
            ("with AccECN", "accurate"),
            ("without ECN that copies the bits of the SYN", "reflecting"),
        )
    ]


def _reserved(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    return [_case(tested, form, "reserved SYN-ACK", peer_ecn="reserved")]


def _persistent(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    return [_case(tested, form, "every packet marked", path={"ecn": "mark"})]


def _marked_syn(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    return [_case(tested, form, "CE in every packet", path={"ecn": "ce"}, rtt_ms=_LONG_RTT_MS)]


def _mangled(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    # Controls that need signals send ECN-capable SYNs: ECT may become another ECT or CE.
    capable = tested.needs_signals
    return [
        _case(tested, form, f"{name} in every packet", path={"ecn": field}, is_unsafe=is_unsafe)
        for name, field, is_unsafe in (
            ("Not-ECT", "not-ect", capable),
            ("ECT(0)", "ect0", not capable),
            ("CE", "ce", not capable),
        )
    ]


def _zeroed(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    return [_case(tested, form, "ACE field of 0", peer_ecn="zeroed")]


def _thinned(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    # The handshake and the end lose nothing: no report is under way when the run ends.
    def lossy(share: str) -> dict[str, Any]:
        return {"changes": [{"at": "1s", "loss": share}, {"at": "10s", "loss": "0%"}]}

    variants: dict[str, dict[str, Any]] = {
        "an ACK per 8 segments, no loss of data": {"ack_every": 8, "quick_acks": False},
        "GRO, no loss of data": {"gro": True, "gro_flush_timeout": "5ms"},
        "75 % of ACKs lost, no loss of data": {"back": lossy("75%")},
        "50 % of ACKs lost, losses of data": {"back": lossy("50%"), "down": lossy("0.5%")},
    }
    return [
        _case(
            tested,
            form,
            name,
            queue=_STEP,
            bytes="8mb",
            on_ce="end-slow-start-only",
            **others,
        )
        for name, others in variants.items()
    ]


BUILDERS: Builders = {
    "3.1.2": _peers,
    "3.1.3": _reserved,
    "3.1.5": _persistent,
    "3.2.2.2": _marked_syn,
    "3.2.2.3": _mangled,
    "3.2.2.4": _zeroed,
    "3.2.2.5": _thinned,
}
