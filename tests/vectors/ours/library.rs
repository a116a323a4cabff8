//! The queues of Sojourn for programs in C and Go: `queues.h` declares the functions.

#![expect(unsafe_code, reason = "functions that C calls")]

#[path = "queue.rs"]
mod queue;

use std::ffi::{CStr, c_char, c_void};

use queue::Ours;
use sojourn_vectors::Queue as _;

/// A queue; the caller keeps it until the process ends. Null: the text is not valid.
///
/// # Safety
/// `qdisc` is a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_vectors_queue(
    qdisc: *const c_char,
    rate: u64,
    mtu: u64,
    wrong: bool,
) -> *mut c_void {
    // SAFETY: the caller passes a string.
    let qdisc = unsafe { CStr::from_ptr(qdisc) };
    let queue = (qdisc.to_str().ok()).and_then(|qdisc| Ours::new(qdisc, rate, mtu).ok());
    let queue = queue.map(|queue| if wrong { queue.wrong() } else { queue });
    queue.map_or(std::ptr::null_mut(), |queue| {
        Box::into_raw(Box::new(queue)).cast()
    })
}

/// A packet arrives.
///
/// # Safety
/// `queue` is one that [`sojourn_vectors_queue`] returned, and no other call uses it; `packet` has four numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_vectors_enqueue(
    queue: *mut c_void,
    now: u64,
    packet: *const [u64; 4],
) {
    // SAFETY: the caller passes a queue that only this call uses, and a packet.
    let (queue, packet) = unsafe { (&mut *queue.cast::<Ours>(), *packet) };
    queue.enqueue(now, packet);
}

/// Writes the packet that leaves; 0: none may leave.
///
/// # Safety
/// As of [`sojourn_vectors_enqueue`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sojourn_vectors_dequeue(
    queue: *mut c_void,
    now: u64,
    packet: *mut [u64; 4],
) -> i32 {
    // SAFETY: the caller passes a queue that only this call uses, and memory for a packet.
    let (queue, to) = unsafe { (&mut *queue.cast::<Ours>(), &mut *packet) };
    let Some(packet) = queue.dequeue(now) else {
        return 0;
    };
    *to = packet;
    1
}
