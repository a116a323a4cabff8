//! The list of disciplines: a line here, a row in the catalogue, and a discipline is there.

use crate::aqm::red;
use crate::fair::sfb;
use sojourn_net::{Instant, Packet, Rng};

use crate::aqm::blue::{Blue, BlueParams};
use crate::aqm::choke::{Choke, ChokeParams};
use crate::aqm::cobalt::{Cobalt, CobaltParams};
use crate::aqm::codel::{Codel, CodelParams};
use crate::aqm::droptail::{DropTail, DropTailParams};
use crate::aqm::dualpi2::{DualPi2, DualPi2Params};
use crate::aqm::floq::{Floq, FloqParams};
use crate::aqm::hred::HredParams;
use crate::aqm::pie::{Pie, PieParams};
use crate::aqm::predict::{Predict, PredictParams};
use crate::aqm::red_ns2::{Ns2Red, Ns2RedParams};
use crate::classful::prio::{PfifoFast, PfifoFastParams};
use crate::classful::{drr, prio};
use crate::contract::{Backlog, Observer, Qdisc, Statistic};
use crate::external::{External, ExternalSpec};
use crate::fair::afcd::{Afcd, AfcdParams};
use crate::fair::afd::{Afd, AfdParams};
use crate::fair::cake::{Cake, CakeParams};
use crate::fair::cocoa::{Cocoa, CocoaParams};
use crate::fair::fq::{Fq, FqParams};
use crate::fair::fq_codel::{FqCodel, FqCodelParams};
use crate::fair::fq_pie::{FqPie, FqPieParams};
use crate::fair::sfq::{Sfq, SfqParams};
use crate::fair::sfq_codel::{SfqCodel, SfqCodelParams};
use crate::link::LinkFacts;
use crate::parameters::{Field, Leaf, LeafList, ParameterError, Params, Shorthand};

/// Writes the two enumerations of disciplines and what is the same for each of them: the fast path
/// must not go through a virtual call.
macro_rules! disciplines {
    ($($(#[doc = $doc:literal])* $name:ident: $params:ty => $queue:ident,)*) => {
        /// One of the disciplines; which one is decided at run time, once.
        #[derive(Clone, Debug)]
        // A number of its own, not one to be worked out from a field of some discipline.
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

        // With so many arms, and queues inside queues, the compiler would not inline the choice, and
        // a packet would be copied twice.
        impl<P: Packet> Qdisc<P> for AnyQdisc<P> {
            const TIMED: bool = true;

            #[inline(always)]
            fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
                match self { $(Self::$name(queue) => queue.enqueue(now, pkt, obs),)* }
            }

            #[inline(always)]
            fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
                match self { $(Self::$name(queue) => queue.dequeue(now, obs),)* }
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

            fn on_timer(&mut self, now: Instant) {
                match self { $(Self::$name(queue) => queue.on_timer(now),)* }
            }

            fn statistics(&self) -> Vec<Statistic> {
                match self { $(Self::$name(queue) => queue.statistics(),)* }
            }
        }

        impl<P: Packet> AnyQdisc<P> {
            /// Whether the discipline is [timed](Qdisc::TIMED).
            pub fn is_timed(&self) -> bool {
                match self { $(Self::$name(_) => $queue::<P>::TIMED,)* }
            }
        }

        impl QdiscSpec {
            /// The name of the discipline; an alias is resolved.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$name(params) => params.kind(),)* }
            }

            /// An empty queue on `link`, made at the origin of time; `rng` is its own.
            pub fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> AnyQdisc<P> {
                match self { $(Self::$name(params) => AnyQdisc::$name(params.build(link, rng)),)* }
            }

            /// The queues inside it, as many as were given, and the number of classes.
            pub(crate) fn inner(&self) -> Option<(&dyn LeafList, u32)> {
                match self { $(Self::$name(params) => params.leaves(),)* }
            }

            /// The place of a parameter's value.
            pub(crate) fn field(&mut self, key: &str) -> Option<Field<'_>> {
                match self { $(Self::$name(params) => params.field(key),)* }
            }

            /// Words that are no parameters and set some.
            pub(crate) fn shorthands(&self) -> &'static [Shorthand] {
                match self { $(Self::$name(params) => params.shorthands(),)* }
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
    DropTail: DropTailParams => DropTail,
    /// `red`, adaptive or not.
    Red: RedParams => Red,
    /// `choke`.
    Choke: ChokeParams => Choke,
    /// `blue`.
    Blue: BlueParams => Blue,
    /// `red_ns2` and `nlred`.
    Ns2Red: Ns2RedParams => Ns2Red,
    /// `hred`.
    Hred: HredParams => Ns2Red,
    /// `codel`.
    Codel: CodelParams => Codel,
    /// `pie`.
    Pie: PieParams => Pie,
    /// `dualpi2`.
    DualPi2: DualPi2Params => DualPi2,
    /// `fq_codel` and `fq_nocodel`.
    FqCodel: FqCodelParams => FqCodel,
    /// `fq_pie`.
    FqPie: FqPieParams => FqPie,
    /// `sfq`.
    Sfq: SfqParams => Sfq,
    /// `sfq_codel`.
    SfqCodel: SfqCodelParams => SfqCodel,
    /// `fq`.
    Fq: FqParams => Fq,
    /// `cocoa`.
    Cocoa: CocoaParams => Cocoa,
    /// `sfb`.
    Sfb: SfbParams => Sfb,
    /// `cake`.
    Cake: CakeParams => Cake,
    /// `cobalt`.
    Cobalt: CobaltParams => Cobalt,
    /// `afcd`, as published or as the module of 2012.
    Afcd: AfcdParams => Afcd,
    /// `afd`, and AFQ of 2012.
    Afd: AfdParams => Afd,
    /// `floq` and its presets.
    Floq: FloqParams => Floq,
    /// `drr`.
    Drr: DrrParams => Drr,
    /// `prio`.
    Prio: PrioParams => Prio,
    /// `pfifo_fast`.
    PfifoFast: PfifoFastParams => PfifoFast,
    /// `predict`.
    Predict: PredictParams => Predict,
    /// One that another crate, or Python, registered.
    External: ExternalSpec => External,
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
pub type Drr<P> = drr::Drr<P, AnyQdisc<P>>;
/// Parameters of [`Prio`], whose leaves can be any disciplines.
pub type PrioParams = prio::PrioParams<QdiscSpec>;
/// Strict priority over any disciplines.
pub type Prio<P> = prio::Prio<P, AnyQdisc<P>>;

impl Leaf for QdiscSpec {
    type Queue<P: Packet> = AnyQdisc<P>;

    fn parse(text: &str) -> Result<Self, ParameterError> {
        Self::parse(text)
    }

    fn plain_fifo() -> Self {
        Self::DropTail(DropTailParams::PFIFO)
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> AnyQdisc<P> {
        self.build(link, rng)
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        self.inner()
    }

    fn reconstructions(&self) -> Vec<String> {
        self.reconstructions()
    }
}
