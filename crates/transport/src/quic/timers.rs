//! Timers: time-threshold loss detection, probes, delayed acknowledgements, pacing, idle timeout.
//!
//! # Source
//!
//! RFC 9002 §6.2 and appendix A.8, A.9; idle time-out: RFC 9000 §10.1.
//!
//! # Law
//!
//! ```text
//! probe after   (srtt + max(4 rttvar, 1 ms) + max_ack_delay) 2^count    since the last ack-eliciting
//!               packet of the space; max_ack_delay in 1-RTT packets only, whose timer waits until
//!               the handshake is confirmed
//! blocked       by flow control, with nothing in flight: the blocked frame is repeated after a third
//!               of the idle time-out (RFC 9000 §4.1)
//! deadlock      a client with no handshake packet in flight probes until it knows that the
//!               server may send
//! ```

use sojourn_net::{Duration, Instant};

use super::endpoint::{Endpoint, Keys, Role, State};
use super::space::{APP, HANDSHAKE, INITIAL, REQUEUED};
use super::wire::Datagram;

/// Longest back-off is 2^16 times; the idle time-out ends the connection before.
const MAX_BACKOFF: u8 = 16;
/// Repetitions of blocked frames per idle time-out: two in a row may be lost.
const BLOCKED_PART: u64 = 3;
/// Most packets sent per probe time-out (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

impl Endpoint {
    /// When [`Endpoint::on_timer`] is next due; `None`: no timer runs.
    #[inline]
    pub fn next_timer(&self) -> Option<Instant> {
        self.timer_due.filter(|_| self.is_alive())
    }

    /// The earliest of all timers. Whatever changes one ends with [`Endpoint::flush`], which sets it, or on the short
    /// path with `Endpoint::set_app_timer`, which has the timers that such a path can change.
    fn earliest_timer(&self) -> Instant {
        let mut earliest = self.idle_expiry();
        let mut add = |due: Option<Instant>| earliest = earliest.min(due.unwrap_or(Instant::MAX));
        add(self.recovery_due);
        add(self.pacing_due);
        add(self.blocked_due());
        // An acknowledgement that may not be sent waits for a datagram from the peer.
        if !self.is_unable_to_send() {
            add(self.spaces[APP].received.due());
        }
        earliest
    }

    /// The time returned by [`Endpoint::next_timer`] has come.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<Datagram>) {
        if self.expire(now) {
            self.flush(now, out);
        }
    }

    /// Does what is due, up to what is sent then. Returns whether the connection is still alive.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if !self.is_alive() {
            return false;
        }
        if self.idle_expiry() <= now {
            self.state = State::Aborted;
            return false;
        }
        if self.recovery_due.is_some_and(|due| due <= now) {
            self.on_recovery_timer(now);
        }
        if self.blocked_due().is_some_and(|due| due <= now) {
            self.outgoing.repeat_notices();
        }
        true
    }

    /// When blocked frames are repeated; `None`: no limit holds back data, or packets are in flight.
    #[inline]
    fn blocked_due(&self) -> Option<Instant> {
        let app = &self.spaces[APP];
        if app.eliciting > 0 || !self.app_send || !self.outgoing.is_blocked() {
            return None;
        }
        let part = Duration::from_nanos(self.params.idle_timeout.as_nanos() / BLOCKED_PART);
        app.last_eliciting.map(|from| from + part)
    }

    /// When the idle time-out ends the connection.
    fn idle_expiry(&self) -> Instant {
        let least = self.probe_timeout(APP).times(3);
        self.idle_since + self.params.idle_timeout.max(least)
    }

    /// The probe time-out of a space, without back-off.
    #[inline]
    fn probe_timeout(&self, n: usize) -> Duration {
        let delay = if n == APP {
            self.params.ack.delay
        } else {
            Duration::ZERO
        };
        self.rtt.pto() + delay
    }

    fn on_recovery_timer(&mut self, now: Instant) {
        if let Some((due, n)) = self.loss_time() {
            if due <= now {
                self.detect_losses(now, n);
            }
            return;
        }
        let Some((due, n)) = self.next_probe() else {
            return;
        };
        if due > now {
            return;
        }
        self.counters.probe_timeouts += 1;
        self.probe_count = self.probe_count.saturating_add(1);
        for other in INITIAL..=HANDSHAKE {
            if other != n && self.keys[other] == Keys::Ready {
                self.probe_also(other);
            }
        }
        let in_flight = self.spaces[n].eliciting > 0;
        let probes = if in_flight { PROBES } else { 1 };
        self.spaces[n].probes = probes;
        if n == APP && self.outgoing.has_pending() {
            return;
        }
        for _ in 0..probes {
            self.requeue_oldest(n);
        }
    }

    /// Another handshake space adds what it has in flight to a probe (§6.2.4): the peer may need it
    /// to decrypt the rest.
    fn probe_also(&mut self, n: usize) {
        let space = &mut self.spaces[n];
        if space.crypto.has_pending() {
            space.probes = space.probes.max(1);
        } else if space.eliciting > 0 {
            space.probes = space.probes.max(1);
            self.requeue_oldest(n);
        }
    }

    /// Queues the content of the oldest packet in flight again; the packet stays in flight.
    fn requeue_oldest(&mut self, n: usize) {
        let space = &mut self.spaces[n];
        if let Some(pn) = space.oldest_to_probe()
            && let Some(sent) = space.get_mut(pn)
        {
            let old = *sent;
            sent.flags |= REQUEUED;
            self.send_again(n, &old);
        }
    }

    /// The earliest loss by time, and its space.
    fn loss_time(&self) -> Option<(Instant, usize)> {
        let times = self.spaces.iter().enumerate();
        times
            .filter_map(|(n, space)| Some((space.loss_time?, n)))
            .min()
    }

    /// Whether nothing may be sent before the client's address is validated (RFC 9000 §8.1).
    pub(super) fn is_unable_to_send(&self) -> bool {
        self.allowance() < super::output::MIN_DATAGRAM
    }

    /// The next probe time-out, and its space; `None`: nothing is in flight, or nothing may be
    /// sent.
    fn next_probe(&self) -> Option<(Instant, usize)> {
        if self.is_unable_to_send() {
            return None;
        }
        let factor = self.backoff();
        let due = |n: usize| {
            let waits = n == APP && !self.confirmed;
            let from = self.spaces[n].last_eliciting?;
            let due = from + self.probe_timeout(n).times(factor);
            (self.spaces[n].eliciting > 0 && !waits).then_some((due, n))
        };
        if let Some(probe) = (0..3).filter_map(due).min() {
            return Some(probe);
        }
        // Early data may fill the window while its timer is not armed: the handshake, or a peer that
        // must not send (§6.2.2.1), would wait forever.
        let blocked = (INITIAL..=HANDSHAKE)
            .find(|&n| self.keys[n] == Keys::Ready && self.spaces[n].crypto.has_pending());
        let doubtful = self.role == Role::Client && !self.validated;
        let has_handshake_keys = self.keys[HANDSHAKE] == Keys::Ready;
        let n = blocked.or_else(|| doubtful.then_some(usize::from(has_handshake_keys)))?;
        // Not from now: this is computed repeatedly.
        let from = self.last_activity();
        Some((from + self.probe_timeout(n).times(factor), n))
    }

    /// When the last ack-eliciting packet was sent, or a packet arrived.
    fn last_activity(&self) -> Instant {
        let sent = self.spaces.iter().filter_map(|space| space.last_eliciting);
        sent.fold(self.idle_since, Instant::max)
    }

    /// Sets the timer of loss detection and probes, and with it the earliest of all.
    pub(super) fn set_timer(&mut self) {
        let loss = self.loss_time();
        self.recovery_due = loss.or_else(|| self.next_probe()).map(|(due, _)| due);
        self.timer_due = Some(self.earliest_timer());
    }

    /// The same once nothing but 1-RTT packets is left.
    #[inline]
    pub(super) fn set_app_timer(&mut self) {
        let app = &self.spaces[APP];
        let probe = self.probe_timeout(APP);
        let mut earliest = self.idle_since + self.params.idle_timeout.max(probe.times(3));
        self.recovery_due = None;
        if app.loss_time.is_some() {
            self.recovery_due = app.loss_time;
        } else if app.eliciting > 0
            && let Some(from) = app.last_eliciting
        {
            self.recovery_due = Some(from + probe.times(self.backoff()));
        }
        if let Some(due) = self.recovery_due {
            earliest = earliest.min(due);
        }
        if let Some(due) = self.pacing_due {
            earliest = earliest.min(due);
        }
        if let Some(due) = app.received.due() {
            earliest = earliest.min(due);
        }
        if let Some(due) = self.blocked_due() {
            earliest = earliest.min(due);
        }
        self.timer_due = Some(earliest);
    }

    /// The factor of the probe time-out.
    #[inline]
    fn backoff(&self) -> u64 {
        1 << self.probe_count.min(MAX_BACKOFF)
    }
}
