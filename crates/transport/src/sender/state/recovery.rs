//! The congestion state, and the window reduction in progress (RFC 6937, RFC 5682).

use std::num::NonZeroU32;

/// The congestion state (Linux's names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// No sign of trouble.
    Open,
    /// A segment was sacked or retransmitted, none is considered lost.
    Disorder,
    /// The window is being reduced for ECN.
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

/// The congestion state and the counters of proportional rate reduction.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    phase: Phase,
    /// Detection of a spurious time-out is under way (RFC 5682).
    frto: bool,
    /// The state ends when everything below this is acknowledged.
    high_seq: u32,
    /// The window before the last reduction.
    prior_cwnd: Option<NonZeroU32>,
    prr_delivered: u32,
    prr_out: u32,
}

impl Recovery {
    pub(crate) const fn new() -> Self {
        Self {
            phase: Phase::Open,
            frto: false,
            high_seq: 0,
            prior_cwnd: None,
            prr_delivered: 0,
            prr_out: 0,
        }
    }

    #[inline]
    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) const fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Whether proportional rate reduction sets the window.
    #[inline]
    pub(crate) const fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }

    #[inline]
    pub(crate) const fn high_seq(&self) -> u32 {
        self.high_seq
    }

    pub(crate) const fn set_high_seq(&mut self, next: u32) {
        self.high_seq = next;
    }

    pub(crate) const fn frto(&self) -> bool {
        self.frto
    }

    pub(crate) const fn set_frto(&mut self, on: bool) {
        self.frto = on;
    }

    pub(crate) const fn prior_cwnd(&self) -> Option<NonZeroU32> {
        self.prior_cwnd
    }

    pub(crate) const fn set_prior_cwnd(&mut self, cwnd: u32) {
        self.prior_cwnd = NonZeroU32::new(cwnd);
    }

    /// A reduction from `cwnd` starts; it ends when everything below `next` is acknowledged.
    pub(crate) const fn begin_reduction(&mut self, next: u32, cwnd: u32) {
        self.high_seq = next;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.set_prior_cwnd(cwnd);
    }

    /// `segments` were sent; during a reduction they use up what it allows.
    #[inline]
    pub(crate) const fn on_sent(&mut self, segments: u32) {
        if self.is_reducing() {
            self.prr_out += segments;
        }
    }

    /// The window after an acknowledgement that delivered `delivered` segments; `repaired`: it
    /// advanced and nothing more was found lost. `None`: the window stays.
    pub(crate) fn reduced_cwnd(
        &mut self,
        delivered: u32,
        in_flight: u32,
        ssthresh: u32,
        repaired: bool,
    ) -> Option<u32> {
        let prior_cwnd = self.prior_cwnd.filter(|_| delivered > 0)?;
        self.prr_delivered += delivered;
        let mut send = if in_flight > ssthresh {
            let quota = (u64::from(ssthresh) * u64::from(self.prr_delivered))
                .div_ceil(u64::from(prior_cwnd.get()));
            u32::try_from(quota)
                .unwrap_or(u32::MAX)
                .saturating_sub(self.prr_out)
        } else {
            let behind = self.prr_delivered.saturating_sub(self.prr_out);
            let send = behind.max(delivered) + u32::from(repaired);
            send.min(ssthresh - in_flight)
        };
        // The fast retransmit always goes.
        if self.prr_out == 0 {
            send = send.max(1);
        }
        Some(in_flight + send)
    }
}
