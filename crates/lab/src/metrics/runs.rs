//! Metrics of runs.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field};
use sojourn_scenario::plan::Traffic;
use sojourn_scenario::{Scenario, TrafficProperties, traffic_properties};

use super::cells::Cell;
use super::formulas::jain;
use super::latency::{Ping, above_base, induced, read_pings};
use super::rows::{Ordered, RunKey, Tables, Window, columns, key_columns, table};
use super::{Declaration, Role};
use crate::tables::{Table, TableKind};
use sojourn_tables::quantile_of_sorted;

/// The direction of flows that have a path instead.
pub(super) const TOTAL: &str = "total";
/// Megabits per byte.
const MBIT: f64 = 8e-6;

/// Metrics of runs, in the order of their columns.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the lifetime of a method of `Run` is not that of each call"
)]
pub(super) const METRICS: &[RunMetric] = &[
    RunMetric::new(
        "goodput_{direction}_mbit_per_s",
        "goodput {direction}",
        (2, "Mbit/s"),
        "Sum of `goodput_mbit_per_s` over the TCP, QUIC and UDP flows of the direction.",
        Of::Directions,
        |run, direction| run.goodput(direction),
    )
    .role(Role::Headline),
    RunMetric::new(
        "induced_latency_ms",
        "induced latency",
        (1, "ms"),
        "Increase in ping time under load: flent's `mean_span`.",
        Of::Run,
        |run, _| {
            let load = run
                .flows
                .iter()
                .filter(|flow| flow.identity.traffic.carries_data);
            let begin = load.filter_map(|flow| flow.started_s).reduce(f64::min);
            run.of_pings(|pings| induced(pings, run.window.warmup, begin))
        },
    )
    .role(Role::Headline),
    RunMetric::new(
        "latency_above_base_ms",
        "latency above base",
        (1, "ms"),
        "Mean RTT of the pings sent at or after *W*, minus the smallest ping RTT of the whole \
         run, averaged over the ping flows. Lost pings are excluded.",
        Of::Run,
        |run, _| run.of_pings(|pings| above_base(pings, run.window.warmup)),
    ),
    RunMetric::new(
        "ping_ms_p95",
        "ping p95",
        (1, "ms"),
        "95th percentile of the RTTs of the pings sent at or after *W*, over all ping flows, \
         by linear interpolation.",
        Of::Run,
        |run, _| run.of_pings(|_| quantile_of_sorted(run.measured_rtts(), 0.95)),
    ),
    RunMetric::new(
        "ping_ms_p99",
        "ping p99",
        (1, "ms"),
        "99th percentile of the RTTs of the pings sent at or after *W*, over all ping flows, \
         by linear interpolation.",
        Of::Run,
        |run, _| run.of_pings(|_| quantile_of_sorted(run.measured_rtts(), 0.99)),
    ),
    RunMetric::new(
        "sojourn_{link}_ms_p95",
        "sojourn {link} p95",
        (1, "ms"),
        "95th percentile of the sojourn times of the packets that left the queue of the link \
         after *W*, from the histogram in the table `sojourn`.",
        Of::Links,
        |run, name| {
            let link = run.links.iter().find(|link| link.link == Some(name));
            link.map_or(Cell::Absent, |link| Cell::of(link.sojourn_ms_p95))
        },
    ),
    RunMetric::new(
        "driver_{link}_ms_p95",
        "driver {link} p95",
        (1, "ms"),
        "Wireless links and those with `tx_ring`: 95th percentile of the time in the driver and in transmission, over the \
         packets that left the queue after *W*.",
        Of::Links,
        |run, name| {
            let mut links = run.links.iter().filter(|link| link.link == Some(name));
            links
                .find_map(|link| link.driver_ms_p95)
                .map_or(Cell::Absent, Cell::Value)
        },
    ),
    RunMetric::new(
        "drops",
        "drops",
        (0, ""),
        "Packets dropped at all links after *W*, by the AQM, an ACK filter, at a full buffer or with a replaced queue.",
        Of::EveryRun,
        |run, _| {
            // Earlier results count the drops of an ACK filter as drops of the AQM.
            run.count(|link| {
                let filtered = link.drops_ack_filter.unwrap_or_default();
                let replaced = link.drops_replaced.unwrap_or_default();
                Some(link.drops_overlimit? + link.drops_aqm? + filtered + replaced)
            })
        },
    ),
    RunMetric::new(
        "marks",
        "marks",
        (0, ""),
        "Packets CE-marked at all links after *W*.",
        Of::EveryRun,
        |run, _| run.count(|link| Some(link.marks_aqm? + link.marks_ce_threshold?)),
    ),
    RunMetric::new(
        "jain_{direction}",
        "Jain {direction}",
        (3, ""),
        "Jain's index (Σ*x*)² / (*n* Σ*x*²) over the goodputs *x* of the *n* TCP and QUIC \
         flows of the direction, excluding finite transfers if any flow is endless; only for \
         *n* > 1.",
        Of::SharedDirections,
        |run, direction| run.fairness(direction),
    )
    .role(Role::Compared),
];

/// A metric of runs and its formula.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunMetric {
    pub(super) declared: Declaration,
    of: Of,
    /// Its value in a run; of what is named, if it is not of the whole run.
    value: RunFormula,
}

type RunFormula = fn(&Run<'_>, &str) -> Cell;

impl RunMetric {
    const fn new(
        name: &'static str,
        label: &'static str,
        unit: (u8, &'static str),
        description: &'static str,
        of: Of,
        value: RunFormula,
    ) -> Self {
        Self {
            declared: Declaration::new(name, label, unit, description),
            of,
            value,
        }
    }

    const fn role(mut self, role: Role) -> Self {
        self.declared.role = role;
        self
    }
}

/// What a metric has a column for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The run, if it applies to any.
    Run,
    /// The run, even if there are none.
    EveryRun,
    /// Each direction of data.
    Directions,
    /// Each direction that has several flows with a connection.
    SharedDirections,
    /// Each link.
    Links,
}

columns! {
    /// A row of `flows`.
    FlowRow {
        texts: flow kind direction;
        numbers: bytes delivered_bytes goodput_mbit_per_s started_s;
    }
}

columns! {
    /// A row of `links`.
    LinkRow {
        texts: link;
        numbers: sojourn_ms_p95 driver_ms_p95 drops_overlimit drops_aqm drops_ack_filter drops_replaced marks_aqm
            marks_ce_threshold;
    }
}

/// Properties of a flow that determine the metrics to which it contributes.
#[derive(Clone, Copy, Debug)]
struct Identity<'a> {
    flow: &'a str,
    traffic: TrafficProperties,
    direction: &'a str,
    /// Whether it has a number of bytes to transfer.
    is_finite: bool,
}

/// A flow of a run.
#[derive(Clone, Copy, Debug)]
struct Flow<'a> {
    identity: Identity<'a>,
    delivered_bytes: Option<f64>,
    goodput_mbit_per_s: Option<f64>,
    started_s: Option<f64>,
}

impl<'a> Flow<'a> {
    fn of(row: FlowRow<'a>) -> Self {
        Self {
            identity: Identity {
                flow: row.flow.unwrap_or_default(),
                traffic: traffic_properties(row.kind.unwrap_or_default()),
                direction: row.direction.unwrap_or(TOTAL),
                is_finite: row.bytes.is_some(),
            },
            delivered_bytes: row.delivered_bytes,
            goodput_mbit_per_s: row.goodput_mbit_per_s,
            started_s: row.started_s,
        }
    }
}

/// The rows of the tables that belong to one run.
#[derive(Debug, Default)]
struct Run<'a> {
    flows: Vec<Flow<'a>>,
    links: Vec<LinkRow<'a>>,
    pings: Vec<Ping<'a>>,
    window: Window,
    /// Whether fairness excludes finite transfers.
    only_endless: bool,
    /// The times of the pings after the warm-up, in order.
    rtts: OnceCell<Vec<f64>>,
}

impl Run<'_> {
    /// The sum of the goodputs of a direction; those of transfers are taken over the measured time.
    fn goodput(&self, direction: &str) -> Cell {
        let mut data = self
            .flows
            .iter()
            .filter(|flow| flow.identity.traffic.carries_data);
        if data.clone().next().is_none() {
            return Cell::Absent;
        }
        let spread = |bytes: f64| bytes * MBIT / self.window.length;
        let goodput = |flow: &Flow<'_>| {
            if flow.identity.is_finite {
                flow.delivered_bytes.map(spread)
            } else {
                flow.goodput_mbit_per_s
            }
        };
        let of = data
            .by_ref()
            .filter(|flow| flow.identity.direction == direction);
        Cell::Value(of.filter_map(goodput).sum())
    }

    /// A metric of the pings; absent from runs without pings.
    fn of_pings(&self, value: impl Fn(&[Ping<'_>]) -> Option<f64>) -> Cell {
        if self.pings.is_empty() {
            Cell::Absent
        } else {
            Cell::of(value(&self.pings))
        }
    }

    fn measured_rtts(&self) -> &[f64] {
        self.rtts.get_or_init(|| {
            let measured = self
                .pings
                .iter()
                .filter(|ping| ping.t_s >= self.window.warmup);
            let mut times: Vec<f64> = measured.filter_map(|ping| ping.rtt_ms).collect();
            times.sort_by(f64::total_cmp);
            times
        })
    }

    fn count(&self, of: impl Fn(&LinkRow<'_>) -> Option<f64>) -> Cell {
        Cell::Value(self.links.iter().filter_map(of).sum())
    }

    /// Jain's index over the goodputs of the connections of a direction.
    fn fairness(&self, direction: &str) -> Cell {
        let mut connections = self
            .flows
            .iter()
            .filter(|flow| flow.identity.traffic.has_connection);
        if connections.clone().next().is_none() {
            return Cell::Absent;
        }
        let compared = connections.by_ref().filter(|flow| {
            flow.identity.direction == direction && !(self.only_endless && flow.identity.is_finite)
        });
        Cell::of(jain(compared.filter_map(|flow| flow.goodput_mbit_per_s)))
    }
}

/// The columns of a result: all runs have the same, in this order.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    columns: Vec<Column>,
    /// Whether any flow with a connection is endless: fairness then excludes finite transfers, whose
    /// goodput is not comparable.
    only_endless: bool,
}

/// A column of a result.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    metric: RunMetric,
    /// The direction or the link.
    of: String,
}

impl Columns {
    /// Of all flows and links of a result.
    fn of<'a>(
        flows: impl Iterator<Item = Identity<'a>>,
        links: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut directions = BTreeSet::new();
        let mut connections: BTreeSet<(bool, &str, &str)> = BTreeSet::new();
        for flow in flows {
            if flow.traffic.carries_data {
                directions.insert(flow.direction);
            }
            if flow.traffic.has_connection {
                connections.insert((flow.is_finite, flow.direction, flow.flow));
            }
        }
        let only_endless = connections.iter().any(|&(is_finite, ..)| !is_finite);
        let mut counted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, direction, flow) in connections
            .into_iter()
            .filter(|&(is_finite, ..)| !(only_endless && is_finite))
        {
            counted.entry(direction).or_default().insert(flow);
        }
        let shared = counted.into_iter().filter(|(_, flows)| flows.len() > 1);
        let (directions, links) = (download_first(directions), download_first(links.collect()));
        let shared = download_first(shared.map(|(direction, _)| direction).collect());
        let whole = vec![String::new()];
        let columns = METRICS.iter().flat_map(|metric| {
            let names = match metric.of {
                Of::Run | Of::EveryRun => &whole,
                Of::Directions => &directions,
                Of::SharedDirections => &shared,
                Of::Links => &links,
            };
            names.iter().map(move |of| Column {
                name: named(metric.declared.name, of),
                metric: *metric,
                of: of.clone(),
            })
        });
        Self {
            columns: columns.collect(),
            only_endless,
        }
    }

    /// Of the runs of a scenario.
    pub(super) fn of_scenario(scenario: &Scenario) -> Self {
        let plans: Vec<_> = (0..scenario.arms().len())
            .map(|arm| scenario.plan(arm, 0))
            .collect();
        let flows = plans.iter().flat_map(|plan| {
            let known = plan.config.flows.iter().zip(&plan.flows);
            known.map(|(flow, label)| Identity {
                flow: &flow.name,
                traffic: traffic_properties(label.kind),
                direction: label.direction.unwrap_or(TOTAL),
                is_finite: matches!(
                    flow.traffic,
                    Traffic::Tcp { bytes: Some(_), .. } | Traffic::Quic { bytes: Some(_), .. }
                ),
            })
        });
        let links = plans.iter().flat_map(|plan| &plan.config.links);
        Self::of(flows, links.map(|link| link.name.as_str()))
    }

    /// Identifies what determines the metrics of a run, other than its own records.
    pub(super) fn identity(&self) -> String {
        format!("{} {}", self.only_endless, self.names().join(" "))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.columns
            .iter()
            .map(|column| column.name.clone())
            .collect()
    }

    pub(super) const fn count(&self) -> usize {
        self.columns.len()
    }

    fn values(&self, run: &Run<'_>) -> Vec<Cell> {
        let columns = self.columns.iter();
        columns
            .map(|column| (column.metric.value)(run, &column.of))
            .collect()
    }

    /// Rows as a table; a metric that applies to none of them has no column.
    pub(super) fn table(&self, rows: &[(RunKey<'_>, Vec<Cell>)]) -> Result<Table, ArrowError> {
        let (mut fields, mut columns) = key_columns(rows.iter().map(|(run, _)| *run));
        for (n, column) in self.columns.iter().enumerate() {
            let absent = |(_, cells): &(RunKey<'_>, Vec<Cell>)| cells[n] == Cell::Absent;
            if rows.iter().all(absent) && column.metric.of != Of::EveryRun {
                continue;
            }
            let values = rows.iter().map(|(_, cells)| cells[n].value());
            columns.push(Arc::new(values.collect::<Float64Array>()));
            fields.push(Field::new(&column.name, DataType::Float64, true));
        }
        table(fields, columns)
    }

    /// The metrics of the only run of these tables.
    pub(super) fn of_run(
        &self,
        [flows, links, pings]: &[RecordBatch; 3],
        window: Window,
    ) -> Result<Vec<Cell>, ArrowError> {
        let tables = |kind| match kind {
            TableKind::Flows => slice::from_ref(flows),
            TableKind::Links => slice::from_ref(links),
            TableKind::Pings => slice::from_ref(pings),
            _ => &[],
        };
        let mut runs = read(&tables)?.items;
        let mut run = if runs.is_empty() {
            Run::default()
        } else {
            runs.swap_remove(0).1
        };
        run.window = window;
        run.only_endless = self.only_endless;
        Ok(self.values(&run))
    }
}

/// The name of the column of a direction or link.
fn named(name: &str, of: &str) -> String {
    name.replace("{direction}", of).replace("{link}", of)
}

fn download_first(names: BTreeSet<&str>) -> Vec<String> {
    let mut names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    // Stable: the others stay in alphabetical order.
    names.sort_by_key(|name| name != "down");
    names
}

fn read<'a>(tables: Tables<'_, 'a>) -> Result<Ordered<RunKey<'a>, Run<'a>>, ArrowError> {
    let mut runs: Ordered<RunKey<'a>, Run<'a>> = Ordered::default();
    LinkRow::read(tables(TableKind::Links), |run, row| {
        runs.of(run).links.push(row);
    })?;
    FlowRow::read(tables(TableKind::Flows), |run, row| {
        runs.of(run).flows.push(Flow::of(row));
    })?;
    read_pings(tables(TableKind::Pings), |run, ping| {
        runs.of(run).pings.push(ping);
    })?;
    Ok(runs)
}

/// The metrics of every run that has a link, in the order of `links`, that apply to any run. Each of the `later` tables
/// has all pings of a run; only one of them is in memory at a time.
pub(super) fn metrics(
    tables: Tables<'_, '_>,
    later: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    window: Window,
) -> Result<Table, ArrowError> {
    let mut runs = read(tables)?;
    let all = || runs.items.iter().map(|(_, run)| run);
    let columns = Columns::of(
        all().flat_map(|run| run.flows.iter().map(|flow| flow.identity)),
        all().flat_map(|run| run.links.iter().map(|link| link.link.unwrap_or_default())),
    );
    for (_, run) in &mut runs.items {
        run.window = window;
        run.only_endless = columns.only_endless;
    }
    let mut values = vec![None; runs.items.len()];
    for pings in later {
        let pings = pings?;
        let mut of_runs: Ordered<RunKey<'_>, Vec<Ping<'_>>> = Ordered::default();
        read_pings(slice::from_ref(&pings), |run, ping| {
            of_runs.of(run).push(ping);
        })?;
        for (key, pings) in of_runs.items {
            let Some(place) = runs.place(key) else {
                continue;
            };
            let run = std::mem::take(&mut runs.items[place].1);
            let run = Run { pings, ..run };
            values[place] = (!run.links.is_empty()).then(|| columns.values(&run));
        }
    }
    let rows = runs
        .items
        .iter()
        .zip(values)
        .filter_map(|((key, run), values)| {
            let of_run = || (!run.links.is_empty()).then(|| columns.values(run));
            Some((*key, values.or_else(of_run)?))
        });
    columns.table(&rows.collect::<Vec<_>>())
}
