//! Changes of a link during the run: `changes`.

use crate::key::{Form, Key};
use crate::plan::Change;
use sojourn_net::Duration;

use crate::error::ScenarioError;
use crate::place::Place;
use crate::value::{Node, Value};
use crate::write::{insert, list, table, time};

pub(super) const KEYS: &[Key] = &[
    Key::required("at", Form::POSITIVE_TIME, "Time of the change."),
    Key::optional("rate", Form::RATE, "New rate."),
    Key::optional("delay", Form::TIME, "New delay."),
];

/// Reads the list, in which each comes after the one before.
pub(super) fn read(place: &Place<'_>) -> Result<Vec<Change>, ScenarioError> {
    let mut before = Duration::ZERO;
    let mut changes = Vec::new();
    let places = place.list()?;
    if places.is_empty() {
        return Err(place.fail("empty; expected at least one change (or omit the key)"));
    }
    for place in places {
        let fields = place.fields(KEYS)?;
        let at_place = fields.need("at", "\"10s\"")?;
        let at = at_place.time()?;
        if at <= before {
            let rule = format!(
                "{} is not after the previous change; expected ascending times",
                at_place.node.shown()
            );
            return Err(at_place.fail(rule));
        }
        before = at;
        let (rate, delay) = (
            fields.option("rate", Place::rate)?,
            fields.option("delay", Place::time)?,
        );
        if rate.is_none() && delay.is_none() {
            let rule = "no change; expected rate = \"5mbit\", delay = \"20ms\" or both";
            return Err(place.fail(rule));
        }
        changes.push(Change { at, rate, delay });
    }
    Ok(changes)
}

/// The list as it is written.
pub(super) fn node(changes: &[Change]) -> Node {
    list(changes, |change| {
        let mut fields = table([("at", time(change.at))]);
        let rate = change.rate.map(|rate| rate.to_string().into());
        insert(&mut fields, "rate", rate);
        insert(&mut fields, "delay", change.delay.map(time));
        Value::Table(fields).into()
    })
}
