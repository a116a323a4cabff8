//! Where in its period a periodic source starts.
//!
//! Sources that start together and send at equal or commensurable gaps meet the queue in the same
//! order forever, and a probe with the period of the load samples one point of it. A random phase
//! makes both averages over replications.
//!
//! # Source
//!
//! RFC 3432, section 3.3 (random start times of periodic streams), RFC 2330, section 11.1.

use sojourn_net::{Duration, Rng};

/// The time from the start of a flow to the first packet of a periodic source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// A random part of the first period.
    #[default]
    Random,
    /// This time.
    Fixed(Duration),
}

impl Phase {
    /// The phase of a source with this period.
    pub fn draw(self, period: Duration, rng: &mut Rng) -> Duration {
        match self {
            Self::Random => period.scaled(rng.uniform()),
            Self::Fixed(phase) => phase,
        }
    }
}

impl From<Option<Duration>> for Phase {
    fn from(phase: Option<Duration>) -> Self {
        phase.map_or(Self::Random, Self::Fixed)
    }
}
