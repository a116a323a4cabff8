//! Flow rates estimated from sampled arrivals: the shadow buffer of AFD and AFCD.
//!
//! # Source
//!
//! Pan, Breslau, Prabhakar and Shenker, "Approximate Fairness through Differential Dropping",
//! CCR 33(2), 2003, as cited by the users of this module.

use sojourn_net::{FlowKey, Rate, Rng};

use super::fixed;

/// The flows of the arrivals sampled last, and how many of them are each flow's.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    capacity: usize,
    /// The bin of each sampled packet; once full, it stays full.
    entries: Vec<u32>,
    /// Which entry is the oldest, once it is full.
    oldest: usize,
    /// The flow table: entries of each bin.
    counts: Box<[u32]>,
    /// Bins that have entries.
    flows: u32,
    /// Sampling period in arrivals.
    sample: u32,
    /// Arrivals since the last whose turn it was.
    arrivals: u32,
    perturbation: u64,
}

impl Shadow {
    pub(crate) fn new(capacity: u32, table: u32, sample: u32, rng: &mut Rng) -> Self {
        Self {
            capacity: capacity as usize,
            entries: Vec::with_capacity(capacity as usize),
            oldest: 0,
            counts: vec![0; table as usize].into(),
            flows: 0,
            sample,
            arrivals: 0,
            perturbation: rng.next_u64(),
        }
    }

    /// Samples one in `sample` arrivals from now on.
    pub(crate) const fn set_sample(&mut self, sample: u32) {
        self.sample = sample;
    }

    /// The bin of the flow of `pkt`.
    #[inline]
    pub(crate) fn bin(&self, flow: &FlowKey) -> usize {
        // The high bits of a product spread as well as a remainder, without a division.
        let hash = u64::from(flow.digest(self.perturbation));
        usize::try_from((hash * self.counts.len() as u64) >> 32).expect("below the table's length")
    }

    /// Counts an arrival; says whether it is its turn to be sampled.
    #[inline]
    pub(crate) fn is_turn(&mut self) -> bool {
        self.arrivals += 1;
        let turn = self.arrivals >= self.sample;
        if turn {
            self.arrivals = 0;
        }
        turn
    }

    /// Samples an arrival of `bin`, in the place of the oldest sample.
    pub(crate) fn replace_oldest(&mut self, bin: usize) {
        self.replace(self.oldest, bin);
        self.oldest += 1;
        if self.oldest == self.capacity {
            self.oldest = 0;
        }
    }

    /// Draws whether an arrival is sampled, so that flows cannot fall into step with the sampling.
    #[inline]
    pub(crate) fn is_drawn(&self, rng: &mut Rng) -> bool {
        rng.below(self.sample.into()) == 0
    }

    /// Samples an arrival of `bin`, in the place of a sample drawn at random.
    pub(crate) fn replace_random(&mut self, bin: usize, rng: &mut Rng) {
        let place = rng.below(self.capacity as u64);
        self.replace(usize::try_from(place).expect("below the capacity"), bin);
    }

    /// Samples an arrival of `bin`, in this place if the buffer is full.
    fn replace(&mut self, place: usize, bin: usize) {
        let entry = u32::try_from(bin).expect("a table has less than 2^32 bins");
        if self.entries.len() < self.capacity {
            self.entries.push(entry);
        } else {
            let old = std::mem::replace(&mut self.entries[place], entry) as usize;
            self.counts[old] -= 1;
            self.flows -= u32::from(self.counts[old] == 0);
        }
        self.flows += u32::from(self.counts[bin] == 0);
        self.counts[bin] += 1;
    }

    /// `m_i`: how many of the samples are of `bin`.
    #[inline]
    pub(crate) fn count(&self, bin: usize) -> u32 {
        self.counts[bin]
    }

    /// How many flows have samples; those that share a bin are one.
    #[inline]
    pub(crate) const fn flows(&self) -> u32 {
        self.flows
    }
}

/// One in how many arrivals to sample, so that `shadow` samples are 1.2 s of a link of `rate`.
///
/// That is what 2,000 samples, one of 500 packets of 1500 bytes, are at 10 Gbit/s, where both
/// numbers come from. Without a rate it is one in 500.
pub(crate) fn sample_for(rate: Option<Rate>, shadow: u32) -> u32 {
    const HISTORY_MILLIS: u128 = 1_200;
    const PACKET_BITS: u128 = 8 * 1_500;
    let Some(rate) = rate else { return 500 };
    let bits = u128::from(rate.bits_per_sec()) * HISTORY_MILLIS / 1_000;
    let a_sample = PACKET_BITS * u128::from(shadow);
    u32::try_from((bits + a_sample / 2) / a_sample).map_or(u32::MAX, |sample| sample.max(1))
}

/// The smallest `m_fair`, one sample.
const LEAST: f64 = 1.0;

/// `m_fair`, in samples, steered by the backlog: equation (1) of the AFCD paper, AFD's law.
#[derive(Clone, Debug)]
pub(crate) struct FairShare {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    /// `Q_target`, in packets.
    pub(crate) target: f64,
    /// The largest value: all samples.
    pub(crate) most: f64,
    pub(crate) value: f64,
    /// `Q_old`.
    pub(crate) old: f64,
}

impl FairShare {
    /// Other gains and another target, in packets.
    pub(crate) const fn tune(&mut self, (alpha, beta): (f64, f64), target: f64) {
        (self.alpha, self.beta, self.target) = (alpha, beta, target);
    }

    /// `start` moved by how far the backlog is, and was, from its target.
    pub(crate) fn moved(&self, start: f64, backlog: f64) -> f64 {
        self.sum(start, backlog).clamp(LEAST, self.most)
    }

    /// [`moved`](Self::moved) by a machine without signs: nothing where the result is huge.
    ///
    /// That is so below 0, and if one difference is below 0: divided by 10, it no longer wraps back.
    pub(crate) fn moved_unsigned(&self, start: f64, backlog: f64) -> Option<f64> {
        let sum = self.sum(start, backlog);
        let one_below = (self.old < self.target) != (backlog < self.target);
        (sum >= 0.0 && !one_below).then_some(sum.min(self.most))
    }

    fn sum(&self, start: f64, backlog: f64) -> f64 {
        start + self.alpha * (self.old - self.target) - self.beta * (backlog - self.target)
    }

    /// A period has passed.
    pub(crate) fn update(&mut self, packets: usize) {
        let backlog = as_f64(packets);
        self.value = self.moved(self.value, backlog);
        self.old = backlog;
    }

    /// Starts anew from `value`.
    pub(crate) fn restart(&mut self, value: f64) {
        self.value = value.clamp(LEAST, self.most);
    }
}

/// Fractional bits of samples and backlogs in [`IntegerFairShare`].
pub(crate) const Q16: u32 = 16;

/// [`FairShare`] in the arithmetic of the kernel modules: samples and packets in 2^-16.
#[derive(Clone, Debug)]
pub(crate) struct IntegerFairShare {
    alpha: u64,
    beta: u64,
    target: i64,
    most: i64,
    value: i64,
    /// In packets.
    pub(crate) old: usize,
}

impl IntegerFairShare {
    /// With these gains and target of the backlog in packets, a fifth of `limit` if there is none.
    pub(crate) fn new(
        (alpha, beta): (f64, f64),
        qtarget: Option<u32>,
        limit: usize,
        shadow: u32,
    ) -> Self {
        let target = qtarget.map_or_else(|| q16(limit) / 5, |packets| i64::from(packets) << Q16);
        let most = i64::from(shadow) << Q16;
        Self {
            alpha: fixed::binary(alpha, Q16),
            beta: fixed::binary(beta, Q16),
            target,
            most,
            value: most,
            old: 0,
        }
    }

    /// Other gains, and another target of the backlog.
    pub(crate) fn tune(&mut self, gains: (f64, f64), qtarget: Option<u32>, limit: usize) {
        let Self {
            alpha,
            beta,
            target,
            ..
        } = Self::new(gains, qtarget, limit, 0);
        (self.alpha, self.beta, self.target) = (alpha, beta, target);
    }

    /// `m_fair`.
    pub(crate) const fn value(&self) -> u64 {
        self.value.unsigned_abs()
    }

    /// As [`FairShare::moved_unsigned`] from all samples divided among `flows`.
    pub(crate) fn moved_unsigned(&self, flows: u32, backlog: usize) -> Option<u64> {
        let sum = self.even(flows) + self.change(backlog);
        let one_below = (q16(self.old) < self.target) != (q16(backlog) < self.target);
        (sum >= 0 && !one_below).then(|| sum.min(self.most).unsigned_abs())
    }

    /// A period has passed.
    pub(crate) fn update(&mut self, packets: usize) {
        let moved = self.value + self.change(packets);
        self.value = moved.clamp(1 << Q16, self.most);
        self.old = packets;
    }

    /// Starts anew with all samples divided among `flows`.
    pub(crate) fn restart(&mut self, flows: u32) {
        self.value = self.even(flows).max(1 << Q16);
    }

    fn even(&self, flows: u32) -> i64 {
        self.most / i64::from(flows)
    }

    fn change(&self, backlog: usize) -> i64 {
        self.steer(self.alpha, self.old) - self.steer(self.beta, backlog)
    }

    /// `gain` times how far `backlog` is from the target.
    fn steer(&self, gain: u64, backlog: usize) -> i64 {
        let off = q16(backlog) - self.target;
        let product = fixed::mul_shift(off.unsigned_abs(), gain, Q16);
        let product = i64::try_from(product).unwrap_or(i64::MAX / 4);
        off.signum() * product
    }
}

/// A number of packets in 2^-16; limits are far below 2^47 packets.
fn q16(packets: usize) -> i64 {
    i64::try_from(packets).unwrap_or(i64::MAX >> Q16) << Q16
}

/// A number of packets, for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 packets")]
pub(crate) const fn as_f64(packets: usize) -> f64 {
    packets as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(ports: u32) -> FlowKey {
        FlowKey {
            ports,
            ..FlowKey::default()
        }
    }

    #[test]
    fn the_history_is_1200_ms_of_the_link_whatever_its_rate() {
        let sample = |mbit, shadow| sample_for(Some(Rate::mbit(mbit)), shadow);
        assert_eq!(sample(10_000, 2_000), 500);
        assert_eq!(sample(1_000, 2_000), 50);
        assert_eq!(sample(100, 200), 50);
        assert_eq!(sample(1, 2_000), 1);
        assert_eq!(sample_for(None, 2_000), 500);
    }

    #[test]
    fn the_oldest_sample_makes_room_for_the_newest() {
        let mut shadow = Shadow::new(3, 8, 1, &mut Rng::new(1));
        for bin in [1, 1, 2] {
            shadow.replace_oldest(bin);
        }
        assert_eq!(
            (shadow.count(1), shadow.count(2), shadow.flows()),
            (2, 1, 2)
        );
        shadow.replace_oldest(3);
        assert_eq!(
            (shadow.count(1), shadow.count(3), shadow.flows()),
            (1, 1, 3)
        );
        shadow.replace_oldest(3);
        assert_eq!(
            (shadow.count(1), shadow.count(3), shadow.flows()),
            (0, 2, 2)
        );
    }

    #[test]
    fn counts_are_those_of_the_samples_kept() {
        let mut draws = Rng::new(2);
        let mut shadow = Shadow::new(50, 16, 4, &mut Rng::new(1));
        let mut turns = 0;
        for n in 0..4_000_u32 {
            let bin = shadow.bin(&flow(n % 40));
            if shadow.is_turn() {
                turns += 1;
                if draws.below(2) == 0 {
                    shadow.replace_oldest(bin);
                } else {
                    shadow.replace_random(bin, &mut draws);
                }
            }
            let mut counts = [0; 16];
            shadow
                .entries
                .iter()
                .for_each(|&bin| counts[bin as usize] += 1);
            assert_eq!(*shadow.counts, counts);
            assert_eq!(
                shadow.flows() as usize,
                counts.iter().filter(|&&c| c > 0).count()
            );
        }
        assert_eq!((turns, shadow.entries.len()), (1_000, 50));
    }
}
