//! Network namespaces, and the user namespace that an unprivileged process creates them in.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::thread::LinkNameSpaceType;

use crate::error::LiveError;
use crate::sys;

const ALLOW_USERS: &str = "allow unprivileged user namespaces (sysctl user.max_user_namespaces > 0, \
                           kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0) \
                           or run as root";

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    handle: OwnedFd,
}

impl Namespace {
    /// The namespace of the calling thread.
    pub(crate) fn current() -> io::Result<Self> {
        let handle = File::open("/proc/thread-self/ns/net")?.into();
        Ok(Self { handle })
    }

    /// A new namespace, which exists until its last handle and process are gone.
    pub(crate) fn create() -> io::Result<Self> {
        on_thread(|| {
            sys::unshare_network()?;
            Self::current()
        })
    }

    /// Another handle to it.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        let handle = self.handle.try_clone()?;
        Ok(Self { handle })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Moves the calling thread into the namespace. It cannot return without privileges over the namespace that it
    /// leaves.
    pub(crate) fn move_in(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(self.handle.as_fd(), kind)?;
        Ok(())
    }

    /// Runs `work` in this namespace: sockets and devices that it opens belong to the namespace.
    ///
    /// # Errors
    /// The error of `work`, or if the namespace cannot be entered.
    pub(crate) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        on_thread(|| {
            self.move_in()?;
            work()
        })
    }
}

/// Runs `work` on a new thread, which may change its namespaces.
fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Becomes root of a user namespace, unless the process may create network namespaces anyway.
///
/// # Errors
/// [`LiveError::Environment`] if the kernel does not permit it, or the process has several threads.
pub fn enter_user_namespace() -> Result<(), LiveError> {
    let what = "cannot create a user namespace";
    let fail = |error: &io::Error| {
        LiveError::namespace("user", "user.max_user_namespaces", error, ALLOW_USERS)
    };
    if may_administrate() {
        return Ok(());
    }
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(LiveError::Environment {
            problem: format!("{what}: the process has {threads} threads"),
            remedy: "use the command `sojourn`, or run as root",
        });
    }
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    sys::unshare_user().map_err(|e| fail(&e))?;
    OWN_USER_NAMESPACE.store(true, Ordering::Relaxed);
    let write = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    write("setgroups", "deny".to_owned())
        .and_then(|()| write("uid_map", format!("{0} {0} 1", user.as_raw())))
        .and_then(|()| write("gid_map", format!("{0} {0} 1", group.as_raw())))
        .map_err(|e| fail(&e))
}

/// Whether this process has created the user namespace that it is in.
static OWN_USER_NAMESPACE: AtomicBool = AtomicBool::new(false);

/// Whether this process has created the user namespace that it is in.
pub(crate) fn is_own_user_namespace() -> bool {
    OWN_USER_NAMESPACE.load(Ordering::Relaxed)
}

/// Whether the process has the capabilities to create namespaces and devices.
fn may_administrate() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}
