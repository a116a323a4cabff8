//! Records: the output of a run, independent of the backend.

mod column;
mod datagrams;
mod histogram;
mod record;

pub use column::{Column, ColumnInfo, ColumnKind, Get};
pub use datagrams::Datagrams;
pub use histogram::Histogram;
pub use record::{
    AppRecord, CaptureOutput, ChangeRecord, ClassRecord, ConnectionSum, FlowCounters, FlowKind,
    FlowRecord, FlowSample, InitialLosses, LinkCounters, LinkRecord, LinkSample, RecordSink,
    Records, Signal, SignalRecord, SignalState, StateSample, ValidityFact,
};
