//! The signals that end a command early: it keeps what it has finished.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(unix)]
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::arguments::Problem;

const NUMBERS: &[i32] = &[
    SIGINT,
    SIGTERM,
    #[cfg(unix)]
    SIGHUP,
];
/// Shells report 128 plus the number of the signal.
const SIGNALLED: usize = 128;

/// What was received since the command started.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Whether the command should end.
    pub(crate) ended: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Receives them from now on.
    pub(crate) fn receive() -> Result<Self, Problem> {
        let ended = Arc::new(AtomicBool::new(false));
        let number = Arc::new(AtomicUsize::new(0));
        for &signal in NUMBERS {
            let value = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&number), value)
                .and_then(|_| flag::register(signal, Arc::clone(&ended)))
                .map_err(Problem::environment)?;
        }
        Ok(Self { ended, number })
    }

    /// The exit code that says which signal ended the command.
    pub(crate) fn status(&self) -> Option<u8> {
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => Some(u8::try_from(SIGNALLED + number).unwrap_or(u8::MAX)),
        }
    }
}
