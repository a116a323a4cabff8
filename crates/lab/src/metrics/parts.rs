//! What checks of validity read of the series of each run: means over parts of the measured time, stretches in which a
//! queue sent nothing, and replies to pings.

use std::collections::BTreeMap;
use std::slice;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use sojourn_scenario::{Measured, traffic_properties};

use super::rows::{Keys, Numbers, RunKey, Texts, columns};
use super::runs::TOTAL;
use crate::tables::Table;

/// The measured time, in parts of equal length; times are in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// End of the warm-up.
    pub warmup_s: f64,
    /// End of the run.
    pub duration_s: f64,
    /// How many parts there are.
    pub count: u32,
}

/// The weighted mean of a quantity in each part, if it has a value there, by what it is of, in alphabetical order.
pub type Means = Vec<(String, Vec<Option<f64>>)>;

/// The means of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunMeans {
    /// Its arm.
    pub arm: String,
    /// Its replication.
    pub replication: u32,
    /// When each flow of its load sent: start, end and the interval of its series, in seconds.
    pub spans: Vec<(f64, f64, f64)>,
    /// The means.
    pub means: Means,
}

/// Intervals in a row in which a queue of a run sent nothing although packets waited.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// The arm of the run.
    pub arm: String,
    /// Its replication.
    pub replication: u32,
    /// The link.
    pub link: String,
    /// End of the first interval, in seconds.
    pub begin_s: f64,
    /// How many intervals.
    pub intervals: u32,
    /// The largest backlog, in bytes.
    pub backlog_bytes: f64,
}

columns! {
    /// A row of `flows`.
    FlowRow {
        texts: flow kind direction;
        numbers: bytes;
    }
}

columns! {
    /// A row of `flow_series`.
    FlowSample {
        texts: flow;
        numbers: t_s goodput_mbit_per_s;
    }
}

columns! {
    /// A row of `link_series`.
    LinkSample {
        texts: link;
        numbers: t_s sent_packets backlog_bytes;
    }
}

impl Parts {
    /// The part that an interval that ends at `t_s` belongs to.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most `count`"
    )]
    fn of(&self, t_s: f64) -> Option<usize> {
        let length = (self.duration_s - self.warmup_s) / f64::from(self.count);
        let is_measured = self.warmup_s < t_s && t_s <= self.duration_s;
        is_measured.then(|| (((t_s - self.warmup_s) / length).ceil() - 1.0) as usize)
    }
}

/// Sums of a quantity and of its weights, by what it is of and by part.
#[derive(Debug, Default)]
struct Sums(Vec<(String, Vec<(f64, f64)>)>);

impl Sums {
    fn add(&mut self, of: &str, parts: &Parts, t_s: f64, value: f64, weight: f64) {
        let Some(part) = parts.of(t_s) else {
            return;
        };
        let known = self.0.iter().position(|(name, _)| name == of);
        let place = known.unwrap_or_else(|| {
            self.0.push((of.to_owned(), Vec::new()));
            self.0.len() - 1
        });
        let sums = &mut self.0[place].1;
        if sums.len() <= part {
            sums.resize(part + 1, (0.0, 0.0));
        }
        sums[part].0 += value * weight;
        sums[part].1 += weight;
    }

    fn means(mut self) -> Means {
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mean = |(sum, weight): (f64, f64)| (weight != 0.0).then(|| sum / weight);
        let each = self.0.into_iter();
        each.map(|(of, sums)| (of, sums.into_iter().map(mean).collect()))
            .collect()
    }
}

/// Averages the column `value` of a table in each part of each run: of the column `of`, if that is given, and weighted
/// by the column `weight`, if that is given. A run with rows but no value has no means.
///
/// Passes the means of a run to `each`, if the table is in order as soon as it has read the run: the means of many runs,
/// kept in memory beside what is read of the next ones, would scatter over it.
///
/// # Errors
/// If the table cannot be read or lacks a column.
pub fn part_means(
    table: &Table,
    value: &str,
    of: Option<&str>,
    weight: Option<&str>,
    parts: &Parts,
    mut each: impl FnMut(RunMeans),
) -> Result<(), ArrowError> {
    let mut open: Runs<Sums> = Runs::default();
    let mut close = |open: &mut Runs<Sums>| {
        for ((arm, replication), sums) in std::mem::take(open).each {
            each(RunMeans {
                arm,
                replication,
                spans: Vec::new(),
                means: sums.means(),
            });
        }
    };
    for batch in table.each() {
        let batch = batch?;
        let keys = Keys::of(&batch)?;
        let times = Numbers::of(&batch, "t_s")?;
        let values = Numbers::of(&batch, value)?;
        let names = of.map(|of| Texts::of(&batch, of)).transpose()?;
        let weights = weight.map(|of| Numbers::of(&batch, of)).transpose()?;
        for row in 0..batch.num_rows() {
            let run = keys.get(row)?;
            if table.is_in_order() && open.place(run).is_none() {
                close(&mut open);
            }
            let sums = open.of(run);
            let (Some(t_s), Some(value)) = (times.get(row), values.get(row)) else {
                continue;
            };
            let name = names.as_ref().and_then(|names| names.get(row));
            let weight = weights.as_ref().map_or(Some(1.0), |of| of.get(row));
            sums.add(name.unwrap_or(""), parts, t_s, value, weight.unwrap_or(0.0));
        }
    }
    close(&mut open);
    Ok(())
}

/// Averages the goodput of each direction in each part of each run, over the flows of the load: endless connections, and
/// other flows that send data at a rate of their own. Passes it to `each` as [`part_means`] does.
///
/// The series of a flow begins with the interval in which it starts; all are of equal length.
///
/// # Errors
/// If a table cannot be read or lacks a column.
pub fn load_means(
    flows: &Table,
    flow_series: &Table,
    parts: &Parts,
    mut each: impl FnMut(RunMeans),
) -> Result<(), ArrowError> {
    let mut directions: Runs<BTreeMap<String, String>> = Runs::default();
    for batch in flows.each() {
        FlowRow::read(slice::from_ref(&batch?), |run, row| {
            let traffic = traffic_properties(row.kind.unwrap_or_default());
            let is_endless = traffic.has_connection && row.bytes.is_none();
            if is_endless || (traffic.constant_rate && traffic.measured == Measured::Flows) {
                let flow = row.flow.unwrap_or_default().to_owned();
                let direction = row.direction.filter(|direction| !direction.is_empty());
                let direction = direction.unwrap_or(TOTAL).to_owned();
                directions.of(run).insert(flow, direction);
            }
        })?;
    }
    let mut open: Runs<FlowsOfRun> = Runs::default();
    let none = BTreeMap::new();
    let mut close = |open: &mut Runs<FlowsOfRun>| {
        for (run, flows) in std::mem::take(open).each {
            let directions = directions.get((&run.0, run.1)).unwrap_or(&none);
            each(flows.means(run, directions, parts));
        }
    };
    for batch in flow_series.each() {
        let batch: RecordBatch = batch?;
        FlowSample::read(slice::from_ref(&batch), |run, row| {
            if flow_series.is_in_order() && open.place(run).is_none() {
                close(&mut open);
            }
            if let Some(t_s) = row.t_s {
                let rate = row.goodput_mbit_per_s.unwrap_or(0.0);
                open.of(run).add(row.flow.unwrap_or_default(), t_s, rate);
            }
        })?;
    }
    close(&mut open);
    Ok(())
}

/// The series of the flows of a run, in the order in which they appear.
#[derive(Debug, Default)]
struct FlowsOfRun(Vec<(String, Vec<(f64, f64)>)>);

impl FlowsOfRun {
    fn add(&mut self, flow: &str, t_s: f64, rate: f64) {
        // The rows of a flow follow each other.
        let is_last = self.0.last().is_some_and(|(last, _)| last == flow);
        let place = if is_last {
            self.0.len() - 1
        } else if let Some(place) = self.0.iter().position(|(name, _)| name == flow) {
            place
        } else {
            self.0.push((flow.to_owned(), Vec::new()));
            self.0.len() - 1
        };
        self.0[place].1.push((t_s, rate));
    }

    fn means(
        &self,
        (arm, replication): (String, u32),
        directions: &BTreeMap<String, String>,
        parts: &Parts,
    ) -> RunMeans {
        let mut spans = Vec::new();
        let mut of_directions: Vec<(&str, Rates)> = Vec::new();
        for (flow, samples) in &self.0 {
            let (Some(direction), Some(&(first, _)), Some(&(last, _))) =
                (directions.get(flow), samples.first(), samples.last())
            else {
                continue;
            };
            let steps = samples.windows(2).map(|pair| pair[1].0 - pair[0].0);
            let interval = steps.clone().reduce(f64::min).unwrap_or(first);
            spans.push((first - interval, last, interval));
            let known = of_directions.iter().position(|(name, _)| name == direction);
            let place = known.unwrap_or_else(|| {
                of_directions.push((direction, Rates::default()));
                of_directions.len() - 1
            });
            let steps = std::iter::once(interval).chain(steps);
            for (&(t_s, rate), step) in samples.iter().zip(steps) {
                of_directions[place].1.add(t_s, rate, step);
            }
        }
        let mut sums = Sums::default();
        for (direction, rates) in &of_directions {
            for &(t_s, rate, length) in &rates.each {
                sums.add(direction, parts, t_s, rate, length);
            }
        }
        RunMeans {
            arm,
            replication,
            spans,
            means: sums.means(),
        }
    }
}

/// The rates of a direction by time: the sum over its flows, and the shortest of their intervals.
#[derive(Debug, Default)]
struct Rates {
    places: BTreeMap<u64, usize>,
    each: Vec<(f64, f64, f64)>,
}

impl Rates {
    fn add(&mut self, t_s: f64, rate: f64, step: f64) {
        let place = *self.places.entry(t_s.to_bits()).or_insert_with(|| {
            self.each.push((t_s, 0.0, f64::INFINITY));
            self.each.len() - 1
        });
        let (_, sum, length) = &mut self.each[place];
        *sum += rate;
        *length = length.min(step);
    }
}

/// The stretches of each queue of each run in which it sent nothing although packets waited.
///
/// # Errors
/// If the table `link_series` cannot be read or lacks a column.
pub fn stuck(link_series: &Table) -> Result<Vec<Stretch>, ArrowError> {
    let mut found: Vec<Stretch> = Vec::new();
    // Where the stretch of each queue is that has not ended.
    let mut waiting: Runs<BTreeMap<String, usize>> = Runs::default();
    for batch in link_series.each() {
        LinkSample::read(slice::from_ref(&batch?), |run, row| {
            let link = row.link.unwrap_or_default();
            let backlog = row.backlog_bytes.unwrap_or(0.0);
            if row.sent_packets.unwrap_or(0.0) > 0.0 || backlog <= 0.0 {
                waiting.of(run).remove(link);
                return;
            }
            let place = *waiting.of(run).entry(link.to_owned()).or_insert_with(|| {
                found.push(Stretch {
                    arm: run.0.to_owned(),
                    replication: run.1,
                    link: link.to_owned(),
                    begin_s: row.t_s.unwrap_or(0.0),
                    intervals: 0,
                    backlog_bytes: 0.0,
                });
                found.len() - 1
            });
            found[place].intervals += 1;
            found[place].backlog_bytes = found[place].backlog_bytes.max(backlog);
        })?;
    }
    Ok(found)
}

/// Counts the replies to the pings of each run that were sent at or after `warmup_s`; a run without any is left out.
///
/// # Errors
/// If the table `pings` cannot be read or lacks a column.
pub fn replies(pings: &Table, warmup_s: f64) -> Result<Vec<(String, u32, u64)>, ArrowError> {
    let mut runs: Runs<u64> = Runs::default();
    for batch in pings.each() {
        let batch = batch?;
        let keys = Keys::of(&batch)?;
        let (times, rtts) = (Numbers::of(&batch, "t_s")?, Numbers::of(&batch, "rtt_ms")?);
        for row in 0..batch.num_rows() {
            let is_measured = times.get(row).is_some_and(|t_s| t_s >= warmup_s);
            if is_measured && rtts.get(row).is_some() {
                *runs.of(keys.get(row)?) += 1;
            }
        }
    }
    let runs = runs.each.into_iter();
    Ok(runs
        .map(|((arm, replication), count)| (arm, replication, count))
        .collect())
}

/// Values by arm and replication, in the order in which they appeared first.
#[derive(Debug)]
struct Runs<T> {
    each: Vec<((String, u32), T)>,
    places: BTreeMap<(String, u32), usize>,
}

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Self {
            each: Vec::new(),
            places: BTreeMap::new(),
        }
    }
}

impl<T: Default> Runs<T> {
    fn place(&self, (arm, replication): RunKey<'_>) -> Option<usize> {
        let is_last = |((last, of), _): &((String, u32), T)| *of == replication && last == arm;
        if self.each.last().is_some_and(is_last) {
            return Some(self.each.len() - 1);
        }
        self.places.get(&(arm.to_owned(), replication)).copied()
    }

    fn get(&self, run: RunKey<'_>) -> Option<&T> {
        self.place(run).map(|place| &self.each[place].1)
    }

    /// The value of a run, at first the default.
    fn of(&mut self, run: RunKey<'_>) -> &mut T {
        let place = self.place(run).unwrap_or_else(|| {
            let key = (run.0.to_owned(), run.1);
            self.places.insert(key.clone(), self.each.len());
            self.each.push((key, T::default()));
            self.each.len() - 1
        });
        &mut self.each[place].1
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, StringArray, UInt32Array, UInt64Array};

    use super::*;
    use crate::tables::Rows;

    const PARTS: Parts = Parts {
        warmup_s: 1.0,
        duration_s: 3.0,
        count: 2,
    };

    /// A piece of a table: rows of an arm, a replication and a flow or link, and other columns.
    fn piece(rows: &[(&str, u32, &str)], name: &str, others: &[(&str, ArrayRef)]) -> RecordBatch {
        let arms: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.0)));
        let runs: ArrayRef = Arc::new(UInt32Array::from_iter_values(rows.iter().map(|r| r.1)));
        let of: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.2)));
        let mut columns = vec![("arm", arms), ("replication", runs), (name, of)];
        columns.extend(others.iter().cloned());
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    fn real(values: &[f64]) -> ArrayRef {
        Arc::new(Float64Array::from(values.to_vec()))
    }

    fn count(values: &[u64]) -> ArrayRef {
        Arc::new(UInt64Array::from(values.to_vec()))
    }

    fn table(pieces: Vec<RecordBatch>) -> Table {
        Table::new(pieces[0].schema(), pieces)
    }

    /// A table with the rows of one run after another.
    fn in_order(pieces: Vec<RecordBatch>) -> Table {
        let schema = pieces[0].schema();
        Table::of_runs(schema, pieces.into_iter().map(Rows::Held).collect())
    }

    fn series(rows: &[(&str, u32, &str, f64, f64)]) -> RecordBatch {
        let keys: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.2)).collect();
        let of = |column: fn(&(&str, u32, &str, f64, f64)) -> f64| {
            real(&rows.iter().map(column).collect::<Vec<_>>())
        };
        let columns = [
            ("t_s", of(|row| row.3)),
            ("goodput_mbit_per_s", of(|row| row.4)),
        ];
        piece(&keys, "flow", &columns)
    }

    fn flows(runs: &[(&str, u32)]) -> Table {
        let rows: Vec<_> = runs.iter().map(|&(arm, run)| (arm, run, "tcp")).collect();
        let texts = |text: &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| text)))
        };
        let bytes: ArrayRef = Arc::new(UInt64Array::from(vec![None; rows.len()]));
        let columns = [
            ("kind", texts("tcp")),
            ("direction", texts("up")),
            ("bytes", bytes),
        ];
        table(vec![piece(&rows, "flow", &columns)])
    }

    #[test]
    fn rows_of_a_run_belong_together_wherever_pieces_end() {
        let row = |arm, run, t_s: f64| (arm, run, "tcp", t_s, t_s);
        let whole = [row("b", 0, 1.0), row("b", 0, 2.0), row("b", 0, 3.0)];
        let other = [row("a", 0, 1.5), row("a", 0, 3.0)];
        let known = flows(&[("b", 0), ("a", 0)]);
        let ordered = [
            vec![series(&whole), series(&other)],
            vec![series(&whole[..2]), series(&[whole[2], other[0], other[1]])],
        ];
        // Another program may write them so.
        let mixed = vec![
            series(&[whole[0], other[0]]),
            series(&[whole[1], other[1], whole[2]]),
        ];
        let mut tables: Vec<_> = ordered.iter().cloned().map(in_order).collect();
        tables.extend(ordered.into_iter().chain([mixed]).map(table));
        for series in &tables {
            let mut found = Vec::new();
            load_means(&known, series, &PARTS, |run| found.push(run)).expect("all columns");
            assert_eq!(found.len(), 2);
            let mut goodput = Vec::new();
            let add = |run| goodput.push(run);
            let value = "goodput_mbit_per_s";
            part_means(series, value, None, None, &PARTS, add).expect("all columns");
            let means = |run: &RunMeans| (run.arm.clone(), run.means[0].1.clone());
            assert_eq!(
                goodput.iter().map(means).collect::<Vec<_>>(),
                [
                    ("b".to_owned(), vec![Some(2.0), Some(3.0)]),
                    ("a".to_owned(), vec![Some(1.5), Some(3.0)])
                ]
            );
            let of = |arm: &str| found.iter().find(|run| run.arm == arm).expect(arm);
            assert_eq!(of("b").spans, [(0.0, 3.0, 1.0)]);
            assert_eq!(
                of("b").means,
                [("up".to_owned(), vec![Some(2.0), Some(3.0)])]
            );
            assert_eq!(of("a").spans, [(0.0, 3.0, 1.5)]);
            assert_eq!(
                of("a").means,
                [("up".to_owned(), vec![Some(1.5), Some(3.0)])]
            );
        }
    }

    #[test]
    fn goodput_is_that_of_all_endless_flows_of_a_direction() {
        let rows = [
            ("a", 0, "tcp", 2.0, 1.0),
            ("a", 0, "tcp", 3.0, 2.0),
            ("a", 0, "unknown", 2.0, 9.0),
        ];
        let (flows, series) = (flows(&[("a", 0)]), table(vec![series(&rows)]));
        let mut found = Vec::new();
        load_means(&flows, &series, &PARTS, |run| found.push(run)).expect("all columns");
        assert_eq!(
            found[0].means,
            [("up".to_owned(), vec![Some(1.0), Some(2.0)])]
        );
        assert_eq!(found[0].spans.len(), 1);
    }

    #[test]
    fn means_are_weighted_and_by_name() {
        let rows = [
            ("a", 0, "up"),
            ("a", 0, "down"),
            ("a", 0, "up"),
            ("a", 1, "up"),
        ];
        let columns = [
            ("t_s", real(&[1.5, 1.5, 2.0, 0.5])),
            ("sojourn_ms_mean", real(&[1.0, 5.0, 4.0, 7.0])),
            ("sent_packets", count(&[1, 2, 2, 9])),
        ];
        let table = table(vec![piece(&rows, "link", &columns)]);
        let mut found = Vec::new();
        let (of, weight) = (Some("link"), Some("sent_packets"));
        let add = |run| found.push(run);
        part_means(&table, "sojourn_ms_mean", of, weight, &PARTS, add).expect("all columns");
        let means = [
            ("down".to_owned(), vec![Some(5.0)]),
            ("up".to_owned(), vec![Some(3.0)]),
        ];
        assert_eq!(found[0].means, means);
        // Before the warm-up has ended nothing counts, but there is a run.
        assert_eq!((found[1].replication, found[1].means.len()), (1, 0));
        assert!(part_means(&table, "no_column", None, None, &PARTS, |_| {}).is_err());
    }

    #[test]
    fn a_stretch_ends_when_a_packet_is_sent_or_none_waits() {
        let rows = [("a", 0, "up"); 6];
        let columns = [
            ("t_s", real(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
            ("sent_packets", count(&[0, 0, 1, 0, 0, 0])),
            ("backlog_bytes", count(&[10, 30, 30, 20, 0, 5])),
        ];
        let found = stuck(&table(vec![piece(&rows, "link", &columns)])).expect("all columns");
        let found = found.iter();
        let found = found.map(|one| (one.begin_s, one.intervals, one.backlog_bytes));
        let expected = [(1.0, 2, 30.0), (4.0, 1, 20.0), (6.0, 1, 5.0)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn replies_count_from_the_end_of_the_warm_up() {
        let rows = [("a", 0, "ping"); 3];
        let rtts: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(1.0), None]));
        let columns = [("t_s", real(&[0.9, 1.0, 1.1])), ("rtt_ms", rtts)];
        let found = replies(&table(vec![piece(&rows, "flow", &columns)]), 1.0);
        assert_eq!(found.expect("all columns"), [("a".to_owned(), 0, 1)]);
    }
}
