//! Distributions in constant memory.

/// Counts of values in log-linear buckets: 64 to each power of two, so that a quantile is
/// within 0.8 % of the truth.
///
/// A bucket spans at most 1/64 of its lower edge; reporting its middle halves the error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    max: u64,
}

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

impl Histogram {
    /// Counts `value`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = bucket(value);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.add_bucket(bucket),
        }
        self.total += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Counts the first value of `bucket`. Out of line: a histogram grows a few times in a run.
    #[cold]
    #[inline(never)]
    fn add_bucket(&mut self, bucket: usize) {
        self.counts.resize(bucket, 0);
        self.counts.push(1);
    }

    /// How many values were counted.
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// The exact mean; `None` of nothing.
    #[expect(clippy::cast_precision_loss, reason = "a mean for display")]
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The exact maximum; `None` of nothing.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The value below which a part `q` (0 to 1) of the values lies; `None` of nothing.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "q of a count is a count"
    )]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q.clamp(0.0, 1.0) * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.buckets().find_map(|(low, high, n)| {
            seen += n;
            (seen >= rank).then(|| (low + (high - low) / 2).min(self.max))
        })
    }

    /// The non-empty buckets in order: lower edge, upper edge (exclusive), count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|&(_, &n)| n > 0)
            .map(|(i, &n)| (edge(i), edge(i + 1), n))
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below 64 * 64")]
fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = u64::BITS - 1 - value.leading_zeros() - SUB_BITS;
    ((u64::from(shift) << SUB_BITS) + (value >> shift)) as usize
}

const fn edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    (SUB + (bucket & (SUB - 1))) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_between_the_edges_of_its_bucket() {
        for value in (0..10_000).chain([1 << 20, 12_345_678, (1 << 40) + 1, u64::MAX >> 8]) {
            let b = bucket(value);
            assert!(edge(b) <= value && value < edge(b + 1), "{value}");
        }
    }

    #[test]
    fn quantiles_are_within_one_percent() {
        let mut h = Histogram::default();
        for v in 1..=100_000 {
            h.record(v);
        }
        for (q, want) in [(0.5, 50_000.0_f64), (0.95, 95_000.0), (0.99, 99_000.0)] {
            let got = f64::from(u32::try_from(h.quantile(q).unwrap()).unwrap());
            assert!((got / want - 1.0).abs() < 0.008, "{q}: {got}");
        }
        assert_eq!(h.max(), Some(100_000));
        assert_eq!(h.mean(), Some(50_000.5));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
