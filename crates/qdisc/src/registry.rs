//! The list of disciplines: one line registers a discipline.

use sojourn_net::{Bytes, Comparison, Instant, Packet, Rate, Rng};

use crate::aqm::droptail::DropTailParams;
use crate::aqm::red;
use crate::classful::{drr, htb, prio};
use crate::contract::{Backlog, ClassId, Observer, Peek, Qdisc, Statistic};
use crate::fair::fq::FAST_PATH;
use crate::fair::{fq_pie, mac80211, sfb};
use crate::parameters::{
    Entry, FlowCondition, Footprint, Leaf, LeafList, LinkFacts, Parameters, Params, Profile,
    Provenance, Retention, Shorthand, TcWord, Unit, Value,
};

/// Writes the two enumerations of disciplines and what is the same for each of them: the fast path
/// must not go through a virtual call.
macro_rules! disciplines {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $($path:ident)::+ { $params:ident => $queue:ident },
    )*) => {
        /// The queue and the parameters of each discipline.
        pub(crate) mod disciplines {
            $(pub use crate::$($path)::+::{$params, $queue};)*
        }
        use disciplines::*;

        /// One of the disciplines; which one is decided at run time, once.
        #[derive(Clone, Debug)]
        // A separate tag; otherwise it is derived from a field of one of the disciplines.
        #[repr(u8)]
        pub enum AnyQdisc<P> {
            $($(#[doc = $doc])* $name($queue<P>),)*
        }

        /// A discipline and its parameters.
        ///
        /// As text it is what follows `tc qdisc add dev …`, with `profile` as an addition.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QdiscSpec {
            $($(#[doc = $doc])* $name($params),)*
        }

        // With this many arms, and queues inside queues, the compiler would not inline the choice, and
        // a packet would be copied twice.
        impl<P: Packet> Qdisc<P> for AnyQdisc<P> {
            #[inline(always)]
            fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
                match self { $(Self::$name(queue) => queue.enqueue(now, pkt, obs),)* }
            }

            #[inline(always)]
            fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
                match self { $(Self::$name(queue) => queue.dequeue(now, obs),)* }
            }

            fn peek(&self) -> Peek {
                match self { $(Self::$name(queue) => queue.peek(),)* }
            }

            #[inline(always)]
            fn passes_unchanged(&self, pkt: &P) -> bool {
                match self { $(Self::$name(queue) => queue.passes_unchanged(pkt),)* }
            }

            #[inline(always)]
            fn backlog(&self) -> Backlog {
                match self { $(Self::$name(queue) => queue.backlog(),)* }
            }

            #[inline(always)]
            fn next_timer(&self) -> Option<Instant> {
                match self { $(Self::$name(queue) => {
                    let due = queue.next_timer();
                    debug_assert!($queue::<P>::TIMED || due.is_none(), "{} is timed", stringify!($name));
                    due
                })* }
            }

            fn packets_affect_timer(&self) -> bool {
                match self { $(Self::$name(queue) => queue.packets_affect_timer(),)* }
            }

            fn on_timer(&mut self, now: Instant) {
                match self { $(Self::$name(queue) => queue.on_timer(now),)* }
            }

            fn on_link_rate(&mut self, now: Instant, rate: Rate) {
                match self { $(Self::$name(queue) => queue.on_link_rate(now, rate),)* }
            }

            fn queue_of(&self, pkt: &P) -> Option<u32> {
                match self { $(Self::$name(queue) => queue.queue_of(pkt),)* }
            }

            fn statistics(&self) -> Vec<Statistic> {
                match self { $(Self::$name(queue) => queue.statistics(),)* }
            }

            fn state(&self, now: Instant) -> Vec<Statistic> {
                match self { $(Self::$name(queue) => queue.state(now),)* }
            }

            fn classes(&self) -> Vec<ClassId> {
                match self { $(Self::$name(queue) => queue.classes(),)* }
            }
        }

        impl<P: Packet> AnyQdisc<P> {
            /// Gives the queue other parameters of its kind.
            pub(crate) fn change(&mut self, now: Instant, spec: &QdiscSpec, link: &LinkFacts, obs: &mut dyn Observer<P>) {
                match (self, spec) {
                    $((Self::$name(queue), QdiscSpec::$name(params)) => params.change(queue, now, link, obs),)*
                    _ => debug_assert!(false, "a change keeps the kind"),
                }
            }
        }

        impl QdiscSpec {
            /// Every name of every discipline.
            pub(crate) fn entries() -> Vec<Entry> {
                let mut entries = Vec::new();
                $(entries.extend(<$params>::entries());)*
                entries
            }

            /// The discipline called `name` at the defaults of that name.
            pub(crate) fn at_defaults(name: &str) -> Option<(Entry, Self)> {
                $(if let Some((entry, params)) = <$params>::at_defaults(name) {
                    return Some((entry, Self::$name(params)));
                })*
                None
            }

            /// The name in the canonical text and its defaults.
            pub(crate) fn entry(&self) -> Option<(Entry, Self)> {
                Self::at_defaults(self.kind())
            }

            /// The name of the discipline; an alias is resolved.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(params) => params.kind(),)* }
            }

            /// An empty queue on `link`, made at the origin of time; `rng` is its own.
            pub fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> AnyQdisc<P> {
                match self { $(Self::$name(params) => AnyQdisc::$name(params.build(link, rng)),)* }
            }

            /// Sets parameters that are not given and derive from the link to their values on `link`.
            pub fn resolve(&mut self, link: &LinkFacts) {
                match self { $(Self::$name(params) => params.resolve(link),)* }
            }

            /// The rate of its own shaper, if it has one; `None` for external queues, whose rate is unknown.
            pub fn shaper_rate(&self) -> Option<Rate> {
                match self { $(Self::$name(params) => params.shaper_rate(),)* }
            }

            /// The rate that it assumes for a link whose rate is unknown, if its results depend on that.
            pub fn assumed_rate(&self) -> Option<Rate> {
                match self { $(Self::$name(params) => params.assumed_rate(),)* }
            }

            /// The implementation that its behaviour was compared with.
            pub(crate) fn comparison(&self) -> Comparison {
                match self { $(Self::$name(params) => params.comparison(),)* }
            }

            /// The size of its buffer with packets of `frame` bytes, if it signals congestion only when that is
            /// full; `None` for classful queues and where each flow has a buffer.
            pub fn unmanaged_buffer(&self, frame: Bytes) -> Option<Bytes> {
                match self { $(Self::$name(params) => params.unmanaged_buffer(frame),)* }
            }

            /// Whether the queue or one inside it paces by the rates of the sockets that send.
            pub fn paces_sockets(&self) -> bool {
                match self {
                    $(Self::$name(params) => {
                        params.paces_sockets() || params.leaves().is_some_and(|(leaves, _)| leaves.paces_sockets())
                    })*
                }
            }

            /// The queues inside it, as many as were given, and the number of classes.
            pub(crate) fn inner(&self) -> Option<(&dyn LeafList, u32)> {
                match self { $(Self::$name(params) => params.leaves(),)* }
            }

            /// The value of a parameter.
            pub(crate) fn value(&mut self, key: &str) -> Option<&mut dyn Value> {
                match self { $(Self::$name(params) => params.value(key),)* }
            }

            /// Words that are no parameters and set some.
            pub(crate) fn shorthands(&self) -> &'static [&'static [Shorthand]] {
                match self { $(Self::$name(params) => params.shorthands(),)* }
            }

            /// Words of `tc` that are neither parameters nor shorthands.
            pub(crate) fn tc_words(&self) -> &'static [(&'static str, TcWord)] {
                match self { $(Self::$name(params) => params.tc_words(),)* }
            }

            /// Completes what a text or a table said, in which these shorthands stood; returns what `tc` or the
            /// kernel changes of it.
            pub(crate) fn settle(&mut self, shorthands: &[&str]) -> Result<Vec<String>, String> {
                match self { $(Self::$name(params) => params.settle(shorthands),)* }
            }

            /// What a queue with these parameters does with its packets if they change to `next`, of the same kind.
            pub(crate) fn change_to(&self, next: &Self) -> Result<Retention, String> {
                match (self, next) {
                    $((Self::$name(params), Self::$name(next)) => params.change_to(next),)*
                    _ => Ok(Retention::Drops),
                }
            }

            /// What two parameters say against each other.
            pub(crate) fn conflict(&self) -> Option<String> {
                match self { $(Self::$name(params) => params.conflict(),)* }
            }
        }
    };
}

disciplines! {
    /// `pfifo`, `bfifo` and `pfifo_head_drop`.
    DropTail: aqm::droptail { DropTailParams => DropTail },
    /// `red`, adaptive or not.
    Red: registry { RedParams => Red },
    /// `choke`.
    Choke: aqm::choke { ChokeParams => Choke },
    /// `blue`.
    Blue: aqm::blue { BlueParams => Blue },
    /// `red_ns2` and `nlred`.
    Ns2Red: aqm::red_ns2 { Ns2RedParams => Ns2Red },
    /// `hred`.
    Hred: aqm::hred { HredParams => Hred },
    /// `codel`.
    Codel: aqm::codel { CodelParams => Codel },
    /// `pie`.
    Pie: aqm::pie { PieParams => Pie },
    /// `dualpi2`.
    DualPi2: aqm::dualpi2 { DualPi2Params => DualPi2 },
    /// `fq_codel` and `fq_nocodel`.
    FqCodel: fair::fq_codel { FqCodelParams => FqCodel },
    /// `fq_pie`.
    FqPie: fair::fq_pie { FqPieParams => FqPie },
    /// `sfq`.
    Sfq: fair::sfq { SfqParams => Sfq },
    /// `sfq_codel`.
    SfqCodel: fair::sfq_codel { SfqCodelParams => SfqCodel },
    /// `fq`.
    Fq: fair::fq { FqParams => Fq },
    /// `drr`.
    Drr: registry { DrrParams => Drr },
    /// `prio`.
    Prio: registry { PrioParams => Prio },
    /// `htb`.
    Htb: registry { HtbParams => Htb },
    /// `pfifo_fast`.
    PfifoFast: classful::prio { PfifoFastParams => PfifoFast },
    /// `cocoa`.
    Cocoa: fair::cocoa { CocoaParams => Cocoa },
    /// `sfb`.
    Sfb: registry { SfbParams => Sfb },
    /// `cake`.
    Cake: fair::cake { CakeParams => Cake },
    /// `cake_mq`.
    CakeMq: fair::cake_mq { CakeMqParams => CakeMq },
    /// `mac80211`.
    Mac80211: fair::mac80211 { Mac80211Params => Mac80211 },
    /// `cobalt`.
    Cobalt: aqm::cobalt { CobaltParams => Cobalt },
    /// `afcd`, as published or as the module of 2012.
    Afcd: fair::afcd { AfcdParams => Afcd },
    /// `afd`, and AFQ of 2012.
    Afd: fair::afd { AfdParams => Afd },
    /// `floq` and its presets.
    Floq: aqm::floq { FloqParams => Floq },
    /// `predict`.
    Predict: aqm::predict { PredictParams => Predict },
    /// A class of Python or a plug-in.
    External: external { ExternalSpec => External },
}

/// Parameters of [`Red`], whose leaf can be any discipline.
pub type RedParams = red::RedParams<QdiscSpec>;
/// RED over a FIFO or any discipline.
pub type Red<P> = red::Red<P, AnyQdisc<P>>;
/// Parameters of [`Sfb`], whose leaf can be any discipline.
pub type SfbParams = sfb::SfbParams<QdiscSpec>;
/// SFB over a FIFO or any discipline.
pub type Sfb<P> = sfb::Sfb<P, AnyQdisc<P>>;
/// Parameters of [`Drr`], whose leaves can be any disciplines.
pub type DrrParams = drr::DrrParams<QdiscSpec>;
/// DRR over any disciplines.
pub type Drr<P> = drr::Drr<P, AnyQdisc<P>, QdiscSpec>;
/// Parameters of [`Prio`], whose leaves can be any disciplines.
pub type PrioParams = prio::PrioParams<QdiscSpec>;
/// Strict priority over any disciplines.
pub type Prio<P> = prio::Prio<P, AnyQdisc<P>>;
/// Parameters of [`Htb`], whose leaves can be any disciplines.
pub type HtbParams = htb::HtbParams<QdiscSpec>;
/// HTB over any disciplines.
pub type Htb<P> = htb::Htb<P, AnyQdisc<P>>;

impl<P: Packet> AnyQdisc<P> {
    /// The queue that serves the stations of a radio, if it is `mac80211`.
    pub const fn as_mac80211(&mut self) -> Option<&mut Mac80211<P>> {
        match self {
            Self::Mac80211(queue) => Some(queue),
            _ => None,
        }
    }
}

impl Leaf for QdiscSpec {
    type Queue<P: Packet> = AnyQdisc<P>;

    fn plain_fifo() -> Self {
        Self::DropTail(DropTailParams::PFIFO)
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> AnyQdisc<P> {
        self.build(link, rng)
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        self.inner()
    }

    fn footprint(&self) -> Footprint {
        self.footprint()
    }

    fn paces_sockets(&self) -> bool {
        self.paces_sockets()
    }

    fn provenance(&self) -> Vec<Provenance> {
        self.provenance()
    }

    fn flow_filters(&self) -> Vec<FlowCondition> {
        self.flow_filters()
    }
}

/// Parameters that set the size of a preallocated table.
const TABLES: [&str; 6] = [
    "flows",
    "divisor",
    "orphan_mask",
    "connections",
    "shadow",
    "table",
];
/// Parameters that are the period of a timer.
const PERIODS: [&str; 2] = ["tupdate", "slot"];
/// Expirations per second of timers whose period is no parameter: afcd has the shortest, 6.25 ms.
const FIXED_TIMERS_PER_S: u64 = 160;
/// The flow queues of CAKE: 8 tins of 1024.
const CAKE: u64 = 8 * 1_024;
/// The slots of the history of Predict at the longest round-trip time.
const PREDICT: u64 = 1 << 16;
/// The statistics and the state of a queue that has no list of parts: `floq` has most.
const STATISTICS: u64 = 16;
/// Those of CAKE: 20 for each of 8 tins.
const CAKE_STATISTICS: u64 = 8 * 20 + STATISTICS;
/// Those of each instance of `cake_mq`.
const CAKE_MQ_STATISTICS: u64 = 8;
/// Those of a class, beside the ones of its queue.
const CLASS_STATISTICS: u64 = 5;
/// Those of a queue outside this crate, whose number is unknown.
const EXTERNAL_STATISTICS: u64 = 64;
/// Packets in a queue whose limit follows from its other parameters: the largest buffer of CAKE, in MTUs.
const DERIVED: u64 = 10_240;
const MTU: u64 = 1_514;

impl QdiscSpec {
    /// Whether packets may start a timer of the queue or of one inside it, which sends them later.
    pub fn delays_packets(&self) -> bool {
        let inner = self.inner();
        let has_leaves = inner.is_some_and(|(leaves, classes)| classes > 1 || leaves.depth() > 0);
        has_leaves
            || self.paces_sockets()
            || matches!(
                self,
                Self::Cake(_) | Self::CakeMq(_) | Self::Fq(_) | Self::External(_)
            )
    }

    /// What filters of the queue, or of one inside it, ask of the flow of a packet; empty: nothing.
    pub fn flow_filters(&self) -> Vec<FlowCondition> {
        let mut conditions = match self {
            Self::Htb(params) => params.flow_conditions().collect(),
            _ => Vec::new(),
        };
        if let Some((leaves, _)) = self.inner() {
            conditions.extend(leaves.flow_filters());
        }
        conditions
    }

    /// Whether the queue itself has a periodic timer.
    const fn is_periodic(&self) -> bool {
        matches!(
            self,
            Self::Pie(_)
                | Self::DualPi2(_)
                | Self::FqPie(_)
                | Self::Predict(_)
                | Self::Red(_)
                | Self::Afd(_)
                | Self::Afcd(_)
                | Self::External(_)
        )
    }

    /// The footprint of the queue. External queues are not limited.
    pub fn footprint(&self) -> Footprint {
        let mut spec = self.clone();
        let mut number = |key| spec.value(key).and_then(|value| value.whole());
        let slots = match self.kind() {
            "cake" => CAKE,
            "cake_mq" => CAKE * number("queues").unwrap_or(1),
            "predict" => PREDICT,
            _ => TABLES.iter().filter_map(|key| number(key)).sum::<u64>() + 1,
        };
        // fq_pie updates this number of flows at a time.
        let turns = match self.kind() {
            "fq_pie" => slots / fq_pie::BATCH as u64 + 1,
            _ => 1,
        };
        let period = PERIODS.iter().find_map(|key| number(key));
        let own = Footprint {
            slots,
            packets: u64::MAX,
            bytes: u64::MAX,
            timers_per_s: if self.is_periodic() {
                turns
                    * period.map_or(FIXED_TIMERS_PER_S, |nanos| {
                        1_000_000_000_u64.div_ceil(nanos.max(1))
                    })
            } else {
                0
            },
            statistics: match self {
                Self::DropTail(_) => 0,
                Self::Cake(_) => CAKE_STATISTICS,
                // Of classes with classes below them too, which have no queue.
                Self::Htb(params) => 7 * params.classes.0.len() as u64 + STATISTICS,
                Self::CakeMq(_) => CAKE_MQ_STATISTICS * number("queues").unwrap_or(1) + 1,
                // The airtime of each station.
                Self::Mac80211(_) => mac80211::STATIONS as u64 + STATISTICS,
                // A limit for each flow.
                Self::Cocoa(_) => slots + STATISTICS,
                Self::External(_) => EXTERNAL_STATISTICS,
                _ => STATISTICS,
            },
        };
        if let Some((leaves, classes)) = self.inner()
            && (classes > 1 || leaves.depth() > 0)
        {
            let leaves = leaves.footprint(classes);
            let direct = number("direct_qlen").unwrap_or(0);
            return Footprint {
                slots: own.slots.saturating_add(leaves.slots),
                packets: leaves.packets.saturating_add(direct),
                timers_per_s: own.timers_per_s.saturating_add(leaves.timers_per_s),
                statistics: (own.statistics + CLASS_STATISTICS * u64::from(classes))
                    .saturating_add(leaves.statistics),
                ..leaves
            };
        }
        if crate::external::is_external(self.kind()) {
            return own;
        }
        // Each instance has the buffer.
        let buffers = match self {
            Self::CakeMq(params) => u64::from(params.sharing.queues),
            _ => 1,
        };
        // Each band has the limit; the fast path of fq adds a few packets.
        let (bands, beside) = match self {
            Self::Fq(params) if params.profile == Profile::Linux612 => (3, u64::from(FAST_PATH)),
            Self::PfifoFast(_) => (3, 0),
            _ => (1, 0),
        };
        let entry = self.entry().map(|(entry, _)| entry);
        let mut parameters = entry.iter().flat_map(|entry| entry.parameters);
        let in_bytes = parameters.any(|p| p.key == "limit" && p.unit == Unit::Size);
        let limit = number("limit").or_else(|| number("direct_qlen"));
        let memory = number("memory_limit").or_else(|| number("memlimit"));
        match (limit, in_bytes, memory) {
            (Some(bytes), true, _) | (None, _, Some(bytes)) => Footprint {
                bytes: bytes.saturating_mul(buffers),
                ..own
            },
            (Some(packets), false, memory) => Footprint {
                packets: packets.saturating_mul(bands).saturating_add(beside),
                bytes: memory.unwrap_or(u64::MAX),
                ..own
            },
            (None, _, None) => Footprint {
                packets: DERIVED * buffers,
                bytes: DERIVED * MTU * buffers,
                ..own
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Footprint {
        text.parse::<QdiscSpec>().expect(text).footprint()
    }

    #[test]
    fn a_limit_counts_packets_or_bytes() {
        assert_eq!(of("pfifo limit 7").packets, 7);
        assert_eq!(of("bfifo limit 9000b").bytes, 9_000);
        assert_eq!(of("red limit 60000b").bytes, 60_000);
        assert_eq!(of("pfifo_fast limit 5").packets, 15);
        assert_eq!(of("fq limit 5").packets, 5);
        assert_eq!(of("fq limit 5 profile linux-6.12").packets, 15 + 8);
        assert_eq!(of("hred limit 30").packets, 30);
        assert_eq!(of("hred").packets, DERIVED);
        let both = of("fq_codel limit 11 memory_limit 1000000b");
        assert_eq!((both.packets, both.bytes), (11, 1_000_000));
        assert_eq!(of("cake").bytes, DERIVED * MTU);
        assert_eq!(of("cake memlimit 1000000b").bytes, 1_000_000);
        assert_eq!(of("cake_mq queues 3 memlimit 1000000b").bytes, 3_000_000);
        assert_eq!(of("cake_mq queues 3").bytes, 3 * DERIVED * MTU);
    }

    #[test]
    fn the_queues_of_all_classes_count() {
        assert_eq!(of("fq_codel flows 64").slots, 65);
        let nested = of("drr classes 10 leaf fq_codel flows 64 limit 100");
        assert_eq!((nested.slots, nested.packets), (1 + 10 * 65, 1_000));
        let mixed = of("prio bands 3 leaf pfifo limit 5 / codel limit 6");
        assert_eq!((mixed.slots, mixed.packets), (1 + 3, 5 + 6 + 1_000));
        assert_eq!(of("red leaf pfifo limit 5").packets, 5);
    }

    #[test]
    fn timers_expire_as_often_as_their_period_says() {
        assert_eq!(of("pie tupdate 1us").timers_per_s, 1_000_000);
        assert_eq!(of("afcd").timers_per_s, 160);
        assert_eq!(of("codel").timers_per_s, 0);
        let nested = of("drr classes 2 leaf pie tupdate 10ms");
        assert_eq!(nested.timers_per_s, 2 * 100);
    }

    #[test]
    fn every_queue_has_a_bound() {
        for queue in crate::catalogue() {
            let footprint = of(queue.name);
            let waiting = footprint.packets.min(footprint.bytes);
            assert!(waiting <= 1 << 32, "{}: {footprint:?}", queue.name);
            assert!(
                (1..1 << 17).contains(&footprint.slots),
                "{}: {footprint:?}",
                queue.name
            );
        }
    }

    #[test]
    fn tables_for_a_billion_flows_are_refused() {
        let text = "drr classes 16384 leaf fq_codel flows 65536";
        let refused = text.parse::<QdiscSpec>().unwrap_err().to_string();
        assert!(
            refused.contains("flows in all; expected at most 10000000"),
            "{refused}"
        );
    }
}
