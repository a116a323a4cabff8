//! Model-based controllers: what the sender passes to them, and their pacing rate.

use sojourn_net::{Duration, Instant};

use super::Sender;
use super::state::recovery::Phase;
use crate::cc::{Ack, BurstSize, EcnFeedback, Episode, Progress, Resume, Start};
use crate::delivery_rate::{Totals, WithoutRtt};

/// What an acknowledgement has found that only model-based controllers need.
#[derive(Debug)]
pub(super) struct News {
    /// Segments it delivered, and segments it showed to be lost.
    pub(super) delivered: u32,
    pub(super) lost: u32,
    /// The peer may have delayed it.
    pub(super) maybe_delayed: bool,
    /// ECN feedback, if ECN was negotiated.
    pub(super) ecn: Option<EcnFeedback>,
}

impl Sender {
    /// Whether the controller sets the window itself.
    #[inline]
    pub(super) fn is_model_based(&self) -> bool {
        self.pacing.is_sampled()
    }

    /// The handshake, a round trip of `rtt_micros`, is over.
    pub(super) fn start_control(&mut self, now: Instant, rtt_micros: u32) {
        let start = Start {
            now,
            tick: self.timestamps.tick(now),
            rtt_micros,
            measured: true,
            delivered: self.board.delivered(),
        };
        self.cc.on_start(&mut self.window, &start);
    }

    /// The application writes: what was sent until now may not have filled the path.
    pub(super) fn note_app_limit(&mut self) {
        let in_flight = self.board.in_flight();
        let idle = self.buffer.unsent() < u64::from(self.window.mss())
            && in_flight < self.window.cwnd
            && !self.board.has_lost_to_resend();
        let delivered = self.board.delivered().max(1);
        if let Some(sampler) = self.pacing.sampler()
            && idle
        {
            sampler.limit_by_app(delivered, in_flight);
        }
    }

    /// Segments delivered and lost up to now.
    pub(super) fn totals(&self) -> Totals {
        Totals {
            delivered: self.board.delivered(),
            lost: self.board.lost_total(),
        }
    }

    /// Lets the controller set window and rate.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "without this, what is known of the acknowledgement goes through memory"
    )]
    pub(super) fn update_model(&mut self, ack: &Ack, news: &News) {
        let now = ack.now;
        let totals = self.totals();
        let min_rtt = self.rtt.min_micros();
        let min_rtt = min_rtt.map(|micros| Duration::from_micros(micros.into()));
        let in_flight = self.board.in_flight();
        let next_departure = self.last_departure().max(now);
        let Some(sampler) = self.pacing.sampler() else {
            return;
        };
        let cwnd_limited = self.usage.is_full(&self.window);
        let without_rtt = WithoutRtt::Invalid;
        let sample = sampler.finish_ack(now, news.delivered, totals, min_rtt, without_rtt);
        let progress = Progress {
            delivered: totals.delivered,
            lost: totals.lost,
            delivered_at: sampler.delivered_time(),
            newly_delivered: news.delivered,
            newly_lost: news.lost,
            in_flight,
            cwnd_limited,
            next_departure,
            episode: match self.recovery.phase() {
                Phase::Open | Phase::Disorder | Phase::Cwr => Episode::None,
                Phase::Recovery => Episode::Recovery,
                Phase::Loss => Episode::Loss,
            },
            ack_delayed: news.maybe_delayed,
            sample,
            ecn: news.ecn,
        };
        let held_down = self.cc.update(&mut self.window, ack, &progress);
        if held_down && let Some(sampler) = self.pacing.sampler() {
            sampler.limit_by_app(totals.delivered, in_flight);
        }
    }

    /// Sending resumes after nothing was in flight.
    pub(super) fn restart_model(&mut self, resume: &Resume) {
        if self.pacing.sampler().is_some_and(|s| s.is_app_limited()) {
            self.cc.on_restart(&mut self.window, resume);
            self.set_pacing_rate();
        }
    }

    /// After each acknowledgement: the controller's own rate, or the rate of the window; and the bursts it allows.
    #[inline]
    pub(super) fn set_pacing_rate(&mut self) {
        if self.is_default {
            self.set_pacing_rate_as::<true>();
        } else {
            self.set_pacing_rate_as::<false>();
        }
    }

    /// The same; `DEFAULT` if profile and bursts are the default.
    #[inline]
    pub(super) fn set_pacing_rate_as<const DEFAULT: bool>(&mut self) {
        let (own, size) = if self.pacing.is_paced() {
            self.cc.pacing(self.window.mss())
        } else {
            (None, BurstSize::DEFAULT)
        };
        let rate = own.unwrap_or_else(|| self.window_rate::<DEFAULT>());
        self.pacing.set_rate(rate);
        self.buffer.set_burst(self.burst_segments::<DEFAULT>(size));
    }
}

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
