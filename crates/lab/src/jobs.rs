//! Work that threads take in turn.

use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use sojourn_backend::{BackendError, locked};

/// Numbers of runs, each for one thread; the first failure ends the work.
pub(crate) struct Jobs {
    numbers: Vec<usize>,
    next: AtomicUsize,
    stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

enum Failure {
    Error(BackendError),
    Panic(Box<dyn Any + Send>),
}

impl Jobs {
    pub(crate) const fn new(numbers: Vec<usize>) -> Self {
        Self {
            numbers,
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Number of threads for the work: `asked`, by default as many as there are processors, but at most `most` and one
    /// per number.
    pub(crate) fn threads(&self, asked: Option<NonZeroUsize>, most: Option<NonZeroUsize>) -> usize {
        let threads = asked.or_else(|| thread::available_parallelism().ok());
        let threads = threads.unwrap_or(NonZeroUsize::MIN);
        let threads = most.map_or(threads, |most| threads.min(most));
        threads.get().min(self.len())
    }

    /// Lets threads take no further number.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Takes numbers until none is left. An error or panic of `run` stops all threads.
    pub(crate) fn work(&self, run: impl Fn(usize) -> Result<(), BackendError>) {
        // Ends: `next` grows in each turn.
        while !self.is_stopped() {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&number) = self.numbers.get(next) else {
                return;
            };
            // After a panic nothing reads what the run has changed.
            let failure = match catch_unwind(AssertUnwindSafe(|| run(number))) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => Failure::Error(error),
                Err(panic) => Failure::Panic(panic),
            };
            locked(&self.failure).get_or_insert(failure);
            self.stop();
        }
    }

    /// The first failure, once.
    ///
    /// # Errors
    /// That of the first run that failed.
    ///
    /// # Panics
    /// If the first run that failed did.
    pub(crate) fn outcome(&self) -> Result<(), BackendError> {
        match locked(&self.failure).take() {
            None => Ok(()),
            Some(Failure::Error(error)) => Err(error),
            Some(Failure::Panic(panic)) => resume_unwind(panic),
        }
    }
}
