//! Wireless links: `medium`.

use sojourn_net::{Duration, Rate};

use crate::declare::{
    KeyValue, Keys, Name, Percent, choices, keys, one_of, tables, words, written,
};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Place;
use crate::plan::{
    ChannelConfig, Client, DriverLimit, RadioConfig, RateControl, Sharing, Standard, StationConfig,
};
use crate::value::{Node, Value, time};

keys! {
    /// A wireless medium.
    #[derive(Clone, Debug)]
    pub(crate) struct Medium {
        /// Type of the medium.
        r#type: Type = one_of::<Type>(), required "\"wifi\"";
        /// Name of the medium; links with the same name share it.
        name: Name = Form::NAME, default "air";
        /// WiFi standard: sets the largest aggregate and the preamble.
        standard: Standard = one_of::<Standard>(), default "802.11n";
        /// Limit of the driver queue, in packets, airtime or, with the queue mac80211, aggregates per access category.
        // What drivers held before their queues were limited.
        driver: DriverLimit = Form::Either(&[Form::Def("packets"), Form::POSITIVE_TIME, Form::Def("aggregates")]), default "1000p";
        /// Stations with a rate of their own.
        stations: Option<Stations> = Form::List(0, &Form::Table(Station::KEYS));
        /// How the stations share the radio: equal turns or equal airtime.
        sharing: Sharing = one_of::<Sharing>(), default "turns";
        /// Maximum airtime of an aggregate.
        aggregate_time: Duration = Form::TimeUpTo(RadioConfig::AGGREGATE_TIME), default "5484us";
        /// Maximum number of packets in an aggregate.
        aggregate_packets: u32 = Form::Integer(1, RadioConfig::AGGREGATE_PACKETS as i64), default "64";
        /// Rate control: always the PHY rate, or Minstrel-HT, for which the PHY rate is the highest.
        rate_control: RateControl = one_of::<RateControl>(), default "fixed";
        /// Signal-to-noise ratio in dB, from which the errors at each rate follow; needs rate control.
        snr_db: Option<f64> = Form::Number(LEAST_SNR_DB, MOST_SNR_DB);
        /// Share of MPDUs lost, the same at every rate.
        mpdu_loss: Percent = Form::PERCENT, default "0%";
    }
}

keys! {
    /// A station with a rate of its own.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Station {
        /// Number of the station, the host of its traffic.
        host: u8 = Form::Integer(0, Client::MOST as i64), required "1";
        /// PHY rate of this station.
        rate: Rate = Form::RATE, required "\"6500kbit\"";
        /// Weight in the airtime fairness of mac80211.
        weight: u32 = Form::Integer(1, 65_535), default "256";
        /// Signal-to-noise ratio in dB, if it differs from that of the medium.
        snr_db: Option<f64> = Form::Number(LEAST_SNR_DB, MOST_SNR_DB);
        /// Share of MPDUs lost, if it differs from that of the medium.
        mpdu_loss: Option<Percent> = Form::PERCENT;
    }
}

words! {
    /// A type of medium.
    enum Type: "medium" { Wifi = "wifi" }
}

choices! {
    RateControl: "rate control";
    Standard: "WiFi standard";
    Sharing: "sharing mode";
}

tables! { Medium Station }

/// Stations, none of them twice.
#[derive(Clone, Debug)]
pub(crate) struct Stations(Vec<Station>);

const LEAST_SNR_DB: f64 = -20.0;
const MOST_SNR_DB: f64 = 100.0;
const MOST_PACKETS: u32 = 1_000_000;
const MOST_AGGREGATES: u32 = 64;

impl Medium {
    pub(super) fn config(&self) -> RadioConfig {
        let channel = ChannelConfig {
            snr_db: self.snr_db,
            mpdu_loss: self.mpdu_loss.0 / 100.0,
        };
        let stations = self.stations.iter().flat_map(|stations| &stations.0);
        RadioConfig {
            medium: self.name.0.clone(),
            standard: self.standard,
            driver: self.driver,
            stations: stations
                .map(|station| StationConfig {
                    host: station.host,
                    rate: station.rate,
                    weight: station.weight,
                    channel: station.channel(&channel),
                })
                .collect(),
            sharing: self.sharing,
            aggregate_time: self.aggregate_time,
            aggregate_packets: self.aggregate_packets,
            rate_control: self.rate_control,
            channel,
        }
    }
}

impl Station {
    /// Its channel, if it differs from that `of_medium`.
    fn channel(&self, of_medium: &ChannelConfig) -> Option<ChannelConfig> {
        (self.snr_db.is_some() || self.mpdu_loss.is_some()).then(|| ChannelConfig {
            snr_db: self.snr_db.or(of_medium.snr_db),
            mpdu_loss: self
                .mpdu_loss
                .map_or(of_medium.mpdu_loss, |loss| loss.0 / 100.0),
        })
    }
}

/// `1000p`, `2 aggregates`, or a time on the air.
impl KeyValue for DriverLimit {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        if let Value::Text(text) = &place.node.value
            && let Some(number) = text.trim().strip_suffix("aggregates")
        {
            let number = number.trim().parse::<u32>().ok();
            let fits = number.filter(|n| (1..=MOST_AGGREGATES).contains(n));
            let right = format!("1 aggregates to {MOST_AGGREGATES} aggregates");
            return fits
                .map(Self::Aggregates)
                .ok_or_else(|| place.out_of_range(&right));
        }
        let packets = match &place.node.value {
            Value::Text(text) => text.trim().strip_suffix('p').map(str::parse::<u32>),
            _ => None,
        };
        match packets {
            Some(Ok(n)) if (1..=MOST_PACKETS).contains(&n) => Ok(Self::Packets(n)),
            Some(_) => {
                let right = format!(
                    "1p to {MOST_PACKETS}p, airtime such as \"5ms\", or aggregates such as \"2 aggregates\""
                );
                Err(place.out_of_range(&right))
            }
            None => place.time().map(Self::Airtime),
        }
    }

    fn write(&self) -> Option<Node> {
        Some(match self {
            Self::Packets(n) => format!("{n}p").into(),
            Self::Aggregates(n) => format!("{n} aggregates").into(),
            Self::Airtime(limit) => time(*limit),
        })
    }
}

impl KeyValue for Stations {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let mut stations: Vec<Station> = Vec::new();
        for place in place.list()? {
            let station: Station = KeyValue::read(&place)?;
            if stations.iter().any(|known| known.host == station.host) {
                let host = place.fields(Station::KEYS)?.need("host", "1")?;
                return Err(host.fail(format!("duplicate host {}", station.host)));
            }
            stations.push(station);
        }
        Ok(Self(stations))
    }

    fn write(&self) -> Option<Node> {
        (!self.0.is_empty()).then(|| written(&self.0))
    }
}
