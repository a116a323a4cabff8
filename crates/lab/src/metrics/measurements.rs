//! Runs whose metrics are computed on threads of their own.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sojourn_backend::{BackendError, Cancellation, Registry, UnknownBackend, locked};

use super::meter::Meter;
use crate::jobs::Jobs;

/// The number of a run and its row.
pub type Row = (usize, Vec<u8>);

/// Calls its argument once, on each thread that executes runs.
pub type OnThread = fn(&(dyn Fn() + Sync));

/// What the threads share.
struct Shared {
    meter: Arc<Meter>,
    registry: Registry,
    backend: Option<String>,
    jobs: Jobs,
    /// Rows not taken yet, in the order of completion.
    rows: Mutex<Vec<Row>>,
}

/// Runs under way; dropping it ends them.
pub struct Measurements {
    shared: Arc<Shared>,
    /// Disconnected when all threads have ended.
    ended: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Measurements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measurements")
            .field("numbers", &self.shared.jobs.len())
            .finish_non_exhaustive()
    }
}

impl Measurements {
    /// Starts the runs with these numbers on a backend of `registry`, the default if it has no
    /// name; `jobs` at once, by default as many as there are processors.
    ///
    /// # Errors
    /// If there is no such backend.
    pub fn start(
        meter: Arc<Meter>,
        registry: Registry,
        backend: Option<&str>,
        numbers: Vec<usize>,
        jobs: Option<NonZeroUsize>,
        on_thread: OnThread,
    ) -> Result<Self, UnknownBackend> {
        let properties = registry.get(backend)?.properties();
        let at_once = jobs;
        let jobs = Jobs::new(numbers);
        let count = jobs.threads(at_once, properties.max_concurrency);
        let shared = Arc::new(Shared {
            meter,
            registry,
            backend: backend.map(str::to_owned),
            jobs,
            rows: Mutex::default(),
        });
        let (running, ended) = channel();
        let start = |_| {
            let (shared, running) = (Arc::clone(&shared), Sender::clone(&running));
            thread::spawn(move || {
                on_thread(&|| shared.work());
                drop(running);
            })
        };
        let threads = (0..count).map(start).collect();
        Ok(Self {
            shared,
            ended,
            threads,
        })
    }

    /// The rows of the runs that have finished since the last call, in the order of completion,
    /// after at most `patience`; `None`: there are no more.
    ///
    /// # Errors
    /// If a run failed; the rows of finished runs have been returned before.
    ///
    /// # Panics
    /// If a run did.
    pub fn take(&self, patience: Duration) -> Result<Option<Vec<Row>>, BackendError> {
        let waited = self.ended.recv_timeout(patience);
        let rows = std::mem::take(&mut *locked(&self.shared.rows));
        if waited == Err(RecvTimeoutError::Timeout) || !rows.is_empty() {
            return Ok(Some(rows));
        }
        self.shared.jobs.outcome().map(|()| None)
    }

    /// Ends the runs, and returns the rows of finished runs that were not taken.
    pub fn stop(&mut self) -> Vec<Row> {
        self.shared.jobs.stop();
        for thread in self.threads.drain(..) {
            // Panics of runs are kept as failures.
            let _ = thread.join();
        }
        std::mem::take(&mut *locked(&self.shared.rows))
    }
}

impl Drop for Measurements {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn work(&self) {
        let stopped = || self.jobs.is_stopped();
        self.jobs.work(|number| {
            let backend = self.registry.get(self.backend.as_deref());
            let backend = backend.expect("the backend was found before");
            let cancellation = Cancellation::new(&stopped);
            if let Some(row) = self.meter.measure(backend, number, &cancellation)? {
                locked(&self.rows).push((number, row));
            }
            Ok(())
        });
    }
}
