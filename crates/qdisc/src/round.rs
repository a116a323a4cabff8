//! The order in which flows take their turns.

/// A flow of a fair queue: its place in the table of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowId(u32);

impl FlowId {
    /// No flow: an `Option<FlowId>` would double every link.
    pub(crate) const NONE: Self = Self(u32::MAX);

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
