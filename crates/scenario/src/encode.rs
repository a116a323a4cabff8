//! Encodes a scenario as a tree of values: every key, in canonical units.
//!
//! What is inherited stays absent (an `rtt` that a block does not name), so that an arm which
//! sets the common value still reaches it.

use crate::declare::Keys as _;
use crate::decode::{Arm, Spec};
use crate::traffic::Block;
use crate::value::{Node, Table, Value, insert, list, table};

/// The canonical tree.
pub(crate) fn spec(spec: &Spec) -> Node {
    let mut table = without_arms(spec);
    if !spec.arms.is_empty() {
        let arms = spec.arms.iter().map(arm).collect();
        table.insert("arms".to_owned(), Value::List(arms).into());
    }
    Value::Table(table).into()
}

/// The canonical tree of the scenario that the arms begin from.
pub(crate) fn without_arms(spec: &Spec) -> Table {
    let mut top = table([
        ("links", Value::Table(spec.links.table()).into()),
        ("traffic", list(&spec.traffic, Block::node)),
    ]);
    spec.run.write(&mut top);
    let pages = spec.pages.iter();
    let pages: Table = pages
        .map(|(name, page)| (name.clone(), page.tree.clone()))
        .collect();
    let any = !pages.is_empty();
    insert(&mut top, "pages", any.then(|| Value::Table(pages).into()));
    top
}

fn arm(arm: &Arm) -> Node {
    Value::Table(table([
        ("name", arm.name.as_str().into()),
        (
            "set",
            Value::Table(arm.set.iter().cloned().collect()).into(),
        ),
    ]))
    .into()
}
