//! Expiry of timers. One timer serves SYN, retransmission, tail loss probe, reordering and window
//! probe; a paced connection has a second one for its next departure.
//!
//! # Source
//!
//! RFC 6298 §5 and RFC 8985 §7, on the timer wheel of Linux. Departures are exact.

use sojourn_net::{Duration, Instant};

use super::state::recovery::Phase;
use super::state::timer::{Kind, TailLossProbe};
use super::{Sender, State};
use crate::clock::ticks_of_micros;
use crate::profile::Probe;
use crate::segment::{Flags, Segment};

/// SYN retransmissions until the connection is given up (`tcp_syn_retries`).
const MAX_SYN_RESENT: u32 = 6;

impl Sender {
    /// When [`Sender::on_timer`] is due; `None` if no timer runs.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        let departure = self.departure();
        // Most departures come before the wheel needs to be looked at.
        if departure.is_some_and(|at| at <= self.timer.earliest()) {
            return departure;
        }
        match (self.wheel_timer(), departure) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The one on the timer wheel.
    #[inline]
    fn wheel_timer(&self) -> Option<Instant> {
        self.timer.expiry(self.timestamps.ticks())
    }

    /// [`Sender::next_timer`], if it is before `pending`.
    #[inline]
    pub fn next_timer_before(&self, pending: Instant) -> Option<Instant> {
        // Most calls end here, without a look at the wheel.
        let departure = self.departure().filter(|&at| at < pending);
        if self.timer.earliest() >= departure.unwrap_or(pending) {
            return departure;
        }
        self.next_timer().filter(|&at| at < pending)
    }

    /// The time returned by [`Sender::next_timer`] has come.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.departure().is_some_and(|at| at <= now) {
            self.on_departure(now, out);
        }
        let Some(kind) = self.timer.kind() else {
            return;
        };
        if now < self.timer.earliest() || self.wheel_timer().is_some_and(|at| now < at) {
            return;
        }
        self.timer.cancel();
        match kind {
            Kind::Syn => self.on_syn_timer(now, out),
            Kind::Rto => self.on_rto(now, out),
            Kind::Probe => self.on_probe_timer(now, out),
            Kind::Reordering => self.on_reordering_timer(now, out),
            Kind::Persist => self.on_persist_timer(now, out),
        }
    }

    pub(super) fn arm_syn_timer(&mut self, now: Instant) {
        let ticks = u64::from(self.rules().syn_timeout_ms) << self.counters.syn_resent;
        self.timer.arm(now, Kind::Syn, ticks);
    }

    fn on_syn_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.counters.syn_resent == MAX_SYN_RESENT {
            self.state = State::Aborted;
            return;
        }
        self.counters.syn_resent += 1;
        self.send_syn(now, out);
    }

    #[inline]
    pub(super) fn current_rto_ms(&self) -> u64 {
        self.timer.backed_off(self.rtt.rto_ms())
    }

    /// Arms the retransmission timer: in full, or, if a probe or reordering timer ran in its place,
    /// counted from the first segment's last transmission.
    pub(super) fn arm_rto(&mut self, now: Instant) {
        let stood_in = self.timer.is(Kind::Probe) || self.timer.is(Kind::Reordering);
        self.arm_rto_after(now, stood_in);
    }

    fn arm_rto_after(&mut self, now: Instant, stood_in: bool) {
        let Some(first) = self.board.first() else {
            self.timer.cancel();
            return;
        };
        let rto = self.current_rto_ms();
        let ticks = if stood_in {
            let age = now.since(first.at).as_micros();
            ticks_of_micros((rto * 1_000).saturating_sub(age)).max(1)
        } else {
            rto
        };
        self.timer.arm(now, Kind::Rto, ticks);
    }

    /// Arms the retransmission timer in full, whatever was pending.
    pub(super) fn arm_full_rto(&mut self, now: Instant) {
        self.timer.arm(now, Kind::Rto, self.current_rto_ms());
    }

    /// Arms the probe timer if it may, else the retransmission timer.
    pub(super) fn arm_after_progress<const DEFAULT: bool>(&mut self, now: Instant) {
        if !self.arm_probe::<DEFAULT>(now, true) {
            self.arm_rto(now);
        }
    }

    /// Whether a probe is useful once something is outstanding.
    #[inline]
    pub(super) const fn may_probe<const DEFAULT: bool>(&self) -> bool {
        match self.rules_of::<DEFAULT>().probe {
            Probe::Rfc8985 => matches!(self.recovery.phase(), Phase::Open | Phase::Cwr),
            Probe::Draft => matches!(self.recovery.phase(), Phase::Open),
            Probe::None => false,
        }
    }

    /// Arms the probe timer if a probe is useful; returns whether it did. `advancing`: the time-out
    /// would be restarted now, so that it bounds the probe in full.
    pub(super) fn arm_probe<const DEFAULT: bool>(&mut self, now: Instant, advancing: bool) -> bool {
        let outstanding = self.board.outstanding();
        if outstanding == 0 || !self.may_probe::<DEFAULT>() {
            return false;
        }
        let mut ticks = match self.rtt.srtt8() {
            None => 1_000,
            Some(srtt8) if self.rules_of::<DEFAULT>().probe == Probe::Draft => {
                let srtt = u64::from(srtt8.get() >> 3);
                let alone = if outstanding == 1 {
                    srtt * 3 / 2 + 200_000
                } else {
                    10_000
                };
                ticks_of_micros(alone.max(2 * srtt))
            }
            Some(srtt8) => {
                let extra = if outstanding == 1 { 200 } else { 2 };
                ticks_of_micros(u64::from(srtt8.get() >> 2)) + extra
            }
        };
        let rto = self.current_rto_ms();
        let age = match self.board.first() {
            Some(first) if !advancing => now.since(first.at),
            _ => Duration::ZERO,
        };
        // Most time-outs are later than the probe even after this time.
        let spare = rto.checked_sub(ticks).map(Duration::from_millis);
        if spare.is_none_or(|spare| age > spare) {
            let rto_left = ticks_of_micros((rto * 1_000).saturating_sub(age.as_micros()));
            if rto_left > 0 {
                ticks = ticks.min(rto_left);
            }
        }
        self.timer.arm(now, Kind::Probe, ticks);
        true
    }

    fn on_probe_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let is_resend = match self.probe {
            None => self.send_probe(now, out),
            Some(_) => None,
        };
        if let Some(is_resend) = is_resend {
            self.probe = Some(TailLossProbe {
                end: self.board.next(),
                is_resend,
            });
            self.arm_full_rto(now);
        } else {
            // The time-out counts from where it did before the probe timer replaced it.
            self.arm_rto_after(now, true);
        }
    }

    fn on_reordering_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let in_flight = self.board.in_flight();
        if self.rules().early_retransmit {
            self.mark_first(now);
        } else {
            self.mark_overdue(now);
        }
        if self.board.in_flight() != in_flight {
            if self.recovery.phase() != Phase::Recovery {
                self.enter_recovery(now, false);
            }
            self.reduce_by_timer();
            self.resend_lost::<false>(now, out);
        }
        if !self.timer.is(Kind::Rto) {
            self.arm_full_rto(now);
        }
    }

    fn on_rto(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.board.outstanding() == 0 {
            return;
        }
        if self.timer.is_exhausted() {
            self.abort();
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(now);
        self.timer.count_timeout();
        self.resend_first(now, out);
        self.timer.back_off();
        self.arm_full_rto(now);
    }
}

// Zero-window probes.
//
// Source:
//
// RFC 9293 §3.8.6.1, as Linux: after the time-out, doubling, a segment without data whose number
// has been acknowledged; the peer acknowledges what it does not expect.

impl Sender {
    /// Nothing is in flight and no timer runs: if the peer's window forbids sending, arms a timer,
    /// since the acknowledgement that opens the window may be lost.
    pub(super) fn watch_closed_window(&mut self, now: Instant) {
        let waits =
            self.buffer.unsent() > 0 && !self.buffer.may_send() && self.board.outstanding() == 0;
        if waits && self.state == State::Established {
            self.timer.arm(now, Kind::Persist, self.current_rto_ms());
        }
    }

    /// An acknowledgement arrived while the window was closed. If it still is, the timer starts again.
    pub(super) fn on_window_answer(&mut self, now: Instant) {
        self.timer.reset_timeouts();
        if self.buffer.may_send() || self.board.outstanding() > 0 {
            self.timer.reset_backoff();
            if self.timer.is(Kind::Persist) {
                self.timer.cancel();
            }
        } else if self.timer.is(Kind::Persist) {
            self.timer.arm(now, Kind::Persist, self.current_rto_ms());
        }
    }

    pub(super) fn on_persist_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.timer.is_exhausted() {
            self.abort();
            return;
        }
        self.timer.count_timeout();
        self.timer.back_off();
        out.push(Segment {
            seq: self.board.una().wrapping_sub(1),
            flags: Flags::ACK | self.ecn.ect_if_always() | self.ecn.own_count(),
            ..self.blank(now)
        });
        self.watch_closed_window(now);
    }
}
