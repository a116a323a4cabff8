//! How much a connection transfers: the same for all of a block, or drawn for each.

use crate::decode::choice;
use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::Place;
use crate::value::Value;
use sojourn_apps::Amount;

/// The largest transfer that may be asked for.
const MOST: u64 = 1 << 50;

const NAMES: [&str; 3] = ["lognormal", "exponential", "pareto"];

const LOGNORMAL: &[Key] = &[
    Key::required(
        "distribution",
        Form::Choice(|| vec![NAMES[0]]),
        "Log-normal distribution.",
    ),
    Key::required("median", Form::SIZE, "Median."),
    Key::required(
        "sigma",
        Form::Number(0.0, 5.0),
        "Standard deviation of the natural logarithm.",
    ),
];
const EXPONENTIAL: &[Key] = &[
    Key::required(
        "distribution",
        Form::Choice(|| vec![NAMES[1]]),
        "Exponential distribution.",
    ),
    Key::required("mean", Form::SIZE, "Mean."),
];
const PARETO: &[Key] = &[
    Key::required(
        "distribution",
        Form::Choice(|| vec![NAMES[2]]),
        "Pareto distribution.",
    ),
    Key::required("least", Form::SIZE, "Smallest value."),
    Key::required("shape", Form::Number(0.1, 100.0), "Exponent of the tail."),
];

/// A size or a distribution of sizes.
pub(crate) const FORM: Form = Form::Either(&[
    Form::SIZE,
    Form::Table(LOGNORMAL),
    Form::Table(EXPONENTIAL),
    Form::Table(PARETO),
]);

/// A size, or a table that names a distribution.
pub(crate) fn read(place: &Place<'_>) -> Result<Amount, ScenarioError> {
    let size = |place: &Place<'_>| place.size(1, MOST);
    if !matches!(place.node.value, Value::Table(_)) {
        return size(place).map(Amount::Fixed);
    }
    let named = place.open_table()?.need("distribution", "\"lognormal\"")?;
    Ok(match choice(&named, "distribution", &NAMES)? {
        0 => {
            let fields = place.fields(LOGNORMAL)?;
            Amount::Lognormal {
                median: size(&fields.need("median", "\"36kb\"")?)?,
                sigma: fields.need("sigma", "1.0")?.number(0.0..=5.0)?,
            }
        }
        1 => {
            let fields = place.fields(EXPONENTIAL)?;
            Amount::Exponential {
                mean: size(&fields.need("mean", "\"36kb\"")?)?,
            }
        }
        _ => {
            let fields = place.fields(PARETO)?;
            Amount::Pareto {
                least: size(&fields.need("least", "\"4kb\"")?)?,
                shape: fields.need("shape", "1.2")?.number(0.1..=100.0)?,
            }
        }
    })
}

/// The distribution's name, where there is one.
pub(crate) const fn name(amount: Amount) -> Option<&'static str> {
    match amount {
        Amount::Fixed(_) => None,
        Amount::Lognormal { .. } => Some(NAMES[0]),
        Amount::Exponential { .. } => Some(NAMES[1]),
        Amount::Pareto { .. } => Some(NAMES[2]),
    }
}
