//! Decodes a queue: text in the syntax of `tc`, or a table.

use sojourn_qdisc::QdiscSpec;

use crate::error::ScenarioError;
use crate::place::Place;
use crate::value::Value;

/// A queue in the syntax of `tc`, or a table with its `kind` and parameters.
pub(crate) fn qdisc(place: &Place<'_>) -> Result<QdiscSpec, ScenarioError> {
    match &place.node.value {
        Value::Text(text) => text.parse(),
        Value::Table(_) => {
            let fields = place.open_table()?;
            let kind = fields.need("kind", "\"fq_codel\"")?.text()?;
            let pairs: Vec<_> = fields
                .all()
                .filter(|(key, _)| *key != "kind")
                .map(|(key, place)| Ok((key.clone(), setting(&place)?)))
                .collect::<Result<_, _>>()?;
            QdiscSpec::from_pairs(kind, pairs.into_iter())
        }
        _ => {
            return Err(place.fail(format!(
                "{} is not a queue; expected a string such as \"fq_codel target 5ms\" or a table with a kind",
                place.node.shown()
            )));
        }
    }
    .map_err(|e| place.fail(e.to_string()))
}

/// The value of a queue's parameter as text.
pub(crate) fn setting(place: &Place<'_>) -> Result<String, ScenarioError> {
    match &place.node.value {
        Value::Table(table) if table.contains_key("kind") => part(place),
        Value::List(values) if values.iter().all(|v| matches!(v.value, Value::Int(_))) => {
            let numbers = place
                .list()?
                .iter()
                .map(setting)
                .collect::<Result<Vec<_>, _>>()?;
            Ok(numbers.join(" "))
        }
        Value::List(_) => {
            let queues = place
                .list()?
                .iter()
                .map(part)
                .collect::<Result<Vec<_>, _>>()?;
            Ok(queues.join(" / "))
        }
        _ => place.setting(),
    }
}

/// A queue inside another, as text.
fn part(place: &Place<'_>) -> Result<String, ScenarioError> {
    let text = qdisc(place)?.to_string();
    Ok(if text.contains(" / ") {
        format!("({text})")
    } else {
        text
    })
}
