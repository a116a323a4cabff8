//! A link that follows a trace of delivery opportunities; unused bytes of an opportunity are lost.
//!
//! As in Mahimahi, the transmission of a packet may span several opportunities, and several packets may share one; a
//! packet that arrives after an opportunity waits for the next.

use sojourn_net::{Bytes, Instant};

use sojourn_scenario::plan::Trace;

/// The position of a link in its trace.
#[derive(Debug)]
pub(crate) struct Traced<P> {
    pub(crate) trace: Trace,
    /// The number of the next opportunity.
    next: u64,
    /// Unused bytes of the current opportunity.
    credit: u64,
    /// The packet in transmission, and its remaining bytes.
    sending: Option<(P, u64)>,
    /// When to call the link next.
    awaited: Option<Instant>,
}

/// What a link whose rate is a trace may do next.
pub(crate) enum Step<P> {
    /// Dequeue a packet.
    Take,
    /// Release this packet; others may follow immediately.
    Leave(P),
    /// Wait until this time.
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
            // No packet was waiting: past opportunities are lost.
            self.credit = 0;
            self.next = self.next.max(self.trace.up_to(now));
        }
        loop {
            if self.credit == 0 {
                let at = self.trace.at(self.next);
                if at > now {
                    self.awaited = Some(at);
                    // A queue that is dequeued ahead of time could not drop packets that wait too long.
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

    /// The queue was empty: the rest of the opportunity is lost.
    pub(crate) fn idle(&mut self) {
        self.credit = 0;
        self.awaited = None;
    }
}
