//! Scenarios as earlier versions saved them.

use crate::link::UNLIMITED;
use crate::traffic::Direction;
use crate::value::{Node, Value};

/// Adds the links that a direction needs and that are not defined, as unlimited links.
pub(crate) fn name_unlimited(tree: &mut Node) {
    let Value::Table(top) = &mut tree.value else {
        return;
    };
    let directed = match top.get("traffic").map(|traffic| &traffic.value) {
        Some(Value::List(blocks)) => blocks.iter().any(|block| match &block.value {
            Value::Table(block) => block.contains_key("direction"),
            _ => false,
        }),
        _ => false,
    };
    if let Some(Value::Table(links)) = top.get_mut("links").map(|links| &mut links.value)
        && directed
    {
        for name in Direction::NAMES {
            links
                .entry(name.to_owned())
                .or_insert_with(|| UNLIMITED.into());
        }
    }
}
