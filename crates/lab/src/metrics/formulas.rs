//! Means, shares, quantiles and Jain's index of fairness.

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) const fn real(count: usize) -> f64 {
    count as f64
}

/// The sum of the values that were measured.
pub(super) fn sum(values: impl Iterator<Item = Option<f64>>) -> f64 {
    values.flatten().sum()
}

/// The mean of the values that were measured; `None` if there are none.
pub(super) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (mut total, mut count) = (0.0, 0);
    for value in values.flatten() {
        total += value;
        count += 1;
    }
    (count > 0).then(|| total / real(count))
}

/// The share for which a condition holds, in percent, where it is known.
pub(super) fn percent_true(values: impl Iterator<Item = Option<bool>>) -> Option<f64> {
    mean(values.map(|is_true| is_true.map(|is_true| f64::from(u8::from(is_true)))))
        .map(|of| of * 100.0)
}

/// `part` relative to `whole` in percent; `None` if both are 0.
pub(super) fn percent(part: f64, whole: f64) -> Option<f64> {
    let share = part / whole * 100.0;
    (!share.is_nan()).then_some(share)
}

/// Jain's index of fairness (Σx)² / (n Σx²); `None` if all values are 0 or there are none.
pub fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// A quantile of the values that were measured.
pub(super) fn quantile(values: impl Iterator<Item = Option<f64>>, q: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.flatten().collect();
    sorted.sort_by(f64::total_cmp);
    sojourn_tables::quantile_of_sorted(&sorted, q)
}
