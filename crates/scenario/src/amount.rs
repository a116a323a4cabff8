//! The size of transfers: fixed, or drawn from a distribution for each.

use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::{Place, choice};
use crate::value::{Node, Value, size};
use sojourn_apps::Amount;

/// A size, at most the largest transfer that may be asked for.
const SIZE: Form = Form::Size(1, 1 << 50);

const NAMES: [&str; 3] = ["lognormal", "exponential", "pareto"];

const LOGNORMAL: &[Key] = &[
    Key::required(
        "distribution",
        Form::Choice(|| vec![NAMES[0]]),
        "Log-normal distribution.",
    ),
    Key::required("median", SIZE, "Median."),
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
    Key::required("mean", SIZE, "Mean."),
];
const PARETO: &[Key] = &[
    Key::required(
        "distribution",
        Form::Choice(|| vec![NAMES[2]]),
        "Pareto distribution.",
    ),
    Key::required("least", SIZE, "Smallest value."),
    Key::required("shape", Form::Number(0.1, 100.0), "Exponent of the tail."),
];

/// A size or a distribution of sizes.
pub(crate) const FORM: Form = Form::Either(&[
    SIZE,
    Form::Table(LOGNORMAL),
    Form::Table(EXPONENTIAL),
    Form::Table(PARETO),
]);

/// A size, or a table that names a distribution.
pub(crate) fn read(place: &Place<'_>) -> Result<Amount, ScenarioError> {
    if !matches!(place.node.value, Value::Table(_)) {
        return place.formed(FORM).size().map(Amount::Fixed);
    }
    let named = place.open_table()?.need("distribution", "\"lognormal\"")?;
    Ok(match choice(&named, "distribution", &NAMES)? {
        0 => {
            let fields = place.fields(LOGNORMAL)?;
            Amount::Lognormal {
                median: fields.need("median", "\"36kb\"")?.size()?,
                sigma: fields.need("sigma", "1.0")?.number()?,
            }
        }
        1 => {
            let fields = place.fields(EXPONENTIAL)?;
            Amount::Exponential {
                mean: fields.need("mean", "\"36kb\"")?.size()?,
            }
        }
        _ => {
            let fields = place.fields(PARETO)?;
            Amount::Pareto {
                least: fields.need("least", "\"4kb\"")?.size()?,
                shape: fields.need("shape", "1.2")?.number()?,
            }
        }
    })
}

/// A size, or the table of a distribution.
pub(crate) fn write(amount: Amount) -> Node {
    let named = name(amount).map(|name| ("distribution", name.into()));
    let fields: Vec<(&str, Node)> = match amount {
        Amount::Fixed(bytes) => return size(bytes),
        Amount::Lognormal { median, sigma } => {
            vec![
                ("median", size(median)),
                ("sigma", Value::Float(sigma).into()),
            ]
        }
        Amount::Exponential { mean } => vec![("mean", size(mean))],
        Amount::Pareto { least, shape } => {
            vec![
                ("least", size(least)),
                ("shape", Value::Float(shape).into()),
            ]
        }
    };
    let all = named.into_iter().chain(fields);
    Value::Table(all.map(|(key, node)| (key.to_owned(), node)).collect()).into()
}

/// The distribution's name, where there is one.
const fn name(amount: Amount) -> Option<&'static str> {
    match amount {
        Amount::Fixed(_) => None,
        Amount::Lognormal { .. } => Some(NAMES[0]),
        Amount::Exponential { .. } => Some(NAMES[1]),
        Amount::Pareto { .. } => Some(NAMES[2]),
    }
}
