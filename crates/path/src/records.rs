//! What is recorded at a link: counters, histograms, time series, drops and marks.

mod histogram;

use sojourn_net::{Duration, Instant};
use sojourn_qdisc::{Backlog, ClassId, DropReason, MarkReason, Statistic};

pub use histogram::Histogram;

/// What happened at one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRecord {
    /// The link's name.
    pub name: String,
    /// One entry per interval, from the start of the run.
    pub series: Vec<LinkSample>,
    /// The state of its queue at the same times, if the configuration asked for it.
    pub states: Vec<StateSample>,
    /// Since the warm-up ended.
    pub totals: LinkCounters,
    /// Time in the queue of each packet sent since the warm-up ended, in nanoseconds.
    pub sojourn: Histogram,
    /// Time for which the link was sending, since the warm-up ended; a packet counts in full when its
    /// transmission starts.
    pub sending: Duration,
    /// Time since the end of the warm-up during which packets waited: while the link transmitted another packet,
    /// whose transmission time counts in full when it starts, and while the link was idle because the shaper of
    /// the queue held them back.
    pub busy: Duration,
    /// Time below the queue, in the driver and in transmission, of each packet that a radio or a ring sent since the
    /// warm-up ended, in nanoseconds.
    pub driver: Option<Box<Histogram>>,
    /// The classes of its queue, by place; of those that the queue does not list, the ones that had a packet.
    pub classes: Vec<ClassRecord>,
    /// What the queue keeps about itself, as it stood when the run ended.
    pub statistics: Vec<Statistic>,
}

/// Totals of one class of a queue since the end of the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRecord {
    /// Its name and place.
    pub class: ClassId,
    /// Counters, without losses and duplicates of the wire.
    pub totals: LinkCounters,
    /// Time in the queue of each packet sent, in nanoseconds.
    pub sojourn: Histogram,
}

impl ClassRecord {
    /// Nothing yet.
    pub fn new(class: ClassId) -> Self {
        Self {
            class,
            totals: LinkCounters::default(),
            sojourn: Histogram::default(),
        }
    }
}

/// One interval at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// When the interval ended.
    pub at: Instant,
    /// Packets waiting then.
    pub backlog_packets: u64,
    /// Bytes waiting then.
    pub backlog_bytes: u64,
    /// Mean time in the queue of the packets sent; `None` if there were none.
    pub sojourn_mean: Option<Duration>,
    /// Longest time in the queue of a packet sent; `None` if there were none.
    pub sojourn_max: Option<Duration>,
    /// What was counted in the interval.
    pub counters: LinkCounters,
}

/// The state of a queue at the end of an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct StateSample {
    /// When the interval ended.
    pub at: Instant,
    /// Its statistics then, and what else it states of itself.
    pub statistics: Vec<Statistic>,
}

/// A drop, a mark or a loss.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalRecord {
    /// When.
    pub at: Instant,
    /// Which link, by its place in the configuration.
    pub link: u32,
    /// The flow of the packet, by its place in the configuration.
    pub flow: u32,
    /// What happened and why.
    pub signal: Signal,
    /// Time since the packet was offered to the queue; zero for a loss.
    pub waited: Duration,
    /// What the queue holds after the event, without the packet; nothing for a loss.
    pub backlog: Backlog,
    /// The state of the queue behind it, if that is recorded.
    pub state: Option<Box<SignalState>>,
}

/// The state of a queue behind a drop or mark.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalState {
    /// The class of the packet, if the queue has classes.
    pub class: Option<ClassId>,
    /// What the decision depends on, or else the state of the queue after it.
    pub numbers: Vec<Statistic>,
}

/// What a queue or wire did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It was discarded.
    Drop(DropReason),
    /// It was CE-marked.
    Mark(MarkReason),
    /// The wire behind the link lost it.
    Lost,
}

/// Declares a struct of `u64` counters with `add` and `since`. The fields in `maxima` are maxima.
#[doc(hidden)]
#[macro_export]
macro_rules! counters {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $($(#[$field_doc:meta])* $field:ident,)*
        }
        $(maxima { $($(#[$max_doc:meta])* $max:ident,)* })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
            $($($(#[$max_doc])* pub $max: u64,)*)?
        }

        impl $name {
            /// Adds each counter of `more`; of maxima, the larger one remains.
            pub const fn add(&mut self, more: &Self) {
                $(self.$field += more.$field;)*
                $($(if more.$max > self.$max {
                    self.$max = more.$max;
                })*)?
            }

            /// What was counted after `before`, an earlier state of the same counters. Maxima
            /// remain: whoever takes `before` resets them at that time.
            #[must_use]
            pub const fn since(&self, before: &Self) -> Self {
                Self {
                    $($field: self.$field - before.$field,)*
                    $($($max: self.$max,)*)?
                }
            }
        }
    };
}

counters! {
    /// Packets counted at a link.
    pub struct LinkCounters {
        /// Packets sent.
        sent_packets,
        /// Bytes sent, without the link's overhead.
        sent_bytes,
        /// Packets dropped because the queue was full.
        drops_overlimit,
        /// Packets dropped by the AQM.
        drops_aqm,
        /// ACKs that an ACK filter dropped because a later one made them redundant.
        drops_ack_filter,
        /// Packets that waited in a queue when it was replaced, or emptied by a change of its parameters.
        drops_replaced,
        /// Packets CE-marked by the AQM.
        marks_aqm,
        /// Packets CE-marked because their sojourn time exceeded `ce_threshold`.
        marks_ce_threshold,
        /// Packets lost on the wire after transmission.
        lost_packets,
        /// Packets that the wire delivered twice.
        duplicated_packets,
    }
}
