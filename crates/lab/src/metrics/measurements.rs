//! Runs whose metrics are computed on threads of their own.

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sojourn_backend::{BackendError, Cancellation, Registry, UnknownBackend, locked};

use super::meter::Meter;
use crate::run::threads;

/// The number of a run and its row.
pub type Row = (usize, Vec<u8>);

/// Calls its argument once, on each thread that executes runs.
pub type OnThread = fn(&(dyn Fn() + Sync));

/// What ends runs early.
enum Failure {
    Error(BackendError),
    Panic(Box<dyn Any + Send>),
}

/// What the threads share.
struct Shared {
    meter: Arc<Meter>,
    registry: Registry,
    backend: Option<String>,
    numbers: Vec<usize>,
    next: AtomicUsize,
    stopped: AtomicBool,
    /// Rows not taken yet, in the order of completion.
    rows: Mutex<Vec<Row>>,
    failure: Mutex<Option<Failure>>,
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
            .field("numbers", &self.shared.numbers.len())
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
        let count = threads(jobs, properties.max_concurrency).min(numbers.len());
        let shared = Arc::new(Shared {
            meter,
            registry,
            backend: backend.map(str::to_owned),
            numbers,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            rows: Mutex::default(),
            failure: Mutex::default(),
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
        match locked(&self.shared.failure).take() {
            None => Ok(None),
            Some(Failure::Error(error)) => Err(error),
            Some(Failure::Panic(panic)) => resume_unwind(panic),
        }
    }

    /// Ends the runs, and returns the rows of finished runs that were not taken.
    pub fn stop(&mut self) -> Vec<Row> {
        self.shared.stopped.store(true, Ordering::Relaxed);
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
        let stopped = || self.stopped.load(Ordering::Relaxed);
        // Ends: `next` grows in each turn.
        while !stopped() {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&number) = self.numbers.get(next) else {
                return;
            };
            let measure = || {
                let backend = self.registry.get(self.backend.as_deref());
                let backend = backend.expect("the backend was found before");
                let cancellation = Cancellation::new(&stopped);
                self.meter.measure(backend, number, &cancellation)
            };
            let failure = match catch_unwind(AssertUnwindSafe(measure)) {
                Ok(Ok(None)) => continue,
                Ok(Ok(Some(row))) => {
                    locked(&self.rows).push((number, row));
                    continue;
                }
                Ok(Err(error)) => Failure::Error(error),
                Err(panic) => Failure::Panic(panic),
            };
            locked(&self.failure).get_or_insert(failure);
            self.stopped.store(true, Ordering::Relaxed);
        }
    }
}
