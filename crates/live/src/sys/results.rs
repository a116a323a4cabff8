//! Results of system calls, and lengths as they take them.

use std::ffi::c_int;
use std::io;

/// Result of a system call that returns −1 on failure.
pub(super) fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The size of a type, as a length of an address or option.
pub(super) fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}
