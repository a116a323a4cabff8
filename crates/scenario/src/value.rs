//! The tree of values that TOML, JSON and Python objects are decoded to.

use std::collections::BTreeMap;

use sojourn_net::{Bytes, Duration};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ScenarioError, cut};

/// A value and the line it stood on.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) line: Option<usize>,
}

/// What TOML and JSON have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in order, so that equal tables have equal texts.
pub(crate) type Table = BTreeMap<String, Node>;

impl PartialEq for Node {
    /// Whether the values are the same, wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Self { value, line: None }
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned()).into()
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Value::Text(text).into()
    }
}

impl From<bool> for Node {
    fn from(flag: bool) -> Self {
        Value::Bool(flag).into()
    }
}

impl From<u32> for Node {
    fn from(n: u32) -> Self {
        Value::Int(n.into()).into()
    }
}

impl Node {
    pub(crate) fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|e| ScenarioError {
            path: String::new(),
            rule: format!("invalid TOML: {}", e.message()),
            line: e.span().map(|span| lines.line(span.start)),
        })?;
        let value = toml_table(table.get_ref(), &lines)?;
        Ok(Self {
            value,
            line: Some(1),
        })
    }

    pub(crate) fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let value = serde_json::from_str(text)
            .map_err(|e| ScenarioError::new("", format!("invalid JSON: {e}")))?;
        json_value("", value)
    }

    /// The line of what stands at `path`, such as `traffic[2].cc`, or of what it is part of.
    pub(crate) fn line_at(&self, path: &str) -> Option<usize> {
        let (mut node, mut line) = (self, None);
        for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
            let next = match &node.value {
                Value::Table(table) => table.get(part),
                Value::List(nodes) => part
                    .strip_suffix(']')
                    .and_then(|n| nodes.get(n.parse::<usize>().ok()?)),
                _ => None,
            };
            let Some(next) = next else { break };
            (node, line) = (next, next.line.or(line));
        }
        line
    }

    /// How many values the tree has.
    pub(crate) fn values(&self) -> usize {
        1 + match &self.value {
            Value::List(nodes) => nodes.iter().map(Self::values).sum::<usize>(),
            Value::Table(table) => table.values().map(Self::values).sum::<usize>(),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => 0,
        }
    }

    /// The value as an error message shows it.
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            Value::Bool(flag) => flag.to_string(),
            Value::Int(n) => n.to_string(),
            Value::Float(x) => format!("{x:?}"),
            Value::Text(text) => format!("\"{}\"", cut(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(after_breaks).collect())
    }

    /// The line, from 1, of the byte at `offset`.
    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|&start| start <= offset)
    }
}

fn toml_table(table: &DeTable<'_>, lines: &Lines) -> Result<Value, ScenarioError> {
    let mut out = Table::new();
    for (key, value) in table {
        let mut node = toml_value(value, lines)?;
        // A table's own span begins with its header, or nowhere if it is implied.
        node.line = Some(lines.line(key.span().start));
        out.insert(key.get_ref().to_string(), node);
    }
    Ok(Value::Table(out))
}

fn toml_value(value: &Spanned<DeValue<'_>>, lines: &Lines) -> Result<Node, ScenarioError> {
    let line = lines.line(value.span().start);
    let fail = |rule: String| ScenarioError {
        path: String::new(),
        rule,
        line: Some(line),
    };
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
            .map(Value::Int)
            .map_err(|_| {
                fail(format!(
                    "the number {n} is out of range; expected -2^63 to 2^63 - 1"
                ))
            })?,
        DeValue::Float(x) => x
            .as_str()
            .parse()
            .map(Value::Float)
            .map_err(|_| fail(format!("{x} is not a number")))?,
        DeValue::Datetime(date) => {
            return Err(fail(format!(
                "dates ({date}) are not supported; expected a string, a boolean, a number, a list or a table"
            )));
        }
        DeValue::Array(list) => Value::List(
            list.iter()
                .map(|item| toml_value(item, lines))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => toml_table(table, lines)?,
    };
    Ok(Node {
        value,
        line: Some(line),
    })
}

fn json_value(path: &str, value: serde_json::Value) -> Result<Node, ScenarioError> {
    use serde_json::Value as Json;
    Ok(match value {
        Json::Null => {
            let rule = if path.is_empty() {
                "null is not supported; expected a table"
            } else {
                "null is not supported in a list; remove the item"
            };
            return Err(ScenarioError::new(path, rule));
        }
        Json::Bool(flag) => flag.into(),
        Json::String(text) => text.into(),
        Json::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => Value::Int(n).into(),
            (None, Some(x)) if n.is_f64() => Value::Float(x).into(),
            _ => {
                let rule = format!("the number {n} is out of range; expected -2^63 to 2^63 - 1");
                return Err(ScenarioError::new(path, rule));
            }
        },
        Json::Array(items) => {
            let nodes = items.into_iter().enumerate();
            let nodes = nodes.map(|(n, item)| json_value(&format!("{path}[{n}]"), item));
            Value::List(nodes.collect::<Result<_, _>>()?).into()
        }
        Json::Object(fields) => {
            let mut out = Table::new();
            for (key, value) in fields {
                // What is null was not given: Python's None.
                if !value.is_null() {
                    let node = json_value(&joined(path, &key), value)?;
                    out.insert(key, node);
                }
            }
            Value::Table(out).into()
        }
    })
}

/// The path of `key` below `path`.
pub(crate) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

pub(crate) fn table<const N: usize>(fields: [(&str, Node); N]) -> Table {
    fields.map(|(key, node)| (key.to_owned(), node)).into()
}

pub(crate) fn insert(fields: &mut Table, key: &str, node: Option<Node>) {
    if let Some(node) = node {
        fields.insert(key.to_owned(), node);
    }
}

pub(crate) fn list<T>(items: &[T], encode: impl Fn(&T) -> Node) -> Node {
    Value::List(items.iter().map(encode).collect()).into()
}

pub(crate) fn time(time: Duration) -> Node {
    time_text(time).into()
}

pub(crate) fn size(size: Bytes) -> Node {
    format!("{}b", size.0).into()
}

/// `70s`, `50ms`, `12500us`: the largest unit that leaves a whole number.
pub(crate) fn time_text(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let lines = Lines::of("a\nbc\n\nd");
        let of = |offset| lines.line(offset);
        assert_eq!(
            [of(0), of(1), of(2), of(4), of(5), of(6)],
            [1, 1, 2, 2, 3, 4]
        );
    }

    #[test]
    fn a_text_that_is_not_toml_or_json_says_where() {
        let toml = Node::from_toml("a = 1\nb = = 2\n").unwrap_err();
        assert_eq!(toml.line, Some(2), "{toml}");
        let json = Node::from_json("{\"a\": }").unwrap_err().to_string();
        assert!(json.contains("line 1"), "{json}");
    }
}
