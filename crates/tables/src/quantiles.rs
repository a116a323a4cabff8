//! Means and quantiles of samples.

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / real(values.len()))
}

/// The value below which a part `q` of `sorted` lies, interpolated as numpy does by default
/// (Hyndman and Fan's type 7); `None` of nothing.
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * real(last);
    let below = floor(at);
    let above = (below + 1).min(last);
    let part = at - real(below);
    Some(sorted[below] + part * (sorted[above] - sorted[below]))
}

#[expect(clippy::cast_precision_loss, reason = "samples are far below 2^53")]
fn real(n: usize) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a slice"
)]
fn floor(at: f64) -> usize {
    at as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numpys() {
        // numpy.quantile([1, 2, 4, 8], [0, .25, .5, .95, 1])
        let sorted = [1.0, 2.0, 4.0, 8.0];
        for (q, want) in [
            (0.0, 1.0),
            (0.25, 1.75),
            (0.5, 3.0),
            (0.95, 7.4),
            (1.0, 8.0),
        ] {
            let got = quantile_of_sorted(&sorted, q).unwrap();
            assert!((got - want).abs() < 1e-12, "{q}: {got}");
        }
        assert_eq!(quantile_of_sorted(&[], 0.5), None);
    }
}
