//! Wireless links that share a medium.

use std::ops::RangeInclusive;

use sojourn_net::{Comparison, Duration, Rate};

/// A wireless link: the radio of an access point or a station. `rate` of the link is that of its
/// symbols, and its queue stands above the queue of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioConfig {
    /// Links of the same medium share it, one at a time.
    pub medium: String,
    /// Standard of the frames; the same for all links of a medium.
    pub standard: Standard,
    /// Limit of the driver queue.
    pub driver: DriverLimit,
    /// Stations with a PHY rate of their own, by the number of their host.
    pub stations: Vec<(u8, Rate)>,
    /// Which station's packets are sent next.
    pub sharing: Sharing,
}

impl RadioConfig {
    /// Wireless links were compared with theory only.
    pub const COMPARISON: Comparison = Comparison::None;
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

    /// The PHY rates: below 1 Mbit/s, rounding to whole bits per symbol is too coarse.
    const fn rates(self) -> RangeInclusive<Rate> {
        match self {
            Self::N => Rate::mbit(1)..=Rate::mbit(600),
            Self::Ac => Rate::mbit(1)..=Rate::mbit(6_933),
        }
    }

    /// What is wrong with `rate` as a PHY rate.
    pub(super) fn rate_fault(self, rate: Rate) -> Option<String> {
        let rates = self.rates();
        (!rates.contains(&rate)).then(|| {
            let (least, most, name) = (rates.start(), rates.end(), self.name());
            format!("PHY rate {rate} is out of range; expected {least} to {most} for {name}")
        })
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

/// How stations take turns in the driver's queue.
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
