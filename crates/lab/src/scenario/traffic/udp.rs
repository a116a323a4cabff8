//! Datagrams at a constant bit rate: `type = "udp"`.

use sojourn_net::{Bytes, Rate};
use sojourn_sim::Traffic;

use super::super::encode::{insert, size};
use super::super::error::ScenarioError;
use super::super::place::Fields;
use super::super::value::{Table, Value};

/// What UDP over IPv4 can carry.
const LARGEST_DATAGRAM: u64 = 65_507;

/// What streams do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Udp {
    pub(crate) rate: Rate,
    pub(crate) payload: Bytes,
    pub(crate) spread: f64,
}

impl Udp {
    pub(super) const KEYS: [&str; 3] = ["rate", "payload", "spread"];

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        Ok(Self {
            rate: fields.need("rate", "\"1mbit\"")?.rate()?,
            payload: fields.or("payload", Bytes(1_448), |p| p.size(1, LARGEST_DATAGRAM))?,
            spread: fields.or("spread", 0.0, |p| p.number(0.0..=1.0))?,
        })
    }

    pub(super) fn write(self, fields: &mut Table) {
        insert(fields, "rate", Some(self.rate.to_string().into()));
        insert(fields, "payload", Some(size(self.payload)));
        insert(fields, "spread", Some(Value::Float(self.spread).into()));
    }

    pub(super) const fn plan(self) -> Traffic {
        Traffic::Udp {
            rate: self.rate,
            payload: self.payload,
            spread: self.spread,
        }
    }
}
