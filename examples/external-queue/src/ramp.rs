//! `ramp`: signals with a probability that rises with the sojourn time.
//!
//! It is the queue of the tutorial "Your first queue", outside the crates of Sojourn. After
//! [`register`], `ramp low 5ms high 50ms limit 1000` is accepted wherever a scenario names a queue.

use std::collections::VecDeque;
use std::sync::Arc;

use sojourn_qdisc::{
    Backlog, BoxedQueue, Bytes, DropReason, Duration, ExternalKind, ExternalParams, Instant,
    LinkFacts, MarkReason, Observer, Packet, Qdisc, RegisterError, Rng, Ticket,
};

/// The probability of a signal at `high` and above.
const STRONGEST: f64 = 0.05;

/// Registers `ramp` for the rest of the process.
///
/// # Errors
/// If a discipline of Sojourn has the same name.
pub(crate) fn register() -> Result<(), RegisterError> {
    sojourn_qdisc::register(Arc::new(RampKind))
}

/// Reads the parameters.
#[derive(Debug)]
struct RampKind;

impl ExternalKind for RampKind {
    fn name(&self) -> &'static str {
        "ramp"
    }

    fn summary(&self) -> &'static str {
        "Signals rise with the sojourn time from low (5ms) to high (50ms); limit (1000) packets"
    }

    fn configure(
        &self,
        parameters: &[(String, String)],
    ) -> Result<Arc<dyn ExternalParams>, String> {
        let mut params = RampParams {
            limit: 1_000,
            low: Duration::from_millis(5),
            high: Duration::from_millis(50),
        };
        for (key, value) in parameters {
            let wrong = |e: &dyn std::error::Error| format!("{key}: {e}");
            match key.as_str() {
                "limit" => params.limit = value.parse().map_err(|e| wrong(&e))?,
                "low" => params.low = value.parse().map_err(|e| wrong(&e))?,
                "high" => params.high = value.parse().map_err(|e| wrong(&e))?,
                _ => {
                    return Err(format!(
                        "unknown parameter {key:?}; expected limit, low or high"
                    ));
                }
            }
        }
        if params.limit == 0 {
            return Err("limit: 0 packets; expected 1 or more".to_owned());
        }
        if params.high <= params.low {
            return Err("high: not above low; expected low < high".to_owned());
        }
        Ok(Arc::new(params))
    }
}

/// The parameters, from which each link of each run builds its queue.
#[derive(Clone, Copy, Debug)]
struct RampParams {
    /// Packets that the buffer holds.
    limit: usize,
    /// Sojourn time at which signals begin.
    low: Duration,
    /// Sojourn time at which the probability is largest.
    high: Duration,
}

impl ExternalParams for RampParams {
    fn build(&self, _link: &LinkFacts, rng: Rng) -> BoxedQueue {
        BoxedQueue::new(Ramp {
            params: *self,
            rng,
            packets: VecDeque::new(),
            bytes: Bytes(0),
        })
    }
}

/// A FIFO whose packets keep the time of their arrival.
#[derive(Clone, Debug)]
struct Ramp {
    params: RampParams,
    rng: Rng,
    packets: VecDeque<(Ticket, Instant)>,
    bytes: Bytes,
}

impl Ramp {
    /// The probability of a signal for a packet that waited this long.
    fn probability(&self, sojourn: Duration) -> f64 {
        let above = sojourn.saturating_sub(self.params.low).as_secs_f64();
        let span = self.params.high.saturating_sub(self.params.low);
        STRONGEST * (above / span.as_secs_f64()).min(1.0)
    }
}

impl Qdisc<Ticket> for Ramp {
    fn enqueue(&mut self, now: Instant, pkt: Ticket, obs: &mut dyn Observer<Ticket>) {
        if self.packets.len() >= self.params.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        self.bytes += pkt.size();
        self.packets.push_back((pkt, now));
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Ticket> {
        while let Some((mut pkt, arrival)) = self.packets.pop_front() {
            self.bytes -= pkt.size();
            if self.rng.uniform() >= self.probability(now.since(arrival)) {
                return Some(pkt);
            }
            if pkt.mark_ce() {
                obs.on_mark(now, &pkt, MarkReason::Aqm);
                return Some(pkt);
            }
            if self.packets.is_empty() {
                return Some(pkt);
            }
            obs.on_drop(now, pkt, DropReason::Aqm);
        }
        None
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len(),
            bytes: self.bytes,
        }
    }
}
