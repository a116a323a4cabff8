//! One run in steps, and what it has sampled, as JSON.

use serde_json::{Map, Value, json};
use sojourn_net::{Duration, Instant};
use sojourn_qdisc::{LinkFacts, Number, Statistic};
use sojourn_records::{FlowSample, LinkSample, Records, SignalRecord, StateSample};
use sojourn_scenario::{Plan, Scenario};
use sojourn_sim::Simulation;
use sojourn_tables::{Cell, signal_names, state_json};

use crate::frame::encoded;

/// Maximum number of events that one call of [`Session::samples`] returns: the newest.
const MOST_EVENTS: usize = 200;

/// Number of echo requests that may still get a reply after later ones.
const LATE_REPLIES: usize = 200;

/// One run of an arm.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    arm: String,
    replication: u32,
    run: Run,
    /// What [`Session::samples`] has returned already.
    samples: usize,
    flows: Vec<usize>,
    pings: Vec<usize>,
    events: usize,
}

#[derive(Debug)]
enum Run {
    UnderWay(Box<Simulation>),
    Finished(Records),
}

/// Reads JSON, or TOML if the text does not begin with a brace.
///
/// # Errors
/// What is wrong with it, and where.
pub fn read(text: &str) -> Result<Scenario, String> {
    let scenario = if text.trim_start().starts_with('{') {
        Scenario::from_json(text)
    } else {
        Scenario::from_toml(text)
    };
    scenario.map_err(|error| error.to_string())
}

/// The queues as JSON, as [`sojourn_qdisc::catalogue_json`] has them.
pub fn catalogue() -> String {
    sojourn_qdisc::catalogue_json(None)
}

/// A checked scenario as JSON.
///
/// ```text
/// {name, duration_ms, warmup_ms, seed, replications, arms: [name], toml, scenario: its JSON}
/// ```
///
/// # Errors
/// What is wrong with it, and where.
pub fn described(text: &str) -> Result<String, String> {
    let scenario = read(text)?;
    let written: Option<Value> = serde_json::from_str(scenario.to_json()).ok();
    let described = json!({
        "name": scenario.name(),
        "duration_ms": scenario.duration().as_millis_f64(),
        "seed": scenario.seed(),
        "replications": scenario.replications(),
        "warmup_ms": scenario.warmup().as_millis_f64(),
        "arms": scenario.arms().collect::<Vec<_>>(),
        "toml": scenario.to_toml(),
        "scenario": written,
    });
    Ok(described.to_string())
}

impl Session {
    /// A run of replication `replication` of arm number `arm`, at its start.
    ///
    /// # Errors
    /// What is wrong with the scenario, and where.
    pub fn new(text: &str, arm: usize, replication: u32) -> Result<Self, String> {
        let scenario = read(text)?;
        let name = scenario.arms().nth(arm).map(str::to_owned);
        let name = name.ok_or_else(|| format!("the scenario has no arm number {arm}"))?;
        if let Some(class) = scenario.controllers().first() {
            return Err(format!(
                "controller {class}: a browser cannot run Python; expected a scenario without it"
            ));
        }
        let plan = scenario.plan(arm, replication);
        let run = Simulation::new(plan.config.clone()).map_err(|error| error.to_string())?;
        let flows = plan.config.flows.len();
        Ok(Self {
            plan,
            arm: name,
            replication,
            run: Run::UnderWay(Box::new(run)),
            samples: 0,
            flows: vec![0; flows],
            pings: vec![0; flows],
            events: 0,
        })
    }

    /// The plan as JSON.
    ///
    /// ```text
    /// {duration_ms, sample_ms,
    ///  links: [{name, qdisc, parameters: {key: text}, rate_mbit_per_s}], flows: [{name, group, type, direction, base_rtt_ms}]}
    /// ```
    pub fn plan(&self) -> String {
        let config = &self.plan.config;
        let links = config.links.iter().map(|link| {
            let mut queue = link.qdisc.clone();
            queue.resolve(&LinkFacts {
                rate: link.constant_rate(),
                ..LinkFacts::default()
            });
            let parameters = queue.pairs().into_iter();
            let parameters = parameters.map(|(key, value)| (key.to_owned(), value.into()));
            json!({
                "parameters": parameters.collect::<Map<_, _>>(),
                "name": link.name,
                "qdisc": link.qdisc.to_string(),
                "rate_mbit_per_s": real(link.rate.bits_per_sec()) / 1e6,
            })
        });
        let flows = config.flows.iter().zip(&self.plan.flows);
        let flows = flows.map(|(flow, label)| {
            json!({
                "name": flow.name,
                "group": label.group,
                "type": label.kind,
                "direction": label.direction,
                "base_rtt_ms": config.base_rtt(flow).as_millis_f64(),
            })
        });
        json!({
            "duration_ms": config.duration.as_millis_f64(),
            "sample_ms": config.sample.as_millis_f64(),
            "links": links.collect::<Vec<_>>(),
            "flows": flows.collect::<Vec<_>>(),
        })
        .to_string()
    }

    /// Runs every event up to this time, at most up to the end of the run.
    pub fn advance(&mut self, milliseconds: u32) {
        if let Run::UnderWay(run) = &mut self.run {
            run.advance(Instant::from_millis(milliseconds.into()));
        }
    }

    /// What was sampled since the last call, as JSON.
    ///
    /// ```text
    /// {now_ms, finished,
    ///  links: [{t_s, backlog_packets, backlog_bytes, sojourn_ms, sojourn_ms_max, sent_bytes,
    ///           drops: {reason: counts}, marks: {reason: counts}, state: {name: values}}],
    ///  flows: [{t_s, mbit_per_s, cwnd_packets, srtt_ms}],
    ///  pings: [{from, t_s, rtt_ms}],         a list that replaces the requests from number `from` on
    ///  events: [[number, t_s, link, flow, action, reason, waited_ms, backlog_packets]], event_count}
    /// ```
    pub fn samples(&mut self) -> String {
        let Run::UnderWay(run) = &self.run else {
            return json!({ "finished": true, "links": [], "flows": [], "pings": [], "events": [] })
                .to_string();
        };
        let mut sampled = 0;
        let links = (0..self.plan.config.links.len()).map(|n| {
            let (series, states) = run.link(n);
            sampled = series.len();
            link_samples(&series[self.samples..], states.get(self.samples..))
        });
        let links: Vec<_> = links.collect();
        self.samples = sampled;
        let flows = self.flows.iter_mut().enumerate().map(|(n, seen)| {
            let series = run.flow(n);
            let before = seen.checked_sub(1).map(|last| series[last].at);
            let new = &series[*seen..];
            *seen = series.len();
            flow_samples(new, before.unwrap_or(Instant::ZERO))
        });
        let flows: Vec<_> = flows.collect();
        let pings = self.pings.iter_mut().enumerate().map(|(n, seen)| {
            let pings = run.pings(n);
            let from = *seen;
            let new = &pings[from..];
            let waiting = new.iter().position(|ping| ping.rtt.is_none());
            *seen = (from + waiting.unwrap_or(new.len())).max(pings.len().saturating_sub(LATE_REPLIES));
            json!({
                "from": from,
                "t_s": new.iter().map(|ping| ping.sent.as_secs_f64()).collect::<Vec<_>>(),
                "rtt_ms": new.iter().map(|ping| ping.rtt.map(Duration::as_millis_f64)).collect::<Vec<_>>(),
            })
        });
        let pings: Vec<_> = pings.collect();
        let events = run.events();
        let first = self.events.max(events.len().saturating_sub(MOST_EVENTS));
        self.events = events.len();
        let newest = (first..)
            .zip(&events[first..])
            .map(|(n, event)| row(n, event));
        json!({
            "now_ms": real(run.now().as_nanos()) / 1e6,
            "finished": run.is_finished(),
            "links": links,
            "flows": flows,
            "pings": pings,
            "events": newest.collect::<Vec<_>>(),
            "event_count": events.len(),
        })
        .to_string()
    }

    /// Drop, mark or loss number `number`, with the state of the queue, as JSON; `null`: there is none.
    ///
    /// ```text
    /// {number, t_s, link, flow, action, reason, waited_ms, backlog_packets, backlog_bytes, state}
    /// ```
    pub fn event(&self, number: usize) -> String {
        let events = match &self.run {
            Run::UnderWay(run) => run.events(),
            Run::Finished(records) => &records.events,
        };
        let Some(event) = events.get(number) else {
            return Value::Null.to_string();
        };
        let (action, reason) = signal_names(event.signal);
        let state = event.state.as_deref().map(state_json);
        let state: Option<Value> = state.and_then(|text| serde_json::from_str(&text).ok());
        json!({
            "number": number,
            "t_s": event.at.as_secs_f64(),
            "link": event.link,
            "flow": event.flow,
            "action": action,
            "reason": reason,
            "waited_ms": event.waited.as_millis_f64(),
            "backlog_packets": event.backlog.packets,
            "backlog_bytes": event.backlog.bytes.0,
            "state": state,
        })
        .to_string()
    }

    /// Runs the rest; all tables, in the format of [`encoded`].
    pub fn tables(&mut self) -> Vec<u8> {
        if let Run::UnderWay(_) = self.run {
            let run = std::mem::replace(&mut self.run, Run::Finished(Records::default()));
            if let Run::UnderWay(run) = run {
                self.run = Run::Finished(run.finish());
            }
        }
        let Run::Finished(records) = &self.run else {
            return Vec::new();
        };
        encoded(Cell {
            arm: &self.arm,
            replication: self.replication,
            plan: &self.plan,
            records,
        })
    }
}

fn row(number: usize, event: &SignalRecord) -> Value {
    let (action, reason) = signal_names(event.signal);
    let waited = event.waited.as_millis_f64();
    let at = event.at.as_secs_f64();
    json!([
        number,
        at,
        event.link,
        event.flow,
        action,
        reason,
        waited,
        event.backlog.packets
    ])
}

fn link_samples(series: &[LinkSample], states: Option<&[StateSample]>) -> Value {
    fn column<T: Into<Value>>(series: &[LinkSample], of: impl Fn(&LinkSample) -> T) -> Value {
        series.iter().map(|sample| of(sample).into()).collect()
    }
    let milliseconds = |time: Option<Duration>| time.map(Duration::as_millis_f64);
    json!({
        "t_s": column(series, |sample| sample.at.as_secs_f64()),
        "backlog_packets": column(series, |sample| sample.backlog_packets),
        "backlog_bytes": column(series, |sample| sample.backlog_bytes),
        "sojourn_ms": column(series, |sample| milliseconds(sample.sojourn_mean)),
        "sojourn_ms_max": column(series, |sample| milliseconds(sample.sojourn_max)),
        "sent_bytes": column(series, |sample| sample.counters.sent_bytes),
        "drops": {
            "overlimit": column(series, |sample| sample.counters.drops_overlimit),
            "aqm": column(series, |sample| sample.counters.drops_aqm),
            "ack_filter": column(series, |sample| sample.counters.drops_ack_filter),
            "replaced": column(series, |sample| sample.counters.drops_replaced),
            "wire": column(series, |sample| sample.counters.lost_packets),
        },
        "marks": {
            "aqm": column(series, |sample| sample.counters.marks_aqm),
            "ce_threshold": column(series, |sample| sample.counters.marks_ce_threshold),
        },
        "state": state(states.unwrap_or_default()),
    })
}

/// The numbers of a queue by name, each with a value or null for each sample. Those of its parts are left out.
fn state(states: &[StateSample]) -> Value {
    let mut columns = Map::new();
    for (n, sample) in states.iter().enumerate() {
        for statistic in &sample.statistics {
            if statistic.part.is_none()
                && let Value::Array(column) = columns
                    .entry(statistic.name)
                    .or_insert_with(|| vec![Value::Null; states.len()].into())
            {
                column[n] = number(statistic);
            }
        }
    }
    Value::Object(columns)
}

fn number(statistic: &Statistic) -> Value {
    match statistic.value {
        Number::Count(n) => n.into(),
        Number::Real(x) => x.into(),
        Number::Flag(flag) => u8::from(flag).into(),
    }
}

/// Samples of a flow; the first interval began at `from`.
fn flow_samples(series: &[FlowSample], from: Instant) -> Value {
    let starts = std::iter::once(from).chain(series.iter().map(|sample| sample.at));
    let rates = series.iter().zip(starts).map(|(sample, from)| {
        let seconds = sample.at.since(from).as_secs_f64();
        8.0 * real(sample.delivered_bytes) / seconds / 1e6
    });
    let windows = series.iter().map(|sample| sample.cwnd);
    let round_trips = series.iter().map(|sample| sample.srtt);
    json!({
        "t_s": series.iter().map(|sample| sample.at.as_secs_f64()).collect::<Vec<_>>(),
        "mbit_per_s": rates.collect::<Vec<_>>(),
        "cwnd_packets": windows.map(|cwnd| cwnd.map(std::num::NonZeroU32::get)).collect::<Vec<_>>(),
        "srtt_ms": round_trips.map(|srtt| srtt.map(Duration::as_millis_f64)).collect::<Vec<_>>(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn real(n: u64) -> f64 {
    n as f64
}
