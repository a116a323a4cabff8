//! The variables of BBR version 3: its model of the path, and where its probes stand.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant, Rng};

use super::bounds::Bounds;
use super::{Bbr3Params, State};
use crate::cc::bbr_common::{MaxFilter, PriorCwnd};
use crate::cc::progress::MinRtt;
use crate::cc::{Episode, Window};
use crate::segment::MSS;

/// The BBR congestion controller, version 3.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Bbr3 {
    pub(super) params: Bbr3Params,
    pub(super) rng: Rng,
    pub(super) state: State,
    /// Largest rates of the previous and of this probing cycle.
    pub(super) max_bw_filter: [u64; 2],
    pub(super) min_rtt: StampedMinRtt,
    /// The minimum of the current `PROBE_RTT` interval.
    pub(super) probe_rtt_min: StampedMinRtt,
    pub(super) round_count: u32,
    pub(super) next_round_delivered: u64,
    pub(super) round_start: bool,
    pub(super) full_bw: FullBw,
    /// The pipe has been full at some time.
    pub(super) full_bw_reached: bool,
    pub(super) drain_start_round: u32,
    pub(super) cycle: Cycle,
    pub(super) bounds: Bounds,
    pub(super) extra_acked_filter: MaxFilter,
    pub(super) extra_acked_interval_start: Instant,
    pub(super) extra_acked_delivered: u64,
    /// In bytes/s.
    pub(super) pacing_rate: u64,
    /// Bytes of a full-sized segment at the last acknowledgement.
    pub(super) mss: u32,
    pub(super) prior_cwnd: PriorCwnd,
    pub(super) prev_episode: Episode,
    pub(super) initial_cwnd: u32,
    pub(super) cwnd_limited: CwndLimited,
    pub(super) startup_signals: StartupSignals,
    /// Segments were lost since the last acknowledgement.
    pub(super) lost: bool,
    /// The current acknowledgement reports marks.
    pub(super) marked: bool,
    pub(super) probe_rtt_done_stamp: Option<u64>,
    pub(super) probe_rtt_round_done: bool,
    pub(super) idle_restart: bool,
    pub(super) undone: bool,
    /// The state a loss made it leave.
    pub(super) undo_state: Option<State>,
}

impl Bbr3 {
    /// The controller of a connection whose waits come from `seed`.
    pub fn new(params: Bbr3Params, seed: u64) -> Self {
        Self {
            params,
            rng: Rng::new(seed).fork("bbr3"),
            state: State::Startup,
            max_bw_filter: [0; 2],
            min_rtt: StampedMinRtt::NONE,
            probe_rtt_min: StampedMinRtt::NONE,
            round_count: 0,
            next_round_delivered: 0,
            round_start: false,
            full_bw: FullBw::default(),
            full_bw_reached: false,
            drain_start_round: 0,
            cycle: Cycle::default(),
            bounds: Bounds::default(),
            extra_acked_filter: MaxFilter::new(params.extra_acked_filter_len.into()),
            extra_acked_interval_start: Instant::ZERO,
            extra_acked_delivered: 0,
            pacing_rate: 0,
            mss: MSS.into(),
            prior_cwnd: PriorCwnd::default(),
            prev_episode: Episode::None,
            initial_cwnd: 0,
            cwnd_limited: CwndLimited::default(),
            startup_signals: StartupSignals::default(),
            lost: false,
            marked: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            undone: false,
            undo_state: None,
        }
    }
}

/// A minimum RTT and its age.
#[derive(Clone, Copy, Debug)]
pub(super) struct StampedMinRtt {
    pub(super) rtt: MinRtt,
    /// The tick of its measurement.
    pub(super) stamp: u64,
}

impl StampedMinRtt {
    pub(super) const NONE: Self = Self {
        rtt: MinRtt::NONE,
        stamp: 0,
    };
}

/// What the current acknowledgements belong to (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Where the cycle stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    pub(super) stamp: Instant,
    pub(super) bw_probe_wait: Duration,
    pub(super) rounds_since_bw_probe: u32,
    /// Samples come from a probe to which the model has not reacted yet.
    pub(super) bw_probe_samples: bool,
    /// Rounds the bound has grown for, and what is acknowledged towards the next segment of it.
    pub(super) bw_probe_up_rounds: u32,
    pub(super) bw_probe_up_acks: u32,
    /// Segments acknowledged per segment of growth of the bound; `None`: it does not grow.
    pub(super) probe_up_cnt: Option<NonZeroU32>,
    /// The last probe lost too much.
    pub(super) prev_probe_too_high: bool,
    /// The last probe ended early, at the bound of one that lost too much.
    pub(super) stopped_risky_probe: bool,
}

/// Whether the window was used up at any point in the last round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CwndLimited {
    this_round: bool,
    last_round: bool,
}

impl CwndLimited {
    /// An acknowledgement, before it moves the window.
    pub(super) const fn update(
        &mut self,
        round_start: bool,
        window: &Window,
        prior_in_flight: u32,
    ) {
        if round_start {
            self.last_round = self.this_round;
            self.this_round = false;
        }
        self.this_round |= prior_in_flight >= window.cwnd;
    }

    pub(super) const fn is_set(self) -> bool {
        self.this_round || self.last_round
    }
}

/// Whether the bandwidth still grows (`full_bw`, `full_bw_count`, `full_bw_now`).
#[derive(Clone, Debug, Default)]
pub(super) struct FullBw {
    pub(super) bw: u64,
    pub(super) count: u8,
    pub(super) now: bool,
}

/// Congestion signals that may end STARTUP.
#[derive(Clone, Debug, Default)]
pub(super) struct StartupSignals {
    pub(super) recovery_rounds: u8,
    /// Acknowledgements of this round that reported losses.
    pub(super) loss_events_in_round: u32,
    pub(super) marked_rounds: u8,
}
