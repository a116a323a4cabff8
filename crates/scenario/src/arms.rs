//! Arms: variants of a scenario with some keys changed.

use std::collections::BTreeMap;

use crate::error::{ScenarioError, renamed_to};
use crate::path::{self, find};
use crate::value::Node;

/// Keys that all arms share, so that they can be compared.
pub(crate) const SHARED: [&str; 4] = ["name", "replications", "seed", "arms"];

/// Refuses a key of `set` that is not a path, that all arms share, or that `set` has under its present name too.
pub(crate) fn check(key: &str, set: &[(String, Node)]) -> Result<(), ScenarioError> {
    if SHARED.contains(&key) {
        let rule = "must be the same for all arms; set it outside the arms";
        return Err(ScenarioError::new(key, rule));
    }
    path::read(key)?;
    let present = path::present(key);
    let twice = |other: &str| other != key && path::are_same(other, key);
    if present != key && set.iter().any(|(other, _)| twice(other)) {
        let name = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
        return Err(ScenarioError::new(
            key,
            renamed_to(&name(key), &name(&present)),
        ));
    }
    Ok(())
}

/// Sets each key of `set`, such as `links.up.qdisc` or `traffic[0].cc`, to its value.
pub(crate) fn apply(tree: &mut Node, set: &[(String, Node)]) -> Result<(), ScenarioError> {
    set.iter().try_for_each(|(key, value)| {
        let applied = check(key, set).and_then(|()| path::set(tree, key, value));
        applied.map_err(|error| ScenarioError {
            line: value.line,
            ..error
        })
    })
}

/// Replaces keys by their present names, and values by their canonical form, as read back from the variant they
/// led to.
pub(crate) fn canonical(set: &[(String, Node)], variant: &Node) -> Vec<(String, Node)> {
    let canonical: BTreeMap<_, _> = set
        .iter()
        .map(|(key, node)| {
            (
                path::present(key),
                find(variant, key).unwrap_or(node).clone(),
            )
        })
        .collect();
    canonical.into_iter().collect()
}
