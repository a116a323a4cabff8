//! Voices: `type = "voip"`.

use sojourn_net::Duration;
use sojourn_sim::Traffic;

use super::super::encode::{insert, time};
use super::super::error::ScenarioError;
use super::super::place::{Fields, Place};
use super::super::value::Table;

/// What listeners do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voip {
    jitter_buffer: Duration,
}

impl Voip {
    pub(super) const KEYS: [&str; 1] = ["jitter_buffer"];

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let usual = Duration::from_millis(60);
        Ok(Self {
            jitter_buffer: fields.or("jitter_buffer", usual, Place::time)?,
        })
    }

    pub(super) fn write(self, fields: &mut Table) {
        insert(fields, "jitter_buffer", Some(time(self.jitter_buffer)));
    }

    pub(super) const fn plan(self) -> Traffic {
        Traffic::Voip {
            jitter_buffer: self.jitter_buffer,
        }
    }
}
