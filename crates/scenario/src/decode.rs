//! From a tree of values to a scenario, or to the first thing that is wrong with it.

use std::collections::BTreeSet;

use sojourn_net::Duration;
use sojourn_qdisc::QdiscSpec;

use crate::error::{ScenarioError, instead_of};
use crate::key::{Form, Key};
use crate::link;
use crate::model::{Arm, Spec};
use crate::page;
use crate::place::{Fields, Place};
use crate::traffic;
use crate::value::{Node, Table, Value};

pub(crate) const KEYS: &[Key] = &[
    Key::optional("name", Form::NAME, "What reports call the scenario.").or("scenario"),
    Key::required(
        "duration",
        Form::POSITIVE_TIME,
        "Length of a run, in simulated time.",
    ),
    Key::optional(
        "warmup",
        Form::TIME,
        "Totals count what comes after this time; series cover the whole run.",
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
        Form::Integer(0, i64::MAX),
        "Seed of all random numbers.",
    )
    .or("1"),
    Key::optional(
        "sample",
        Form::POSITIVE_TIME,
        "Length of an interval of the series.",
    )
    .or("100ms"),
    Key::optional(
        "rtt",
        Form::TIME,
        "Base round-trip time of traffic that gives none.",
    )
    .or("0s"),
    Key::optional(
        "keep_events",
        Form::Flag,
        "Keep every drop and mark as an event.",
    )
    .or("false"),
    Key::required("links", Form::ByName(&Form::Def("link")), "Links by name."),
    Key::optional(
        "pages",
        Form::ByName(&Form::Def("page")),
        "Web pages by name.",
    ),
    Key::required(
        "traffic",
        Form::List(1, &Form::Def("traffic")),
        "What crosses the links.",
    ),
    Key::optional(
        "arms",
        Form::List(0, &Form::Table(ARM_KEYS)),
        "Variants to compare.",
    ),
];

const ARM_KEYS: &[Key] = &[
    Key::required("name", Form::NAME, "What reports call the arm."),
    Key::optional(
        "set",
        Form::Def("set"),
        "Values that this arm changes, by their path.",
    ),
];

/// Rows of series a run may keep: some 6 GB.
const MOST_ROWS: u64 = 100_000_000;

/// Reads the whole tree.
pub(crate) fn spec(root: &Node) -> Result<Spec, ScenarioError> {
    let place = Place::root(root);
    let top = place.fields(KEYS)?;
    let duration = top.need("duration", "\"60s\"")?.positive_time()?;
    let warmup = top.or("warmup", Duration::ZERO, Place::time)?;
    if let Some(place) = top.get("warmup")
        && warmup >= duration
    {
        let rule = format!("{} must end before the run does", place.node.shown());
        return Err(place.fail(rule));
    }
    let links = link::read(&top)?;
    let pages = page::pages(&top)?;
    let traffic = traffic::blocks(&top, &links, &pages, duration)?;
    let spec = Spec {
        name: top.or("name", "scenario".to_owned(), Place::name)?,
        duration,
        warmup,
        replications: top.or("replications", 1, |p| p.count(1, 100_000))?,
        seed: top.or("seed", 1, |p| p.integer(0..=i64::MAX))?,
        sample: top.or("sample", Duration::from_millis(100), Place::positive_time)?,
        rtt: top.or("rtt", Duration::ZERO, Place::time)?,
        keep_events: top.or("keep_events", false, Place::flag)?,
        links,
        pages,
        traffic,
        arms: arms(&top)?,
    };
    check_rows(&spec, &top)?;
    Ok(spec)
}

/// A queue in the syntax of `tc`, or a table with its `kind` and parameters.
pub(crate) fn qdisc(place: &Place<'_>) -> Result<QdiscSpec, ScenarioError> {
    match &place.node.value {
        Value::Text(text) => text.parse(),
        Value::Table(_) => {
            let fields = place.open_table()?;
            let kind = fields.need("kind", "\"fq_codel\"")?.text()?;
            let pairs: Vec<_> = fields
                .all()
                .filter(|(key, _)| *key != "kind")
                .map(|(key, place)| Ok((key.clone(), setting(&place)?)))
                .collect::<Result<_, _>>()?;
            QdiscSpec::from_pairs(kind, pairs.into_iter())
        }
        _ => {
            return Err(place.fail(format!(
                "{} is not a queue: a text such as \"fq_codel target 5ms\" is needed",
                place.node.shown()
            )));
        }
    }
    .map_err(|e| place.fail(e.to_string()))
}

/// The value of a queue's parameter as text.
pub(crate) fn setting(place: &Place<'_>) -> Result<String, ScenarioError> {
    match &place.node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Int(n) => Ok(n.to_string()),
        Value::Float(x) => Ok(x.to_string()),
        Value::Table(table) if table.contains_key("kind") => part(place),
        Value::List(values) if values.iter().all(|v| matches!(v.value, Value::Int(_))) => {
            let numbers = place
                .list()?
                .iter()
                .map(setting)
                .collect::<Result<Vec<_>, _>>()?;
            Ok(numbers.join(" "))
        }
        Value::List(_) => {
            let queues = place
                .list()?
                .iter()
                .map(part)
                .collect::<Result<Vec<_>, _>>()?;
            Ok(queues.join(" / "))
        }
        Value::Table(_) => {
            let right = "a flag, a number or a text such as \"5ms\" is needed";
            let shown = place.node.shown();
            Err(place.fail(format!("{shown} is not a value of a queue: {right}")))
        }
    }
}

/// A queue inside another, as text.
fn part(place: &Place<'_>) -> Result<String, ScenarioError> {
    let text = qdisc(place)?.to_string();
    Ok(if text.contains(" / ") {
        format!("({text})")
    } else {
        text
    })
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
            return Err(name_place.fail(format!("there are two arms called \"{name}\"")));
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
    let series = flows + spec.links.len() as u64;
    let rows = u128::from(spec.duration.as_nanos()) * u128::from(series);
    if rows <= u128::from(MOST_ROWS) * u128::from(spec.sample.as_nanos()) {
        return Ok(());
    }
    let least_ms = rows.div_ceil(u128::from(MOST_ROWS) * 1_000_000);
    Err(ScenarioError {
        path: "sample".to_owned(),
        rule: format!("too short: {MOST_ROWS} samples a run are kept, so use {least_ms}ms or more"),
        line: top.get("sample").and_then(|place| place.node.line),
    })
}

/// What a text would have to be to name one of `known`.
pub(crate) fn choice(
    place: &Place<'_>,
    what: &str,
    known: &[&str],
) -> Result<usize, ScenarioError> {
    let text = place.text()?;
    known.iter().position(|k| *k == text).ok_or_else(|| {
        let instead = instead_of(text, known);
        place.fail(format!("unknown {what} \"{text}\"; {instead}"))
    })
}
