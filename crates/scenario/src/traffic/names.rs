//! Names of traffic, which select random streams and label records.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::block::{Block, MOST_FLOWS, Way};
use crate::error::ScenarioError;
use crate::place::Place;

pub(super) fn name_the_nameless(blocks: &mut [Block]) {
    let mut taken: BTreeSet<String> = blocks.iter().map(|b| b.name.clone()).collect();
    // Where the search for each name goes on: thousands of blocks may share one.
    let mut next: BTreeMap<String, u32> = BTreeMap::new();
    for block in blocks.iter_mut().filter(|b| b.name.is_empty()) {
        let plain = match block.way {
            Way::Direction(direction) => {
                format!("{} {}", block.kind.name(), direction.name())
            }
            Way::Path { .. } => block.kind.name().to_owned(),
        };
        let number = next.entry(plain.clone()).or_insert(1);
        // Ends: only finitely many names are taken.
        block.name = loop {
            let name = match *number {
                1 => plain.clone(),
                n => format!("{plain} {n}"),
            };
            *number += 1;
            if taken.insert(name.clone()) {
                break name;
            }
        };
    }
}

/// Names are what random streams and records go by, so no two flows may share one.
pub(super) fn check_names(blocks: &[Block], places: &[Place<'_>]) -> Result<(), ScenarioError> {
    let fail = |place: &Place<'_>, rule: String| {
        let mut error = place.fail(rule);
        error.path.push_str(".name");
        Err(error)
    };
    let total: u64 = blocks.iter().map(|b| u64::from(b.count)).sum();
    if total > u64::from(MOST_FLOWS) {
        let place = &places[places.len() - 1];
        let mut error = place.fail(format!(
            "too many flows: {total}; expected at most {MOST_FLOWS}"
        ));
        error.path.push_str(".count");
        return Err(error);
    }
    let groups: BTreeSet<&str> = blocks.iter().map(|b| b.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for (block, place) in blocks.iter().zip(places) {
        let name = &block.name;
        if !seen.insert(name) {
            return fail(place, format!("duplicate traffic name \"{name}\""));
        }
        if let Some(clash) = clash(block, &groups) {
            let rule = format!(
                "a flow of \"{name}\" would have the same name as the traffic block \"{clash}\"; rename one of them"
            );
            return fail(place, rule);
        }
    }
    Ok(())
}

/// Other traffic with the name of a flow of `block`: flow k of a block of many is `name/k`.
fn clash<'a>(block: &Block, names: &BTreeSet<&'a str>) -> Option<&'a str> {
    let prefix = format!("{}/", block.name);
    let below = names.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    below
        .copied()
        .take_while(|name| block.count > 1 && name.starts_with(&prefix))
        .find(|name| {
            let number = name[prefix.len()..].parse::<u32>();
            number.is_ok_and(|n| (1..=block.count).contains(&n))
        })
}
