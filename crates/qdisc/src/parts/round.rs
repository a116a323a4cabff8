//! Round-robin order of flows.

use sojourn_net::Bytes;

/// A flow of a fair queue: its place in the table of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowId(u32);

impl FlowId {
    /// No flow: an `Option<FlowId>` would double every link.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// As the link of a flow: it is in no list.
    const AWAY: Self = Self(u32::MAX - 1);

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
    pub(crate) fn len(&self, links: &[FlowId]) -> u64 {
        let next = |flow: &FlowId| links.get(flow.index()).copied();
        std::iter::successors(self.first(), |flow| {
            next(flow).filter(|&f| f != FlowId::NONE)
        })
        .map(|_| 1)
        .sum()
    }

    /// Appends a flow that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, links: &mut [FlowId], flow: FlowId) {
        links[flow.index()] = FlowId::NONE;
        if self.first == FlowId::NONE {
            self.first = flow;
        } else {
            links[self.last.index()] = flow;
        }
        self.last = flow;
    }

    /// Removes the first flow, if there is one.
    #[inline]
    pub(crate) fn pop(&mut self, links: &[FlowId]) {
        if let Some(&next) = links.get(self.first.index()) {
            self.first = next;
        }
    }
}

/// Round robin by credit in which flows that had nothing waiting go first (RFC 8290 §4.2).
///
/// A flow that comes back joins the end of *new* with a quantum of credit; one whose credit is
/// spent gets another quantum at the end of *old*. New goes before old.
#[derive(Clone, Debug)]
pub(crate) struct SparseFirst {
    quantum: i64,
    new: Round,
    old: Round,
    /// Of both lists; a flow is in at most one.
    links: Vec<FlowId>,
    /// What each flow may still send in its turn; it may be overdrawn.
    credits: Vec<i64>,
}

impl SparseFirst {
    /// `flows` flows, all away.
    pub(crate) fn new(flows: u32, quantum: Bytes) -> Self {
        Self {
            quantum: signed(quantum),
            new: Round::EMPTY,
            old: Round::EMPTY,
            links: vec![FlowId::AWAY; flows as usize],
            credits: vec![0; flows as usize],
        }
    }

    /// `flow` has something to send; says whether it was away.
    #[inline]
    pub(crate) fn join(&mut self, flow: FlowId) -> bool {
        let was_away = self.links[flow.index()] == FlowId::AWAY;
        if was_away {
            self.credits[flow.index()] = self.quantum;
            self.new.push(&mut self.links, flow);
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
            let credit = &mut self.credits[flow.index()];
            if *credit > 0 {
                return Some(flow);
            }
            *credit += self.quantum;
            list.pop(&self.links);
            self.old.push(&mut self.links, flow);
        }
    }

    /// The flow behind `flow` in its list.
    #[inline]
    pub(crate) fn behind(&self, flow: FlowId) -> Option<FlowId> {
        let next = *self.links.get(flow.index())?;
        (next.index() < self.links.len()).then_some(next)
    }

    /// Numbers of flows in the new and in the old list.
    pub(crate) fn lengths(&self) -> (u64, u64) {
        (self.new.len(&self.links), self.old.len(&self.links))
    }

    /// `flow` sent `size` bytes in its turn.
    #[inline]
    pub(crate) fn charge(&mut self, flow: FlowId, size: Bytes) {
        self.credits[flow.index()] -= signed(size);
    }

    /// `flow`, whose turn it is, had nothing to send. It is away then, unless it is new: so that it does not come
    /// back as new before the old have had their turn, it waits among them if there are any, or
    /// `always`.
    #[inline]
    pub(crate) fn pass(&mut self, flow: FlowId, always: bool) {
        let is_new = self.new.first().is_some();
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop(&self.links);
        if is_new && (always || self.old.first().is_some()) {
            self.old.push(&mut self.links, flow);
        } else {
            self.links[flow.index()] = FlowId::AWAY;
        }
    }
}

/// Credits go below zero; no packet comes near 2^63 bytes.
#[inline]
fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.0).unwrap_or(i64::MAX)
}
