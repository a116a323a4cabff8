//! Files with a value over time.
//!
//! | format | recognised by | times and values |
//! |---|---|---|
//! | columns | anything else | a time in s and a value, apart by commas, semicolons, tabs or spaces; the first line may name them, with units such as `time_ms` and `rate_kbps` |
//! | `LeoReplayer` delays | one column | line *i*: the value from 10 ms (*i* - 1) on |
//! | cake-autorate log | a line that begins with `LOAD_HEADER` or `DATA_HEADER` | `LOG_TIMESTAMP` in s, and a column in kbit/s or µs |
//! | rattan pattern | `[` or `{` | `[[ms, [value, …]], …]`: each value holds for this number of ms; or `RepeatedBwPatternConfig` of `StaticBwConfig` |
//!
//! # Sources
//!
//! `LeoCC` `traces/README.md` (`SpaceNetLab`); cake-autorate 3.2 `ANALYSIS.md` and the header lines of its logs; netem-trace
//! `TraceBwConfig` and `RepeatedBwPatternConfig` (stack-rs), which rattan uses.
//!
//! The value of a rate is in Mbit/s, of a delay in ms and of a loss in percent, unless `unit` says otherwise. Values of
//! patterns are rates in Mbit/s. Times count from the first one.

use std::path::Path;

use serde_json::Value as Json;
use sojourn_net::Duration;

use super::series::{MOST, Points, Quantity};
use crate::input::{MAX_TRACE, read_text};
use crate::value::{Node, Table, Value, time_text};

/// Time from one line to the next in a file with one column.
const LINE: Duration = Duration::from_millis(10);

/// Times of this many seconds after 1970 are in another unit: the year 5138.
const LATEST_S: f64 = 1e11;

/// How the columns of a file are to be read.
struct Columns<'a> {
    /// The column of the values: its name or number.
    column: Option<&'a str>,
    /// The unit of the values, in usual ones.
    unit: Option<f64>,
}

/// Puts the points of a file in the place of its name, where a trace of a value over time is: a text, or a table with
/// `file` and no `points`. Returns how many points there are.
pub(super) fn embed_file(
    node: &mut Node,
    quantity: Quantity,
    folder: &Path,
) -> Result<usize, String> {
    let mut keys = Table::new();
    let text = |node: Option<&Node>| match node.map(|node| &node.value) {
        Some(Value::Text(text)) => Some(text.clone()),
        Some(Value::Int(n)) => Some(n.to_string()),
        _ => None,
    };
    match &node.value {
        Value::Text(file) => {
            keys.insert("file".to_owned(), file.as_str().into());
        }
        Value::Table(table) if !table.contains_key("points") => keys.clone_from(table),
        _ => return Ok(0),
    }
    let Some(file) = text(keys.get("file")) else {
        return Ok(0);
    };
    let (column, unit) = (text(keys.get("column")), text(keys.get("unit")));
    if let Some(column) = &column {
        keys.insert("column".to_owned(), column.as_str().into());
    }
    let columns = Columns {
        column: column.as_deref(),
        unit: unit
            .as_deref()
            .map(|unit| quantity.unit(unit))
            .transpose()?,
    };
    let points =
        read(&folder.join(&file), quantity, &columns).map_err(|rule| format!("{file}: {rule}"))?;
    keys.insert("points".to_owned(), points.text(quantity).into());
    keys.insert("period".to_owned(), time_text(points.period).into());
    node.value = Value::Table(keys);
    Ok(points.points.len())
}

/// Reads a file; an error names the line.
fn read(path: &Path, quantity: Quantity, columns: &Columns<'_>) -> Result<Points, String> {
    let text = read_text(path, MAX_TRACE)?;
    if text.trim_start().starts_with(['[', '{']) {
        return pattern(&text, quantity, columns);
    }
    let mut rows = Rows::default();
    let is_log = |line: &str| line.starts_with("LOAD_HEADER;") || line.starts_with("DATA_HEADER;");
    if text.lines().any(is_log) {
        rows.read_log(&text, columns)?;
    } else {
        rows.read_columns(&text, quantity, columns)?;
    }
    rows.points(quantity, columns.unit)
}

/// Times in seconds and values, with the numbers of their lines.
#[derive(Default)]
struct Rows {
    rows: Vec<(usize, f64, f64)>,
    /// What the values of the file are in, in usual units.
    unit: Option<f64>,
}

/// The fields of a line.
fn fields(line: &str) -> Vec<&str> {
    let comma = [',', ';', '\t'].into_iter().find(|&c| line.contains(c));
    match comma {
        Some(comma) => line.split(comma).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

/// The index of the column with this name or number.
fn index(column: &str, names: Option<&[&str]>) -> Result<usize, String> {
    let at = names.and_then(|names| names.iter().position(|name| *name == column));
    if let Some(at) = at {
        return Ok(at);
    }
    if let Ok(number @ 1..) = column.parse::<usize>() {
        Ok(number - 1)
    } else {
        let known = names.map_or("a number from 1".to_owned(), |names| names.join(", "));
        Err(format!("no column \"{column}\"; expected {known}"))
    }
}

impl Rows {
    fn push(&mut self, line: usize, at: Option<&&str>, value: Option<&&str>) -> Result<(), String> {
        // A path may refer to any file, so the message must not quote its content.
        let number = |text: Option<&&str>| {
            let text = text.ok_or_else(|| format!("line {line}: too few columns"))?;
            let number = text.parse::<f64>().ok();
            let number = number.filter(|number| number.is_finite());
            number.ok_or_else(|| {
                format!("line {line}: not a number where a time or a value is expected")
            })
        };
        if self.rows.len() == MOST {
            return Err(format!("too many points; expected at most {MOST}"));
        }
        self.rows.push((line, number(at)?, number(value)?));
        Ok(())
    }

    fn read_columns(
        &mut self,
        text: &str,
        quantity: Quantity,
        columns: &Columns<'_>,
    ) -> Result<(), String> {
        let mut lines = (1..).zip(text.lines());
        let mut lines = lines
            .by_ref()
            .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
            .peekable();
        let is_header = |line: &str| {
            fields(line)
                .iter()
                .any(|field| field.parse::<f64>().is_err())
        };
        let header = lines.next_if(|(_, line)| is_header(line));
        let names = header.map(|(_, line)| fields(line));
        let name = |at: usize| names.as_ref().and_then(|names| names.get(at)).copied();
        let scale = name(0).map(|name| Quantity::Delay.unit_in_name(name));
        // Of the usual unit of a delay, which is ms.
        let seconds = scale.transpose()?.flatten().unwrap_or(1e3) / 1e3;
        let value = columns
            .column
            .map(|column| index(column, names.as_deref()))
            .transpose()?;
        if columns.unit.is_none()
            && let Some(name) = name(value.unwrap_or(1))
        {
            self.unit = quantity
                .unit_in_name(name)
                .map_err(|rule| format!("{rule}, or unit"))?;
        }
        for (n, line) in lines {
            let mut fields = fields(line);
            while fields.last().is_some_and(|field| field.is_empty()) {
                fields.pop();
            }
            if fields.len() > 2 && value.is_none() {
                return Err(format!(
                    "line {n}: {} columns; set column, a name or a number from 1",
                    fields.len()
                ));
            }
            if let ([alone], None) = (fields.as_slice(), value) {
                // A file of LeoReplayer. One column of numbers for a rate is most likely a trace of Mahimahi.
                if quantity != Quantity::Delay {
                    let hint = match quantity {
                        Quantity::Rate => "; for a file of Mahimahi, use trace",
                        Quantity::Delay | Quantity::Loss => "",
                    };
                    return Err(format!(
                        "line {n}: one column; expected a time in seconds and a value{hint}"
                    ));
                }
                #[expect(clippy::cast_precision_loss, reason = "a number of lines")]
                let at = self.rows.len() as f64 * LINE.as_secs_f64();
                let at = at.to_string();
                self.push(n, Some(&at.as_str()), Some(alone))?;
            } else {
                self.push(n, fields.first(), fields.get(value.unwrap_or(1)))?;
                if let Some((_, at, _)) = self.rows.last_mut() {
                    *at *= seconds;
                    if *at > LATEST_S {
                        return Err(format!(
                            "line {n}: a time too large for seconds; expected a first line with names such as time_ms,{}",
                            quantity.example_of_name()
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The records with the column, of the log of cake-autorate.
    fn read_log(&mut self, text: &str, columns: &Columns<'_>) -> Result<(), String> {
        let column = columns.column.ok_or(
            "a log of cake-autorate has several columns; set column, such as \"CAKE_DL_RATE_KBPS\"",
        )?;
        let mut places = None;
        for (n, line) in (1..).zip(text.lines()) {
            let fields: Vec<_> = line.split(';').map(str::trim).collect();
            let record = fields.first().copied().unwrap_or_default();
            if let Some(kind) = record.strip_suffix("_HEADER") {
                let at = |name: &str| fields.iter().position(|field| *field == name);
                if let Some(place) = at("LOG_TIMESTAMP")
                    .zip(at(column))
                    .filter(|_| places.is_none())
                {
                    places = Some((kind.to_owned(), place));
                }
            } else if let Some((kind, (at, value))) = &places
                && record == kind
            {
                self.push(n, fields.get(*at), fields.get(*value))?;
            }
        }
        if places.is_none() {
            return Err(format!("no record of the log has a column \"{column}\""));
        }
        self.unit = [("_KBPS", 1e-3), ("_US", 1e-3), ("_PERCENT", 1.0)]
            .into_iter()
            .find_map(|(end, unit)| column.ends_with(end).then_some(unit));
        Ok(())
    }

    /// The points, the last of which lasts as long as the one before.
    fn points(&self, quantity: Quantity, unit: Option<f64>) -> Result<Points, String> {
        let unit = unit.or(self.unit).unwrap_or(1.0);
        let first = self.rows.first().map_or(0.0, |&(_, at, _)| at);
        let mut points: Vec<(Duration, u64)> = Vec::with_capacity(self.rows.len());
        for &(line, at, value) in &self.rows {
            let fail = |what: &str| format!("line {line}: {what}");
            let nanos = Quantity::Delay.scaled(1e3 * (at - first), 1.0);
            let at = nanos.map(Duration::from_nanos).ok_or_else(|| {
                fail("a time before the first one, or too late; expected ascending times")
            })?;
            let value = quantity
                .scaled(value, unit)
                .ok_or_else(|| fail("a value out of range"))?;
            if points.last().is_some_and(|&(last, _)| last >= at) {
                return Err(fail("not after the time before; expected ascending times"));
            }
            points.push((at, value));
        }
        let period = match points.as_slice() {
            [.., (before, _), (last, _)] => *last + (*last - *before),
            _ => Duration::from_secs(1),
        };
        Points::new(points, period)
    }
}

/// A bandwidth pattern of netem-trace.
fn pattern(text: &str, quantity: Quantity, columns: &Columns<'_>) -> Result<Points, String> {
    const RIGHT: &str =
        "expected [[ms, [Mbit/s, …]], …] or a RepeatedBwPatternConfig of StaticBwConfig";
    let tree: Json = serde_json::from_str(text).map_err(|error| {
        format!(
            "invalid JSON in line {}, column {}",
            error.line(),
            error.column()
        )
    })?;
    if quantity != Quantity::Rate {
        return Err("a JSON pattern has rates; expected a rate_trace".to_owned());
    }
    let mut steps: Vec<(Duration, u64)> = Vec::new();
    let read = match &tree {
        Json::Array(items) => items.iter().try_for_each(|item| {
            let (length, rates) = (item.get(0)?.as_f64()?, item.get(1)?.as_array()?);
            let length = Quantity::Delay
                .scaled(length, 1.0)
                .map(Duration::from_nanos)?;
            for rate in rates {
                let rate = quantity.scaled(rate.as_f64()?, columns.unit.unwrap_or(1.0))?;
                steps.push((length, rate));
            }
            Some(())
        }),
        tree => {
            let repeated = tree.get("RepeatedBwPatternConfig").unwrap_or(tree);
            let items = repeated.get("pattern").and_then(Json::as_array);
            items.and_then(|items| {
                items.iter().try_for_each(|item| {
                    let step = item.get("StaticBwConfig")?;
                    steps.push((length(step.get("duration")?)?, bandwidth(step.get("bw")?)?));
                    Some(())
                })
            })
        }
    };
    read.ok_or_else(|| format!("not a pattern; {RIGHT}"))?;
    if steps.len() > MOST {
        return Err(format!("too many points; expected at most {MOST}"));
    }
    let mut at = Duration::ZERO;
    let steps = steps
        .into_iter()
        .filter(|(length, _)| *length > Duration::ZERO);
    let points: Vec<_> = steps
        .map(|(length, rate)| {
            let start = at;
            at += length;
            (start, rate)
        })
        .collect();
    Points::new(points, at)
}

/// A duration: a text with its unit, or seconds and nanoseconds.
fn length(node: &Json) -> Option<Duration> {
    if let Some(text) = node.as_str() {
        return text.parse().ok();
    }
    let part = |key: &str| node.get(key)?.as_u64();
    let nanos = part("secs")?
        .checked_mul(1_000_000_000)?
        .checked_add(part("nanos")?)?;
    Some(Duration::from_nanos(nanos))
}

/// A bandwidth in bit/s: a text such as `12Mbps`, or Gbit/s and bit/s.
fn bandwidth(node: &Json) -> Option<u64> {
    if let Some(text) = node.as_str() {
        let text = text.trim();
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match text[number.len()..].trim() {
            "bps" => 1e-6,
            "kbps" | "Kbps" => 1e-3,
            "Mbps" => 1.0,
            "Gbps" => 1e3,
            _ => return None,
        };
        return Quantity::Rate.scaled(number.trim().parse().ok()?, unit);
    }
    let part = |key: &str| node.get(key)?.as_u64();
    part("gbps")?
        .checked_mul(1_000_000_000)?
        .checked_add(part("bps")?)
}

#[cfg(test)]
mod tests;
