"""The metrics of groups of flows, of classes of queues and of groups of applications."""

from sojourn.result.metric import Metric

GROUP = (
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

CLASS = (
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

APPLICATION = (
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
