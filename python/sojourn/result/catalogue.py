"""The catalogue of metrics: name, label, unit and definition of each, declared once.

Tables, reports, JSON and the tables of ``docs/metrics.md`` follow from it. The columns of a run
depend on the scenario, so their declarations have a placeholder for the direction or the link.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

# What a row of a table of metrics is about.
By = Literal["run", "group", "class", "application"]
BY: tuple[By, ...] = get_args(By)
Kind = Literal["run", "study", "study_group", "group", "class", "application"]
Role = Literal["headline", "compared", "detail", "minor"]
# The most important first.
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of a run, of a group of flows or of a group of applications."""

    column: str
    label: str
    unit: str
    digits: int
    kind: Kind = "run"
    description: str = ""
    shown: bool = True
    role: Role = "detail"

    @property
    def rank(self) -> int:
        """Place of the role in the order of importance, from 0."""
        return ROLES.index(self.role)

    @property
    def heading(self) -> str:
        """Label and unit, for the heading of a column."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    def named(self, column: str) -> "Metric | None":
        """Return the metric of `column`, if this declaration describes it."""
        if column == self.column:
            return self
        before, brace, rest = self.column.partition("{")
        placeholder, _, after = rest.partition("}")
        fits = len(column) > len(before) + len(after)
        if not (brace and fits and column.startswith(before) and column.endswith(after)):
            return None
        name = column[len(before) : len(column) - len(after)]
        return replace(self, column=column, label=self.label.replace(f"{{{placeholder}}}", name))


_GROUP = (
    Metric(
        column="flows",
        label="flows",
        unit="",
        digits=0,
        description="Number of flows that the row covers.",
        shown=False,
    ),
    Metric(
        column="goodput_mbit_per_s_mean",
        label="goodput",
        unit="Mbit/s",
        digits=2,
        description="Mean goodput of the endless TCP and QUIC flows and of the UDP flows.",
        role="compared",
    ),
    Metric(
        column="data_share_percent",
        label="share of data",
        unit="%",
        digits=1,
        description="Share of the group in the payload delivered after *W* to all receivers of its "
        "direction, applications included.",
    ),
    Metric(
        column="capacity_share_percent",
        label="share of capacity",
        unit="%",
        digits=1,
        description="Payload that the group delivered after *W*, relative to what its bottleneck "
        "could carry: 8 · payload / (`capacity_mbit_per_s` of the link · (*D* − *W*)). The "
        "bottleneck is the link in the column `bottleneck` of `flows`. Headers, acknowledgements "
        "and retransmissions use the rest of a link that is always busy.",
    ),
    Metric(
        column="rtt_inflation_ms_mean",
        label="RTT inflation",
        unit="ms",
        digits=1,
        description="Endless TCP and QUIC flows: mean of `ack_rtt_ms_mean` minus `base_rtt_ms` of "
        "the flow in `flows`: queueing and transmission at all links of the path.",
        role="compared",
    ),
    Metric(
        column="retransmit_percent",
        label="retransmissions",
        unit="%",
        digits=2,
        description="TCP, QUIC: retransmitted packets per data packet sent.",
    ),
    Metric(
        column="jain",
        label="Jain",
        unit="",
        digits=3,
        description="Jain's index over the goodputs of the endless TCP and QUIC flows; only for "
        "more than one.",
        role="compared",
    ),
    Metric(
        column="loss_percent",
        label="loss",
        unit="%",
        digits=2,
        description="UDP: of the datagrams sent after *W* that arrived or were dropped by the end "
        "of the run, the share that was dropped; duplicates count once.",
    ),
    Metric(
        column="initial_loss_percent",
        label="connections with initial loss",
        unit="%",
        digits=2,
        description="Share of connections that lost a handshake packet or a segment of the "
        "initial window, original or retransmitted; QUIC: a handshake packet or one of the first "
        "`initial_window` packets with data.",
        role="minor",
    ),
    Metric(
        column="handshake_loss_percent",
        label="connections with handshake loss",
        unit="%",
        digits=2,
        description="TCP: share of connections that lost a SYN or SYN-ACK; QUIC: an Initial or "
        "Handshake packet.",
        role="minor",
    ),
    Metric(
        column="handshake_s_mean",
        label="handshake",
        unit="s",
        digits=3,
        description="Mean time from the first SYN or Initial until the connection was established, "
        "over established connections; a lost packet adds a timeout.",
        role="minor",
    ),
    Metric(
        column="fct_s_mean",
        label="completion",
        unit="s",
        digits=3,
        description="Mean completion time of the transfers completed within the run, from the "
        "first SYN or Initial to the last byte.",
        role="compared",
    ),
    Metric(
        column="fct_s_p95",
        label="completion p95",
        unit="s",
        digits=3,
        description="95th percentile of the completion times of the transfers completed within the "
        "run.",
    ),
    Metric(
        column="fct_hit_s_mean",
        label="completion after initial loss",
        unit="s",
        digits=2,
        description="Mean completion time of the transfers counted by `initial_loss_percent`.",
    ),
)

_CLASS = (
    Metric(
        column="sent_mbit_per_s",
        label="sent",
        unit="Mbit/s",
        digits=2,
        description="8 · bytes that the class sent after *W* / (*D* − *W*).",
    ),
    Metric(
        column="sojourn_ms_mean",
        label="sojourn mean",
        unit="ms",
        digits=2,
        description="Mean sojourn time of the packets that left the class after *W*.",
        role="compared",
    ),
    Metric(
        column="sojourn_ms_p95",
        label="sojourn p95",
        unit="ms",
        digits=2,
        description="95th percentile of these sojourn times.",
        role="minor",
    ),
    Metric(
        column="sojourn_ms_p99",
        label="sojourn p99",
        unit="ms",
        digits=2,
        description="99th percentile of these sojourn times.",
        role="minor",
    ),
    Metric(
        column="drops",
        label="drops",
        unit="",
        digits=0,
        description="Packets of the class dropped after *W*, by the AQM or at a full buffer.",
    ),
    Metric(
        column="marks",
        label="marks",
        unit="",
        digits=0,
        description="Packets of the class CE-marked after *W*.",
    ),
)

_APPLICATION = (
    Metric(
        column="transactions",
        label="transactions",
        unit="",
        digits=0,
        description="Number of transactions that began at or after *W*; null for `voip` and "
        "`responsiveness`.",
    ),
    Metric(
        column="begun_before",
        label="in progress at end of warm-up",
        unit="",
        digits=1,
        description="Number of transactions that began before *W* and had not completed by then; "
        "null if there were none. They are excluded from the other columns. If they last until "
        "the end of the run, `transactions` is 0, which triggers a validity warning.",
    ),
    Metric(
        column="cut_off",
        label="cut off by the end",
        unit="",
        digits=1,
        description="Number of transactions that began at or after *W* and were still in progress "
        "at the end of the run. They have no duration.",
    ),
    Metric(
        column="completed_percent",
        label="completed",
        unit="%",
        digits=1,
        description="Share of the transactions that were completed within the run; the others are "
        "counted by `cut_off`.",
        shown=False,
    ),
    Metric(
        column="duration_s_mean",
        label="duration",
        unit="s",
        digits=3,
        description="Mean duration of the completed transactions. For `web`, the page load time: "
        "from the start of the visit to the last byte of the last object, including connection "
        "setup and TLS.",
        role="compared",
    ),
    Metric(
        column="duration_s_p50",
        label="duration p50",
        unit="s",
        digits=3,
        description="Median duration of the completed transactions.",
        shown=False,
    ),
    Metric(
        column="duration_s_p95",
        label="duration p95",
        unit="s",
        digits=3,
        description="95th percentile of the duration of the completed transactions.",
    ),
    Metric(
        column="connections",
        label="connections",
        unit="",
        digits=0,
        description="Number of connections opened in the whole run.",
        shown=False,
    ),
    Metric(
        column="handshake_hit_percent",
        label="connections with handshake loss",
        unit="%",
        digits=2,
        description="Share of the connections that lost a handshake packet in either direction.",
        role="minor",
    ),
    Metric(
        column="initial_hit_percent",
        label="connections with initial loss",
        unit="%",
        digits=2,
        description="Share of the connections that lost a handshake packet in either direction "
        "or a segment of the server's initial window, original or retransmitted.",
        role="minor",
    ),
    Metric(
        column="startup_s_mean",
        label="startup",
        unit="s",
        digits=2,
        description="`dash`, mean over players: time from the request for the first segment to the "
        "start of playback. Players that never started playback are excluded.",
        role="compared",
    ),
    Metric(
        column="stalls_mean",
        label="stalls",
        unit="",
        digits=1,
        description="`dash`, mean over players: number of playback interruptions after startup.",
    ),
    Metric(
        column="stalled_s_mean",
        label="stalled",
        unit="s",
        digits=1,
        description="`dash`, mean over players: total duration of the playback interruptions.",
        role="compared",
    ),
    Metric(
        column="bitrate_mbit_per_s_mean",
        label="bit rate",
        unit="Mbit/s",
        digits=2,
        description="`dash`: mean bit rate of the segments fetched.",
        role="compared",
    ),
    Metric(
        column="switches_mean",
        label="switches",
        unit="",
        digits=1,
        description="`dash`, mean over players: number of changes of quality between segments.",
    ),
    Metric(
        column="mos_mean",
        label="MOS",
        unit="",
        digits=2,
        description="`voip`, mean over calls: mean opinion score computed with the E-model "
        "(ITU-T G.107).",
        role="compared",
    ),
    Metric(
        column="mos_min",
        label="MOS min",
        unit="",
        digits=2,
        description="`voip`: lowest MOS of any call.",
        shown=False,
    ),
    Metric(
        column="voice_loss_percent_mean",
        label="voice loss",
        unit="%",
        digits=2,
        description="`voip`: share of the packets that were lost or arrived too late for the "
        "jitter buffer.",
        role="compared",
    ),
    Metric(
        column="loss_interval_packets_mean",
        label="loss interval",
        unit="packets",
        digits=0,
        description="`voip`: packets sent per loss period (RFC 3357), a sequence of consecutive "
        "lost packets.",
    ),
    Metric(
        column="rpm_mean",
        label="responsiveness",
        unit="RPM",
        digits=0,
        description="`responsiveness`, mean over tests: round trips per minute under load.",
        role="compared",
    ),
    Metric(
        column="foreign_rpm_mean",
        label="foreign probes",
        unit="RPM",
        digits=0,
        description="`responsiveness`, mean over tests: round trips per minute of probes on "
        "separate connections.",
    ),
    Metric(
        column="loaded_rpm_mean",
        label="self probes",
        unit="RPM",
        digits=0,
        description="`responsiveness`, mean over tests: round trips per minute of probes on "
        "load-generating connections.",
    ),
)

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
    "group": _GROUP,
    "class": _CLASS,
    "application": _APPLICATION,
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
