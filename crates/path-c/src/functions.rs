//! The functions that C calls.
//!
//! The caller of each promises what the header states: a path that `sojourn_path_new` returned and that nothing else
//! uses during the call; pointers that are valid for as many bytes or structs as the call states.

use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice, str};

use sojourn_path::{Bottleneck, Direction, Ecn, Headers, Path, Rate, Trace, udp_flow};

use crate::abi::{
    ABI, Capture, Config, Counters, Delivery, EVENTS, Event, NEVER, NO_PACKET, STRICT, Statistic,
    Text, statistic,
};
use crate::handle::{Handle, direction, time};

/// `SOJOURN_ABI` of this library.
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_path_abi() -> u32 {
    ABI
}

/// A path at time zero.
///
/// # Safety
/// The pointer is valid, and so are the texts behind it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_new(config: *const Config) -> *mut Handle {
    let build = || {
        // SAFETY: the caller passes a valid pointer, or null.
        let config = unsafe { config.as_ref() }.ok_or("config is NULL")?;
        // SAFETY: the texts of a config are valid.
        unsafe { built(config) }
    };
    let handle = catch_unwind(AssertUnwindSafe(|| Box::new(Handle::new(build))));
    handle.map_or(ptr::null_mut(), Box::into_raw)
}

/// Ends the capture and the path.
///
/// # Safety
/// `sojourn_path_new` returned the pointer, and nothing uses it afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_free(path: *mut Handle) {
    if path.is_null() {
        return;
    }
    // SAFETY: `sojourn_path_new` made it of a box.
    let mut handle = unsafe { Box::from_raw(path) };
    let end = || {
        handle.call(|path| path.finish_capture().map_err(|error| error.to_string()));
        drop(handle);
    };
    // A panic has no one to be reported to.
    let _ = catch_unwind(AssertUnwindSafe(end));
}

/// Why the last call failed.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_error(path: *const Handle) -> *const c_char {
    // SAFETY: the caller passes a path, or null.
    let handle = unsafe { path.as_ref() };
    let Some(handle) = handle else {
        return c"path is NULL".as_ptr();
    };
    handle.error().map_or(ptr::null(), |error| error.as_ptr())
}

/// Offers the payload of a UDP datagram.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_push(
    path: *mut Handle,
    now: u64,
    way: u32,
    bytes: *const c_void,
    size: usize,
    ecn: u32,
    flow: u32,
) -> u64 {
    let work = |path: &mut Path| {
        let (now, way) = (time(path, now)?, direction(way)?);
        let ecn = u8::try_from(ecn).ok().filter(|ecn| *ecn < 4).ok_or_else(|| {
            format!("unknown ECN field {ecn}; expected 0 (not ECT), 1 (ECT(1)), 2 (ECT(0)) or 3 (CE)")
        })?;
        let flow = u16::try_from(flow).map_err(|_| format!("flow {flow} is not 0 to 65535"))?;
        let headers = Headers::udp(Ecn::from_bits(ecn), udp_flow(flow));
        // SAFETY: as the caller promises.
        let bytes = unsafe { copied(bytes, size) }?;
        Ok(path.push_with(now, way, bytes, &headers).0)
    };
    // SAFETY: as the caller promises.
    unsafe { called(path, work) }.unwrap_or(NO_PACKET)
}

/// Offers an IP packet.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_push_ip(
    path: *mut Handle,
    now: u64,
    way: u32,
    bytes: *const c_void,
    size: usize,
) -> u64 {
    let work = |path: &mut Path| {
        let (now, way) = (time(path, now)?, direction(way)?);
        // SAFETY: as the caller promises.
        let bytes = unsafe { copied(bytes, size) }?;
        match path.push_ip(now, way, bytes) {
            Ok(id) => Ok(id.0),
            Err(bytes) => Err(format!(
                "{} bytes are not a complete IPv4 or IPv6 packet",
                bytes.len()
            )),
        }
    };
    // SAFETY: as the caller promises.
    unsafe { called(path, work) }.unwrap_or(NO_PACKET)
}

/// The next packet that has arrived.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_poll(
    path: *mut Handle,
    now: u64,
    delivery: *mut Delivery,
) -> i32 {
    let work = |path: &mut Path| {
        let now = time(path, now)?;
        if delivery.is_null() {
            return Err("delivery is NULL".to_owned());
        }
        path.try_poll(now).map_err(|late| late.to_string())
    };
    // SAFETY: the caller passes a path, or null.
    let Some(handle) = (unsafe { path.as_mut() }) else {
        return -1;
    };
    match handle.call(work) {
        None => -1,
        Some(None) => 0,
        Some(Some(arrived)) => {
            let arrived = Delivery::of(arrived, &mut handle.delivered);
            // SAFETY: the pointer is not null, and valid as the caller promises.
            unsafe { delivery.write(arrived) };
            1
        }
    }
}

/// When to poll next.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_deadline(path: *const Handle) -> u64 {
    // SAFETY: the caller passes a path, or null.
    let path = unsafe { path.as_ref() }.and_then(Handle::path);
    let due = catch_unwind(AssertUnwindSafe(|| path.and_then(Path::deadline)));
    due.ok()
        .flatten()
        .map_or(NEVER, sojourn_path::Instant::as_nanos)
}

/// Removes events.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_events(
    path: *mut Handle,
    events: *mut Event,
    room: usize,
) -> usize {
    // SAFETY: the caller passes a path, or null.
    let Some(handle) = (unsafe { path.as_mut() }) else {
        return 0;
    };
    let fresh = handle.call(|path| Ok(path.events().map(Event::from).collect::<Vec<_>>()));
    handle.events.extend(fresh.into_iter().flatten());
    let room = if events.is_null() { 0 } else { room };
    let count = room.min(handle.events.len());
    for (place, event) in handle.events.drain(..count).enumerate() {
        // SAFETY: there is room for `room` events.
        unsafe { events.add(place).write(event) };
    }
    count
}

/// Packets so far.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_counters(
    path: *mut Handle,
    way: u32,
    counters: *mut Counters,
) -> i32 {
    let work = |path: &mut Path| Ok(Counters::from(path.counters(direction(way)?)));
    // SAFETY: as the caller promises.
    unsafe { answered(path, work, counters, "counters") }
}

/// A quantile of the time in the queue.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_sojourn(
    path: *mut Handle,
    way: u32,
    quantile: f64,
    nanoseconds: *mut u64,
) -> i32 {
    let work = |path: &mut Path| {
        if !(0.0..=1.0).contains(&quantile) {
            return Err(format!("quantile {quantile} is not 0 to 1"));
        }
        let waited = path.sojourn(direction(way)?).quantile(quantile);
        waited.ok_or_else(|| "no packet has departed".to_owned())
    };
    // SAFETY: as the caller promises.
    unsafe { answered(path, work, nanoseconds, "nanoseconds") }
}

/// Changes the rate of a bottleneck.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_set_rate(
    path: *mut Handle,
    now: u64,
    way: u32,
    bits_per_s: u64,
) -> i32 {
    let work = |path: &mut Path| {
        let (now, way) = (time(path, now)?, direction(way)?);
        let rate = Rate::from_bits_per_sec(bits_per_s).ok_or("the rate must be > 0")?;
        path.set_rate(now, way, rate);
        Ok(())
    };
    // SAFETY: as the caller promises.
    code(unsafe { called(path, work) })
}

/// Changes a wire.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_set_wire(
    path: *mut Handle,
    now: u64,
    way: u32,
    change: Text,
) -> i32 {
    let work = |path: &mut Path| {
        let (now, way) = (time(path, now)?, direction(way)?);
        // SAFETY: the text is valid.
        let change = unsafe { read("change", &change) }?;
        let change = change.parse().map_err(|error| format!("{way}.{error}"))?;
        path.set_wire(now, way, &change)
            .map_err(|error| error.to_string())
    };
    // SAFETY: as the caller promises.
    code(unsafe { called(path, work) })
}

/// Ends the capture.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_finish_capture(path: *mut Handle) -> i32 {
    let work = |path: &mut Path| {
        path.finish_capture()
            .map_err(|error| format!("capture: {error}"))
    };
    // SAFETY: as the caller promises.
    code(unsafe { called(path, work) })
}

/// Statistics of a queue.
///
/// # Safety
/// As the module states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_path_statistics(
    path: *mut Handle,
    way: u32,
    statistics: *mut Statistic,
    room: usize,
) -> usize {
    let work = |path: &mut Path| Ok(path.statistics(direction(way)?));
    // SAFETY: as the caller promises.
    let all = unsafe { called(path, work) }.unwrap_or_default();
    let room = if statistics.is_null() { 0 } else { room };
    for (place, one) in all.iter().take(room).enumerate() {
        // SAFETY: there is room for `room` statistics.
        unsafe { statistics.add(place).write(statistic(one)) };
    }
    all.len()
}

/// Memory for what JavaScript passes to the other functions.
#[cfg(target_family = "wasm")]
#[unsafe(no_mangle)]
pub extern "C" fn sojourn_allocate(size: usize) -> *mut u64 {
    let words = vec![0_u64; size.div_ceil(8)];
    Box::into_raw(words.into_boxed_slice()).cast()
}

/// Releases memory.
///
/// # Safety
/// `sojourn_allocate` returned the pointer for this size.
#[cfg(target_family = "wasm")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_release(memory: *mut u64, size: usize) {
    let words = ptr::slice_from_raw_parts_mut(memory, size.div_ceil(8));
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(words) });
}

/// The path that a config describes.
///
/// # Safety
/// Its texts are valid.
unsafe fn built(config: &Config) -> Result<Path, String> {
    if config.abi != ABI {
        return Err(format!(
            "version {} of the interface; this library has version {ABI}",
            config.abi
        ));
    }
    if config.flags & !(EVENTS | STRICT) != 0 {
        return Err(format!(
            "unknown flags {:#x}; expected the sum of 1 (events) and 2 (strict), one of them or 0",
            config.flags
        ));
    }
    let mut builder = Path::builder().seed(config.seed);
    let ways = [
        (Direction::Forward, &config.forward, &config.forward_trace),
        (Direction::Reverse, &config.reverse, &config.reverse_trace),
    ];
    for (way, text, trace) in ways {
        // SAFETY: the texts are valid.
        let (text, trace) = unsafe { (read(way.name(), text)?, read(way.name(), trace)?) };
        if text.trim().is_empty() && trace.is_empty() {
            continue;
        }
        let trace = (!trace.is_empty()).then(|| Trace::parse(trace)).transpose();
        let trace = trace.map_err(|error| format!("{way}_trace: {error}"))?;
        let bottleneck = Bottleneck::parse(text, trace.as_ref());
        let bottleneck = bottleneck.map_err(|error| format!("{way}.{error}"))?;
        builder = match way {
            Direction::Forward => builder.forward(bottleneck),
            Direction::Reverse => builder.reverse(bottleneck),
        };
    }
    if config.flags & EVENTS != 0 {
        builder = builder.events();
    }
    if config.flags & STRICT != 0 {
        builder = builder.strict();
    }
    // SAFETY: the texts are valid.
    let file = unsafe { read("capture_file", &config.capture_file) }?;
    match (file, config.capture) {
        ("", None) => {}
        ("", Some(function)) => {
            builder = builder.capture(Callback(function, Context(config.capture_context)));
        }
        (_, Some(_)) => return Err("capture_file and capture are both set; set one".to_owned()),
        (name, None) => {
            let file =
                File::create(name).map_err(|error| format!("capture_file: {name}: {error}"))?;
            builder = builder.capture(BufWriter::new(file));
        }
    }
    builder.build().map_err(|error| error.to_string())
}

/// A function that receives parts of a capture.
struct Callback(Capture, Context);

struct Context(*mut c_void);

// SAFETY: the header states that a path, and thus what it calls, is used by one thread at a time.
unsafe impl Send for Context {}

impl Write for Callback {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self(function, Context(context)) = self;
        // SAFETY: the caller of `sojourn_path_new` passes a function that may be called with this context.
        unsafe { function(*context, bytes.as_ptr().cast(), bytes.len()) };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text of the caller.
///
/// # Safety
/// It is valid during `'a`.
unsafe fn read<'a>(place: &str, text: &'a Text) -> Result<&'a str, String> {
    if text.size == 0 {
        return Ok("");
    }
    if text.data.is_null() {
        return Err(format!("{place}: {} bytes of text at NULL", text.size));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { slice::from_raw_parts(text.data, text.size) };
    str::from_utf8(bytes).map_err(|_| format!("{place}: the text is not UTF-8"))
}

/// The bytes of a packet.
///
/// # Safety
/// They are valid.
unsafe fn copied(bytes: *const c_void, size: usize) -> Result<Vec<u8>, String> {
    if size == 0 {
        return Ok(Vec::new());
    }
    if bytes.is_null() {
        return Err(format!("{size} bytes at NULL"));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { slice::from_raw_parts(bytes.cast(), size) }.to_vec())
}

/// Calls `work` with a path.
///
/// # Safety
/// The pointer is one of `sojourn_path_new`, or null.
unsafe fn called<T>(
    path: *mut Handle,
    work: impl FnOnce(&mut Path) -> Result<T, String>,
) -> Option<T> {
    // SAFETY: as the caller promises.
    unsafe { path.as_mut() }?.call(work)
}

/// The same, and writes what it returns.
///
/// # Safety
/// Both pointers are valid, or null.
unsafe fn answered<T>(
    path: *mut Handle,
    work: impl FnOnce(&mut Path) -> Result<T, String>,
    answer: *mut T,
    name: &str,
) -> i32 {
    let work = |path: &mut Path| {
        if answer.is_null() {
            return Err(format!("{name} is NULL"));
        }
        work(path)
    };
    // SAFETY: as the caller promises.
    let result = unsafe { called(path, work) };
    // SAFETY: without an error, the pointer is not null, and valid as the caller promises.
    code(result.map(|value| unsafe { answer.write(value) }))
}

const fn code(done: Option<()>) -> i32 {
    if done.is_some() { 0 } else { -1 }
}
