//! The options of CAKE, with the keywords of `tc`.

use sojourn_net::{Bytes, Duration, Rate};

use crate::parameters::{Shorthand, choice, parameters};
use crate::parts::framing::Framing;

choice! {
    /// How packets are classified by DSCP: the number of tins and their meaning.
    Diffserv {
        /// Bulk, best effort and voice.
        Diffserv3 = "diffserv3",
        /// Bulk, best effort, video and voice.
        Diffserv4 = "diffserv4",
        /// Eight, by the recommendations of RFC 4594.
        Diffserv8 = "diffserv8",
        /// Eight, by the first three bits.
        Precedence = "precedence",
        /// One for all.
        Besteffort = "besteffort",
    }
}

choice! {
    /// Between whom capacity is shared.
    FlowMode {
        /// Flows of fair shares for hosts of either side.
        TripleIsolate = "triple-isolate",
        /// Flows of fair shares for the hosts that send.
        DualSrchost = "dual-srchost",
        /// Flows of fair shares for the hosts that receive.
        DualDsthost = "dual-dsthost",
        /// Flows.
        Flows = "flows",
        /// Pairs of hosts.
        Hosts = "hosts",
        /// Hosts that send.
        Srchost = "srchost",
        /// Hosts that receive.
        Dsthost = "dsthost",
        /// Nobody: one queue.
        Flowblind = "flowblind",
    }
}

choice! {
    /// Whether acknowledgements that say no more than a later one are dropped.
    AckFilter {
        /// No.
        Off = "no-ack-filter",
        /// Yes, but two always remain.
        On = "ack-filter",
        /// Yes, even the last before another.
        Aggressive = "ack-filter-aggressive",
    }
}

impl FlowMode {
    /// Whether the flows of a sending host share what is the host's.
    pub(super) const fn isolates_sources(self) -> bool {
        matches!(self, Self::TripleIsolate | Self::DualSrchost)
    }

    /// Whether the flows of a receiving host share what is the host's.
    pub(super) const fn isolates_destinations(self) -> bool {
        matches!(self, Self::TripleIsolate | Self::DualDsthost)
    }
}

/// The presets of `tc` apart from link layers.
pub(super) const SHORTHANDS: &[Shorthand] = &[
    ("unlimited", &[("bandwidth", "")]),
    ("datacentre", &[("rtt", "100us")]),
    ("lan", &[("rtt", "1ms")]),
    ("metro", &[("rtt", "10ms")]),
    ("regional", &[("rtt", "30ms")]),
    ("internet", &[("rtt", "100ms")]),
    ("oceanic", &[("rtt", "300ms")]),
    ("satellite", &[("rtt", "1s")]),
    ("interplanetary", &[("rtt", "1000s")]),
    ("raw", &[("framing", "noatm"), ("overhead", "")]),
    ("egress", &[("ingress", "off")]),
    // No packet here is a batch of segments.
    ("split-gso", &[]),
    ("no-split-gso", &[]),
];

/// The longest time that `tc` can pass on: microseconds in 32 bits.
const LONGEST_IN_TC: u64 = 4_294_967_295_000;

parameters! {
    /// Parameters of [`Cake`](super::Cake).
    #[derive(Clone, Debug, PartialEq)]
    pub struct CakeParams {
        /// Rate of the shaper.
        pub bandwidth: Option<Rate> = None => rate().unset("unlimited"),
            "net/sched/sch_cake.c: cake_sched_data.rate_bps";
        /// How packets are sorted into tins by DSCP.
        pub diffserv: Diffserv = Diffserv::Diffserv3 => choice(Diffserv::WORDS),
            "net/sched/sch_cake.c: cake_init, CAKE_DIFFSERV_DIFFSERV3";
        /// Flows or hosts among which capacity is shared.
        pub flowmode: FlowMode = FlowMode::TripleIsolate => choice(FlowMode::WORDS),
            "net/sched/sch_cake.c: cake_init, CAKE_FLOW_TRIPLE";
        /// Accepted without effect: the simulation does not translate addresses.
        pub nat: bool = false => flag(),
            "net/sched/sch_cake.c: CAKE_FLOW_NAT_FLAG";
        /// Clear the DSCP of packets.
        pub wash: bool = false => flag(),
            "net/sched/sch_cake.c: CAKE_FLAG_WASH";
        /// Drop TCP ACKs that a later ACK makes redundant.
        pub ack_filter: AckFilter = AckFilter::Off => choice(AckFilter::WORDS),
            "include/uapi/linux/pkt_sched.h: CAKE_ACK_NONE";
        /// Round-trip time that COBALT is tuned for.
        pub rtt: Duration = Duration::from_millis(100) => time(1_000, LONGEST_IN_TC),
            "net/sched/sch_cake.c: cake_sched_data.interval";
        /// Framing of the link layer.
        pub framing: Framing = Framing::Bytes => choice(Framing::WORDS),
            "include/uapi/linux/pkt_sched.h: CAKE_ATM_NONE";
        /// Bytes that the link adds to an IP packet.
        pub overhead: Option<Bytes> = None => size(0, 256).unset("raw"),
            "net/sched/sch_cake.c: cake_sched_data.rate_overhead";
        /// Minimum size that a packet is accounted as.
        pub mpu: Bytes = Bytes(0) => size(0, 256),
            "net/sched/sch_cake.c: cake_sched_data.rate_mpu";
        /// Maximum number of bytes in the buffer.
        pub memlimit: Option<Bytes> = None
            => size(1, 1 << 32).unset("max(4 MiB, 4 * bandwidth * rtt), at most 10240 MTU; 10240 MTU if unlimited"),
            "net/sched/sch_cake.c: cake_reconfigure, buffer_limit";
        /// Count dropped packets as sent, for shaping downstream of a bottleneck.
        pub ingress: bool = false => flag(),
            "net/sched/sch_cake.c: CAKE_FLAG_INGRESS";
    }
}
