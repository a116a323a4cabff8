//! Data reported by one acknowledgement.

use sojourn_net::Instant;

use crate::cc::EcnFeedback;

/// What one acknowledgement reported, collected step by step.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
pub(super) struct Findings {
    pub(super) una_advanced: bool,
    /// A segment was newly selectively acknowledged.
    pub(super) sacked: bool,
    pub(super) ece: bool,
    pub(super) dsack: bool,
    /// A DSACK of the tail loss probe.
    pub(super) dsack_of_probe: bool,
    /// A segment sent once, before the episode began, was delivered.
    pub(super) original_delivered: bool,
    /// Retransmitted data was acknowledged.
    pub(super) resent_acked: bool,
    pub(super) window_changed: bool,
    pub(super) rearm: bool,
    /// A retransmission was found lost.
    pub(super) resend_lost: bool,
    /// Totals of the scoreboard before the acknowledgement.
    pub(super) delivered_before: u64,
    pub(super) lost_before: u64,
    pub(super) in_flight_before: u32,
    /// The peer may have delayed this acknowledgement.
    pub(super) maybe_delayed: bool,
    /// Send times of the oldest and newest never-retransmitted segments newly acknowledged, and
    /// newly selectively acknowledged.
    pub(super) acked_sent: Option<(Instant, Instant)>,
    pub(super) sacked_sent: Option<(Instant, Instant)>,
    /// The lowest never-retransmitted segment delivered below the highest one sacked.
    pub(super) reordered: Option<u32>,
    /// ECN feedback, if ECN was negotiated.
    pub(super) ecn: Option<EcnFeedback>,
}

impl Findings {
    /// The findings of an event that is not an acknowledgement; `lost_before` segments were lost before it.
    pub(super) const fn nothing(lost_before: u64) -> Self {
        Self {
            una_advanced: false,
            sacked: false,
            ece: false,
            dsack: false,
            dsack_of_probe: false,
            original_delivered: false,
            resent_acked: false,
            window_changed: false,
            rearm: false,
            resend_lost: false,
            delivered_before: 0,
            lost_before,
            in_flight_before: 0,
            maybe_delayed: false,
            acked_sent: None,
            sacked_sent: None,
            reordered: None,
            ecn: None,
        }
    }

    pub(super) const fn newly_lost(&self, lost_total: u64) -> u64 {
        lost_total - self.lost_before
    }

    /// Notes that `seq`, sent once, was delivered below the highest segment sacked.
    pub(super) fn note_reordered(&mut self, seq: u32) {
        self.reordered = Some(self.reordered.map_or(seq, |lowest| lowest.min(seq)));
    }
}

/// What to send after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    Nothing,
    Lost,
    /// New data first, as F-RTO requires.
    NewFirst,
}
