//! A path behind a pointer: its last error, and what it lends to the caller.

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sojourn_path::{Direction, Instant, Path};

use crate::abi::Event;

/// What `struct sojourn_path` is.
#[derive(Debug)]
pub struct Handle {
    /// `None` if it could not be built, or after a panic.
    path: Option<Path>,
    /// Of the last call.
    error: Option<CString>,
    /// Those that were taken from the path, and not yet by the caller.
    pub(crate) events: VecDeque<Event>,
    /// The bytes of the last delivery.
    pub(crate) delivered: Vec<u8>,
}

impl Handle {
    /// A path, or why there is none.
    pub(crate) fn new(build: impl FnOnce() -> Result<Path, String>) -> Self {
        let (path, error) = match guarded(build) {
            Ok(path) => (Some(path), None),
            Err(error) => (None, Some(text(&error))),
        };
        Self {
            path,
            error,
            events: VecDeque::new(),
            delivered: Vec::new(),
        }
    }

    /// Calls `work` and keeps its error. A panic in it is an error too, after which every call fails: the path may
    /// be in any state.
    pub(crate) fn call<T>(
        &mut self,
        work: impl FnOnce(&mut Path) -> Result<T, String>,
    ) -> Option<T> {
        let path = self.path.as_mut()?;
        let mut completed = false;
        let result = guarded(|| {
            let result = work(path);
            completed = true;
            result
        });
        if !completed {
            let path = self.path.take();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(path)));
        }
        match result {
            Ok(done) => {
                self.error = None;
                Some(done)
            }
            Err(error) => {
                self.error = Some(text(&error));
                None
            }
        }
    }

    pub(crate) const fn path(&self) -> Option<&Path> {
        self.path.as_ref()
    }

    pub(crate) const fn error(&self) -> Option<&CString> {
        self.error.as_ref()
    }
}

/// The result of `work`; a panic in it is an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(internal(&*payload)))
}

fn internal(payload: &(dyn Any + Send)) -> String {
    let literal = payload.downcast_ref::<&str>().copied();
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let what = literal.or(owned).unwrap_or("a panic without a message");
    format!("internal error, please report it: {what}")
}

/// A text that ends with a zero byte, on one line.
fn text(error: &str) -> CString {
    let line = error.replace(['\0', '\n'], " ");
    CString::new(line).unwrap_or_default()
}

/// The time of a call.
pub(crate) fn time(path: &Path, now: u64) -> Result<Instant, String> {
    /// Half of the range: no delay leads out of it. [`NEVER`](crate::abi::NEVER) is beyond.
    const END: u64 = 1 << 63;
    if now >= END {
        return Err(format!(
            "time {now} ns is out of range; expected less than {END} ns (292 years)"
        ));
    }
    let (now, before) = (Instant::from_nanos(now), path.last_call());
    if now < before {
        return Err(format!(
            "time {now} precedes that of an earlier call, {before}"
        ));
    }
    Ok(now)
}

/// A direction by its number.
pub(crate) fn direction(number: u32) -> Result<Direction, String> {
    match number {
        0 => Ok(Direction::Forward),
        1 => Ok(Direction::Reverse),
        _ => Err(format!(
            "unknown direction {number}; expected 0 (forward) or 1 (reverse)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_after_which_every_call_fails() {
        let mut handle = Handle::new(|| Path::builder().build().map_err(|e| e.to_string()));
        assert_eq!(handle.call(|_| Ok(1)), Some(1));
        assert_eq!(handle.call(|_| -> Result<(), _> { panic!("a\nb") }), None);
        let error = c"internal error, please report it: a b";
        assert_eq!(handle.error().map(CString::as_c_str), Some(error));
        assert_eq!(handle.call(|_| Ok(1)), None);
        assert_eq!(handle.error().map(CString::as_c_str), Some(error));
        assert!(handle.path().is_none());
    }
}
