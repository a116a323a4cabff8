//! Failure of an external queue, which ends the run.

use std::any::Any;
use std::fmt;
use std::panic::resume_unwind;

/// The payload of the panic with which an external queue ends its run.
pub struct QueueFailure {
    /// The cause: a `String`, or a type that whoever started the run knows.
    pub cause: Box<dyn Any + Send>,
    /// The run that it ended, such as `arm "codel", replication 0`, once that is known.
    pub run: Option<String>,
}

impl fmt::Debug for QueueFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueFailure")
            .field("cause", &self.cause.downcast_ref::<String>())
            .field("run", &self.run)
            .finish()
    }
}

/// Ends the run from inside a queue.
///
/// Unwinds with a [`QueueFailure`], without the message that a panic prints. Whoever started the
/// run catches it and reports the cause.
pub fn fail(cause: impl Into<FailureCause>) -> ! {
    resume_unwind(Box::new(QueueFailure {
        cause: cause.into().0,
        run: None,
    }))
}

/// Why a queue cannot go on, of any type.
pub struct FailureCause(Box<dyn Any + Send>);

impl fmt::Debug for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureCause")
    }
}

impl FailureCause {
    /// A cause of a type that whoever started the run knows.
    pub fn new(cause: impl Any + Send) -> Self {
        Self(Box::new(cause))
    }
}

impl From<String> for FailureCause {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for FailureCause {
    fn from(message: &str) -> Self {
        Self::new(message.to_owned())
    }
}
