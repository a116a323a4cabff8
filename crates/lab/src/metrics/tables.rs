//! Metrics from the tables of a result.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use sojourn_scenario::Scenario;

use super::column::{Numbers, Texts};
use super::columns::{Columns, Identity, SIGNALS, TOTAL};
use super::latency::averaged;
use super::row::Cell;
use super::run::{Flow, Link, Ping, Run, Window};
use crate::tables::Table;

/// An arm and a replication.
pub(super) type RunKey<'a> = (&'a str, u32);

/// The runs of some tables, in the order in which they appear there first.
#[derive(Default)]
struct Runs<'a> {
    places: BTreeMap<RunKey<'a>, usize>,
    runs: Vec<(RunKey<'a>, Run<'a>)>,
}

impl<'a> Runs<'a> {
    fn of(&mut self, key: RunKey<'a>) -> &mut Run<'a> {
        let is_last = self.runs.last().is_some_and(|(last, _)| *last == key);
        let place = if is_last {
            self.runs.len() - 1
        } else {
            *self.places.entry(key).or_insert_with(|| {
                self.runs.push((key, Run::default()));
                self.runs.len() - 1
            })
        };
        &mut self.runs[place].1
    }

    fn read_links(&mut self, batch: &'a RecordBatch) -> Result<(), ArrowError> {
        let (key, name) = (Keys::of(batch)?, Texts::of(batch, "link")?);
        let number = |name| Numbers::of(batch, name);
        let (sojourn, driver) = (number("sojourn_ms_p95")?, number("driver_ms_p95")?);
        let (overlimit, aqm) = (number("drops_overlimit")?, number("drops_aqm")?);
        let (marks, threshold) = (number("marks_aqm")?, number("marks_ce_threshold")?);
        let sum = |a: &Numbers<'_>, b: &Numbers<'_>, row| Some(a.get(row)? + b.get(row)?);
        for row in 0..batch.num_rows() {
            self.of(key.get(row)?).links.push(Link {
                name: name.get(row).unwrap_or_default(),
                sojourn_ms_p95: sojourn.get(row),
                driver_ms_p95: driver.get(row),
                drops: sum(&overlimit, &aqm, row),
                marks: sum(&marks, &threshold, row),
            });
        }
        Ok(())
    }

    fn read_flows(&mut self, batch: &'a RecordBatch) -> Result<(), ArrowError> {
        let key = Keys::of(batch)?;
        let text = |name| Texts::of(batch, name);
        let (flow, kind, direction) = (text("flow")?, text("kind")?, text("direction")?);
        let number = |name| Numbers::of(batch, name);
        let (bytes, delivered) = (number("bytes")?, number("delivered_bytes")?);
        let (goodput, started) = (number("goodput_mbit_per_s")?, number("started_s")?);
        for row in 0..batch.num_rows() {
            self.of(key.get(row)?).flows.push(Flow {
                identity: Identity {
                    flow: flow.get(row).unwrap_or_default(),
                    kind: kind.get(row).unwrap_or_default(),
                    direction: direction.get(row).unwrap_or(TOTAL),
                    is_finite: bytes.get(row).is_some(),
                },
                delivered_bytes: delivered.get(row),
                goodput_mbit_per_s: goodput.get(row),
                started_s: started.get(row),
            });
        }
        Ok(())
    }

    fn read_pings(&mut self, batch: &'a RecordBatch) -> Result<(), ArrowError> {
        let (key, flow) = (Keys::of(batch)?, Texts::of(batch, "flow")?);
        let (sent, rtt) = (Numbers::of(batch, "t_s")?, Numbers::of(batch, "rtt_ms")?);
        for row in 0..batch.num_rows() {
            let Some(t_s) = sent.get(row) else {
                continue;
            };
            self.of(key.get(row)?).pings.push(Ping {
                flow: flow.get(row).unwrap_or_default(),
                t_s,
                rtt_ms: rtt.get(row),
            });
        }
        Ok(())
    }

    /// Of three tables, which may each have several batches.
    fn read(
        flows: &'a [RecordBatch],
        links: &'a [RecordBatch],
        pings: &'a [RecordBatch],
    ) -> Result<Self, ArrowError> {
        let mut runs = Self::default();
        links.iter().try_for_each(|batch| runs.read_links(batch))?;
        flows.iter().try_for_each(|batch| runs.read_flows(batch))?;
        pings.iter().try_for_each(|batch| runs.read_pings(batch))?;
        Ok(runs)
    }
}

/// The arms and replications of the rows of a batch.
struct Keys<'a> {
    arms: Texts<'a>,
    replications: Numbers<'a>,
}

impl<'a> Keys<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        Ok(Self {
            arms: Texts::of(batch, "arm")?,
            replications: Numbers::of(batch, "replication")?,
        })
    }

    fn get(&self, row: usize) -> Result<RunKey<'a>, ArrowError> {
        let replication = self.replications.count(row);
        let key = self.arms.get(row).zip(replication);
        key.ok_or_else(|| ArrowError::SchemaError(format!("row {row} belongs to no run")))
    }
}

/// The metrics of every run that has a link, in the order of `links`: `arm`, `replication`, and the
/// metrics that apply to any run; the times are in seconds.
///
/// # Errors
/// If a table lacks a column, or a column has another type.
pub fn per_run(
    flows: &[RecordBatch],
    links: &[RecordBatch],
    pings: &[RecordBatch],
    warmup_s: f64,
    measured_s: f64,
) -> Result<Table, ArrowError> {
    let window = Window {
        warmup: warmup_s,
        length: measured_s,
    };
    of_tables([flows, links, pings], window)
}

/// The metrics of every run of the tables of a result of `scenario`.
pub(super) fn of_result(
    tables: [&[RecordBatch]; 3],
    scenario: &Scenario,
) -> Result<Table, ArrowError> {
    of_tables(tables, Window::of(scenario.warmup(), scenario.duration()))
}

fn of_tables(
    [flows, links, pings]: [&[RecordBatch]; 3],
    window: Window,
) -> Result<Table, ArrowError> {
    let runs = Runs::read(flows, links, pings)?.runs;
    let all = || runs.iter().map(|(_, run)| run);
    let columns = Columns::of(
        all().flat_map(|run| run.flows.iter().map(|flow| flow.identity)),
        all().flat_map(|run| run.links.iter().map(|link| link.name)),
    );
    let with_links = runs.iter().filter(|(_, run)| !run.links.is_empty());
    let rows = with_links.map(|(key, run)| (*key, run.metrics(&columns, window)));
    table(&columns, &rows.collect::<Vec<_>>())
}

/// The metrics of the only run of these tables, in the order of `columns`.
pub(super) fn of_run(
    [flows, links, pings]: &[RecordBatch; 3],
    columns: &Columns,
    window: Window,
) -> Result<Vec<Cell>, ArrowError> {
    let one = |batch| std::slice::from_ref(batch);
    let runs = Runs::read(one(flows), one(links), one(pings))?.runs;
    let nothing = Run::default();
    let run = runs.first().map_or(&nothing, |(_, run)| run);
    Ok(run.metrics(columns, window))
}

/// Rows as a table; a metric that applies to none of them has no column.
pub(super) fn table(
    columns: &Columns,
    rows: &[(RunKey<'_>, Vec<Cell>)],
) -> Result<Table, ArrowError> {
    let arms = rows.iter().map(|((arm, _), _)| *arm);
    let replications = rows.iter().map(|((_, replication), _)| *replication);
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(arms)),
        Arc::new(UInt32Array::from_iter_values(replications)),
    ];
    let mut fields = vec![
        Field::new("arm", DataType::Utf8, false),
        Field::new("replication", DataType::UInt32, false),
    ];
    for (n, name) in columns.names().into_iter().enumerate() {
        let absent = |(_, cells): &(RunKey<'_>, Vec<Cell>)| cells[n] == Cell::Absent;
        if rows.iter().all(absent) && !SIGNALS.contains(&name.as_str()) {
            continue;
        }
        let values = rows.iter().map(|(_, cells)| cells[n].value());
        arrays.push(Arc::new(values.collect::<Float64Array>()));
        fields.push(Field::new(name, DataType::Float64, true));
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    Ok(Table::new(schema, vec![batch]))
}

/// Reads a table that another library wrote as an Arrow IPC stream.
///
/// # Errors
/// If it is not one.
pub fn read_stream(bytes: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
    StreamReader::try_new(bytes, None)?.collect()
}

/// The pings of every run as flent averages them: `arm`, `replication`, `t_s`, and `value` in ms.
///
/// # Errors
/// If the table lacks a column, or a column has another type.
pub fn averaged_pings(pings: &[RecordBatch]) -> Result<Table, ArrowError> {
    let runs = Runs::read(&[], &[], pings)?.runs;
    let points = runs.iter().flat_map(|(key, run)| {
        let points = averaged(&run.pings).into_iter();
        points.map(move |(at, value)| (*key, at, value))
    });
    let points: Vec<_> = points.collect();
    let schema = Arc::new(Schema::new(vec![
        Field::new("arm", DataType::Utf8, false),
        Field::new("replication", DataType::UInt32, false),
        Field::new("t_s", DataType::Float64, false),
        Field::new("value", DataType::Float64, false),
    ]));
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            points.iter().map(|((arm, _), ..)| *arm),
        )),
        Arc::new(UInt32Array::from_iter_values(
            points.iter().map(|((_, replication), ..)| *replication),
        )),
        Arc::new(Float64Array::from_iter_values(
            points.iter().map(|&(_, at, _)| at),
        )),
        Arc::new(Float64Array::from_iter_values(
            points.iter().map(|&(.., value)| value),
        )),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    Ok(Table::new(schema, vec![batch]))
}
