//! The congestion controls of media to choose from.

use sojourn_net::Instant;

use super::control::{Feedback, RateControl, Rates};
use super::gcc::Gcc;
use super::scream::{Scream, ScreamMode};

/// The congestion control of a media flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaControl {
    /// SCReAMv2.
    #[default]
    Scream,
    /// Google Congestion Control.
    Gcc,
    /// None: the start rate throughout.
    Constant,
}

impl MediaControl {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scream, Self::Gcc, Self::Constant];

    /// What scenarios call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scream => "scream",
            Self::Gcc => "gcc",
            Self::Constant => "constant",
        }
    }

    pub(super) fn build(self, rates: Rates, mode: ScreamMode) -> Box<dyn RateControl> {
        match self {
            Self::Scream => Box::new(Scream::new(rates, mode)),
            Self::Gcc => Box::new(Gcc::new(rates)),
            Self::Constant => Box::new(Constant(rates.start)),
        }
    }
}

/// No congestion control.
#[derive(Debug)]
struct Constant(f64);

impl RateControl for Constant {
    fn on_feedback(&mut self, _: Instant, _: &Feedback) {}

    fn target(&self) -> f64 {
        self.0
    }
}
