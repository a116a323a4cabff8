//! A virtual clock and repeatable random numbers for a library that asks the system for both.
//!
//! quiche calls `std::time::Instant::now` and BoringSSL's `RAND_bytes` inside. The linker (`--wrap`, see `build.rs`)
//! lets both calls end here. Threads without a [`Clock`] get what the system says.

use std::cell::Cell;
use std::ffi::{c_int, c_uchar};

use sojourn_path::Instant;

const NANOS: u64 = 1_000_000_000;
/// Where the virtual clock starts: a time must have room before it.
const ORIGIN: u64 = 1_000_000 * NANOS;

thread_local! {
    static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Clock and random numbers of this thread while it exists.
pub struct Clock;

impl Clock {
    /// Starts at zero, with the same random numbers each time.
    pub fn start() -> Self {
        NOW.set(Some(ORIGIN));
        STATE.set(1);
        Self
    }

    /// Sets the time.
    pub fn set(&self, now: Instant) {
        NOW.set(Some(ORIGIN + now.as_nanos()));
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        NOW.set(None);
    }
}

unsafe extern "C" {
    fn __real_clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int;
    fn __real_RAND_bytes(bytes: *mut c_uchar, size: usize) -> c_int;
}

/// Called instead of `clock_gettime`, by `Instant::now` and by BoringSSL.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_clock_gettime(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> c_int {
    let Some(now) = NOW.get() else {
        // SAFETY: the arguments of the caller.
        return unsafe { __real_clock_gettime(clock, time) };
    };
    let value = libc::timespec {
        tv_sec: (now / NANOS).cast_signed(),
        tv_nsec: (now % NANOS).cast_signed(),
    };
    // SAFETY: the caller gives room for one value.
    unsafe { time.write(value) };
    0
}

/// Called instead of `RAND_bytes`: splitmix64.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_RAND_bytes(bytes: *mut c_uchar, size: usize) -> c_int {
    if NOW.get().is_none() {
        // SAFETY: the arguments of the caller.
        return unsafe { __real_RAND_bytes(bytes, size) };
    }
    for place in 0..size {
        let state = STATE.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        STATE.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // SAFETY: the caller gives room for this number of bytes.
        unsafe { bytes.add(place).write((mixed >> 56) as u8) };
    }
    1
}
