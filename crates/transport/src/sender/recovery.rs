//! Congestion states: entering, reducing, undoing, leaving.
//!
//! # Source
//!
//! RFC 6937 (PRR) in the form of Linux 6.1, RFC 5682 (F-RTO), RFC 3522 (Eifel), RFC 3708 (DSACK).
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

use sojourn_net::Instant;

use super::ack::{Findings, Resend};
use super::scoreboard::EVER_RESENT;
use super::{Phase, Sender};
use crate::cc::Timeout;
use crate::clock::before;
use crate::segment::Segment;

impl Sender {
    /// Step 7: undo, loss marking, change of state.
    pub(super) fn judge(&mut self, now: Instant, seg: &Segment, found: &mut Findings) -> Resend {
        if found.ece {
            self.prior_ssthresh = 0;
        }
        let delayed = self.echo_predates_resend(seg);
        if self.phase == Phase::Open {
            self.resend_stamp = 0;
        } else if self.board.una >= self.high_seq {
            match self.phase {
                Phase::Cwr if self.board.una > self.high_seq => {
                    self.end_reduction();
                    self.phase = Phase::Open;
                }
                Phase::Recovery => {
                    self.undo_at_end(delayed);
                    self.end_reduction();
                }
                _ => {}
            }
        }
        match self.phase {
            Phase::Recovery => self.judge_in_recovery(now, delayed, found),
            Phase::Loss => self.judge_in_loss(now, delayed, found),
            Phase::Open | Phase::Disorder | Phase::Cwr => self.judge_open(now, found),
        }
    }

    fn judge_in_recovery(&mut self, now: Instant, delayed: bool, found: &mut Findings) -> Resend {
        if found.una_advanced && self.undo_marker.is_some() && delayed {
            // The hole was filled by the original.
            self.rack.reordering_seen = true;
            self.reordering = self.reordering.max(4);
            if self.board.resent > 0 {
                return Resend::Nothing;
            }
            if !self.any_resent() {
                self.resend_stamp = 0;
            }
            self.undo(true);
            self.keep_open();
        }
        if self.undo_by_dsack() {
            self.keep_open();
        }
        self.detect_losses(now, found);
        if self.phase != Phase::Recovery {
            if self.board.lost == 0 {
                return Resend::Nothing;
            }
            self.enter_recovery(found.ece);
        }
        Resend::Lost
    }

    fn judge_in_loss(&mut self, now: Instant, delayed: bool, found: &mut Findings) -> Resend {
        let resend = self.leave_loss(delayed, found);
        self.detect_losses(now, found);
        if self.phase == Phase::Open || found.resend_lost {
            let after = self.judge_open(now, found);
            if after == Resend::Lost {
                return after;
            }
        }
        resend
    }

    fn judge_open(&mut self, now: Instant, found: &mut Findings) -> Resend {
        if self.phase <= Phase::Disorder {
            self.undo_by_dsack();
        }
        self.detect_losses(now, found);
        if self.board.lost > 0 {
            self.enter_recovery(found.ece);
            return Resend::Lost;
        }
        if !self.any_resent() {
            self.resend_stamp = 0;
        }
        if found.ece {
            self.answer_echo();
        }
        if self.phase != Phase::Cwr {
            self.keep_open();
        }
        Resend::Nothing
    }

    /// After a time-out: was it spurious, is it over, or does slow start go on?
    fn leave_loss(&mut self, delayed: bool, found: &Findings) -> Resend {
        if found.una_advanced && self.may_undo(delayed) {
            self.undo_loss();
            return Resend::Nothing;
        }
        let recovered = self.board.una >= self.high_seq;
        if self.frto {
            if found.original_delivered {
                self.undo_loss();
                return Resend::Nothing;
            }
            if self.board.next() > self.high_seq {
                if found.sacked || !found.una_advanced {
                    self.frto = false;
                }
            } else if found.una_advanced && !recovered {
                self.high_seq = self.board.next();
                if self.may_send_bytes() {
                    return Resend::NewFirst;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.undo_at_end(delayed);
            return Resend::Nothing;
        }
        Resend::Lost
    }

    fn enter_recovery(&mut self, ece: bool) {
        self.prior_ssthresh = 0;
        self.begin_undo();
        if !matches!(self.phase, Phase::Cwr | Phase::Recovery) {
            if !ece {
                self.prior_ssthresh = self.current_ssthresh();
            }
            self.begin_reduction();
        }
        self.answer_loss();
        self.phase = Phase::Recovery;
    }

    pub(super) fn enter_cwr(&mut self) {
        self.prior_ssthresh = 0;
        if self.phase < Phase::Cwr {
            self.undo_marker = None;
            self.begin_reduction();
            self.phase = Phase::Cwr;
        }
    }

    pub(super) fn enter_loss(&mut self, now: Instant) {
        let new_episode = self.phase < Phase::Recovery;
        self.mark_all_lost(now);
        if self.phase <= Phase::Disorder
            || self.high_seq <= self.board.una
            || (self.phase == Phase::Loss && self.timeouts_in_row == 0)
        {
            self.prior_ssthresh = self.current_ssthresh();
            self.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.cc.ssthresh(&self.window);
            // Once an episode: a further time-out keeps the threshold (RFC 5681 §3.1).
            self.answer_loss();
            self.begin_undo();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.window.cnt = 0;
        if self.phase <= Phase::Disorder && self.board.sacked >= 3 {
            self.reordering = self.reordering.min(3);
        }
        self.phase = Phase::Loss;
        self.cc.on_timeout(&Timeout {
            now,
            snd_nxt: self.board.next(),
        });
        self.high_seq = self.board.next();
        self.tlp_high_seq = None;
        self.cwr_pending = self.ecn;
        self.frto = new_episode || self.timeouts_in_row > 0;
    }

    /// A loss may count for more than a mark.
    pub(super) fn answer_loss(&mut self) {
        if let Some(ssthresh) = self.cc.ssthresh_after_loss(&self.window) {
            self.window.ssthresh = ssthresh;
        }
    }

    pub(super) fn begin_reduction(&mut self) {
        self.high_seq = self.board.next();
        self.tlp_high_seq = None;
        self.window.cnt = 0;
        self.prior_cwnd = self.window.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.window.ssthresh = self.cc.ssthresh(&self.window);
        self.note_unvalidated_congestion();
        self.cwr_pending = self.ecn;
    }

    /// Proportional rate reduction: how many segments this acknowledgement lets go.
    pub(super) fn reduce(&mut self, delivered: u32, found: &Findings) {
        if delivered == 0 || self.prior_cwnd == 0 || self.is_model_based() {
            return;
        }
        self.prr_delivered += delivered;
        let in_flight = self.board.in_flight();
        let ssthresh = self.window.ssthresh.limit();
        let mut send = if in_flight > ssthresh {
            let quota = (u64::from(ssthresh) * u64::from(self.prr_delivered))
                .div_ceil(u64::from(self.prior_cwnd));
            u32::try_from(quota)
                .unwrap_or(u32::MAX)
                .saturating_sub(self.prr_out)
        } else {
            let mut send = self
                .prr_delivered
                .saturating_sub(self.prr_out)
                .max(delivered);
            if found.una_advanced && found.newly_lost(self.lost_total) == 0 {
                send += 1;
            }
            send.min(ssthresh - in_flight)
        };
        // The fast retransmit always goes.
        if self.prr_out == 0 {
            send = send.max(1);
        }
        self.window.cwnd = in_flight + send;
    }

    pub(super) fn end_reduction(&mut self) {
        if self.window.ssthresh.is_set()
            && !self.is_model_based()
            && (self.phase == Phase::Cwr || self.undo_marker.is_some())
        {
            self.end_unvalidated_congestion();
            self.window.cwnd = self.window.ssthresh.limit();
        }
    }

    /// Open, or Disorder while something is held or was retransmitted.
    pub(super) fn keep_open(&mut self) {
        let left_out = self.board.sacked + self.board.lost > 0;
        let phase = if left_out || self.any_resent() {
            Phase::Disorder
        } else {
            Phase::Open
        };
        if phase != self.phase {
            self.phase = phase;
            self.high_seq = self.board.next();
        }
    }

    fn begin_undo(&mut self) {
        self.undo_marker = Some(self.board.una);
        self.undo_resent = match self.board.resent {
            0 => -1,
            n => i32::try_from(n).unwrap_or(i32::MAX),
        };
    }

    /// The acknowledgement echoes a time before the first retransmission: what it acknowledges
    /// was the original (RFC 3522).
    fn echo_predates_resend(&self, seg: &Segment) -> bool {
        self.resend_stamp != 0 && before(seg.ts_ecr, self.resend_stamp)
    }

    fn may_undo(&self, delayed: bool) -> bool {
        self.undo_marker.is_some() && (self.undo_resent == 0 || delayed)
    }

    fn undo_at_end(&mut self, delayed: bool) {
        if self.may_undo(delayed) {
            self.undo(false);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        // Leaving Recovery reduces the window in `end_reduction`, which looks at the marker.
        self.phase = Phase::Open;
    }

    fn undo_by_dsack(&mut self) -> bool {
        let all_spurious = self.undo_marker.is_some() && self.undo_resent == 0;
        if all_spurious {
            self.rack.notes_undo();
            self.undo(false);
        }
        all_spurious
    }

    fn undo_loss(&mut self) {
        self.undo(true);
        self.timeouts_in_row = 0;
        self.phase = Phase::Open;
    }

    fn undo(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_losses();
        }
        self.cc.on_undo();
        if self.prior_ssthresh > 0 && !self.is_model_based() {
            self.window.cwnd = self.window.cwnd.max(self.prior_cwnd);
            self.window.ssthresh.raise_to(self.prior_ssthresh);
            self.cwr_pending = false;
        }
        self.undo_marker = None;
        self.rack.advanced = true;
    }

    fn current_ssthresh(&self) -> u32 {
        if matches!(self.phase, Phase::Cwr | Phase::Recovery) {
            self.window.ssthresh.limit()
        } else {
            let three_quarters = self.window.cwnd / 2 + self.window.cwnd / 4;
            self.window.ssthresh.limit().max(three_quarters)
        }
    }

    fn any_resent(&self) -> bool {
        self.board.resent > 0
            || self
                .board
                .first()
                .is_some_and(|first| first.is(EVER_RESENT))
    }
}

/// What the reordering timer needs of the above.
impl Sender {
    pub(super) fn enter_recovery_by_timer(&mut self) {
        self.enter_recovery(false);
    }

    /// One step of the reduction, as for an acknowledgement that delivered one segment.
    pub(super) fn reduce_by_timer(&mut self) {
        let found = Findings::nothing(self.lost_total.saturating_sub(1));
        self.reduce(1, &found);
    }
}
