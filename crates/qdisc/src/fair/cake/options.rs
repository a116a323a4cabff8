//! The options of CAKE, with the keywords of `tc`.

use sojourn_net::{Bytes, Dscp, Duration, Rate};

use crate::contract::ClassId;
use crate::parameters::{Shorthand, TcWord, choice, parameters};
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
    ("ether-vlan", &[("overhead", "+4")]),
    // No packet here is a batch of segments.
    ("split-gso", &[]),
];

/// Whether a word is a preset of the RTT.
pub(super) fn is_rtt_preset(word: &str) -> bool {
    let mut presets = SHORTHANDS.iter().filter(|(name, _)| *name == word);
    presets.any(|(_, settings)| settings.iter().any(|(key, _)| *key == "rtt"))
}

/// Words of `tc`, of its patches and of its output.
pub(super) const WORDS: &[(&str, TcWord)] = &[
    ("diffserv", TcWord::Means("diffserv4")),
    (
        "no-split-gso",
        TcWord::WithoutEffect(0, "no packet here is a batch of segments"),
    ),
    ("via-ethernet", TcWord::WithoutEffect(0, "tc ignores it")),
    (
        "no-sce",
        TcWord::WithoutEffect(0, "the model never signals SCE"),
    ),
    (
        "fwmark",
        TcWord::WithoutEffect(1, "packets here have no firewall mark"),
    ),
    (
        "autorate-ingress",
        TcWord::NotModelled("it changes the rate of the shaper; give the bandwidth"),
    ),
    (
        "sce",
        TcWord::NotModelled("signals of SCE are not part of Linux"),
    ),
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
        /// Bytes that the link adds to an IP packet; raw: the Ethernet frame counts, with its header of 14 bytes.
        pub overhead: Option<i16> = None => signed_size(64, 256).unset("raw"),
            "net/sched/sch_cake.c: cake_sched_data.rate_overhead";
        /// Minimum size that a packet is accounted as.
        pub mpu: Bytes = Bytes(0) => size(0, 256),
            "net/sched/sch_cake.c: cake_sched_data.rate_mpu";
        /// Maximum kernel memory of the buffer.
        pub memlimit: Option<Bytes> = None
            => size(1, 1 << 32).unset("max(4 MiB, 4 * bandwidth * rtt), at most 10240 MTU; 10240 MTU if unlimited"),
            "net/sched/sch_cake.c: cake_reconfigure, buffer_limit";
        /// Count dropped packets as sent, for shaping downstream of a bottleneck.
        pub ingress: bool = false => flag(),
            "net/sched/sch_cake.c: CAKE_FLAG_INGRESS";
    }
}

/// How packets spread over tins.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    /// The tin of each code point.
    pub(super) tins: [u8; 64],
    /// What each tin may use before the others come first, in bytes a second, and its weight where
    /// there is no shaper.
    pub(super) shares: Vec<(u64, i64)>,
    /// The order in which they are shown: the least wanted first.
    pub(super) order: &'static [usize],
    /// What reports call each tin.
    ids: Vec<ClassId>,
}

impl Classes {
    /// Those of `mode` at a rate in bytes per second; 0 is unlimited.
    pub(super) fn of(mode: Diffserv, rate: u64) -> Self {
        let shifted = |shifts: &[(u32, u32)]| -> Vec<(u64, i64)> {
            let share =
                |&(rate_shift, quantum_shift)| (rate >> rate_shift, 1_024_i64 >> quantum_shift);
            shifts.iter().map(share).collect()
        };
        let (tins, shares, order): ([u8; 64], _, &[usize]) = match mode {
            Diffserv::Besteffort => ([0; 64], vec![(rate, 65_535)], &[0]),
            Diffserv::Diffserv3 => (
                table(0, &[(1, &[LE, CS1]), (2, &[TOS4, VA, EF, CS6, CS7])]),
                shifted(&[(0, 0), (4, 4), (2, 2)]),
                &[1, 0, 2],
            ),
            Diffserv::Diffserv4 => (
                table(
                    0,
                    &[
                        (1, &[LE, CS1]),
                        (2, &[TOS4, CS2, 18, 20, 22, CS3, 26, 28, 30, 34, 36, 38]),
                        (3, &[CS4, CS5, VA, EF, CS6, CS7]),
                    ],
                ),
                shifted(&[(0, 0), (4, 4), (1, 1), (2, 2)]),
                &[1, 0, 2, 3],
            ),
            Diffserv::Diffserv8 => (
                table(
                    2,
                    &[
                        (0, &[LE]),
                        (1, &[CS1, 10, 12, 14, TOS2]),
                        (3, &[CS3, 26, 28, 30, 34, 36, 38]),
                        (4, &[TOS4, 18, 20, 22]),
                        (5, &[CS2]),
                        (6, &[CS4, CS5, VA, EF]),
                        (7, &[CS6, CS7]),
                    ],
                ),
                sevenths(rate),
                &[0, 1, 2, 3, 4, 5, 6, 7],
            ),
            Diffserv::Precedence => (
                std::array::from_fn(|n| u8::try_from(n / 8).unwrap_or_default()),
                sevenths(rate),
                &[0, 1, 2, 3, 4, 5, 6, 7],
            ),
        };
        let id = |tin| {
            let place = order.iter().position(|&at| at == tin);
            ClassId::numbered("tin", place.unwrap_or(tin))
        };
        Self {
            ids: (0..order.len()).map(id).collect(),
            tins,
            shares,
            order,
        }
    }

    /// What reports call a tin: its place in the order in which statistics show them.
    #[inline]
    pub(super) fn id(&self, tin: usize) -> ClassId {
        self.ids[tin]
    }

    #[inline]
    pub(super) fn tin(&self, dscp: Dscp) -> usize {
        usize::from(self.tins[usize::from(dscp.number())])
    }
}

const LE: usize = 1;
const TOS2: usize = 2;
const TOS4: usize = 4;
const CS1: usize = 8;
const CS2: usize = 16;
const CS3: usize = 24;
const CS4: usize = 32;
const CS5: usize = 40;
const VA: usize = 44;
const EF: usize = 46;
const CS6: usize = 48;
const CS7: usize = 56;

/// The code points of each tin; the rest go to `rest`.
fn table(rest: u8, tins: &[(u8, &[usize])]) -> [u8; 64] {
    let mut table = [rest; 64];
    for &(tin, points) in tins {
        for &point in points {
            table[point] = tin;
        }
    }
    table
}

/// Eight tins, each with seven eighths of the one before.
fn sevenths(rate: u64) -> Vec<(u64, i64)> {
    let next = |&(rate, quantum): &(u64, i64)| {
        let rate = u128::from(rate) * 7 / 8;
        Some((u64::try_from(rate).unwrap_or(u64::MAX), quantum * 7 / 8))
    };
    std::iter::successors(Some((rate, 256)), next)
        .take(8)
        .collect()
}
