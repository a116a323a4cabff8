//! A block of traffic: flows of one type that share their settings.

use std::fmt::Debug;
use std::sync::Arc;

use sojourn_net::{Dscp, DscpError, Duration, IpVersion, Rng};

use crate::declare::{KeyValue, Keys as _, Name, choices, keys, one_of};
use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::link::{Links, UNLIMITED};
use crate::page::Pages;
use crate::place::{Fields, Place};
use crate::plan::{Client, Traffic};
use crate::value::{Node, Table, Value};

/// Maximum number of flows in all blocks. Checking a scenario needs 0.5 kB per flow and arm.
pub(super) const MOST_FLOWS: u32 = 100_000;

keys! {
    /// Keys of all traffic.
    #[derive(Clone, Debug)]
    pub(crate) struct Common {
        /// Type of traffic.
        r#type: String = Form::Def("text"), required "\"tcp\"";
        /// Name of the group; its flows are numbered.
        name: Option<Name> = Form::NAME;
        /// up: data crosses the link named up, responses the link named down; down: the reverse.
        direction: Option<Direction> = one_of::<Direction>();
        /// Links that data crosses, in order; replaces direction.
        path: Option<Vec<String>> = Form::List(0, &Form::Def("text"));
        /// Links that responses cross, in order; used with path.
        r#return: Option<Vec<String>> = Form::List(0, &Form::Def("text"));
        /// Number of flows.
        count: u32 = Form::Integer(1, MOST_FLOWS as i64), default "1";
        /// When the flows start.
        start: Duration = Form::TIME, default "0s";
        /// Maximum random delay of each start.
        start_jitter: Duration = Form::TIME, default "0s";
        /// When the flows stop.
        stop: Option<Duration> = Form::POSITIVE_TIME;
        /// Base round-trip time, or a list with one per flow; by default the scenario's.
        rtt: Option<Rtt> = Form::Either(&[Form::TIME, Form::List(1, &Form::TIME)]);
        /// DSCP of all packets, in both directions.
        dscp: Dscp = Form::Def("dscp"), usual "CS0";
        /// Version of IP of all packets: 4 or 6.
        ip: IpVersion = Form::OneOf(&IP_VERSIONS), usual "4";
        /// Host that the flows belong to, for queues that share capacity among hosts.
        host: Option<u8> = Form::Integer(0, Client::MOST as i64);
    }
}

/// Flows that differ in nothing but their names, random streams and perhaps RTTs.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) keys: Common,
    pub(crate) way: Way,
    pub(crate) kind: Kind,
}

/// The base RTT of the flows of a block.
#[derive(Clone, Debug)]
pub(crate) enum Rtt {
    /// The same for all.
    Own(Duration),
    /// One for each.
    Each(Vec<Duration>),
}

impl KeyValue for Rtt {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        match place.node.value {
            Value::List(_) => KeyValue::read(place).map(Self::Each),
            _ => place.time().map(Self::Own),
        }
    }

    fn write(&self) -> Option<Node> {
        match self {
            Self::Own(rtt) => rtt.write(),
            Self::Each(rtts) => rtts.write(),
        }
    }
}

/// A name in quotes or a plain number.
impl KeyValue for Dscp {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let read = match &place.node.value {
            Value::Text(name) => name.parse(),
            Value::Int(number) => number.to_string().parse(),
            _ => Err(DscpError),
        };
        read.map_err(|e: DscpError| place.fail(format!("invalid DSCP {}; {e}", place.node.shown())))
    }

    fn write(&self) -> Option<Node> {
        Some(self.to_string().into())
    }
}

/// The numbers of the versions of IP.
const IP_VERSIONS: [i64; 2] = [IpVersion::V4.number() as i64, IpVersion::V6.number() as i64];

/// 4 or 6.
impl KeyValue for IpVersion {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let version = match place.node.value {
            Value::Int(number) => {
                (Self::ALL.into_iter()).find(|version| i64::from(version.number()) == number)
            }
            _ => None,
        };
        version.ok_or_else(|| {
            let given = place.node.shown();
            place.fail(format!("unknown version of IP {given}; expected 4 or 6"))
        })
    }

    fn write(&self) -> Option<Node> {
        Some(Value::Int(self.number().into()).into())
    }
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

choices! {
    Direction: "direction";
}

impl Block {
    /// The name of the group; empty until it has one.
    pub(crate) fn name(&self) -> &str {
        self.keys.name.as_ref().map_or("", |name| &name.0)
    }

    /// Its canonical table.
    pub(crate) fn node(&self) -> Node {
        let mut fields = Table::new();
        self.keys.write(&mut fields);
        self.kind.write(&mut fields);
        Value::Table(fields).into()
    }

    /// Whose its flows are.
    pub(crate) fn client(&self) -> Option<Client> {
        self.keys.host.map(|number| Client {
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
        if self.keys.count == 1 {
            self.name().to_owned()
        } else {
            format!("{}/{}", self.name(), n + 1)
        }
    }

    /// The base RTT of flow number `n` of the block.
    pub(crate) fn flow_rtt(&self, n: u32, common: Duration) -> Duration {
        match &self.keys.rtt {
            None => common,
            Some(Rtt::Own(rtt)) => *rtt,
            Some(Rtt::Each(rtts)) => rtts[n as usize],
        }
    }
}

/// A type of traffic, declared in its file and listed in `TYPES`.
pub(super) struct TrafficType {
    /// The value of the key `type`.
    pub(super) name: &'static str,
    /// Lists of the keys that it has beside those of all traffic.
    pub(super) keys: &'static [&'static [Key]],
    pub(super) properties: TrafficProperties,
    pub(super) read: Reader,
}

/// Properties of a type of traffic that determine the metrics of its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficProperties {
    /// The metrics that its groups have.
    pub measured: Measured,
    /// Whether its flows carry data, so that their goodput counts.
    pub carries_data: bool,
    /// Whether each flow is one connection, with a congestion window.
    pub has_connection: bool,
    /// Whether the rate of its flows is that of the scenario, whatever the network does.
    pub constant_rate: bool,
    /// What its users wait for, in the plural, such as `pages`; `None`: it has no transactions.
    pub transactions: Option<&'static str>,
}

/// Which metrics the groups of a type of traffic have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Those of groups of flows.
    Flows,
    /// Those of groups of applications.
    Applications,
    /// None of their own.
    Nothing,
}

impl TrafficProperties {
    /// Flows that are one connection each.
    pub const CONNECTION: Self = Self {
        measured: Measured::Flows,
        carries_data: true,
        has_connection: true,
        constant_rate: false,
        transactions: None,
    };

    /// Datagrams at a rate that the scenario sets.
    pub const DATAGRAMS: Self = Self {
        has_connection: false,
        constant_rate: true,
        ..Self::CONNECTION
    };

    /// Applications.
    pub const APPLICATION: Self = Self {
        measured: Measured::Applications,
        has_connection: false,
        ..Self::CONNECTION
    };

    /// Applications with transactions of this name.
    pub(super) const fn transactions(name: &'static str) -> Self {
        Self {
            transactions: Some(name),
            ..Self::APPLICATION
        }
    }

    /// Traffic of an unknown type, such as that of a measurement of another program.
    pub const UNKNOWN: Self = Self {
        measured: Measured::Nothing,
        has_connection: false,
        ..Self::CONNECTION
    };
}

/// Reads the settings of a block.
pub(super) type Reader = fn(&Fields<'_>, &Context<'_>) -> Result<Arc<dyn Source>, ScenarioError>;

/// What a type may need to know beside its own keys.
pub(super) struct Context<'a> {
    pub(super) pages: &'a Pages,
    /// Number of flows of the block.
    pub(super) count: u32,
    /// Length of a run.
    pub(super) duration: Duration,
}

/// What the flows of a block send.
pub(super) trait Source: Debug + Send + Sync {
    /// Writes its keys, in canonical units.
    fn write(&self, fields: &mut Table);

    /// What one flow runs; `rng` is the flow's own.
    fn plan(&self, rng: Rng) -> Traffic;
}

/// A type of traffic with its settings.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    name: &'static str,
    source: Arc<dyn Source>,
}

impl TrafficType {
    /// Reads the settings of a block of this type.
    pub(super) fn settings(
        &self,
        fields: &Fields<'_>,
        context: &Context<'_>,
    ) -> Result<Kind, ScenarioError> {
        Ok(Kind {
            name: self.name,
            source: (self.read)(fields, context)?,
        })
    }
}

impl Kind {
    /// The name of its type.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the other end sends anything back.
    pub(super) fn is_answered(&self) -> bool {
        match self.plan(Rng::new(0)) {
            Traffic::Datagrams(config) => config.kind().is_answered(),
            Traffic::Tcp { .. }
            | Traffic::Quic { .. }
            | Traffic::App(_)
            | Traffic::Program(_)
            | Traffic::Bridged => true,
        }
    }

    /// Writes the keys of its type, in canonical units.
    pub(crate) fn write(&self, fields: &mut Table) {
        self.source.write(fields);
    }

    /// What one flow runs; `rng` is the flow's own.
    pub(crate) fn plan(&self, rng: Rng) -> Traffic {
        self.source.plan(rng)
    }
}

pub(super) fn way(
    place: &Place<'_>,
    fields: &Fields<'_>,
    links: &Links,
) -> Result<Way, ScenarioError> {
    let names = links.names();
    match (
        fields.get("direction"),
        fields.get("path"),
        fields.get("return"),
    ) {
        (Some(direction), None, None) => {
            let chosen = KeyValue::read(&direction)?;
            if Direction::NAMES.iter().all(|name| !names.contains(name)) {
                return Err(direction.fail(format!(
                    "no link is named \"up\" or \"down\"; set path to a list of links (defined links: {})",
                    names.join(", ")
                )));
            }
            Ok(Way::Direction(chosen))
        }
        (None, Some(path), back) => Ok(Way::Path {
            path: path_of(&path, &names)?,
            back: back.map_or(Ok(Vec::new()), |back| path_of(&back, &names))?,
        }),
        (None, None, _) => {
            let rule = "missing direction; set direction = \"up\" or \"down\", or set path";
            Err(place.fail(rule))
        }
        (Some(direction), ..) => Err(direction.fail(
            "cannot be combined with path or return; set either direction, or path and optionally return",
        )),
    }
}

/// Rejects a direction with undefined links; its packets would silently pass without delay.
pub(super) fn check_way(
    way: &Way,
    answered: bool,
    fields: &Fields<'_>,
    links: &Links,
) -> Result<(), ScenarioError> {
    let (Way::Direction(direction), Some(place)) = (way, fields.get("direction")) else {
        return Ok(());
    };
    let names = links.names();
    let other = match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
    };
    for (needed, what) in [(direction.name(), "data"), (other.name(), "responses")] {
        if !names.contains(&needed) && (answered || needed == direction.name()) {
            return Err(place.fail(format!(
                "{what} cross the link \"{needed}\", which is not defined; define links.{needed}, or set links.{needed} = \"{UNLIMITED}\" (defined links: {})",
                names.join(", ")
            )));
        }
    }
    Ok(())
}

fn path_of(place: &Place<'_>, links: &[&str]) -> Result<Vec<String>, ScenarioError> {
    const MOST_HOPS: usize = 254;
    let hops = place.list()?;
    if hops.len() > MOST_HOPS {
        return Err(place.fail(format!("too many links; expected at most {MOST_HOPS}")));
    }
    hops.iter()
        .map(|hop| {
            let name = hop.text()?;
            if links.contains(&name) {
                return Ok(name.to_owned());
            }
            let links = links.join(", ");
            // The path of the error is the key's: the name says which hop it is.
            Err(place.fail(format!("unknown link \"{name}\"; expected one of {links}")))
        })
        .collect()
}
