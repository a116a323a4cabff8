//! Decodes the traffic blocks of a scenario.

mod block;
mod bridged;
mod dash;
mod media;
mod ping;
mod program;
mod quic;
mod responsiveness;
mod rounds;
mod sessions;
mod tcp;
mod transport;
mod udp;
mod voip;
mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use sojourn_net::Duration;

use crate::declare::{KeyValue, Keys as _, Name};
use crate::error::ScenarioError;
use crate::key::Key;
use crate::link::Links;
use crate::page::Pages;
use crate::place::{Fields, Place, choice};
use crate::value::Value;
use block::{Common, Context, MOST_FLOWS, TrafficType, check_way, way};

pub(crate) use block::{Block, Direction, Way};
pub use block::{Measured, TrafficProperties};

/// Every type of traffic, each declared in its own file.
const TYPES: &[TrafficType] = &[
    tcp::TYPE,
    udp::TYPE,
    ping::TYPE,
    quic::TYPE,
    web::TYPE,
    sessions::TYPE,
    rounds::REQUEST,
    rounds::INCAST,
    dash::TYPE,
    voip::TYPE,
    media::TYPE,
    responsiveness::TYPE,
    program::TYPE,
    bridged::TYPE,
];

/// The keys of each type of traffic.
pub(crate) fn keys() -> impl Iterator<Item = (&'static str, Vec<Key>)> {
    TYPES.iter().map(|known| (known.name, keys_of(known)))
}

/// The properties of each type of traffic.
pub(crate) fn properties() -> impl Iterator<Item = (&'static str, TrafficProperties)> {
    TYPES.iter().map(|known| (known.name, known.properties))
}

fn keys_of(chosen: &TrafficType) -> Vec<Key> {
    [&[Common::KEYS], chosen.keys].concat().concat()
}

/// Reads all blocks and gives those a name that have none.
pub(crate) fn blocks(
    top: &Fields<'_>,
    links: &Links,
    pages: &Pages,
    duration: Duration,
) -> Result<Vec<Block>, ScenarioError> {
    let example = "[{ type = \"tcp\", direction = \"up\" }]";
    let place = top.need("traffic", example)?;
    let places = place.list()?;
    if places.is_empty() {
        return Err(place.fail(format!(
            "empty; expected at least one traffic block, such as {example}"
        )));
    }
    let mut blocks: Vec<_> = places
        .iter()
        .map(|place| block(place, links, pages, duration))
        .collect::<Result<_, _>>()?;
    name_the_nameless(&mut blocks);
    check_names(&blocks, &places)?;
    Ok(blocks)
}

/// A block whose name is empty if none was given.
fn block(
    place: &Place<'_>,
    links: &Links,
    pages: &Pages,
    duration: Duration,
) -> Result<Block, ScenarioError> {
    let type_place = place.open_table()?.need("type", "\"tcp\"")?;
    let names: Vec<_> = TYPES.iter().map(|known| known.name).collect();
    let chosen = &TYPES[choice(&type_place, "traffic type", &names)?];
    let fields = place.fields(&keys_of(chosen))?;
    let count = fields.value("count", KeyValue::read)?;
    let way = way(place, &fields, links)?;
    check_rtts(&fields, count)?;
    let mut keys = Common::read(&fields)?;
    if keys.path.is_some() {
        keys.r#return.get_or_insert_default();
    }
    let context = Context {
        pages,
        count,
        duration,
    };
    let block = Block {
        way,
        kind: chosen.settings(&fields, &context)?,
        keys,
    };
    check_times(&block, &fields, duration)?;
    check_way(&block.way, block.kind.is_answered(), &fields, links)?;
    Ok(block)
}

/// Refuses a list of RTTs that has not one for each flow.
fn check_rtts(fields: &Fields<'_>, count: u32) -> Result<(), ScenarioError> {
    let Some(place) = fields.get("rtt") else {
        return Ok(());
    };
    match &place.node.value {
        Value::List(rtts) if rtts.len() != count as usize => {
            let given = rtts.len();
            Err(place.fail(format!("{given} values; expected {count}, one per flow")))
        }
        _ => Ok(()),
    }
}

fn check_times(
    block: &Block,
    fields: &Fields<'_>,
    duration: Duration,
) -> Result<(), ScenarioError> {
    if let Some(place) = fields.get("start")
        && block.keys.start >= duration
    {
        let given = place.node.shown();
        return Err(place.fail(format!(
            "{given} is not before the end of the run; expected less than the duration"
        )));
    }
    if let (Some(place), Some(stop)) = (fields.get("stop"), block.keys.stop)
        && stop <= block.keys.start
    {
        let given = place.node.shown();
        return Err(place.fail(format!(
            "{given} is not after the start; expected a later time"
        )));
    }
    Ok(())
}

fn name_the_nameless(blocks: &mut [Block]) {
    let mut taken: BTreeSet<String> = blocks.iter().map(|b| b.name().to_owned()).collect();
    // Where the search for each name goes on: thousands of blocks may share one.
    let mut next: BTreeMap<String, u32> = BTreeMap::new();
    for block in blocks.iter_mut().filter(|b| b.name().is_empty()) {
        let plain = match block.way {
            Way::Direction(direction) => {
                format!("{} {}", block.kind.name(), direction.name())
            }
            Way::Path { .. } => block.kind.name().to_owned(),
        };
        let number = next.entry(plain.clone()).or_insert(1);
        // Ends: only finitely many names are taken.
        let name = loop {
            let name = match *number {
                1 => plain.clone(),
                n => format!("{plain} {n}"),
            };
            *number += 1;
            if taken.insert(name.clone()) {
                break name;
            }
        };
        block.keys.name = Some(Name(name));
    }
}

/// Names are what random streams and records go by, so no two flows may share one.
fn check_names(blocks: &[Block], places: &[Place<'_>]) -> Result<(), ScenarioError> {
    let fail = |place: &Place<'_>, rule: String| {
        let mut error = place.fail(rule);
        error.path.push_str(".name");
        Err(error)
    };
    let total: u64 = blocks.iter().map(|b| u64::from(b.keys.count)).sum();
    if total > u64::from(MOST_FLOWS) {
        let place = &places[places.len() - 1];
        let mut error = place.fail(format!(
            "too many flows: {total}; expected at most {MOST_FLOWS}"
        ));
        error.path.push_str(".count");
        return Err(error);
    }
    let groups: BTreeSet<&str> = blocks.iter().map(Block::name).collect();
    let mut seen = BTreeSet::new();
    for (block, place) in blocks.iter().zip(places) {
        let name = block.name();
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
    let prefix = format!("{}/", block.name());
    let below = names.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    below
        .copied()
        .take_while(|name| block.keys.count > 1 && name.starts_with(&prefix))
        .find(|name| {
            let number = name[prefix.len()..].parse::<u32>();
            number.is_ok_and(|n| (1..=block.keys.count).contains(&n))
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn are_unique<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
        let mut seen = BTreeSet::new();
        names.all(|name| seen.insert(name))
    }

    #[test]
    fn types_and_their_keys_have_names_of_their_own() {
        assert!(are_unique(TYPES.iter().map(|known| known.name)));
        for (name, keys) in keys() {
            assert!(are_unique(keys.iter().map(|key| key.name)), "{name}");
        }
    }
}
