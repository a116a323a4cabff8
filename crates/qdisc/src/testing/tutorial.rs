//! The queue of the tutorial "Your first queue": its page shows the parameters and `dequeue`.
//!
//! A test of the documents compares the two, so that what the page shows compiles.

#![expect(
    unreachable_pub,
    reason = "`parameters!` declares items for the users of a queue, which tests have none of"
)]

use sojourn_net::{Duration, Instant, Packet, Rng};

use crate::contract::{DropReason, MarkReason, Observer};
use crate::parameters::parameters;
use crate::parts::fifo::Fifo;
use crate::testing::{Recorder, TestPacket};

/// The probability of a signal at `high` and above.
const STRONGEST: f64 = 0.05;

parameters! {
    /// Parameters of [`Ramp`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RampParams {
        /// Packets that the buffer holds.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "ours";
        /// Sojourn time at which signals begin.
        pub low: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "ours";
        /// Sojourn time at which the probability is largest.
        pub high: Duration = Duration::from_millis(50) => time(1, LONGEST),
            "ours";
    }
}

/// A FIFO that signals with a probability that rises with the sojourn time.
struct Ramp<P> {
    params: RampParams,
    rng: Rng,
    fifo: Fifo<P>,
}

impl<P: Packet> Ramp<P> {
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
}

#[test]
fn signals_begin_at_low() {
    let dropped_after = |wait: Duration| {
        let mut queue = Ramp {
            params: RampParams::default(),
            rng: Rng::new(1),
            fifo: Fifo::new(),
        };
        let mut seen = Recorder::default();
        for id in 0..1_000 {
            queue.fifo.push(Instant::ZERO, TestPacket::mtu(id));
        }
        while queue.dequeue(Instant::ZERO + wait, &mut seen).is_some() {}
        seen.drops.len()
    };
    assert_eq!(dropped_after(RampParams::default().low), 0);
    let strongest = dropped_after(RampParams::default().high);
    assert!((25..100).contains(&strongest), "{strongest} of 1000");
    let keys = RampParams::PARAMETERS.iter().map(|parameter| parameter.key);
    assert_eq!(keys.collect::<Vec<_>>(), ["limit", "low", "high"]);
    assert_eq!(RampParams::default().limit, 1_000);
}
