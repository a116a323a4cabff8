//! Records without measurements, which the sources of traffic complete.

use sojourn_records::{FlowCounters, FlowKind, FlowRecord, InitialLosses};

/// The record of a flow that has not started.
pub(super) fn blank(kind: FlowKind) -> FlowRecord {
    FlowRecord {
        name: String::new(),
        kind,
        started: None,
        connected: None,
        completed: None,
        aborted: false,
        initial_losses: InitialLosses::default(),
        series: Vec::new(),
        totals: FlowCounters::default(),
        missing_packets: None,
        lost_packets: None,
        one_way_delay: None,
        pings: Vec::new(),
    }
}
