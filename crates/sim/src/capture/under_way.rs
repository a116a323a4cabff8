//! The packets in the network, with what a capture says of each besides its content.

use std::collections::{BTreeMap, VecDeque};

use sojourn_capture::Tcp;
use sojourn_qdisc::MarkReason;

use crate::packet::{Owner, Packet, Payload};

/// What a capture says of a packet at every point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    /// The number of the packet.
    pub(super) id: u64,
    /// The number of its flow or connection.
    pub(super) number: u32,
    /// The header of a segment of TCP.
    pub(super) tcp: Option<Tcp>,
    /// The inner queue of the discipline that it was offered to last.
    pub(super) queue: Option<u32>,
}

/// Whose packet it is, its kind, and the part of its payload that hardly ever is the same in two packets.
type Key = (Owner, u8, [u32; 4]);

/// A packet, or one of its copies.
#[derive(Clone, Copy, Debug)]
struct Entry {
    labels: Labels,
    payload: Payload,
    /// Of a packet in a queue, the step that follows; else, the last known step of its way.
    step: u16,
    is_queued: bool,
    /// Why the queue marked it.
    mark: Option<MarkReason>,
}

/// The packets in the network.
///
/// Packets of the same flow, kind and payload are exchangeable: it does not matter which of them has which number, as
/// long as a packet that enters a queue also leaves it.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    packets: BTreeMap<Key, Entries>,
}

/// The packets of one key, the oldest first. There is hardly ever more than one.
#[derive(Debug)]
struct Entries {
    first: Entry,
    others: VecDeque<Entry>,
}

impl Entries {
    fn find(&mut self, pkt: &Packet, is_there: impl Fn(&Entry) -> bool) -> Option<&mut Entry> {
        let all = std::iter::once(&mut self.first).chain(&mut self.others);
        // Of those that have come as far, the oldest.
        all.filter(|entry| entry.payload.is_same(&pkt.payload) && is_there(entry))
            .reduce(|best, entry| if entry.step > best.step { entry } else { best })
    }
}

const fn key(pkt: &Packet) -> Key {
    (pkt.owner(), pkt.kind() as u8, pkt.payload.distinctive())
}

impl UnderWay {
    /// A packet is sent.
    pub(super) fn insert(&mut self, pkt: &Packet, labels: Labels) {
        self.add(
            pkt,
            Entry {
                labels,
                payload: pkt.payload,
                step: pkt.step(),
                is_queued: false,
                mark: None,
            },
        );
    }

    fn add(&mut self, pkt: &Packet, entry: Entry) {
        self.packets
            .entry(key(pkt))
            .and_modify(|entries| entries.others.push_back(entry))
            .or_insert(Entries {
                first: entry,
                others: VecDeque::new(),
            });
    }

    /// A packet that is in the queue whose next step it has.
    fn queued(&mut self, pkt: &Packet) -> Option<&mut Entry> {
        let entries = self.packets.get_mut(&key(pkt))?;
        entries.find(pkt, |entry| entry.is_queued && entry.step == pkt.step())
    }

    /// A packet that is not in a queue, at `step` of its way.
    fn moving(&mut self, pkt: &Packet, step: u16) -> Option<&mut Entry> {
        let entries = self.packets.get_mut(&key(pkt))?;
        entries.find(pkt, |entry| !entry.is_queued && entry.step <= step)
    }

    /// A packet, which is at the step behind the queue, is offered to the queue, of which it is to join this inner
    /// queue.
    pub(super) fn enqueue(&mut self, pkt: &Packet, queue: Option<u32>) -> Option<Labels> {
        let entry = self.moving(pkt, pkt.step().saturating_sub(1));
        debug_assert!(entry.is_some(), "{pkt:?} was not sent");
        let entry = entry?;
        entry.is_queued = true;
        entry.step = pkt.step();
        entry.labels.queue = queue;
        Some(entry.labels)
    }

    /// The queue marks a packet in it.
    pub(super) fn mark(&mut self, pkt: &Packet, reason: MarkReason) {
        let entry = self.queued(pkt);
        debug_assert!(entry.is_some(), "{pkt:?} is not in the queue");
        if let Some(entry) = entry {
            entry.mark = Some(reason);
        }
    }

    /// A packet leaves its queue; also returns why the queue marked it, if it did.
    pub(super) fn dequeue(&mut self, pkt: &Packet) -> Option<(Labels, Option<MarkReason>)> {
        let entry = self.queued(pkt);
        debug_assert!(entry.is_some(), "{pkt:?} is not in the queue");
        let entry = entry?;
        entry.is_queued = false;
        Some((entry.labels, entry.mark.take()))
    }

    /// A wire delivers a packet twice: both have the same number.
    pub(super) fn duplicate(&mut self, pkt: &Packet) {
        if let Some(entry) = self.moving(pkt, pkt.step()).copied() {
            self.add(pkt, entry);
        }
    }

    /// A packet in a queue is dropped.
    pub(super) fn remove_queued(&mut self, pkt: &Packet) -> Option<Labels> {
        let entry = self.queued(pkt);
        debug_assert!(entry.is_some(), "{pkt:?} is not in the queue");
        let entry = *entry?;
        self.take(pkt, &entry);
        Some(entry.labels)
    }

    /// A packet that is not in a queue leaves the network.
    pub(super) fn remove(&mut self, pkt: &Packet) -> Option<Labels> {
        let entry = self.moving(pkt, pkt.step());
        debug_assert!(entry.is_some(), "{pkt:?} is not under way");
        let entry = *entry?;
        self.take(pkt, &entry);
        Some(entry.labels)
    }

    /// Removes a packet.
    fn take(&mut self, pkt: &Packet, gone: &Entry) {
        let same = |entry: &Entry| {
            let place = |entry: &Entry| (entry.labels.id, entry.step, entry.is_queued);
            place(entry) == place(gone)
        };
        let Some(entries) = self.packets.get_mut(&key(pkt)) else {
            return;
        };
        if same(&entries.first) {
            match entries.others.pop_front() {
                Some(next) => entries.first = next,
                None => drop(self.packets.remove(&key(pkt))),
            }
        } else if let Some(n) = entries.others.iter().position(same) {
            entries.others.remove(n);
        }
    }
}
