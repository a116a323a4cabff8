"""The example test cases of draft-ietf-ccwg-bbr-06, appendix A, as seen from outside the sender.

The draft's cases name variables of its pseudocode. What these do to the sending rate, to what is in
flight and to the window is measured here, so that every control can be tried. The link before the
bottleneck counts what the sender sends. Unit tests of the control check the variables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn import _core
from sojourn.control_suite.topology import (
    FLOW,
    ROUTE,
    Build,
    Builders,
    ControlCase,
    ControlUnderTest,
    Form,
    Measure,
    Path,
    rate,
    seconds,
    single,
)
from sojourn.result import Result, formatting
from sojourn.result.rows import KEYS
from sojourn.traffic import Request

_FRAME_BITS = 1514 * 8
# Frame bytes per byte of payload.
_FRAMED = 1514 / 1448

# Sending above and well below the capacity, as in startup and while draining; at it again.
_ABOVE, _BELOW, _AGAIN = 1.2, 0.75, 0.85
# In flight in a probe for bandwidth, in BDPs: where it begins, and at its peak at least.
_RAISED, _PROBED = 1.1, 1.2
# In flight in a probe for the smallest RTT at most, between the half and the whole BDP.
_LOW = 0.65
# Samples after the peak of a probe that a mean rate needs.
_LEAST_SAMPLES = 3
# At most a BDP, but for bursts.
_WITHIN = 1.05
# Startup is over, and the first probe for the smallest RTT, after 5 s, is not.
_SETTLED_S, _EARLIEST_PROBE_S = 1.5, 3.0

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one sender did, per sample: time since its start, rates relative to the capacity."""

    t_s: Numbers
    # Sent and delivered frames, relative to the rate of the bottleneck before any change.
    sent: Numbers
    delivered: Numbers
    # Relative to the bandwidth-delay product of that rate.
    in_flight: Numbers
    cwnd: Numbers
    cwnd_packets: Numbers
    dropped: Numbers
    rtt_s: float
    sample_s: float

    def during(self, low_s: float, high_s: float) -> npt.NDArray[np.bool_]:
        """Select the samples of a time."""
        return (self.t_s > low_s) & (self.t_s <= high_s)

    def first(self, condition: npt.NDArray[np.bool_], after_s: float = 0.0) -> float | None:
        """Return when something is first true; None if never."""
        found = np.flatnonzero(condition & (self.t_s > after_s))
        return float(self.t_s[found[0]]) if found.size else None

    @property
    def end_s(self) -> float:
        """The end of the run."""
        return float(self.t_s[-1])

    def spells(self, condition: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """Yield the first sample of each time in which something is true, and that after it."""
        edges = np.flatnonzero(np.diff(np.concatenate(([0], condition.astype(np.int8), [0]))))
        yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


Observation = dict[str, float | None]
Observe = Callable[[Trace], Observation]


def traces(result: Result, path: Path) -> Iterator[tuple[tuple[str, int], Trace]]:
    """Yield the trace of the sender in each run, by arm and replication."""
    bdp = path.rate_mbit * 1e6 * path.rtt_ms / 1e3 / _FRAME_BITS
    capacity = path.rate_mbit
    sample_s = _core.parse_time_s(str(result.scenario.sample))
    links = result.link_series
    sent = links.filter(pl.col("link") == "first").select(*KEYS, "t_s", "sent_packets")
    dropped = links.filter(pl.col("link") == "down").select(
        *KEYS, "t_s", drops=pl.col("drops_overlimit") + pl.col("drops_aqm")
    )
    joined = result.flow_series.join(sent, on=[*KEYS, "t_s"]).join(dropped, on=[*KEYS, "t_s"])
    started = result.flows.select(*KEYS, "started_s")
    for (arm, replication), rows in joined.join(started, on=KEYS).group_by(
        KEYS, maintain_order=True
    ):
        flow = rows.filter(pl.col("t_s") > pl.col("started_s")).fill_null(0)

        def column(name: str, flow: pl.DataFrame = flow) -> Numbers:
            return flow[name].cast(pl.Float64).to_numpy()

        yield (
            (str(arm), int(str(replication))),
            Trace(
                t_s=column("t_s") - column("started_s"),
                sent=column("sent_packets") * _FRAME_BITS / sample_s / 1e6 / capacity,
                delivered=column("goodput_mbit_per_s") * _FRAMED / capacity,
                in_flight=column("in_flight_packets") / bdp,
                cwnd=column("cwnd_packets") / bdp,
                cwnd_packets=column("cwnd_packets"),
                dropped=column("drops"),
                rtt_s=path.rtt_ms / 1e3,
                sample_s=sample_s,
            ),
        )


def _measures(path: Path, observe: Observe) -> Measure:
    def measures(result: Result, _: ControlCase) -> pl.DataFrame:
        rows: list[dict[str, Any]] = [
            {"arm": arm, "replication": replication, **observe(trace)}
            for (arm, replication), trace in traces(result, path)
        ]
        return pl.DataFrame(rows, infer_schema_length=None).with_columns(
            pl.exclude("arm", "replication").cast(pl.Float64)
        )

    return measures


# Deep enough that nothing is lost in startup.
DEEP = Path(buffer_bdp=4.0)


def _startup(trace: Trace) -> Observation:
    """Observe the end of startup: above the capacity, then well below it."""
    above = trace.first(trace.sent > _ABOVE)
    left = None if above is None else trace.first(trace.sent < _BELOW, above)
    steady = trace.during(_SETTLED_S, 4.5)
    return {
        "startup_rtts": (trace.end_s if left is None else left) / trace.rtt_s,
        "bandwidth_error_percent": abs(float(trace.sent[steady].mean()) - 1.0) * 100,
    }


def _drain(trace: Trace) -> Observation:
    """Observe the spell below the capacity that follows startup."""
    above = trace.first(trace.sent > _ABOVE)
    left = None if above is None else trace.first(trace.sent < _BELOW, above)
    if left is None:
        return {"drain_gain": None, "after_drain_bdp": None}
    back = trace.first(trace.sent > _AGAIN, left) or trace.end_s
    # Not the samples in which draining began and ended.
    spell = trace.during(left, back - 1.5 * trace.sample_s)
    gain = float(trace.sent[spell].mean()) if spell.any() else float(trace.sent.min())
    after = trace.during(back + 2 * trace.rtt_s, back + 10 * trace.rtt_s)
    return {"drain_gain": gain, "after_drain_bdp": float(trace.in_flight[after].mean())}


def _probes(trace: Trace) -> Observation:
    """Observe probes for bandwidth: spells in which more than a BDP is in flight."""
    settled = trace.t_s > _SETTLED_S
    found = [
        (first, after)
        for first, after in trace.spells((trace.in_flight > _RAISED) & settled)
        if trace.in_flight[first:after].max() > _PROBED
    ]
    gains, longest = [], 0.0
    for first, after in found:
        peak = first + int(trace.in_flight[first:after].argmax())
        longest = max(longest, float(trace.t_s[peak] - trace.t_s[first]) / trace.rtt_s)
        if after - peak >= _LEAST_SAMPLES:
            gains.append(float(trace.sent[peak + 1 : after].mean()))
    between = trace.in_flight[settled]
    return {
        "probes_per_10s": len(found) / (trace.end_s - _SETTLED_S) * 10,
        "probe_rtts": longest if found else None,
        "down_gain": float(np.mean(gains)) if gains else None,
        "cruise_bdp": float(np.median(between)),
    }


def _probe_rtt(trace: Trace) -> Observation:
    """Observe the dip of what is in flight that measures the smallest RTT."""
    low = trace.in_flight < _LOW
    spells = [
        one
        for one in trace.spells(low & (trace.t_s > _EARLIEST_PROBE_S))
        if one[1] < trace.t_s.size
    ]
    if not spells:
        return {
            "dip_bdp": float(trace.in_flight[trace.t_s > _EARLIEST_PROBE_S].min()),
            "dip_s": None,
            "resumed_bdp": None,
        }
    first, after = max(spells, key=lambda one: one[1] - one[0])
    resumed = slice(after + 5, after + 15)
    return {
        "dip_bdp": float(trace.in_flight[first:after].min()),
        "dip_s": float(trace.t_s[after] - trace.t_s[first]),
        "resumed_bdp": float(trace.in_flight[resumed].mean()),
    }


def _idle(trace: Trace) -> Observation:
    """Observe the rate in the first second after each pause: the smallest of 100 ms."""
    sent = _averaged(trace.sent, 5)
    idle = trace.spells(trace.sent == 0.0)
    lasting = [after for first, after in idle if (after - first) * trace.sample_s > _PAUSE_S]
    begin, end = round(3 * trace.rtt_s / trace.sample_s), round(1.0 / trace.sample_s)
    rates = [
        float(sent[after + begin : after + end].min())
        for after in lasting
        if after + end < trace.t_s.size
    ]
    return {"restart_share": min(rates) if rates else None}


def _use(low_s: float, high_s: float) -> Observe:
    """Observe how much of the capacity is used, and the window."""

    def observe(trace: Trace) -> Observation:
        chosen = trace.during(low_s, high_s)
        return {
            "delivered_share": float(trace.delivered[chosen].mean()),
            "cwnd_bdp": float(trace.cwnd[chosen].max()),
            "cwnd_packets_min": float(trace.cwnd_packets[chosen].min()),
        }

    return observe


CHANGE_S = 10.0
# Shorter than the pauses of a case, longer than all others.
_PAUSE_S = 3.0


def _averaged(values: Numbers, samples: int) -> Numbers:
    return np.convolve(values, np.ones(samples) / samples, mode="same")


def _reached(share: float) -> Observe:
    """Observe when the goodput of half a second reaches a share of the rate before the change."""

    def observe(trace: Trace) -> Observation:
        reached = trace.first(_averaged(trace.delivered, 25) >= share, CHANGE_S)
        # The flow starts up to 200 ms after the run, to which the change is relative.
        return {"adapted_s": (trace.end_s if reached is None else reached) - CHANGE_S}

    return observe


def _lowered(share: float) -> Observe:
    """Observe when half a second last sends more than a share of the rate before the change."""

    def observe(trace: Trace) -> Observation:
        above = np.flatnonzero((_averaged(trace.sent, 25) > share) & (trace.t_s > CHANGE_S))
        return {"adapted_s": float(trace.t_s[above[-1]]) - CHANGE_S if above.size else 0.0}

    return observe


def _slow_startup(trace: Trace) -> Observation:
    """Observe a dip of what is in flight while the rate still grows, and the rate at the end."""
    half = trace.first(2 * trace.delivered > 1.0) or trace.end_s
    early = trace.during(4.0, half)
    flight = trace.in_flight[early]
    before = np.maximum.accumulate(flight) if flight.size else flight
    ratio = flight[before > 0.0] / before[before > 0.0]
    return {
        "dip_share": float(ratio.min()) if ratio.size else 1.0,
        "delivered_share": float(trace.delivered[trace.during(25.0, 40.0)].mean()),
    }


def _losses(trace: Trace) -> Observation:
    """Observe whether less than a BDP is in flight soon after each spell of drops."""
    samples = round(10 * trace.rtt_s / trace.sample_s)
    answered = [
        float(trace.in_flight[after : after + samples].min()) <= _WITHIN
        for _, after in trace.spells((trace.dropped > 0) & (trace.t_s > _SETTLED_S))
        if after + samples < trace.t_s.size
    ]
    return {"answered_share": float(np.mean(answered)) if answered else None}


def _case(
    tested: ControlUnderTest,
    form: Form,
    name: str,
    path: Path,
    observe: Observe,
    **others: Any,
) -> list[ControlCase]:
    bottleneck, measures = path.links()["down"], _measures(path, observe)
    return [single(tested, form, name, bottleneck, measures, rtt_ms=path.rtt_ms, **others)]


def _bulk(path: Path, observe: Observe, **others: Any) -> Build:
    def build(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
        return _case(tested, form, _named(path), path, observe, **others)

    return build


def _named(path: Path) -> str:
    rate_text = f"{path.rate_mbit:g} Mbit/s, RTT {path.rtt_ms:g} ms"
    if "trace" in path.wire:
        return f"{rate_text}, bursts of 20 ms"
    return f"{rate_text}, buffer {formatting.counted(path.buffer, 'packet')}"


def _pauses(tested: ControlUnderTest, form: Form) -> list[ControlCase]:
    requests = Request(name=FLOW, **ROUTE, bytes="4mb", think="6s")
    return _case(tested, form, "pauses of 6 s", DEEP, _idle, flow=requests, measured_s=30.0)


def _changed(first: float, then: float, buffer: int) -> Path:
    changes = [{"at": seconds(CHANGE_S), "rate": rate(then)}]
    return Path(rate_mbit=first, packets=buffer, wire={"changes": changes})


# The frames of 1514 B that leave every 20 ms: 34 opportunities of 1504 B.
BURSTS = Path(buffer_bdp=4.0, wire={"trace": {"gaps_ms": "20 0x33"}})
SPIKE = [
    {"at": seconds(CHANGE_S), "delay": "600ms"},
    {"at": seconds(CHANGE_S + 0.3), "delay": "0ms"},
]

BUILDERS: Builders = {
    "A.1": _bulk(DEEP, _startup, measured_s=5.0),
    "A.3": _bulk(DEEP, _drain, measured_s=5.0, sample_ms=10.0),
    "A.5": _bulk(DEEP, _probes, measured_s=60.0),
    "A.8": _bulk(DEEP, _probes, measured_s=60.0),
    "A.10": _bulk(DEEP, _probe_rtt, measured_s=12.0),
    "A.11": _pauses,
    "A.12": _bulk(BURSTS, _use(1.0, 3.0), measured_s=4.0),
    "A.13": _bulk(BURSTS, _use(6.0, 20.0)),
    "A.14": _bulk(Path(rate_mbit=0.2, rtt_ms=10.0, packets=20), _use(5.0, 20.0)),
    "A.15": _bulk(_changed(10.0, 100.0, 333), _reached(9.0)),
    "A.16": _bulk(_changed(100.0, 10.0, 333), _lowered(0.13), measured_s=30.0),
    "A.17": _bulk(
        Path(packets=1, wire={"burst": "64kb", "bucket": "tbf"}), _use(10.0, 30.0), measured_s=30.0
    ),
    "A.18": _bulk(
        Path(
            buffer_bdp=4.0,
            wire={"delay": "20ms", "jitter": {"spread": "10ms", "order": "free"}},
        ),
        _use(5.0, 20.0),
    ),
    "A.19": _bulk(Path(buffer_bdp=4.0, wire={"changes": SPIKE}), _reached(0.9)),
    "A.20": _bulk(Path(rtt_ms=1000.0), _slow_startup, measured_s=40.0),
    "A.21": _bulk(Path(buffer_bdp=0.25), _losses),
}
