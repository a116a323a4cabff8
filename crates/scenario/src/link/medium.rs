//! Wireless links: `medium`.

use sojourn_net::Rate;

use crate::declare::{KeyValue, Keys, Name, choices, keys, one_of, tables, words, written};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Place;
use crate::plan::{Client, DriverLimit, RadioConfig, Sharing, Standard};
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
        /// Limit of the driver queue, in packets or airtime.
        // What drivers held before their queues were limited.
        driver: DriverLimit = Form::Either(&[Form::Def("packets"), Form::POSITIVE_TIME]), default "1000p";
        /// Stations with a rate of their own.
        stations: Option<Stations> = Form::List(0, &Form::Table(Station::KEYS));
        /// How the stations share the radio: equal turns or equal airtime.
        sharing: Sharing = one_of::<Sharing>(), default "turns";
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
    }
}

words! {
    /// A type of medium.
    enum Type: "medium" { Wifi = "wifi" }
}

choices! {
    Standard: "WiFi standard";
    Sharing: "sharing mode";
}

tables! { Medium Station }

/// Stations, none of them twice.
#[derive(Clone, Debug)]
pub(crate) struct Stations(Vec<Station>);

const MOST_PACKETS: u32 = 1_000_000;

impl Medium {
    pub(super) fn config(&self) -> RadioConfig {
        let stations = self.stations.iter().flat_map(|stations| &stations.0);
        RadioConfig {
            medium: self.name.0.clone(),
            standard: self.standard,
            driver: self.driver,
            stations: stations
                .map(|station| (station.host, station.rate))
                .collect(),
            sharing: self.sharing,
        }
    }
}

/// `1000p`, or a time on the air.
impl KeyValue for DriverLimit {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let packets = match &place.node.value {
            Value::Text(text) => text.trim().strip_suffix('p').map(str::parse::<u32>),
            _ => None,
        };
        match packets {
            Some(Ok(n)) if (1..=MOST_PACKETS).contains(&n) => Ok(Self::Packets(n)),
            Some(_) => {
                let right = format!("1p to {MOST_PACKETS}p, or airtime such as \"5ms\"");
                Err(place.out_of_range(&right))
            }
            None => place.time().map(Self::Airtime),
        }
    }

    fn write(&self) -> Option<Node> {
        Some(match self {
            Self::Packets(n) => format!("{n}p").into(),
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
