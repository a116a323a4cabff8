//! Limitations of the results that follow from the scenario alone.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_net::{Bytes, Comparison, Duration, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_transport::{CcKind, OnCe, quic};

use crate::plan::{
    Config, DriverLimit, FULL_FRAME, FlowConfig, Hop, LinkConfig, RadioConfig, StationConfig,
    Traffic,
};

/// How much a concern matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It weakens conclusions.
    Warning,
    /// It is information.
    Note,
}

impl Severity {
    /// Its name in the list of findings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A limitation of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// How much it matters.
    pub severity: Severity,
    /// What it is, with its numbers.
    pub text: String,
}

/// Finds the concerns about a scenario with these arms.
pub(crate) fn of(arms: &[(&str, Config)]) -> Vec<Concern> {
    let warnings = by_arm(arms, excess_shapers)
        .into_iter()
        .chain(by_arm(arms, unknown_rates))
        .chain(by_arm(arms, responses_without_ecn))
        .chain(by_arm(arms, idle_stations))
        .chain(by_arm(arms, weights_without_effect))
        .chain(by_arm(arms, |config| {
            start_up(config).into_iter().collect()
        }));
    let warnings = warnings.map(|text| Concern {
        severity: Severity::Warning,
        text,
    });
    let notes = comparisons(arms).into_iter().map(|text| Concern {
        severity: Severity::Note,
        text,
    });
    warnings.chain(notes).collect()
}

/// Applies `found` to each arm and merges equal texts; a text that does not apply to all arms begins
/// with their names.
fn by_arm(arms: &[(&str, Config)], found: impl Fn(&Config) -> Vec<String>) -> Vec<String> {
    let mut names: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, config) in arms {
        for text in found(config) {
            names.entry(text).or_default().push(name);
        }
    }
    let shown = names.into_iter().map(|(text, of)| {
        if of.len() == arms.len() {
            text
        } else {
            format!("{}: {text}", of.join(", "))
        }
    });
    shown.collect()
}

/// Queues whose shaper is faster than their link.
fn excess_shapers(config: &Config) -> Vec<String> {
    let steady = |link: &&LinkConfig| !link.follows_trace() && link.radio.is_none();
    let links = config.links.iter().filter(steady);
    let found = links.filter_map(|link| {
        let changes = link.changes.iter().filter_map(|change| change.rate);
        let rate = changes.fold(link.rate, Ord::max);
        // In a tree of classes, the root may be as fast as it likes: its leaves shape.
        let flat = link.queues().filter(|queue| queue.kind() != "htb");
        let shapers = flat.filter_map(QdiscSpec::shaper_rate);
        let shaper = shapers.max().filter(|shaper| *shaper > rate)?;
        Some(format!(
            "the shaper of the queue of link {} ({shaper}) is faster than the link ({rate}) and has no effect.",
            link.name
        ))
    });
    found.collect()
}

/// Queues whose results depend on a rate that the link does not have.
fn unknown_rates(config: &Config) -> Vec<String> {
    let varies = |link: &LinkConfig| match (link.follows_trace(), &link.radio) {
        (true, _) => Some("follows a capacity trace"),
        (false, Some(_)) => Some("is wireless"),
        (false, None) => None,
    };
    let found = config.links.iter().filter_map(|link| {
        let varies = varies(link)?;
        let assuming = |queue: &QdiscSpec| Some((queue.kind(), queue.assumed_rate()?));
        let (kind, assumed) = link.queues().find_map(assuming)?;
        Some(format!(
            "the queue {kind} of link {} assumes a rate of {assumed}, but the link {varies}; set its bandwidth.",
            link.name
        ))
    });
    found.collect()
}

/// Responses to marks of traffic that does not use ECN.
fn responses_without_ecn(config: &Config) -> Vec<String> {
    let tcp = config.flows.iter().filter_map(|flow| {
        let params = match &flow.traffic {
            Traffic::Tcp { params, .. } => *params,
            Traffic::App(app) if app.quic().is_none() => app.exchange().tcp,
            _ => return None,
        };
        Some((flow, params))
    });
    let mut silent = tcp.filter(|(_, params)| {
        let uses_ecn = params.ecn || params.accurate_ecn || params.cc.kind().needs_ecn();
        params.on_ce != OnCe::default() && !uses_ecn
    });
    let found = silent.next().map(|(flow, _)| {
        format!(
            "on_ce has no effect on the traffic {}, which does not use ECN; set ecn.",
            flow.name
        )
    });
    found.into_iter().collect()
}

/// Stations of radios for which there is no traffic.
fn idle_stations(config: &Config) -> Vec<String> {
    let hosts: BTreeSet<u8> = (config.flows.iter())
        .filter_map(|flow| Some(flow.client?.number))
        .collect();
    let radios = config
        .links
        .iter()
        .filter_map(|link| Some((link, link.radio.as_ref()?)));
    let found = radios.flat_map(|(link, radio)| {
        let idle = radio
            .stations
            .iter()
            .filter(|station| !hosts.contains(&station.host));
        idle.map(|station| {
            format!(
                "no traffic has host {}, a station of link {}.",
                station.host, link.name
            )
        })
    });
    found.collect()
}

/// Weights of stations that AQL, not airtime fairness, limits.
fn weights_without_effect(config: &Config) -> Vec<String> {
    let found = config.links.iter().filter_map(|link| {
        let radio = link.radio.as_ref()?;
        let is_pulled = matches!(radio.driver, DriverLimit::Aggregates(_));
        let mut weights = radio.stations.iter().map(|station| station.weight);
        let weighted = weights.any(|weight| weight != StationConfig::WEIGHT);
        (weighted && !is_pulled && link.qdisc.kind() == "mac80211").then(|| {
            format!(
                "weights of the stations of link {} have little effect, since AQL limits each station alike; \
                 set driver = \"2 aggregates\".",
                link.name
            )
        })
    });
    found.collect()
}

/// The models that were not compared with a real implementation, or only in part.
fn comparisons(arms: &[(&str, Config)]) -> Vec<String> {
    let mut models = BTreeSet::new();
    for (_, config) in arms {
        for link in &config.links {
            let queues = link.queues().flat_map(QdiscSpec::provenance);
            models.extend(queues.map(|queue| {
                let kind = match queue.reconstruction {
                    Some(_) => format!("queue {} (a reconstruction)", queue.name),
                    None => format!("queue {}", queue.name),
                };
                (kind, queue.comparison)
            }));
            let radio = link.radio.is_some();
            models.extend(radio.then(|| ("wireless links".to_owned(), RadioConfig::COMPARISON)));
        }
        for flow in &config.flows {
            let (control, over_quic) = match &flow.traffic {
                Traffic::Tcp { params, .. } => (params.cc.kind(), false),
                Traffic::Quic { params, .. } => (params.cc.kind(), true),
                Traffic::Datagrams(_) | Traffic::Program(_) | Traffic::Bridged => continue,
                Traffic::App(app) => app.quic().map_or_else(
                    || (app.exchange().tcp.cc.kind(), false),
                    |q| (q.cc.kind(), true),
                ),
            };
            models.insert(of_control(control));
            models.extend(over_quic.then(|| ("QUIC".to_owned(), quic::COMPARISON)));
        }
    }
    let none = models.iter().filter_map(|(name, compared)| match compared {
        Comparison::None => Some(name.clone()),
        Comparison::OtherProfile(used) => Some(format!("{name} (profile {used})")),
        Comparison::Partial(_) | Comparison::With(_) => None,
    });
    let none: Vec<_> = none.collect();
    let partly = models.iter().filter_map(|(name, compared)| match compared {
        Comparison::Partial(what) => Some(format!("{name} (with {what})")),
        Comparison::None | Comparison::OtherProfile(_) | Comparison::With(_) => None,
    });
    let partly: Vec<_> = partly.collect();
    let texts = [
        (none.join(", "), "not compared with a real implementation"),
        (
            partly.join(", "),
            "compared with a real implementation only in part",
        ),
    ];
    let texts = texts.into_iter().filter(|(names, _)| !names.is_empty());
    texts
        .map(|(names, what)| format!("{what}: {names}."))
        .collect()
}

fn of_control(control: CcKind) -> (String, Comparison) {
    let declared = control.declaration();
    let name = format!("congestion control {}", declared.name);
    (name, declared.comparison)
}

// Start-up: how long the load takes to settle, compared with the warm-up.
//
// A flow settles within the longest of
//
// * 2 s,
// * 20 base round trips,
// * the time in which the load fills the buffers on its path.
//
// The last counts buffers that signal congestion only when they are full, at links that limit a flow of the
// load. With `D` the time in which these links empty full buffers, a loss-based control has a window of
// `W = D × rate / frame / flows` packets beyond the base round trip, where `rate` is that of the slowest link and
// `flows` the number of flows that share it. It takes
//
// ```text
// cbrt(W × 0.3 / 0.4) s + base round trip + D
// ```
//
// to recover this window after its first loss: `K` of CUBIC (RFC 9438 section 4.2), and a round trip until it
// notices. UDP flows that exceed a link fill its buffer at the rate of the excess.

/// Minimum settling time: queue controllers need about ten of their intervals of up to 100 ms, and a
/// lost first SYN is retransmitted after 1 s.
const SETTLING: Duration = Duration::from_secs(2);

/// Settling time in base RTTs: slow start takes ten round trips to reach a window of 10,000 packets,
/// and the queue that it fills then doubles the round-trip time.
const SETTLING_ROUND_TRIPS: u64 = 20;

/// `(1 - beta) / C` of CUBIC.
const CUBIC_RECOVERY: f64 = 0.3 / 0.4;

/// Filling buffers counts as at most this: with more, a run would hardly be repeated for its sake.
const LONGEST_FILL: Duration = Duration::from_secs(120);

/// Flows that settle for this part of the measured time, after `SETTLING`, hardly change its means.
const SLACK: u64 = 20;

/// The time over which the rate of datagrams is taken.
const RATE_WINDOW: Duration = Duration::from_secs(1_000);

/// A flow of the load, and how long it takes to settle.
struct Settling {
    start: Duration,
    /// In any case.
    least: Duration,
    /// Until round trips have passed and the buffers on the path are full.
    whole: Duration,
    /// Whether filling the buffers takes longest.
    fills: bool,
}

/// A warm-up that ends before the load has settled.
pub(crate) fn start_up(config: &Config) -> Option<String> {
    let crossing = Crossing::of_links(config);
    let flows = config.flows.iter();
    let load = flows.filter_map(|flow| settling(flow, config, &crossing));
    let load: Vec<_> = load.collect();
    // A flow that starts later is part of the experiment, unless all do.
    let before = load.iter().filter(|of| of.start <= config.measure_from);
    let chosen = before.max_by_key(|of| of.start + of.whole).or_else(|| {
        let first = load.iter().map(|of| of.start).min()?;
        let together = load.iter().filter(|of| of.start == first);
        together.max_by_key(|of| of.whole)
    })?;
    let measured = config.duration.saturating_sub(config.measure_from);
    let slack = Duration::from_nanos(measured.as_nanos() / SLACK);
    let settled = config.measure_from >= chosen.start + chosen.least
        && config.measure_from + slack >= chosen.start + chosen.whole;
    let why = if chosen.fills { ": buffers fill" } else { "" };
    (!settled).then(|| {
        format!(
            "still starting up when measuring begins at {}{why}. Use warmup={}.",
            seconds(config.measure_from),
            seconds(chosen.start + chosen.whole).replace(' ', ""),
        )
    })
}

/// How long a flow takes to settle, if it is part of the load.
fn settling(flow: &FlowConfig, config: &Config, crossing: &[Crossing]) -> Option<Settling> {
    let start = flow.start + flow.start_jitter;
    if is_endless(flow, config) {
        let round_trips = config.base_rtt(flow).times(SETTLING_ROUND_TRIPS);
        let without = round_trips.max(SETTLING);
        let fill = fill(flow, config, crossing);
        return Some(Settling {
            start,
            least: SETTLING,
            whole: without.max(fill),
            fills: fill > without,
        });
    }
    Some(Settling {
        start,
        least: Duration::ZERO,
        whole: overload(flow, config, crossing)?,
        fills: true,
    })
}

/// Whether a flow is a connection that sends without end, in the measured time too.
fn is_endless(flow: &FlowConfig, config: &Config) -> bool {
    let endless = matches!(
        flow.traffic,
        Traffic::Tcp { bytes: None, .. } | Traffic::Quic { bytes: None, .. }
    );
    endless && lasts(flow, config)
}

fn lasts(flow: &FlowConfig, config: &Config) -> bool {
    flow.stop.is_none_or(|stop| stop > config.measure_from)
}

/// Whether a flow is such a connection and sends more until it loses packets.
fn fills_buffers(flow: &FlowConfig, config: &Config) -> bool {
    let control = match &flow.traffic {
        Traffic::Tcp { params, .. } => params.cc.kind(),
        Traffic::Quic { params, .. } => params.cc.kind(),
        Traffic::Datagrams(_) | Traffic::App(_) | Traffic::Program(_) | Traffic::Bridged => {
            return false;
        }
    };
    control.declaration().fills_buffers && is_endless(flow, config)
}

fn links(way: &[Hop]) -> impl Iterator<Item = usize> {
    way.iter().filter_map(|hop| match *hop {
        Hop::Link(link) => Some(link),
        Hop::Delay(_) => None,
    })
}

/// The links that limit a flow, those of the lowest rate on its way.
fn slowest(flow: &FlowConfig, config: &Config) -> impl Iterator<Item = usize> {
    let rate = |link: usize| config.links[link].rate;
    let least = links(&flow.forward).map(rate).min();
    links(&flow.forward).filter(move |&link| Some(rate(link)) == least)
}

/// How long link `link` takes to empty a buffer full of packets like `frame`; zero if its queue keeps it shorter.
fn full_buffer(link: usize, config: &Config, frame: Bytes) -> Duration {
    let link = &config.links[link];
    let buffers = link
        .queues()
        .filter_map(|queue| queue.unmanaged_buffer(frame));
    let buffer = buffers.max();
    let steady = buffer.filter(|_| link.radio.is_none());
    steady.map_or(Duration::ZERO, |bytes| {
        link.rate.serialise(bytes).min(LONGEST_FILL)
    })
}

/// What crosses a link forward.
#[derive(Clone, Default)]
struct Crossing {
    /// Endless connections that send more until they lose packets.
    filling: u32,
    /// Whether it is the slowest link of one of them.
    limits: bool,
    /// What UDP flows offer, in bits per second.
    offered: u64,
}

impl Crossing {
    fn of_links(config: &Config) -> Vec<Self> {
        let mut all = vec![Self::default(); config.links.len()];
        for flow in &config.flows {
            let offered = offered(flow, config).unwrap_or(0);
            let fills = fills_buffers(flow, config);
            for link in links(&flow.forward) {
                all[link].offered = all[link].offered.saturating_add(offered);
                all[link].filling += u32::from(fills);
            }
            for link in slowest(flow, config).filter(|_| fills) {
                all[link].limits = true;
            }
        }
        all
    }
}

/// How long the load takes to fill the buffers on the path of `flow`.
fn fill(flow: &FlowConfig, config: &Config, crossing: &[Crossing]) -> Duration {
    let frame = flow.full_frame();
    let path = links(&flow.forward).chain(links(&flow.reverse));
    let full = path
        .filter(|&link| crossing[link].limits)
        .map(|link| full_buffer(link, config, frame));
    let full = full.fold(Duration::ZERO, |sum, time| (sum + time).min(LONGEST_FILL));
    let limit = slowest(flow, config).next();
    let Some(link) = limit.filter(|_| full > Duration::ZERO && fills_buffers(flow, config)) else {
        return Duration::ZERO;
    };
    let packets = config.links[link].rate.carries(full).0 / frame.0;
    #[expect(clippy::cast_precision_loss, reason = "a number of packets")]
    let window = packets as f64 / f64::from(crossing[link].filling);
    let recovery = Duration::from_secs(1).scaled(libm::cbrt(window * CUBIC_RECOVERY));
    (recovery + config.base_rtt(flow) + full).min(LONGEST_FILL)
}

/// How long UDP flows take to fill a buffer on the way of `flow`, one of them, if they exceed a link.
fn overload(flow: &FlowConfig, config: &Config, crossing: &[Crossing]) -> Option<Duration> {
    offered(flow, config)?;
    let times = links(&flow.forward).filter_map(|at| {
        let link = &config.links[at];
        let excess = crossing[at].offered.checked_sub(link.rate.bits_per_sec())?;
        let buffer = link.qdisc.unmanaged_buffer(FULL_FRAME)?;
        Some(
            Rate::from_bits_per_sec(excess)?
                .serialise(buffer)
                .min(LONGEST_FILL),
        )
    });
    times.max()
}

/// Bits per second, headers included, of a UDP flow that nobody answers.
fn offered(flow: &FlowConfig, config: &Config) -> Option<u64> {
    let Traffic::Datagrams(datagrams) = &flow.traffic else {
        return None;
    };
    let kind = datagrams.kind();
    let payload = kind.payload().filter(|_| !kind.is_answered())?;
    let packet = flow.datagram(payload);
    let count = datagrams.datagrams(RATE_WINDOW);
    let bits = count.saturating_mul(8 * packet.0);
    let per_second = bits / (RATE_WINDOW.as_nanos() / 1_000_000_000);
    lasts(flow, config).then_some(per_second)
}

fn seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 100.0).round() / 100.0)
}
