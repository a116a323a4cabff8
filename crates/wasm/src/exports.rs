//! The functions that the host calls. No pointer of the host is followed: it writes and reads in buffers of this module.

#![expect(
    unsafe_code,
    reason = "an exported name could replace another symbol: none of these is the name of a function of a library"
)]

use std::cell::{Cell, RefCell};
use std::panic;

use crate::session::{self, Session};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
    static HOOKED: Cell<bool> = const { Cell::new(false) };
}

/// Returns where the host writes `length` bytes of input.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Where the output of the last call is; after a trap, the message of the panic.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

/// The length of the output in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    OUTPUT.with_borrow(Vec::len)
}

/// Output: the queues as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn catalogue() -> u32 {
    answer(Ok(session::catalogue()))
}

/// Output: the scenario in the input, checked, with its arms, links and flows, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn describe() -> u32 {
    answer(with_input(session::described))
}

/// Starts the run of replication `replication` of arm number `arm` of the scenario in the input. Output: its plan as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn start(arm: usize, replication: u32) -> u32 {
    answer(with_input(|text| {
        let session = Session::new(text, arm, replication)?;
        let plan = session.plan();
        SESSION.set(Some(session));
        Ok(plan)
    }))
}

/// Runs until this time.
#[unsafe(no_mangle)]
pub extern "C" fn advance(milliseconds: u32) -> u32 {
    answer(with_session(|session| {
        session.advance(milliseconds);
        String::new()
    }))
}

/// Output: what was sampled since the last call, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn samples() -> u32 {
    answer(with_session(Session::samples))
}

/// Output: drop, mark or loss number `number` as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn event(number: usize) -> u32 {
    answer(with_session(|session| session.event(number)))
}

/// Output: runs the rest; all tables.
#[unsafe(no_mangle)]
pub extern "C" fn tables() -> u32 {
    answer(with_session(Session::tables))
}

fn with_input<T>(f: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    INPUT.with_borrow(|input| {
        let text = std::str::from_utf8(input);
        f(text.map_err(|error| format!("the scenario is not UTF-8: {error}"))?)
    })
}

fn with_session<T>(f: impl FnOnce(&mut Session) -> T) -> Result<T, String> {
    SESSION.with_borrow_mut(|session| {
        let session = session.as_mut();
        session
            .map(f)
            .ok_or_else(|| "no run was started".to_owned())
    })
}

/// Puts the result of a call into the output; 1: it is an error.
fn answer(result: Result<impl Into<Vec<u8>>, String>) -> u32 {
    if !HOOKED.replace(true) {
        // WebAssembly has no standard error, and a panic traps.
        panic::set_hook(Box::new(|info| set_output(info.to_string().into_bytes())));
    }
    let failed = result.is_err();
    set_output(result.map_or_else(String::into_bytes, Into::into));
    failed.into()
}

fn set_output(bytes: Vec<u8>) {
    OUTPUT.set(bytes);
}
