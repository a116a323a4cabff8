//! Increase of the ping time under load, by two definitions.
//!
//! *Induced latency* is `mean_span` of flent (<https://flent.org>), the metric of its plot
//! `box_combine` and of "The Good, the Bad and the `WiFi`". The series of pings are interpolated to
//! a grid of 0.2 s and averaged; induced latency is the mean of the points under load minus the
//! smallest. flent's load begins when it starts netperf, which sends data only round trips later,
//! so that the first point shows an idle link. Here the load begins one step before its first
//! packet, and the mean covers the time after the warm-up.
//!
//! *Latency above base* uses the smallest time of the whole run instead of the smallest under load.
//! It includes the delay of a queue that is never empty under load.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field};

use super::formulas::real;
use super::rows::{Ordered, RunKey, columns, key_columns, table};
use crate::tables::Table;
use sojourn_tables::mean;

/// flent's `STEP_SIZE`, in seconds.
const STEP: f64 = 0.2;
/// Seconds within which the next value must follow, or there is a gap; for the first value, half a
/// step.
const LONGEST_GAP: f64 = 5.0 * STEP;
const FIRST_GAP: f64 = 0.5 * STEP;
/// Distance in steps, rounded up, within which a reply determines the value of a grid point.
const REACH: usize = 6;

columns! {
    /// A row of `pings`.
    PingRow {
        texts: flow;
        numbers: t_s rtt_ms;
    }
}

/// A ping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping<'a> {
    pub(super) flow: &'a str,
    pub(super) t_s: f64,
    pub(super) rtt_ms: Option<f64>,
}

/// Reads the pings of each run.
pub(super) fn read_pings<'a>(
    pings: &'a [RecordBatch],
    mut add: impl FnMut(RunKey<'a>, Ping<'a>),
) -> Result<(), ArrowError> {
    PingRow::read(pings, |run, row| {
        if let Some(t_s) = row.t_s {
            let flow = row.flow.unwrap_or_default();
            let rtt_ms = row.rtt_ms;
            add(run, Ping { flow, t_s, rtt_ms });
        }
    })
}

/// The pings of every run as flent averages them: `arm`, `replication`, `t_s`, and `value` in ms.
///
/// # Errors
/// If the table lacks a column, or a column has another type.
pub fn averaged_pings(pings: &[RecordBatch]) -> Result<Table, ArrowError> {
    let mut runs: Ordered<RunKey<'_>, Vec<Ping<'_>>> = Ordered::default();
    read_pings(pings, |run, ping| runs.of(run).push(ping))?;
    let points = runs.items.iter().flat_map(|(run, pings)| {
        let points = averaged(pings).into_iter();
        points.map(move |(at, value)| (*run, at, value))
    });
    let points: Vec<_> = points.collect();
    let (mut fields, mut columns) = key_columns(points.iter().map(|(run, ..)| *run));
    for (name, of) in [("t_s", 0), ("value", 1)] {
        let values = points.iter().map(|&(_, at, value)| [at, value][of]);
        fields.push(Field::new(name, DataType::Float64, false));
        columns.push(Arc::new(Float64Array::from_iter_values(values)));
    }
    table(fields, columns)
}

/// The replies to the pings of one flow, in order of arrival.
struct Series {
    /// In seconds.
    times: Vec<f64>,
    /// In milliseconds.
    rtts: Vec<f64>,
}

/// The mean of the averaged series after the warm-up, minus its minimum within the load, which
/// begins at `begin`; in milliseconds.
pub(super) fn induced(pings: &[Ping<'_>], warmup: f64, begin: Option<f64>) -> Option<f64> {
    let load = begin.map_or(warmup, |begin| warmup.min(begin - STEP));
    let points = averaged(pings);
    let under_load = points.iter().filter(|&&(at, _)| at >= load);
    let smallest = under_load.map(|&(_, value)| value).reduce(f64::min)?;
    let counted = points.iter().filter(|&&(at, _)| at >= warmup);
    // Mean of differences, not difference of means: exact for equal times.
    mean(
        &counted
            .map(|(_, value)| value - smallest)
            .collect::<Vec<_>>(),
    )
}

/// The mean time after the warm-up minus the smallest of the whole run, averaged over the flows; in
/// milliseconds.
pub(super) fn above_base(pings: &[Ping<'_>], warmup: f64) -> Option<f64> {
    let of_flow = |flow: Vec<&Ping<'_>>| {
        let smallest = flow
            .iter()
            .filter_map(|ping| ping.rtt_ms)
            .reduce(f64::min)?;
        let counted = flow.iter().filter(|ping| ping.t_s >= warmup);
        let above = counted.filter_map(|ping| Some(ping.rtt_ms? - smallest));
        mean(&above.collect::<Vec<_>>())
    };
    let flows: Vec<_> = by_flow(pings).into_iter().filter_map(of_flow).collect();
    mean(&flows)
}

/// The pings of a run as flent averages them for its series *Ping (ms) avg*: times in seconds and
/// values in milliseconds, where a series has a value.
fn averaged(pings: &[Ping<'_>]) -> Vec<(f64, f64)> {
    let flows = by_flow(pings).into_iter();
    let series: Vec<_> = flows.filter_map(|flow| Series::of(&flow)).collect();
    let firsts = series.iter().filter_map(|s| s.times.first().copied());
    let lasts = series.iter().filter_map(|s| s.times.last().copied());
    let (Some(begin), Some(end)) = (firsts.reduce(f64::min), lasts.reduce(f64::max)) else {
        return Vec::new();
    };
    let mut sums: Vec<(f64, usize)> = Vec::new();
    let grid = grid(begin, end, &series);
    sums.resize(grid.len(), (0.0, 0));
    for one in &series {
        for (sum, value) in sums.iter_mut().zip(one.on_grid(&grid)) {
            if let Some(value) = value {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        }
    }
    let points = grid.into_iter().zip(sums).filter(|&(_, (_, n))| n > 0);
    points.map(|(at, (sum, n))| (at, sum / real(n))).collect()
}

/// The pings of each flow, in the order in which flows appear.
fn by_flow<'p, 'a>(pings: &'p [Ping<'a>]) -> Vec<Vec<&'p Ping<'a>>> {
    let mut flows: Vec<(&str, Vec<&Ping<'_>>)> = Vec::new();
    for ping in pings {
        // Few flows ping, and the rows of a flow follow each other.
        match flows.iter_mut().rev().find(|(flow, _)| *flow == ping.flow) {
            Some((_, known)) => known.push(ping),
            None => flows.push((ping.flow, vec![ping])),
        }
    }
    flows.into_iter().map(|(_, pings)| pings).collect()
}

/// The points of the grid at which any series has a value, at least one.
///
/// A point has a value only if a reply is near. In a long run with rare pings, the complete grid
/// would have millions of points per reply.
fn grid(begin: f64, end: f64, series: &[Series]) -> Vec<f64> {
    let size = whole(((end - begin) / STEP).ceil()).max(1);
    let replies: usize = series.iter().map(|s| s.times.len()).sum();
    let at = |step: usize| begin + STEP * real(step);
    if size <= 2 * REACH * replies {
        return (0..size).map(at).collect();
    }
    let times = series.iter().flat_map(|s| &s.times);
    let near: BTreeSet<usize> = times
        .flat_map(|time| {
            let step = whole((time - begin) / STEP);
            step.saturating_sub(REACH)..(step + REACH + 1).min(size)
        })
        .collect();
    near.into_iter().map(at).collect()
}

impl Series {
    /// The replies, by the time of their arrival, as flent records them; `None` if there are none.
    fn of(pings: &[&Ping<'_>]) -> Option<Self> {
        let replies = pings.iter().filter_map(|ping| {
            let rtt = ping.rtt_ms?;
            Some((ping.t_s + rtt / 1e3, rtt))
        });
        let mut replies: Vec<_> = replies.collect();
        replies.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (times, rtts) = replies.into_iter().unzip();
        let series = Self { times, rtts };
        (!series.times.is_empty()).then_some(series)
    }

    /// Interpolated as flent does; `None` where there is a gap.
    fn on_grid(&self, grid: &[f64]) -> impl Iterator<Item = Option<f64>> {
        let (mut after, mut is_past) = (0, false);
        grid.iter().map(move |&at| {
            // The number of replies until `at`; the grid is in order.
            while self.times.get(after).is_some_and(|&time| time <= at) {
                after += 1;
            }
            // Past its end a series has its last value once.
            let ended = after == self.times.len();
            if std::mem::replace(&mut is_past, ended) {
                return None;
            }
            let following = after.min(self.times.len() - 1);
            let gap = if after == 0 { FIRST_GAP } else { LONGEST_GAP };
            ((self.times[following] - at).abs() <= gap).then(|| self.interpolated(at, after))
        })
    }

    /// The value at a time, where `after` replies have arrived until then.
    fn interpolated(&self, at: f64, after: usize) -> f64 {
        let Some(before) = after.checked_sub(1) else {
            return self.rtts[0];
        };
        let (time, rtt) = (self.times[before], self.rtts[before]);
        match (self.times.get(after), self.rtts.get(after)) {
            (Some(next), Some(value)) if time < at => {
                (value - rtt) / (next - time) * (at - time) + rtt
            }
            _ => rtt,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of steps; out of range, the nearest"
)]
fn whole(steps: f64) -> usize {
    steps as usize
}
