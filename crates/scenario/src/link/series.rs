//! Traces of a value over time: `rate_trace`, `delay_trace` and `loss_trace`.
//!
//! As of a capacity trace, a scenario names a file and its canonical form contains the points. A value holds from its
//! time until the next; after the period, the trace repeats.

use std::fmt::Write as _;

use sojourn_apps::LONGEST;
use sojourn_net::{Duration, Rate};

use crate::declare::{KeyValue, Keys, Percent, keys, tables};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Place;
use crate::plan::RateTrace;
use crate::value::{Node, time_text};

/// Points that a trace may have.
pub(super) const MOST: usize = 1_000_000;

keys! {
    /// A trace of a value over time and where it came from.
    #[derive(Clone, Debug)]
    pub(crate) struct SeriesKeys {
        /// File from which the points were read.
        file: Option<String> = Form::Def("text");
        /// Column of the values in a file with columns: its name in the first line, or its number from 1.
        column: Option<String> = Form::Either(&[Form::Def("text"), Form::Integer(1, 1_000)]);
        /// Unit of the values in the file, if not the usual one: bit, kbit, mbit or gbit; s, ms or us.
        unit: Option<String> = Form::Def("text");
        /// Points such as "0s 24ms, 10s 31ms": a time and the value from then on; by default those of the file.
        points: Option<String> = Form::Def("text");
        /// Time after which the trace repeats; by default that of the file.
        period: Option<Duration> = Form::POSITIVE_TIME;
    }
}

tables! { SeriesKeys }

/// What a trace has a value of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// In bit/s.
    Rate,
    /// In ns.
    Delay,
    /// In millionths of a percent.
    Loss,
}

/// Points of a quantity in its smallest unit, the first of which is at zero, and the period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Points {
    pub(super) points: Vec<(Duration, u64)>,
    pub(super) period: Duration,
}

/// Millionths of a percent.
const PER_PERCENT: f64 = 1e6;

impl Quantity {
    /// The quantity of the trace under this key.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        match key {
            "rate_trace" => Some(Self::Rate),
            "delay_trace" => Some(Self::Delay),
            "loss_trace" => Some(Self::Loss),
            _ => None,
        }
    }

    /// The value with its unit as text.
    fn text(self, value: u64) -> String {
        match self {
            Self::Rate => Rate::from_bits_per_sec(value)
                .map_or_else(|| "0bit".to_owned(), |rate| rate.to_string()),
            Self::Delay => time_text(Duration::from_nanos(value)),
            Self::Loss => format!("{}%", percent(value)),
        }
    }

    fn read(self, text: &str) -> Option<u64> {
        match self {
            Self::Rate if is_zero(text) => Some(0),
            Self::Rate => Some(text.parse::<Rate>().ok()?.bits_per_sec()),
            Self::Delay => {
                let delay = text.parse::<Duration>().ok()?;
                (delay <= LONGEST).then_some(delay.as_nanos())
            }
            Self::Loss => self.scaled(text.strip_suffix('%')?.parse().ok()?, 1.0),
        }
    }

    /// The value of a number in units of `unit` of the usual one: Mbit/s, ms or percent.
    pub(super) fn scaled(self, number: f64, unit: f64) -> Option<u64> {
        let (smallest, most) = match self {
            Self::Rate => (1e6, 1e15),
            Self::Delay => (1e6, 1e9 * LONGEST.as_secs_f64()),
            Self::Loss => (PER_PERCENT, 100.0 * PER_PERCENT),
        };
        let value = (number * unit * smallest).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the range"
        )]
        (0.0..=most).contains(&value).then_some(value as u64)
    }

    /// How many of the usual unit `unit` is.
    pub(super) fn unit(self, unit: &str) -> Result<f64, String> {
        let known: &[(&str, f64)] = match self {
            Self::Rate => &[("bit", 1e-6), ("kbit", 1e-3), ("mbit", 1.0), ("gbit", 1e3)],
            Self::Delay => &[("us", 1e-3), ("ms", 1.0), ("s", 1e3)],
            Self::Loss => &[("%", 1.0), ("fraction", 100.0)],
        };
        let found = known.iter().find(|(name, _)| *name == unit);
        found.map(|(_, factor)| *factor).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            format!("unknown unit \"{unit}\"; expected {}", names.join(", "))
        })
    }

    /// How many of the usual unit the unit in the name of a column is, such as `rate_kbps`; an error if only bytes fit.
    pub(super) fn unit_in_name(self, name: &str) -> Result<Option<f64>, String> {
        let known: &[(&[&str], f64)] = match self {
            Self::Rate => &[
                (&["bps", "bit", "bits"], 1e-6),
                (&["kbps", "kbit", "kbits"], 1e-3),
                (&["mbps", "mbit", "mbits"], 1.0),
                (&["gbps", "gbit", "gbits"], 1e3),
            ],
            Self::Delay => &[
                (&["ns", "nsec", "nanoseconds"], 1e-6),
                (&["us", "µs", "usec", "microseconds"], 1e-3),
                (&["ms", "msec", "milliseconds"], 1.0),
                (&["s", "sec", "secs", "seconds"], 1e3),
            ],
            Self::Loss => &[
                (&["percent", "pct"], 1.0),
                (&["fraction", "ratio", "share"], 100.0),
            ],
        };
        for word in name.split(|c: char| !c.is_alphanumeric()) {
            let lower = word.to_lowercase();
            if let Some(&(_, factor)) = known.iter().find(|(names, _)| names.contains(&&*lower)) {
                // In MBps, the letter B is that of bytes; in KBPS, all are capitals.
                let of_bytes = self == Self::Rate
                    && word.contains('B')
                    && word.contains(char::is_lowercase)
                    && word != "Bits";
                if !of_bytes {
                    return Ok(Some(factor));
                }
            }
            let bytes = [
                "byte", "bytes", "kbyte", "kbytes", "mbyte", "mbytes", "kb", "mb", "gb",
            ];
            if self == Self::Rate && (word.ends_with("Bps") || bytes.contains(&&*lower)) {
                return Err(
                    "the name of the column has a unit of bytes; expected rates in bits".to_owned(),
                );
            }
        }
        Ok(None)
    }

    /// An example of the name of a column.
    pub(super) const fn example_of_name(self) -> &'static str {
        match self {
            Self::Rate => "rate_mbit",
            Self::Delay => "delay_ms",
            Self::Loss => "loss_percent",
        }
    }

    /// An example of a point.
    const fn example(self) -> &'static str {
        match self {
            Self::Rate => "0s 20mbit",
            Self::Delay => "0s 24ms",
            Self::Loss => "0s 1%",
        }
    }
}

/// A share of this many millionths of a percent, in percent.
fn percent(value: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most 10^8")]
    let value = value as f64;
    value / PER_PERCENT
}

fn is_zero(text: &str) -> bool {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    number.parse::<f64>() == Ok(0.0)
}

impl Points {
    /// Points by ascending time, each with the value that differs from the one before.
    pub(super) fn new(given: Vec<(Duration, u64)>, period: Duration) -> Result<Self, String> {
        let mut points: Vec<(Duration, u64)> = Vec::with_capacity(given.len());
        let mut before = None;
        for (at, value) in given {
            match before {
                None if at > Duration::ZERO => {
                    return Err("the first point is not at 0s; expected one there".to_owned());
                }
                Some(before) if at <= before => {
                    let at = time_text(at);
                    return Err(format!(
                        "{at} is not after the point before; expected ascending times"
                    ));
                }
                _ => {}
            }
            before = Some(at);
            if points.last().is_none_or(|&(_, last)| last != value) {
                points.push((at, value));
            }
        }
        match before {
            None => Err("no points; expected at least one".to_owned()),
            Some(last) if last >= period => {
                let last = time_text(last);
                Err(format!(
                    "the last point, at {last}, is not before the end of the period"
                ))
            }
            Some(_) => Ok(Self { points, period }),
        }
    }

    fn read(quantity: Quantity, text: &str, period: Duration) -> Result<Self, String> {
        let mut points = Vec::new();
        for point in text.split(',').filter(|point| !point.trim().is_empty()) {
            let mut words = point.split_whitespace();
            let read = words
                .next()
                .zip(words.next())
                .filter(|_| words.next().is_none())
                .and_then(|(at, value)| Some((at.parse().ok()?, quantity.read(value)?)));
            let read = read.ok_or_else(|| {
                let point = point.trim();
                format!(
                    "\"{point}\" is not a point; expected one such as \"{}\"",
                    quantity.example()
                )
            })?;
            if points.len() == MOST {
                return Err(format!("too many points; expected at most {MOST}"));
            }
            points.push(read);
        }
        Self::new(points, period)
    }

    pub(super) fn text(&self, quantity: Quantity) -> String {
        let mut text = String::new();
        for &(at, value) in &self.points {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{} {}", time_text(at), quantity.text(value));
        }
        text
    }

    /// The number of points up to the end of a run, repeated.
    pub(super) fn count_until(&self, end: Duration) -> u64 {
        let period = self.period.as_nanos().max(1);
        let (rounds, rest) = (end.as_nanos() / period, end.as_nanos() % period);
        let last = self.points.partition_point(|(at, _)| at.as_nanos() < rest);
        rounds
            .saturating_mul(self.points.len() as u64)
            .saturating_add(last as u64)
    }

    /// The points up to the end of a run, repeated.
    pub(super) fn until(&self, end: Duration) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let rounds =
            (0..).map(|round| Duration::from_nanos(self.period.as_nanos().saturating_mul(round)));
        let all = rounds.flat_map(|start| {
            self.points
                .iter()
                .map(move |&(at, value)| (start + at, value))
        });
        all.take_while(move |(at, _)| *at < end)
    }
}

/// Declares the traces of a quantity.
macro_rules! traces {
    ($($(#[$doc:meta])* $name:ident: $quantity:ident;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub(crate) struct $name {
                keys: SeriesKeys,
                pub(super) points: Points,
            }

            impl KeyValue for $name {
                fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
                    let mut keys = <SeriesKeys as KeyValue>::read(place)?;
                    // The canonical text is written from the points; keeping this copy would double it.
                    keys.points = None;
                    let fields = place.fields(SeriesKeys::KEYS)?;
                    let text = fields.need("points", "\"0s 24ms, 10s 31ms\"")?;
                    let period = fields.need("period", "\"20s\"")?;
                    let period = <Duration as KeyValue>::read(&period)?;
                    let points = Points::read(Quantity::$quantity, text.text()?, period);
                    let points = points.map_err(|rule| text.fail(rule))?;
                    Ok(Self { keys, points })
                }

                fn write(&self) -> Option<Node> {
                    let keys = SeriesKeys {
                        points: Some(self.points.text(Quantity::$quantity)),
                        ..self.keys.clone()
                    };
                    KeyValue::write(&keys)
                }
            }
        )+
    };
}

traces! {
    /// The rate of a link over time.
    Rates: Rate;
    /// The delay of a link over time.
    Delays: Delay;
    /// The loss of a link over time.
    Shares: Loss;
}

impl Rates {
    /// The trace in a plan.
    pub(super) fn config(&self) -> Result<RateTrace, String> {
        RateTrace::new(&self.points.points, self.points.period).map_err(|error| error.rule)
    }
}

impl Shares {
    /// The values as shares of packets.
    pub(super) fn share(value: u64) -> Percent {
        Percent(percent(value))
    }
}
