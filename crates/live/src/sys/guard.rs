//! A process that outlives this one and puts back what would otherwise stay changed.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{checked, close_all_but};

/// The process; it acts when this value is dropped or this process has ended in any way.
#[derive(Debug)]
pub(crate) struct Guardian {
    /// When this is closed, the process acts.
    alive: Option<OwnedFd>,
    process: libc::pid_t,
}

/// Starts a process in a session of its own, so that signals for this process and its group do not reach it; it keeps
/// the file descriptors `kept` and calls `act`, which must make nothing but system calls and must not panic. When this
/// returns, the process is in its session.
///
/// # Errors
/// Those of the system calls, and if the process was killed before it was in its session.
pub(crate) fn guard(kept: &[RawFd], act: &dyn Fn()) -> io::Result<Guardian> {
    let [read, alive] = pipe()?;
    let [ready, tell] = pipe()?;
    let mut all = [kept, &[read.as_raw_fd()]].concat();
    all.sort_unstable();
    // SAFETY: the child makes system calls only: it neither allocates nor locks, and it ends without destructors.
    let process = checked(unsafe { libc::fork() })?;
    if process == 0 {
        // SAFETY: the set lives through the calls, and the name is a string with a final NUL.
        unsafe {
            let mut signals = std::mem::zeroed();
            libc::sigfillset(&raw mut signals);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const signals, std::ptr::null_mut());
            libc::setsid();
            libc::prctl(libc::PR_SET_NAME, c"sojourn-guard".as_ptr());
        }
        let _ = rustix::io::write(&tell, &[1]);
        close_all_but(&all);
        // Ends with the last process that has the other end; no process writes to it.
        let mut byte = [0_u8];
        while let Err(rustix::io::Errno::INTR) = rustix::io::read(&read, &mut byte) {}
        act();
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(0) };
    }
    let guardian = Guardian {
        alive: Some(alive),
        process,
    };
    // Before, a signal for this process group would reach it.
    drop(tell);
    let mut byte = [0_u8];
    match rustix::io::retry_on_intr(|| rustix::io::read(&ready, &mut byte))? {
        0 => Err(io::Error::other("the process that restores it was killed")),
        _ => Ok(guardian),
    }
}

/// Creates a pipe: the end to read from, and the end to write to.
fn pipe() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors to the array.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both descriptors are new and have no other owner.
    Ok(ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.alive = None;
        // Ends: `process` is a child, and an error other than an interruption means that it is gone.
        // SAFETY: no status is asked for.
        while unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) } < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
    }
}
