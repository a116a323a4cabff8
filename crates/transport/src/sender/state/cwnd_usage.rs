//! Use of the congestion window (RFC 2861, RFC 7661).

use sojourn_net::{Duration, Instant};

use super::pipe_ack::PipeAck;
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
