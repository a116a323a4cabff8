//! Decodes a tree of values to a scenario; reports the first error.

use std::collections::BTreeSet;

use sojourn_net::Duration;

use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::link::{Links, UNLIMITED};
use crate::page::Pages;
use crate::place::{Fields, Place};
use crate::traffic::{Block, Direction};
use crate::value::{Node, Table, Value};
use crate::{link, page, traffic};

/// The largest seed.
pub const MAX_SEED: i64 = i64::MAX;

pub(crate) const KEYS: &[Key] = &[
    Key::optional("name", Form::NAME, "Name of the scenario in reports.").or("scenario"),
    Key::required(
        "duration",
        Form::POSITIVE_TIME,
        "Simulated duration of a run.",
    ),
    Key::optional(
        "warmup",
        Form::TIME,
        "Warm-up: totals exclude the time before this; series cover the whole run.",
    )
    .or("0s"),
    Key::optional(
        "replications",
        Form::Integer(1, 100_000),
        "Runs per arm; replication k of every arm draws the same random numbers.",
    )
    .or("1"),
    Key::optional(
        "seed",
        Form::Integer(0, MAX_SEED),
        "Seed for all random numbers.",
    )
    .or("1"),
    Key::optional(
        "sample",
        Form::POSITIVE_TIME,
        "Sample interval of the series.",
    )
    .or("100ms"),
    Key::optional(
        "rtt",
        Form::TIME,
        "Default base round-trip time of traffic.",
    )
    .or("0s"),
    Key::optional(
        "keep_events",
        Form::Flag,
        "Record every drop, mark and loss in the table events.",
    )
    .or("false"),
    Key::required(
        "links",
        Form::ByName(&link::FORM),
        "Links by name; unlimited: packets pass at once.",
    ),
    Key::optional(
        "pages",
        Form::ByName(&Form::Def("page")),
        "Web pages by name.",
    ),
    Key::required(
        "traffic",
        Form::List(1, &Form::Def("traffic")),
        "Traffic over the links.",
    ),
    Key::optional(
        "arms",
        Form::List(0, &Form::Table(ARM_KEYS)),
        "Variants to compare.",
    ),
];

const ARM_KEYS: &[Key] = &[
    Key::required("name", Form::NAME, "Name of the arm in reports."),
    Key::optional(
        "set",
        Form::Def("set"),
        "Values that this arm changes, by path.",
    ),
];

/// Rows of series a run may keep: some 6 GB.
const MOST_ROWS: u64 = 100_000_000;

/// Reads the whole tree.
pub(crate) fn spec(root: &Node) -> Result<Spec, ScenarioError> {
    let place = Place::root(root);
    let top = place.fields(KEYS)?;
    let duration = top.need("duration", "\"60s\"")?.time()?;
    let warmup = top.time("warmup")?;
    if let Some(place) = top.get("warmup")
        && warmup >= duration
    {
        let rule = format!(
            "{} is too long; expected less than the duration",
            place.node.shown()
        );
        return Err(place.fail(rule));
    }
    let links = link::read(&top)?;
    let pages = page::pages(&top)?;
    let traffic = traffic::blocks(&top, &links, &pages, duration)?;
    let spec = Spec {
        name: top.value("name", Place::name)?,
        duration,
        warmup,
        replications: top.integer("replications")?,
        seed: top.integer("seed")?,
        sample: top.time("sample")?,
        rtt: top.time("rtt")?,
        keep_events: top.flag("keep_events")?,
        links,
        pages,
        traffic,
        arms: arms(&top)?,
    };
    check_rows(&spec, &top)?;
    Ok(spec)
}

fn arms(top: &Fields<'_>) -> Result<Vec<Arm>, ScenarioError> {
    let Some(place) = top.get("arms") else {
        return Ok(Vec::new());
    };
    let mut names = BTreeSet::new();
    let mut arms = Vec::new();
    for place in place.list()? {
        let fields = place.fields(ARM_KEYS)?;
        let name_place = fields.need("name", "\"codel\"")?;
        let name = name_place.name()?;
        if !names.insert(name.clone()) {
            return Err(name_place.fail(format!("duplicate arm name \"{name}\"")));
        }
        let mut set = Vec::new();
        if let Some(place) = fields.get("set") {
            flatten("", &place, &mut set)?;
        }
        arms.push(Arm { name, set });
    }
    Ok(arms)
}

/// Whether a table is a value and not a nest of keys.
fn is_whole(key: &str, table: &Table) -> bool {
    let marks = ["kind", "distribution", "model", "gaps_ms"];
    let given = |name, mark| key.ends_with(name) && table.contains_key(mark);
    given(".jitter", "spread")
        || given(".medium", "type")
        || marks.iter().any(|&mark| table.contains_key(mark))
}

/// Collects dotted keys; `links.up.qdisc = …` without quotes around it is a nest of tables.
fn flatten(
    prefix: &str,
    place: &Place<'_>,
    set: &mut Vec<(String, Node)>,
) -> Result<(), ScenarioError> {
    for (key, place) in place.open_table()?.all() {
        let key = crate::value::joined(prefix, key);
        match &place.node.value {
            Value::Table(table) if !is_whole(&key, table) => flatten(&key, &place, set)?,
            _ => set.push((key, place.node.clone())),
        }
    }
    Ok(())
}

/// Refuses a sampling interval that would fill the memory.
fn check_rows(spec: &Spec, top: &Fields<'_>) -> Result<(), ScenarioError> {
    let flows: u64 = spec.traffic.iter().map(|b| u64::from(b.count)).sum();
    let series = flows + spec.links.real.len() as u64;
    let rows = u128::from(spec.duration.as_nanos()) * u128::from(series);
    if rows <= u128::from(MOST_ROWS) * u128::from(spec.sample.as_nanos()) {
        return Ok(());
    }
    let least_ms = rows.div_ceil(u128::from(MOST_ROWS) * 1_000_000);
    Err(ScenarioError {
        path: "sample".to_owned(),
        rule: format!(
            "too short; expected at least {least_ms}ms, since a run keeps at most {MOST_ROWS} samples"
        ),
        line: top.get("sample").and_then(|place| place.node.line),
    })
}

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

/// One variant of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) duration: Duration,
    pub(crate) warmup: Duration,
    pub(crate) replications: u32,
    pub(crate) seed: i64,
    pub(crate) sample: Duration,
    /// Base RTT of traffic that names none.
    pub(crate) rtt: Duration,
    pub(crate) keep_events: bool,
    pub(crate) links: Links,
    pub(crate) pages: Pages,
    pub(crate) traffic: Vec<Block>,
    pub(crate) arms: Vec<Arm>,
}

/// A variant: dotted keys and what they are set to.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) set: Vec<(String, Node)>,
}
