//! Parameters as JSON: their entries in a catalogue, and the JSON Schema of their values.

use serde_json::{Value, json};

use crate::{ParameterInfo, Unit};

/// What a flag may be in a table.
const SWITCHES: [&str; 6] = ["on", "off", "true", "false", "yes", "no"];

/// The entry of a parameter: `key`, `unit`, `default`, `derived`, `min`, `max`, `range`, `choices`, `meaning`,
/// `provenance` and, of a list of entries, `parameters`. `min` and `max` are in nanoseconds, bits per second, bytes or plain numbers.
pub fn entry(info: &ParameterInfo) -> Value {
    let choices = Some(&info.choices).filter(|choices| !choices.is_empty());
    let parameters: Vec<_> = info.entry.iter().map(entry).collect();
    let mut entry = json!({
        "key": info.key,
        "unit": info.unit.name(),
        "default": info.default,
        "derived": info.derived,
        "min": bound(info.unit, info.min),
        "max": bound(info.unit, info.max),
        "range": info.range,
        "choices": choices,
        "meaning": info.meaning,
        "provenance": info.provenance,
    });
    if !parameters.is_empty() {
        entry["parameters"] = parameters.into();
    }
    entry
}

/// A kept value in nanoseconds or as a plain number.
#[expect(
    clippy::cast_precision_loss,
    reason = "the ends of a range are small numbers"
)]
fn bound(unit: Unit, kept: u64) -> Value {
    match unit {
        Unit::Ratio(whole) | Unit::Ratios(whole) => json!(kept as f64 / f64::from(whole)),
        Unit::Decimal(places) => json!(kept as f64 / 10_f64.powi(places.cast_signed())),
        Unit::Millis => json!(1_000_000 * kept),
        Unit::Micros => json!(1_000 * kept),
        Unit::SignedSize(below) => json!(i128::from(kept) - i128::from(below)),
        _ => json!(kept),
    }
}

/// The JSON Schema of a parameter; it refers to the definitions `time`, `rate`, `size` and `qdisc`.
pub fn schema(info: &ParameterInfo) -> Value {
    let mut schema = values(info);
    let ParameterInfo {
        meaning,
        range,
        default,
        ..
    } = info;
    schema["description"] = format!("{meaning} (allowed: {range}; default: {default})").into();
    schema
}

fn values(info: &ParameterInfo) -> Value {
    let or_text = |kind: &str, pattern: &str| {
        any_of(vec![
            json!({ "type": kind }),
            json!({ "type": "string", "pattern": pattern }),
        ])
    };
    match info.unit {
        Unit::Time | Unit::Millis | Unit::Micros => reference("time"),
        Unit::Rate => reference("rate"),
        Unit::Size => any_of(vec![
            reference("size"),
            json!({ "type": "integer", "minimum": 0 }),
        ]),
        Unit::SignedSize(_) => or_text("integer", r"^-?\d.*$"),
        Unit::Packets => or_text("integer", r"^\d+[pP]?$"),
        Unit::Count(_) => or_text("integer", r"^\d+$"),
        Unit::CountOrOff(_) => or_text("integer", r"^(\d+|off)$"),
        Unit::Fraction | Unit::Weight | Unit::Decimal(_) => or_text("number", r"^[-+.\d]"),
        Unit::Percent => or_text("number", r"^[-+.\d].*%?$"),
        Unit::Ratio(_) => or_text("number", r"^[-+.\d].*(/\d+)?$"),
        Unit::Ratios(_) => json!({ "type": "string", "pattern": r"^[-+.\d/,]+$" }),
        Unit::Masked => {
            let byte = r"(0x[\da-fA-F]{1,2}|\d{1,3})";
            json!({ "type": "string", "pattern": format!("^{byte}/{byte}$") })
        }
        Unit::Numbers => any_of(vec![
            json!({ "type": "array", "items": { "type": "integer" } }),
            json!({ "type": "string", "pattern": r"^[\d ,]+$" }),
        ]),
        Unit::Flag => any_of(vec![
            json!({ "type": "boolean" }),
            json!({ "enum": SWITCHES }),
        ]),
        Unit::Profile | Unit::Choice(_) => json!({ "enum": info.choices }),
        Unit::Leaves => any_of(vec![
            reference("qdisc"),
            json!({ "type": "array", "items": reference("qdisc"), "minItems": 1 }),
            json!({ "type": "string" }),
        ]),
        Unit::Word(_) => json!({ "type": ["string", "integer"] }),
        Unit::Entries(_) => {
            let properties = info
                .entry
                .iter()
                .map(|info| (info.key.to_owned(), schema(info)));
            let properties: serde_json::Map<_, _> = properties.collect();
            let entry = json!({
                "type": "object",
                "properties": properties,
                "additionalProperties": false,
            });
            any_of(vec![
                json!({ "type": "array", "items": entry, "minItems": 1 }),
                json!({ "type": "string" }),
            ])
        }
    }
}

/// What one of several schemas allows.
pub fn any_of(mut schemas: Vec<Value>) -> Value {
    match schemas.len() {
        1 => schemas.remove(0),
        _ => json!({ "anyOf": schemas }),
    }
}

/// What the schema defines under this name.
pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
