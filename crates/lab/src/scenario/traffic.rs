//! Reading `[[traffic]]`.

use std::collections::BTreeSet;
use std::ops::Bound;

use sojourn_net::{Bytes, Dscp, DscpError, Duration};
use sojourn_sim::Client;
use sojourn_transport::{CcKind, OnCe};

use super::amount::Amount;
use super::decode::choice;
use super::error::ScenarioError;
use super::model::{Block, Direction, Kind, Link, Rtt, Way};
use super::place::{Fields, Place};
use super::value::Value;

/// Keys that any traffic has.
const COMMON: [&str; 12] = [
    "type",
    "name",
    "direction",
    "path",
    "return",
    "count",
    "start",
    "start_jitter",
    "stop",
    "rtt",
    "dscp",
    "host",
];
const TCP: [&str; 5] = ["cc", "bytes", "ecn", "on_ce", "initial_window"];
const UDP: [&str; 3] = ["rate", "payload", "spread"];
const PING: [&str; 1] = ["interval"];

/// Echo requests a block may make in a run: some 500 MB of records.
const MOST_REQUESTS: u64 = 10_000_000;

/// Flows are numbered with 32 bits; this many are far beyond any memory.
const MOST_FLOWS: u32 = 10_000_000;

/// What UDP over IPv4 can carry.
const LARGEST_DATAGRAM: u64 = 65_507;

/// Reads all blocks and gives those a name that have none.
pub(crate) fn blocks(
    top: &Fields<'_>,
    links: &[Link],
    duration: Duration,
) -> Result<Vec<Block>, ScenarioError> {
    let example = "[{ type = \"tcp\", direction = \"up\" }]";
    let place = top.need("traffic", example)?;
    let places = place.list()?;
    if places.is_empty() {
        return Err(place.fail(format!("at least one is needed, such as {example}")));
    }
    let mut blocks: Vec<_> = places
        .iter()
        .map(|place| block(place, links, duration))
        .collect::<Result<_, _>>()?;
    name_the_nameless(&mut blocks);
    check_names(&blocks, &places)?;
    Ok(blocks)
}

/// A block whose name is empty if none was given.
fn block(place: &Place<'_>, links: &[Link], duration: Duration) -> Result<Block, ScenarioError> {
    let type_place = place.open_table()?.need("type", "\"tcp\"")?;
    let own: &[&str] = match choice(&type_place, "a type of traffic", &Kind::NAMES)? {
        0 => &TCP,
        1 => &UDP,
        _ => &PING,
    };
    let known: Vec<_> = COMMON.iter().chain(own).copied().collect();
    let fields = place.fields(&known)?;
    let count = fields.or("count", 1, |p| p.count(1, MOST_FLOWS))?;
    let block = Block {
        name: fields.or("name", String::new(), Place::name)?,
        way: way(place, &fields, links)?,
        count,
        start: fields.or("start", Duration::ZERO, Place::time)?,
        start_jitter: fields.or("start_jitter", Duration::ZERO, Place::time)?,
        stop: fields.option("stop", Place::positive_time)?,
        rtt: rtt(&fields, count)?,
        dscp: fields.or("dscp", Dscp::DEFAULT, dscp)?,
        host: fields.option("host", host)?,
        kind: match own {
            own if own == TCP => tcp(&fields)?,
            own if own == UDP => udp(&fields)?,
            _ => ping(&fields, count, duration)?,
        },
    };
    check_times(&block, &fields, duration)?;
    Ok(block)
}

fn tcp(fields: &Fields<'_>) -> Result<Kind, ScenarioError> {
    let names = CcKind::ALL.map(CcKind::name);
    let answers = OnCe::ALL.map(OnCe::name);
    Ok(Kind::Tcp {
        cc: fields.or("cc", CcKind::Cubic, |p| {
            choice(p, "a congestion control", &names).map(|n| CcKind::ALL[n])
        })?,
        bytes: fields.option("bytes", Amount::read)?,
        ecn: fields.or("ecn", false, Place::flag)?,
        on_ce: fields.or("on_ce", OnCe::Reduce, |p| {
            choice(p, "an answer to CE", &answers).map(|n| OnCe::ALL[n])
        })?,
        initial_window: fields.or("initial_window", 10, |p| p.count(1, 100_000))?,
    })
}

fn udp(fields: &Fields<'_>) -> Result<Kind, ScenarioError> {
    Ok(Kind::Udp {
        rate: fields.need("rate", "\"1mbit\"")?.rate()?,
        payload: fields.or("payload", Bytes(1_448), |p| p.size(1, LARGEST_DATAGRAM))?,
        spread: fields.or("spread", 0.0, |p| p.number(0.0..=1.0))?,
    })
}

/// Every request is kept, so their number is bounded.
fn ping(fields: &Fields<'_>, count: u32, duration: Duration) -> Result<Kind, ScenarioError> {
    let interval = fields.or("interval", Duration::from_millis(100), Place::positive_time)?;
    let all = u128::from(duration.as_nanos()) * u128::from(count);
    if all > u128::from(MOST_REQUESTS) * u128::from(interval.as_nanos())
        && let Some(place) = fields.get("interval").or_else(|| fields.get("count"))
    {
        let least_us = all.div_ceil(u128::from(MOST_REQUESTS) * 1_000);
        return Err(place.fail(format!(
            "a block of pings keeps {MOST_REQUESTS} requests at most, so use an interval of \
             {least_us}us or more"
        )));
    }
    Ok(Kind::Ping { interval })
}

fn host(place: &Place<'_>) -> Result<u8, ScenarioError> {
    let number = place.count(0, Client::MOST.into())?;
    u8::try_from(number).map_err(|_| place.fail("is out of range"))
}

/// A name in quotes or a plain number.
fn dscp(place: &Place<'_>) -> Result<Dscp, ScenarioError> {
    let read = match &place.node.value {
        Value::Text(name) => name.parse(),
        Value::Int(number) => number.to_string().parse(),
        _ => Err(DscpError),
    };
    read.map_err(|e: DscpError| place.fail(format!("{} is not one: {e}", place.node.shown())))
}

fn rtt(fields: &Fields<'_>, count: u32) -> Result<Rtt, ScenarioError> {
    let Some(place) = fields.get("rtt") else {
        return Ok(Rtt::Common);
    };
    let Value::List(given) = &place.node.value else {
        return place.time().map(Rtt::Own);
    };
    if given.len() != count as usize {
        let given = given.len();
        let rule = format!("{given} given, {count} needed: one for each flow of the count");
        return Err(place.fail(rule));
    }
    let rtts = place.list()?;
    let rtts = rtts.iter().map(Place::time).collect::<Result<_, _>>()?;
    Ok(Rtt::Each(rtts))
}

fn way(place: &Place<'_>, fields: &Fields<'_>, links: &[Link]) -> Result<Way, ScenarioError> {
    let names: Vec<_> = links.iter().map(|l| l.name.as_str()).collect();
    match (
        fields.get("direction"),
        fields.get("path"),
        fields.get("return"),
    ) {
        (Some(direction), None, None) => {
            let chosen = match choice(&direction, "a direction", &Direction::NAMES)? {
                0 => Direction::Up,
                _ => Direction::Down,
            };
            if Direction::NAMES.iter().all(|name| !names.contains(name)) {
                return Err(direction.fail(format!(
                    "there is no link \"up\" or \"down\" to pass; links are {}; use path",
                    names.join(", ")
                )));
            }
            Ok(Way::Direction(chosen))
        }
        (None, Some(path), back) => Ok(Way::Path {
            path: path_of(&path, &names)?,
            back: back.map_or(Ok(Vec::new()), |back| path_of(&back, &names))?,
        }),
        (None, None, _) => {
            let rule = "\"direction\" is missing; give it, such as direction = \"up\", or path";
            Err(place.fail(rule))
        }
        (Some(direction), ..) => {
            Err(direction.fail("either a direction or a path with its return is given, not both"))
        }
    }
}

fn path_of(place: &Place<'_>, links: &[&str]) -> Result<Vec<String>, ScenarioError> {
    const MOST_HOPS: usize = 254;
    let hops = place.list()?;
    if hops.len() > MOST_HOPS {
        return Err(place.fail(format!("a path passes at most {MOST_HOPS} links")));
    }
    hops.iter()
        .map(|hop| {
            let name = hop.text()?;
            if links.contains(&name) {
                return Ok(name.to_owned());
            }
            let links = links.join(", ");
            // The path of the error is the key's: the name says which hop it is.
            Err(place.fail(format!("there is no link \"{name}\"; links are {links}")))
        })
        .collect()
}

fn check_times(
    block: &Block,
    fields: &Fields<'_>,
    duration: Duration,
) -> Result<(), ScenarioError> {
    if let Some(place) = fields.get("start")
        && block.start >= duration
    {
        let given = place.node.shown();
        return Err(place.fail(format!("{given} must come before the run ends")));
    }
    if let (Some(place), Some(stop)) = (fields.get("stop"), block.stop)
        && stop <= block.start
    {
        let given = place.node.shown();
        return Err(place.fail(format!("{given} must come after the start")));
    }
    Ok(())
}

fn name_the_nameless(blocks: &mut [Block]) {
    let mut taken: BTreeSet<String> = blocks.iter().map(|b| b.name.clone()).collect();
    for block in blocks.iter_mut().filter(|b| b.name.is_empty()) {
        let plain = match block.way {
            Way::Direction(direction) => {
                format!("{} {}", block.kind.name(), direction.name())
            }
            Way::Path { .. } => block.kind.name().to_owned(),
        };
        let numbered = (2_u32..).map(|n| format!("{plain} {n}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        // Ends: only finitely many names are taken.
        block.name = names.find(|n| !taken.contains(n)).unwrap_or_default();
        taken.insert(block.name.clone());
    }
}

/// Names are what random streams and records go by, so no two flows may share one.
fn check_names(blocks: &[Block], places: &[Place<'_>]) -> Result<(), ScenarioError> {
    let fail = |place: &Place<'_>, rule: String| {
        let mut error = place.fail(rule);
        error.path.push_str(".name");
        Err(error)
    };
    let total: u64 = blocks.iter().map(|b| u64::from(b.count)).sum();
    if total > u64::from(MOST_FLOWS) {
        let place = &places[places.len() - 1];
        let mut error = place.fail(format!("{total} flows are too many; at most {MOST_FLOWS}"));
        error.path.push_str(".count");
        return Err(error);
    }
    let groups: BTreeSet<&str> = blocks.iter().map(|b| b.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for (block, place) in blocks.iter().zip(places) {
        let name = &block.name;
        if !seen.insert(name) {
            return fail(place, format!("there is other traffic called \"{name}\""));
        }
        if let Some(clash) = clash(block, &groups) {
            let rule = format!("a flow of \"{name}\" would be called as the traffic \"{clash}\"");
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
