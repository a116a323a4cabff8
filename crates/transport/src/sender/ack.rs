//! One acknowledgement, step by step.

use sojourn_net::Instant;

use super::scoreboard::{EVER_RESENT, LOST, Losses, RESENT, SACKED};
use super::timers::Kind;
use super::{LONGEST, Phase, Sender, State, micros};
use crate::cc::{Ack, EcnFeedback};
use crate::clock::before;
use crate::segment::{Flags, MSS, Segment};

/// What one acknowledgement turned out to say.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
pub(super) struct Findings {
    pub(super) una_advanced: bool,
    /// Something is newly held out of order.
    pub(super) sacked: bool,
    pub(super) ece: bool,
    pub(super) dsack: bool,
    /// A DSACK of the tail loss probe.
    pub(super) dsack_of_probe: bool,
    /// A segment sent once, before the episode began, was delivered.
    pub(super) original_delivered: bool,
    /// Retransmitted data was acknowledged.
    pub(super) resent_acked: bool,
    pub(super) window_changed: bool,
    pub(super) rearm: bool,
    /// A retransmission was found lost.
    pub(super) resend_lost: bool,
    delivered_before: u64,
    lost_before: u64,
    pub(super) in_flight_before: u32,
    /// What the controller is told of the RTT, in µs.
    pub(super) ca_rtt: Option<u32>,
    /// The peer may have waited with this acknowledgement.
    pub(super) maybe_delayed: bool,
    /// Send times of the oldest and newest never-resent segments newly acknowledged, and newly
    /// held.
    acked_sent: Option<(Instant, Instant)>,
    sacked_sent: Option<(Instant, Instant)>,
    /// The lowest never-resent segment delivered below the highest one held.
    reordered: Option<u32>,
    /// ECN feedback, if ECN was negotiated.
    pub(super) ecn: Option<EcnFeedback>,
}

impl Findings {
    /// Of an event that is no acknowledgement, when `lost_before` segments had been deemed lost.
    pub(super) const fn nothing(lost_before: u64) -> Self {
        Self {
            una_advanced: false,
            sacked: false,
            ece: false,
            dsack: false,
            dsack_of_probe: false,
            original_delivered: false,
            resent_acked: false,
            window_changed: false,
            rearm: false,
            resend_lost: false,
            delivered_before: 0,
            lost_before,
            in_flight_before: 0,
            ca_rtt: None,
            maybe_delayed: false,
            acked_sent: None,
            sacked_sent: None,
            reordered: None,
            ecn: None,
        }
    }

    pub(super) const fn newly_lost(&self, lost_total: u64) -> u64 {
        lost_total - self.lost_before
    }
}

/// What to send after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    Nothing,
    Lost,
    /// New data first, as F-RTO asks.
    NewFirst,
}

impl Sender {
    pub(super) fn on_ack(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        if seg.ack > self.board.next() {
            return;
        }
        if seg.flags.has(Flags::SYN) {
            // The peer has not heard that the connection stands, and may give it up.
            self.confirm(now, out);
            return;
        }
        let old = seg.ack < self.board.una;
        let (mut ece, mut marked) = (false, 0);
        if self.ecn {
            marked = self.newly_marked(seg, old);
            ece = marked > 0 || self.accurate.is_none() && seg.flags.has(Flags::ECE);
        }
        let mut found = Findings {
            una_advanced: seg.ack > self.board.una,
            ece,
            delivered_before: self.delivered,
            in_flight_before: self.board.in_flight(),
            ..Findings::nothing(self.lost_total)
        };
        // A timestamp never goes back (RFC 7323 §4.3), though an overtaken segment carries one.
        if !before(seg.ts_val, self.peer_stamp) {
            self.peer_stamp = seg.ts_val;
        }
        if found.una_advanced {
            self.timeouts_in_row = 0;
        }
        if !old && seg.window != self.peer_window {
            found.window_changed = found.una_advanced || seg.window > self.peer_window;
            self.peer_window = seg.window;
        }
        self.rack.advanced = false;
        if let Some(sampler) = self.sampler() {
            sampler.begin();
        }
        if seg.sack_count() > 0 {
            self.read_sacks(now, seg, &mut found);
        }
        let mut resend = Resend::Nothing;
        if old {
            if found.sacked || found.dsack {
                resend = self.judge(now, seg, &mut found);
            }
        } else {
            self.take_acknowledged(now, seg, &mut found);
            self.adapt_reordering_window(&found);
            if self.ecn {
                let delivered = self.newly_delivered(&found);
                let marked = self.surely_marked(seg, delivered, marked);
                if self.accurate.is_some() {
                    self.counters.marked += u64::from(marked);
                }
                let feedback = EcnFeedback {
                    snd_una: self.board.una,
                    snd_nxt: self.board.next(),
                    delivered,
                    marked,
                };
                self.cc.on_ecn_feedback(&feedback);
                found.ecn = Some(feedback);
            }
            self.check_probe(seg.ack, &found);
            let quiet = self.phase == Phase::Open
                && (found.una_advanced || found.window_changed)
                && !(found.sacked || found.ece || found.dsack);
            if !quiet {
                resend = self.judge(now, seg, &mut found);
            }
            if found.rearm {
                self.arm_after_progress(now);
            }
            self.control_congestion(now, &found);
            self.set_pacing_rate();
        }
        if self.timer_is(Kind::Persist) {
            self.on_window_answer();
        }
        self.resend(now, resend, out);
        self.send_new(now, out);
        if self.timer.kind().is_none() {
            self.watch_closed_window(now);
        }
        if self.board.outstanding() == 0 && self.fin_sent {
            self.state = State::Done;
            self.timer.cancel();
        }
    }

    /// Marks what the SACK blocks say the peer holds.
    fn read_sacks(&mut self, now: Instant, seg: &Segment, found: &mut Findings) {
        let mut blocks = seg.sack_blocks();
        if seg.flags.has(Flags::DSACK) {
            let (dup, rest) = blocks.split_first().expect("a DSACK is a block");
            self.read_dsack(dup.start, dup.end, found);
            blocks = rest;
        }
        let mut losses = self.board.take_losses();
        let high_before = losses.held.end().unwrap_or(self.board.una);
        let (una, next) = (self.board.una, self.board.next());
        for block in blocks {
            let (start, end) = (block.start.max(una), block.end.min(next));
            if start < end {
                // The set is asked first and the board told after: both are needed whole.
                let mut held = std::mem::take(&mut losses.held);
                held.insert(start, end, |s, e| {
                    for seq in s..e {
                        self.mark_held(now, seq, high_before, found);
                    }
                });
                losses.held = held;
            }
        }
        self.board.restore(losses);
    }

    fn mark_held(&mut self, now: Instant, seq: u32, high_before: u32, found: &mut Findings) {
        let high_seq = self.high_seq;
        let sent = self.board.get_mut(seq);
        let (at, flags) = (sent.at, sent.flags);
        sent.flags |= SACKED;
        if flags & RESENT != 0 {
            // Without LOST the retransmission is believed to be in flight still.
            if flags & LOST != 0 {
                sent.flags &= !(LOST | RESENT);
                self.board.lost -= 1;
                self.board.resent -= 1;
            }
        } else {
            if flags & EVER_RESENT == 0 {
                if seq < high_before {
                    found.reordered = Some(found.reordered.map_or(seq, |r| r.min(seq)));
                }
                found.original_delivered |= seq < high_seq;
                let (oldest, _) = found.sacked_sent.unwrap_or((at, at));
                found.sacked_sent = Some((oldest, at));
            }
            if flags & LOST != 0 {
                self.board.get_mut(seq).flags &= !LOST;
                self.board.lost -= 1;
            }
        }
        self.board.sacked += 1;
        self.delivered += 1;
        let index = seq - self.board.una;
        if let Some(sampler) = self.sampler() {
            sampler.on_held(index, at, seq + 1);
        }
        found.sacked = true;
        let min = self.rtt.min_micros();
        self.rack
            .advance(now, at, seq + 1, flags & EVER_RESENT != 0, min);
    }

    fn read_dsack(&mut self, start: u32, end: u32, found: &mut Findings) {
        found.dsack = true;
        let count = end - start;
        self.delivered += u64::from(count);
        if self.tlp_resent && self.tlp_high_seq == Some(end) {
            found.dsack_of_probe = true;
        } else {
            self.rack.dsack_seen = true;
        }
        // Only retransmissions of this episode are evidence.
        if self.undo_resent > 0 && self.undo_marker.is_some_and(|marker| end > marker) {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            self.undo_resent = (self.undo_resent - count).max(0);
        }
    }

    /// Removes what is acknowledged, takes RTT samples and tells the controller.
    fn take_acknowledged(&mut self, now: Instant, seg: &Segment, found: &mut Findings) {
        let high_before = self.board.losses().and_then(|l| l.held.end());
        let held_before = self.board.sacked > 0;
        let acked = seg.ack - self.board.una;
        let mut last_len = 0;
        for _ in 0..acked {
            let seq = self.board.una;
            let Some(sent) = self.board.pop_first() else {
                break;
            };
            self.bytes_in_flight -= u32::from(sent.len);
            last_len = sent.len;
            if let Some(sampler) = self.sampler() {
                sampler.on_acked(sent.at, seq + 1, !sent.is(SACKED));
            }
            if sent.is(EVER_RESENT) {
                found.resent_acked = true;
            } else if !sent.is(SACKED) {
                let (oldest, _) = found.acked_sent.unwrap_or((sent.at, sent.at));
                found.acked_sent = Some((oldest, sent.at));
                if high_before.is_some_and(|high| seq < high) {
                    found.reordered = Some(found.reordered.map_or(seq, |r| r.min(seq)));
                }
                found.original_delivered |= seq < self.high_seq;
            }
            if !sent.is(SACKED) {
                self.delivered += 1;
                let spurious =
                    sent.is(EVER_RESENT) && before(seg.ts_ecr, self.ticks.stamp(sent.at));
                if !spurious {
                    let min = self.rtt.min_micros();
                    self.rack
                        .advance(now, sent.at, seq + 1, sent.is(EVER_RESENT), min);
                }
            }
        }
        if acked > 0 {
            self.board.trim();
            found.rearm = true;
        }
        if acked > 0 {
            self.measure_pipe(now, acked);
        }
        let delayed = acked == 1 && last_len < crate::MSS && !held_before;
        let ca_rtt = self.take_rtt(now, seg, acked, delayed, found);
        found.ca_rtt = ca_rtt;
        found.maybe_delayed = delayed;
        self.note_reordering(high_before, found);
        let mut facts = self.facts(now, ca_rtt);
        facts.one_way_ms = Some(seg.ts_val.wrapping_sub(seg.ts_ecr));
        self.cc.on_ack(&mut self.window, &facts);
        if let Some(hystart) = &mut self.hystart {
            hystart.on_ack(&mut self.window, &facts);
            if self.window.ssthresh.is_set() {
                self.hystart = None;
            }
        }
    }

    /// At most one sample an acknowledgement; returns what the controller is told.
    fn take_rtt(
        &mut self,
        now: Instant,
        seg: &Segment,
        acked: u32,
        delayed: bool,
        found: &mut Findings,
    ) -> Option<u32> {
        let mut sample = None;
        let mut ca_rtt = None;
        if let Some((oldest, newest)) = found.acked_sent
            && !found.resent_acked
        {
            let rtt = micros(now.since(newest));
            sample = Some(micros(now.since(oldest)));
            ca_rtt = Some(rtt);
            self.counters.rtt_samples += 1;
            self.counters.rtt_micros += u64::from(rtt);
        }
        if let Some((oldest, newest)) = found.sacked_sent {
            sample = sample.or(Some(micros(now.since(oldest))));
            ca_rtt = Some(micros(now.since(newest)));
            // The time-out counts from the first segment unless that is older than the sample.
            let newer_than_first = self.board.first().is_some_and(|first| oldest > first.at);
            found.rearm |= !newer_than_first && acked == 0 && self.board.first().is_some();
        }
        if sample.is_none() && acked > 0 {
            let ms = self.ticks.stamp(now).wrapping_sub(seg.ts_ecr).max(1);
            if ms < LONGEST / 1_000 {
                sample = Some(ms * 1_000);
                ca_rtt = sample;
            }
        }
        let m = sample?;
        if let Some(rtt) = ca_rtt
            && !(delayed && rtt > self.rtt.min_micros())
        {
            self.rtt.sample_min(now, rtt);
        }
        self.rtt.sample(m, self.board.una, self.board.next());
        self.backoff = 0;
        ca_rtt
    }

    fn note_reordering(&mut self, high_before: Option<u32>, found: &Findings) {
        let high = self
            .board
            .losses()
            .and_then(|l| l.held.end())
            .or(high_before);
        if let (Some(low), Some(high)) = (found.reordered, high)
            && low < high
        {
            self.reordering = self.reordering.max((high - low).min(300));
            self.rack.reordering_seen = true;
        }
    }

    pub(super) fn facts(&self, now: Instant, rtt_micros: Option<u32>) -> Ack {
        Ack {
            now,
            tick: self.ticks.at(now),
            rtt_micros,
            one_way_ms: None,
            snd_una: self.board.una,
            snd_nxt: self.board.next(),
            pacing_rate: self.pacing_rate,
        }
    }

    /// Step 9: the window moves by reduction, by growth or not at all.
    fn control_congestion(&mut self, now: Instant, found: &Findings) {
        let delivered = self.newly_delivered(found);
        if self.is_model_based() {
            self.update_model(now, delivered, found);
            return;
        }
        if matches!(self.phase, Phase::Cwr | Phase::Recovery) {
            self.reduce(delivered, found);
            return;
        }
        let progress = found.una_advanced || (self.reordering > 3 && found.sacked);
        if progress && self.growth_allowed() {
            let facts = self.facts(now, None);
            let counted = match &mut self.hystart {
                Some(hystart) => hystart.counts(delivered),
                None => delivered,
            };
            let acked = u64::from(counted) * u64::from(MSS);
            self.cc.grow(&mut self.window, &facts, acked);
        }
    }

    fn newly_delivered(&self, found: &Findings) -> u32 {
        u32::try_from(self.delivered - found.delivered_before).unwrap_or(u32::MAX)
    }

    fn growth_allowed(&self) -> bool {
        self.cwnd_limited
            || (self.window.in_slow_start()
                && self.window.cwnd < 2 * self.max_outstanding
                && self.is_validated())
    }

    /// Ends the episode of a tail loss probe when it is answered.
    fn check_probe(&mut self, ack: u32, found: &Findings) {
        let Some(high) = self.tlp_high_seq.filter(|&high| ack >= high) else {
            return;
        };
        if !self.tlp_resent || found.dsack_of_probe {
            self.tlp_high_seq = None;
        } else if ack > high {
            // The probe repaired a loss that nothing else will tell of: one reduction.
            self.begin_reduction();
            if self.is_model_based() {
                // Its window is its own; Linux's DCTCP answers here as it answers marks.
                self.answer_loss();
            }
            self.phase = Phase::Cwr;
            self.end_reduction();
            self.keep_open();
        } else if !(found.una_advanced || found.window_changed || found.sacked) {
            self.tlp_high_seq = None;
        }
    }

    /// Arms the probe timer if it may, else the retransmission timer.
    fn arm_after_progress(&mut self, now: Instant) {
        if !self.arm_probe(now, true) {
            self.arm_rto(now);
        }
    }

    /// Takes the loss queues for a walk over the board.
    pub(super) fn with_losses<T>(&mut self, walk: impl FnOnce(&mut Self, &mut Losses) -> T) -> T {
        let mut losses = self.board.take_losses();
        let result = walk(self, &mut losses);
        self.board.restore(losses);
        result
    }

    pub(super) fn timer_is(&self, kind: Kind) -> bool {
        self.timer.kind() == Some(kind)
    }
}
