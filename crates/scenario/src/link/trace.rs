//! A link that follows a capacity trace: `trace`.
//!
//! A scenario names a file; the canonical form holds what is in it, so that a saved result can be
//! run again wherever the file has gone, and so that the hash of a scenario depends on it.

use std::fmt::Write as _;
use std::path::Path;

use sojourn_net::{Duration, Rate};

use crate::error::ScenarioError;
use crate::input::{MAX_TRACE, read_text};
use crate::key::{Form, Key};
use crate::place::Place;
use crate::plan::{Change, Trace};
use crate::value::{Node, Table, Value, insert, list, table, time};

/// Opportunities a trace may have: days of the fastest cellular link.
const MOST: usize = 10_000_000;
/// Maximum number of opportunities in all traces of a scenario, including those set by arms: 80 MB.
pub(super) const MOST_OF_ALL: usize = 2 * MOST;
pub(super) const KEYS: &[Key] = &[
    Key::optional(
        "file",
        Form::Def("text"),
        "File from which the trace was read.",
    ),
    Key::required(
        "gaps_ms",
        Form::Def("text"),
        "Gaps between delivery opportunities of 1504 B, in milliseconds, such as \"1 2x10\": 1 ms, then ten gaps of 2 ms.",
    ),
];

/// A trace and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Traced {
    file: String,
    pub(super) trace: Trace,
}

/// Puts what files hold in the place of their names, wherever `tree` names a trace; the names are
/// relative to `folder`.
pub(crate) fn embed(tree: &mut Node, folder: &Path) -> Result<(), ScenarioError> {
    let Value::Table(top) = &mut tree.value else {
        return Ok(());
    };
    let mut left = MOST_OF_ALL;
    if let Some(links) = top.get_mut("links") {
        embed_below("links", links, folder, &mut left)?;
    }
    if let Some(Node {
        value: Value::List(arms),
        ..
    }) = top.get_mut("arms")
    {
        for (n, arm) in arms.iter_mut().enumerate() {
            if let Value::Table(arm) = &mut arm.value
                && let Some(set) = arm.get_mut("set")
            {
                embed_below(&format!("arms[{n}].set"), set, folder, &mut left)?;
            }
        }
    }
    Ok(())
}

/// Keys are nested tables, or dotted where arms set them.
fn embed_below(
    path: &str,
    node: &mut Node,
    folder: &Path,
    left: &mut usize,
) -> Result<(), ScenarioError> {
    let Value::Table(table) = &mut node.value else {
        return Ok(());
    };
    for (key, child) in table {
        let path = format!("{path}.{key}");
        let names_trace = key.rsplit('.').next() == Some("trace");
        match &child.value {
            Value::Text(file) if names_trace => {
                let fail = |rule| ScenarioError {
                    path,
                    rule,
                    line: child.line,
                };
                let trace = match read_file(file, folder) {
                    Ok(trace) => trace,
                    Err(rule) => return Err(fail(rule)),
                };
                *left = match left.checked_sub(trace.trace.times_ms().len()) {
                    Some(left) => left,
                    None => return Err(fail(too_many())),
                };
                child.value = trace.value();
            }
            _ => embed_below(&path, child, folder, left)?,
        }
    }
    Ok(())
}

/// The error message for too many opportunities in all traces.
pub(super) fn too_many() -> String {
    format!("too many opportunities in all traces; expected at most {MOST_OF_ALL}")
}

/// Reads a file of Mahimahi: one time in milliseconds per line.
fn read_file(file: &str, folder: &Path) -> Result<Traced, String> {
    let text = read_text(&folder.join(file), MAX_TRACE)
        .map_err(|e| format!("cannot read \"{file}\": {e}"))?;
    let mut times = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if n == MOST {
            return Err(format!("{file}: too many lines; expected at most {MOST}"));
        }
        // The path may refer to any file, so the message must not quote its content.
        let time = line.trim().parse::<u32>().map_err(|_| {
            let right = "expected whole milliseconds below 2^32, one time per line";
            format!("{file}, line {}: not a time; {right}", n + 1)
        })?;
        times.push(time);
    }
    let trace = Trace::new(times).map_err(|(n, rule)| format!("{file}, line {}: {rule}", n + 1))?;
    Ok(Traced {
        file: file.to_owned(),
        trace,
    })
}

/// Reads the gaps between opportunities, such as `1 2x10`.
fn read_gaps(gaps_ms: &str) -> Result<Trace, String> {
    let mut times: Vec<u32> = Vec::new();
    for word in gaps_ms.split_whitespace() {
        let read = || {
            let (gap, count) = word.split_once('x').unwrap_or((word, "1"));
            Some((gap.parse::<u32>().ok()?, count.parse::<usize>().ok()?))
        };
        let (gap, count) = read().ok_or_else(|| {
            format!("\"{word}\" is not a gap; expected milliseconds such as \"2\" or \"2x10\"")
        })?;
        if count > MOST || times.len() + count > MOST {
            return Err(format!("too many opportunities; expected at most {MOST}"));
        }
        for _ in 0..count {
            let last = times.last().copied().unwrap_or(0);
            let next = last.checked_add(gap);
            times.push(next.ok_or("too long; expected less than 2^32 ms")?);
        }
    }
    Trace::new(times).map_err(|(_, rule)| rule)
}

/// The mean rate of a trace, given as the `gaps_ms` of a scenario.
///
/// # Errors
/// A message that says what is wrong with the gaps.
pub fn trace_mean_rate(gaps_ms: &str) -> Result<Rate, ScenarioError> {
    let trace = read_gaps(gaps_ms).map_err(|rule| ScenarioError::new("gaps_ms", rule))?;
    Ok(trace.mean_rate())
}

impl Traced {
    /// Reads what [`embed`] has put there.
    pub(super) fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let fields = place.fields(KEYS)?;
        let gaps = fields.need("gaps_ms", "\"1 2x10\"")?;
        let trace = read_gaps(gaps.text()?).map_err(|rule| gaps.fail(rule))?;
        Ok(Self {
            file: fields
                .option("file", |p| p.text().map(str::to_owned))?
                .unwrap_or_default(),
            trace,
        })
    }

    /// The table that holds all of it.
    fn value(&self) -> Value {
        let mut gaps = String::new();
        let mut last = 0;
        let differences: Vec<_> = self
            .trace
            .times_ms()
            .iter()
            .map(|&time| time - std::mem::replace(&mut last, time))
            .collect();
        for same in differences.chunk_by(|a, b| a == b) {
            let space = if gaps.is_empty() { "" } else { " " };
            let _ = match same.len() {
                1 => write!(gaps, "{space}{}", same[0]),
                n => write!(gaps, "{space}{}x{n}", same[0]),
            };
        }
        let fields: Table = table([
            ("file", self.file.as_str().into()),
            ("gaps_ms", gaps.into()),
        ]);
        Value::Table(fields)
    }

    pub(super) fn node(&self) -> Node {
        self.value().into()
    }
}

pub(super) const CHANGE_KEYS: &[Key] = &[
    Key::required("at", Form::POSITIVE_TIME, "Time of the change."),
    Key::optional("rate", Form::RATE, "New rate."),
    Key::optional("delay", Form::TIME, "New delay."),
];

/// Reads the list, in which each comes after the one before.
pub(super) fn read(place: &Place<'_>) -> Result<Vec<Change>, ScenarioError> {
    let mut before = Duration::ZERO;
    let mut changes = Vec::new();
    let places = place.list()?;
    if places.is_empty() {
        return Err(place.fail("empty; expected at least one change (or omit the key)"));
    }
    for place in places {
        let fields = place.fields(CHANGE_KEYS)?;
        let at_place = fields.need("at", "\"10s\"")?;
        let at = at_place.time()?;
        if at <= before {
            let rule = format!(
                "{} is not after the previous change; expected ascending times",
                at_place.node.shown()
            );
            return Err(at_place.fail(rule));
        }
        before = at;
        let (rate, delay) = (
            fields.option("rate", Place::rate)?,
            fields.option("delay", Place::time)?,
        );
        if rate.is_none() && delay.is_none() {
            let rule = "no change; expected rate = \"5mbit\", delay = \"20ms\" or both";
            return Err(place.fail(rule));
        }
        changes.push(Change { at, rate, delay });
    }
    Ok(changes)
}

/// The list as it is written.
pub(super) fn node(changes: &[Change]) -> Node {
    list(changes, |change| {
        let mut fields = table([("at", time(change.at))]);
        let rate = change.rate.map(|rate| rate.to_string().into());
        insert(&mut fields, "rate", rate);
        insert(&mut fields, "delay", change.delay.map(time));
        Value::Table(fields).into()
    })
}
