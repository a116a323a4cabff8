//! Wireless links: `medium`.

use crate::key::{Form, Key};
use crate::plan::{Client, DriverLimit, RadioConfig, Sharing, Standard};
use sojourn_net::Rate;

use crate::error::ScenarioError;
use crate::place::Place;
use crate::value::{Node, Value, insert, list, table, time};

pub(super) const KEYS: &[Key] = &[
    Key::required(
        "type",
        Form::Choice(|| TYPES.to_vec()),
        "Type of the medium.",
    ),
    Key::optional(
        "name",
        Form::NAME,
        "Name of the medium; links with the same name share it.",
    )
    .or("air"),
    Key::optional(
        "standard",
        Form::Choice(|| Standard::ALL.map(Standard::name).to_vec()),
        "WiFi standard: sets the largest aggregate and the preamble.",
    )
    .or("802.11n"),
    Key::optional(
        "driver",
        Form::Either(&[Form::Def("packets"), Form::POSITIVE_TIME]),
        "Limit of the driver queue, in packets or airtime.",
    )
    .or(PACKETS_WITHOUT_LIMIT),
    Key::optional(
        "stations",
        Form::List(0, &Form::Table(STATION_KEYS)),
        "Stations with a rate of their own.",
    ),
    Key::optional(
        "sharing",
        Form::Choice(|| Sharing::ALL.map(Sharing::name).to_vec()),
        "How the stations share the radio: equal turns or equal airtime.",
    )
    .or("turns"),
];
const STATION_KEYS: &[Key] = &[
    Key::required(
        "host",
        Form::Integer(0, Client::MOST as i64),
        "Number of the station, the host of its traffic.",
    ),
    Key::required("rate", Form::RATE, "PHY rate of this station."),
];
const TYPES: [&str; 1] = ["wifi"];
/// Packets that drivers held before their queues were limited.
const PACKETS_WITHOUT_LIMIT: &str = "1000p";

const MOST_PACKETS: u32 = 1_000_000;

/// Reads the table.
pub(super) fn read(place: &Place<'_>) -> Result<RadioConfig, ScenarioError> {
    let fields = place.fields(KEYS)?;
    let kind = fields.need("type", "\"wifi\"")?;
    kind.one_of("medium", &TYPES)?;
    Ok(RadioConfig {
        medium: fields.value("name", Place::name)?,
        standard: fields.one_of("standard", "WiFi standard", &Standard::ALL)?,
        driver: fields.value("driver", driver)?,
        stations: fields.option("stations", stations)?.unwrap_or_default(),
        sharing: fields.one_of("sharing", "sharing mode", &Sharing::ALL)?,
    })
}

/// `1000p`, or a time on the air.
fn driver(place: &Place<'_>) -> Result<DriverLimit, ScenarioError> {
    let packets = match &place.node.value {
        Value::Text(text) => text.trim().strip_suffix('p').map(str::parse::<u32>),
        _ => None,
    };
    match packets {
        Some(Ok(n)) if (1..=MOST_PACKETS).contains(&n) => Ok(DriverLimit::Packets(n)),
        Some(_) => {
            let right = format!("1p to {MOST_PACKETS}p, or airtime such as \"5ms\"");
            Err(place.out_of_range(&right))
        }
        None => place.time().map(DriverLimit::Airtime),
    }
}

fn stations(place: &Place<'_>) -> Result<Vec<(u8, Rate)>, ScenarioError> {
    let mut stations: Vec<(u8, Rate)> = Vec::new();
    for place in place.list()? {
        let fields = place.fields(STATION_KEYS)?;
        let host = fields.need("host", "1")?;
        let number: u8 = host.integer()?;
        if stations.iter().any(|&(known, _)| known == number) {
            return Err(host.fail(format!("duplicate host {number}")));
        }
        stations.push((number, fields.need("rate", "\"6500kbit\"")?.rate()?));
    }
    Ok(stations)
}

/// The table as it is written.
pub(super) fn node(radio: &RadioConfig) -> Node {
    let driver = match radio.driver {
        DriverLimit::Packets(n) => format!("{n}p").into(),
        DriverLimit::Airtime(limit) => time(limit),
    };
    let mut fields = table([
        ("type", TYPES[0].into()),
        ("name", radio.medium.as_str().into()),
        ("standard", radio.standard.name().into()),
        ("driver", driver),
        ("sharing", radio.sharing.name().into()),
    ]);
    let stations = list(&radio.stations, |&(host, rate)| {
        Value::Table(table([
            ("host", u32::from(host).into()),
            ("rate", rate.to_string().into()),
        ]))
        .into()
    });
    let some = !radio.stations.is_empty();
    insert(&mut fields, "stations", some.then_some(stations));
    Value::Table(fields).into()
}
