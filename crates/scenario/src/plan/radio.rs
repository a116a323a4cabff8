//! Wireless links that share a medium.

use sojourn_net::{Duration, Rate};

/// A wireless link: the radio of an access point or a station. `rate` of the link is that of its
/// symbols, and its queue stands above the queue of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioConfig {
    /// Links of the same medium share it, one at a time.
    pub medium: String,
    /// What frames look like; the same for all links of a medium.
    pub standard: Standard,
    /// What the driver takes out of the queue ahead of time.
    pub driver: DriverLimit,
    /// Clients that are reached at another rate, by number.
    pub stations: Vec<(u8, Rate)>,
    /// Which client's packets are sent next.
    pub sharing: Sharing,
}

/// A generation of IEEE 802.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// High throughput, "Wi-Fi 4".
    N,
    /// Very high throughput, "Wi-Fi 5".
    Ac,
}

impl Standard {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::N, Self::Ac];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::N => "802.11n",
            Self::Ac => "802.11ac",
        }
    }

    pub(super) const RATES: &str = "symbol rate out of range; expected 1mbit to 600mbit for 802.11n, 1mbit to 6933mbit for 802.11ac";

    /// Whether its symbols can carry `rate`: below 1 Mbit/s, rounding to whole bits per symbol is too coarse.
    pub(super) fn has(self, rate: Rate) -> bool {
        let most = match self {
            Self::N => Rate::mbit(600),
            Self::Ac => Rate::mbit(6_933),
        };
        (Rate::mbit(1)..=most).contains(&rate)
    }
}

/// How much waits below the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverLimit {
    /// This number of packets.
    Packets(u32),
    /// Packets with this airtime, as Linux's airtime queue limits.
    Airtime(Duration),
}

/// How clients take turns in the driver's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One aggregate each: a slow one takes most of the time.
    Turns,
    /// By time on the air.
    Airtime,
}

impl Sharing {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Turns, Self::Airtime];

    /// What scenarios call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Airtime => "airtime",
        }
    }
}
