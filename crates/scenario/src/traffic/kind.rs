//! The contract of a type of traffic: its name, its keys and how it is read.

use std::fmt::Debug;
use std::sync::Arc;

use sojourn_net::{Duration, Rng};

use crate::error::ScenarioError;
use crate::key::Key;
use crate::page::Pages;
use crate::place::Fields;
use crate::plan::Traffic;
use crate::value::Table;

/// A type of traffic, declared in its file and listed in `TYPES`.
pub(super) struct TrafficType {
    /// The value of the key `type`.
    pub(super) name: &'static str,
    /// Lists of the keys that it has beside those of all traffic.
    pub(super) keys: &'static [&'static [Key]],
    pub(super) properties: TrafficProperties,
    pub(super) read: Reader,
}

/// Properties of a type of traffic that determine the metrics of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficProperties {
    /// The metrics that its groups have.
    pub measured: Measured,
    /// Whether its flows carry data, so that their goodput counts.
    pub carries_data: bool,
    /// Whether each flow is one connection, with a congestion window.
    pub has_connection: bool,
    /// Whether the rate of its flows is that of the scenario, whatever the network does.
    pub constant_rate: bool,
    /// What its users wait for, in the plural, such as `pages`; `None`: it has no transactions.
    pub transactions: Option<&'static str>,
}

/// Which metrics the groups of a type of traffic have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Those of groups of flows.
    Flows,
    /// Those of groups of applications.
    Applications,
    /// None of their own.
    Nothing,
}

impl TrafficProperties {
    /// Flows that are one connection each.
    pub const CONNECTION: Self = Self {
        measured: Measured::Flows,
        carries_data: true,
        has_connection: true,
        constant_rate: false,
        transactions: None,
    };

    /// Datagrams at a rate that the scenario sets.
    pub const DATAGRAMS: Self = Self {
        has_connection: false,
        constant_rate: true,
        ..Self::CONNECTION
    };

    /// Applications.
    pub const APPLICATION: Self = Self {
        measured: Measured::Applications,
        has_connection: false,
        ..Self::CONNECTION
    };

    /// Applications with transactions of this name.
    pub(super) const fn transactions(name: &'static str) -> Self {
        Self {
            transactions: Some(name),
            ..Self::APPLICATION
        }
    }

    /// Traffic of an unknown type, such as that of a measurement of another program.
    pub const UNKNOWN: Self = Self {
        measured: Measured::Nothing,
        has_connection: false,
        ..Self::CONNECTION
    };
}

/// Reads the settings of a block.
pub(super) type Reader = fn(&Fields<'_>, &Context<'_>) -> Result<Arc<dyn Source>, ScenarioError>;

/// What a type may need to know beside its own keys.
pub(super) struct Context<'a> {
    pub(super) pages: &'a Pages,
    /// Number of flows of the block.
    pub(super) count: u32,
    /// Length of a run.
    pub(super) duration: Duration,
}

/// What the flows of a block send.
pub(super) trait Source: Debug + Send + Sync {
    /// Writes its keys, in canonical units.
    fn write(&self, fields: &mut Table);

    /// What one flow runs; `rng` is the flow's own.
    fn plan(&self, rng: Rng) -> Traffic;
}

/// A type of traffic with its settings.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    name: &'static str,
    source: Arc<dyn Source>,
}

impl TrafficType {
    /// Reads the settings of a block of this type.
    pub(super) fn settings(
        &self,
        fields: &Fields<'_>,
        context: &Context<'_>,
    ) -> Result<Kind, ScenarioError> {
        Ok(Kind {
            name: self.name,
            source: (self.read)(fields, context)?,
        })
    }
}

impl Kind {
    /// The name of its type.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the other end sends anything back.
    pub(super) fn is_answered(&self) -> bool {
        match self.plan(Rng::new(0)) {
            Traffic::Datagrams(config) => config.kind().is_echo(),
            Traffic::Tcp { .. } | Traffic::Quic { .. } | Traffic::App(_) | Traffic::Program(_) => {
                true
            }
        }
    }

    /// Writes the keys of its type, in canonical units.
    pub(crate) fn write(&self, fields: &mut Table) {
        self.source.write(fields);
    }

    /// What one flow runs; `rng` is the flow's own.
    pub(crate) fn plan(&self, rng: Rng) -> Traffic {
        self.source.plan(rng)
    }
}
