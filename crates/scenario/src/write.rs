//! Encodes values in canonical units.

use sojourn_net::{Bytes, Duration};

use crate::value::{Node, Table, Value};

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
