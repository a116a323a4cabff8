//! The names of the backend and of the kernel.

/// The name of the backend.
pub(crate) const NAME: &str = "live";

/// The release of the kernel.
pub(crate) fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}
