//! Two samples: do they come from one distribution?

/// False discovery rate of the tests.
pub(crate) const DISCOVERY_RATE: f64 = 0.05;

/// The p-value of the two-sample Kolmogorov-Smirnov test, from the exact distribution of the statistic
/// over all ways to divide the pooled values between the samples, ties included.
///
/// `None` if the samples are so small that no outcome has a p-value of at most [`DISCOVERY_RATE`].
pub(crate) fn two_sample(one: &[f64], other: &[f64]) -> Option<f64> {
    if smallest_p(one.len(), other.len()) > DISCOVERY_RATE {
        return None;
    }
    let (n, m) = (one.len(), other.len());
    let mut pooled: Vec<(f64, bool)> = one.iter().map(|&v| (v, true)).collect();
    pooled.extend(other.iter().map(|&v| (v, false)));
    pooled.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Distribution functions differ only where the value does.
    let ends: Vec<bool> = (0..n + m)
        .map(|k| pooled.get(k + 1).is_none_or(|next| next.0 > pooled[k].0))
        .collect();
    let apart = |i: usize, j: usize| (i * m).abs_diff(j * n);
    let mut largest = 0;
    let mut i = 0;
    for (k, &(_, first)) in pooled.iter().enumerate() {
        i += usize::from(first);
        if ends[k] {
            largest = largest.max(apart(i, k + 1 - i));
        }
    }
    // The ways that reach i values of the first sample among k + 1 without so large a difference.
    let mut ways = vec![0.0; n + 1];
    let mut all = ways.clone();
    (ways[0], all[0]) = (1.0, 1.0);
    for (k, &end) in ends.iter().enumerate() {
        for i in (0..=n.min(k + 1)).rev() {
            let fits = k + 1 - i <= m;
            let step = |from: &[f64]| from[i] + if i > 0 { from[i - 1] } else { 0.0 };
            let (within, any) = (step(&ways), step(&all));
            all[i] = if fits { any } else { 0.0 };
            let below = !end || apart(i, (k + 1).saturating_sub(i)) < largest;
            ways[i] = if fits && below { within } else { 0.0 };
        }
    }
    Some(1.0 - ways[n] / all[n])
}

/// The p-value of samples of `n` and `m` values that do not overlap: two of all divisions.
fn smallest_p(n: usize, m: usize) -> f64 {
    let divisions = (1..=n).fold(1.0, |ways, k| ways * (m + k) as f64 / k as f64);
    2.0 / divisions
}

/// How many of these tests reject at a false discovery rate of `rate` (Benjamini and Hochberg, 1995),
/// and the largest p-value among them.
pub(crate) fn rejected(p_values: &[f64], rate: f64) -> (usize, f64) {
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let total = sorted.len() as f64;
    let passes = |&(n, &p): &(usize, &f64)| p <= rate * (n + 1) as f64 / total;
    let last = sorted.iter().enumerate().rfind(passes);
    last.map_or((0, 0.0), |(n, &p)| (n + 1, p))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(from: i32) -> Vec<f64> {
        (from..from + 10).map(f64::from).collect()
    }

    fn assert_near(got: Option<f64>, want: f64) {
        let got = got.expect("enough values");
        assert!((got - want).abs() < 1e-6, "{got} is not {want}");
    }

    #[test]
    fn p_values_are_those_of_the_exact_distribution() {
        // From the enumeration of all 184756 divisions.
        let halves = |from| count(from).iter().map(|v| v + 0.5).collect::<Vec<_>>();
        assert_near(two_sample(&count(0), &halves(10)), 2.0 / 184_756.0);
        assert_near(two_sample(&count(0), &halves(5)), 0.052_447_552);
        assert_near(two_sample(&count(0), &halves(2)), 0.786_929_788);
    }

    #[test]
    fn ties_do_not_count_as_differences() {
        assert_near(two_sample(&count(0), &count(0)), 1.0);
        // As extreme: the divisions with 9 or 10 of the 10 zeros in one sample.
        let most = |a: f64, b: f64| [vec![a; 9], vec![b]].concat();
        let extreme = 2.0 * (100.0 + 1.0) / 184_756.0;
        assert_near(two_sample(&most(0.0, 1.0), &most(1.0, 0.0)), extreme);
    }

    #[test]
    fn samples_are_tested_if_separate_ones_would_be_rejected() {
        let apart = |n, m| two_sample(&count(0)[..n], &count(10)[..m]);
        assert_near(apart(3, 10), 2.0 / 286.0);
        assert_near(apart(10, 3), 2.0 / 286.0);
        assert_near(apart(5, 5), 2.0 / 252.0);
        assert_near(apart(3, 5), 2.0 / 56.0);
        for (n, m) in [(3, 4), (3, 3), (1, 10), (10, 0), (0, 0)] {
            assert_eq!(apart(n, m), None, "{n} and {m}");
        }
    }

    #[test]
    fn the_false_discovery_rate_is_kept_over_all_tests() {
        assert_eq!(rejected(&[0.04], 0.05), (1, 0.04));
        assert_eq!(rejected(&[0.04, 0.9, 0.8], 0.05), (0, 0.0));
        // The second passes at twice the level, and takes the first with it.
        assert_eq!(rejected(&[0.03, 0.9, 0.031, 0.02], 0.05), (3, 0.031));
        assert_eq!(rejected(&[], 0.05), (0, 0.0));
    }
}
