//! Round-robin order of flows.

use std::ops::{Index, IndexMut, Range};

use sojourn_net::Bytes;
use sojourn_prefetch::prefetch;

/// A flow of a fair queue: its place in the table of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowId(u32);

impl FlowId {
    /// No flow: an `Option<FlowId>` would double every link.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// As the link of a flow: it is in no list.
    const AWAY: Self = Self(u32::MAX - 1);

    /// The flow with this number.
    pub(crate) const fn at(number: u32) -> Self {
        Self(number)
    }

    /// The flow among `flows` that a 32-bit digest falls to.
    #[inline]
    pub(crate) const fn scaled(digest: u32, flows: u32) -> Self {
        Self(((digest as u64 * flows as u64) >> 32) as u32)
    }

    /// The flow that the bits of `mask` in a digest name.
    #[inline]
    pub(crate) const fn masked(digest: u32, mask: u32) -> Self {
        Self(digest & mask)
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its number.
    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

/// The links of intrusive lists of flows.
pub(crate) trait Links {
    /// The stored link of `flow`: the next flow, or a sentinel ([`FlowId::NONE`] at the end of a list). `None` if
    /// `flow` is out of range.
    fn link_of(&self, flow: FlowId) -> Option<FlowId>;

    /// Stores `next` as the link of `flow`.
    fn set_link(&mut self, flow: FlowId, next: FlowId);
}

impl Links for Vec<FlowId> {
    #[inline]
    fn link_of(&self, flow: FlowId) -> Option<FlowId> {
        self.get(flow.index()).copied()
    }

    #[inline]
    fn set_link(&mut self, flow: FlowId, next: FlowId) {
        self[flow.index()] = next;
    }
}

/// A first-in first-out list of flows, linked through a table that several lists share.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    first: FlowId,
    last: FlowId,
}

impl Round {
    pub(crate) const EMPTY: Self = Self {
        first: FlowId::NONE,
        last: FlowId::NONE,
    };

    #[inline]
    pub(crate) fn first(&self) -> Option<FlowId> {
        (self.first != FlowId::NONE).then_some(self.first)
    }

    /// How many flows are in the list.
    pub(crate) fn len(&self, links: &impl Links) -> u64 {
        std::iter::successors(self.first(), |&flow| {
            links.link_of(flow).filter(|&f| f != FlowId::NONE)
        })
        .map(|_| 1)
        .sum()
    }

    /// Appends a flow that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, links: &mut impl Links, flow: FlowId) {
        links.set_link(flow, FlowId::NONE);
        if self.first == FlowId::NONE {
            self.first = flow;
        } else {
            links.set_link(self.last, flow);
        }
        self.last = flow;
    }

    /// Removes the first flow, if there is one.
    #[inline]
    pub(crate) fn pop(&mut self, links: &impl Links) {
        if let Some(next) = links.link_of(self.first) {
            self.first = next;
        }
    }
}

/// Round robin by credit in which flows that had nothing waiting go first (RFC 8290 §4.2).
///
/// A flow that comes back joins the end of *new* with a quantum of credit; one whose credit is
/// spent gets another quantum at the end of *old*. New goes before old.
///
/// Each entry stores the discipline's state of the flow, `T`, next to its credit and link, because they are accessed
/// together.
#[derive(Clone, Debug)]
pub(crate) struct SparseFirst<T> {
    quantum: i64,
    new: Round,
    old: Round,
    /// One per flow. A flow is in at most one list.
    entries: Vec<Entry<T>>,
}

/// A flow in one of the lists, or in none.
#[derive(Clone, Debug)]
struct Entry<T> {
    flow: T,
    /// What the flow may still send in its turn; it may be overdrawn.
    credit: i64,
    next: FlowId,
}

impl<T> Links for Vec<Entry<T>> {
    #[inline]
    fn link_of(&self, flow: FlowId) -> Option<FlowId> {
        self.get(flow.index()).map(|entry| entry.next)
    }

    #[inline]
    fn set_link(&mut self, flow: FlowId, next: FlowId) {
        self[flow.index()].next = next;
    }
}

impl<T> Index<FlowId> for SparseFirst<T> {
    type Output = T;

    #[inline]
    fn index(&self, flow: FlowId) -> &T {
        &self.entries[flow.index()].flow
    }
}

impl<T> IndexMut<FlowId> for SparseFirst<T> {
    #[inline]
    fn index_mut(&mut self, flow: FlowId) -> &mut T {
        &mut self.entries[flow.index()].flow
    }
}

impl<T: Clone> SparseFirst<T> {
    /// Another quantum, for the turns that begin from now on.
    pub(crate) fn set_quantum(&mut self, quantum: Bytes) {
        self.quantum = signed(quantum);
    }

    /// `number` flows like `flow`, all away.
    pub(crate) fn new(flow: T, number: u32, quantum: Bytes) -> Self {
        let entry = Entry {
            flow,
            credit: 0,
            next: FlowId::AWAY,
        };
        Self {
            quantum: signed(quantum),
            new: Round::EMPTY,
            old: Round::EMPTY,
            entries: vec![entry; number as usize],
        }
    }
}

impl<T> SparseFirst<T> {
    /// The number of flows.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// All flows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.flow)
    }

    /// The flows with these numbers.
    pub(crate) fn range_mut(&mut self, numbers: Range<usize>) -> impl Iterator<Item = &mut T> {
        self.entries[numbers]
            .iter_mut()
            .map(|entry| &mut entry.flow)
    }

    /// `flow` has something to send; says whether it was away.
    #[inline]
    pub(crate) fn join(&mut self, flow: FlowId) -> bool {
        let entry = &mut self.entries[flow.index()];
        let was_away = entry.next == FlowId::AWAY;
        if was_away {
            entry.credit = self.quantum;
            self.new.push(&mut self.entries, flow);
        }
        was_away
    }

    /// The flow whose turn it is.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<FlowId> {
        // Each turn moves a flow from new to old or refills one, so the loop ends: credit grows
        // with every visit.
        loop {
            let list = match self.new.first() {
                Some(_) => &mut self.new,
                None => &mut self.old,
            };
            let flow = list.first()?;
            let entry = &mut self.entries[flow.index()];
            if entry.credit > 0 {
                return Some(flow);
            }
            entry.credit += self.quantum;
            list.pop(&self.entries);
            self.old.push(&mut self.entries, flow);
        }
    }

    /// The flow behind `flow` in its list.
    #[inline]
    pub(crate) fn behind(&self, flow: FlowId) -> Option<FlowId> {
        let next = self.entries.link_of(flow)?;
        (next.index() < self.entries.len()).then_some(next)
    }

    /// Asks the processor to load the state of `flow`.
    #[inline]
    pub(crate) fn prefetch(&self, flow: FlowId) {
        prefetch(&self.entries[flow.index()]);
    }

    /// Numbers of flows in the new and in the old list.
    pub(crate) fn lengths(&self) -> (u64, u64) {
        let entries = &self.entries;
        (self.new.len(entries), self.old.len(entries))
    }

    /// `flow` sent `size` bytes in its turn.
    #[inline]
    pub(crate) fn charge(&mut self, flow: FlowId, size: Bytes) {
        self.entries[flow.index()].credit -= signed(size);
    }

    /// `flow`, whose turn it is, had nothing to send. It is away then, unless it is new: so that it does not come
    /// back as new before the old have had their turn, it waits among them if there are any, or
    /// `always`.
    #[inline]
    pub(crate) fn pass(&mut self, flow: FlowId, always: bool) {
        let is_new = self.new.first().is_some();
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop(&self.entries);
        if is_new && (always || self.old.first().is_some()) {
            self.old.push(&mut self.entries, flow);
        } else {
            self.entries.set_link(flow, FlowId::AWAY);
        }
    }
}

/// Credits go below zero; no packet comes near 2^63 bytes.
#[inline]
fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).unwrap_or(i64::MAX)
}
