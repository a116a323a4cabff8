//! Pieces of a JSON Schema.

use serde_json::{Value, json};

/// What one of several schemas allows.
pub(super) fn any_of(mut schemas: Vec<Value>) -> Value {
    match schemas.len() {
        1 => schemas.remove(0),
        _ => json!({ "anyOf": schemas }),
    }
}

/// What the schema defines under this name.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
