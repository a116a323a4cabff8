//! The sink that receives the records of a run.

use std::fmt;
use std::io::Write;

use sojourn_apps::Transaction;

use crate::record::{AppRecord, FlowRecord, LinkRecord, Records, SignalRecord, ValidityFact};

/// Where a backend writes the packets of a run, in the format pcapng.
///
/// Whoever provides the output learns of its errors there: a backend goes on without the capture.
pub struct CaptureOutput<'a> {
    /// Buffered: a packet is one call of [`Write::write_all`].
    pub out: &'a mut (dyn Write + Send),
    /// The comment on the section: which run it is.
    pub comment: &'a str,
}

impl fmt::Debug for CaptureOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureOutput")
            .field("comment", &self.comment)
            .finish_non_exhaustive()
    }
}

/// Receives the records of a run as the run yields them.
pub trait RecordSink {
    /// Asked once, before the run: where its packets go; `None`: they are not captured.
    fn capture(&mut self) -> Option<CaptureOutput<'_>> {
        None
    }

    /// One per link, in the order of the plan.
    fn link(&mut self, record: LinkRecord);
    /// One per flow, in the order of the plan.
    fn flow(&mut self, record: FlowRecord);
    /// One per application that has started, in the order of the plan.
    fn application(&mut self, record: AppRecord);
    /// One per transaction, in the order of completion.
    fn transaction(&mut self, record: Transaction);
    /// One per drop or mark, if the plan keeps events.
    fn event(&mut self, record: SignalRecord);
    /// One per fact that decides whether the run can be trusted.
    fn validity(&mut self, fact: ValidityFact);
}

/// Keeps all records in memory.
impl RecordSink for Records {
    fn link(&mut self, record: LinkRecord) {
        self.links.push(record);
    }

    fn flow(&mut self, record: FlowRecord) {
        self.flows.push(record);
    }

    fn application(&mut self, record: AppRecord) {
        self.apps.push(record);
    }

    fn transaction(&mut self, record: Transaction) {
        self.transactions.push(record);
    }

    fn event(&mut self, record: SignalRecord) {
        self.events.push(record);
    }

    fn validity(&mut self, fact: ValidityFact) {
        self.validity.push(fact);
    }
}

impl Records {
    /// Passes all records to `sink`.
    pub fn send(self, sink: &mut dyn RecordSink) {
        self.links.into_iter().for_each(|r| sink.link(r));
        self.flows.into_iter().for_each(|r| sink.flow(r));
        self.apps.into_iter().for_each(|r| sink.application(r));
        self.transactions
            .into_iter()
            .for_each(|r| sink.transaction(r));
        self.events.into_iter().for_each(|r| sink.event(r));
        self.validity
            .into_iter()
            .for_each(|fact| sink.validity(fact));
    }
}
