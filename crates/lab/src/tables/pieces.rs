//! The piece of each table that a run adds.

use arrow_array::RecordBatch;
use sojourn_net::Duration;
use sojourn_records::Records;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::Config;

use super::applications::{applications, transactions};
use super::cell::Cell;
use super::classes::classes;
use super::flow::flows;
use super::kind::TABLES;
use super::links::{link_series, links, queue_statistics, sojourn};
use super::rows::{events, flow_series, pings};

/// The piece of each table that a run adds, in the order of [`super::kind::TableKind::ALL`].
pub(crate) fn batches(cell: Cell<'_>) -> [RecordBatch; TABLES] {
    [
        flows(cell),
        links(cell),
        flow_series(cell),
        link_series(cell),
        pings(cell),
        sojourn(cell),
        queue_statistics(cell),
        events(cell),
        transactions(cell),
        applications(cell),
        classes(cell),
    ]
}

/// What a run adds to the tables `flows`, `links` and `pings`, from which its metrics are computed.
pub(crate) fn metric_batches(cell: Cell<'_>) -> [RecordBatch; 3] {
    [flows(cell), links(cell), pings(cell)]
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
