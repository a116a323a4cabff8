//! The file that receives the packets of a run.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use sojourn_apps::Transaction;
use sojourn_backend::{Backend, locked};
use sojourn_records::{
    AppRecord, CaptureOutput, ChangeRecord, FlowRecord, LinkRecord, RecordSink, Records,
    SignalRecord, ValidityFact,
};
use sojourn_scenario::{Scenario, ScenarioError};

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// A file for the packets of one run, in the format pcapng.
///
/// An error of the file does not end the run: the file then ends with the last packets that were written, and
/// [`Capture::failure`] has the error.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    with_state: bool,
    failure: Mutex<Option<String>>,
}

impl Capture {
    /// A capture into an existing file, whose content it replaces; `with_state`: events, if they are kept, have the state
    /// of the queue.
    pub const fn into_file(path: PathBuf, with_state: bool) -> Self {
        Self {
            path,
            with_state,
            failure: Mutex::new(None),
        }
    }

    /// The first error of the file.
    pub fn failure(&self) -> Option<String> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, error: &io::Error) {
        let mut failure = locked(&self.failure);
        failure.get_or_insert_with(|| error.to_string());
    }

    /// Opens the file; `comment` states which run it is.
    pub(crate) fn open(&self, comment: String) -> Capturing<'_> {
        let file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&self.path);
        let file = file.inspect_err(|error| self.fail(error)).ok();
        let output = |file| BufWriter::with_capacity(BUFFER, Output { file, of: self });
        Capturing {
            records: Records::default(),
            out: file.map(output),
            comment,
            with_state: self.with_state,
        }
    }
}

/// Checks that the packets of a scenario can be captured: it has one run, or `only` one runs, and the backend captures.
///
/// # Errors
/// The reason why not.
pub fn check_capture(
    backend: &dyn Backend,
    scenario: &Scenario,
    only: Option<usize>,
) -> Result<(), ScenarioError> {
    let (arms, replications) = (scenario.arms().len(), scenario.replications());
    let rule = if only.is_none() && (arms > 1 || replications > 1) {
        format!(
            "requires one arm and one replication; the number of arms is {arms}, of replications {replications}"
        )
    } else if !backend.can_capture() {
        format!("backend \"{}\" does not capture packets", backend.name())
    } else {
        return Ok(());
    };
    Err(ScenarioError {
        path: "pcap".to_owned(),
        rule,
        line: None,
    })
}

/// The comment on the capture of a run.
pub(crate) fn comment(scenario: &Scenario, arm: &str, replication: u32) -> String {
    let (name, hash, seed) = (scenario.name(), scenario.hash(), scenario.seed());
    format!(
        "scenario {name:?}, SHA-256 {hash}, seed {seed}, arm {arm:?}, replication {replication}"
    )
}

/// The file of a capture; its errors are kept.
#[derive(Debug)]
struct Output<'a> {
    file: File,
    of: &'a Capture,
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            if error.kind() != ErrorKind::Interrupted {
                self.of.fail(error);
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Keeps the records of a run whose packets are captured.
#[derive(Debug)]
pub(crate) struct Capturing<'a> {
    pub(crate) records: Records,
    out: Option<BufWriter<Output<'a>>>,
    comment: String,
    with_state: bool,
}

impl RecordSink for Capturing<'_> {
    fn capture(&mut self) -> Option<CaptureOutput<'_>> {
        let out = self.out.as_mut()?;
        Some(CaptureOutput {
            out,
            comment: &self.comment,
            with_state: self.with_state,
        })
    }

    fn link(&mut self, record: LinkRecord) {
        self.records.link(record);
    }

    fn flow(&mut self, record: FlowRecord) {
        self.records.flow(record);
    }

    fn application(&mut self, record: AppRecord) {
        self.records.application(record);
    }

    fn transaction(&mut self, record: Transaction) {
        self.records.transaction(record);
    }

    fn event(&mut self, record: SignalRecord) {
        self.records.event(record);
    }

    fn change(&mut self, record: ChangeRecord) {
        self.records.change(record);
    }

    fn validity(&mut self, fact: ValidityFact) {
        self.records.validity(fact);
    }
}
