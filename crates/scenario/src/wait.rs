//! Waiting times: fixed, or drawn from a distribution.

use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::{Place, choice};
use crate::value::{Node, Table, Value, insert, time};
use sojourn_apps::Wait;

const EXPONENTIAL: &[Key] = &[
    Key::required(
        "distribution",
        Form::Choice(|| vec!["exponential"]),
        "Exponential distribution.",
    ),
    Key::required("mean", Form::POSITIVE_TIME, "Mean."),
];

/// A time or a distribution of times.
pub(crate) const FORM: Form = Form::Either(&[Form::TIME, Form::Table(EXPONENTIAL)]);

/// A time, or a table that names a distribution.
pub(crate) fn read(place: &Place<'_>) -> Result<Wait, ScenarioError> {
    if !matches!(place.node.value, Value::Table(_)) {
        return place.time().map(Wait::Fixed);
    }
    let named = place
        .open_table()?
        .need("distribution", "\"exponential\"")?;
    choice(&named, "distribution", &["exponential"])?;
    let fields = place.fields(EXPONENTIAL)?;
    let mean = fields.need("mean", "\"5s\"")?.time()?;
    Ok(Wait::Exponential { mean })
}

pub(crate) fn write(wait: Wait) -> Node {
    match wait {
        Wait::Fixed(fixed) => time(fixed),
        Wait::Exponential { mean } => {
            let mut table = Table::new();
            insert(&mut table, "distribution", Some("exponential".into()));
            insert(&mut table, "mean", Some(time(mean)));
            Value::Table(table).into()
        }
    }
}
