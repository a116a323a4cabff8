//! The names of a discipline, each with its own defaults.

use super::parameter::Parameter;
use super::profile::Profile;
use crate::contract::{DropReason, MarkReason};

/// The profiles of a discipline that follows Linux 6.1 alone.
pub const LINUX: &[Profile] = &[Profile::Linux];
/// The profiles of a discipline that follows its RFC, Linux 6.1 and Linux 3.14.
pub const RFC_AND_LINUX: &[Profile] = &[Profile::Rfc, Profile::Linux, Profile::Linux314];

/// The statistic that `tc -s qdisc` prints as `overlimits`: what the kernel module of the queue
/// passes to `qdisc_qstats_overlimit`. Modules differ: RED counts its signals, CAKE the requests
/// that its shaper refuses, SFB drops at its limits, and most count nothing.
pub const OVERLIMITS: &str = "overlimits";

/// What `tc -s qdisc` prints for a discipline besides the statistics of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcStatistics {
    /// Its names of drops and marks that every link counts.
    pub counters: &'static [(&'static str, Counter)],
    /// The part of its statistics that has one entry per queue inside.
    pub leaves: Option<&'static str>,
    /// Whether its statistics have `overlimits`; other queues never count any, as their kernel modules.
    pub overlimits: bool,
}

/// What every link counts, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Packets that the queue dropped.
    Drops(DropReason),
    /// Packets that the queue marked.
    Marks(MarkReason),
}

impl TcStatistics {
    /// These names, and no queue inside.
    pub const fn of(counters: &'static [(&'static str, Counter)]) -> Self {
        Self {
            counters,
            leaves: None,
            overlimits: false,
        }
    }

    /// The same, with the queues inside under this part.
    #[must_use]
    pub const fn with_leaves(self, part: &'static str) -> Self {
        Self {
            leaves: Some(part),
            ..self
        }
    }

    /// Adds [`OVERLIMITS`] to the statistics.
    #[must_use]
    pub const fn with_overlimits(self) -> Self {
        Self {
            overlimits: true,
            ..self
        }
    }
}

impl Counter {
    /// The column of the result with this counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drops(DropReason::Overlimit) => "drops_overlimit",
            Self::Drops(DropReason::Aqm) => "drops_aqm",
            Self::Marks(MarkReason::Aqm) => "marks_aqm",
            Self::Marks(MarkReason::CeThreshold) => "marks_ce_threshold",
        }
    }
}

/// One name of a discipline with parameters `T`, and the defaults it stands for.
#[derive(Debug)]
pub struct Kind<T> {
    /// The name in a specification.
    pub name: &'static str,
    /// The generated Python class; `None` for a second name of the same defaults and for a queue of another
    /// crate.
    pub class: Option<&'static str>,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What no source gives and this implementation supplies; `None`: nothing.
    pub reconstruction: Option<&'static str>,
    /// What it can follow; the first is the default.
    pub profiles: &'static [Profile],
    /// The parameters at the defaults of this name.
    pub start: fn() -> T,
    /// The parameters that this name accepts.
    pub parameters: &'static [Parameter],
}

/// A [`Kind`] of any discipline.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub(crate) name: &'static str,
    /// The first name of the discipline, under which it is documented; `None` for one of another crate.
    pub(crate) page: Option<&'static str>,
    pub(crate) class: Option<&'static str>,
    pub(crate) summary: &'static str,
    pub(crate) source: &'static str,
    pub(crate) reconstruction: Option<&'static str>,
    pub(crate) profiles: &'static [Profile],
    pub(crate) parameters: &'static [Parameter],
    pub(crate) tc_statistics: TcStatistics,
}

impl<T> Kind<T> {
    /// This name, documented on `page`.
    pub(crate) const fn entry(
        &self,
        page: Option<&'static str>,
        tc_statistics: TcStatistics,
    ) -> Entry {
        Entry {
            name: self.name,
            page,
            class: self.class,
            summary: self.summary,
            source: self.source,
            reconstruction: self.reconstruction,
            profiles: self.profiles,
            parameters: self.parameters,
            tc_statistics,
        }
    }
}
