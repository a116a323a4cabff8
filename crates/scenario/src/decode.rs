//! Decodes a tree of values to a scenario; reports the first error.

use std::collections::BTreeSet;

use sojourn_net::Duration;
use sojourn_qdisc::PYTHON_PREFIX;

use crate::declare::{KeyValue, Keys, Name, keys};
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

keys! {
    /// The keys of a scenario that have a single value.
    #[derive(Clone, Debug)]
    pub(crate) struct Run {
        /// Name of the scenario in reports.
        name: Name = Form::NAME, default "scenario";
        /// Simulated duration of a run.
        duration: Duration = Form::POSITIVE_TIME, required "\"60s\"";
        /// Warm-up: totals exclude the time before this; series cover the whole run.
        warmup: Duration = Form::TIME, default "0s";
        /// Runs per arm; replication k of every arm draws the same random numbers.
        replications: u32 = Form::Integer(1, 100_000), default "1";
        /// Seed for all random numbers.
        seed: i64 = Form::Integer(0, MAX_SEED), default "1";
        /// Sample interval of the series.
        sample: Duration = Form::POSITIVE_TIME, default "100ms";
        /// Default base round-trip time of traffic.
        rtt: Duration = Form::TIME, default "0s";
        /// Record every drop, mark and loss in the table events.
        keep_events: bool = Form::Flag, default "false";
        /// Record the statistics and the state of every queue at each sample in the table queue_series.
        sample_state: bool = Form::Flag, usual "false";
        /// Controller of the links: the file and name of a subclass of sojourn.Controller, or none.
        controller: ControllerName = Form::Def("text"), usual "none";
    }
}

/// The class of a controller; `None`: there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControllerName(pub(crate) Option<String>);

/// What a scenario without a controller has.
const NO_CONTROLLER: &str = "none";

impl KeyValue for ControllerName {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let name = place.text()?;
        if name == NO_CONTROLLER {
            return Ok(Self(None));
        }
        let letters = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
        if name.starts_with(PYTHON_PREFIX) && name.chars().all(letters) {
            return Ok(Self(Some(name.to_owned())));
        }
        Err(place.fail(format!(
            "{} is not a controller; expected {NO_CONTROLLER}, or the file and name of a subclass of \
             sojourn.Controller such as \"./autorate.py:Autorate\"",
            place.node.shown()
        )))
    }

    fn write(&self) -> Option<Node> {
        Some(self.0.as_deref().unwrap_or(NO_CONTROLLER).into())
    }
}

/// The keys of a scenario that have tables.
const PARTS: &[Key] = &[
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

pub(crate) const KEYS: &[Key] = &{
    const SINGLE: usize = Run::KEYS.len();
    let mut all = [PARTS[0]; SINGLE + PARTS.len()];
    all.split_at_mut(SINGLE).0.copy_from_slice(Run::KEYS);
    all.split_at_mut(SINGLE).1.copy_from_slice(PARTS);
    all
};

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
/// More points of traces than a run keeps as changes of a link: they take about 120 MB per run.
const MOST_POINTS: u64 = 1_000_000;

/// Reads the whole tree.
pub(crate) fn spec(root: &Node) -> Result<Spec, ScenarioError> {
    let place = Place::root(root);
    let top = place.fields(KEYS)?;
    let run = Run::read(&top)?;
    if let Some(place) = top.get("warmup")
        && run.warmup >= run.duration
    {
        let rule = format!(
            "{} is too long; expected less than the duration",
            place.node.shown()
        );
        return Err(place.fail(rule));
    }
    let links = link::read(&top)?;
    let pages = page::pages(&top)?;
    let traffic = traffic::blocks(&top, &links, &pages, run.duration)?;
    let spec = Spec {
        run,
        links,
        pages,
        traffic,
        arms: arms(&top)?,
    };
    check_rows(&spec, &top)?;
    check_traces(&spec)?;
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
    let traces = [".rate_trace", ".delay_trace", ".loss_trace"];
    given(".jitter", "spread")
        || given(".medium", "type")
        || traces.iter().any(|name| key.ends_with(name))
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
    let flows: u64 = spec.traffic.iter().map(|b| u64::from(b.keys.count)).sum();
    let series = flows + spec.links.real.len() as u64;
    let rows = u128::from(spec.run.duration.as_nanos()) * u128::from(series);
    if rows <= u128::from(MOST_ROWS) * u128::from(spec.run.sample.as_nanos()) {
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

/// Refuses traces of delay and loss that have too many points when they are repeated until the end of the run.
fn check_traces(spec: &Spec) -> Result<(), ScenarioError> {
    for link in &spec.links.real {
        let (key, points) = link.repeated_points(spec.run.duration);
        if points > MOST_POINTS {
            return Err(ScenarioError {
                path: format!("links.{}.{key}", link.name),
                rule: format!(
                    "{points} points until the end of the run; expected at most {MOST_POINTS}, \
                     by a longer interval between points or a shorter duration"
                ),
                line: None,
            });
        }
    }
    Ok(())
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
    pub(crate) run: Run,
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
