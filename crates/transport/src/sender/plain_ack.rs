//! Processing of an acknowledgement that reports nothing but progress.
//!
//! Most acknowledgements carry no SACK block and report no mark, and acknowledge segments that were sent once, of
//! a connection without loss. For these the steps of [`Sender::on_ack`](super::ack) that do something are few, and
//! none has to ask what was found.

use std::num::NonZeroU32;

use sojourn_net::Instant;

use super::ack::rtt_of_oldest;
use super::model::News;
use super::state::recovery::Phase;
use super::state::scoreboard::PlainRun;
use super::{Sender, State};
use crate::cc::{Ack, Echo, EcnFeedback};
use crate::clock::micros;
use crate::segment::{Flags, Segment};

impl Sender {
    /// Whether the connection has neither pacing nor ECN. These are the most frequent connections: the
    /// functions below have a specialised version for them (`BASIC = true`). All are for the default profile.
    #[inline]
    pub(super) fn is_basic(&self) -> bool {
        !self.ecn.is_on() && !self.pacing.is_paced()
    }

    /// An acknowledgement of a connection with pacing or ECN arrived.
    #[inline(never)]
    pub(super) fn on_paced_ack(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        match self.plain_run_of::<false>(seg) {
            Some(run) => self.on_plain_ack::<false>(now, seg, &run, out),
            None => self.on_ack::<true>(now, seg, out),
        }
    }

    /// What `seg` acknowledges, if [`Sender::on_plain_ack`] can process it.
    #[inline]
    pub(super) fn plain_run_of<const BASIC: bool>(&self, seg: &Segment) -> Option<PlainRun> {
        // The number of SACK blocks is among the flags.
        let plain = (BASIC && seg.flags == Flags::ACK || !BASIC && self.ecn.is_plain(seg))
            && self.recovery.phase() == Phase::Open
            && self.board.sacked() == 0
            && self.slow_start.is_none()
            && self.probe.is_none();
        let acked = seg.ack.checked_sub(self.board.una())?;
        if !plain || acked == 0 || acked > self.board.outstanding() {
            return None;
        }
        let run = self.board.plain_run(acked)?;
        let sure = BASIC || self.ecn.may_presume_unmarked(seg, acked);
        (run.count == acked && sure).then_some(run)
    }

    /// An acknowledgement of exactly `run` arrived.
    #[inline]
    pub(super) fn on_plain_ack<const BASIC: bool>(
        &mut self,
        now: Instant,
        seg: &Segment,
        run: &PlainRun,
        out: &mut Vec<Segment>,
    ) {
        let prior_in_flight = self.board.in_flight();
        self.timestamps.on_segment(seg.ts_val);
        self.timer.reset_timeouts();
        self.buffer.set_peer_window(seg.window);
        self.board.pop_run(run);
        self.buffer.on_acked(run.bytes);
        let una = self.board.una();
        let min_rtt = self.rtt.min_micros();
        self.rack.begin_ack();
        let rtt = micros(now.since(run.newest));
        self.rack.on_delivered(rtt, (run.newest, una));
        if !BASIC && let Some(sampler) = self.pacing.sampler() {
            sampler.begin_ack();
            sampler.on_delivered_run(run.count, run.newest, una);
        }
        self.board.trim();
        self.measure_pipe(now, run.count);
        // The peer may have delayed the acknowledgement of a single segment that is not full.
        let delayed = run.count == 1 && u32::from(run.last_len) < self.window.mss();
        self.counters.rtt_samples += 1;
        self.counters.rtt_micros += u64::from(rtt);
        self.rtt.sample_max(rtt);
        if !(delayed && min_rtt.is_some_and(|min| rtt > min)) {
            self.rtt.sample_min(now, rtt);
        }
        let next = self.board.next();
        let longest = rtt_of_oldest(now, run.oldest, (run.newest, rtt));
        self.rtt.sample(longest, una, next);
        self.timer.reset_backoff();
        let facts = Ack {
            now,
            tick: self.timestamps.tick(now),
            rtt_micros: Some(rtt),
            echo: Some(Echo {
                ts_val: seg.ts_val,
                ts_ecr: seg.ts_ecr,
            }),
            snd_una: una,
            snd_nxt: next,
            prior_in_flight,
            acked: run.count,
            srtt8: self.rtt.srtt8().map_or(0, NonZeroU32::get),
            pacing_rate: self.pacing.rate(),
        };
        self.cc.on_ack(&mut self.window, &facts);
        self.rack.adapt_window(false, una, next);
        let mut ecn = None;
        if !BASIC && self.ecn.is_on() {
            let feedback = EcnFeedback {
                snd_una: una,
                snd_nxt: next,
                delivered: run.count,
                marked: 0,
            };
            self.cc.on_ecn_feedback(&feedback);
            ecn = Some(feedback);
        }
        if !BASIC && self.is_model_based() {
            let facts = Ack {
                echo: None,
                ..facts
            };
            let news = News {
                delivered: run.count,
                lost: 0,
                maybe_delayed: delayed,
                ecn,
            };
            self.update_model(&facts, &news);
        } else {
            let facts = Ack {
                rtt_micros: None,
                echo: None,
                ..facts
            };
            if self.usage.allows_growth(&self.window) {
                let acked = self.window.bytes_of(run.count);
                self.cc.grow(&mut self.window, &facts, acked);
            } else {
                self.cc.on_unused(&self.window, &facts);
            }
        }
        self.set_pacing_rate_as::<true>();
        // Whatever is sent arms the timer itself.
        if self.send_new_as::<true>(now, out) == 0 {
            self.arm_after_progress::<true>(now);
        }
        if self.board.outstanding() == 0 {
            if self.timer.kind().is_none() {
                self.watch_closed_window(now);
            }
            if self.buffer.is_fin_sent() {
                self.state = State::Done;
                self.timer.cancel();
            }
        }
    }
}

#[cfg(test)]
mod tests;
