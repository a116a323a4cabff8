//! The binary interface, as `include/sojourn_queue.h` has it and explains it; a test compares the two.

use std::ffi::c_void;

pub use sojourn_qdisc::Ticket;

/// Version of the interface. It grows with every change that an existing library would not survive.
pub const ABI: u32 = 1;

/// The function that a library exports: it returns a pointer to its [`Queue`].
pub const SYMBOL: &str = "sojourn_plugin";

/// Flag of [`Queue`]: [`Headers`] are needed.
pub const READS_HEADERS: u32 = 1;

/// What [`Queue::peek`] returns if only a dequeue can tell.
pub const UNKNOWN: u64 = u64::MAX;

/// What [`Queue::next_timer`] returns if there is nothing to wait for.
pub const NEVER: u64 = u64::MAX;

/// What [`Queue::dequeue`] returns if no packet may leave now; else it is [`Leaving::word`].
///
/// [`Leaving::word`]: sojourn_qdisc::Leaving::word
pub const NOTHING: u64 = 0;

/// UTF-8, not terminated; lives as long as the library, or as the call that passes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Text {
    /// The first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub size: usize,
}

impl Text {
    /// `text`, without copying it.
    pub const fn of(text: &str) -> Self {
        Self {
            data: text.as_ptr(),
            size: text.len(),
        }
    }
}

/// A value of a parameter; its unit says which field counts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Value {
    /// 0: there is none.
    pub is_set: u64,
    /// A whole number of the unit.
    pub whole: u64,
    /// A real number.
    pub real: f64,
}

/// Units of parameters, in the order of `enum sojourn_unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "named as in `sojourn_qdisc::Unit`")]
pub enum Unit {
    Time,
    Rate,
    Size,
    Packets,
    Count,
    Fraction,
    Weight,
    Percent,
    Flag,
    Choice,
    CountOrOff,
    Millis,
    Micros,
    SignedSize,
    Ratio,
    Decimal,
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Parameter {
    /// Its name.
    pub key: Text,
    /// What it means, in one line.
    pub meaning: Text,
    /// Where it comes from.
    pub provenance: Text,
    /// The value that applies if none is given; empty if there always is one.
    pub unset: Text,
    /// The words of a choice, with spaces between them; what a count counts.
    pub words: Text,
    /// A [`Unit`].
    pub unit: u32,
    /// The whole of a ratio, the places of a decimal, the lowest of a signed size.
    pub of: u32,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// Its default.
    pub start: Value,
}

/// What a queue knows of its link.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Link {
    /// In bits per second; 0: it varies.
    pub rate: u64,
    /// The largest packet in bytes.
    pub mtu: u64,
    /// Its name, which may be empty.
    pub name: Text,
}

/// What stands behind the IP header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Headers {
    /// 0: anything else; 1: TCP; 2: UDP; 3: the long header of QUIC.
    pub transport: u32,
    /// The fields of TCP, as [`sojourn_qdisc::TcpHeader`] has them.
    pub seq: u32,
    /// The next number expected.
    pub ack: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// Window.
    pub window: u32,
    /// Clock of the sender.
    pub timestamp: u32,
    /// The peer's clock, echoed.
    pub echoed_timestamp: u32,
    /// SACK blocks.
    pub sacks: [[u32; 2]; 4],
    /// Control bits.
    pub flags: u16,
    /// Not 0: there are timestamps.
    pub has_timestamps: u8,
    /// Not 0: there are other options.
    pub other_options: u8,
}

/// A statistic.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Statistic {
    /// Its name.
    pub name: Text,
    /// The list that it belongs to; empty: the whole queue.
    pub list: Text,
    /// Its place in the list.
    pub place: u64,
    /// 0: a count; 1: a real number; 2: a flag.
    pub kind: u64,
    /// A count or a flag.
    pub whole: u64,
    /// A real number.
    pub real: f64,
}

/// A queue reports to it during a call.
#[derive(Debug)]
#[repr(C)]
pub struct Host {
    /// The functions that it calls.
    pub calls: &'static Calls,
}

/// The functions of [`Host`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Calls {
    /// The packet is discarded; 0: the buffer is full, 1: a signal, 2: a later ACK says the same.
    pub drop: unsafe extern "C" fn(*mut Host, *const Ticket, u32),
    /// The packet was marked and is kept; 0: a signal, 1: a shallow threshold.
    pub mark: unsafe extern "C" fn(*mut Host, *const Ticket, u32),
    /// The next event belongs to this class: its name, place, and whether the place is part of the name.
    pub in_class: unsafe extern "C" fn(*mut Host, Text, u64, u32),
    /// A statistic.
    pub statistic: unsafe extern "C" fn(*mut Host, *const Statistic),
    /// The queue cannot go on.
    pub fail: unsafe extern "C" fn(*mut Host, Text),
}

/// A queue that a library exports.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[expect(missing_docs, reason = "the header explains the fields")]
pub struct Queue {
    pub abi: u32,
    pub size: u32,
    pub name: Text,
    pub version: Text,
    pub summary: Text,
    pub source: Text,
    pub flags: u32,
    pub parameter_count: u32,
    pub parameters: *const Parameter,
    pub conflict: Option<unsafe extern "C" fn(*const Value, *mut Host)>,
    pub create:
        Option<unsafe extern "C" fn(*const Value, *const Link, u64, *mut Host) -> *mut c_void>,
    pub clone: Option<unsafe extern "C" fn(*const c_void, *mut Host) -> *mut c_void>,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub enqueue:
        Option<unsafe extern "C" fn(*mut c_void, *mut Host, u64, *const Ticket, *const Headers)>,
    pub dequeue: Option<unsafe extern "C" fn(*mut c_void, *mut Host, u64) -> u64>,
    pub peek: Option<unsafe extern "C" fn(*const c_void, *mut Host) -> u64>,
    pub next_timer: Option<unsafe extern "C" fn(*const c_void, *mut Host) -> u64>,
    pub on_timer: Option<unsafe extern "C" fn(*mut c_void, *mut Host, u64)>,
    pub on_link_rate: Option<unsafe extern "C" fn(*mut c_void, *mut Host, u64, u64)>,
    pub statistics: Option<unsafe extern "C" fn(*const c_void, *mut Host)>,
    pub state: Option<unsafe extern "C" fn(*const c_void, *mut Host, u64)>,
    pub classes: Option<unsafe extern "C" fn(*const c_void, *mut Host)>,
}

#[expect(
    unsafe_code,
    reason = "pointers of a declaration lead to memory that never changes"
)]
mod shared {
    use super::Queue;

    // SAFETY: the interface requires that a declaration and what it points to never change, and that its functions
    // may be called on any thread.
    unsafe impl Send for Queue {}
    // SAFETY: as above.
    unsafe impl Sync for Queue {}
}
