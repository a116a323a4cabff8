//! Records: the output of a run, independent of the backend.

mod column;
mod counters;
mod datagrams;
mod histogram;
mod record;
mod sink;

pub use column::{Column, ColumnInfo, ColumnKind, Get};
pub use counters::{FlowCounters, LinkCounters};
pub use datagrams::Datagrams;
pub use histogram::Histogram;
pub use record::{
    AppRecord, ClassRecord, FlowKind, FlowRecord, FlowSample, InitialLosses, LinkRecord,
    LinkSample, Records, Signal, SignalRecord, ValidityFact,
};
pub use sink::{CaptureOutput, RecordSink};
