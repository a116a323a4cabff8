//! The laboratory runs any backend: a second one, which invents its records, stands in for a live
//! datapath.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sojourn_backend::{
    Backend, BackendError, Cancellation, Completion, Feature, Fingerprint, Properties, Registry,
    Unsupported,
};
use sojourn_lab::{Outcome, Replace, RunOptions, Scenario, TableKind, run};
use sojourn_net::Duration;
use sojourn_records::{Histogram, LinkCounters, LinkRecord, RecordSink, Records, ValidityFact};
use sojourn_scenario::Plan;
use sojourn_sim::Simulator;

const SCENARIO: &str = r#"
    duration = "2s"
    replications = 3
    links.up = { rate = "8mbit", qdisc = "pfifo" }
    traffic = [{ type = "udp", direction = "up", rate = "1mbit" }]
"#;

/// One run at a time, with a kernel and records that nobody can repeat.
#[derive(Default)]
struct Tiny {
    runs: AtomicUsize,
    under_way: AtomicUsize,
    /// Wait in each run until it is cancelled.
    waits: bool,
}

impl Backend for Tiny {
    fn name(&self) -> &'static str {
        "tiny"
    }

    fn properties(&self) -> Properties {
        Properties {
            deterministic: false,
            max_concurrency: Some(NonZeroUsize::MIN),
            fingerprint: Fingerprint {
                version: "7".to_owned(),
                commit: Some("abcdef".to_owned()),
                kernel: Some("6.12.1".to_owned()),
            },
        }
    }

    fn check(&self, plan: &Plan) -> Result<(), Unsupported> {
        let links = plan.config.links.iter().enumerate();
        let radios = links.filter(|(_, link)| link.radio.is_some());
        let features: Vec<_> = radios
            .map(|(n, _)| Feature {
                place: format!("links[{n}].medium"),
                what: "a wireless link".into(),
            })
            .collect();
        if features.is_empty() {
            return Ok(());
        }
        Err(Unsupported {
            backend: self.name(),
            features,
        })
    }

    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError> {
        assert_eq!(self.under_way.fetch_add(1, Ordering::SeqCst), 0);
        let number = self.runs.fetch_add(1, Ordering::SeqCst) as u64;
        while self.waits && !cancellation.is_requested() {
            std::thread::yield_now();
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        if cancellation.is_requested() {
            return Ok(Completion::Cancelled);
        }
        for link in &plan.config.links {
            sink.link(LinkRecord {
                name: link.name.clone(),
                series: Vec::new(),
                states: Vec::new(),
                totals: LinkCounters {
                    sent_packets: 100 + number,
                    ..LinkCounters::default()
                },
                sojourn: Histogram::default(),
                sending: Duration::ZERO,
                busy: Duration::ZERO,
                driver: None,
                classes: Vec::new(),
                statistics: Vec::new(),
            });
        }
        sink.validity(ValidityFact {
            name: "late_packets",
            value: format!("{number} packets"),
            passed: number == 0,
        });
        Ok(Completion::Finished)
    }
}

fn run_on(backend: &dyn Backend, text: &str, cancel: &AtomicBool) -> Result<Outcome, BackendError> {
    let scenario = Scenario::from_toml(text).unwrap();
    run(
        backend,
        &scenario,
        RunOptions {
            jobs: NonZeroUsize::new(4),
            cancel,
            progress: &|_, _| {},
            ..RunOptions::default()
        },
    )
}

#[test]
fn a_second_backend_runs_one_at_a_time_and_stands_in_the_manifest() {
    let never = AtomicBool::new(false);
    let outcome = run_on(&Tiny::default(), SCENARIO, &never).unwrap();
    assert!(outcome.is_complete());
    assert_eq!(outcome.table(TableKind::Links).rows(), 3);
    let manifest = outcome.manifest();
    let provenance = manifest.provenance.as_ref().unwrap();
    assert_eq!(provenance.backend, "tiny");
    assert!(!provenance.deterministic);
    assert_eq!(provenance.fingerprint.kernel.as_deref(), Some("6.12.1"));
    let passed: Vec<_> = manifest.validity.iter().map(|fact| fact.passed).collect();
    assert_eq!(passed, [true, false, false]);

    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("result");
    outcome.save(&place, Replace::Nothing).unwrap();
    assert_eq!(Outcome::load(&place).unwrap().manifest(), manifest);
    let text = manifest.to_json();
    assert!(text.contains("\"deterministic\": false"), "{text}");
}

#[test]
fn a_second_backend_is_cancelled() {
    let cancel = AtomicBool::new(false);
    let tiny = Tiny {
        waits: true,
        ..Tiny::default()
    };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run_on(&tiny, SCENARIO, &cancel));
        while tiny.runs.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        cancel.store(true, Ordering::SeqCst);
        let outcome = running.join().unwrap().unwrap();
        assert_eq!((outcome.finished(), outcome.total()), (0, 3));
    });
}

#[test]
fn an_unsupported_feature_is_named_before_anything_runs() {
    let text = SCENARIO.replace(
        "qdisc = \"pfifo\"",
        "qdisc = \"pfifo\", medium = { type = \"wifi\" }",
    );
    let tiny = Tiny::default();
    let error = run_on(&tiny, &text, &AtomicBool::new(false)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "backend \"tiny\" does not support links.up.medium: a wireless link"
    );
    let arms =
        format!("{text}\n[[arms]]\nname = \"a\"\nset = {{ \"links.up.delay\" = \"1ms\" }}\n");
    let error = run_on(&tiny, &arms, &AtomicBool::new(false)).unwrap_err();
    let place = "links.up.medium (arm \"a\"): a wireless link";
    assert!(error.to_string().ends_with(place), "{error}");
    assert_eq!(tiny.runs.load(Ordering::SeqCst), 0);
    let simulated = run_on(&Simulator::default(), &text, &AtomicBool::new(false));
    assert!(simulated.unwrap().is_complete());
}

#[test]
fn only_a_live_backend_starts_programs() {
    let program = "links.down = \"unlimited\"\n\
         traffic = [{ type = \"program\", direction = \"up\", command = [\"true\"] }, ";
    let text = SCENARIO.replace("traffic = [", program);
    let never = AtomicBool::new(false);
    let error = run_on(&Simulator::default(), &text, &never).unwrap_err();
    let message = "backend \"sim\" does not support traffic[0].type: a program (only live runs start programs)";
    assert!(matches!(error, BackendError::Unsupported(_)), "{error:?}");
    assert_eq!(error.to_string(), message);
    // Without the laboratory, the place is that of the plan.
    let plan = Scenario::from_toml(&text).unwrap().plan(0, 0);
    let never = Cancellation::new(&|| false);
    let error = Simulator::default().run(&plan, &never, &mut Records::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        message.replace("traffic[0]", "flows[0]")
    );
    assert!(run_on(&Tiny::default(), &text, &AtomicBool::new(false)).is_ok());
}

#[test]
fn backends_are_found_by_name_and_the_first_is_the_default() {
    let registry = Registry::new()
        .with(Box::new(Simulator::default()))
        .with(Box::new(Tiny::default()));
    assert_eq!(registry.get(None).unwrap().name(), "sim");
    assert_eq!(registry.get(Some("tiny")).unwrap().name(), "tiny");
    let error = registry.get(Some("live")).err().unwrap();
    assert_eq!(
        error.to_string(),
        "unknown backend \"live\"; expected one of sim, tiny"
    );
}

#[test]
fn the_simulator_asks_every_thousand_events_whether_to_go_on() {
    let text = SCENARIO.replace("\"1mbit\"", "\"7mbit\"");
    let text = text.replace("\"2s\"", "\"20s\"\nsample = \"20s\"");
    let plan = Scenario::from_toml(&text).unwrap().plan(0, 0);
    let asked = AtomicUsize::new(0);
    let count = || asked.fetch_add(1, Ordering::Relaxed) > usize::MAX - 1;
    let mut records = Records::default();
    let done = Simulator::default().run(&plan, &Cancellation::new(&count), &mut records);
    assert_eq!(done.unwrap(), Completion::Finished);
    // Each packet is at least one event.
    let packets = records.flows[0].totals.sent_packets;
    assert!(packets > 11_000, "{packets}");
    assert!(asked.into_inner() as u64 >= packets / 1_024);
}

#[test]
fn the_simulator_says_that_it_is_deterministic() {
    let never = AtomicBool::new(false);
    let outcome = run_on(&Simulator::default(), SCENARIO, &never).unwrap();
    let provenance = outcome.manifest().provenance.as_ref().unwrap();
    assert_eq!(provenance.backend, "sim");
    assert!(provenance.deterministic && provenance.fingerprint.kernel.is_none());
}
