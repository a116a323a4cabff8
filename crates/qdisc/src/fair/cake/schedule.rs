//! The order in which the flows of a tin are served.

/// Flows of a tin, a power of two.
pub(super) const FLOWS: usize = 1_024;

/// The lists that a flow may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Flows that came since they were last found empty.
    New,
    /// Flows that used up a turn.
    Old,
    /// Empty flows whose law remembers congestion.
    Decaying,
}

impl Round {
    /// The place of its head in the table of links, behind those of the flows.
    #[expect(clippy::cast_possible_truncation, reason = "1024 fits")]
    const fn head(self) -> u16 {
        FLOWS as u16 + self as u16
    }
}

/// Three rings through one table: a flow is in one of them or alone.
#[derive(Clone, Debug)]
pub(super) struct DrrSchedule {
    /// Next and previous; who is alone points to itself.
    links: Vec<(u16, u16)>,
}

impl DrrSchedule {
    pub(super) fn new() -> Self {
        Self {
            links: (0..).take(FLOWS + 3).map(|at| (at, at)).collect(),
        }
    }

    /// The flow whose turn is next.
    #[inline]
    pub(super) fn first(&self, round: Round) -> Option<usize> {
        let head = round.head();
        let (next, _) = self.links[usize::from(head)];
        (next != head).then_some(usize::from(next))
    }

    /// Takes `flow` from where it is to the end of `round`.
    #[inline]
    pub(super) fn append(&mut self, round: Round, flow: usize) {
        self.remove(flow);
        let head = round.head();
        let (_, last) = self.links[usize::from(head)];
        let at = link(flow);
        self.links[flow] = (head, last);
        self.links[usize::from(last)].0 = at;
        self.links[usize::from(head)].1 = at;
    }

    /// Takes `flow` from where it is.
    #[inline]
    pub(super) fn remove(&mut self, flow: usize) {
        let (next, prev) = self.links[flow];
        self.links[usize::from(prev)].0 = next;
        self.links[usize::from(next)].1 = prev;
        self.links[flow] = (link(flow), link(flow));
    }
}

/// What points to `flow`.
#[expect(clippy::cast_possible_truncation, reason = "below 1024 flows")]
const fn link(flow: usize) -> u16 {
    flow as u16
}
