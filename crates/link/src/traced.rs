//! A link that follows a trace of delivery opportunities; unused bytes of one are lost.
//!
//! As in Mahimahi, a packet may begin at one opportunity and end at a later one, and several may
//! share one; a packet that comes when an opportunity has passed waits for the next.

use sojourn_net::{Bytes, Instant};

use sojourn_scenario::plan::Trace;

/// Where a link stands in its trace.
#[derive(Debug)]
pub(crate) struct Traced<P> {
    pub(crate) trace: Trace,
    /// The number of the next opportunity.
    next: u64,
    /// What is left of the one that is now.
    credit: u64,
    /// What is being sent, and how much of it is still to go.
    sending: Option<(P, u64)>,
    /// When the link is to have its turn.
    awaited: Option<Instant>,
}

/// What a link whose rate is a trace may do next.
pub(crate) enum Step<P> {
    /// Take a packet out of its queue.
    Take,
    /// Let this one go; more may follow at once.
    Leave(P),
    /// Wait until then.
    Wait(Instant),
}

impl<P: Copy> Traced<P> {
    pub(crate) const fn new(trace: Trace) -> Self {
        Self {
            trace,
            next: 0,
            credit: 0,
            sending: None,
            awaited: None,
        }
    }

    /// What to do at `now`.
    pub(crate) fn step(&mut self, now: Instant) -> Step<P> {
        if self.awaited != Some(now) {
            // Nothing was waiting: what has passed is lost.
            self.credit = 0;
            self.next = self.next.max(self.trace.up_to(now));
        }
        loop {
            if self.credit == 0 {
                let at = self.trace.at(self.next);
                if at > now {
                    self.awaited = Some(at);
                    // A queue that is asked ahead of time could not drop what waits too long.
                    return Step::Wait(at);
                }
                self.next += 1;
                self.credit = Trace::OPPORTUNITY.0;
            }
            self.awaited = Some(now);
            let Some((pkt, left)) = self.sending.take() else {
                return Step::Take;
            };
            let used = left.min(self.credit);
            self.credit -= used;
            if used == left {
                return Step::Leave(pkt);
            }
            self.sending = Some((pkt, left - used));
        }
    }

    /// Begins to send `pkt`, which counts as `charged` bytes.
    pub(crate) fn begin(&mut self, pkt: P, charged: Bytes) {
        self.sending = Some((pkt, charged.0));
    }

    /// There was nothing to take: the rest of the opportunity is lost.
    pub(crate) fn idle(&mut self) {
        self.credit = 0;
        self.awaited = None;
    }
}
