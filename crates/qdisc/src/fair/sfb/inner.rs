//! SFB with a child queue, which may drop packets that the bins have counted.

use std::collections::{BTreeMap, VecDeque};

use sojourn_net::{FlowKey, Instant, Packet};

use super::bins::Set;
use crate::contract::{ClassId, DropReason, MarkReason, Observer, Qdisc};
use crate::parts::classes::Classes;

/// The queue, and which bins count what waits there.
///
/// The packets themselves cannot carry their bins: the queue hands back what it was given.
#[derive(Clone, Debug)]
pub(super) struct Inner<P, Q> {
    pub(super) queue: Classes<Q, P>,
    /// The bins of the packets of each flow that waits, oldest first. Which of them is the one
    /// that goes matters only in the moments after a change of the hash.
    counted: BTreeMap<FlowKey, VecDeque<Hashes>>,
}

/// The bins of a packet in each set that counts it.
type Hashes = [Option<u32>; 2];

impl<P: Packet, Q: Qdisc<P>> Inner<P, Q> {
    pub(super) const fn new(queue: Classes<Q, P>) -> Self {
        Self {
            queue,
            counted: BTreeMap::new(),
        }
    }

    /// Offers a packet that the sets have counted.
    pub(super) fn enqueue(
        &mut self,
        sets: &mut [Set; 2],
        hashes: Hashes,
        now: Instant,
        pkt: P,
        obs: &mut dyn Observer<P>,
    ) {
        let of_flow = self.counted.entry(pkt.flow()).or_default();
        of_flow.push_back(hashes);
        let counted = &mut self.counted;
        let obs = &mut Uncounting { sets, counted, obs };
        self.queue.enqueue(0, now, pkt, obs);
    }

    pub(super) fn dequeue(
        &mut self,
        sets: &mut [Set; 2],
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let counted = &mut self.counted;
        let obs = &mut Uncounting { sets, counted, obs };
        let pkt = self.queue.dequeue(0, now, obs)?;
        obs.uncount(&pkt.flow());
        Some(pkt)
    }
}

/// Takes what the queue drops out of the bins.
struct Uncounting<'a, P> {
    sets: &'a mut [Set; 2],
    counted: &'a mut BTreeMap<FlowKey, VecDeque<Hashes>>,
    obs: &'a mut dyn Observer<P>,
}

impl<P> Uncounting<'_, P> {
    fn uncount(&mut self, flow: &FlowKey) {
        let Some(of_flow) = self.counted.get_mut(flow) else {
            return;
        };
        let hashes = of_flow.pop_front();
        if of_flow.is_empty() {
            self.counted.remove(flow);
        }
        for (set, hash) in self.sets.iter_mut().zip(hashes.unwrap_or_default()) {
            set.count(hash, |packets| *packets -= 1);
        }
    }
}

impl<P: Packet> Observer<P> for Uncounting<'_, P> {
    fn on_class(&mut self, class: ClassId) {
        self.obs.on_class(class);
    }

    fn on_drop(&mut self, now: Instant, pkt: P, reason: DropReason) {
        self.uncount(&pkt.flow());
        self.obs.on_drop(now, pkt, reason);
    }

    fn on_mark(&mut self, now: Instant, pkt: &P, reason: MarkReason) {
        self.obs.on_mark(now, pkt, reason);
    }
}
