//! Arms: variants of a scenario with some keys changed.

use std::collections::BTreeMap;

use crate::error::ScenarioError;
use crate::path::{self, find};
use crate::value::Node;

/// Keys that all arms share, so that they can be compared.
pub(crate) const SHARED: [&str; 4] = ["name", "replications", "seed", "arms"];

/// Refuses a key that is not a path, or that all arms share.
pub(crate) fn check(key: &str) -> Result<(), ScenarioError> {
    if SHARED.contains(&key) {
        let rule = "must be the same for all arms; set it outside the arms";
        return Err(ScenarioError::new(key, rule));
    }
    path::read(key).map(drop)
}

/// Sets `key`, such as `links.up.qdisc` or `traffic[0].cc`, to `value`.
pub(crate) fn set(tree: &mut Node, key: &str, value: &Node) -> Result<(), ScenarioError> {
    check(key)?;
    path::set(tree, key, value)
}

/// Replaces values by their canonical form, as read back from the variant they led to.
pub(crate) fn canonical(set: &[(String, Node)], variant: &Node) -> Vec<(String, Node)> {
    let canonical: BTreeMap<_, _> = set
        .iter()
        .map(|(key, node)| (key.clone(), find(variant, key).unwrap_or(node).clone()))
        .collect();
    canonical.into_iter().collect()
}
