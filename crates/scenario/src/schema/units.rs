//! The schema of times, rates, sizes and other texts.

use serde_json::{Map, Value, json};
use sojourn_qdisc::LinkLayer;
use sojourn_transport::CcKind;

use sojourn_schema::json::any_of;

/// Digits with or without a decimal point.
const DECIMAL: &str = r"(\d+\.?\d*|\.\d+)";
const TIME_UNITS: &str = "(s|secs?|ms|msecs?|us|usecs?|µs|ns|nsecs?)";
const RATE_UNITS: &str = "([kmgt]i?)?(bit(/s)?|bps)";
const SIZE_UNITS: &str = "([kmgt]i?)?(b|bit)?";

pub(super) fn definitions() -> Map<String, Value> {
    let time = format!(r"\s*{DECIMAL}\s*{TIME_UNITS}\s*");
    let size = format!(r"\s*{DECIMAL}\s*{SIZE_UNITS}\s*");
    let layers: Vec<_> = LinkLayer::names().collect();
    let controls = CcKind::ALL.map(CcKind::name);
    let all = [
        (
            "name",
            json!({
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "pattern": r"^\S(.*\S)?$",
                "description": "A name: 1 to 200 characters on one line.",
            }),
        ),
        ("text", json!({ "type": "string" })),
        (
            "time",
            text(
                &time,
                &["5ms", "10s"],
                "A time with its unit: s, ms, us, ns.",
            ),
        ),
        (
            "positive_time",
            text(
                &format!(r"(?!\s*[0.]*\s*[^\d.\s]){time}"),
                &["5ms", "10s"],
                "A time > 0 with its unit: s, ms, us, ns.",
            ),
        ),
        (
            "rate",
            text(
                &format!(r"(?!\s*[0.]*\s*[^\d.\s])\s*{DECIMAL}\s*{RATE_UNITS}\s*"),
                &["10mbit", "1gbit"],
                "A rate with its unit: bit, kbit, mbit, gbit, tbit (powers of 1000 bit/s).",
            ),
        ),
        (
            "size",
            text(
                &size,
                &["1514b", "64kb"],
                "A quantity of data with its unit: b, kb, mb, gb (powers of 1024 bytes).",
            ),
        ),
        (
            "percent",
            text(
                r"\s*(100(\.0*)?|\d?\d(\.\d*)?|\.\d+)\s*%\s*",
                &["1%", "0.1%"],
                "A percentage: 0% to 100%.",
            ),
        ),
        (
            "packets",
            text(
                r"\s*[1-9]\d{0,6}p\s*",
                &["1000p"],
                "A number of packets with the suffix p.",
            ),
        ),
        (
            "dscp",
            any_of(vec![
                text(
                    r"CS[0-7]|AF[1-4][1-3]|EF|VA|LE|BE|\d|[1-5]\d|6[0-3]",
                    &["CS0", "EF", "AF42", "LE"],
                    "A DSCP, by name or number.",
                ),
                json!({ "type": "integer", "minimum": 0, "maximum": 63 }),
            ]),
        ),
        (
            "overhead",
            any_of(vec![
                json!({ "enum": layers }),
                text(
                    &format!(r"\s*-?{size}|\s*({})(\s+ether-vlan)?\s*", layers.join("|")),
                    &["18b", "pppoe-ptm ether-vlan"],
                    "Bytes added to each frame, or a link layer by its tc name.",
                ),
            ]),
        ),
        (
            "congestion_control",
            any_of(vec![
                json!({ "enum": controls }),
                json!({
                    "type": "string",
                    "pattern": format!(r"^\s*({})(\s.*)?$", controls.join("|")),
                }),
            ]),
        ),
    ];
    all.map(|(name, schema)| (name.to_owned(), schema))
        .into_iter()
        .collect()
}

/// A text that a pattern describes as a whole, in upper or lower case.
fn text(pattern: &str, examples: &[&str], description: &str) -> Value {
    json!({
        "type": "string",
        "pattern": format!("^({})$", any_case(pattern)),
        "examples": examples,
        "description": description,
    })
}

/// The pattern for both cases, since JSON Schema has no flag for it: `[kK]` for `k`.
fn any_case(pattern: &str) -> String {
    let mut out = String::new();
    let (mut escaped, mut in_class) = (false, false);
    for c in pattern.chars() {
        if escaped || !c.is_ascii_alphabetic() {
            out.push(c);
        } else if in_class {
            out.extend([c.to_ascii_lowercase(), c.to_ascii_uppercase()]);
        } else {
            out.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
        }
        match c {
            '[' if !escaped => in_class = true,
            ']' if !escaped => in_class = false,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    out
}
