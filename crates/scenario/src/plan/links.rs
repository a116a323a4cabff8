//! Links: rate, shaper, framing, delay and queue.

use std::ops::RangeInclusive;

use sojourn_apps::LONGEST;
use sojourn_net::{Bytes, Comparison, Duration, Instant, Rate};
use sojourn_path::config::{
    Distribution, Encapsulation, Jitter, LineConfig, RateTrace, Shaper, Trace, TransmitterConfig,
    WireChange,
};
use sojourn_qdisc::{QdiscSpec, QueueChange};

use super::Client;

/// The largest Ethernet frame, 14 B of header included.
pub(crate) const FULL_FRAME: Bytes = Bytes(1_514);

/// A transmitter with a queue in front and a wire behind.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// What the records call it; unique, since its random streams are named after it.
    pub name: String,
    /// Bits per second at the layer that `encapsulation` brings packets to.
    pub rate: Rate,
    /// How the rate is enforced.
    pub shaper: Shaper,
    /// What a packet counts.
    pub encapsulation: Encapsulation,
    /// Propagation delay behind the transmitter.
    pub delay: Duration,
    /// Impairments of packets on the wire.
    pub line: LineConfig,
    /// Changes during the run, by time.
    pub changes: Vec<Change>,
    /// What a controller may change during the run.
    pub controlled: Controlled,
    /// Opportunities to send instead of a rate and shaper; `rate` is their mean.
    pub trace: Option<Trace>,
    /// The rate over time instead of a rate and shaper; `rate` is the mean.
    pub rates: Option<RateTrace>,
    /// The radio, if it is wireless.
    pub radio: Option<RadioConfig>,
    /// The queue discipline.
    pub qdisc: QdiscSpec,
}

/// What a controller may change of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controlled {
    /// Nothing: there is no controller.
    #[default]
    Nothing,
    /// Its rate and its queue.
    RateAndQueue,
    /// Everything.
    All,
}

/// A link from some time on; what is `None` stays as before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// From when on.
    pub at: Duration,
    /// Its rate.
    pub rate: Option<Rate>,
    /// Its queue.
    pub queue: Option<Box<QueueChange>>,
    /// Its wire.
    pub wire: WireChange,
}

impl LinkConfig {
    /// Its rate, if it is the same during the whole run.
    pub fn constant_rate(&self) -> Option<Rate> {
        let steady = self.controlled == Controlled::Nothing && self.is_steady();
        steady.then_some(self.rate)
    }

    /// A wire of `rate` for Ethernet frames, without delay.
    pub const fn new(name: String, rate: Rate, qdisc: QdiscSpec) -> Self {
        Self {
            name,
            rate,
            shaper: Shaper::Serial,
            encapsulation: Encapsulation::ETHERNET,
            delay: Duration::ZERO,
            line: LineConfig::PERFECT,
            changes: Vec::new(),
            controlled: Controlled::Nothing,
            trace: None,
            rates: None,
            radio: None,
            qdisc,
        }
    }

    /// Whether packets take anything but a constant delay behind the transmitter.
    pub fn is_uneven(&self) -> bool {
        self.line != LineConfig::PERFECT
            || self.controlled == Controlled::All
            || self.changes.iter().any(|c| c.wire != WireChange::NONE)
    }

    /// Whether a driver takes packets out of its queue ahead of their transmission.
    pub const fn has_driver(&self) -> bool {
        self.radio.is_some() || matches!(self.shaper, Shaper::Ring(_))
    }

    /// Whether a trace determines its rate.
    pub const fn follows_trace(&self) -> bool {
        self.trace.is_some() || self.rates.is_some()
    }

    /// What its trace lets pass from `from` to `to`.
    fn offered(&self, from: Duration, to: Duration) -> Option<Bytes> {
        let (from, to) = (Instant::ZERO + from, Instant::ZERO + to);
        let rates = || Some(self.rates.as_ref()?.offered(from, to));
        let trace = self.trace.as_ref().map(|trace| trace.offered(from, to));
        trace.or_else(rates)
    }

    /// Whether its rate changes during the run.
    fn changes_rate(&self) -> bool {
        self.changes.iter().any(|c| c.rate.is_some())
    }

    /// The queues that it has during the run, the first one first.
    pub fn queues(&self) -> impl Iterator<Item = &QdiscSpec> {
        let later = self.changes.iter().filter_map(|c| c.queue.as_deref());
        std::iter::once(&self.qdisc).chain(later.map(QueueChange::spec))
    }

    /// The variations of the delay during the run.
    fn jitters(&self) -> impl Iterator<Item = Jitter> {
        let later = self.changes.iter().filter_map(|c| c.wire.jitter);
        std::iter::once(self.line.jitter).chain(later).flatten()
    }

    /// How it sends.
    pub fn transmitter(&self) -> TransmitterConfig {
        TransmitterConfig {
            rate: self.rate,
            shaper: self.shaper,
            encapsulation: self.encapsulation,
            trace: self.trace.clone(),
            rates: self.rates.clone(),
            changes_rate: self.changes_rate(),
            is_controlled: self.controlled != Controlled::Nothing,
        }
    }

    /// The key of a change that is at fault, and the rule.
    pub(super) fn check_change(&self, change: &Change) -> Result<(), (String, String)> {
        const PLACE: &str = "changes[0].";
        let changed = Self {
            changes: vec![change.clone()],
            ..self.clone()
        };
        changed.fault().map_or(Ok(()), |(key, rule)| {
            let key = key.strip_prefix(PLACE).unwrap_or(&key);
            // That of a wireless link is at the whole list.
            let key = if key == "changes" { "rate" } else { key };
            Err((key.to_owned(), rule))
        })
    }

    /// The highest rate it ever has.
    pub fn fastest(&self) -> Rate {
        let stations = self.radio.iter().flat_map(|radio| &radio.stations);
        let stations = stations.map(|station| station.rate);
        let later = self.changes.iter().filter_map(|c| c.rate).chain(stations);
        later.fold(self.rate, |a, b| {
            if a.bits_per_sec() < b.bits_per_sec() {
                b
            } else {
                a
            }
        })
    }

    /// No packet takes less.
    pub(super) fn least_delay(&self) -> Duration {
        let later = self.changes.iter().filter_map(|c| c.wire.delay);
        let least = later.fold(self.delay, Duration::min);
        let earlier = self.jitters().map(|jitter| {
            let scale = match jitter.distribution {
                Distribution::Uniform | Distribution::Pareto => 1,
                Distribution::Normal | Distribution::ParetoNormal => 4,
            };
            scale * jitter.spread.as_nanos()
        });
        let earlier = earlier.max().unwrap_or(0);
        least.saturating_sub(Duration::from_nanos(earlier))
    }

    /// No packet takes more, but for the tails of a Pareto distribution.
    pub(crate) fn greatest_delay(&self) -> Duration {
        const TAIL: u64 = 8;
        let later = self.changes.iter().filter_map(|c| c.wire.delay);
        let most = later.fold(self.delay, Duration::max).as_nanos();
        let spreads = self.jitters().map(|jitter| jitter.spread.as_nanos());
        let spread = spreads.max().unwrap_or(0);
        Duration::from_nanos(most.saturating_add(spread.saturating_mul(TAIL)))
    }

    /// Whether it sends at one rate all the time.
    pub(crate) fn is_steady(&self) -> bool {
        !self.follows_trace() && self.radio.is_none() && !self.changes_rate()
    }

    /// Transmission time in ns of a packet of this Ethernet size at the initial rate.
    pub(crate) fn initial_serialisation(&self, size: Bytes) -> u64 {
        self.rate
            .serialise(self.encapsulation.charged(size))
            .as_nanos()
    }

    /// Events of the simulator per packet of this size that leaves, at most: it waits for credit or for opportunities, it
    /// leaves, and it arrives behind the link.
    pub(crate) fn events_per_packet(&self, size: Bytes) -> u64 {
        const OF_RADIO: u64 = 5;
        let leaving = if self.radio.is_some() {
            OF_RADIO
        } else if self.trace.is_some() {
            1 + self
                .encapsulation
                .charged(size)
                .0
                .div_ceil(Trace::OPPORTUNITY.0)
        } else if self.shaper == Shaper::Serial {
            1
        } else {
            // With a bucket, it waits for credit; with a ring, an interrupt reports it.
            2
        };
        leaving + u64::from(self.is_uneven() || self.delay > Duration::ZERO)
    }

    /// Copies of `count` packets that it delivers, but for one run in 10^9.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float saturates"
    )]
    pub(crate) fn copies(&self, count: u64) -> u64 {
        let later = self.changes.iter().filter_map(|c| c.wire.duplicate);
        let mean = real(count) * later.fold(self.line.duplicate, f64::max);
        (mean + 6.0 * mean.sqrt()).ceil() as u64
    }

    /// Frames of this size that may wait in its queue and that of its driver.
    pub(crate) fn room(&self, frame: Bytes) -> u64 {
        let waiting = self.queues().map(|queue| {
            let limit = queue.footprint();
            limit.packets.min(limit.bytes / frame.0)
        });
        let driver = self.radio.as_ref().map_or(0, |radio| match radio.driver {
            DriverLimit::Packets(most) => most.into(),
            DriverLimit::Aggregates(most) => {
                CATEGORIES * u64::from(radio.aggregate_packets) * u64::from(most)
            }
            DriverLimit::Airtime(most) => {
                most.as_nanos() / self.serialisation(frame).as_nanos().max(1) + 1
            }
        });
        let ring = match self.shaper {
            Shaper::Ring(ring) => ring.packets.into(),
            Shaper::Serial | Shaper::Bucket { .. } | Shaper::Tbf { .. } => 0,
        };
        waiting.max().unwrap_or(0).saturating_add(driver + ring)
    }

    /// Full-sized frames that it lets pass in `time`.
    pub(crate) fn carries(&self, time: Duration, frame: Bytes) -> u64 {
        if let Some(Bytes(offered)) = self.offered(Duration::ZERO, time) {
            return offered / self.encapsulation.charged(frame).0;
        }
        let credit = match self.shaper {
            Shaper::Serial | Shaper::Ring(_) => Duration::ZERO,
            Shaper::Bucket { burst } | Shaper::Tbf { burst } => self.rate.serialise(burst),
        };
        let time = time.as_nanos().saturating_add(credit.as_nanos());
        time / self.serialisation(frame).as_nanos().max(1)
    }

    /// The mean rate from `from` to `to`, in bits per second, at which it sends, or the shaper of its queue if
    /// that is slower; `None` of a wireless link, whose rate depends on what it sends.
    pub fn capacity(&self, from: Duration, to: Duration) -> Option<f64> {
        if self.radio.is_some() {
            return None;
        }
        let rate_of = |queue: &QdiscSpec| {
            let rate = queue.shaper_rate();
            rate.map_or(f64::INFINITY, |rate| real(rate.bits_per_sec()))
        };
        let length = to.saturating_sub(from).as_secs_f64();
        if let Some(offered) = self.offered(from, to)
            && self.queues().nth(1).is_none()
        {
            return Some((8.0 * real(offered.0) / length).min(rate_of(&self.qdisc)));
        }
        let (mut since, mut rate, mut bits) = (Duration::ZERO, self.rate, 0.0);
        let mut shaped = rate_of(&self.qdisc);
        let end = Change {
            at: to,
            ..Change::default()
        };
        for change in self.changes.iter().chain([&end]) {
            let (first, last) = (since.max(from), change.at.min(to));
            let within = last.saturating_sub(first).as_secs_f64();
            if self.follows_trace() {
                let offered = (first < last).then(|| self.offered(first, last)).flatten();
                bits += (8.0 * real(offered.unwrap_or_default().0)).min(within * shaped);
            } else {
                bits += within * real(rate.bits_per_sec()).min(shaped);
            }
            since = change.at;
            rate = change.rate.unwrap_or(rate);
            if let Some(queue) = &change.queue {
                shaped = rate_of(queue.spec());
            }
        }
        Some(bits / length)
    }

    /// Whether it shares a medium with `other` that is of another standard.
    pub(super) fn disagrees(&self, other: &Self) -> bool {
        let radios = self.radio.as_ref().zip(other.radio.as_ref());
        radios.is_some_and(|(a, b)| a.medium == b.medium && a.standard != b.standard)
    }

    /// The key of a wireless link that is at fault, and the rule.
    fn radio_fault(&self, radio: &RadioConfig) -> Option<(String, String)> {
        let fail = |key: &str, rule: &str| Some((key.to_owned(), rule.to_owned()));
        if self.rates.is_some() {
            return fail("rate_trace", "a wireless link cannot follow a trace");
        }
        if self.trace.is_some() {
            return fail("trace", "a wireless link cannot follow a trace");
        }
        if let Some(rule) = radio.standard.rate_fault(self.rate) {
            return fail("rate", &rule);
        }
        for (n, station) in radio.stations.iter().enumerate() {
            if let Some(rule) = radio.standard.rate_fault(station.rate) {
                return fail(&format!("medium.stations[{n}].rate"), &rule);
            }
            if station.host > Client::MOST {
                let (host, most) = (station.host, Client::MOST);
                let rule = format!("{host} is out of range; expected 0 to {most}");
                return fail(&format!("medium.stations[{n}].host"), &rule);
            }
        }
        let has_snr = |channel: &ChannelConfig| channel.snr_db.is_some();
        let of_station = |station: &StationConfig| station.channel.as_ref().is_some_and(has_snr);
        if radio.rate_control == RateControl::Fixed {
            let rule = "needs rate_control = \"minstrel_ht\"; expected mpdu_loss for a fixed rate";
            if has_snr(&radio.channel) {
                return fail("medium.snr_db", rule);
            }
            if let Some(n) = radio.stations.iter().position(of_station) {
                return fail(&format!("medium.stations[{n}].snr_db"), rule);
            }
        }
        if matches!(radio.driver, DriverLimit::Aggregates(_)) && self.qdisc.kind() != "mac80211" {
            let rule = "a limit in aggregates needs the queue mac80211; \
                        expected packets such as \"1000p\", or airtime such as \"5ms\"";
            return fail("medium.driver", rule);
        }
        if let Shaper::Ring(_) = self.shaper {
            let rule = "a wireless link has the driver of its medium; remove tx_ring and set medium.driver";
            return fail("tx_ring", rule);
        }
        if self.shaper != Shaper::Serial {
            let rule = "a wireless link cannot have a token bucket; remove burst";
            return fail("burst", rule);
        }
        if self.encapsulation != Encapsulation::ETHERNET {
            let rule = "a wireless link uses the overhead of its standard; \
                        remove overhead, mpu and framing";
            return fail("overhead", rule);
        }
        if self.queues().nth(1).is_some() && self.queues().any(|queue| queue.kind() == "mac80211") {
            let rule = "the queue mac80211 of a wireless link cannot change";
            return fail("changes", rule);
        }
        if self.changes_rate() {
            let rule = "the rate of a wireless link cannot change; set only delay";
            return fail("changes", rule);
        }
        None
    }

    /// The key that is at fault, and the rule.
    pub(super) fn fault(&self) -> Option<(String, String)> {
        let fail = |key: &str, rule: &str| Some((key.to_owned(), rule.to_owned()));
        if self.delay > LONGEST {
            return fail("delay", "must be at most one year");
        }
        if let Some((key, rule)) = self.line.fault() {
            return fail(key, &rule);
        }
        if let Some(radio) = &self.radio
            && let Some(fault) = self.radio_fault(radio)
        {
            return Some(fault);
        }
        let frame = self.encapsulation.charged(FULL_FRAME);
        if let Shaper::Tbf { burst } = self.shaper
            && burst < frame
        {
            let rule = format!(
                "a tbf bucket of {} B never lets a full frame pass; expected at least {}b",
                burst.0, frame.0
            );
            return fail("burst", &rule);
        }
        let mut before = None;
        for (n, change) in self.changes.iter().enumerate() {
            if before.is_some_and(|before| before >= change.at) {
                return fail(
                    &format!("changes[{n}].at"),
                    "must be after the previous change",
                );
            }
            if let Some((key, rule)) = change.wire.fault() {
                return fail(&format!("changes[{n}].{key}"), &rule);
            }
            if change.rate.is_some() && self.follows_trace() {
                let rule = "the rate of a link with a trace cannot change; set only delay";
                return fail(&format!("changes[{n}].rate"), rule);
            }
            before = Some(change.at);
        }
        None
    }

    /// How long the link takes at least for a packet of this Ethernet size.
    fn serialisation(&self, size: Bytes) -> Duration {
        self.fastest().serialise(self.encapsulation.charged(size))
    }

    /// How long such a packet is at least under way.
    pub(super) fn least_time(&self, size: Bytes) -> Duration {
        let sending = match self.shaper {
            Shaper::Serial | Shaper::Ring(_) if !self.follows_trace() && self.radio.is_none() => {
                self.serialisation(size)
            }
            Shaper::Serial | Shaper::Ring(_) | Shaper::Bucket { .. } | Shaper::Tbf { .. } => {
                Duration::ZERO
            }
        };
        let nanos = self.least_delay().as_nanos();
        Duration::from_nanos(nanos.saturating_add(sending.as_nanos()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 9 petabits")]
fn real(n: u64) -> f64 {
    n as f64
}

/// A wireless link: the radio of an access point or a station. `rate` of the link is that of its
/// symbols, and its queue stands above the queue of the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// Links of the same medium share it, one at a time.
    pub medium: String,
    /// Standard of the frames; the same for all links of a medium.
    pub standard: Standard,
    /// Limit of the driver queue.
    pub driver: DriverLimit,
    /// Stations with a PHY rate or weight of their own.
    pub stations: Vec<StationConfig>,
    /// Which station's packets are sent next.
    pub sharing: Sharing,
    /// How long an aggregate may take.
    pub aggregate_time: Duration,
    /// Packets that an aggregate may have.
    pub aggregate_packets: u32,
    /// How the rate of a transmission is chosen.
    pub rate_control: RateControl,
    /// The way to stations without one of their own.
    pub channel: ChannelConfig,
}

impl RadioConfig {
    /// Wireless links were compared with a simulator and with published numbers.
    pub const COMPARISON: Comparison = Comparison::Partial("ns-3, not measured on hardware");
    /// aPPDUMaxTime of VHT, which devices keep to in HT as well.
    pub const AGGREGATE_TIME: Duration = Duration::from_micros(5_484);
    /// Most packets that a compressed block acknowledgement covers.
    pub const AGGREGATE_PACKETS: u32 = 64;
}

/// Errors between a radio and a station.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChannelConfig {
    /// Ratio of signal to noise, in dB; `None`: no errors by rate.
    pub snr_db: Option<f64>,
    /// Share of MPDUs that are lost whatever the rate.
    pub mpdu_loss: f64,
}

impl ChannelConfig {
    /// Whether nothing is lost.
    pub fn is_clear(&self) -> bool {
        self.snr_db.is_none() && self.mpdu_loss == 0.0
    }
}

/// How the rate of a transmission is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateControl {
    /// Always the PHY rate of the station.
    Fixed,
    /// Minstrel-HT, simplified; the PHY rate is the highest.
    MinstrelHt,
}

impl RateControl {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Fixed, Self::MinstrelHt];

    /// What scenarios call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::MinstrelHt => "minstrel_ht",
        }
    }
}

/// A station of a wireless medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationConfig {
    /// The number of its host.
    pub host: u8,
    /// Its PHY rate.
    pub rate: Rate,
    /// Its weight in the airtime fairness of `mac80211`.
    pub weight: u32,
    /// Its way to and from the radio, if it differs from that of others.
    pub channel: Option<ChannelConfig>,
}

impl StationConfig {
    /// The weight of a station without one of its own, as in Linux.
    pub const WEIGHT: u32 = 256;
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
    /// Packets with this airtime.
    Airtime(Duration),
    /// This number of aggregates per access category, as in `ath9k`; only below `mac80211`.
    Aggregates(u32),
}

/// Access categories of a radio.
const CATEGORIES: u64 = 4;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capacity_is_that_of_the_time_between() {
        let at = Duration::from_secs;
        let qdisc = |text: &str| text.parse::<QdiscSpec>().expect(text);
        let change = |s, mbit| Change {
            at: at(s),
            rate: Some(Rate::mbit(mbit)),
            ..Change::default()
        };
        let mut link = LinkConfig::new("a".to_owned(), Rate::mbit(10), qdisc("pfifo"));
        let mbit = |link: &LinkConfig, from, to| {
            let bits = link.capacity(at(from), at(to)).expect("no radio");
            (bits / 1e3).round() / 1e3
        };
        assert_eq!(mbit(&link, 5, 20).to_bits(), 10.0_f64.to_bits());
        link.changes = vec![change(2, 1), change(10, 30), change(40, 99)];
        // 5 s at 1 Mbit/s and 15 s at 30.
        assert_eq!(mbit(&link, 5, 25).to_bits(), 22.75_f64.to_bits());
        link.qdisc = qdisc("cake bandwidth 20mbit");
        assert_eq!(mbit(&link, 5, 25).to_bits(), 15.25_f64.to_bits());
        link.changes.clear();
        link.trace = Some(Trace::new(vec![1]).expect("a trace"));
        assert_eq!(mbit(&link, 0, 1).to_bits(), 12.032_f64.to_bits());
    }
}
