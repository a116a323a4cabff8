//! Transitions between congestion states: entry, reduction, undo, exit.
//!
//! # Source
//!
//! RFC 6937 (PRR) in the form of Linux 6.1, RFC 5682 (F-RTO), RFC 3522 (Eifel), RFC 3708 (DSACK). Other profiles reduce
//! otherwise: see [`Reduction`].
//!
//! # Law
//!
//! ```text
//! entering        ssthresh from the controller; high_seq = snd_nxt
//! each ACK        in_flight > ssthresh:  send ceil(delivered so far * ssthresh / cwnd before) - sent
//!                 otherwise:             send what was delivered, one more if nothing was lost
//! leaving         at high_seq: cwnd = ssthresh
//! undoing         when the echo predates the first retransmission, or every retransmission was
//!                 reported a duplicate: cwnd and ssthresh as before
//! ```

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant};

use super::Sender;
use super::model::{Findings, Resend};
use super::state::pacing::Pacing;
use super::state::recovery::Phase;
use super::state::scoreboard::Lost;
use super::state::timer::Kind;
use crate::cc::{Controller, Timeout, Transition, Window};
use crate::clock::ticks_of_micros;
use crate::delivery_rate::Totals;
use crate::profile::{Bound, Detection, Reduction};
use crate::segment::Segment;

impl Sender {
    /// Step 7: undo, loss marking, change of state.
    pub(super) fn update_phase<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        seg: &Segment,
        found: &mut Findings,
    ) -> Resend {
        if found.ece {
            self.undo.forget_ssthresh();
        }
        let delayed = self.undo.echo_predates_resend(seg.ts_ecr);
        if self.recovery.phase() == Phase::Open {
            self.undo.forget_first_resend();
        } else if self.board.una() >= self.recovery.high_seq() {
            match self.recovery.phase() {
                Phase::Cwr if self.board.una() > self.recovery.high_seq() => {
                    self.end_reduction();
                    self.enter_phase(now, Phase::Open);
                }
                Phase::Recovery => {
                    self.undo_at_end(now, delayed);
                    self.end_reduction();
                }
                _ => {}
            }
        }
        match self.recovery.phase() {
            Phase::Recovery => self.on_ack_in_recovery::<DEFAULT>(now, delayed, found),
            Phase::Loss => self.on_ack_in_loss::<DEFAULT>(now, delayed, found),
            Phase::Open | Phase::Disorder | Phase::Cwr => {
                self.on_ack_when_open::<DEFAULT>(now, found)
            }
        }
    }

    fn on_ack_in_recovery<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        delayed: bool,
        found: &mut Findings,
    ) -> Resend {
        if found.una_advanced && self.undo.has_episode() && delayed {
            // The original filled the hole: it was reordered by more than is assumed.
            self.rack.on_reordering(4);
            if self.board.resent() > 0 {
                return Resend::Nothing;
            }
            if !self.board.any_resent() {
                self.undo.forget_first_resend();
            }
            self.undo(true);
            self.keep_open(now);
        }
        if self.undo_by_dsack() {
            self.keep_open(now);
        }
        self.detect_losses::<DEFAULT>(now, found);
        if self.recovery.phase() != Phase::Recovery {
            if self.board.lost() == 0 {
                return Resend::Nothing;
            }
            self.enter_recovery(now, found.ece);
        }
        Resend::Lost
    }

    fn on_ack_in_loss<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        delayed: bool,
        found: &mut Findings,
    ) -> Resend {
        let resend = self.leave_loss(now, delayed, found);
        self.detect_losses::<DEFAULT>(now, found);
        if self.recovery.phase() == Phase::Open || found.resend_lost {
            let after = self.on_ack_when_open::<DEFAULT>(now, found);
            if after == Resend::Lost {
                return after;
            }
        }
        resend
    }

    fn on_ack_when_open<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        found: &mut Findings,
    ) -> Resend {
        if self.recovery.phase() <= Phase::Disorder {
            self.undo_by_dsack();
        }
        self.detect_losses::<DEFAULT>(now, found);
        if self.board.lost() > 0 {
            self.enter_recovery(now, found.ece);
            return Resend::Lost;
        }
        if !self.board.any_resent() {
            self.undo.forget_first_resend();
        }
        if found.ece {
            self.answer_echo(now);
        }
        if self.recovery.phase() != Phase::Cwr {
            self.keep_open(now);
        }
        Resend::Nothing
    }

    /// After a time-out: undoes it if it was spurious, ends the state if it is over.
    fn leave_loss(&mut self, now: Instant, delayed: bool, found: &Findings) -> Resend {
        if found.una_advanced && self.may_undo(delayed) {
            self.undo_loss(now);
            return Resend::Nothing;
        }
        let recovered = self.board.una() >= self.recovery.high_seq();
        if self.recovery.frto() {
            if found.original_delivered {
                self.undo_loss(now);
                return Resend::Nothing;
            }
            if self.board.next() > self.recovery.high_seq() {
                if found.sacked || !found.una_advanced {
                    self.recovery.set_frto(false);
                }
            } else if found.una_advanced && !recovered {
                self.recovery.set_high_seq(self.board.next());
                if self.buffer.may_send() {
                    return Resend::NewFirst;
                }
                self.recovery.set_frto(false);
            }
        }
        if recovered {
            self.undo_at_end(now, delayed);
            return Resend::Nothing;
        }
        Resend::Lost
    }

    pub(super) fn enter_recovery(&mut self, now: Instant, ece: bool) {
        self.undo.forget_ssthresh();
        self.begin_episode();
        if !self.recovery.is_reducing() {
            if !ece {
                self.undo.save_ssthresh(self.current_ssthresh());
            }
            self.begin_reduction(now);
        }
        self.answer_loss();
        self.enter_phase(now, Phase::Recovery);
    }

    pub(super) fn enter_cwr(&mut self, now: Instant) {
        self.undo.forget_ssthresh();
        if self.recovery.phase() < Phase::Cwr {
            self.undo.end();
            self.begin_reduction(now);
            self.enter_phase(now, Phase::Cwr);
        }
    }

    pub(super) fn enter_loss(&mut self, now: Instant) {
        let new_episode = self.recovery.phase() < Phase::Recovery;
        let on_lost = report_losses(now, &mut self.pacing, &mut self.cc, &self.window);
        let patience = match self.profile.rules().detection {
            Detection::Rack => self.rack.rtt(),
            Detection::Fack | Detection::Sack1 => Duration::ZERO,
        };
        self.board.mark_all_lost(now, patience, on_lost);
        if self.recovery.phase() <= Phase::Disorder
            || self.recovery.high_seq() <= self.board.una()
            || (self.recovery.phase() == Phase::Loss && !self.timer.has_timed_out())
        {
            self.undo.save_ssthresh(self.current_ssthresh());
            self.recovery.set_prior_cwnd(self.window.cwnd);
            let tick = self.timestamps.tick(now);
            self.window.ssthresh = self.cc.ssthresh(&self.window, tick);
            // Once per episode: a further time-out keeps the threshold (RFC 5681 §3.1).
            if let Some(ssthresh) = self.cc.ssthresh_after_timeout(&self.window) {
                self.window.ssthresh = ssthresh;
            }
            self.begin_episode();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.window.cnt = 0;
        if self.recovery.phase() <= Phase::Disorder && self.board.sacked() >= 3 {
            self.rack.limit_reordering();
        }
        self.enter_phase(now, Phase::Loss);
        self.cc.on_timeout(&Timeout {
            now,
            snd_nxt: self.board.next(),
        });
        self.recovery.set_high_seq(self.board.next());
        self.probe = None;
        self.ecn.request_cwr();
        self.recovery
            .set_frto((new_episode || self.timer.has_timed_out()) && self.profile.rules().undo);
    }

    /// A reduction begins that may be undone, if this implementation does that.
    fn begin_episode(&mut self) {
        if self.rules().undo {
            self.undo.begin(self.board.una(), self.board.resent());
        }
    }

    /// A loss may reduce the window by more than a mark.
    pub(super) fn answer_loss(&mut self) {
        if let Some(ssthresh) = self.cc.ssthresh_after_loss(&self.window) {
            self.window.ssthresh = ssthresh;
        }
        self.leave_slow_start();
    }

    pub(super) fn begin_reduction(&mut self, now: Instant) {
        self.recovery
            .begin_reduction(self.board.next(), self.window.cwnd);
        self.probe = None;
        self.window.cnt = 0;
        let tick = self.timestamps.tick(now);
        self.window.ssthresh = self.cc.ssthresh(&self.window, tick);
        self.leave_slow_start();
        self.reduce_unvalidated();
        self.ecn.request_cwr();
    }

    /// The heuristic of slow start answers congestion, after the controller or before it starts.
    pub(super) fn leave_slow_start(&mut self) {
        if let Some(exit) = &mut self.slow_start {
            // Recovery brings the window down from where it is.
            let _ = exit.on_congestion(&mut self.window);
        }
    }

    /// The window comes down on an acknowledgement that delivered `delivered` segments.
    pub(super) fn reduce<const DEFAULT: bool>(&mut self, delivered: u32, found: &Findings) {
        if self.is_model_based() {
            return;
        }
        let (in_flight, ssthresh) = (self.board.in_flight(), self.window.ssthresh.limit());
        match self.rules_of::<DEFAULT>().reduction {
            Reduction::Prr(bound) => {
                let one_more = match bound {
                    Bound::NoNewLoss => {
                        found.una_advanced && found.newly_lost(self.board.lost_total()) == 0
                    }
                    Bound::Repaired => found.resent_acked && !found.resend_lost,
                    Bound::SlowStart => true,
                };
                let reduced =
                    self.recovery
                        .reduced_cwnd(delivered, in_flight, ssthresh, (bound, one_more));
                if let Some(cwnd) = reduced {
                    self.window.cwnd = cwnd;
                }
            }
            Reduction::RateHalving => {
                if found.una_advanced || found.sacked || found.dsack {
                    self.halve_rate(in_flight, ssthresh);
                }
            }
            Reduction::Immediate => self.window.cwnd = ssthresh,
        }
    }

    /// One acknowledgement of rate halving, which counts them where growth counts segments.
    fn halve_rate(&mut self, in_flight: u32, ssthresh: u32) {
        let second = self.window.cnt > 0;
        self.window.cnt = u32::from(!second);
        if second && self.window.cwnd > ssthresh {
            self.window.cwnd -= 1;
        }
        self.window.cwnd = self.window.cwnd.min(in_flight + 1);
    }

    /// One step of the reduction for the reordering timer, as if one segment had been delivered.
    pub(super) fn reduce_by_timer(&mut self) {
        let found = Findings::nothing(self.board.lost_total().saturating_sub(1));
        self.reduce::<false>(1, &found);
    }

    pub(super) fn end_reduction(&mut self) {
        if self.window.ssthresh.is_set()
            && !self.is_model_based()
            && (self.recovery.phase() == Phase::Cwr || self.undo.has_episode())
        {
            self.end_unvalidated_reduction();
            let ssthresh = self.window.ssthresh.limit();
            self.window.cwnd = match self.rules().reduction {
                // What rate halving left of it.
                Reduction::RateHalving => self.window.cwnd.min(ssthresh),
                Reduction::Prr(_) | Reduction::Immediate => ssthresh,
            };
        }
        self.cc.on_reduced(&mut self.window);
    }

    /// Enters a congestion state.
    pub(super) fn enter_phase(&mut self, now: Instant, phase: Phase) {
        self.recovery.set_phase(phase);
        self.cc.on_phase(&Transition {
            to: phase,
            tick: self.timestamps.tick(now),
            snd_nxt: self.board.next(),
        });
    }

    /// Open, or Disorder while a segment is sacked or was retransmitted.
    pub(super) fn keep_open(&mut self, now: Instant) {
        let left_out = self.board.sacked() + self.board.lost() > 0;
        let phase = if left_out || self.board.any_resent() {
            Phase::Disorder
        } else {
            Phase::Open
        };
        if phase != self.recovery.phase() {
            self.enter_phase(now, phase);
            self.recovery.set_high_seq(self.board.next());
        }
    }

    fn may_undo(&self, delayed: bool) -> bool {
        self.undo.all_spurious() || (delayed && self.undo.has_episode())
    }

    fn undo_at_end(&mut self, now: Instant, delayed: bool) {
        if self.may_undo(delayed) {
            self.undo(false);
        } else {
            self.rack.on_recovered();
        }
        // Leaving Recovery reduces the window in `end_reduction`, which needs the episode.
        self.enter_phase(now, Phase::Open);
    }

    fn undo_by_dsack(&mut self) -> bool {
        let all_spurious = self.undo.all_spurious();
        if all_spurious {
            self.rack.on_undo();
            self.undo(false);
        }
        all_spurious
    }

    fn undo_loss(&mut self, now: Instant) {
        self.undo(true);
        self.timer.reset_timeouts();
        self.enter_phase(now, Phase::Open);
    }

    fn undo(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_losses();
        }
        let prior_ssthresh = self.undo.prior_ssthresh();
        if prior_ssthresh.is_some() || self.is_model_based() {
            self.cc.on_undo();
        }
        if let Some(ssthresh) = prior_ssthresh
            && !self.is_model_based()
        {
            let prior_cwnd = self.recovery.prior_cwnd().map_or(0, NonZeroU32::get);
            self.window.cwnd = self.window.cwnd.max(prior_cwnd);
            self.window.ssthresh.raise_to(ssthresh.get());
            self.ecn.cancel_cwr();
        }
        self.undo.end();
        self.rack.force_advance();
    }

    fn current_ssthresh(&self) -> u32 {
        if self.recovery.is_reducing() {
            self.window.ssthresh.limit()
        } else {
            let three_quarters = self.window.cwnd / 2 + self.window.cwnd / 4;
            self.window.ssthresh.limit().max(three_quarters)
        }
    }
}

// Loss detection.
//
// Source:
//
// RFC 8985 §6 (RACK), with Linux's rule that without any sign of reordering the window for it
// is zero once three segments are sacked. Of other profiles: FACK, RFC 6675 and RFC 5827 as in Linux 3.14, and
// TCP/Sack1 of ns-2 (see `docs/explanation/senders.md`).
//
// Law:
//
// rack    a segment is lost when one sent after it has been delivered and `rtt + reo_wnd` has passed
//         since its last transmission, `rtt` being that of the delivered one
// others  see [`Detection`]

/// Duplicate acknowledgements that show a loss.
const DUPLICATE_ACKS: u32 = 3;
/// Most segments that Linux before 3.18 believes reordering to span.
const MAX_REORDERING_OF_FACK: u32 = 127;

impl Sender {
    /// How much later than its successors a segment may arrive, in µs.
    fn reordering_window(&self) -> u32 {
        let enough_sacked = self.board.sacked() >= self.rack.reordering();
        let expects_loss = self.recovery.phase() >= Phase::Recovery || enough_sacked;
        let srtt = self.rtt.srtt_micros();
        self.rack
            .reordering_window(expects_loss, self.rtt.min_micros(), srtt)
    }

    /// Marks what is lost by now; arms the reordering timer for what may become so.
    pub(super) fn detect_losses<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        found: &mut Findings,
    ) {
        let advanced = self.rack.take_advanced();
        if self.rules_of::<DEFAULT>().detection != Detection::Rack {
            self.detect_by_sacks(now, found);
            return;
        }
        if !advanced {
            return;
        }
        let resent_before = self.board.resent();
        if let Some(rest) = self.mark_overdue(now) {
            let ticks = ticks_of_micros(u64::from(rest) + 2_000);
            self.timer.arm(now, Kind::Reordering, ticks);
            found.rearm = false;
        }
        found.resend_lost |= self.board.resent() < resent_before;
    }

    /// Marks every segment overdue at `now`; returns how long, in µs, until the last of the
    /// others that were sent before the newest delivered one is.
    pub(super) fn mark_overdue(&mut self, now: Instant) -> Option<u32> {
        if self.board.outstanding() == 0 {
            return None;
        }
        let patience = self.rack.rtt_micros() + self.reordering_window();
        let on_lost = report_losses(now, &mut self.pacing, &mut self.cc, &self.window);
        self.board
            .mark_overdue(now, self.rack.newest(), patience, on_lost)
    }
}

impl Sender {
    /// Marks what the SACK blocks show to be lost, or sets the timer of an early retransmission.
    fn detect_by_sacks(&mut self, now: Instant, found: &mut Findings) {
        let Some(high) = self.board.sacked_end() else {
            return;
        };
        let in_recovery = self.recovery.phase() == Phase::Recovery;
        let una = self.board.una();
        let (limit, resends) = match self.rules().detection {
            Detection::Rack => return,
            Detection::Sack1 => {
                let enough = in_recovery || self.board.sacked() >= DUPLICATE_ACKS;
                (if enough { high } else { una }, false)
            }
            Detection::Fack => {
                let spread = self.rack.reordering().min(MAX_REORDERING_OF_FACK);
                let fack = !self.rack.is_reordering();
                let limit = if fack {
                    high.saturating_sub(spread)
                } else {
                    self.board.highest_sacked(spread).unwrap_or(una)
                };
                // In recovery a duplicate acknowledgement shows that the first segment is missing.
                let first = in_recovery && found.sacked && !found.una_advanced;
                (limit.max(una + u32::from(first)), fack && in_recovery)
            }
        };
        let resent_before = self.board.resent();
        self.mark_below(now, limit, resends);
        found.resend_lost |= self.board.resent() < resent_before;
        if self.rules().early_retransmit && self.board.lost() == 0 {
            self.retransmit_early(now, found);
        }
    }

    /// The first segment is lost: the delay of an early retransmission has passed.
    pub(super) fn mark_first(&mut self, now: Instant) {
        self.mark_below(now, self.board.una() + 1, false);
    }

    fn mark_below(&mut self, now: Instant, limit: u32, resends: bool) {
        let on_lost = report_losses(now, &mut self.pacing, &mut self.cc, &self.window);
        self.board.mark_below(limit, resends, on_lost);
    }

    /// With fewer than four segments in flight and no more to send, three duplicate acknowledgements cannot arrive: the
    /// first segment is retransmitted a quarter of a round trip after fewer (RFC 5827).
    fn retransmit_early(&mut self, now: Instant, found: &mut Findings) {
        let sends_more = self.buffer.may_send() && self.board.in_flight() < self.window.cwnd;
        if self.board.outstanding() > DUPLICATE_ACKS
            || self.board.resent() > 0
            || self.rack.is_reordering()
            || sends_more
        {
            return;
        }
        let quarter = self.rtt.srtt_micros().map_or(0, |srtt| srtt / 4);
        let ticks = ticks_of_micros(quarter.into()).max(2);
        let due = now + Duration::from_millis(ticks);
        let timed_out = self.timer.expiry(self.timestamps.ticks());
        if found.ece || timed_out.is_some_and(|at| at <= due) {
            self.mark_first(now);
        } else {
            self.timer.arm(now, Kind::Reordering, ticks);
            found.rearm = false;
        }
    }
}

/// Reports each segment declared lost at `now` to a model-based controller.
fn report_losses(
    now: Instant,
    pacing: &mut Pacing,
    cc: &mut Controller,
    window: &Window,
) -> impl FnMut(Lost) {
    let mut sampler = pacing.sampler();
    move |lost| {
        let totals = Totals {
            delivered: lost.delivered,
            lost: lost.total,
        };
        let segment = sampler
            .as_mut()
            .and_then(|s| s.lost(lost.index, now, totals));
        if let Some(segment) = segment {
            cc.on_lost(window, &segment);
        }
    }
}
