//! Processing of one acknowledgement.

use std::num::NonZeroU32;

use sojourn_net::{Duration, Instant};

use super::model::{Findings, News, Resend};
use super::params::OnCe;
use super::state::recovery::Phase;
use super::state::scoreboard::{EVER_RESENT, PlainRun, SACKED};
use super::state::timer::Kind;
use super::{Sender, State};
use crate::cc::{Ack, Echo, EcnFeedback, Settled, Threshold};
use crate::clock::{MAX_MICROS, before, micros};
use crate::profile::RttRule;
use crate::segment::{Flags, Segment};

impl Sender {
    /// A segment from the peer arrived.
    pub fn on_segment(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        match self.state {
            State::Established if !self.is_default => self.on_other_ack(now, seg, out),
            State::Established if self.is_basic() => match self.plain_run_of::<true>(seg) {
                Some(run) => self.on_plain_ack::<true>(now, seg, &run, out),
                None => self.on_ack::<true>(now, seg, out),
            },
            State::Established if self.recovery.phase() == Phase::Open => {
                self.on_paced_ack(now, seg, out);
            }
            State::Established => self.on_ack::<true>(now, seg, out),
            State::Connecting if seg.flags.has(Flags::SYN) => self.on_syn_ack(now, seg, out),
            State::Connecting | State::Closed | State::Done | State::Aborted => {}
        }
    }

    /// An acknowledgement of a connection with another profile or other bursts than the default arrived.
    #[cold]
    fn on_other_ack(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        self.on_ack::<false>(now, seg, out);
    }

    /// An acknowledgement arrived; `DEFAULT` if profile and bursts are the default.
    pub(super) fn on_ack<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        seg: &Segment,
        out: &mut Vec<Segment>,
    ) {
        if seg.ack > self.board.next() {
            return;
        }
        if seg.flags.has(Flags::SYN) {
            // The peer does not know that the connection is established, and may give it up.
            self.confirm(now, seg, out);
            return;
        }
        let old = seg.ack < self.board.una();
        let (mut ece, mut marked) = (false, 0);
        if self.ecn.is_on() {
            let overtaken = old || self.timestamps.is_overtaken(seg.ts_val);
            let first = self.board.una() == 0 && seg.ack > 0;
            (marked, ece) = (self.ecn).read_echo(seg, (overtaken, first), self.window.mss());
        }
        let mut found = Findings {
            una_advanced: seg.ack > self.board.una(),
            ece,
            delivered_before: self.board.delivered(),
            in_flight_before: self.board.in_flight(),
            ..Findings::nothing(self.board.lost_total())
        };
        self.timestamps.on_segment(seg.ts_val);
        if found.una_advanced {
            self.timer.reset_timeouts();
        }
        if !old && seg.window != self.buffer.peer_window() {
            found.window_changed = found.una_advanced || seg.window > self.buffer.peer_window();
            self.buffer.set_peer_window(seg.window);
        }
        self.rack.begin_ack();
        if let Some(sampler) = self.pacing.sampler() {
            sampler.begin_ack();
        }
        // Of what was sacked before: only that makes a segment acknowledged now a late one.
        let high_before = self.board.sacked_end();
        if seg.sack_count() > 0 {
            self.read_sacks(now, seg, &mut found);
        }
        let mut resend = Resend::Nothing;
        if old {
            if found.sacked || found.dsack {
                resend = self.update_phase::<DEFAULT>(now, seg, &mut found);
            }
        } else {
            let rtt = self.take_acknowledged::<DEFAULT>(now, seg, high_before, &mut found);
            let (una, next) = (self.board.una(), self.board.next());
            self.rack.adapt_window(found.dsack, una, next);
            if self.ecn.is_on() {
                let delivered = self.newly_delivered(&found);
                let marked = self.ecn.presumed_marked(seg, delivered, marked);
                if self.ecn.is_accurate() {
                    self.counters.marked += u64::from(marked);
                }
                let feedback = EcnFeedback {
                    snd_una: una,
                    snd_nxt: next,
                    delivered,
                    marked,
                };
                self.cc.on_ecn_feedback(&feedback);
                found.ecn = Some(feedback);
            }
            self.check_probe(now, seg.ack, &found);
            let quiet = self.recovery.phase() == Phase::Open
                && (found.una_advanced || found.window_changed)
                && !(found.sacked || found.ece || found.dsack);
            if !quiet {
                resend = self.update_phase::<DEFAULT>(now, seg, &mut found);
            }
            if found.rearm {
                self.arm_after_progress::<DEFAULT>(now);
            }
            self.control_congestion::<DEFAULT>(now, rtt, &found);
            self.set_pacing_rate_as::<DEFAULT>();
        }
        if self.timer.is(Kind::Persist) {
            self.on_window_answer(now);
        }
        self.resend::<DEFAULT>(now, resend, out);
        self.send_new_as::<DEFAULT>(now, out);
        if self.timer.kind().is_none() {
            self.watch_closed_window(now);
        }
        if self.board.outstanding() == 0 && self.buffer.is_fin_sent() {
            self.state = State::Done;
            self.timer.cancel();
        }
    }

    /// Removes what is acknowledged, takes RTT samples and passes them to the controller. Returns the sample that it
    /// passed.
    fn take_acknowledged<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        seg: &Segment,
        high_before: Option<u32>,
        found: &mut Findings,
    ) -> Option<u32> {
        let sacked_before = self.board.sacked() > 0;
        let acked = seg.ack - self.board.una();
        let mut last_len = 0;
        while self.board.una() < seg.ack {
            let seq = self.board.una();
            if let Some(run) = self.board.plain_run(seg.ack - seq) {
                self.board.pop_run(&run);
                if let Some(sampler) = self.pacing.sampler() {
                    sampler.on_delivered_run(run.count, run.newest, seq + run.count);
                }
                self.take_plain(now, seq, &run, high_before, found);
                last_len = run.last_len;
                continue;
            }
            if let Some(run) = self.board.sacked_run(seg.ack - seq) {
                self.board.pop_sacked_run(&run);
                self.buffer.on_acked(run.bytes);
                if let Some(sampler) = self.pacing.sampler() {
                    sampler.forget(run.count);
                }
                last_len = run.last_len;
                continue;
            }
            let Some(sent) = self.board.pop_first() else {
                break;
            };
            self.buffer.on_acked(sent.len.into());
            last_len = sent.len;
            if let Some(sampler) = self.pacing.sampler() {
                if !sent.is(SACKED) {
                    sampler.on_delivered(0, sent.at, seq + 1);
                }
                sampler.forget(1);
            }
            if sent.is(EVER_RESENT) {
                found.resent_acked = true;
            } else if !sent.is(SACKED) {
                let (oldest, _) = found.acked_sent.unwrap_or((sent.at, sent.at));
                found.acked_sent = Some((oldest, sent.at));
                if high_before.is_some_and(|high| seq < high) {
                    found.note_reordered(seq);
                }
                found.original_delivered |= seq < self.recovery.high_seq();
            }
            if !sent.is(SACKED) {
                let spurious =
                    sent.is(EVER_RESENT) && before(seg.ts_ecr, self.timestamps.stamp(sent.at));
                if !spurious {
                    let min = self.rtt.min_micros();
                    self.rack
                        .advance(now, (sent.at, seq + 1), sent.is(EVER_RESENT), min);
                }
            }
        }
        if acked > 0 {
            self.board.trim();
            found.rearm = true;
            self.measure_pipe(now, acked);
        }
        let delayed = acked == 1 && u32::from(last_len) < self.window.mss() && !sacked_before;
        let ca_rtt = self.take_rtt::<DEFAULT>(now, seg, acked, delayed, found);
        found.maybe_delayed = delayed;
        self.note_reordering(high_before, found);
        let facts = Ack {
            echo: Some(Echo {
                ts_val: seg.ts_val,
                ts_ecr: seg.ts_ecr,
            }),
            acked,
            ..self.facts(now, ca_rtt, found)
        };
        self.cc.on_ack(&mut self.window, &facts);
        if self.slow_start.is_some() {
            let delivered = self.newly_delivered(found);
            self.on_slow_start_ack(facts, Settled { delivered, lost: 0 });
        }
        ca_rtt
    }

    /// The slow-start exit heuristic processes an acknowledgement. `ack` is a copy: a reference would force it into memory for CUBIC
    /// too.
    #[inline(never)]
    fn on_slow_start_ack(&mut self, ack: Ack, settled: Settled) {
        if let Some(exit) = &mut self.slow_start
            && exit.on_ack(&mut self.window, &ack, settled)
        {
            self.slow_start = None;
        }
    }

    /// Takes segments that were sent once and are acknowledged in order, the first of them `seq`.
    #[inline]
    fn take_plain(
        &mut self,
        now: Instant,
        seq: u32,
        run: &PlainRun,
        high_before: Option<u32>,
        found: &mut Findings,
    ) {
        self.buffer.on_acked(run.bytes);
        let oldest = found.acked_sent.map_or(run.oldest, |(oldest, _)| oldest);
        found.acked_sent = Some((oldest, run.newest));
        if high_before.is_some_and(|high| seq < high) {
            found.note_reordered(seq);
        }
        found.original_delivered |= seq < self.recovery.high_seq();
        // The last was sent last: only it can be the newest delivery.
        let rtt = micros(now.since(run.newest));
        self.rack.on_delivered(rtt, (run.newest, seq + run.count));
    }

    /// At most one sample per acknowledgement; returns that for the controller.
    fn take_rtt<const DEFAULT: bool>(
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
            sample = Some(rtt_of_oldest(now, oldest, (newest, rtt)));
            ca_rtt = Some(rtt);
            self.counters.rtt_samples += 1;
            self.counters.rtt_micros += u64::from(rtt);
            self.rtt.sample_max(rtt);
        }
        if let Some((oldest, newest)) = found.sacked_sent {
            let rtt = micros(now.since(newest));
            if sample.is_none() {
                sample = Some(rtt_of_oldest(now, oldest, (newest, rtt)));
            }
            ca_rtt = Some(rtt);
            self.rtt.sample_max(rtt);
            // The time-out counts from the first segment unless that is older than the sample.
            let newer_than_first = self.board.first().is_some_and(|first| oldest > first.at);
            found.rearm |= !newer_than_first && acked == 0 && self.board.first().is_some();
        }
        if sample.is_none() && acked > 0 {
            let ms = self.timestamps.stamp(now).wrapping_sub(seg.ts_ecr).max(1);
            if ms < MAX_MICROS / 1_000 {
                sample = Some(ms * 1_000);
                ca_rtt = sample;
            }
        }
        let mut m = sample?;
        if !DEFAULT {
            (m, ca_rtt) = self.as_measured(now, seg, acked, (m, ca_rtt?), found)?;
        }
        let min = self.rtt.min_micros();
        if let Some(rtt) = ca_rtt
            && !(delayed && min.is_some_and(|min| rtt > min))
        {
            self.rtt.sample_min(now, rtt);
        }
        self.rtt.sample(m, self.board.una(), self.board.next());
        self.timer.reset_backoff();
        ca_rtt
    }

    /// The samples for the time-out and for the controller as this implementation measures them; `None`: it takes none.
    /// `exact` are the same in µs.
    #[cold]
    fn as_measured(
        &self,
        now: Instant,
        seg: &Segment,
        acked: u32,
        exact: (u32, u32),
        found: &mut Findings,
    ) -> Option<(u32, Option<u32>)> {
        let in_ticks = |micros: u32| {
            let sent = now.saturating_sub(Duration::from_micros(micros.into()));
            let ticks = self.timestamps.tick(now) - self.timestamps.tick(sent);
            u32::try_from(1_000 * ticks.max(1)).unwrap_or(MAX_MICROS)
        };
        let rule = self.rules().rtt;
        if acked == 0 && matches!(rule, RttRule::Timestamps | RttRule::NoSacks) {
            found.rearm = false;
            return None;
        }
        Some(match rule {
            RttRule::Micros | RttRule::NoSacks => (exact.0, Some(exact.1)),
            RttRule::Ticks => (in_ticks(exact.0), Some(in_ticks(exact.1))),
            RttRule::Timestamps => {
                let ms = self.timestamps.stamp(now).wrapping_sub(seg.ts_ecr);
                let ms = ms.clamp(1, MAX_MICROS / 1_000);
                (1_000 * ms, Some(in_ticks(exact.1)))
            }
        })
    }

    fn note_reordering(&mut self, high_before: Option<u32>, found: &Findings) {
        if let Some(low) = found.reordered
            && let Some(high) = self.board.sacked_end().or(high_before)
            && low < high
        {
            self.rack.on_reordering(high - low);
        }
    }

    pub(super) fn facts(&self, now: Instant, rtt_micros: Option<u32>, found: &Findings) -> Ack {
        Ack {
            now,
            tick: self.timestamps.tick(now),
            rtt_micros,
            echo: None,
            snd_una: self.board.una(),
            snd_nxt: self.board.next(),
            prior_in_flight: found.in_flight_before,
            acked: 0,
            srtt8: self.rtt.srtt8().map_or(0, NonZeroU32::get),
            pacing_rate: self.pacing.rate(),
        }
    }

    /// Step 9: the window moves by reduction, by growth or not at all.
    fn control_congestion<const DEFAULT: bool>(
        &mut self,
        now: Instant,
        rtt: Option<u32>,
        found: &Findings,
    ) {
        let delivered = self.newly_delivered(found);
        if self.is_model_based() {
            let lost = found.newly_lost(self.board.lost_total());
            let news = News {
                delivered,
                lost: u32::try_from(lost).unwrap_or(u32::MAX),
                maybe_delayed: found.maybe_delayed,
                ecn: found.ecn,
            };
            let facts = self.facts(now, rtt, found);
            self.update_model(&facts, &news);
            return;
        }
        if self.recovery.is_reducing() {
            self.reduce::<DEFAULT>(delivered, found);
            return;
        }
        let progress = found.una_advanced || (self.rack.is_reordering() && found.sacked);
        if !progress {
            return;
        }
        let facts = self.facts(now, None, found);
        if self.usage.allows_growth(&self.window) {
            let per_ack =
                self.rules_of::<DEFAULT>().slow_start_per_ack && self.window.in_slow_start();
            let counted = match &mut self.slow_start {
                Some(exit) => exit.counts(delivered),
                None if per_ack => 1,
                None => delivered,
            };
            let acked = self.window.bytes_of(counted);
            self.cc.grow(&mut self.window, &facts, acked);
        } else {
            self.cc.on_unused(&self.window, &facts);
        }
    }

    fn newly_delivered(&self, found: &Findings) -> u32 {
        u32::try_from(self.board.delivered() - found.delivered_before).unwrap_or(u32::MAX)
    }

    /// Ends the episode of a tail loss probe when it is answered.
    fn check_probe(&mut self, now: Instant, ack: u32, found: &Findings) {
        let Some(probe) = self.probe.filter(|probe| ack >= probe.end) else {
            return;
        };
        if !probe.is_resend || found.dsack_of_probe {
            self.probe = None;
        } else if ack > probe.end {
            // The probe repaired a loss that nothing else will report: one reduction.
            self.begin_reduction(now);
            if self.is_model_based() {
                // It sets its own window; Linux's DCTCP responds here as it does to marks.
                self.answer_loss();
            }
            self.enter_phase(now, Phase::Cwr);
            self.end_reduction();
            self.keep_open(now);
        } else if !(found.una_advanced || found.window_changed || found.sacked) {
            self.probe = None;
        }
    }
}

/// The RTT in µs of a segment sent at `oldest`. Reuses `rtt`, that of the newest segment, if both were sent at the
/// same instant, as is usual.
#[inline]
pub(super) fn rtt_of_oldest(now: Instant, oldest: Instant, (newest, rtt): (Instant, u32)) -> u32 {
    if oldest == newest {
        rtt
    } else {
        micros(now.since(oldest))
    }
}

// The response to CE.
//
// Source:
//
// RFC 3168 §6.1.2: as to a loss, once per window. RFC 8511 (ABE): a smaller decrease in congestion
// avoidance. Ending slow start without a decrease is the end host's part of Predict (Järvinen and
// Kojo, ICCRG at IETF 97): its queue marks before the path is full, so no decrease is needed.

impl Sender {
    /// An acknowledgement echoes CE while no segment is lost.
    pub(super) fn answer_echo(&mut self, now: Instant) {
        let on_ce = self.ecn.on_ce();
        match on_ce {
            OnCe::Reduce => return self.enter_cwr(now),
            OnCe::Abe => return self.back_off_by_less(now),
            OnCe::EndSlowStart | OnCe::EndSlowStartOnly => {}
        }
        // The echo repeats until the peer receives CWR, which no older segment carried.
        if self.ecn.is_answered(self.board.una()) {
            return;
        }
        if self.window.in_slow_start() {
            self.window.end_slow_start();
        } else if on_ce == OnCe::EndSlowStart {
            self.reduce_to_percent(now, 80);
        }
        self.ecn.answer_through(self.board.next());
    }

    /// Alternative Backoff with ECN (RFC 8511 §3.1): `ssthresh = max(cwnd beta_ecn, 2)` in congestion avoidance.
    fn back_off_by_less(&mut self, now: Instant) {
        match self.cc.abe_percent() {
            Some(percent) if !self.window.in_slow_start() => self.reduce_to_percent(now, percent),
            _ => self.enter_cwr(now),
        }
    }

    /// Begins a reduction of the window to this share, unless one is in progress.
    fn reduce_to_percent(&mut self, now: Instant, percent: u32) {
        let left = u64::from(self.window.cwnd) * u64::from(percent) / 100;
        let begins = self.recovery.phase() < Phase::Cwr;
        self.enter_cwr(now);
        if begins {
            let left = u32::try_from(left).unwrap_or(u32::MAX).max(2);
            self.window.ssthresh = Threshold::of_segments(left);
        }
    }
}
