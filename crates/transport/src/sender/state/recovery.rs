//! The congestion state, and the window reduction in progress (RFC 6937, RFC 5682).

use std::num::NonZeroU32;

pub(crate) use crate::cc::Phase;
use crate::clock::before;
use crate::profile::Bound;

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

    /// Whether nothing was sent since the reduction began.
    pub(crate) const fn has_not_sent(&self) -> bool {
        self.prr_out == 0
    }

    /// The window after an acknowledgement that delivered `delivered` segments and meets the condition of `bound` for one
    /// segment more, or not. `None`: the window stays.
    pub(crate) fn reduced_cwnd(
        &mut self,
        delivered: u32,
        in_flight: u32,
        ssthresh: u32,
        (bound, one_more): (Bound, bool),
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
            let send = match bound {
                Bound::Repaired if !one_more => delivered,
                _ => behind.max(delivered) + u32::from(one_more),
            };
            send.min(ssthresh - in_flight)
        };
        // The fast retransmit always goes.
        if self.prr_out == 0 {
            send = send.max(1);
        }
        Some(in_flight + send)
    }
}

/// The reduction that may be undone, and the evidence for it.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    episode: Option<Episode>,
    /// The threshold to return to; `None` if the reduction was justified.
    prior_ssthresh: Option<NonZeroU32>,
    /// Timestamp of the first retransmission of the episode.
    first_resend: Option<NonZeroU32>,
}

/// A reduction that may yet prove to be unnecessary.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// The first unacknowledged segment when it began.
    marker: u32,
    /// Retransmissions that no DSACK has shown to be spurious; `None`: nothing was retransmitted.
    unproven: Option<u32>,
}

impl Undo {
    pub(crate) const fn new() -> Self {
        Self {
            episode: None,
            prior_ssthresh: None,
            first_resend: None,
        }
    }

    /// An episode begins at `una` with `resent` retransmissions in flight.
    pub(crate) fn begin(&mut self, una: u32, resent: u32) {
        self.episode = Some(Episode {
            marker: una,
            unproven: (resent > 0).then_some(resent),
        });
    }

    /// The episode is over, undone or not.
    pub(crate) const fn end(&mut self) {
        self.episode = None;
    }

    /// Whether there is a reduction that may be undone.
    pub(crate) const fn has_episode(&self) -> bool {
        self.episode.is_some()
    }

    pub(crate) const fn prior_ssthresh(&self) -> Option<NonZeroU32> {
        self.prior_ssthresh
    }

    pub(crate) const fn save_ssthresh(&mut self, ssthresh: u32) {
        self.prior_ssthresh = NonZeroU32::new(ssthresh);
    }

    pub(crate) const fn forget_ssthresh(&mut self) {
        self.prior_ssthresh = None;
    }

    /// A lost segment is retransmitted with timestamp `stamp`.
    pub(crate) fn on_resent(&mut self, stamp: u32) {
        self.first_resend = self.first_resend.or(NonZeroU32::new(stamp));
        if let Some(episode) = &mut self.episode {
            episode.unproven = Some(episode.unproven.unwrap_or(0) + 1);
        }
    }

    /// No retransmission is outstanding any more.
    pub(crate) const fn forget_first_resend(&mut self) {
        self.first_resend = None;
    }

    /// A DSACK of `count` segments up to `end`. Only retransmissions of this episode are evidence.
    pub(crate) fn on_dsack(&mut self, end: u32, count: u32) {
        if let Some(Episode {
            marker,
            unproven: Some(unproven),
        }) = &mut self.episode
            && end > *marker
        {
            *unproven = unproven.saturating_sub(count);
        }
    }

    /// Whether a DSACK reported every retransmission of the episode as a duplicate.
    pub(crate) fn all_spurious(&self) -> bool {
        self.episode
            .is_some_and(|episode| episode.unproven == Some(0))
    }

    /// Whether the echoed timestamp is older than the first retransmission: then the original was
    /// delivered (RFC 3522).
    pub(crate) fn echo_predates_resend(&self, echo: u32) -> bool {
        self.first_resend
            .is_some_and(|stamp| before(echo, stamp.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_spurious_once_each_retransmission_was_reported_a_duplicate() {
        let mut undo = Undo::new();
        undo.begin(10, 0);
        assert!(undo.has_episode() && !undo.all_spurious());
        undo.on_resent(7);
        undo.on_resent(8);
        undo.on_dsack(11, 1);
        // Below the marker: of an earlier episode.
        undo.on_dsack(10, 1);
        assert!(!undo.all_spurious());
        undo.on_dsack(12, 1);
        assert!(undo.all_spurious());
        undo.end();
        assert!(!undo.all_spurious());
    }

    #[test]
    fn the_first_retransmission_of_an_episode_dates_it() {
        let mut undo = Undo::new();
        assert!(!undo.echo_predates_resend(0));
        undo.on_resent(100);
        undo.on_resent(200);
        assert!(undo.echo_predates_resend(99));
        assert!(!undo.echo_predates_resend(100));
        undo.forget_first_resend();
        assert!(!undo.echo_predates_resend(99));
    }
}
