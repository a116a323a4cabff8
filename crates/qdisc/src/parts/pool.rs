//! Many queues in one slab, for disciplines with a queue per flow.
//!
//! A thousand growable buffers would each hold memory for their own worst case; here the packets
//! of all queues share one, and a [`List`] is four numbers. Nothing is allocated once the slab has
//! grown to the largest backlog.

use sojourn_net::{Bytes, Instant, Packet};
use sojourn_prefetch::prefetch;

/// Marks the end of a list: an `Option<u32>` would double every link.
const NONE: u32 = u32::MAX;

/// The packets of all queues.
#[derive(Clone, Debug)]
pub(crate) struct Pool<P> {
    nodes: Vec<Node<P>>,
    /// The first vacant node.
    vacant: u32,
}

#[derive(Clone, Debug)]
struct Node<P> {
    arrived: Instant,
    /// Towards the newer packet, or to the next vacant node.
    next: u32,
    /// Towards the older packet; of the oldest, anything: its successor is not touched when it
    /// leaves.
    prev: u32,
    pkt: Option<P>,
}

/// One queue: where it begins and ends in the pool, and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct List {
    oldest: u32,
    newest: u32,
    packets: u32,
    bytes: u64,
}

impl<P: Packet> Pool<P> {
    pub(crate) const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            vacant: NONE,
        }
    }

    /// Appends `pkt` to `list`, stamping it with `now`.
    ///
    /// # Panics
    /// If more than 2^32 - 1 packets wait.
    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, now: Instant, pkt: P) {
        list.packets += 1;
        list.bytes += pkt.size().0;
        let node = Node {
            arrived: now,
            next: NONE,
            prev: list.newest,
            pkt: Some(pkt),
        };
        let at = if self.vacant == NONE {
            let at = u32::try_from(self.nodes.len()).unwrap_or(NONE);
            assert!(at != NONE, "the pool is full");
            self.nodes.push(node);
            at
        } else {
            let at = self.vacant;
            self.vacant = self.nodes[index(at)].next;
            self.nodes[index(at)] = node;
            at
        };
        if list.newest == NONE {
            list.oldest = at;
        } else {
            self.nodes[index(list.newest)].next = at;
        }
        list.newest = at;
    }

    /// Removes the oldest packet of `list` and says when it arrived.
    #[inline]
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<(P, Instant)> {
        let at = list.oldest;
        let node = self.nodes.get_mut(index(at))?;
        list.oldest = node.next;
        if node.next == NONE {
            list.newest = NONE;
        }
        self.take(list, at)
    }

    /// The oldest packet of `list`, and when it arrived.
    #[inline]
    pub(crate) fn oldest_mut(&mut self, list: &List) -> Option<(&mut P, Instant)> {
        let node = self.nodes.get_mut(index(list.oldest))?;
        Some((node.pkt.as_mut()?, node.arrived))
    }

    /// Removes the oldest packet of `list`, which has `size`.
    ///
    /// It moves once and whole: a copy in parts of a packet just written waits for the stores.
    #[inline]
    pub(crate) fn pop_sized(&mut self, list: &mut List, size: Bytes) -> Option<P> {
        let at = list.oldest;
        let node = self.nodes.get_mut(index(at))?;
        list.oldest = node.next;
        if node.next == NONE {
            list.newest = NONE;
        }
        list.bytes -= size.0;
        list.packets -= 1;
        node.next = self.vacant;
        self.vacant = at;
        node.pkt.take()
    }

    /// Asks the processor to load the oldest packet of `list`.
    #[inline]
    pub(crate) fn prefetch_oldest(&self, list: &List) {
        if let Some(node) = self.nodes.get(index(list.oldest)) {
            prefetch(node);
        }
    }

    /// Removes the newest packet of `list` and says when it arrived.
    pub(crate) fn pop_newest(&mut self, list: &mut List) -> Option<(P, Instant)> {
        let at = list.newest;
        let prev = self.before(list, at)?;
        let taken = self.take(list, at);
        list.newest = prev;
        match self.nodes.get_mut(index(prev)) {
            Some(prev) => prev.next = NONE,
            None => list.oldest = NONE,
        }
        taken
    }

    /// Removes the packet at `at` of `list`, a position from [`Pool::iter`].
    pub(crate) fn remove(&mut self, list: &mut List, at: u32) -> Option<(P, Instant)> {
        let prev = self.before(list, at)?;
        let next = self.nodes[index(at)].next;
        let taken = self.take(list, at);
        match self.nodes.get_mut(index(prev)) {
            Some(prev) => prev.next = next,
            None => list.oldest = next,
        }
        match self.nodes.get_mut(index(next)) {
            Some(next) => next.prev = prev,
            None => list.newest = prev,
        }
        taken
    }

    /// The packets of `list`, oldest first, each with its place.
    pub(crate) fn iter(&self, list: &List) -> impl Iterator<Item = (u32, &P)> {
        let mut at = list.oldest;
        std::iter::from_fn(move || {
            let node = self.nodes.get(index(at))?;
            let place = std::mem::replace(&mut at, node.next);
            Some((place, node.pkt.as_ref()?))
        })
    }

    /// The newest packet of `list`.
    pub(crate) fn newest(&self, list: &List) -> Option<&P> {
        self.nodes.get(index(list.newest))?.pkt.as_ref()
    }

    /// The node before `at` in `list`, if there is a node `at`.
    fn before(&self, list: &List, at: u32) -> Option<u32> {
        let node = self.nodes.get(index(at))?;
        Some(if at == list.oldest { NONE } else { node.prev })
    }

    /// Empties node `at` of `list`; its neighbours are the caller's.
    #[inline]
    fn take(&mut self, list: &mut List, at: u32) -> Option<(P, Instant)> {
        let node = &mut self.nodes[index(at)];
        // Looked at where it lies, so that it moves whole.
        list.bytes -= node.pkt.as_ref()?.size().0;
        list.packets -= 1;
        node.next = self.vacant;
        self.vacant = at;
        let arrived = node.arrived;
        node.pkt.take().map(|pkt| (pkt, arrived))
    }
}

impl List {
    pub(crate) const EMPTY: Self = Self {
        oldest: NONE,
        newest: NONE,
        packets: 0,
        bytes: 0,
    };

    #[inline]
    pub(crate) const fn packets(&self) -> u32 {
        self.packets
    }

    #[inline]
    pub(crate) const fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }
}

/// A node's place in the slab; `NONE` lies beyond its end.
#[inline]
const fn index(at: u32) -> usize {
    at as usize
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::testing::TestPacket;

    #[test]
    fn lists_that_share_a_pool_do_not_mix_and_reuse_its_nodes() {
        let mut pool = Pool::new();
        let mut lists = [List::EMPTY, List::EMPTY];
        let mut id = 0;
        let mut expected = [VecDeque::new(), VecDeque::new()];
        for round in 0..1_000_usize {
            let at = round * 7 % 3 % 2;
            if expected[at].len() < 5 && round % 5 != 0 {
                pool.push(&mut lists[at], Instant::ZERO, TestPacket::mtu(id));
                expected[at].push_back(id);
                id += 1;
            } else if round % 4 == 0 {
                let size = pool.oldest_mut(&lists[at]).map(|(pkt, _)| pkt.size());
                let got = size.and_then(|size| pool.pop_sized(&mut lists[at], size));
                assert_eq!(got.map(|pkt| pkt.id), expected[at].pop_front());
            } else if round % 2 == 0 {
                let got = pool.pop(&mut lists[at]).map(|(pkt, _)| pkt.id);
                assert_eq!(got, expected[at].pop_front());
            } else {
                let got = pool.pop_newest(&mut lists[at]).map(|(pkt, _)| pkt.id);
                assert_eq!(got, expected[at].pop_back());
            }
            assert_eq!(lists[at].packets() as usize, expected[at].len());
            assert_eq!(lists[at].bytes(), Bytes(1_514 * expected[at].len() as u64));
        }
        assert!(pool.nodes.len() <= 10, "{} nodes", pool.nodes.len());
        assert!(id > 300, "only {id} packets");
    }
}
