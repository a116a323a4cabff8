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

/// Places of the table of links.
const PLACES: usize = 2 * FLOWS;

/// Three rings through one table: a flow is in one of them or alone.
#[derive(Clone, Debug)]
pub(super) struct DrrSchedule {
    /// Next and previous; who is alone points to itself. Longer than needed, so that a remainder
    /// keeps every index within it.
    links: Box<[(u16, u16); PLACES]>,
}

impl DrrSchedule {
    pub(super) fn new() -> Self {
        let links: Vec<_> = (0..).take(PLACES).map(|at| (at, at)).collect();
        Self {
            links: links.try_into().expect("of this length"),
        }
    }

    /// The flow whose turn is next.
    #[inline]
    pub(super) fn first(&self, round: Round) -> Option<usize> {
        let head = round.head();
        let (next, _) = *self.at(head);
        (next != head).then_some(usize::from(next))
    }

    /// Takes `flow` from where it is to the end of `round`.
    #[inline]
    pub(super) fn append(&mut self, round: Round, flow: usize) {
        let at = link(flow);
        self.detach(at);
        let head = round.head();
        let last = std::mem::replace(&mut self.at_mut(head).1, at);
        self.at_mut(last).0 = at;
        *self.at_mut(at) = (head, last);
    }

    /// Takes `flow` from where it is.
    #[inline]
    pub(super) fn remove(&mut self, flow: usize) {
        let at = link(flow);
        self.detach(at);
        *self.at_mut(at) = (at, at);
    }

    /// Closes the gap that `at` leaves; its own links stay.
    #[inline]
    fn detach(&mut self, at: u16) {
        let (next, prev) = *self.at(at);
        self.at_mut(prev).0 = next;
        self.at_mut(next).1 = prev;
    }

    #[inline]
    fn at(&self, place: u16) -> &(u16, u16) {
        &self.links[usize::from(place) % PLACES]
    }

    #[inline]
    fn at_mut(&mut self, place: u16) -> &mut (u16, u16) {
        &mut self.links[usize::from(place) % PLACES]
    }
}

/// What points to `flow`.
#[expect(clippy::cast_possible_truncation, reason = "below 1024 flows")]
const fn link(flow: usize) -> u16 {
    flow as u16
}
