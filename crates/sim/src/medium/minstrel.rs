//! Rate control: `Minstrel-HT`, simplified.
//!
//! # Source
//!
//! Linux 6.1, `net/mac80211/rc80211_minstrel_ht.c`.
//!
//! # Law
//!
//! Every 50 ms, the share of MPDUs that arrived at each rate enters its moving average. From the averages follow the
//! rates with the best and second-best throughput, and the one with the best probability. At most every 20 ms, a packet
//! goes at another rate, one that could be better than the best. It is sent alone, as drivers such as `ath9k` send
//! samples: at a rate that is too high, a whole aggregate would be lost.
//!
//! # Differences from Linux
//!
//! | here | Linux |
//! |---|---|
//! | the rates of one group: as many streams, the width and guard interval of `rate` | all groups that both sides support |
//! | moving average that keeps 3/4 of the old value | second-order low-pass filter |
//! | rates are sampled in turn, every tenth sample one that cannot be the best | three classes of samples, in random order |
//! | the first two attempts at the best rate, two at the second-best, others at that of best probability | attempts per rate that fit into 6 ms |
//! | statistics of all categories together | the same |

use sojourn_net::{Bytes, Duration, Instant, Rate};

const UPDATE: Duration = Duration::from_millis(50);
const SAMPLE: Duration = Duration::from_millis(20);
/// Of this number of samples, one is at a rate that cannot be the best.
const SLOW_SAMPLES: u32 = 10;
/// Weight of the old average.
const OLD: f64 = 0.75;
/// Success up to which a rate is not used.
const LEAST: f64 = 0.1;
/// More success does not count: it varies with collisions.
const MOST: f64 = 0.9;
/// Above this, throughput decides which rate has the best probability.
const SAFE: f64 = 0.75;
/// The packet that throughput is computed for.
const AVERAGE: Bytes = Bytes(1_200);
/// What each transmission takes besides its packets: AIFS, mean backoff, preamble, SIFS and acknowledgement.
const OVERHEAD: Duration = Duration::from_nanos(43_000 + 67_500 + 36_000 + 48_000);

/// The state of rate control for a station.
#[derive(Clone, Debug)]
pub(super) struct Minstrel {
    rates: Vec<Statistics>,
    best: [usize; 2],
    safest: usize,
    next_update: Instant,
    next_sample: Instant,
    samples: u32,
    cursor: usize,
    /// Mean packets per aggregate.
    aggregate: f64,
}

#[derive(Clone, Debug)]
struct Statistics {
    /// Of a packet, in seconds.
    time: f64,
    attempts: u32,
    successes: u32,
    /// Moving average of the share that arrived.
    success: Option<f64>,
}

impl Minstrel {
    /// Begins at the lowest rate.
    pub(super) fn new(rates: &[Rate]) -> Self {
        let statistics = rates.iter().map(|rate| Statistics {
            time: rate.serialise(AVERAGE).as_secs_f64(),
            attempts: 0,
            successes: 0,
            success: None,
        });
        Self {
            rates: statistics.collect(),
            best: [0, 0],
            safest: 0,
            next_update: Instant::ZERO + UPDATE,
            next_sample: Instant::ZERO,
            samples: 0,
            cursor: 0,
            aggregate: 1.0,
        }
    }

    /// The rate of the next transmission, after `failures` that failed, and whether it is a sample: one packet.
    pub(super) fn choose(&mut self, now: Instant, failures: u32) -> (usize, bool) {
        if self.next_update <= now {
            self.update();
            self.next_update = now + UPDATE;
        }
        if failures == 0
            && self.next_sample <= now
            && let Some(sample) = self.sample()
        {
            self.next_sample = now + SAMPLE;
            return (sample, true);
        }
        let rate = match failures {
            0 | 1 => self.best[0],
            2 | 3 => self.best[1],
            _ => self.safest,
        };
        (rate, false)
    }

    /// A transmission of `attempts` MPDUs at `rate`, of which `successes` arrived.
    pub(super) fn report(&mut self, rate: usize, attempts: u32, successes: u32) {
        self.rates[rate].attempts += attempts;
        self.rates[rate].successes += successes;
        self.aggregate = OLD * self.aggregate + (1.0 - OLD) * f64::from(attempts);
    }

    /// The best rate and its success.
    pub(super) fn best(&self) -> (usize, f64) {
        let success = self.rates[self.best[0]].success;
        (self.best[0], success.unwrap_or(1.0))
    }

    /// Packets per second at a rate with this success.
    fn throughput(&self, rate: usize, success: f64) -> f64 {
        if success < LEAST {
            return 0.0;
        }
        let shared = OVERHEAD.as_secs_f64() / self.aggregate.max(1.0);
        success.min(MOST) / (shared + self.rates[rate].time)
    }

    fn update(&mut self) {
        for rate in &mut self.rates {
            if rate.attempts > 0 {
                let now = f64::from(rate.successes) / f64::from(rate.attempts);
                let old = rate.success.unwrap_or(now);
                rate.success = Some(OLD * old + (1.0 - OLD) * now);
                (rate.attempts, rate.successes) = (0, 0);
            }
        }
        let success = |rate: usize| self.rates[rate].success.unwrap_or(0.0);
        let value = |rate: usize| self.throughput(rate, success(rate));
        let mut order: Vec<_> = (0..self.rates.len()).collect();
        order.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
        let best = [order[0], order[order.len().min(2) - 1]];
        let safe = order.iter().find(|&&rate| success(rate) > SAFE);
        let surest = || {
            order
                .iter()
                .max_by(|&&a, &&b| success(a).total_cmp(&success(b)))
        };
        self.safest = safe.or_else(surest).copied().unwrap_or(0);
        self.best = best;
    }

    /// The next rate to try.
    fn sample(&mut self) -> Option<usize> {
        let (best, success) = self.best();
        let least = match self.rates[best].success {
            Some(_) => self.throughput(best, success),
            None => 0.0,
        };
        self.samples += 1;
        let any = self.samples.is_multiple_of(SLOW_SAMPLES);
        let number = self.rates.len();
        let next = (1..=number).map(|step| (self.cursor + step) % number);
        let mut could_win =
            next.filter(|&rate| rate != best && (any || self.throughput(rate, 1.0) > least));
        let found = could_win.next();
        if let Some(found) = found {
            self.cursor = found;
        }
        found
    }
}
