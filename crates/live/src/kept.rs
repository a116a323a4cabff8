//! Processes that end with the run.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::namespace::Namespace;

/// A running process, which is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    child: Child,
    /// When this is dropped, the thread that started the process ends, and the kernel kills the process.
    _keeper: Sender<()>,
}

impl Kept {
    /// Starts a process, in a network namespace if one is given.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(mut command: Command, within: Option<&Namespace>) -> io::Result<Self> {
        let namespace = within.map(Namespace::duplicate).transpose()?;
        let (started, child) = channel();
        let (keeper, dropped) = channel::<()>();
        thread::spawn(move || {
            let entered = namespace.map_or(Ok(()), |namespace| namespace.move_in());
            let spawned = entered.and_then(|()| command.spawn());
            // Neither side of the channels fails before the other ends.
            let _ = started.send(spawned);
            let _ = dropped.recv();
        });
        let gone = |_| io::Error::other("the thread that starts it has ended");
        let child = child.recv().map_err(gone).and_then(|child| child);
        Ok(Self {
            child: child?,
            _keeper: keeper,
        })
    }

    /// How the process ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The call fails for a process that has already ended, which is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
