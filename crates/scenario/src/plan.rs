//! The plan of one run: links, flows and duration. Any backend can run it.

mod controller;
mod links;
mod program;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use sojourn_apps::{ApplicationConfig, DatagramConfig, LONGEST};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion};
use sojourn_qdisc::{FlowCondition, FlowFacts, QdiscSpec, QueueChange};
use sojourn_transport::{SMALLEST_MSS, SenderParams, full_payload, quic};

use crate::error::instead_of;

pub use controller::{
    Controller, ControllerClass, LinkMeasured, Measured, Reply, Request, controller,
    register_controller,
};
pub(crate) use links::FULL_FRAME;
pub use links::{Change, Controlled, LinkConfig};
pub use links::{
    ChannelConfig, DriverLimit, RadioConfig, RateControl, Sharing, Standard, StationConfig,
};
pub use program::Program;
pub use sojourn_path::config::{
    Distribution, EcnRewrite, Encapsulation, GilbertElliott, Jitter, LineConfig, Loss, Order,
    RateTrace, RingConfig, Shaper, Trace, TransmitterConfig, WireChange,
};

/// A run, and what the scenario knows of its flows beyond what is needed to run them.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What to run.
    pub config: Config,
    /// One for each flow of the configuration, in its order.
    pub flows: Vec<FlowLabel>,
    /// The name of the controller that may change the links.
    pub controller: Option<String>,
}

/// What is known of a flow beyond its configuration.
#[derive(Clone, Debug)]
pub struct FlowLabel {
    /// The block of traffic it belongs to.
    pub group: String,
    /// The type of that block.
    pub kind: &'static str,
    /// `up` or `down`, where the scenario says so.
    pub direction: Option<&'static str>,
    /// Its base RTT, without the delay of links.
    pub rtt: Duration,
}

/// One run as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Every random stream of the run derives from this and a name.
    pub seed: u64,
    /// When the run ends.
    pub duration: Duration,
    /// Totals and histograms count from here on; series cover the whole run.
    pub measure_from: Duration,
    /// Length of one interval of the series.
    pub sample: Duration,
    /// The bottlenecks.
    pub links: Vec<LinkConfig>,
    /// The traffic.
    pub flows: Vec<FlowConfig>,
    /// Keep every drop and mark as an event, besides counting it.
    pub keep_events: bool,
    /// Record the state of every queue at each sample.
    pub sample_state: bool,
}

/// One step of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Through link number `n` of [`Config::links`].
    Link(usize),
    /// Over an ideal wire.
    Delay(Duration),
}

/// A source of traffic, its peer and the way between them.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowConfig {
    /// What the records call it; unique, since its random streams are named after it.
    pub name: String,
    /// The way of data, UDP packets, ping requests and responses to the requests of applications.
    pub forward: Vec<Hop>,
    /// The way of acknowledgements, ping replies and the requests of applications.
    pub reverse: Vec<Hop>,
    /// When it starts, before jitter.
    pub start: Duration,
    /// The start is moved by a uniform random part of this, drawn per flow.
    pub start_jitter: Duration,
    /// When it is aborted; `None`: with the run.
    pub stop: Option<Duration>,
    /// The class of all its packets, in both directions.
    pub dscp: Dscp,
    /// The version of IP of all its packets.
    pub ip: IpVersion,
    /// Whose it is; `None`: all such flows join one pair of hosts.
    pub client: Option<Client>,
    /// What it sends.
    pub traffic: Traffic,
}

impl FlowConfig {
    /// Payload of a full-sized segment, where it sends over TCP.
    pub(crate) fn mss(&self) -> u16 {
        match &self.traffic {
            Traffic::Tcp { params, .. } => params.mss,
            Traffic::App(app) => app.exchange().tcp.mss,
            Traffic::Quic { .. }
            | Traffic::Datagrams(_)
            | Traffic::Program(_)
            | Traffic::Bridged => full_payload(self.ip),
        }
    }

    /// Whether it is a program.
    pub const fn is_program(&self) -> bool {
        matches!(self.traffic, Traffic::Program(_))
    }

    /// A packet with a full-sized segment.
    pub(crate) fn full_frame(&self) -> Bytes {
        Bytes(FULL_FRAME.0 - u64::from(full_payload(self.ip)) + u64::from(self.mss()))
    }

    /// An acknowledgement of TCP without data.
    pub(crate) fn pure_ack(&self) -> Bytes {
        Bytes(PURE_ACK.0 + u64::from(self.ip.more_than_v4()))
    }

    /// A UDP datagram with this payload, on an Ethernet.
    pub(crate) fn datagram(&self, payload: Bytes) -> Bytes {
        Bytes(UDP_HEADERS + u64::from(self.ip.more_than_v4()) + payload.0)
    }
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// TCP as Linux has it.
    Tcp {
        /// Bytes to transfer; `None`: without end.
        bytes: Option<u64>,
        /// What the connection is opened with.
        params: SenderParams,
    },
    /// QUIC.
    Quic {
        /// Bytes to transfer; `None`: without end.
        bytes: Option<u64>,
        /// Size in bytes of the request of the receiver, which opens the connection;
        /// `None`: the sender opens it.
        request: Option<u64>,
        /// What the connection is opened with.
        params: quic::Params,
    },
    /// Datagrams without a connection.
    Datagrams(Arc<dyn DatagramConfig>),
    /// An application, whose connections are opened as it goes.
    App(Arc<dyn ApplicationConfig>),
    /// A program, with all packets that belong to no other flow; only live runs start programs.
    Program(Arc<Program>),
    /// Packets of other machines, which a bridge between two interfaces passes.
    Bridged,
}

impl Traffic {
    /// Datagrams of this configuration.
    pub fn datagrams(config: impl DatagramConfig) -> Self {
        Self::Datagrams(Arc::new(config))
    }
}

/// Largest window of TCP, in bytes (RFC 7323 §2.3).
pub(crate) const MAX_WINDOW: u64 = 1 << 30;
/// An acknowledgement of TCP over IPv4 without data.
pub(crate) const PURE_ACK: Bytes = Bytes(66);
/// Ethernet, IPv4 and UDP headers.
const UDP_HEADERS: u64 = 42;

/// Why a [`Config`] cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which part, such as `flows[3].forward`.
    pub place: String,
    /// What it must be.
    pub rule: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// The flows as the filters of `queue` see them; `None`: none of its filters asks for them.
    pub fn flow_facts(&self, queue: &QdiscSpec) -> Option<Arc<[FlowFacts]>> {
        if queue.flow_filters().is_empty() {
            return None;
        }
        let facts = self.flows.iter().map(|flow| FlowFacts {
            traffic: flow.name.as_str().into(),
            host: flow.client.map(|client| client.number.into()),
        });
        Some(facts.collect())
    }

    /// Checks everything a run relies on.
    ///
    /// # Errors
    /// The first rule that is broken, and where.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |place: &str, rule: &str| {
            Err(ConfigError {
                place: place.to_owned(),
                rule: rule.to_owned(),
            })
        };
        if self.flows.is_empty() {
            return fail("flows", "empty; expected at least one flow");
        }
        if self.duration <= self.measure_from {
            return fail("duration", "must be longer than the warm-up");
        }
        if self.sample == Duration::ZERO {
            return fail("sample", "must be > 0");
        }
        if self.duration > LONGEST {
            return fail("duration", "must be at most one year");
        }
        let links: Vec<&str> = self.links.iter().map(|link| &*link.name).collect();
        check_names("links", links)?;
        let flows: Vec<&str> = self.flows.iter().map(|flow| &*flow.name).collect();
        check_names("flows", flows)?;
        for (n, link) in self.links.iter().enumerate() {
            if link.radio.is_some()
                && let Some(other) = self.links[..n].iter().find(|other| other.disagrees(link))
            {
                let rule = format!(
                    "differs from the standard of link {}, which shares the medium",
                    other.name
                );
                return fail(&format!("links[{n}].medium.standard"), &rule);
            }
            if let Some((key, rule)) = link.fault() {
                return fail(&format!("links[{n}].{key}"), &rule);
            }
            if let Some(rule) = self.unknown_flows(&link.qdisc) {
                return fail(&format!("links[{n}].qdisc"), &rule);
            }
            for (m, change) in link.changes.iter().enumerate() {
                let queue = change.queue.as_deref().map(QueueChange::spec);
                if let Some(rule) = queue.and_then(|queue| self.unknown_flows(queue)) {
                    return fail(&format!("links[{n}].changes[{m}].qdisc"), &rule);
                }
            }
            if let Some(late) = link.changes.iter().position(|c| c.at >= self.duration) {
                let place = format!("links[{n}].changes[{late}].at");
                return fail(&place, "must be before the end of the run");
            }
        }
        for (n, flow) in self.flows.iter().enumerate() {
            self.check_flow(n, flow)?;
            self.check_length(n, flow)?;
        }
        Ok(())
    }

    /// Checks a change that a controller asks for, of link number `n`.
    ///
    /// # Errors
    /// The key that is at fault, and the rule.
    pub fn check_change(&self, n: usize, change: &Change) -> Result<(), (String, String)> {
        let queue = change.queue.as_deref().map(QueueChange::spec);
        if let Some(rule) = queue.and_then(|queue| self.unknown_flows(queue)) {
            return Err(("qdisc".to_owned(), rule));
        }
        self.links[n].check_change(change)
    }

    /// What is wrong with the traffic and the hosts that filters of a queue name.
    fn unknown_flows(&self, queue: &QdiscSpec) -> Option<String> {
        let flows = || self.flows.iter().map(|flow| flow.name.as_str());
        let exists = |name: &str| {
            let mut rests = flows().filter_map(|flow| flow.strip_prefix(name));
            rests.any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let hosts: BTreeSet<u16> = self
            .flows
            .iter()
            .filter_map(|flow| Some(flow.client?.number.into()))
            .collect();
        let unknown = queue
            .flow_filters()
            .into_iter()
            .find(|condition| match condition {
                FlowCondition::Traffic(name) => !exists(name),
                FlowCondition::Host(host) => !hosts.contains(host),
            })?;
        let unknown = match unknown {
            FlowCondition::Traffic(name) => name,
            FlowCondition::Host(host) => {
                let known: Vec<_> = hosts.iter().map(u16::to_string).collect();
                let known: Vec<_> = known.iter().map(String::as_str).collect();
                let instead = match known.as_slice() {
                    [] => "no traffic has a host".to_owned(),
                    [only] => format!("expected {only}"),
                    [others @ .., last] => format!("expected {} or {last}", others.join(", ")),
                };
                return Some(format!("a filter names unknown host {host}; {instead}"));
            }
        };
        let blocks = flows().map(|flow| flow.split('/').next().unwrap_or_default());
        let mut blocks: Vec<_> = blocks.collect();
        blocks.dedup();
        let instead = instead_of(&unknown, &blocks);
        Some(format!(
            "a filter names unknown traffic \"{unknown}\"; {instead}"
        ))
    }

    fn check_flow(&self, n: usize, flow: &FlowConfig) -> Result<(), ConfigError> {
        let fail = |key: &str, rule: String| {
            Err(ConfigError {
                place: format!("flows[{n}].{key}"),
                rule,
            })
        };
        for (key, way) in [("forward", &flow.forward), ("reverse", &flow.reverse)] {
            for hop in way {
                if let Hop::Link(link) = *hop
                    && link >= self.links.len()
                {
                    let links = self.links.len();
                    return fail(
                        key,
                        format!(
                            "link index {link} is out of range (number of links: {links}, numbered from 0)"
                        ),
                    );
                }
                if let Hop::Delay(delay) = *hop
                    && delay > LONGEST
                {
                    return fail(key, "delays must be at most one year".to_owned());
                }
            }
            let zero = Hop::Delay(Duration::ZERO);
            if way.iter().filter(|&&hop| hop != zero).count() > usize::from(u8::MAX) {
                return fail(key, "a path must have at most 255 hops".to_owned());
            }
        }
        for (key, time) in [("start", flow.start), ("start_jitter", flow.start_jitter)] {
            if time > LONGEST {
                return fail(key, "must be at most one year".to_owned());
            }
        }
        if flow.stop.is_some_and(|stop| stop <= flow.start) {
            return fail("stop", "must be after the start".to_owned());
        }
        match flow.traffic {
            Traffic::Tcp { bytes: Some(0), .. } => fail("bytes", "must be > 0".to_owned()),
            Traffic::Tcp { params, .. } if params.ip != flow.ip => {
                fail("ip", "must be that of its parameters".to_owned())
            }
            Traffic::Tcp { params, .. }
                if !(SMALLEST_MSS..=full_payload(flow.ip)).contains(&params.mss) =>
            {
                let most = full_payload(flow.ip);
                fail("mss", format!("must be {SMALLEST_MSS} to {most} bytes"))
            }
            Traffic::Tcp { params, .. } => match params.initial_window {
                0 => fail("initial_window", "must be >= 1".to_owned()),
                1..=MAX_INITIAL_WINDOW => Ok(()),
                _ => fail(
                    "initial_window",
                    format!("must be at most {MAX_INITIAL_WINDOW} segments"),
                ),
            },
            Traffic::Quic {
                bytes,
                request,
                ref params,
            } => check_quic(bytes, request, params, flow.ip).map_err(|(key, rule)| ConfigError {
                place: format!("flows[{n}].{key}"),
                rule,
            }),
            Traffic::App(_) if self.round_trips(flow) == u64::MAX => fail(
                "forward",
                "an application needs a path with a link or a delay > 0".to_owned(),
            ),
            Traffic::App(ref app) if app.exchange().tcp.ip != flow.ip => {
                fail("ip", "must be that of its parameters".to_owned())
            }
            Traffic::App(ref app) => app
                .check()
                .map_or(Ok(()), |(key, rule)| fail(key, rule.to_owned())),
            Traffic::Datagrams(ref datagrams) => datagrams
                .check()
                .map_or(Ok(()), |(key, rule)| fail(key, rule.to_owned())),
            Traffic::Program(_) if self.flows[..n].iter().any(FlowConfig::is_program) => fail(
                "type",
                "a second program; expected at most one, since packets of no other flow are attributed to it"
                    .to_owned(),
            ),
            Traffic::Program(ref program) => program
                .check()
                .map_or(Ok(()), |(key, rule)| fail(key, rule)),
            Traffic::Bridged => Ok(()),
        }
    }

    /// Whether the segments of a TCP flow, or the packets of a QUIC flow, can be numbered. On a
    /// path that takes no time there would be no end of them at the first instant.
    fn check_length(&self, n: usize, flow: &FlowConfig) -> Result<(), ConfigError> {
        let (bytes, unit) = match &flow.traffic {
            Traffic::Tcp { bytes, params } => (*bytes, params.mss),
            Traffic::Quic { bytes, .. } => (*bytes, quic::SMALLEST_DATAGRAM),
            Traffic::Datagrams(datagrams) => {
                let count = datagrams.datagrams(self.duration);
                return if count < u64::from(u32::MAX) {
                    Ok(())
                } else {
                    Err(too_many(&flow.name))
                };
            }
            Traffic::App(_) | Traffic::Program(_) | Traffic::Bridged => return Ok(()),
        };
        let by_bytes = bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(u64::from(unit)));
        let per_window = MAX_WINDOW / u64::from(unit);
        let most = by_bytes
            .min(self.carried(flow))
            .min(self.round_trips(flow).saturating_mul(per_window));
        // What is under way is numbered as well.
        if most.saturating_add(per_window) < u64::from(u32::MAX) {
            return Ok(());
        }
        Err(if most == u64::MAX {
            ConfigError {
                place: format!("flows[{n}].forward"),
                rule: "an endless transfer needs a path with a link or a delay > 0".to_owned(),
            }
        } else {
            too_many(&flow.name)
        })
    }

    /// Full-sized segments of `flow` that the slowest link on its way lets pass.
    pub(crate) fn carried(&self, flow: &FlowConfig) -> u64 {
        let links = flow.forward.iter().filter_map(|hop| match *hop {
            Hop::Link(n) => Some(&self.links[n]),
            Hop::Delay(_) => None,
        });
        let carried = links.map(|link| link.carries(self.duration, flow.full_frame()));
        carried.min().unwrap_or(u64::MAX)
    }

    /// The round-trip time of `flow` with empty queues: the delays of its path and of the links on it, as they
    /// are when the run begins, without the time that links take to transmit.
    pub fn base_rtt(&self, flow: &FlowConfig) -> Duration {
        let hops = flow.forward.iter().chain(&flow.reverse);
        hops.fold(Duration::ZERO, |sum, hop| match hop {
            Hop::Delay(delay) => sum + *delay,
            Hop::Link(link) => sum + self.links[*link].delay,
        })
    }

    /// Round trips of `flow` within the run, were no queue on its way.
    pub(crate) fn round_trips(&self, flow: &FlowConfig) -> u64 {
        let rtt = self.least_round_trip(flow, flow.full_frame()).as_nanos();
        let trips = self.duration.as_nanos().checked_div(rtt);
        trips.map_or(u64::MAX, |trips| trips.saturating_add(1))
    }

    /// The time from sending a packet of this size to its acknowledgement, were no queue on its way.
    pub(crate) fn least_round_trip(&self, flow: &FlowConfig, size: Bytes) -> Duration {
        let times = |way: &[Hop], size| {
            let times = way.iter().map(|hop| match *hop {
                Hop::Link(n) => self.links[n].least_time(size).as_nanos(),
                Hop::Delay(delay) => delay.as_nanos(),
            });
            times.fold(0, u64::saturating_add)
        };
        let there = times(&flow.forward, size);
        Duration::from_nanos(there.saturating_add(times(&flow.reverse, flow.pure_ack())))
    }
}

/// The error message for a flow with more packets than a connection can number.
fn too_many(flow: &str) -> ConfigError {
    ConfigError {
        place: "duration".to_owned(),
        rule: format!(
            "too long for the rates: \"{flow}\" could send more than the 2^32 packets that a connection can number; expected a shorter duration or a lower rate"
        ),
    }
}

/// Whether all names differ: random streams are named after them.
fn check_names(place: &str, mut names: Vec<&str>) -> Result<(), ConfigError> {
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(ConfigError {
            place: place.to_owned(),
            rule: format!("duplicate name \"{}\"", pair[0]),
        }),
    }
}

/// What 10 Gbit/s and 120 ms hold; the controllers' 32-bit arithmetic has room for ten times that.
pub(crate) const MAX_INITIAL_WINDOW: u32 = 100_000;

/// A machine among several that share the links; each of its flows has a server of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Which one, at most [`Client::MOST`].
    pub number: u8,
    /// Data goes to it, and not from it.
    pub receives: bool,
}

impl Client {
    /// The highest number.
    pub const MOST: u8 = 126;
}

/// The first rule that QUIC traffic breaks: its key, and what it must be.
fn check_quic(
    bytes: Option<u64>,
    request: Option<u64>,
    params: &quic::Params,
    ip: IpVersion,
) -> Result<(), (&'static str, String)> {
    let sizes = quic::SMALLEST_DATAGRAM..=quic::largest_datagram(ip);
    let certificates = 1..=quic::LARGEST_CERTIFICATE;
    if bytes == Some(0) {
        return Err(("bytes", "must be > 0".to_owned()));
    }
    if request == Some(0) {
        return Err(("request", "must be > 0".to_owned()));
    }
    if !(1..=MAX_INITIAL_WINDOW).contains(&params.initial_window) {
        let rule = format!("must be 1 to {MAX_INITIAL_WINDOW} datagrams");
        return Err(("initial_window", rule));
    }
    if !sizes.contains(&params.max_datagram) {
        let rule = format!("must be {} to {} bytes", sizes.start(), sizes.end());
        return Err(("max_datagram", rule));
    }
    if !certificates.contains(&params.certificate) {
        let rule = format!("must be 1 to {} bytes", quic::LARGEST_CERTIFICATE);
        return Err(("certificate", rule));
    }
    let limits = [
        ("max_data", params.flow.data),
        ("max_stream_data", params.flow.stream_data),
    ];
    if let Some((key, _)) = limits.into_iter().find(|&(_, bytes)| bytes == 0) {
        return Err((key, "must be > 0".to_owned()));
    }
    if params.ack.every == 0 {
        return Err(("ack_every", "must be >= 1".to_owned()));
    }
    let times = [
        ("max_ack_delay", params.ack.delay, quic::LONGEST_ACK_DELAY),
        ("idle_timeout", params.idle_timeout, LONGEST),
    ];
    match times.into_iter().find(|&(_, time, most)| time > most) {
        Some((key, _, most)) => {
            let seconds = most.as_nanos() / 1_000_000_000;
            Err((key, format!("must be at most {seconds} s")))
        }
        None => Ok(()),
    }
}
