//! What is sent when.
//!
//! # Law
//!
//! New data leaves in *units*, as many segments as 1 ms at the pacing rate holds but at least
//! two, although nothing is paced: a unit not yet full may be deferred to the next
//! acknowledgement. The last segment of a unit carries PSH, to which the receiver answers at
//! once. This is what Linux does even where the device cannot segment, and it decides which
//! packet of a burst meets a full queue.

use sojourn_net::{Duration, Instant};

use super::ack::Resend;
use super::scoreboard::{EVER_RESENT, LOST, RESENT, SACKED, Sent};
use super::timers::Kind;
use super::{Phase, Sender};
use crate::cc::{BurstSize, Resume};
use crate::segment::{Flags, MSS, Segment};

/// Most bytes in one unit.
const MAX_UNIT: u64 = 65_300;
/// How long a unit may wait for company.
const PATIENCE: Duration = Duration::from_millis(1);

impl Sender {
    /// Sends what the window allows of new data.
    pub(super) fn send_new(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if self.unsent == 0 && (!self.fin_wanted || self.fin_sent) {
            return;
        }
        let mut sent_any = 0;
        let mut limited = false;
        let max_segments = self.unit_segments();
        while self.unsent > 0 && !self.held_back(now) {
            let in_flight = self.board.in_flight();
            let quota = self.window.cwnd.saturating_sub(in_flight);
            if quota == 0 || !self.may_send_bytes() {
                break;
            }
            let quota = quota.min((self.window.cwnd / 2).max(1));
            let queued = self.unsent.div_ceil(u64::from(MSS));
            let queued = u32::try_from(queued).unwrap_or(u32::MAX);
            if queued > 1 {
                match self.defer(now, in_flight, max_segments) {
                    Verdict::Send => {}
                    Verdict::WaitForWindow => {
                        limited = true;
                        break;
                    }
                    Verdict::WaitForPeer => break,
                }
            }
            let unit = queued
                .min(quota)
                .min(max_segments)
                .min(self.segments_peer_allows());
            self.send_unit(now, unit.max(1), out);
            sent_any += unit.max(1);
        }
        if self.unsent == 0 && self.fin_wanted && !self.fin_sent {
            self.send_fin(now, out);
            sent_any += 1;
        }
        self.after_sending(now, sent_any, limited);
    }

    fn after_sending(&mut self, now: Instant, sent: u32, limited: bool) {
        let limited = limited || self.board.in_flight() >= self.window.cwnd;
        if sent > 0 || limited {
            self.note_window_use(now, limited);
        }
        if sent > 0 {
            if matches!(self.phase, Phase::Cwr | Phase::Recovery) {
                self.prr_out += sent;
            }
            self.arm_probe(now, false);
        }
    }

    /// Remembers whether the window, not the application, limits sending (RFC 7661's question).
    fn note_window_use(&mut self, now: Instant, limited: bool) {
        let outstanding = self.board.outstanding();
        if self.board.una >= self.cwnd_usage_seq
            || limited
            || (!self.cwnd_limited && outstanding > self.max_outstanding)
        {
            self.cwnd_limited = limited;
            self.max_outstanding = outstanding;
            self.cwnd_usage_seq = self.board.next();
        }
        if self.cwnd_limited
            || (self.window.in_slow_start() && self.window.cwnd < 2 * self.max_outstanding)
        {
            self.used = 0;
            self.used_at = now;
            return;
        }
        self.used = self.used.max(outstanding);
        let rto = Duration::from_millis(self.current_rto_ms());
        if now.since(self.used_at) >= rto {
            self.shrink_unused();
            self.used_at = now;
            self.used = 0;
        }
    }

    /// Whether the peer's window has room for a full segment.
    pub(super) fn may_send_bytes(&self) -> bool {
        self.unsent > 0 && self.segments_peer_allows() > 0
    }

    fn segments_peer_allows(&self) -> u32 {
        self.peer_window.saturating_sub(self.bytes_in_flight) / u32::from(MSS)
    }

    /// Whether a unit may go, or had better wait for the next acknowledgement to grow.
    fn defer(&self, now: Instant, in_flight: u32, max_segments: u32) -> Verdict {
        if self.phase >= Phase::Recovery || now.saturating_since(self.last_departure()) > PATIENCE {
            return Verdict::Send;
        }
        let by_cwnd = self.window.cwnd - in_flight;
        let by_peer = self.segments_peer_allows();
        let limit = by_cwnd.min(by_peer);
        let third = (self.peer_window / u32::from(MSS)).min(self.window.cwnd) / 3;
        if limit >= max_segments || limit >= third {
            return Verdict::Send;
        }
        let Some(first) = self.board.first() else {
            return Verdict::Send;
        };
        // When the next acknowledgement is far, waiting for it costs more than a small unit.
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        let far = Duration::from_nanos(srtt.as_nanos() / 2).min(PATIENCE);
        if (first.at + srtt).saturating_since(now) > far {
            return Verdict::Send;
        }
        if by_cwnd < by_peer {
            Verdict::WaitForWindow
        } else {
            Verdict::WaitForPeer
        }
    }

    /// Bytes per second that 2 windows (early slow start) or 1.2 windows a round trip are.
    pub(super) fn window_rate(&self) -> u64 {
        let srtt8 = u64::from(self.rtt.srtt8()).max(1);
        let window = u64::from(self.window.cwnd.max(self.board.outstanding()));
        let percent = if self.window.cwnd < self.window.ssthresh.limit() / 2 {
            200
        } else {
            120
        };
        u64::from(MSS) * window * percent * 80_000 / srtt8
    }

    /// Segments of a unit: 1 ms at the pacing rate, more on very short paths, at least 2.
    fn unit_segments(&self) -> u32 {
        let size = match &self.pacer {
            Some(_) => self.cc.burst_size(),
            None => BurstSize::DEFAULT,
        };
        let mut bytes = (self.pacing_rate >> size.pacing_shift).min(MAX_UNIT);
        let shift = self.rtt.min_micros() >> 9;
        if shift < 32 && size.pacing_shift == BurstSize::DEFAULT.pacing_shift {
            bytes = (bytes + (MAX_UNIT >> shift)).min(MAX_UNIT);
        }
        let least = size.min_tso_segs;
        u32::try_from(bytes / u64::from(MSS)).map_or(least, |n| n.max(least))
    }

    fn send_unit(&mut self, now: Instant, segments: u32, out: &mut Vec<Segment>) {
        if self.board.in_flight() == 0 && self.counters.sent > 0 {
            let resume = Resume {
                now,
                tick: self.ticks.at(now),
                last_sent_tick: self.ticks.at(self.last_sent),
            };
            self.cc.on_resume(&resume);
            self.restart_model(&resume);
        }
        let was_empty = self.board.outstanding() == 0;
        let unsent = self.unsent;
        for n in 1..=segments {
            let len = self.unsent.min(u64::from(MSS));
            self.unsent -= len;
            let len = u16::try_from(len).unwrap_or(MSS);
            let last_of_all = self.unsent == 0;
            let fin = last_of_all && self.fin_wanted;
            let push = if last_of_all {
                Push::EndOfWrite
            } else if n == segments && segments > 1 {
                Push::EndOfUnit
            } else {
                Push::No
            };
            self.send_one(now, len, push, fin, out);
        }
        self.last_sent = now;
        self.charge(now, unsent - self.unsent);
        if was_empty || self.timer_is(Kind::Probe) {
            self.arm_rto(now);
        }
    }

    fn send_fin(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let was_empty = self.board.outstanding() == 0;
        self.send_one(now, 0, Push::No, true, out);
        self.last_sent = now;
        if was_empty || self.timer_is(Kind::Probe) {
            self.arm_rto(now);
        }
    }

    /// Sends one new segment. A pushed end of a unit is pushed this once, a pushed end of a write
    /// whenever it is sent.
    fn send_one(&mut self, now: Instant, len: u16, push: Push, fin: bool, out: &mut Vec<Segment>) {
        let mut control = Flags::NONE;
        if push == Push::EndOfWrite {
            control |= Flags::PSH;
        }
        if fin {
            control |= Flags::FIN;
            self.fin_sent = true;
        }
        let mut flags = Flags::ACK | control | self.own_count;
        if push == Push::EndOfUnit {
            flags |= Flags::PSH;
        }
        if self.ecn && (len > 0 || self.ect_always) {
            flags |= self.ect;
            if self.cwr_pending && self.accurate.is_none() {
                flags |= Flags::CWR;
                self.cwr_pending = false;
            }
        }
        out.push(Segment {
            len,
            flags,
            ..self.blank(now)
        });
        if self.is_model_based() {
            let (standing, idle) = (self.standing(true), self.board.outstanding() == 0);
            if let Some(sampler) = self.sampler() {
                sampler.on_sent(now, standing, idle);
            }
        }
        self.board.push(Sent {
            at: now,
            len,
            flags: 0,
            control,
        });
        self.bytes_in_flight += u32::from(len);
        self.counters.sent += 1;
    }

    /// Step 10: retransmissions, and for F-RTO new data before them.
    pub(super) fn resend(&mut self, now: Instant, resend: Resend, out: &mut Vec<Segment>) {
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.resend_lost(now, out),
            Resend::NewFirst => {
                self.send_new(now, out);
                if self.board.next() <= self.high_seq {
                    self.frto = false;
                    self.resend_lost(now, out);
                }
            }
        }
    }

    /// Retransmits lost segments, lowest first, as the window allows.
    pub(super) fn resend_lost(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let mut first_resent = false;
        while self.board.in_flight() < self.window.cwnd
            && self.board.resent < self.board.lost
            && !self.held_back(now)
        {
            let Some(seq) = self.board.next_to_resend() else {
                break;
            };
            self.resend_one(now, seq, out);
            first_resent |= seq == self.board.una;
        }
        if first_resent && !self.timer_is(Kind::Reordering) {
            self.arm_full_rto(now);
        }
    }

    /// A time-out retransmits one segment, the first, whatever the window.
    pub(super) fn resend_first(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let first = self.board.una;
        if let Some(seq) = self.board.next_to_resend() {
            if seq == first {
                self.resend_one(now, seq, out);
            } else {
                self.board.keep_to_resend(seq);
            }
        }
    }

    fn resend_one(&mut self, now: Instant, seq: u32, out: &mut Vec<Segment>) {
        self.transmit_again(now, seq, out);
        let sent = self.board.get_mut(seq);
        sent.flags |= RESENT;
        self.board.resent += 1;
        self.board.losses_mut().resent.push_back((seq, now));
        if self.resend_stamp == 0 {
            self.resend_stamp = self.ticks.stamp(now);
        }
        self.undo_resent = self.undo_resent.max(0) + 1;
        if matches!(self.phase, Phase::Cwr | Phase::Recovery) {
            self.prr_out += 1;
        }
    }

    fn transmit_again(&mut self, now: Instant, seq: u32, out: &mut Vec<Segment>) {
        let sent = self.board.get_mut(seq);
        sent.at = now;
        sent.flags |= EVER_RESENT;
        let (len, control) = (sent.len, sent.control);
        if self.is_model_based() {
            let (standing, index) = (self.standing(true), seq - self.board.una);
            if let Some(sampler) = self.sampler() {
                sampler.on_resent(now, standing, index);
            }
        }
        out.push(Segment {
            seq,
            len,
            flags: Flags::ACK | control | self.ect_if_always() | self.own_count,
            ..self.blank(now)
        });
        self.counters.sent += 1;
        self.counters.resent += 1;
        self.last_sent = now;
        self.charge(now, u64::from(len));
    }

    /// Sends a tail loss probe: a new segment, or the last one again. Says whether it could.
    pub(super) fn send_probe(&mut self, now: Instant, out: &mut Vec<Segment>) -> bool {
        self.tlp_resent = false;
        if self.may_send_bytes() {
            self.send_unit(now, 1, out);
            if matches!(self.phase, Phase::Cwr | Phase::Recovery) {
                self.prr_out += 1;
            }
            return true;
        }
        if self.board.outstanding() == 0 {
            return false;
        }
        let last = self.board.next() - 1;
        if self.board.get(last).is(SACKED | LOST) {
            return false;
        }
        self.transmit_again(now, last, out);
        self.tlp_resent = true;
        true
    }
}

/// Why a segment asks to be handed over at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Push {
    No,
    EndOfUnit,
    EndOfWrite,
}

/// What to do with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Send,
    WaitForWindow,
    WaitForPeer,
}
