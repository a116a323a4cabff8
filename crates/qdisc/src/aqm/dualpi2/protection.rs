//! Queue protection: which packets may not enter the L queue.
//!
//! # Source
//!
//! RFC 9957 (draft-briscoe-docsis-q-protection), the algorithm of DOCSIS since version 3.1; names are those of the RFC.
//!
//! # Algorithm
//!
//! Each flow has a *queuing score*: the bytes that it sent, weighted by the probability with which L's own threshold
//! would have marked them, minus `AGING` bytes per nanosecond. The score is kept in a bucket as the time at which it
//! expires:
//!
//! ```text
//! qLscore = t_exp - now        t_exp += probNative * size / AGING        AGING = 2^(LG_AGING - 30) bytes per ns
//! ```
//!
//! A packet is sanctioned, and enters C, if the delay of L exceeds `CRITICALqL` and the product of this delay and
//! the score of its flow exceeds `CRITICALqL * CRITICALqLSCORE`.
//!
//! # Differences from the RFC
//!
//! | here | RFC 9957 | effect |
//! |---|---|---|
//! | L's delay is its backlog at the rate of the link, or the age of its oldest packet if the rate is unknown | the delay that DOCSIS estimates | none that is known |
//! | the score is limited to 5 s | the same, or a sanction | none: a score of 5 s is sanctioned for 5 s |

use sojourn_net::{Bytes, Duration, FlowKey, Instant, Rate, Rng};

use super::params::DualPi2Params;
use crate::contract::Statistic;

/// Buckets that flows own.
const NBUCKETS: usize = 1 << BI_SIZE;
/// Bits of the hash that select a bucket.
const BI_SIZE: u32 = 5;
/// Buckets that are tried before a flow shares the last one.
const ATTEMPTS: u32 = 2;
/// The largest score.
const MAX_SCORE: Duration = Duration::from_secs(5);

/// The scores of the flows in the L queue.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    critical_delay: Duration,
    /// `CRITICALqL * CRITICALqLSCORE`, in square nanoseconds.
    critical_product: u64,
    /// `1 / AGING`, in nanoseconds per byte.
    nanos_per_byte: f64,
    rate: Option<Rate>,
    perturbation: u64,
    /// The last one is shared by the flows that find no other.
    buckets: [Bucket; NBUCKETS + 1],
    sanctioned: u64,
    shared: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// The hash of the flow that used it last.
    id: u32,
    t_exp: Instant,
}

impl Protection {
    pub(super) fn new(params: &DualPi2Params, rate: Option<Rate>, rng: &Rng) -> Self {
        let critical_delay = params.qp_latency_threshold();
        let score = params.qp_queuing_score_threshold();
        Self {
            critical_delay,
            critical_product: critical_delay.as_nanos().saturating_mul(score.as_nanos()),
            nanos_per_byte: 2_f64.powi(30 - params.qp_drain_rate_exponent().cast_signed()),
            rate,
            perturbation: rng.fork("queue protection").next_u64(),
            buckets: [Bucket::default(); NBUCKETS + 1],
            sanctioned: 0,
            shared: 0,
        }
    }

    pub(super) const fn set_rate(&mut self, rate: Rate) {
        self.rate = Some(rate);
    }

    /// The delay of an L queue of `backlog` whose oldest packet has waited for `oldest`.
    pub(super) fn delay(&self, backlog: Bytes, oldest: Duration) -> Duration {
        self.rate.map_or(oldest, |rate| rate.serialise(backlog))
    }

    /// Adds a packet of `size` bytes to the score of its flow; returns whether the packet is sanctioned.
    ///
    /// `delay` is that of the L queue, `native` the probability with which its own threshold marks at this delay.
    pub(super) fn sanctions(
        &mut self,
        now: Instant,
        flow: &FlowKey,
        size: Bytes,
        delay: Duration,
        native: f64,
    ) -> bool {
        let bucket = self.pick_bucket(now, flow.digest(self.perturbation));
        let score = self.fill_bucket(now, bucket, size, native);
        let product = delay.as_nanos().saturating_mul(score.as_nanos());
        let sanctioned = delay > self.critical_delay && product > self.critical_product;
        self.sanctioned += u64::from(sanctioned);
        sanctioned
    }

    /// The bucket of the flow with this hash: its own, else one that expired, else the shared one.
    fn pick_bucket(&mut self, now: Instant, id: u32) -> usize {
        let tried =
            (0..ATTEMPTS).map(|attempt| (id >> (attempt * BI_SIZE)) as usize & (NBUCKETS - 1));
        let mut free = None;
        for at in tried {
            let bucket = &self.buckets[at];
            if bucket.id == id {
                return self.claim(now, at, id);
            }
            if free.is_none() && bucket.t_exp <= now {
                free = Some(at);
            }
        }
        self.shared += u64::from(free.is_none());
        self.claim(now, free.unwrap_or(NBUCKETS), id)
    }

    fn claim(&mut self, now: Instant, at: usize, id: u32) -> usize {
        let bucket = &mut self.buckets[at];
        bucket.id = id;
        bucket.t_exp = bucket.t_exp.max(now);
        at
    }

    /// Adds to a score and returns it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a size times a probability, in whole nanoseconds"
    )]
    fn fill_bucket(&mut self, now: Instant, at: usize, size: Bytes, native: f64) -> Duration {
        let added = (native * size.0 as f64 * self.nanos_per_byte) as u64;
        let score = self.buckets[at]
            .t_exp
            .since(now)
            .as_nanos()
            .saturating_add(added);
        let score = Duration::from_nanos(score).min(MAX_SCORE);
        self.buckets[at].t_exp = now + score;
        score
    }

    pub(super) fn statistics(&self) -> [Statistic; 2] {
        [
            Statistic::count("qp_sanctioned", self.sanctioned),
            Statistic::count("qp_shared_bucket", self.shared),
        ]
    }
}

#[cfg(test)]
mod tests;
