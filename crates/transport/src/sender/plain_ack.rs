//! Processing of an acknowledgement that reports nothing but progress.
//!
//! Most acknowledgements carry no SACK block and no mark, and acknowledge segments that were sent once, of a
//! connection without loss, ECN or pacing. For these the steps of [`Sender::on_ack`](super::ack) that do
//! something are few, and none has to ask what was found.

use sojourn_net::Instant;

use super::connection::{Sender, State};
use super::state::recovery::Phase;
use super::state::scoreboard::PlainRun;
use crate::cc::Ack;
use crate::clock::micros;
use crate::segment::{Flags, Segment};

impl Sender {
    /// What `seg` acknowledges, if [`Sender::on_plain_ack`] can process it.
    #[inline]
    pub(super) fn plain_run_of(&self, seg: &Segment) -> Option<PlainRun> {
        // The number of SACK blocks is among the flags.
        let plain = seg.flags == Flags::ACK
            && self.recovery.phase() == Phase::Open
            && self.board.sacked() == 0
            && !self.ecn.is_on()
            && !self.pacing.is_paced()
            && self.hystart.is_none()
            && self.probe.is_none();
        let acked = seg.ack.checked_sub(self.board.una())?;
        if !plain || acked == 0 || acked > self.board.outstanding() {
            return None;
        }
        self.board.plain_run(acked).filter(|run| run.count == acked)
    }

    /// An acknowledgement of exactly `run` arrived.
    #[inline]
    pub(super) fn on_plain_ack(
        &mut self,
        now: Instant,
        seg: &Segment,
        run: &PlainRun,
        out: &mut Vec<Segment>,
    ) {
        debug_assert!(self.board.sacked_end().is_none(), "nothing is sacked");
        let prior_in_flight = self.board.in_flight();
        self.timestamps.on_segment(seg.ts_val);
        self.timer.reset_timeouts();
        self.buffer.set_peer_window(seg.window);
        self.board.pop_run(run);
        self.buffer.on_acked(run.bytes);
        let una = self.board.una();
        let min_rtt = self.rtt.min_micros();
        self.rack.begin_ack();
        self.rack.advance(now, (run.newest, una), false, min_rtt);
        self.board.trim();
        self.measure_pipe(now, run.count);
        // The peer may have delayed the acknowledgement of a single segment that is not full.
        let delayed = run.count == 1 && u32::from(run.last_len) < self.window.mss();
        let rtt = micros(now.since(run.newest));
        self.counters.rtt_samples += 1;
        self.counters.rtt_micros += u64::from(rtt);
        self.rtt.sample_max(rtt);
        if !(delayed && min_rtt.is_some_and(|min| rtt > min)) {
            self.rtt.sample_min(now, rtt);
        }
        let next = self.board.next();
        self.rtt.sample(micros(now.since(run.oldest)), una, next);
        self.timer.reset_backoff();
        let facts = Ack {
            now,
            tick: self.timestamps.tick(now),
            rtt_micros: Some(rtt),
            one_way_ms: Some(seg.ts_val.wrapping_sub(seg.ts_ecr)),
            snd_una: una,
            snd_nxt: next,
            prior_in_flight,
            pacing_rate: self.pacing.rate(),
        };
        self.cc.on_ack(&mut self.window, &facts);
        self.rack.adapt_window(false, una, next);
        if self.usage.allows_growth(&self.window) {
            let facts = Ack {
                rtt_micros: None,
                one_way_ms: None,
                ..facts
            };
            let acked = self.window.bytes_of(run.count);
            self.cc.grow(&mut self.window, &facts, acked);
        }
        self.set_pacing_rate();
        // Whatever is sent arms the timer itself.
        if self.send_new(now, out) == 0 {
            self.arm_after_progress(now);
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
mod tests {
    use super::*;
    use crate::clock::Ticks;
    use crate::receiver::{Arrival, Receiver};
    use crate::sender::SenderParams;
    use sojourn_net::{Duration, Rng};

    #[test]
    fn it_does_what_is_done_for_any_acknowledgement() {
        let ticks = Ticks::new(Duration::from_micros(300));
        let params = SenderParams::default();
        let mut sender = Sender::new(&params, ticks);
        let mut receiver = Receiver::new(ticks, false);
        let (mut now, mut rng) = (Instant::from_millis(1), Rng::new(1));
        let (mut data, mut acks) = (Vec::new(), Vec::new());
        sender.write(now, 4_000_000, &mut data);
        sender.close(now, &mut data);
        sender.connect(now, &mut data);
        let (mut plain, mut other) = (0, 0);
        while sender.state() != State::Done {
            now += Duration::from_micros(10_000 + rng.below(3_000));
            // One of a thousand segments is lost.
            for segment in data.drain(..).filter(|_| rng.below(1_000) > 0) {
                receiver.on_segment(now, &segment, Arrival::default(), &mut acks);
            }
            receiver.on_timer(now, &mut acks);
            now += Duration::from_micros(10_000 + rng.below(3_000));
            for ack in acks.drain(..) {
                let established = sender.state() == State::Established;
                if established && let Some(run) = sender.plain_run_of(&ack) {
                    let (mut like_any, mut sent) = (sender.clone(), data.clone());
                    like_any.on_ack(now, &ack, &mut sent);
                    sender.on_plain_ack(now, &ack, &run, &mut data);
                    assert_eq!(data, sent);
                    assert_eq!(format!("{sender:?}"), format!("{like_any:?}"));
                    plain += 1;
                } else {
                    sender.on_segment(now, &ack, &mut data);
                    other += 1;
                }
            }
            if sender.next_timer().is_some_and(|due| due <= now) {
                sender.on_timer(now, &mut data);
            }
        }
        assert!(plain > 1_000 && other > 10, "{plain} {other}");
    }
}
