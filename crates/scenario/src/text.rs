//! Text forms of a tree of values: canonical JSON and TOML.

use std::fmt::Write as _;

use crate::value::{Node, Table, Value, joined};

/// The order in which a person expects keys; others follow by name.
const ORDER: [&str; 12] = [
    "name",
    "type",
    "duration",
    "warmup",
    "replications",
    "seed",
    "sample",
    "rtt",
    "rate",
    "qdisc",
    "direction",
    "count",
];

/// JSON without spaces, keys sorted, so that equal trees have equal texts.
pub(crate) fn json(node: &Node) -> String {
    let mut out = String::new();
    inline(&mut out, node, ":", &quoted);
    out
}

/// A value of TOML on one line.
pub(crate) fn inline_toml(node: &Node) -> String {
    let mut out = String::new();
    inline(&mut out, node, " = ", &toml_key);
    out
}

/// TOML with a header for each table.
pub(crate) fn toml(table: &Table) -> String {
    let mut out = String::new();
    toml_table(&mut out, "", table);
    out
}

fn toml_table(out: &mut String, path: &str, table: &Table) {
    let mut keys: Vec<_> = table.iter().collect();
    keys.sort_by_key(|(key, _)| ORDER.iter().position(|o| o == key).unwrap_or(ORDER.len()));
    let (plain, nested): (Vec<_>, Vec<_>) = keys.into_iter().partition(|(_, n)| !has_header(n));
    for (key, node) in plain {
        let _ = write!(out, "{} = ", toml_key(key));
        inline(out, node, " = ", &toml_key);
        out.push('\n');
    }
    for (key, node) in nested {
        let path = joined(path, &toml_key(key));
        match &node.value {
            Value::Table(table) => {
                // A table of tables needs no header of its own.
                if table.is_empty() || !table.values().all(has_header) {
                    let _ = write!(out, "\n[{path}]\n");
                }
                toml_table(out, &path, table);
            }
            Value::List(items) => {
                for item in items {
                    if let Value::Table(table) = &item.value {
                        let _ = write!(out, "\n[[{path}]]\n");
                        toml_table(out, &path, table);
                    }
                }
            }
            _ => {}
        }
    }
}

fn has_header(node: &Node) -> bool {
    let is_table = |node: &Node| matches!(node.value, Value::Table(_));
    match &node.value {
        Value::Table(_) => true,
        Value::List(items) => !items.is_empty() && items.iter().all(is_table),
        _ => false,
    }
}

/// A value on one line, in what JSON and TOML share.
fn inline(out: &mut String, node: &Node, equals: &str, key_text: &dyn Fn(&str) -> String) {
    let gap = if equals == ":" { "," } else { ", " };
    match &node.value {
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        // The shortest decimals that read back as the same number, with a point or exponent.
        Value::Float(x) => {
            let _ = write!(out, "{x:?}");
        }
        Value::Text(text) => out.push_str(&quoted(text)),
        Value::List(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { gap } else { "" });
                inline(out, item, equals, key_text);
            }
            out.push(']');
        }
        Value::Table(table) => {
            out.push('{');
            for (n, (key, value)) in table.iter().enumerate() {
                out.push_str(if n > 0 { gap } else { "" });
                out.push_str(&key_text(key));
                out.push_str(equals);
                inline(out, value, equals, key_text);
            }
            out.push('}');
        }
    }
}

fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// A text between quotes, with the escapes that JSON and TOML share.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
