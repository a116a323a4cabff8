"""The catalogue of metrics: name, label, unit and definition of each, declared once.

Tables, reports, JSON and the tables of ``docs/metrics.md`` follow from it. The columns of a run
depend on the scenario, so their declarations have a placeholder for the direction or the link.
"""

from dataclasses import replace

from sojourn.result.group_metrics import APPLICATION, CLASS, GROUP
from sojourn.result.metric import Kind, Metric

_RUN = (
    Metric(
        column="goodput_{direction}_mbit_per_s",
        label="goodput {direction}",
        unit="Mbit/s",
        digits=2,
        description="Sum of `goodput_mbit_per_s` over the TCP, QUIC and UDP flows of the "
        "direction.",
        role="headline",
    ),
    Metric(
        column="induced_latency_ms",
        label="induced latency",
        unit="ms",
        digits=1,
        description="Increase in ping time under load: flent's `mean_span`.",
        role="headline",
    ),
    Metric(
        column="latency_above_base_ms",
        label="latency above base",
        unit="ms",
        digits=1,
        description="Mean RTT of the pings sent at or after *W*, minus the smallest ping RTT of "
        "the whole run, averaged over the ping flows. Lost pings are excluded.",
    ),
    Metric(
        column="ping_ms_p95",
        label="ping p95",
        unit="ms",
        digits=1,
        description="95th percentile of the RTTs of the pings sent at or after *W*, over all ping "
        "flows, by linear interpolation.",
    ),
    Metric(
        column="ping_ms_p99",
        label="ping p99",
        unit="ms",
        digits=1,
        description="99th percentile of the RTTs of the pings sent at or after *W*, over all ping "
        "flows, by linear interpolation.",
    ),
    Metric(
        column="sojourn_{link}_ms_p95",
        label="sojourn {link} p95",
        unit="ms",
        digits=1,
        description="95th percentile of the sojourn times of the packets that left the queue of "
        "the link after *W*, from the histogram in the table `sojourn`.",
    ),
    Metric(
        column="driver_{link}_ms_p95",
        label="driver and air {link} p95",
        unit="ms",
        digits=1,
        description="Wireless links: 95th percentile of the time in the driver and on the air, "
        "over the packets that left the queue after *W*.",
    ),
    Metric(
        column="drops",
        label="drops",
        unit="",
        digits=0,
        description="Packets dropped at all links after *W*, by the AQM or at a full buffer.",
    ),
    Metric(
        column="marks",
        label="marks",
        unit="",
        digits=0,
        description="Packets CE-marked at all links after *W*.",
    ),
    Metric(
        column="jain_{direction}",
        label="Jain {direction}",
        unit="",
        digits=3,
        description="Jain's index (Σ*x*)² / (*n* Σ*x*²) over the goodputs *x* of the *n* TCP and "
        "QUIC flows of the direction, excluding finite transfers if any flow is endless; only for "
        "*n* > 1.",
        role="compared",
    ),
)

_STUDY = (
    Metric(
        column="throughput_{link}_mbit_per_s",
        label="throughput {link}",
        unit="Mbit/s",
        digits=2,
        description="8 · IP bytes that the link sent after *W* / (*D* − *W*). The IP bytes are "
        "`sent_bytes` minus 14 B per packet.",
    ),
    Metric(
        column="ack_rtt_{direction}_ms",
        label="RTT {direction}",
        unit="ms",
        digits=1,
        description="Mean of `ack_rtt_ms_mean` in `flows` over the TCP and QUIC flows of the "
        "direction. Each in-order acknowledgement after *W* of data that was sent only once gives "
        "a sample: the time since the newest of that data was sent.",
    ),
    Metric(
        column="goodput_mbit_per_s",
        label="goodput",
        unit="Mbit/s",
        digits=2,
        description="Sum of `goodput_mbit_per_s` in `flows` over the TCP, QUIC and UDP flows. "
        "Finite transfers count with 8 · `delivered_bytes` / (*D* − *W*).",
    ),
    Metric(
        column="jain",
        label="Jain",
        unit="",
        digits=3,
        description="Jain's index over the goodputs of all TCP, QUIC and UDP flows.",
    ),
    Metric(
        column="sojourn_ms_mean",
        label="sojourn mean",
        unit="ms",
        digits=3,
        description="Mean sojourn time at the link with the longest mean sojourn time.",
    ),
    Metric(
        column="sojourn_ms_max",
        label="sojourn max",
        unit="ms",
        digits=1,
        description="Longest sojourn time at the link with the longest mean sojourn time.",
    ),
    *(
        Metric(
            column=f"sojourn_{{link}}_ms_{name}",
            label=f"sojourn {{link}} {name}",
            unit="ms",
            digits=2,
            description=f"{text} of the sojourn times of the packets that left the queue of the "
            "link after *W*.",
        )
        for name, text in (
            ("mean", "Mean"),
            ("p50", "Median"),
            ("p99", "99th percentile"),
            ("max", "Maximum"),
        )
    ),
    Metric(
        column="utilisation_{link}",
        label="utilisation {link}",
        unit="",
        digits=3,
        description="`utilisation` of the link in `links`.",
    ),
    Metric(
        column="loss_{link}_percent",
        label="loss {link}",
        unit="%",
        digits=2,
        description="Share of the packets that arrived at the queue of the link after *W* and were "
        "dropped there: drops / (drops + `sent_packets`).",
    ),
    Metric(
        column="ack_rtt_rise_ms_best",
        label="smallest RTT rise",
        unit="ms",
        digits=1,
        description="Over the TCP and QUIC flows, smallest difference between `ack_rtt_ms_max` and "
        "`base_rtt_ms` in `flows`.",
    ),
    Metric(
        column="ack_rtt_rise_ms_worst",
        label="largest RTT rise",
        unit="ms",
        digits=1,
        description="Over the TCP and QUIC flows, largest difference between `ack_rtt_ms_max` and "
        "`base_rtt_ms` in `flows`.",
    ),
)

_STUDY_GROUP = (
    Metric(
        column="goodput_mbit_per_s",
        label="goodput",
        unit="Mbit/s",
        digits=2,
        description="Sum over the flows of the group, as for runs.",
    ),
    Metric(
        column="share_percent",
        label="share",
        unit="%",
        digits=1,
        description="Share of the group in the goodput of all TCP, QUIC and UDP flows.",
    ),
)

_DECLARED: dict[Kind, tuple[Metric, ...]] = {
    "run": _RUN,
    "study": _STUDY,
    "study_group": _STUDY_GROUP,
    "group": GROUP,
    "class": CLASS,
    "application": APPLICATION,
}
METRICS = tuple(
    replace(metric, kind=kind) for kind, metrics in _DECLARED.items() for metric in metrics
)


def of_kind(kind: Kind) -> tuple[Metric, ...]:
    """List the declarations of one kind, in the order of their columns."""
    return tuple(metric for metric in METRICS if metric.kind == kind)


def shown(kind: Kind) -> tuple[Metric, ...]:
    """List the metrics of one kind that tables show."""
    return tuple(metric for metric in of_kind(kind) if metric.shown)
