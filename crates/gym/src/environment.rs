//! One simulation with what steers it.

use std::sync::Arc;

use sojourn_net::{Duration, Instant, Rate};
use sojourn_qdisc::{QdiscSpec, QueueChange};
use sojourn_records::LinkCounters;
use sojourn_scenario::plan::{Change, Config, ConfigError, Traffic};
use sojourn_sim::{FlowStep, LinkStep, Simulation};

use crate::probability::{Class, Probability};

/// What an action sets at the start of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the link and the flows of the scenario.
    None,
    /// The probability with which a FIFO with this limit in packets, which replaces the queue of the link, marks
    /// arrivals or drops them.
    DropProbability(usize),
    /// A time of the queue of the link, by the name of its parameter; in seconds.
    Time(String),
    /// The congestion window of each of the first flows over TCP, this many, in segments.
    Windows(usize),
}

/// What is simulated, and how it is steered.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The runs that an episode may be; all have the link and the same number of flows over TCP.
    pub configs: Vec<Config>,
    /// The name of the link that is measured.
    pub link: String,
    /// The duration of a step.
    pub step: Duration,
    /// What an action sets.
    pub action: Action,
}

/// What [`Batch::step`](crate::Batch::step) returns of the link: its rate in bit/s; bytes and packets sent, drops and
/// marks in the step; packets and bytes in the queue; mean and largest sojourn time in s, NaN if no packet was sent; and
/// whether the run has ended.
pub const LINK_COLUMNS: [&str; 11] = [
    "time_s",
    "rate_bits_per_s",
    "sent_bytes",
    "sent_packets",
    "drops",
    "marks",
    "backlog_packets",
    "backlog_bytes",
    "sojourn_s_mean",
    "sojourn_s_max",
    "ended",
];

/// Then of each flow over TCP: congestion window and segments in flight at the end of the step; bytes delivered, segments
/// sent and retransmitted in the step; mean RTT of the samples in the step and the smoothed RTT in s, NaN without any.
pub const FLOW_COLUMNS: [&str; 7] = [
    "cwnd",
    "in_flight",
    "delivered_bytes",
    "sent_packets",
    "retransmits",
    "rtt_s_mean",
    "srtt_s",
];

impl Setup {
    /// The number of actions of a simulation.
    pub const fn actions(&self) -> usize {
        match self.action {
            Action::None => 0,
            Action::DropProbability(_) | Action::Time(_) => 1,
            Action::Windows(flows) => flows,
        }
    }

    /// The number of numbers that a step returns.
    pub fn columns(&self) -> usize {
        let flows = self
            .configs
            .first()
            .map_or(0, |config| tcp_flows(config).count());
        LINK_COLUMNS.len() + FLOW_COLUMNS.len() * flows
    }

    /// Checks it, except for the rules of the configurations themselves.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |place: &str, rule: String| {
            let place = place.to_owned();
            Err(ConfigError { place, rule })
        };
        if self.step == Duration::ZERO {
            return fail("step", "must be > 0".to_owned());
        }
        let mut flows = None;
        for config in &self.configs {
            let Some(link) = config.links.iter().find(|link| link.name == self.link) else {
                let names: Vec<_> = config.links.iter().map(|link| link.name.as_str()).collect();
                let names = names.join(", ");
                return fail(
                    "link",
                    format!("unknown link {:?}; expected one of {names}", self.link),
                );
            };
            if link.radio.is_some() {
                return fail(
                    "link",
                    format!("{} is wireless; expected a wired link", self.link),
                );
            }
            let found = tcp_flows(config).count();
            if *flows.get_or_insert(found) != found {
                let rule =
                    "the scenarios have different numbers of flows over TCP; expected the same";
                return fail("scenario", rule.to_owned());
            }
            match &self.action {
                Action::Time(key) => {
                    let text = format!("{} {key} 1ms", link.qdisc.kind());
                    let keeps = link.qdisc.changed_by(&text);
                    if !matches!(keeps, Ok(QueueChange::Parameters(_))) {
                        let kind = link.qdisc.kind();
                        return fail(
                            "action",
                            format!("{kind} has no time {key:?} that can be changed"),
                        );
                    }
                }
                Action::Windows(most) if *most > found => {
                    return fail(
                        "agents",
                        format!("expected at most {found}, the number of flows over TCP"),
                    );
                }
                _ => {}
            }
        }
        if self.configs.is_empty() {
            return fail("scenario", "expected at least one".to_owned());
        }
        Ok(())
    }
}

/// The numbers of the bulk transfers over TCP.
fn tcp_flows(config: &Config) -> impl Iterator<Item = usize> {
    let flows = config.flows.iter().enumerate();
    flows
        .filter(|(_, flow)| matches!(flow.traffic, Traffic::Tcp { .. }))
        .map(|(n, _)| n)
}

/// A simulation under way.
#[derive(Debug)]
pub(crate) struct Environment {
    simulation: Simulation,
    setup: Arc<Setup>,
    link: usize,
    /// The queue of the link, as the last action left it.
    queue: QdiscSpec,
    probability: Probability,
    flows: Vec<Followed>,
}

/// A flow and its counts at the end of the last step.
#[derive(Debug)]
struct Followed {
    flow: usize,
    delivered: u64,
    sent: u64,
    resent: u64,
    rtt: (u64, u64),
}

impl Environment {
    /// Configuration number `config` with this seed, at the end of its warm-up.
    pub(crate) fn new(setup: &Arc<Setup>, config: usize, seed: u64) -> Result<Self, ConfigError> {
        let mut config = setup.configs[config].clone();
        config.seed = seed;
        let link = config.links.iter().position(|link| link.name == setup.link);
        let link = link.unwrap_or(0);
        let probability = Probability::default();
        if let Action::DropProbability(limit) = setup.action {
            let class = Class {
                limit,
                probability: probability.clone(),
            };
            let queue = sojourn_qdisc::ExternalSpec::of(Arc::new(class));
            config.links[link].qdisc = QdiscSpec::External(queue);
        }
        let flows = tcp_flows(&config).map(|flow| Followed {
            flow,
            delivered: 0,
            sent: 0,
            resent: 0,
            rtt: (0, 0),
        });
        let flows = flows.collect();
        let queue = config.links[link].qdisc.clone();
        let warm = Instant::ZERO + config.measure_from;
        let mut environment = Self {
            simulation: Simulation::new(config)?,
            setup: Arc::clone(setup),
            link,
            queue,
            probability,
            flows,
        };
        environment.simulation.advance(warm);
        Ok(environment)
    }

    /// Applies the actions, NaN for none, and advances by a step.
    pub(crate) fn step(&mut self, actions: &[f64]) {
        match &self.setup.action {
            Action::None => {}
            Action::DropProbability(_) => {
                if let [probability] = actions
                    && !probability.is_nan()
                {
                    self.probability.set(*probability);
                }
            }
            Action::Time(_) => {
                if let [seconds] = actions
                    && !seconds.is_nan()
                {
                    self.set_time(*seconds);
                }
            }
            Action::Windows(_) => {
                for (followed, &window) in self.flows.iter().zip(actions) {
                    if let Some(window) = segments(window) {
                        self.simulation.set_window(followed.flow, window);
                    }
                }
            }
        }
        let until = self.simulation.now() + self.setup.step;
        self.simulation.advance(until);
    }

    /// Changes the time of the queue that the action names.
    fn set_time(&mut self, seconds: f64) {
        let Action::Time(key) = &self.setup.action else {
            return;
        };
        let time = Duration::from_secs(1).scaled(seconds).as_nanos();
        let text = format!("{} {key} {time}ns", self.queue.kind());
        // The setup is checked; a time out of range changes nothing.
        if let Ok(change) = self.queue.changed_by(&text) {
            self.queue = change.spec().clone();
            let change = Change {
                queue: Some(Box::new(change)),
                ..Change::default()
            };
            self.simulation.change(self.link, &change);
        }
    }

    /// Writes what the link and the flows did since the last call.
    pub(crate) fn measure(&mut self, to: &mut [f64]) {
        let link = self.simulation.measure_link(self.link);
        let (now, ended) = (
            self.simulation.now(),
            self.simulation.now() >= self.simulation.end(),
        );
        let (of_link, of_flows) = to.split_at_mut(LINK_COLUMNS.len());
        of_link.copy_from_slice(&link_columns(now, &link, ended));
        let each = of_flows.chunks_exact_mut(FLOW_COLUMNS.len());
        for (followed, to) in self.flows.iter_mut().zip(each) {
            let step = self.simulation.measure_flow(followed.flow);
            to.copy_from_slice(&followed.columns(step.as_ref()));
        }
    }
}

impl Followed {
    fn columns(&mut self, step: Option<&FlowStep>) -> [f64; FLOW_COLUMNS.len()] {
        let Some(step) = step else {
            return [0.0, 0.0, 0.0, 0.0, 0.0, f64::NAN, f64::NAN];
        };
        let since = |now: u64, before: &mut u64| {
            let new = now.saturating_sub(*before);
            *before = now;
            number(new)
        };
        let samples = since(step.rtt.0, &mut self.rtt.0);
        let micros = since(step.rtt.1, &mut self.rtt.1);
        [
            step.state.cwnd.map_or(0.0, |cwnd| cwnd.get().into()),
            step.state.in_flight.into(),
            since(step.state.delivered_bytes, &mut self.delivered),
            since(step.sent_packets, &mut self.sent),
            since(step.retransmits, &mut self.resent),
            // NaN without samples.
            micros / samples / 1e6,
            step.state.srtt.map_or(f64::NAN, Duration::as_secs_f64),
        ]
    }
}

fn link_columns(now: Instant, link: &LinkStep, ended: bool) -> [f64; LINK_COLUMNS.len()] {
    let counters = &link.counters;
    let seconds = |time: Option<Duration>| time.map_or(f64::NAN, Duration::as_secs_f64);
    [
        now.as_secs_f64(),
        number(Rate::bits_per_sec(link.rate)),
        number(counters.sent_bytes),
        number(counters.sent_packets),
        number(drops(counters)),
        number(counters.marks_aqm + counters.marks_ce_threshold),
        number(link.backlog_packets as u64),
        number(link.backlog_bytes.0),
        seconds(link.sojourn_mean),
        seconds(link.sojourn_max),
        f64::from(u8::from(ended)),
    ]
}

const fn drops(counters: &LinkCounters) -> u64 {
    counters.drops_overlimit
        + counters.drops_aqm
        + counters.drops_ack_filter
        + counters.drops_replaced
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a step are far below 2^53"
)]
const fn number(count: u64) -> f64 {
    count as f64
}

/// A window in whole segments; `None` for NaN.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped first"
)]
fn segments(window: f64) -> Option<u32> {
    (!window.is_nan()).then(|| window.clamp(2.0, 1e9).round() as u32)
}
