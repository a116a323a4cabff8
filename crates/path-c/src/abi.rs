//! The structs of `include/sojourn_path.h`, which explains them; a test compares the two.
#![expect(missing_docs, reason = "the header explains the fields")]

use std::ffi::c_void;

use sojourn_path::{self as path, DropReason, EventKind, LinkCounters, MarkReason, PacketId};
pub use sojourn_plugin::abi::{ABI, NEVER, Statistic, Text};
use sojourn_qdisc::Number;

/// Flag of [`Config`]: events are recorded.
pub const EVENTS: u32 = 1;

/// Flag of [`Config`]: a late poll is an error.
pub const STRICT: u32 = 2;

/// In place of the number of a packet, if there is none.
pub const NO_PACKET: u64 = u64::MAX;

/// Receives parts of a capture.
pub type Capture = unsafe extern "C" fn(*mut c_void, *const c_void, usize);

/// `struct sojourn_path_config`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    pub abi: u32,
    pub flags: u32,
    pub seed: u64,
    pub forward: Text,
    pub reverse: Text,
    pub forward_trace: Text,
    pub reverse_trace: Text,
    pub capture_file: Text,
    pub capture: Option<Capture>,
    pub capture_context: *mut c_void,
}

/// `struct sojourn_delivery`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Delivery {
    pub packet: u64,
    pub at: u64,
    pub waited: u64,
    pub bytes: *const c_void,
    pub size: usize,
    pub flow: u32,
    pub direction: u8,
    pub ecn: u8,
    pub dscp: u8,
    pub reserved: u8,
}

impl Delivery {
    /// A delivery whose bytes are kept in `bytes`.
    pub(crate) fn of(delivery: path::Delivery, bytes: &mut Vec<u8>) -> Self {
        *bytes = delivery.bytes;
        Self {
            packet: delivery.id.0,
            at: delivery.at.as_nanos(),
            waited: delivery.waited.as_nanos(),
            bytes: bytes.as_ptr().cast(),
            size: bytes.len(),
            flow: delivery.flow.ports >> 16,
            direction: delivery.direction as u8,
            ecn: delivery.ecn.bits(),
            dscp: delivery.dscp.number(),
            reserved: 0,
        }
    }
}

/// `struct sojourn_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    pub at: u64,
    pub packet: u64,
    pub waited: u64,
    pub size: u32,
    pub direction: u8,
    pub kind: u8,
    pub reason: u8,
    pub reserved: u8,
}

impl From<path::Event> for Event {
    fn from(event: path::Event) -> Self {
        let (kind, reason) = match event.kind {
            EventKind::Offered => (0, 0),
            EventKind::Dropped { reason, .. } => (1, drop_reason(reason)),
            EventKind::Marked { reason, .. } => (2, mark_reason(reason)),
            EventKind::Departed { .. } => (3, 0),
            EventKind::Lost => (4, 0),
            EventKind::Arrived => (5, 0),
        };
        let PacketId(packet) = event.packet;
        Self {
            at: event.at.as_nanos(),
            packet,
            waited: event.kind.waited().map_or(0, path::Duration::as_nanos),
            size: u32::try_from(event.size.0).unwrap_or(u32::MAX),
            direction: event.direction as u8,
            kind,
            reason,
            reserved: 0,
        }
    }
}

const fn drop_reason(reason: DropReason) -> u8 {
    match reason {
        DropReason::Overlimit => 0,
        DropReason::Aqm => 1,
        DropReason::AckFilter => 2,
        // No function replaces a queue.
        DropReason::Replaced => 3,
    }
}

const fn mark_reason(reason: MarkReason) -> u8 {
    match reason {
        MarkReason::Aqm => 0,
        MarkReason::CeThreshold => 1,
    }
}

/// `struct sojourn_counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub drops_overlimit: u64,
    pub drops_aqm: u64,
    pub drops_ack_filter: u64,
    pub marks_aqm: u64,
    pub marks_ce_threshold: u64,
    pub lost_packets: u64,
    pub duplicated_packets: u64,
}

impl From<&LinkCounters> for Counters {
    fn from(counters: &LinkCounters) -> Self {
        Self {
            sent_packets: counters.sent_packets,
            sent_bytes: counters.sent_bytes,
            drops_overlimit: counters.drops_overlimit,
            drops_aqm: counters.drops_aqm,
            drops_ack_filter: counters.drops_ack_filter,
            marks_aqm: counters.marks_aqm,
            marks_ce_threshold: counters.marks_ce_threshold,
            lost_packets: counters.lost_packets,
            duplicated_packets: counters.duplicated_packets,
        }
    }
}

/// A statistic of a queue; its texts live as long as the library.
pub(crate) fn statistic(statistic: &sojourn_qdisc::Statistic) -> Statistic {
    let (list, place) = statistic.part.unwrap_or_default();
    let (kind, whole, real) = match statistic.value {
        Number::Count(count) => (0, count, 0.0),
        Number::Real(real) => (1, 0, real),
        Number::Flag(flag) => (2, flag.into(), 0.0),
    };
    Statistic {
        name: Text::of(statistic.name),
        list: Text::of(list),
        place: place as u64,
        kind,
        whole,
        real,
    }
}
