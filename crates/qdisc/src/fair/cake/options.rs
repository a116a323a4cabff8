//! What may be chosen of CAKE, in the words of `tc`.

use sojourn_net::{Bytes, Duration, Rate, Rng};

use super::Cake;
use crate::link::LinkFacts;
use crate::parameters::choice::choice;
use crate::parameters::{Field, Params, Shorthand};
use crate::parts::framing::Framing;
use sojourn_net::Packet;

choice! {
    /// How packets are told apart by class: into how many tins, and which.
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

/// The presets of `tc`.
pub(crate) const SHORTHANDS: &[Shorthand] = &[
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
    ("conservative", &[("framing", "atm"), ("overhead", "48")]),
    ("ipoa-vcmux", &[("framing", "atm"), ("overhead", "8")]),
    ("ipoa-llcsnap", &[("framing", "atm"), ("overhead", "16")]),
    ("bridged-vcmux", &[("framing", "atm"), ("overhead", "24")]),
    ("bridged-llcsnap", &[("framing", "atm"), ("overhead", "32")]),
    ("pppoa-vcmux", &[("framing", "atm"), ("overhead", "10")]),
    ("pppoa-llc", &[("framing", "atm"), ("overhead", "14")]),
    ("pppoe-vcmux", &[("framing", "atm"), ("overhead", "32")]),
    ("pppoe-llcsnap", &[("framing", "atm"), ("overhead", "40")]),
    ("pppoe-ptm", &[("framing", "ptm"), ("overhead", "30")]),
    ("bridged-ptm", &[("framing", "ptm"), ("overhead", "22")]),
    (
        "ethernet",
        &[("framing", "noatm"), ("overhead", "38"), ("mpu", "84")],
    ),
    (
        "docsis",
        &[("framing", "noatm"), ("overhead", "18"), ("mpu", "64")],
    ),
    ("egress", &[("ingress", "off")]),
    // No packet here is a batch of segments.
    ("split-gso", &[]),
    ("no-split-gso", &[]),
];

/// Parameters of [`Cake`].
#[derive(Clone, Debug, PartialEq)]
pub struct CakeParams {
    /// Rate of the shaper; `None`: the link's own pace.
    pub bandwidth: Option<Rate>,
    /// The tins.
    pub diffserv: Diffserv,
    /// Between whom capacity is shared.
    pub flowmode: FlowMode,
    /// See through address translation; every flow here bears its own addresses already.
    pub nat: bool,
    /// Clear the class of packets.
    pub wash: bool,
    /// Drop acknowledgements.
    pub ack_filter: AckFilter,
    /// The round-trip time that the law is tuned for.
    pub rtt: Duration,
    /// How the link packs bytes.
    pub framing: Framing,
    /// What the link adds to an IP packet; `None`: packets count as they are.
    pub overhead: Option<Bytes>,
    /// What the smallest packet counts.
    pub mpu: Bytes,
    /// Bytes the buffer holds.
    pub memlimit: Option<Bytes>,
    /// Shape what arrives at the far end of a bottleneck: drops count as sent.
    pub ingress: bool,
}

impl Default for CakeParams {
    /// Those of `tc`.
    fn default() -> Self {
        Self {
            bandwidth: None,
            diffserv: Diffserv::default(),
            flowmode: FlowMode::default(),
            nat: false,
            wash: false,
            ack_filter: AckFilter::default(),
            rtt: Duration::from_millis(100),
            framing: Framing::default(),
            overhead: None,
            mpu: Bytes(0),
            memlimit: None,
            ingress: false,
        }
    }
}

impl Params for CakeParams {
    type Queue<P: Packet> = Cake<P>;

    fn kind(&self) -> &'static str {
        "cake"
    }

    fn field(&mut self, key: &str) -> Option<Field<'_>> {
        Some(match key {
            "bandwidth" => Field::OptionalRate(&mut self.bandwidth),
            "diffserv" => Field::Choice(&mut self.diffserv),
            "flowmode" => Field::Choice(&mut self.flowmode),
            "nat" => Field::Flag(&mut self.nat),
            "wash" => Field::Flag(&mut self.wash),
            "ack_filter" => Field::Choice(&mut self.ack_filter),
            "rtt" => Field::Time(&mut self.rtt),
            "framing" => Field::Choice(&mut self.framing),
            "overhead" => Field::OptionalSize(&mut self.overhead),
            "mpu" => Field::Size(&mut self.mpu),
            "memlimit" => Field::OptionalSize(&mut self.memlimit),
            "ingress" => Field::Flag(&mut self.ingress),
            _ => return None,
        })
    }

    fn shorthands(&self) -> &'static [Shorthand] {
        SHORTHANDS
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Cake<P> {
        Cake::new(self, link.mtu, rng)
    }
}
