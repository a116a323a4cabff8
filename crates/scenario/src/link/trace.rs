//! A link that follows a capacity trace: `trace`.
//!
//! A scenario names a file; the canonical form holds what is in it, so that a saved result can be
//! run again wherever the file has gone, and so that the hash of a scenario depends on it.

use std::fmt::Write as _;
use std::path::Path;

use sojourn_net::Rate;

use super::series::Quantity;
use super::series_file::embed_file;
use crate::declare::{KeyValue, keys, tables};
use crate::error::ScenarioError;
use crate::input::{MAX_TRACE, read_text};
use crate::key::Form;
use crate::place::Place;
use crate::plan::Trace;
use crate::value::{Node, Value};

/// Opportunities a trace may have: days of the fastest cellular link.
const MOST: usize = 10_000_000;
/// Maximum number of opportunities in all traces of a scenario, including those set by arms: 80 MB.
pub(super) const MOST_OF_ALL: usize = 2 * MOST;

keys! {
    /// A trace and where it came from.
    #[derive(Clone, Debug)]
    pub(crate) struct Traced {
        /// File from which the trace was read.
        file: Option<String> = Form::Def("text");
        /// Gaps between delivery opportunities of 1504 B, in milliseconds, such as "1 2x10": 1 ms, then ten gaps of 2
        /// ms.
        gaps_ms: Trace = Form::Def("text"), required "\"1 2x10\"";
    }
}

tables! { Traced }

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
        let last = key.rsplit('.').next().unwrap_or_default();
        if let Some(quantity) = Quantity::of_key(last) {
            let line = child.line;
            let fail = |rule| ScenarioError { path, rule, line };
            let points = match embed_file(child, quantity, folder) {
                Ok(points) => points,
                Err(rule) => return Err(fail(format!("cannot read {rule}"))),
            };
            *left = match left.checked_sub(points) {
                Some(left) => left,
                None => return Err(fail(too_many())),
            };
            continue;
        }
        let names_trace = last == "trace";
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
                *left = match left.checked_sub(trace.gaps_ms.times_ms().len()) {
                    Some(left) => left,
                    None => return Err(fail(too_many())),
                };
                if let Some(table) = KeyValue::write(&trace) {
                    child.value = table.value;
                }
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
    if text.lines().nth(MOST).is_some() {
        return Err(format!("{file}: too many lines; expected at most {MOST}"));
    }
    // The path may refer to any file, so the message must not quote its content.
    let trace = Trace::parse(&text).map_err(|error| match error.at {
        Some(_) => format!("{file}, {error}"),
        None => format!("{file}: {error}"),
    })?;
    Ok(Traced {
        file: Some(file.to_owned()),
        gaps_ms: trace,
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
    Trace::new(times).map_err(|error| error.rule)
}

/// The mean rate of a trace, given as the `gaps_ms` of a scenario.
///
/// # Errors
/// A message that says what is wrong with the gaps.
pub fn trace_mean_rate(gaps_ms: &str) -> Result<Rate, ScenarioError> {
    let trace = read_gaps(gaps_ms).map_err(|rule| ScenarioError::new("gaps_ms", rule))?;
    Ok(trace.mean_rate())
}

impl KeyValue for Trace {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        read_gaps(place.text()?).map_err(|rule| place.fail(rule))
    }

    fn write(&self) -> Option<Node> {
        let mut gaps = String::new();
        let mut last = 0;
        let differences: Vec<_> = self
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
        Some(gaps.into())
    }
}
