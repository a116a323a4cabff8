//! Upper bounds on what an application sends, derived from its parameters.

use sojourn_net::Duration;

/// A connection that fails is replaced. None fails sooner than this, the idle timeout of QUIC; TCP retries for longer.
const FAILURE: Duration = Duration::from_secs(30);

/// What the network lets an application do at best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunity {
    /// How long it runs.
    pub time: Duration,
    /// The shortest round trip of a small packet.
    pub rtt: Duration,
    /// Bytes that can reach the client.
    pub carried: u64,
}

impl Opportunity {
    /// How many transactions of at least `bytes` bytes there can be, the last of which does not end.
    pub(crate) const fn transactions(&self, bytes: u64) -> u64 {
        match self.carried.checked_div(bytes) {
            Some(ended) => ended.saturating_add(1),
            None => u64::MAX,
        }
    }

    /// How many of `connections` that stay open can fail.
    pub(crate) const fn failures(&self, connections: u64) -> u64 {
        connections.saturating_mul(self.time.as_nanos() / FAILURE.as_nanos())
    }
}

/// The most that an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Connections that it opens.
    pub connections: u64,
    /// Connections that are open at the same time.
    pub open: u64,
    /// Transactions that it records.
    pub transactions: u64,
    /// What its clients write.
    pub client: Volume,
    /// What its servers write.
    pub server: Volume,
}

/// What one end of all connections writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Total size.
    pub bytes: u64,
    /// Number of messages, each of which may end with a packet that is not full.
    pub messages: u64,
}

impl Volume {
    /// Data without an end.
    pub(crate) const ENDLESS: Self = Self {
        bytes: u64::MAX,
        messages: u64::MAX,
    };

    /// `messages` of `size` bytes each.
    pub(crate) const fn of(messages: u64, size: u64) -> Self {
        Self {
            bytes: messages.saturating_mul(size),
            messages,
        }
    }

    /// This and `other`.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            messages: self.messages.saturating_add(other.messages),
        }
    }

    /// Packets of `payload` bytes that carry it.
    pub const fn packets(self, payload: u64) -> u64 {
        (self.bytes / payload).saturating_add(self.messages)
    }
}

/// Bound on a random count or sum with expectation `mean` and standard deviation `deviation`, of draws of at most
/// `largest`: six deviations above the mean, which one run in 10^9 exceeds, and two of the largest draws, since few
/// draws have a longer tail than many.
pub(crate) const fn above(mean: f64, deviation: f64, largest: f64) -> f64 {
    mean + 6.0 * deviation + 2.0 * largest
}

/// A whole number that is not less; large ones saturate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates"
)]
pub(crate) fn whole(bound: f64) -> u64 {
    bound.ceil() as u64
}

/// A count as a number; the rounding of large counts does not matter in a bound.
#[expect(clippy::cast_precision_loss, reason = "a bound")]
pub(crate) const fn real(count: u64) -> f64 {
    count as f64
}

/// Bound on the number of events whose expectation is `mean` and whose gaps deviate by `spread` of themselves.
pub(crate) fn most_events(mean: u64, spread: f64) -> u64 {
    // The number in the time of six gaps is small.
    whole(above(real(mean), spread * real(mean).sqrt(), 6.0 * spread))
}
