//! Records as tidy tables.
//!
//! Each row begins with the arm and the replication it belongs to; the unit of a column is the
//! last word of its name; what was not measured is null, never 0.

mod applications;
mod batch;
mod flow;
mod ping;
mod rows;
mod voice;

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sojourn_net::Duration;
use sojourn_records::Records;
use sojourn_scenario::plan::Config;

use sojourn_scenario::Plan;

pub(crate) use rows::{Cell, batches};

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// One row a flow.
    Flows,
    /// One row a link.
    Links,
    /// One row a flow and interval.
    FlowSeries,
    /// One row a link and interval.
    LinkSeries,
    /// One row an echo request.
    Pings,
    /// One row a link and bucket of its histogram of sojourn times.
    Sojourn,
    /// One row a number that a queue keeps about itself.
    QueueStatistics,
    /// One row a drop or mark, where the scenario keeps them.
    Events,
    /// One row a thing that the user of an application waited for.
    Transactions,
    /// One row an application.
    Applications,
}

/// How many tables there are.
pub(crate) const TABLES: usize = TableKind::ALL.len();

impl TableKind {
    /// Every table.
    pub const ALL: [Self; 10] = [
        Self::Flows,
        Self::Links,
        Self::FlowSeries,
        Self::LinkSeries,
        Self::Pings,
        Self::Sojourn,
        Self::QueueStatistics,
        Self::Events,
        Self::Transactions,
        Self::Applications,
    ];

    /// What it is called, in files too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Links => "links",
            Self::FlowSeries => "flow_series",
            Self::LinkSeries => "link_series",
            Self::Pings => "pings",
            Self::Sojourn => "sojourn",
            Self::QueueStatistics => "queue_statistics",
            Self::Events => "events",
            Self::Transactions => "transactions",
            Self::Applications => "applications",
        }
    }

    /// The table of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A table in pieces, in the order of arms and replications.
#[derive(Clone, Debug)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of `batches`, each of which has `schema`.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The pieces.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A piece of each table that has all its columns and no rows.
pub(crate) fn empty_batches() -> [RecordBatch; TABLES] {
    let config = Config {
        seed: 0,
        duration: Duration::ZERO,
        measure_from: Duration::ZERO,
        sample: Duration::ZERO,
        links: Vec::new(),
        flows: Vec::new(),
        keep_events: false,
    };
    batches(Cell {
        arm: "",
        replication: 0,
        plan: &Plan {
            config,
            flows: Vec::new(),
        },
        records: &Records::default(),
    })
}
