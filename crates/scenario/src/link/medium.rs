//! Wireless links: `medium`.

use crate::key::{Form, Key};
use crate::plan::{Client, DriverLimit, RadioConfig, Sharing, Standard};
use sojourn_net::Rate;

use crate::error::ScenarioError;
use crate::place::{Place, choice};
use crate::value::{Node, Value};
use crate::write::{insert, list, table, time};

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
        "Wi-Fi standard: sets the largest aggregate and the preamble.",
    )
    .or("802.11n"),
    Key::optional(
        "driver",
        Form::Either(&[Form::Def("packets"), Form::POSITIVE_TIME]),
        "Limit of the driver queue, in packets or airtime.",
    )
    .or("1000p"),
    Key::optional(
        "stations",
        Form::List(0, &Form::Table(STATION_KEYS)),
        "Hosts with a rate of their own.",
    ),
    Key::optional(
        "sharing",
        Form::Choice(|| Sharing::ALL.map(Sharing::name).to_vec()),
        "How the hosts share the radio: equal turns or equal airtime.",
    )
    .or("turns"),
];
const STATION_KEYS: &[Key] = &[
    Key::required(
        "host",
        Form::Integer(0, Client::MOST as i64),
        "Number of the host.",
    ),
    Key::required("rate", Form::RATE, "Symbol rate to this host."),
];
const TYPES: [&str; 1] = ["wifi"];

/// Packets that drivers held before their queues were limited.
const USUAL: DriverLimit = DriverLimit::Packets(1_000);
const MOST_PACKETS: u32 = 1_000_000;

/// Reads the table.
pub(super) fn read(place: &Place<'_>) -> Result<RadioConfig, ScenarioError> {
    let fields = place.fields(KEYS)?;
    let kind = fields.need("type", "\"wifi\"")?;
    choice(&kind, "medium", &TYPES)?;
    let standards = Standard::ALL.map(Standard::name);
    let sharings = Sharing::ALL.map(Sharing::name);
    Ok(RadioConfig {
        medium: fields.or("name", "air".to_owned(), Place::name)?,
        standard: fields.or("standard", Standard::N, |p| {
            choice(p, "Wi-Fi standard", &standards).map(|n| Standard::ALL[n])
        })?,
        driver: fields.or("driver", USUAL, driver)?,
        stations: fields.or("stations", Vec::new(), stations)?,
        sharing: fields.or("sharing", Sharing::Turns, |p| {
            choice(p, "sharing mode", &sharings).map(|n| Sharing::ALL[n])
        })?,
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
        Some(_) => Err(place.fail(format!(
            "{} is out of range; expected 1p to {MOST_PACKETS}p, or airtime such as \"5ms\"",
            place.node.shown()
        ))),
        None => place.positive_time().map(DriverLimit::Airtime),
    }
}

fn stations(place: &Place<'_>) -> Result<Vec<(u8, Rate)>, ScenarioError> {
    let mut stations: Vec<(u8, Rate)> = Vec::new();
    for place in place.list()? {
        let fields = place.fields(STATION_KEYS)?;
        let host = fields.need("host", "1")?;
        let number = host.count(0, Client::MOST.into())?;
        let number = u8::try_from(number).map_err(|_| host.fail("is out of range"))?;
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
