//! The load transient that Predict is made for: a few finite flows start within a round trip.

use sojourn_net::{Dscp, Duration, Instant, IpVersion, Rate, Rng};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::{CcKind, OnCe, SenderParams};

const RATE: Rate = Rate::mbit(20);
const ACCESS: Rate = Rate::mbit(100);
/// What the bottleneck carries in this many round trips is the payload of all flows together.
const ROUNDS: u64 = 12;
pub(crate) const SIX_MEGABYTES: u64 = 6_000_000;

pub(crate) const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Flows that start within their first round trip.
#[derive(Clone, Debug)]
pub(crate) struct Transient {
    pub(crate) rtts: Vec<Duration>,
    /// Of all flows together.
    pub(crate) bytes: u64,
    pub(crate) qdisc: String,
    pub(crate) initial_window: u32,
    pub(crate) on_ce: OnCe,
    pub(crate) pacing: bool,
}

/// Means over some runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) max_sojourn_ms: f64,
    /// Quantiles [`QUANTILES`] of the sojourn time of packets.
    pub(crate) sojourn_ms: [f64; 3],
    pub(crate) fct_s: f64,
    /// From the first mark to the last one before half a round trip without any.
    pub(crate) first_signal_ms: Option<f64>,
}

impl Transient {
    /// Four flows of this round-trip time through `qdisc`, as the slides have them.
    pub(crate) fn of(rtt_ms: u64, qdisc: &str) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        Self {
            rtts: vec![rtt; 4],
            bytes: ROUNDS * RATE.carries(rtt).0,
            qdisc: qdisc.to_owned(),
            initial_window: 3,
            on_ce: OnCe::EndSlowStartOnly,
            pacing: false,
        }
    }

    /// The same flows, paced.
    pub(crate) fn paced(self) -> Self {
        Self {
            pacing: true,
            ..self
        }
    }

    /// The same flows, which carry `rounds` bandwidth-delay products together.
    pub(crate) fn longer(self, rounds: u64) -> Self {
        Self {
            bytes: self.bytes / ROUNDS * rounds,
            // After slow start, marks must reduce the window, or no AQM could limit the queue.
            on_ce: OnCe::EndSlowStart,
            ..self
        }
    }

    fn config(&self, rtts: &[Duration], seed: u64) -> Config {
        let link = |name: String, rate, qdisc: &str| {
            LinkConfig::new(name, rate, QdiscSpec::parse(qdisc).unwrap())
        };
        let mut links = vec![link("bottleneck".into(), RATE, &self.qdisc)];
        let mut flows = Vec::new();
        for (n, &rtt) in rtts.iter().enumerate() {
            links.push(link(format!("access {n}"), ACCESS, "pfifo limit 100000000"));
            let half = Duration::from_nanos(rtt.as_nanos() / 2);
            flows.push(FlowConfig {
                name: format!("flow {n}"),
                forward: vec![Hop::Link(n + 1), Hop::Link(0), Hop::Delay(half)],
                reverse: vec![Hop::Delay(half)],
                start: Duration::ZERO,
                start_jitter: rtt,
                stop: None,
                dscp: Dscp::DEFAULT,
                client: None,
                ip: IpVersion::V4,
                traffic: Traffic::Tcp {
                    bytes: Some(self.bytes / rtts.len() as u64),
                    params: SenderParams {
                        cc: CcKind::Reno.into(),
                        ecn: self.qdisc.starts_with("predict"),
                        on_ce: self.on_ce,
                        initial_window: self.initial_window,
                        pacing: self.pacing,
                        ..SenderParams::default()
                    },
                },
            });
        }
        Config {
            seed,
            duration: Duration::from_secs(600),
            measure_from: Duration::ZERO,
            sample: Duration::from_secs(1),
            links,
            flows,
            keep_events: true,
            sample_state: false,
        }
    }

    /// Means over `seeds` runs.
    pub(crate) fn mean(&self, seeds: u64) -> Outcome {
        mean((0..seeds).map(|seed| outcome(&self.config(&self.rtts, seed))))
    }

    /// The same with the round-trip time of each flow drawn anew in each run, uniform in this range.
    pub(crate) fn mean_of_drawn(&self, ms: std::ops::Range<u64>, seeds: u64) -> Outcome {
        mean((0..seeds).map(|seed| {
            let mut rng = Rng::new(seed).fork("rtts");
            let mut draw =
                || Duration::from_micros(1_000 * ms.start + rng.below(1_000 * (ms.end - ms.start)));
            let rtts: Vec<_> = self.rtts.iter().map(|_| draw()).collect();
            outcome(&self.config(&rtts, seed))
        }))
    }
}

fn outcome(config: &Config) -> Outcome {
    let records = run(config, &mut |_| true).unwrap().unwrap();
    let fcts = records.flows.iter().map(|flow| {
        let end = flow.completed.expect("every transfer ends within the run");
        end.since(flow.started.unwrap()).as_secs_f64()
    });
    let sojourn = &records.links[0].sojourn;
    Outcome {
        max_sojourn_ms: sojourn.max().unwrap() as f64 / 1e6,
        sojourn_ms: QUANTILES.map(|q| sojourn.quantile(q).unwrap() as f64 / 1e6),
        fct_s: fcts.sum::<f64>() / records.flows.len() as f64,
        first_signal_ms: first_signal_ms(&records, config.flows[0].start_jitter),
    }
}

fn first_signal_ms(records: &Records, rtt: Duration) -> Option<f64> {
    let marks: Vec<_> = records.events.iter().map(|event| event.at).collect();
    let &first = marks.first()?;
    let pause = |pair: &&[Instant]| pair[1].since(pair[0]).times(2) > rtt;
    let pair = marks.windows(2).find(pause);
    let last = pair.map_or(marks[marks.len() - 1], |pair| pair[0]);
    Some(last.since(first).as_millis_f64())
}

fn mean(runs: impl Iterator<Item = Outcome>) -> Outcome {
    let all: Vec<_> = runs.collect();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let signals: Vec<_> = all.iter().filter_map(|o| o.first_signal_ms).collect();
    Outcome {
        max_sojourn_ms: mean(all.iter().map(|o| o.max_sojourn_ms).collect()),
        sojourn_ms: [0, 1, 2].map(|n| mean(all.iter().map(|o| o.sojourn_ms[n]).collect())),
        fct_s: mean(all.iter().map(|o| o.fct_s).collect()),
        first_signal_ms: (!signals.is_empty()).then(|| mean(signals)),
    }
}
