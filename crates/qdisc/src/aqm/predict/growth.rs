//! What the forecast says of a growth, in real numbers and in integers.

/// Most rounds that a growth is judged by.
pub(super) const MOST_ROUNDS: usize = 4;

/// Minimum packets in a load for which growth is estimated.
pub(super) const LEAST: u64 = 2;

/// An exponential growth as one candidate sees it. In profile `kernel`, ratios are multiples of 2^-24, which are exact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// The load now.
    pub(super) load: f64,
    /// By how much it grew in all rounds.
    pub(super) total: f64,
    /// Ratio of the largest growth in a round to the smallest.
    pub(super) spread: f64,
}

#[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
pub(super) const fn exact(nanos: u64) -> f64 {
    nanos as f64
}
