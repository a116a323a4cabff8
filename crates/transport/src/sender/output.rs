//! Selection and transmission of segments.
//!
//! # Law
//!
//! New data leaves in *bursts* of as many segments as 1 ms at the pacing rate holds but at least
//! two, although nothing is paced: a burst that is not yet full may be deferred to the next
//! acknowledgement. The last segment of a burst carries PSH, which the receiver answers at once.
//! Linux does this even if the device does not segment (TSO), and it decides which packet of a burst
//! meets a full queue.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant};

use super::model::Resend;
use super::state::recovery::Phase;
use super::state::scoreboard::{LOST, SACKED, Sent};
use super::state::timer::Kind;
use super::{Sender, State};
use crate::cc::{BurstSize, Resume};
use crate::profile::{Detection, Reduction};
use crate::segment::{Flags, Segment, whole_segments};

/// Most bytes in one burst.
const MAX_BURST: u32 = 65_300;
/// How long a burst may be deferred.
const MAX_DEFERRAL: Duration = Duration::from_millis(1);

impl Sender {
    /// The application has `bytes` more to send; they are sent as the window allows.
    pub fn write(&mut self, now: Instant, bytes: u64, out: &mut Vec<Segment>) {
        self.note_app_limit();
        self.buffer.write(bytes);
        if self.state == State::Established {
            self.restart_after_idle(now);
            self.send_new(now, out);
            if self.timer.kind().is_none() {
                self.watch_closed_window(now);
            }
        }
    }

    /// The application has nothing more to send: the last segment carries the FIN.
    pub fn close(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.buffer.close();
        if self.state == State::Established {
            self.send_new(now, out);
        }
    }

    /// Sends what the window allows of new data; returns the number of segments.
    #[inline]
    pub(super) fn send_new(&mut self, now: Instant, out: &mut Vec<Segment>) -> u32 {
        if self.is_default {
            self.send_new_as::<true>(now, out)
        } else {
            self.send_new_of_other(now, out)
        }
    }

    /// The same with another profile or other bursts than the default.
    #[cold]
    fn send_new_of_other(&mut self, now: Instant, out: &mut Vec<Segment>) -> u32 {
        self.send_new_as::<false>(now, out)
    }

    /// The same; `DEFAULT` if profile and bursts are the default.
    #[inline]
    pub(super) fn send_new_as<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        out: &mut Vec<Segment>,
    ) -> u32 {
        if !self.buffer.has_pending() {
            return 0;
        }
        if self.buffer.unsent() > 0 && self.pacing_blocks(now) {
            if self.board.in_flight() >= self.window.cwnd {
                self.note_window_use(now, true);
            }
            return 0;
        }
        self.send_pending::<DEFAULT>(now, out)
    }

    /// The same if there is something to send and pacing allows it.
    fn send_pending<const DEFAULT: bool>(&mut self, now: Instant, out: &mut Vec<Segment>) -> u32 {
        let mut sent_any = 0;
        let mut limited = false;
        let max_segments = self.buffer.burst();
        debug_assert_eq!(
            max_segments,
            self.burst_segments::<DEFAULT>(self.burst_size()),
            "the rate has changed"
        );
        // The probe timer replaces the time-out that a burst would start.
        let arms_probe = self.may_probe::<DEFAULT>();
        while self.buffer.unsent() > 0 && !self.pacing_blocks(now) {
            let in_flight = self.pipe::<DEFAULT>();
            let quota = self.window.cwnd.saturating_sub(in_flight);
            let allowed = self.buffer.segments_allowed();
            if quota == 0 || allowed == 0 {
                break;
            }
            let queued = if DEFAULT {
                self.buffer.unsent_segments()
            } else {
                self.unsent_without_nagle()
            };
            if queued == 0 {
                break;
            }
            if queued > 1 {
                match self.defer::<DEFAULT>(now, (quota, allowed), max_segments) {
                    Verdict::Send => {}
                    Verdict::WaitForWindow => {
                        limited = true;
                        break;
                    }
                    Verdict::WaitForPeer => break,
                }
            }
            let half = (self.window.cwnd / 2).max(1);
            let burst = queued.min(quota).min(half).min(max_segments).min(allowed);
            let was_empty = self.board.outstanding() == 0;
            self.send_burst::<DEFAULT>(now, burst.max(1), out);
            if !arms_probe {
                self.after_first(now, was_empty);
            }
            sent_any += burst.max(1);
        }
        if self.buffer.is_fin_due() {
            let was_empty = self.board.outstanding() == 0;
            self.send_fin(now, out);
            if !arms_probe {
                self.after_first(now, was_empty);
            }
            sent_any += 1;
        }
        self.after_sending::<DEFAULT>(now, sent_any, limited);
        sent_any
    }

    /// Unsent segments without a short one that waits for the acknowledgement of the last short one (RFC 896 with
    /// Minshall's modification, draft-minshall-nagle).
    fn unsent_without_nagle(&self) -> u32 {
        self.buffer.unsent_segments() - u32::from(self.holds_short())
    }

    /// Whether a short segment waits.
    pub(super) fn holds_short(&self) -> bool {
        let mss = self.buffer.mss();
        let is_short = !self.buffer.unsent().is_multiple_of(mss.into());
        let outstanding = self.board.una()..self.board.next();
        let is_small = |seq| self.board.get(seq).len < mss;
        self.nagle && is_short && !self.buffer.is_closed() && outstanding.rev().any(is_small)
    }

    fn after_sending<const DEFAULT: bool>(&mut self, now: Instant, sent: u32, limited: bool) {
        let limited = limited || self.board.in_flight() >= self.window.cwnd;
        if sent > 0 || limited {
            self.note_window_use(now, limited);
        }
        if sent > 0 {
            self.recovery.on_sent(sent);
            self.arm_probe::<DEFAULT>(now, false);
        }
    }

    /// Whether a burst may go, or is deferred to the next acknowledgement to grow. The window and the peer allow
    /// `by_cwnd` and `by_peer` segments.
    fn defer<const DEFAULT: bool>(
        &self,
        now: Instant,
        (by_cwnd, by_peer): (u32, u32),
        max_segments: u32,
    ) -> Verdict {
        let limit = by_cwnd.min(by_peer);
        if limit >= max_segments
            || self.recovery.phase() >= Phase::Recovery
            || now.saturating_since(self.last_departure()) > MAX_DEFERRAL
        {
            return Verdict::Send;
        }
        // At least a third of the smaller window, rounded down to whole segments. Compared without a division.
        let least_window = 3 * (limit + 1);
        if self.window.cwnd < least_window || self.buffer.peer_window_is_below(least_window) {
            return Verdict::Send;
        }
        let Some(first) = self.board.first() else {
            return Verdict::Send;
        };
        // When the next acknowledgement is far, waiting for it costs more than a small burst.
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        let mut far = Duration::from_nanos(srtt.as_nanos() / 2);
        let bursts = &self.rules_of::<DEFAULT>().bursts;
        if bursts.as_ref().is_none_or(|bursts| bursts.deferred_1ms) {
            far = far.min(MAX_DEFERRAL);
        }
        if (first.at + srtt).saturating_since(now) > far {
            return Verdict::Send;
        }
        if by_cwnd < by_peer {
            Verdict::WaitForWindow
        } else {
            Verdict::WaitForPeer
        }
    }

    /// The rate of 2 windows (early slow start) or 1.2 windows per round trip, or as the profile says, in bytes/s; before the first
    /// RTT sample that of an RTT of 1/8 µs, which delays nothing.
    pub(super) fn window_rate<const DEFAULT: bool>(&self) -> u64 {
        let srtt8 = self.rtt.srtt8().unwrap_or(NonZeroU32::MIN);
        let window = u64::from(self.window.cwnd.max(self.board.outstanding()));
        let (below, above) = match &self.rules_of::<DEFAULT>().pacing {
            Some(pacing) => pacing.percent,
            None => (200, 120),
        };
        let percent = if self.window.cwnd < self.window.ssthresh.limit() / 2 {
            below
        } else {
            above
        };
        u64::from(self.window.mss()) * window * u64::from(percent) * 80_000 / u64::from(srtt8.get())
    }

    /// Whether the last segment of a burst carries PSH.
    #[inline]
    fn pushes_bursts<const DEFAULT: bool>(&self) -> bool {
        let bursts = &self.rules_of::<DEFAULT>().bursts;
        bursts.as_ref().is_some_and(|bursts| bursts.pushed)
    }

    fn burst_size(&self) -> BurstSize {
        if self.pacing.is_paced() {
            self.cc.pacing(self.window.mss()).1
        } else {
            BurstSize::DEFAULT
        }
    }

    /// Segments of a burst: 1 ms at the pacing rate, more on very short paths, at least 2; 1 without bursts.
    #[inline]
    pub(super) fn burst_segments<const DEFAULT: bool>(&self, size: BurstSize) -> u32 {
        let Some(rules) = &self.rules_of::<DEFAULT>().bursts else {
            return 1;
        };
        let by_rate = self.pacing.rate() >> size.pacing_shift;
        let mut bytes = u32::try_from(by_rate).map_or(MAX_BURST, |bytes| bytes.min(MAX_BURST));
        let shift = self.rtt.min_micros().map_or(u32::MAX, |min| min >> 9);
        if shift < 32
            && size.pacing_shift == BurstSize::DEFAULT.pacing_shift
            && rules.longer_on_short_paths
        {
            bytes = (bytes + (MAX_BURST >> shift)).min(MAX_BURST);
        }
        let whole = whole_segments(bytes, self.window.mss() + size.headers);
        if DEFAULT {
            return whole.max(size.min_tso_segs);
        }
        let limits = self.buffer.limits();
        let least = if self.is_model_based() {
            size.min_tso_segs
        } else {
            limits.least.into()
        };
        limits.of(whole, least)
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "paced connections send one segment at a time: a call would be a tenth of its cost"
    )]
    fn send_burst<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        segments: u32,
        out: &mut Vec<Segment>,
    ) {
        if self.board.in_flight() == 0 && self.counters.sent > 0 {
            let resume = Resume {
                now,
                tick: self.timestamps.tick(now),
                last_sent_tick: self.timestamps.tick(self.buffer.last_sent()),
                snd_nxt: self.board.next(),
            };
            self.cc.on_resume(&resume);
            self.restart_model(&resume);
        }
        let bytes = match self.ecn.data_flags() {
            Some(ecn) if let Some(bytes) = self.buffer.take_full(segments) => {
                self.send_full::<DEFAULT>(now, (segments, bytes), ecn, out)
            }
            _ => self.send_each::<DEFAULT>(now, segments, out),
        };
        self.buffer.set_last_sent(now);
        self.pacing.charge(now, bytes, self.counters.sent);
    }

    /// Sends a burst of `segments`; returns the bytes in it.
    fn send_each<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        segments: u32,
        out: &mut Vec<Segment>,
    ) -> u64 {
        let mut bytes = 0;
        for n in 1..=segments {
            let (len, is_last) = self.buffer.take_segment();
            bytes += u64::from(len);
            let push = if is_last {
                Push::EndOfWrite
            } else if n == segments && segments > 1 && self.pushes_bursts::<DEFAULT>() {
                Push::EndOfBurst
            } else {
                Push::No
            };
            let fin = is_last && self.buffer.is_closed();
            self.send_one(now, len, push, fin, out);
        }
        bytes
    }

    /// The same for full segments with `bytes` in all, none of which ends a write, with the ECN flags `ecn`: they
    /// differ in their number only.
    #[inline]
    fn send_full<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        (segments, bytes): (u32, u32),
        ecn: Flags,
        out: &mut Vec<Segment>,
    ) -> u64 {
        let len = self.buffer.mss();
        let mut segment = Segment {
            len,
            flags: Flags::ACK | self.ecn.own_count() | ecn,
            ..self.blank(now)
        };
        if self.is_model_based() {
            let (totals, in_flight) = (self.totals(), self.board.in_flight() + 1);
            let idle = self.board.outstanding() == 0;
            if let Some(sampler) = self.pacing.sampler() {
                sampler.on_sent_run(now, totals, (in_flight, segments), idle);
            }
        }
        let last = segment.seq + segments - 1;
        while segment.seq < last {
            out.push(segment);
            self.board.push(Sent::new(now, len, Flags::NONE));
            segment.seq += 1;
        }
        if segments > 1 && self.pushes_bursts::<DEFAULT>() {
            segment.flags |= Flags::PSH;
        }
        out.push(segment);
        self.board.push(Sent::new(now, len, Flags::NONE));
        self.buffer.on_sent(bytes);
        self.counters.sent += u64::from(segments);
        self.counters.ect += u64::from(ecn.is_ect()) * u64::from(segments);
        bytes.into()
    }

    fn send_fin(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.send_one(now, 0, Push::No, true, out);
        self.buffer.set_last_sent(now);
    }

    /// New segments were sent: if nothing was outstanding before, the time-out starts.
    fn after_first(&mut self, now: Instant, was_empty: bool) {
        if was_empty || self.timer.is(Kind::Probe) {
            self.arm_rto(now);
        }
    }

    /// Sends one new segment. The PSH of a burst's end is not repeated in a retransmission, that of
    /// a write's end is.
    fn send_one(&mut self, now: Instant, len: u16, push: Push, fin: bool, out: &mut Vec<Segment>) {
        let mut control = Flags::NONE;
        if push == Push::EndOfWrite {
            control |= Flags::PSH;
        }
        if fin {
            control |= Flags::FIN;
            self.buffer.on_fin_sent();
        }
        let mut flags = Flags::ACK | control | self.ecn.own_count();
        if push == Push::EndOfBurst {
            flags |= Flags::PSH;
        }
        if self.ecn.is_on() {
            flags |= self.ecn.new_segment_flags(len > 0);
        }
        out.push(Segment {
            len,
            flags,
            ..self.blank(now)
        });
        if self.is_model_based() {
            let (totals, in_flight) = (self.totals(), self.board.in_flight() + 1);
            let idle = self.board.outstanding() == 0;
            if let Some(sampler) = self.pacing.sampler() {
                sampler.on_sent(now, totals, in_flight, idle);
            }
        }
        self.board.push(Sent::new(now, len, control));
        self.buffer.on_sent(len.into());
        self.counters.sent += 1;
        self.counters.ect += u64::from(flags.is_ect());
    }

    /// A segment with the fields that all segments after the handshake share.
    pub(super) fn blank(&self, now: Instant) -> Segment {
        Segment {
            seq: self.board.next(),
            ts_val: self.timestamps.stamp(now),
            ts_ecr: self.timestamps.echo(),
            window: 65_536,
            ..Segment::EMPTY
        }
    }

    /// Retransmissions, and for F-RTO new data before them.
    pub(super) fn resend<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        resend: Resend,
        out: &mut Vec<Segment>,
    ) {
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.resend_lost::<DEFAULT>(now, out),
            Resend::NewFirst => {
                self.send_new_as::<DEFAULT>(now, out);
                if self.board.next() <= self.recovery.high_seq() {
                    self.recovery.set_frto(false);
                    self.resend_lost::<DEFAULT>(now, out);
                }
            }
        }
    }

    /// Retransmits lost segments, lowest first, as the window allows.
    pub(super) fn resend_lost<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        out: &mut Vec<Segment>,
    ) {
        let mut first_resent = false;
        while (self.pipe::<DEFAULT>() < self.window.cwnd || self.must_resend::<DEFAULT>())
            && self.board.has_lost_to_resend()
            && !self.pacing_blocks(now)
        {
            let Some(seq) = self.board.next_to_resend() else {
                break;
            };
            self.resend_one(now, seq, out);
            first_resent |= seq == self.board.una();
        }
        if first_resent && !self.timer.is(Kind::Reordering) {
            self.arm_full_rto(now);
        }
    }

    /// Segments that count as in the network when more are to be sent.
    #[inline]
    fn pipe<const DEFAULT: bool>(&self) -> u32 {
        let (in_flight, lost) = (self.board.in_flight(), self.board.lost());
        if lost > 0
            && self.rules_of::<DEFAULT>().detection == Detection::Sack1
            && self.recovery.phase() == Phase::Recovery
        {
            return in_flight + lost;
        }
        in_flight
    }

    /// Whether the fast retransmit is due, whatever the window; proportional rate reduction allows it by itself.
    fn must_resend<const DEFAULT: bool>(&self) -> bool {
        !matches!(self.rules_of::<DEFAULT>().reduction, Reduction::Prr(_))
            && self.recovery.phase() == Phase::Recovery
            && self.recovery.has_not_sent()
    }

    /// A time-out retransmits one segment, the first, whatever the window.
    pub(super) fn resend_first(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let first = self.board.una();
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
        self.board.mark_resent(now, seq);
        self.undo.on_resent(self.timestamps.stamp(now));
        self.recovery.on_sent(1);
    }

    fn transmit_again(&mut self, now: Instant, seq: u32, out: &mut Vec<Segment>) {
        if self.board.in_flight() == 0 {
            self.cc.on_lone_resend(self.board.next());
        }
        let Sent { len, control, .. } = self.board.retransmit(now, seq);
        if self.is_model_based() {
            let (totals, in_flight) = (self.totals(), self.board.in_flight() + 1);
            let index = seq - self.board.una();
            if let Some(sampler) = self.pacing.sampler() {
                sampler.on_resent(totals, in_flight, index);
            }
        }
        let ect = self.ecn.ect_if_always();
        out.push(Segment {
            seq,
            len,
            flags: Flags::ACK | control | ect | self.ecn.own_count(),
            ..self.blank(now)
        });
        self.counters.sent += 1;
        self.counters.ect += u64::from(ect.is_ect());
        self.counters.resent += 1;
        self.buffer.set_last_sent(now);
        self.pacing.charge(now, len.into(), self.counters.sent);
    }

    /// Sends a tail loss probe: a new segment, or the last one again. Returns whether it was a
    /// retransmission; `None`: nothing could be sent.
    pub(super) fn send_probe(&mut self, now: Instant, out: &mut Vec<Segment>) -> Option<bool> {
        if self.buffer.may_send() {
            let was_empty = self.board.outstanding() == 0;
            self.send_burst::<false>(now, 1, out);
            self.after_first(now, was_empty);
            self.recovery.on_sent(1);
            return Some(false);
        }
        if self.board.outstanding() == 0 {
            return None;
        }
        let last = self.board.next() - 1;
        if self.board.get(last).is(SACKED | LOST) {
            return None;
        }
        self.transmit_again(now, last, out);
        Some(true)
    }
}

/// Whether a segment carries PSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Push {
    No,
    EndOfBurst,
    EndOfWrite,
}

/// What to do with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Send,
    WaitForWindow,
    WaitForPeer,
}

// Pacing of transmissions.
//
// Source:
//
// Linux 6.1's internal pacing (its facts; what `sch_fq` does for a socket that asks for a rate):
// an exact timer, not the timer wheel.

impl Sender {
    /// Whether pacing forbids sending now; if so the timer will expire when it does not.
    #[inline]
    pub(super) fn pacing_blocks(&mut self, now: Instant) -> bool {
        match self.pacing.pacer_mut() {
            Some(pacer) => pacer.blocks(now),
            None => false,
        }
    }

    /// When the pacing timer is due.
    #[inline]
    pub(super) fn departure(&self) -> Option<Instant> {
        self.pacing.pacer()?.due()
    }

    /// When this connection last sent, or, if paced, could have sent again.
    pub(super) fn last_departure(&self) -> Instant {
        match self.pacing.pacer() {
            Some(pacer) => pacer.next(),
            None => self.buffer.last_sent(),
        }
    }

    pub(super) fn on_departure(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if let Some(pacer) = self.pacing.pacer_mut() {
            pacer.stop_waiting();
        }
        if self.board.has_lost_to_resend() {
            self.resend_lost::<false>(now, out);
        }
        self.send_new(now, out);
    }
}
