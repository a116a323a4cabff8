//! Programs in the namespaces.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use sojourn_scenario::plan::Program as ProgramConfig;

use crate::error::LiveError;
use crate::space::{End, LEVEL_VARIABLE, SERVER6_VARIABLE, Space};
use crate::sys;

/// A running program, which is killed with all of its children when this value is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    /// When this is dropped, the thread that started the program ends, and the kernel kills the program.
    _keeper: Sender<()>,
}

impl Program {
    /// Starts a program on a host of the network.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(
        space: &Space,
        end: &End,
        words: &[String],
        quiet: bool,
    ) -> Result<Self, LiveError> {
        let Some((name, arguments)) = words.split_first() else {
            return Err(LiveError::Program {
                name: "the program".to_owned(),
                reason: "no name".to_owned(),
            });
        };
        let mut command = Command::new(name);
        command
            .args(arguments)
            .env(ProgramConfig::SERVER_VARIABLE, space.target.v4.to_string())
            .env(SERVER6_VARIABLE, space.target.v6.to_string())
            .env(LEVEL_VARIABLE, space.level.to_string())
            .env("SOJOURN_CLIENT", space.client.addresses.v4.to_string());
        if quiet {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        sys::contain(&mut command);
        let failed = |error: &io::Error| LiveError::Program {
            name: name.clone(),
            reason: reason(error),
        };
        let namespace = end.namespace.duplicate().map_err(|e| failed(&e))?;
        let (started, child) = channel();
        let (keeper, dropped) = channel::<()>();
        thread::spawn(move || {
            let spawned = namespace.move_in().and_then(|()| command.spawn());
            // Neither side of the channels fails before the other ends.
            let _ = started.send(spawned);
            let _ = dropped.recv();
        });
        let gone = |_| io::Error::other("the thread that starts it has ended");
        let child = child.recv().map_err(gone).and_then(|child| child);
        Ok(Self {
            child: child.map_err(|e| failed(&e))?,
            _keeper: keeper,
        })
    }

    /// How the program ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

/// Why a program was not started.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such program in PATH".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The call fails for a program that has already ended, which is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
