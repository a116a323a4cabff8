//! TCP connections: `type = "tcp"`.

use sojourn_net::Rng;
use sojourn_sim::Traffic;
use sojourn_transport::{CcKind, OnCe};

use super::super::amount::Amount;
use super::super::decode::choice;
use super::super::encode::{amount, insert};
use super::super::error::ScenarioError;
use super::super::place::{Fields, Place};
use super::super::value::Table;

/// What connections do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tcp {
    pub(crate) cc: CcKind,
    /// `None`: data without end.
    pub(crate) bytes: Option<Amount>,
    pub(crate) ecn: bool,
    pub(crate) on_ce: OnCe,
    pub(crate) initial_window: u32,
}

impl Tcp {
    pub(super) const KEYS: [&str; 5] = ["cc", "bytes", "ecn", "on_ce", "initial_window"];

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let names = CcKind::ALL.map(CcKind::name);
        let answers = OnCe::ALL.map(OnCe::name);
        Ok(Self {
            cc: fields.or("cc", CcKind::Cubic, |p| {
                choice(p, "a congestion control", &names).map(|n| CcKind::ALL[n])
            })?,
            bytes: fields.option("bytes", Amount::read)?,
            ecn: fields.or("ecn", false, Place::flag)?,
            on_ce: fields.or("on_ce", OnCe::Reduce, |p| {
                choice(p, "an answer to CE", &answers).map(|n| OnCe::ALL[n])
            })?,
            initial_window: fields.or("initial_window", 10, |p| p.count(1, 100_000))?,
        })
    }

    pub(super) fn write(self, fields: &mut Table) {
        insert(fields, "cc", Some(self.cc.name().into()));
        insert(fields, "bytes", self.bytes.map(amount));
        insert(fields, "ecn", Some(self.ecn.into()));
        let own = self.on_ce != OnCe::Reduce;
        insert(fields, "on_ce", own.then(|| self.on_ce.name().into()));
        insert(fields, "initial_window", Some(self.initial_window.into()));
    }

    /// What the simulator runs; from `rng` comes how much is transferred.
    pub(super) fn plan(self, rng: Rng) -> Traffic {
        Traffic::Tcp {
            cc: self.cc,
            bytes: self.bytes.map(|amount| amount.draw(rng)),
            ecn: self.ecn,
            on_ce: self.on_ce,
            initial_window: self.initial_window,
        }
    }
}
