//! The metrics of runs as rows: equal to those of the tables, stored, and found again.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sojourn_backend::{
    Backend, BackendError, Cancellation, Completion, Properties, Registry, Unsupported,
};
use sojourn_lab::{
    Build, Disk, Engine, Measurements, Meter, Provenance, Row, RunOptions, RunStore, Scenario,
    Scope, run,
};
use sojourn_records::RecordSink;
use sojourn_scenario::Plan;
use sojourn_sim::Simulator;

const SCENARIO: &str = r#"
    duration = "1s"
    warmup = "300ms"
    replications = 3
    rtt = "20ms"
    links.up = { rate = "4mbit", qdisc = "codel" }
    links.down = { rate = "4mbit", qdisc = "pfifo" }
    traffic = [
        { type = "tcp", direction = "up", count = 2 },
        { type = "ping", direction = "up", interval = "50ms" },
    ]
    arms = [{ name = "two" }, { name = "one", set = { "traffic.0.count" = 1 } }]
"#;

fn meter(text: &str) -> Meter {
    let provenance = Provenance::of(&Simulator::default());
    let engine = Engine {
        provenance,
        build: Build::current(),
        binary: Some("this".to_owned()),
    };
    Meter::new(Scenario::from_toml(text).unwrap(), engine)
}

fn row(meter: &Meter, number: usize) -> Row {
    let row = meter.measure(&Simulator::default(), number, &Cancellation::new(&|| false));
    (number, row.unwrap().unwrap())
}

fn borrowed(rows: &[Row]) -> impl Iterator<Item = (usize, &[u8])> {
    rows.iter().map(|(number, row)| (*number, &row[..]))
}

fn start(meter: &Meter, registry: Registry, jobs: usize) -> Measurements {
    let (meter, numbers) = (Arc::new(meter.clone()), (0..meter.runs()).collect());
    let jobs = NonZeroUsize::new(jobs);
    Measurements::start(meter, registry, None, numbers, jobs, |work| work()).unwrap()
}

fn simulator() -> Registry {
    Registry::new().with(Box::new(Simulator::default()))
}

fn all(measurements: &Measurements) -> Result<Vec<Row>, BackendError> {
    let mut rows = Vec::new();
    while let Some(more) = measurements.take(Duration::from_millis(1))? {
        rows.extend(more);
    }
    Ok(rows)
}

#[test]
fn rows_have_the_metrics_of_the_tables_for_any_number_of_threads() {
    let meter = meter(SCENARIO);
    let outcome = run(
        &Simulator::default(),
        meter.scenario(),
        RunOptions::default(),
    );
    let expected = outcome.unwrap().metrics(Scope::Run).unwrap();
    assert_eq!(expected.rows(), 6);
    for jobs in [1, 2, 9] {
        let rows = all(&start(&meter, simulator(), jobs)).unwrap();
        let found = meter.table(borrowed(&rows)).unwrap();
        assert_eq!(found.batches().unwrap(), expected.batches().unwrap());
    }
}

#[test]
fn stored_rows_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let meter = meter(SCENARIO);
    let rows: Vec<_> = [4, 1].map(|number| row(&meter, number)).into();
    let store = |path: &Path| RunStore::open(path, Arc::new(Disk)).unwrap();
    let first = meter.begin(&store(folder.path()), true).unwrap();
    assert_eq!(first.finished().count(), 0);
    for (number, row) in &rows {
        first.append(*number, row.clone());
    }
    first.close();
    let again = meter.begin(&store(folder.path()), true).unwrap();
    assert_eq!(again.finished().collect::<Vec<_>>(), [1, 4]);
    for (number, row) in &rows {
        assert_eq!(again.read(*number).as_ref(), Some(row));
        assert!(meter.accepts(*number, row));
        assert!(!meter.accepts(number + 1, row));
    }
    // The flows of another arm decide which metrics a run has.
    let one = SCENARIO.replace("{ name = \"two\" }, ", "");
    let alone = self::meter(&one);
    assert_ne!(alone.key(0), meter.key(3));
    assert_eq!(
        alone
            .begin(&store(folder.path()), true)
            .unwrap()
            .finished()
            .count(),
        0
    );
}

/// A backend that fails in its third run.
#[derive(Default)]
struct Failing(Simulator, AtomicUsize);

impl Backend for Failing {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn properties(&self) -> Properties {
        self.0.properties()
    }

    fn check(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.0.check(plan)
    }

    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError> {
        if self.1.fetch_add(1, Ordering::Relaxed) == 2 {
            return Err(BackendError::Environment("no power".to_owned()));
        }
        self.0.run(plan, cancellation, sink)
    }
}

#[test]
fn the_rows_before_a_failure_are_returned() {
    let meter = meter(SCENARIO);
    let registry = Registry::new().with(Box::new(Failing::default()));
    let measurements = start(&meter, registry, 1);
    let mut rows = Vec::new();
    let error = loop {
        match measurements.take(Duration::from_millis(1)) {
            Ok(more) => rows.extend(more.expect("the third run fails")),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("no power"), "{error}");
    let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1]);
}

#[test]
fn runs_end_when_they_are_stopped() {
    let meter = meter(&SCENARIO.replace("\"1s\"", "\"36000s\""));
    let mut measurements = start(&meter, simulator(), 2);
    assert_eq!(
        measurements.take(Duration::from_millis(1)).unwrap(),
        Some(Vec::new())
    );
    assert!(measurements.stop().is_empty());
    assert_eq!(measurements.take(Duration::from_secs(9)).unwrap(), None);
}
