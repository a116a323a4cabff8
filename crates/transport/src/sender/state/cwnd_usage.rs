//! Use of the congestion window (RFC 2861, RFC 7661).

use sojourn_net::{Duration, Instant};

use crate::cc::Window;
use crate::sender::params::{AfterIdle, SenderParams};

/// How much of the window was used, and what that means for it.
#[derive(Clone, Debug)]
pub(crate) struct CwndUsage {
    policy: AfterIdle,
    /// The window, not the application, limited sending within this round.
    cwnd_limited: bool,
    /// The round ends when everything below this is acknowledged.
    round_end: u32,
    /// Most segments outstanding in this round.
    max_outstanding: u32,
    initial_window: u32,
    /// Most segments outstanding since `full_at`.
    most_used: u32,
    /// When the window was last fully used.
    full_at: Instant,
    /// With [`AfterIdle::Validate`].
    pipe_ack: Option<Box<PipeAck>>,
}

impl CwndUsage {
    pub(crate) fn new(params: &SenderParams) -> Self {
        let policy = params.after_idle;
        Self {
            policy,
            cwnd_limited: false,
            round_end: 0,
            max_outstanding: 0,
            initial_window: params.initial_window,
            most_used: 0,
            full_at: Instant::ZERO,
            pipe_ack: (policy == AfterIdle::Validate).then(Box::default),
        }
    }

    pub(crate) const fn policy(&self) -> AfterIdle {
        self.policy
    }

    pub(crate) const fn initial_window(&self) -> u32 {
        self.initial_window
    }

    #[inline]
    pub(crate) fn pipe_ack_mut(&mut self) -> Option<&mut PipeAck> {
        self.pipe_ack.as_deref_mut()
    }

    /// Segments `una` to `una + outstanding` are in flight after sending, which the window limited
    /// or not.
    #[inline]
    pub(crate) fn on_sent(&mut self, una: u32, outstanding: u32, limited: bool) {
        if una >= self.round_end
            || limited
            || (!self.cwnd_limited && outstanding > self.max_outstanding)
        {
            self.cwnd_limited = limited;
            self.max_outstanding = outstanding;
            self.round_end = una + outstanding;
        }
    }

    /// Whether the window is used in full; in slow start half of it is enough.
    #[inline]
    pub(crate) fn is_full(&self, window: &Window) -> bool {
        self.cwnd_limited || self.half_is_enough(window)
    }

    /// Whether the window may grow.
    #[inline]
    pub(crate) fn allows_growth(&self, window: &Window) -> bool {
        self.cwnd_limited || (self.half_is_enough(window) && self.is_validated(window.cwnd))
    }

    #[inline]
    fn half_is_enough(&self, window: &Window) -> bool {
        window.in_slow_start() && window.cwnd < 2 * self.max_outstanding
    }

    /// Whether the window counts as validated (RFC 7661).
    #[inline]
    fn is_validated(&self, cwnd: u32) -> bool {
        match &self.pipe_ack {
            Some(pipe_ack) => pipe_ack.is_validated(cwnd),
            None => true,
        }
    }

    /// Restarts the period of observation.
    #[inline]
    pub(crate) const fn restart(&mut self, now: Instant) {
        self.most_used = 0;
        self.full_at = now;
    }

    /// The window is not used in full: if it has not been for `rto`, returns the most that was used.
    pub(crate) fn on_partial(
        &mut self,
        now: Instant,
        outstanding: u32,
        rto: Duration,
    ) -> Option<u32> {
        self.most_used = self.most_used.max(outstanding);
        (now.since(self.full_at) >= rto).then_some(self.most_used)
    }
}

// pipeACK: how much of the window the path has recently carried.
//
// Source:
//
// RFC 7661 §4.2 (New-CWV).
//
// Law:
//
// *pipeACK* is the most that was acknowledged in a round trip of the last max(3 RTT, 1 s); it is
// undefined until the first round trip after the start or a recovery. The window is validated if
// pipeACK is undefined or at least cwnd / 2.

/// How long an unvalidated window is kept.
const PERIOD: Duration = Duration::from_secs(300);
/// Shortest sampling period.
const MIN_SAMPLING: Duration = Duration::from_secs(1);
/// Parts of the sampling period, which expire one by one.
const PARTS: usize = 3;

/// The estimator of pipeACK.
#[derive(Clone, Debug, Default)]
pub(crate) struct PipeAck {
    /// The largest sample of each part of the period, the current one first.
    samples: [u32; PARTS],
    part_began: Instant,
    /// A sample was taken since the start or the last recovery.
    defined: bool,
    /// The sample in progress: segments acknowledged until `round_end` is.
    acked: u32,
    round_end: Option<u32>,
    /// Since when the window has not been validated.
    unvalidated_since: Option<Instant>,
    congestion: Option<Congestion>,
}

/// Congestion met while the window was not validated.
#[derive(Clone, Copy, Debug)]
struct Congestion {
    /// The window to halve.
    used: u32,
    /// Retransmissions before it.
    resent: u64,
}

impl PipeAck {
    fn pipe_ack(&self) -> Option<u32> {
        self.defined
            .then(|| self.samples.into_iter().max().unwrap_or(0))
    }

    pub(crate) fn is_validated(&self, cwnd: u32) -> bool {
        self.pipe_ack().is_none_or(|pipe| pipe >= cwnd.div_ceil(2))
    }

    /// Drops samples older than the sampling period of a round trip of `srtt`.
    pub(crate) fn expire(&mut self, now: Instant, srtt: Duration) {
        let part = Duration::from_nanos(srtt.times(3).max(MIN_SAMPLING).as_nanos() / 3);
        for _ in 0..PARTS {
            if now.saturating_since(self.part_began) < part {
                return;
            }
            self.samples.rotate_right(1);
            self.samples[0] = 0;
            self.part_began += part;
        }
        self.part_began = now;
    }

    /// What is acknowledged in recovery is no sample.
    pub(crate) const fn discard_sample(&mut self) {
        self.acked = 0;
    }

    /// `acked` segments were acknowledged, all below `una`; `next` is the next to be sent.
    pub(crate) fn on_acked(&mut self, acked: u32, una: u32, next: u32) {
        self.acked += acked;
        if self.defined {
            self.samples[0] = self.samples[0].max(self.acked);
        }
        if una >= *self.round_end.get_or_insert(next) {
            self.samples[0] = self.samples[0].max(self.acked);
            self.defined = true;
            self.acked = 0;
            self.round_end = Some(next);
        }
    }

    /// Notes since when a window of `cwnd` has not been validated.
    pub(crate) fn update_validity(&mut self, now: Instant, cwnd: u32) {
        if self.is_validated(cwnd) {
            self.unvalidated_since = None;
        } else {
            self.unvalidated_since.get_or_insert(now);
        }
    }

    /// Sending resumes after a pause.
    pub(crate) const fn restart_sample(&mut self) {
        self.acked = 0;
        self.round_end = None;
    }

    /// How many times [`PERIOD`] has passed anew since the window was last validated, or since
    /// `last_sent`.
    pub(crate) fn expired_periods(&mut self, now: Instant, last_sent: Instant) -> u32 {
        let since = self.unvalidated_since.get_or_insert(last_sent);
        let mut periods = 0;
        while now.saturating_since(*since) >= PERIOD {
            *since += PERIOD;
            periods += 1;
        }
        periods
    }

    /// Congestion was met at a window of `cwnd`, with `flight` segments outstanding and `resent`
    /// retransmitted so far. Returns the window to reduce if `cwnd` is not validated.
    pub(crate) fn on_congestion(&mut self, cwnd: u32, flight: u32, resent: u64) -> Option<u32> {
        self.congestion = None;
        if self.is_validated(cwnd) {
            return None;
        }
        let used = self.pipe_ack().unwrap_or(0).max(flight).min(cwnd);
        self.congestion = Some(Congestion { used, resent });
        Some(used)
    }

    /// The reduction is over, `resent` segments having been retransmitted so far. Returns the
    /// threshold if the window was not validated when it began.
    pub(crate) fn on_reduced(&mut self, resent: u64) -> Option<u32> {
        let congestion = self.congestion.take();
        *self = Self {
            part_began: self.part_began,
            ..Self::default()
        };
        congestion.map(|before| {
            let lost = u32::try_from(resent - before.resent).unwrap_or(u32::MAX);
            (before.used.saturating_sub(lost) / 2).max(2)
        })
    }
}
