//! The kinds of tables and their columns.

use std::fmt;

use sojourn_records::{Column, ColumnInfo, ColumnKind};

use super::{applications, changes, flow, links, rows};

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    /// One row per flow.
    Flows,
    /// One row per link.
    Links,
    /// One row per flow and interval.
    FlowSeries,
    /// One row per link and interval.
    LinkSeries,
    /// One row per ping.
    Pings,
    /// One row per link and bucket of the sojourn time histogram.
    Sojourn,
    /// One row per statistic of a queue.
    QueueStatistics,
    /// One row per statistic of a queue and interval, if the scenario samples their state.
    QueueSeries,
    /// One row per drop or mark, if the scenario keeps events.
    Events,
    /// One row per transaction.
    Transactions,
    /// One row per application.
    Applications,
    /// One row per class of a queue.
    Classes,
    /// One row per change of a link by a controller or by the user of a live run.
    LinkChanges,
}

/// How many tables there are.
pub const TABLES: usize = TableKind::ALL.len();

/// The columns that every table begins with.
const RUN: [ColumnInfo; 2] = [
    ColumnInfo {
        name: "arm",
        kind: ColumnKind::Text,
        nullable: false,
        unit: "",
        description: "Name of the arm.",
    },
    ColumnInfo {
        name: "replication",
        kind: ColumnKind::Count,
        nullable: false,
        unit: "",
        description: "Number of the replication, from 0.",
    },
];

impl TableKind {
    /// Every table.
    pub const ALL: [Self; 13] = [
        Self::Flows,
        Self::Links,
        Self::FlowSeries,
        Self::LinkSeries,
        Self::Pings,
        Self::Sojourn,
        Self::QueueStatistics,
        Self::QueueSeries,
        Self::Events,
        Self::Transactions,
        Self::Applications,
        Self::Classes,
        Self::LinkChanges,
    ];

    /// The name of its file in a result directory.
    pub fn file_name(self) -> String {
        format!("{self}.parquet")
    }

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
            Self::QueueSeries => "queue_series",
            Self::Events => "events",
            Self::Transactions => "transactions",
            Self::Applications => "applications",
            Self::Classes => "classes",
            Self::LinkChanges => "link_changes",
        }
    }

    /// The first format of saved results that has it.
    pub const fn first_format(self) -> u64 {
        match self {
            Self::LinkChanges => 7,
            Self::QueueSeries => 6,
            Self::Classes => 5,
            Self::Transactions | Self::Applications => 3,
            Self::QueueStatistics => 2,
            _ => 1,
        }
    }

    /// What one of its rows is.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Flows => "One row per flow.",
            Self::Links => "One row per link.",
            Self::FlowSeries => "One row per flow and sample interval.",
            Self::LinkSeries => "One row per link and sample interval.",
            Self::Pings => "One row per ping.",
            Self::Sojourn => "One row per link and bucket of the sojourn time histogram.",
            Self::QueueStatistics => "One row per statistic of a queue at the end of the run.",
            Self::QueueSeries => {
                "One row per statistic of a queue and sample interval, if the scenario asks for it."
            }
            Self::Events => "One row per drop, mark or loss, if the scenario keeps events.",
            Self::LinkChanges => {
                "One row per change of a link by a controller or by the user of a live run."
            }
            Self::Transactions => "One row per transaction of an application.",
            Self::Applications => "One row per application.",
            Self::Classes => {
                "One row per class of a queue; of hashed classes (drr), those that had a packet."
            }
        }
    }

    /// Its columns, in their order.
    pub fn columns(self) -> Vec<ColumnInfo> {
        fn infos<R>(columns: Vec<Column<R>>) -> Vec<ColumnInfo> {
            columns.into_iter().map(|column| column.info).collect()
        }
        let own = match self {
            Self::Flows => infos(flow::columns()),
            Self::Links => infos(links::link_columns()),
            Self::FlowSeries => infos(rows::series_columns()),
            Self::LinkSeries => infos(links::series_columns()),
            Self::Pings => infos(rows::ping_columns()),
            Self::Sojourn => infos(links::bucket_columns()),
            Self::QueueStatistics => infos(links::statistic_columns()),
            Self::QueueSeries => infos(links::state_columns()),
            Self::Events => infos(rows::event_columns()),
            Self::Transactions => infos(applications::transaction_columns()),
            Self::Applications => infos(applications::application_columns()),
            Self::Classes => infos(links::class_columns()),
            Self::LinkChanges => infos(changes::columns()),
        };
        RUN.into_iter().chain(own).collect()
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
