//! The timers of a connection: one for SYN, retransmission, tail loss probe or reordering; if it is
//! paced, one for the next departure.
//!
//! # Source
//!
//! RFC 6298 §5 and RFC 8985 §7, on the timer wheel of Linux. Departures are exact.

use sojourn_net::{Duration, Instant};

use super::{Phase, Sender, State};
use crate::clock::ticks_of_micros;
use crate::segment::Segment;

/// Time-outs without progress until the connection is given up (`tcp_retries2`).
pub(super) const MAX_TIMEOUTS: u8 = 15;
/// SYN retransmissions until the connection is given up (`tcp_syn_retries`).
const MAX_SYN_RESENT: u32 = 6;
/// Longest time-out, in ms.
const MAX_RTO_MS: u64 = 120_000;

/// What the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Syn,
    Rto,
    Probe,
    Reordering,
    /// The peer's window is closed.
    Persist,
}

/// A timer, set or not. Setting it is frequent and cheap; where the wheel puts it is worked out
/// when somebody asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    kind: Option<Kind>,
    ticks: u32,
    set_at: Instant,
}

impl Timer {
    pub(super) const fn off() -> Self {
        Self {
            kind: None,
            ticks: 0,
            set_at: Instant::ZERO,
        }
    }

    pub(super) const fn kind(self) -> Option<Kind> {
        self.kind
    }

    pub(super) const fn cancel(&mut self) {
        *self = Self::off();
    }
}

impl Sender {
    /// When [`Sender::on_timer`] is due; `None` if nothing is waited for.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        match (self.wheel_timer(), self.departure()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The one on the wheel.
    #[inline]
    fn wheel_timer(&self) -> Option<Instant> {
        let timer = &self.timer;
        timer
            .kind
            .map(|_| self.ticks.expiry(timer.set_at, u64::from(timer.ticks)))
    }

    /// [`Sender::next_timer`], if it is before `pending`.
    #[inline]
    pub fn next_timer_before(&self, pending: Instant) -> Option<Instant> {
        // The wheel never fires early, so most answers need no look at it.
        let least = self.timer.set_at + Duration::from_millis(u64::from(self.timer.ticks));
        if least >= pending && self.pacer.is_none() {
            return None;
        }
        self.next_timer().filter(|&at| at < pending)
    }

    /// The time returned by [`Sender::next_timer`] has come.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.departure().is_some_and(|at| at <= now) {
            self.on_departure(now, out);
        }
        let Some(kind) = self.timer.kind else { return };
        if self.wheel_timer().is_some_and(|at| now < at) {
            return;
        }
        self.timer.cancel();
        match kind {
            Kind::Syn => self.on_syn_timer(now, out),
            Kind::Rto => self.on_rto(now, out),
            Kind::Probe => self.on_probe_timer(now, out),
            Kind::Reordering => self.on_reordering(now, out),
            Kind::Persist => self.on_persist_timer(now, out),
        }
    }

    pub(super) fn arm(&mut self, now: Instant, kind: Kind, ticks: u64) {
        self.timer = Timer {
            kind: Some(kind),
            ticks: u32::try_from(ticks).unwrap_or(u32::MAX),
            set_at: now,
        };
    }

    pub(super) fn arm_syn_timer(&mut self, now: Instant) {
        self.arm(now, Kind::Syn, 1_000 << self.counters.syn_resent);
    }

    fn on_syn_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.counters.syn_resent == MAX_SYN_RESENT {
            self.state = State::Aborted;
            return;
        }
        self.counters.syn_resent += 1;
        self.send_syn(now, out);
    }

    pub(super) fn current_rto_ms(&self) -> u64 {
        (u64::from(self.rtt.rto_ms()) << self.backoff.min(16)).min(MAX_RTO_MS)
    }

    /// Sets the retransmission timer: in full, or, if a probe or reordering timer stood in its
    /// place, counted from the first segment's last transmission.
    pub(super) fn arm_rto(&mut self, now: Instant) {
        let Some(first) = self.board.first() else {
            self.timer.cancel();
            return;
        };
        let rto = self.current_rto_ms();
        let stood_in = self.timer_is(Kind::Probe) || self.timer_is(Kind::Reordering);
        let ticks = if stood_in {
            let age = now.since(first.at).as_micros();
            ticks_of_micros((rto * 1_000).saturating_sub(age)).max(1)
        } else {
            rto
        };
        self.arm(now, Kind::Rto, ticks);
    }

    /// Sets the retransmission timer in full, whatever was pending.
    pub(super) fn arm_full_rto(&mut self, now: Instant) {
        self.arm(now, Kind::Rto, self.current_rto_ms());
    }

    /// Sets the probe timer if a probe is of use; says whether it did. `advancing`: the
    /// time-out would be restarted now, so the probe is bounded by it in full.
    pub(super) fn arm_probe(&mut self, now: Instant, advancing: bool) -> bool {
        let outstanding = self.board.outstanding();
        if outstanding == 0 || !matches!(self.phase, Phase::Open | Phase::Cwr) {
            return false;
        }
        let srtt8 = self.rtt.srtt8();
        let mut ticks = if srtt8 == 0 {
            1_000
        } else {
            let extra = if outstanding == 1 { 200 } else { 2 };
            ticks_of_micros(u64::from(srtt8 >> 2)) + extra
        };
        let rto = self.current_rto_ms();
        let rto_left = if advancing {
            rto
        } else {
            let age = self
                .board
                .first()
                .map_or(0, |f| now.since(f.at).as_micros());
            ticks_of_micros((rto * 1_000).saturating_sub(age))
        };
        if rto_left > 0 {
            ticks = ticks.min(rto_left);
        }
        self.arm(now, Kind::Probe, ticks);
        true
    }

    fn on_probe_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.tlp_high_seq.is_none() && self.send_probe(now, out) {
            self.tlp_high_seq = Some(self.board.next());
            self.arm_full_rto(now);
        } else {
            // As if the probe timer still stood in for it: the time-out keeps its origin.
            self.timer.kind = Some(Kind::Probe);
            self.arm_rto(now);
        }
    }

    fn on_reordering(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let in_flight = self.on_reordering_timer(now);
        if self.board.in_flight() != in_flight {
            if self.phase != Phase::Recovery {
                self.enter_recovery_by_timer();
            }
            self.reduce_by_timer();
            self.resend_lost(now, out);
        }
        if self.timer.kind != Some(Kind::Rto) {
            self.arm_full_rto(now);
        }
    }

    fn on_rto(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.board.outstanding() == 0 {
            return;
        }
        if self.timeouts_in_row == MAX_TIMEOUTS {
            self.abort();
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(now);
        self.timeouts_in_row += 1;
        self.resend_first(now, out);
        self.backoff = self.backoff.saturating_add(1);
        self.arm_full_rto(now);
    }
}
