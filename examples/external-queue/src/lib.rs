//! `ramp`: signals with a probability that rises with the sojourn time.
//!
//! It is the queue of the tutorial "Your first queue" as a plug-in: `./libramp.so low 5ms high 50ms limit 1000`.

use sojourn_plugin::parameters::{Kind, Params, Profile, parameters, time_text};
use sojourn_plugin::{
    Backlog, DropReason, Duration, Fifo, Instant, LinkFacts, MarkReason, Observer, Packet, Qdisc,
    Rng, plugin,
};

plugin!(RampParams);

parameters! {
    /// Parameters of [`Ramp`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RampParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "Sojourn default";
        /// Sojourn time at which signals begin.
        pub low: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "Sojourn default";
        /// Sojourn time at which the probability is largest.
        pub high: Duration = Duration::from_millis(50) => time(1, LONGEST),
            "Sojourn default";
    }
}

impl Params for RampParams {
    type Queue<P: Packet> = Ramp<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "ramp",
        class: None,
        summary: "A FIFO that signals with a probability that rises with the sojourn time",
        source: "the tutorial \"Your first queue\"",
        reconstruction: None,
        profiles: &[Profile::Paper],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn conflict(&self) -> Option<String> {
        (self.low >= self.high).then(|| {
            format!(
                "low {} must be below high {}",
                time_text(self.low),
                time_text(self.high)
            )
        })
    }

    fn build<P: Packet>(&self, _link: &LinkFacts, rng: Rng) -> Ramp<P> {
        Ramp::new(*self, rng)
    }
}

/// The probability of a signal at `high` and above.
const STRONGEST: f64 = 0.05;

/// A FIFO that signals with a probability that rises with the sojourn time.
#[derive(Clone, Debug)]
pub struct Ramp<P> {
    params: RampParams,
    fifo: Fifo<P>,
    rng: Rng,
}

impl<P: Packet> Ramp<P> {
    /// An empty queue.
    pub const fn new(params: RampParams, rng: Rng) -> Self {
        Self {
            params,
            fifo: Fifo::new(),
            rng,
        }
    }
}

impl<P: Packet> Qdisc<P> for Ramp<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.fifo.backlog().packets >= self.params.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        self.fifo.push(now, pkt);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        while let Some((mut pkt, sojourn)) = self.fifo.pop(now) {
            let span = self.params.high.as_secs_f64() - self.params.low.as_secs_f64();
            let ramp = (sojourn.as_secs_f64() - self.params.low.as_secs_f64()) / span;
            let last = self.fifo.backlog().packets == 0;
            if self.rng.uniform() >= STRONGEST * ramp.min(1.0) {
                return Some(pkt);
            }
            if pkt.mark_ce() {
                obs.on_mark(now, &pkt, MarkReason::Aqm);
                return Some(pkt);
            }
            if last {
                return Some(pkt);
            }
            obs.on_drop(now, pkt, DropReason::Aqm);
        }
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_contract() {
        sojourn_plugin::check(&RampParams::default());
    }
}
