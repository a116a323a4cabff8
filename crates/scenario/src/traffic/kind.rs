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
    /// What its users wait for, in the plural, such as `pages`; `None`: it has no transactions.
    pub(super) transactions: Option<&'static str>,
    pub(super) read: Reader,
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
