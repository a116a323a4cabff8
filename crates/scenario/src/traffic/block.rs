//! A block of traffic: flows of one type that share their settings.

use sojourn_net::{Dscp, Duration};

use super::kind::Kind;
use crate::plan::Client;

/// Maximum number of flows in all blocks. Checking a scenario needs 0.5 kB per flow and arm.
pub(super) const MOST_FLOWS: u32 = 100_000;

/// Flows that differ in nothing but their names, random streams and perhaps RTTs.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) way: Way,
    pub(crate) count: u32,
    pub(crate) start: Duration,
    pub(crate) start_jitter: Duration,
    pub(crate) stop: Option<Duration>,
    pub(crate) rtt: Rtt,
    pub(crate) dscp: Dscp,
    pub(crate) host: Option<u8>,
    pub(crate) kind: Kind,
}

/// The base RTT of the flows of a block.
#[derive(Clone, Debug)]
pub(crate) enum Rtt {
    /// The scenario's.
    Common,
    /// The same for all.
    Own(Duration),
    /// One for each.
    Each(Vec<Duration>),
}

/// Through which links a flow passes.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// By the links called `up` and `down`.
    Direction(Direction),
    /// By the links of these names.
    Path {
        path: Vec<String>,
        back: Vec<String>,
    },
}

/// Where the data of a flow goes, seen from the near host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Direction {
    pub(crate) const ALL: [Self; 2] = [Self::Up, Self::Down];
    pub(crate) const NAMES: [&str; 2] = [Self::Up.name(), Self::Down.name()];

    /// Also the name of the link that the data passes.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl Block {
    /// Whose its flows are.
    pub(crate) fn client(&self) -> Option<Client> {
        self.host.map(|number| Client {
            number,
            receives: matches!(self.way, Way::Direction(Direction::Down)),
        })
    }

    /// Names of the links that it crosses, in either direction.
    pub(crate) fn links(&self) -> impl Iterator<Item = &str> {
        let (directions, path): (&[&str], [&[String]; 2]) = match &self.way {
            Way::Direction(_) => (&Direction::NAMES, [&[], &[]]),
            Way::Path { path, back } => (&[], [path, back]),
        };
        directions
            .iter()
            .copied()
            .chain(path.into_iter().flatten().map(String::as_str))
    }

    /// What flow number `n` of the block is called.
    pub(crate) fn flow_name(&self, n: u32) -> String {
        if self.count == 1 {
            self.name.clone()
        } else {
            format!("{}/{}", self.name, n + 1)
        }
    }

    /// The base RTT of flow number `n` of the block.
    pub(crate) fn flow_rtt(&self, n: u32, common: Duration) -> Duration {
        match &self.rtt {
            Rtt::Common => common,
            Rtt::Own(rtt) => *rtt,
            Rtt::Each(rtts) => rtts[n as usize],
        }
    }
}
