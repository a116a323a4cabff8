//! Reading `[[traffic]]`.

mod dash;
mod names;
mod ping;
mod quic;
mod responsiveness;
mod rounds;
mod sessions;
mod tcp;
mod transport;
mod udp;
mod voip;
mod way;
mod web;

use crate::key::{Form, Key};
use crate::plan::{Client, Traffic};
use sojourn_net::{Dscp, DscpError, Duration, Rng};

use crate::decode::choice;
use crate::error::ScenarioError;
use crate::link::Link;
use crate::model::{Block, Direction, Rtt};
use crate::page::Pages;
use crate::place::{Fields, Place};
use crate::value::{Table, Value};
use dash::Dash;
use names::{check_names, name_the_nameless};
use ping::Ping;
use quic::Quic;
use responsiveness::Responsiveness;
use rounds::Rounds;
use sessions::Sessions;
use tcp::{PARAMS, Tcp};
use udp::Udp;
use voip::Voip;
use way::way;
use web::Web;

const COMMON: &[Key] = &[
    Key::required("type", Form::Def("text"), "Type of the traffic."),
    Key::optional(
        "name",
        Form::NAME,
        "Name of the group; its flows are numbered.",
    ),
    Key::optional(
        "direction",
        Form::Choice(|| Direction::NAMES.to_vec()),
        "up: data crosses the link called up, answers the one called down; down: the reverse.",
    ),
    Key::optional(
        "path",
        Form::List(0, &Form::Def("text")),
        "Links that data crosses, in order; instead of a direction.",
    ),
    Key::optional(
        "return",
        Form::List(0, &Form::Def("text")),
        "Links that answers cross, in order; with path.",
    ),
    Key::optional(
        "count",
        Form::Integer(1, MOST_FLOWS as i64),
        "Number of flows.",
    )
    .or("1"),
    Key::optional("start", Form::TIME, "When the flows start.").or("0s"),
    Key::optional(
        "start_jitter",
        Form::TIME,
        "Each start is moved by a random part of this.",
    )
    .or("0s"),
    Key::optional("stop", Form::POSITIVE_TIME, "When the flows are aborted."),
    Key::optional(
        "rtt",
        Form::Either(&[Form::TIME, Form::List(1, &Form::TIME)]),
        "Base round-trip time, or one for each flow; by default the scenario's.",
    ),
    Key::optional(
        "dscp",
        Form::Def("dscp"),
        "Class of all packets, both directions.",
    )
    .or("CS0"),
    Key::optional(
        "host",
        Form::Integer(0, Client::MOST as i64),
        "Client that the flows belong to, for queues that share among hosts.",
    ),
];

/// Flows are numbered with 32 bits; this many are far beyond any memory.
const MOST_FLOWS: u32 = 10_000_000;

/// What a flow sends: a file a kind.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Tcp(Tcp),
    Udp(Udp),
    Ping(Ping),
    Quic(Quic),
    Web(Web),
    Sessions(Sessions),
    Rounds(Rounds),
    Dash(Dash),
    Voip(Voip),
    Responsiveness(Responsiveness),
}

impl Kind {
    const NAMES: [&str; 11] = [
        "tcp",
        "udp",
        "ping",
        "quic",
        "web",
        "sessions",
        "request",
        "incast",
        "dash",
        "voip",
        "responsiveness",
    ];

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Tcp(_) => Self::NAMES[0],
            Self::Udp(_) => Self::NAMES[1],
            Self::Ping(_) => Self::NAMES[2],
            Self::Quic(_) => Self::NAMES[3],
            Self::Web(_) => Self::NAMES[4],
            Self::Sessions(_) => Self::NAMES[5],
            Self::Rounds(rounds) if rounds.is_incast() => Self::NAMES[7],
            Self::Rounds(_) => Self::NAMES[6],
            Self::Dash(_) => Self::NAMES[8],
            Self::Voip(_) => Self::NAMES[9],
            Self::Responsiveness(_) => Self::NAMES[10],
        }
    }

    /// The keys of the kind that [`Kind::NAMES`] has at `chosen`.
    fn keys(chosen: usize) -> Vec<Key> {
        match chosen {
            0 => [Tcp::KEYS, PARAMS].concat(),
            1 => Udp::KEYS.to_vec(),
            2 => Ping::KEYS.to_vec(),
            3 => Quic::KEYS.to_vec(),
            4 => [Web::KEYS, PARAMS].concat(),
            5 => [Sessions::KEYS, PARAMS].concat(),
            6 => [Rounds::KEYS, PARAMS].concat(),
            7 => [Rounds::KEYS, PARAMS, &[Rounds::SERVERS]].concat(),
            8 => [Dash::KEYS, PARAMS].concat(),
            9 => Voip::KEYS.to_vec(),
            _ => [Responsiveness::KEYS, PARAMS].concat(),
        }
    }

    /// Writes its keys, in canonical units.
    pub(crate) fn write(&self, fields: &mut Table) {
        match self {
            Self::Tcp(tcp) => tcp.write(fields),
            Self::Udp(udp) => udp.write(fields),
            Self::Ping(ping) => ping.write(fields),
            Self::Quic(quic) => quic.write(fields),
            Self::Web(web) => web.write(fields),
            Self::Sessions(sessions) => sessions.write(fields),
            Self::Rounds(rounds) => rounds.write(fields),
            Self::Dash(dash) => dash.write(fields),
            Self::Voip(voip) => voip.write(fields),
            Self::Responsiveness(test) => test.write(fields),
        }
    }

    /// What the simulator runs; `rng` is the flow's own.
    pub(crate) fn plan(&self, rng: Rng) -> Traffic {
        match self {
            Self::Tcp(tcp) => tcp.plan(rng),
            Self::Udp(udp) => udp.plan(),
            Self::Ping(ping) => ping.plan(),
            Self::Quic(quic) => quic.plan(rng),
            Self::Web(web) => web.plan(),
            Self::Sessions(sessions) => sessions.plan(),
            Self::Rounds(rounds) => rounds.plan(),
            Self::Dash(dash) => dash.plan(),
            Self::Voip(voip) => voip.plan(),
            Self::Responsiveness(test) => test.plan(),
        }
    }
}

/// The keys of each type of traffic.
pub(crate) fn keys() -> impl Iterator<Item = (&'static str, Vec<Key>)> {
    let kinds = Kind::NAMES.into_iter().enumerate();
    kinds.map(|(chosen, name)| (name, known(chosen)))
}

fn known(chosen: usize) -> Vec<Key> {
    [COMMON, &Kind::keys(chosen)].concat()
}

/// Reads all blocks and gives those a name that have none.
pub(crate) fn blocks(
    top: &Fields<'_>,
    links: &[Link],
    pages: &Pages,
    duration: Duration,
) -> Result<Vec<Block>, ScenarioError> {
    let example = "[{ type = \"tcp\", direction = \"up\" }]";
    let place = top.need("traffic", example)?;
    let places = place.list()?;
    if places.is_empty() {
        return Err(place.fail(format!("at least one is needed, such as {example}")));
    }
    let mut blocks: Vec<_> = places
        .iter()
        .map(|place| block(place, links, pages, duration))
        .collect::<Result<_, _>>()?;
    name_the_nameless(&mut blocks);
    check_names(&blocks, &places)?;
    Ok(blocks)
}

/// A block whose name is empty if none was given.
fn block(
    place: &Place<'_>,
    links: &[Link],
    pages: &Pages,
    duration: Duration,
) -> Result<Block, ScenarioError> {
    let type_place = place.open_table()?.need("type", "\"tcp\"")?;
    let chosen = choice(&type_place, "traffic type", &Kind::NAMES)?;
    let fields = place.fields(&known(chosen))?;
    let count = fields.or("count", 1, |p| p.count(1, MOST_FLOWS))?;
    let block = Block {
        name: fields.or("name", String::new(), Place::name)?,
        way: way(place, &fields, links)?,
        count,
        start: fields.or("start", Duration::ZERO, Place::time)?,
        start_jitter: fields.or("start_jitter", Duration::ZERO, Place::time)?,
        stop: fields.option("stop", Place::positive_time)?,
        rtt: rtt(&fields, count)?,
        dscp: fields.or("dscp", Dscp::DEFAULT, dscp)?,
        host: fields.option("host", host)?,
        kind: match chosen {
            0 => Kind::Tcp(Tcp::read(&fields)?),
            1 => Kind::Udp(Udp::read(&fields)?),
            2 => Kind::Ping(Ping::read(&fields, count, duration)?),
            3 => Kind::Quic(Quic::read(&fields)?),
            4 => Kind::Web(Web::read(&fields, pages)?),
            5 => Kind::Sessions(Sessions::read(&fields, count, duration)?),
            6 => Kind::Rounds(Rounds::read(&fields)?),
            7 => Kind::Rounds(Rounds::read_incast(&fields)?),
            8 => Kind::Dash(Dash::read(&fields)?),
            9 => Kind::Voip(Voip::read(&fields)?),
            _ => Kind::Responsiveness(Responsiveness::read(&fields)?),
        },
    };
    check_times(&block, &fields, duration)?;
    Ok(block)
}

fn host(place: &Place<'_>) -> Result<u8, ScenarioError> {
    let number = place.count(0, Client::MOST.into())?;
    u8::try_from(number).map_err(|_| place.fail("is out of range"))
}

/// A name in quotes or a plain number.
fn dscp(place: &Place<'_>) -> Result<Dscp, ScenarioError> {
    let read = match &place.node.value {
        Value::Text(name) => name.parse(),
        Value::Int(number) => number.to_string().parse(),
        _ => Err(DscpError),
    };
    read.map_err(|e: DscpError| place.fail(format!("invalid DSCP {}: {e}", place.node.shown())))
}

fn rtt(fields: &Fields<'_>, count: u32) -> Result<Rtt, ScenarioError> {
    let Some(place) = fields.get("rtt") else {
        return Ok(Rtt::Common);
    };
    let Value::List(given) = &place.node.value else {
        return place.time().map(Rtt::Own);
    };
    if given.len() != count as usize {
        let given = given.len();
        let rule = format!("{given} given, {count} needed: one for each flow of the count");
        return Err(place.fail(rule));
    }
    let rtts = place.list()?;
    let rtts = rtts.iter().map(Place::time).collect::<Result<_, _>>()?;
    Ok(Rtt::Each(rtts))
}

fn check_times(
    block: &Block,
    fields: &Fields<'_>,
    duration: Duration,
) -> Result<(), ScenarioError> {
    if let Some(place) = fields.get("start")
        && block.start >= duration
    {
        let given = place.node.shown();
        return Err(place.fail(format!("{given} must come before the run ends")));
    }
    if let (Some(place), Some(stop)) = (fields.get("stop"), block.stop)
        && stop <= block.start
    {
        let given = place.node.shown();
        return Err(place.fail(format!("{given} must come after the start")));
    }
    Ok(())
}
