//! The schema of queues: as text, and as a table with a key for each parameter.

use serde_json::{Map, Value, json};
use sojourn_qdisc::{PYTHON_PREFIX, QdiscInfo, catalogue};
use sojourn_schema::Unit;
use sojourn_schema::json::{reference, schema as parameter_schema};

pub(super) fn definitions() -> Map<String, Value> {
    let queues = catalogue();
    let names: Vec<_> = queues.iter().map(|queue| queue.name).collect();
    // The characters that `register` permits need no escape apart from the full stop.
    let python = format!(r"{PYTHON_PREFIX}\S*");
    let words = names.iter().map(|name| name.replace('.', r"\."));
    let words: Vec<_> = words.chain([python.clone()]).collect();
    let pattern = format!(r"^\s*({})(\s.*)?$", words.join("|"));
    let tables = names.iter().map(|name| reference(&table_name(name)));
    let tables: Vec<_> = tables.chain([python_class(&python)]).collect();
    let qdisc = json!({
        "description": "A queue: a string in tc syntax, or a table with its kind and parameters.",
        "anyOf": [
            { "enum": names },
            { "type": "string", "pattern": pattern, "examples": ["fq_codel target 5ms"] },
            { "oneOf": tables },
        ],
    });
    let tables = queues
        .iter()
        .map(|queue| (table_name(queue.name), table(queue)));
    std::iter::once(("qdisc".to_owned(), qdisc))
        .chain(tables)
        .collect()
}

fn table_name(queue: &str) -> String {
    format!("qdisc_{queue}")
}

/// A Python class, whose name matches `pattern`.
fn python_class(pattern: &str) -> Value {
    json!({
        "type": "object",
        "description": "Name of a Python queue class, as in saved results",
        "properties": { "kind": { "type": "string", "pattern": format!("^{pattern}$") } },
        "required": ["kind"],
    })
}

fn table(queue: &QdiscInfo) -> Value {
    let mut properties = Map::new();
    properties.insert("kind".to_owned(), json!({ "const": queue.name }));
    for parameter in &queue.parameters {
        if let Unit::Choice(words) = parameter.unit {
            for word in words {
                properties.insert((*word).to_owned(), json!({ "enum": [true, "on"] }));
            }
        }
        properties.insert(parameter.key.to_owned(), parameter_schema(parameter));
    }
    json!({
        "type": "object",
        "description": queue.summary,
        "properties": properties,
        "required": ["kind"],
        "additionalProperties": false,
    })
}
