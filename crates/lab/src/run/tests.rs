//! Runs on a backend with known answers.

use std::num::{NonZeroU32, NonZeroUsize};

use sojourn_apps::{PingSample, Transaction};
use sojourn_backend::{Fingerprint, Properties, Unsupported};
use sojourn_net::{Duration, Instant, Rng};
use sojourn_qdisc::Statistic;
use sojourn_records::{
    AppRecord, FlowCounters, FlowKind, FlowRecord, FlowSample, Histogram, InitialLosses,
    LinkCounters, LinkRecord, LinkSample, RecordSink, SignalRecord, StateSample,
};
use sojourn_scenario::plan::Traffic;
use sojourn_scenario::{Config, ConfigError, Plan};

use super::*;
use crate::save::Replace;
use crate::tables::TableKind;

const SCENARIO: &str = r#"
    duration = "10s"
    warmup = "2s"
    replications = 4
    rtt = "40ms"
    sample = "1s"
    keep_events = true
    links = { up = { rate = "8mbit", qdisc = "pfifo", overhead = "4b" }, down = "unlimited" }
    traffic = [
        { type = "tcp", direction = "up", count = 2 },
        { type = "udp", direction = "up", rate = "1mbit" },
        { type = "ping", direction = "down", stop = "9s" },
    ]
    arms = [
        { name = "fifo" },
        { name = "codel", set = { "links.up.qdisc" = "codel" } },
    ]
"#;

fn flow_sample(kind: FlowKind, at: Instant, n: u32) -> FlowSample {
    FlowSample {
        at,
        delivered_bytes: 125_000,
        cwnd: NonZeroU32::new(n).filter(|_| kind.is_connection()),
        ssthresh: (n > 3).then_some(7),
        srtt: (n > 1).then_some(Duration::from_millis(u64::from(40 + n))),
        in_flight: n,
        receive_window: (kind == FlowKind::Tcp).then_some(1_448 * n),
    }
}

/// Records drawn from the seed, as a run's would be.
fn invented(config: &Config) -> Records {
    let mut rng = Rng::new(config.seed);
    let mut sojourn = Histogram::default();
    for _ in 0..1_000 {
        sojourn.record(rng.below(100_000_000));
    }
    let ends = || (1..=10_u32).map(|n| (Instant::from_millis(u64::from(n) * 1_000), n));
    Records {
        links: config
            .links
            .iter()
            .map(|link| LinkRecord {
                name: link.name.clone(),
                classes: Vec::new(),
                statistics: vec![
                    Statistic::count("count", 7),
                    Statistic::real("prob", 0.25).within("tins", 1),
                ],
                series: ends()
                    .map(|(at, _)| LinkSample {
                        at,
                        backlog_packets: rng.below(50),
                        backlog_bytes: 0,
                        sojourn_mean: None,
                        sojourn_max: None,
                        counters: LinkCounters::default(),
                    })
                    .collect(),
                states: ends()
                    .map(|(at, n)| StateSample {
                        at,
                        statistics: vec![Statistic::real("prob", f64::from(n))],
                    })
                    .collect(),
                totals: LinkCounters {
                    sent_packets: 1_000,
                    sent_bytes: 1_514_000,
                    ..LinkCounters::default()
                },
                sojourn: sojourn.clone(),
                sending: Duration::from_secs(2),
                busy: Duration::from_secs(4),
                driver: None,
            })
            .collect(),
        flows: config
            .flows
            .iter()
            .map(|flow| FlowRecord {
                name: flow.name.clone(),
                kind: kind(&flow.traffic),
                started: Some(Instant::from_millis(500)),
                connected: None,
                completed: None,
                aborted: false,
                initial_losses: InitialLosses::default(),
                series: ends()
                    .map(|(at, n)| flow_sample(kind(&flow.traffic), at, n))
                    .collect(),
                totals: FlowCounters {
                    delivered_bytes: 1_000_000,
                    rtt_samples: if kind(&flow.traffic) == FlowKind::Tcp {
                        4
                    } else {
                        0
                    },
                    rtt_micros: 200_000,
                    rtt_max_micros: 61_500,
                    ..FlowCounters::default()
                },
                missing_packets: None,
                lost_packets: None,
                one_way_delay: None,
                pings: match kind(&flow.traffic) {
                    FlowKind::Echo => vec![PingSample {
                        sent: Instant::from_millis(5_000),
                        rtt: Some(Duration::from_millis(41)),
                    }],
                    _ => Vec::new(),
                },
                targets: Vec::new(),
            })
            .collect(),
        apps: vec![AppRecord::default()],
        transactions: vec![
            Transaction {
                flow: 0,
                started: Instant::from_millis(3_000),
                completed: Some(Instant::from_millis(3_250)),
                bytes: 9,
            };
            3
        ],
        events: vec![SignalRecord {
            at: Instant::from_millis(1),
            link: 0,
            flow: 1,
            signal: sojourn_records::Signal::Drop(sojourn_qdisc::DropReason::Aqm),
            waited: Duration::from_millis(3),
            backlog: sojourn_qdisc::Backlog::default(),
            state: None,
        }],
        changes: Vec::new(),
        validity: Vec::new(),
        agenda_events: 1,
    }
}

fn kind(traffic: &Traffic) -> FlowKind {
    match traffic {
        Traffic::Tcp { .. } => FlowKind::Tcp,
        Traffic::Quic { .. } => FlowKind::Quic,
        Traffic::Datagrams(datagrams) if datagrams.kind().is_echo() => FlowKind::Echo,
        Traffic::Datagrams(_) => FlowKind::Datagrams,
        Traffic::App(_) | Traffic::Program(_) | Traffic::Bridged => FlowKind::App,
    }
}

/// A backend that does what a function says; it is asked, as a run is, whether to go on.
struct Scripted<F>(F);

impl<F> Backend for Scripted<F>
where
    F: Fn(&Config, &dyn Fn() -> bool) -> Result<Option<Records>, ConfigError> + Send + Sync,
{
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn properties(&self) -> Properties {
        Properties {
            deterministic: true,
            max_concurrency: None,
            fingerprint: Fingerprint::default(),
        }
    }

    fn check(&self, _plan: &Plan) -> Result<(), Unsupported> {
        Ok(())
    }

    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError> {
        let Some(records) = (self.0)(&plan.config, &|| !cancellation.is_requested())? else {
            return Ok(Completion::Cancelled);
        };
        records.send(sink);
        Ok(Completion::Finished)
    }
}

fn outcome(jobs: usize) -> Outcome {
    let scenario = Scenario::from_toml(SCENARIO).unwrap();
    let options = RunOptions {
        jobs: NonZeroUsize::new(jobs),
        cancel: &AtomicBool::new(false),
        progress: &|_, _| {},
        ..RunOptions::default()
    };
    let backend = Scripted(|config: &Config, _: &dyn Fn() -> bool| Ok(Some(invented(config))));
    run(&backend, &scenario, options).unwrap()
}

#[test]
fn files_are_the_same_to_the_byte_whatever_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let files = |jobs: usize| {
        let place = folder.path().join(jobs.to_string());
        outcome(jobs).save(&place, Replace::Nothing).unwrap();
        let mut names = TableKind::ALL
            .map(|kind| format!("{kind}.parquet"))
            .to_vec();
        names.push("manifest.json".to_owned());
        let read = |name: &String| std::fs::read(place.join(name)).unwrap();
        names.iter().map(read).collect::<Vec<_>>()
    };
    let one = files(1);
    assert_eq!(one, files(2));
    assert_eq!(one, files(7));
    assert!(one.iter().all(|file| file.len() > 100));
}

#[test]
fn every_run_has_its_rows_in_order() {
    let outcome = outcome(2);
    assert!(outcome.is_complete());
    assert_eq!((outcome.finished(), outcome.total()), (8, 8));
    let rows = TableKind::ALL.map(|kind| outcome.table(kind).rows() / 8);
    assert_eq!(rows[..5], [4, 1, 40, 10, 1]);
    assert_eq!(rows[6..], [2, 10, 1, 3, 1, 0, 0]);
    let flows = outcome.table(TableKind::Flows);
    let of = |n: usize| {
        let batch = &flows.batches().unwrap()[n];
        let arm = text(batch, "arm", 0);
        let replication = batch.column_by_name("replication").unwrap();
        let replication: &arrow_array::UInt32Array =
            arrow_array::cast::AsArray::as_primitive(replication);
        (arm, replication.value(0))
    };
    assert_eq!((of(0), of(3)), (("fifo".into(), 0), ("fifo".into(), 3)));
    assert_eq!((of(4), of(7)), (("codel".into(), 0), ("codel".into(), 3)));
}

fn text(batch: &arrow_array::RecordBatch, column: &str, row: usize) -> String {
    let column = batch.column_by_name(column).unwrap();
    let array: &arrow_array::StringArray = arrow_array::cast::AsArray::as_string(column);
    array.value(row).to_owned()
}

/// `None` where the value is null.
fn number(batch: &arrow_array::RecordBatch, column: &str, row: usize) -> Option<f64> {
    let array = batch.column_by_name(column).unwrap();
    let values: &arrow_array::Float64Array = arrow_array::cast::AsArray::as_primitive(array);
    (!arrow_array::Array::is_null(values, row)).then(|| values.value(row))
}

#[test]
fn metrics_are_those_of_their_definitions() {
    let outcome = outcome(1);
    let near = |got: Option<f64>, want: f64, what: &str| {
        let got = got.unwrap_or(f64::NAN);
        assert!((got - want).abs() < 1e-9, "{what}: {got}, not {want}");
    };
    let flows = &outcome.table(TableKind::Flows).batches().unwrap()[0];
    // 1 MB in the 8 s after the warm-up.
    near(number(flows, "goodput_mbit_per_s", 0), 1.0, "goodput");
    // Samples 3 to 10 lie after the warm-up.
    near(number(flows, "cwnd_packets_mean", 0), 6.5, "cwnd");
    near(number(flows, "srtt_ms_mean", 0), 46.5, "srtt");
    near(number(flows, "ack_rtt_ms_mean", 0), 50.0, "rtt");
    assert_eq!(number(flows, "ack_rtt_ms_mean", 2), None);
    near(number(flows, "ack_rtt_ms_max", 0), 61.5, "largest rtt");
    assert_eq!(number(flows, "ack_rtt_ms_max", 2), None);
    assert_eq!(number(flows, "cwnd_packets_mean", 2), None);
    assert_eq!(number(flows, "goodput_mbit_per_s", 3), None);
    near(number(flows, "ping_ms_p99", 3), 41.0, "ping");
    near(number(flows, "ping_loss", 3), 0.0, "loss");
    assert_eq!(number(flows, "ping_loss", 0), None);
    assert_eq!(text(flows, "flow", 1), "tcp up/2");
    assert_eq!(text(flows, "group", 1), "tcp up");

    let links = &outcome.table(TableKind::Links).batches().unwrap()[0];
    near(number(links, "utilisation", 0), 0.25, "utilisation");
    near(number(links, "busy_share", 0), 0.5, "busy");
    near(
        number(
            &outcome.table(TableKind::FlowSeries).batches().unwrap()[0],
            "goodput_mbit_per_s",
            0,
        ),
        1.0,
        "goodput of an interval",
    );
}

#[test]
fn cancelling_keeps_what_has_finished() {
    let scenario = Scenario::from_toml(SCENARIO).unwrap();
    let cancel = AtomicBool::new(false);
    let options = RunOptions {
        jobs: NonZeroUsize::new(1),
        cancel: &cancel,
        progress: &|done, total| {
            assert_eq!(total, 8);
            cancel.store(done == 3, Ordering::Relaxed);
        },
        ..RunOptions::default()
    };
    let backend = Scripted(|config: &Config, keep_going: &dyn Fn() -> bool| {
        Ok(keep_going().then(|| invented(config)))
    });
    let outcome = run(&backend, &scenario, options).unwrap();
    assert!(!outcome.is_complete());
    assert_eq!((outcome.finished(), outcome.total()), (3, 8));
    assert_eq!(outcome.table(TableKind::Flows).rows(), 3 * 4);
    assert!(outcome.manifest().to_json().contains("\"complete\": false"));
}

#[test]
fn a_run_under_way_is_asked_to_end() {
    let scenario = Scenario::from_toml(SCENARIO).unwrap();
    let cancel = AtomicBool::new(false);
    let options = RunOptions {
        jobs: NonZeroUsize::new(2),
        cancel: &cancel,
        progress: &|_, _| panic!("nothing finishes"),
        ..RunOptions::default()
    };
    let backend = Scripted(|_: &Config, keep_going: &dyn Fn() -> bool| {
        assert!(keep_going() || cancel.load(Ordering::Relaxed));
        cancel.store(true, Ordering::Relaxed);
        assert!(!keep_going());
        Ok(None)
    });
    let outcome = run(&backend, &scenario, options).unwrap();
    assert_eq!(outcome.finished(), 0);
    // Tables without rows still have their columns.
    assert_eq!(outcome.table(TableKind::Pings).schema().fields().len(), 5);
}

#[test]
fn arms_share_the_seeds_of_their_replications() {
    let scenario = Scenario::from_toml(SCENARIO).unwrap();
    let seed = |arm, replication| scenario.config(arm, replication).seed;
    for replication in 0..4 {
        assert_eq!(seed(0, replication), seed(1, replication));
    }
    assert_ne!(seed(0, 0), seed(0, 1));
}

#[test]
fn a_refused_configuration_ends_the_run() {
    let scenario = Scenario::from_toml(SCENARIO).unwrap();
    let options = RunOptions {
        jobs: None,
        cancel: &AtomicBool::new(false),
        progress: &|_, _| {},
        ..RunOptions::default()
    };
    let error = ConfigError {
        place: "flows".to_owned(),
        rule: "no".to_owned(),
    };
    let backend = Scripted(|_: &Config, _: &dyn Fn() -> bool| Err(error.clone()));
    let got = run(&backend, &scenario, options).unwrap_err();
    assert_eq!(got, BackendError::Plan(error));
}
