//! Replays a test vector of the kernel on a queue; `../README.md` specifies the format.

use std::collections::{BTreeMap, BTreeSet};

/// Number, flow, size, and the type-of-service byte, in which a queue sets the two lowest bits as a mark.
pub type Packet = [u64; 4];

/// What is tested. `now` is in nanoseconds.
pub trait Queue {
    /// A packet arrives.
    fn enqueue(&mut self, now: u64, packet: Packet);
    /// The packet that leaves; `None`: none may leave.
    fn dequeue(&mut self, now: u64) -> Option<Packet>;
}

/// Returns the first difference from the kernel in the `events` and `marks` of a file.
pub fn check(events: &[Vec<u64>], marks: &BTreeSet<u64>, queue: &mut dyn Queue) -> Option<String> {
    let text = |number, ce| format!("packet {number}{}", if ce { " with CE" } else { "" });
    let (mut tos_of, mut now) = (BTreeMap::new(), 0);
    for event in events {
        now = event[0];
        if let [_, flow, size, tos] = event[..] {
            let number = tos_of.len() as u64;
            tos_of.insert(number, tos);
            queue.enqueue(now, [number, flow, size, tos]);
            continue;
        }
        let ce = marks.contains(&event[1]) || tos_of[&event[1]] & 3 == 3;
        let expected = text(event[1], ce);
        let left = queue.dequeue(now).map(|[n, .., tos]| text(n, tos & 3 == 3));
        let got = left.unwrap_or_else(|| "no packet".to_owned());
        if got != expected {
            return Some(format!("at {now} ns: expected {expected}, got {got}"));
        }
    }
    let [number, ..] = queue.dequeue(now)?;
    Some(format!(
        "at the end: expected no packet, got packet {number}"
    ))
}
