//! Records: the output of a run, independent of the backend.

mod column;
mod datagrams;
mod record;

pub use column::{Column, ColumnInfo, ColumnKind, Get};
pub use datagrams::Datagrams;
pub use record::{
    AppRecord, CaptureOutput, ChangeRecord, ConnectionSum, FlowCounters, FlowKind, FlowRecord,
    FlowSample, InitialLosses, RecordSink, Records, ValidityFact,
};
pub use sojourn_path::records::{
    ClassRecord, Histogram, LinkCounters, LinkRecord, LinkSample, Signal, SignalRecord,
    SignalState, StateSample,
};
