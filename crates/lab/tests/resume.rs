//! Interrupted executions are continued without repeating runs, to the same bytes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sojourn_backend::{Backend, BackendError, Cancellation, Completion, Properties, Unsupported};
use sojourn_lab::{
    Build, Disk, Engine, Invocation, Outcome, Provenance, Replace, RunOptions, RunStore, Scenario,
    run,
};
use sojourn_records::RecordSink;
use sojourn_scenario::Plan;
use sojourn_sim::Simulator;

const SCENARIO: &str = r#"
    duration = "2s"
    replications = 4
    rtt = "20ms"
    links.up = { rate = "8mbit", qdisc = "pfifo" }
    links.down = "unlimited"
    traffic = [{ type = "tcp", direction = "up" }, { type = "ping", direction = "up" }]
    arms = [{ name = "fifo" }, { name = "codel", set = { "links.up.qdisc" = "codel" } }]
"#;

/// The simulator, which counts its runs.
#[derive(Default)]
struct Counted {
    simulator: Simulator,
    runs: AtomicUsize,
}

impl Backend for Counted {
    fn name(&self) -> &'static str {
        self.simulator.name()
    }

    fn properties(&self) -> Properties {
        self.simulator.properties()
    }

    fn check(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.simulator.check(plan)
    }

    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.simulator.run(plan, cancellation, sink)
    }
}

fn scenario(replications: u32) -> Scenario {
    let text = format!("replications = {replications}");
    Scenario::from_toml(&SCENARIO.replace("replications = 4", &text)).unwrap()
}

/// A build whose commit is known, or one that was modified.
fn engine(clean: bool) -> Engine {
    Engine {
        provenance: Provenance::of(&Simulator::default()),
        build: Build {
            commit: clean.then(|| "0123456789ab".to_owned()),
            dirty: false,
            ..Build::current()
        },
        binary: Some("these bytes".to_owned()),
    }
}

fn store(folder: &Path) -> RunStore {
    RunStore::open(folder, Arc::new(Disk)).unwrap()
}

fn begin(folder: &Path, scenario: &Scenario, engine: &Engine, resume: bool) -> Invocation {
    Invocation::begin(&store(folder), scenario, engine, resume).unwrap()
}

/// Runs until `after` runs have finished, or all; returns how many runs the backend did.
fn execute(scenario: &Scenario, invocation: &Invocation, after: usize) -> (Outcome, usize) {
    let (backend, cancel) = (Counted::default(), AtomicBool::new(false));
    let options = RunOptions {
        jobs: std::num::NonZeroUsize::new(1),
        cancel: &cancel,
        progress: &|finished, _| {
            if finished == after {
                cancel.store(true, Ordering::Relaxed);
            }
        },
        invocation: Some(invocation),
        ..RunOptions::default()
    };
    let outcome = run(&backend, scenario, options).unwrap();
    (outcome, backend.runs.load(Ordering::Relaxed))
}

fn uninterrupted(scenario: &Scenario) -> Outcome {
    run(&Simulator::default(), scenario, RunOptions::default()).unwrap()
}

/// The files of a result, saved.
fn bytes(outcome: &Outcome) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("result");
    outcome.save(&place, Replace::Nothing).unwrap();
    let mut files: Vec<_> = fs::read_dir(place)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read(path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

fn segments(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count() - 1
}

#[test]
fn a_resumed_outcome_is_that_of_an_uninterrupted_one_to_the_byte() {
    let scenario = scenario(4);
    let whole = bytes(&uninterrupted(&scenario));
    for clean in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(clean);
        let first = begin(folder.path(), &scenario, &engine, false);
        let (outcome, runs) = execute(&scenario, &first, 3);
        assert_eq!((outcome.finished(), runs), (3, 3));
        assert_eq!(first.committed(), 3);
        drop(first);
        let second = begin(folder.path(), &scenario, &engine, true);
        assert_eq!(second.finished().count(), 3);
        let (outcome, runs) = execute(&scenario, &second, 5);
        assert_eq!((outcome.finished(), runs), (5, 2), "clean: {clean}");
        drop(second);
        let third = begin(folder.path(), &scenario, &engine, true);
        let (outcome, runs) = execute(&scenario, &third, usize::MAX);
        assert_eq!((outcome.finished(), runs), (8, 3), "clean: {clean}");
        assert_eq!(bytes(&outcome), whole, "clean: {clean}");
        third.discard().unwrap();
        assert_eq!(segments(folder.path()), 0);
    }
}

#[test]
fn an_outcome_whose_series_are_stored_is_that_of_one_in_memory_to_the_byte() {
    let text = SCENARIO.replace("replications = 4", "replications = 70");
    // Series of more than 64 rows are stored; the totals of 64 runs are one piece.
    let text = text.replace("duration = \"2s\"", "duration = \"8s\"");
    let scenario = Scenario::from_toml(&text).unwrap();
    let memory = uninterrupted(&scenario);
    let folder = tempfile::tempdir().unwrap();
    let first = begin(folder.path(), &scenario, &engine(true), false);
    let (some, _) = execute(&scenario, &first, 30);
    assert_eq!(some.finished(), 30);
    drop(first);
    let second = begin(folder.path(), &scenario, &engine(true), true);
    let (stored, runs) = execute(&scenario, &second, usize::MAX);
    assert_eq!(runs, 110);
    second.discard().unwrap();
    // The files are gone, but what is open stays readable.
    for scope in sojourn_lab::Scope::ALL {
        let [one, other] = [&stored, &memory].map(|of| of.metrics(scope).unwrap());
        assert_eq!(
            one.batches().unwrap(),
            other.batches().unwrap(),
            "{scope:?}"
        );
    }
    for kind in sojourn_lab::TableKind::ALL {
        let [one, other] = [&stored, &memory].map(|of| of.table(kind).batches().unwrap());
        assert_eq!(one, other, "{kind}");
    }
    assert_eq!(bytes(&stored), bytes(&memory));
    let pieces = |kind| stored.table(kind).pieces();
    assert_eq!(pieces(sojourn_lab::TableKind::FlowSeries), 140);
    assert_eq!(pieces(sojourn_lab::TableKind::Flows), 2 + 140 % 64);
}

#[test]
fn an_interrupted_comparison_has_runs_of_every_arm() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(4);
    let invocation = begin(folder.path(), &scenario, &engine(true), false);
    let (outcome, _) = execute(&scenario, &invocation, 2);
    let batches = outcome
        .table(sojourn_lab::TableKind::Flows)
        .batches()
        .unwrap();
    let arms = batches.iter().map(|batch| {
        let column = batch.column_by_name("arm").unwrap();
        let column: &arrow_array::StringArray = arrow_array::cast::AsArray::as_string(column);
        column.value(0).to_owned()
    });
    assert_eq!(arms.collect::<Vec<_>>(), ["fifo", "codel"]);
}

#[test]
fn more_replications_reuse_the_runs_of_a_known_build_only() {
    for (clean, wanted) in [(true, 4), (false, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let few = scenario(2);
        drop({
            let invocation = begin(folder.path(), &few, &engine(clean), false);
            execute(&few, &invocation, usize::MAX);
            invocation
        });
        let more = scenario(4);
        let invocation = begin(folder.path(), &more, &engine(clean), true);
        assert_eq!(invocation.finished().count(), wanted, "clean: {clean}");
        let (outcome, runs) = execute(&more, &invocation, usize::MAX);
        assert_eq!(runs, 8 - wanted);
        assert_eq!(bytes(&outcome), bytes(&uninterrupted(&more)));
        // The other scenario may still be continued.
        invocation.discard().unwrap();
        assert_eq!(segments(folder.path()), 1);
    }
}

#[test]
fn a_modified_build_resumes_the_last_execution_of_the_same_binary_only() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, engine) = (scenario(4), engine(false));
    for runs in [1, 2] {
        let invocation = begin(folder.path(), &scenario, &engine, false);
        execute(&scenario, &invocation, runs);
    }
    let other = Engine {
        binary: Some("other bytes".to_owned()),
        ..engine.clone()
    };
    let found = |engine: &Engine| {
        begin(folder.path(), &scenario, engine, true)
            .finished()
            .count()
    };
    assert_eq!(found(&other), 0);
    assert_eq!(found(&engine), 2);
    assert_eq!(segments(folder.path()), 2);
    begin(folder.path(), &scenario, &engine, false)
        .discard()
        .unwrap();
    assert_eq!(
        segments(folder.path()),
        0,
        "a completed execution removes older ones"
    );
}

#[test]
fn a_damaged_run_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, engine) = (scenario(4), engine(true));
    execute(
        &scenario,
        &begin(folder.path(), &scenario, &engine, false),
        3,
    );
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut content = fs::read(&path).unwrap();
        if let Some(last) = content.last_mut() {
            *last ^= 1;
            fs::write(path, content).unwrap();
        }
    }
    let invocation = begin(folder.path(), &scenario, &engine, true);
    let (outcome, runs) = execute(&scenario, &invocation, usize::MAX);
    assert_eq!(runs, 6);
    assert_eq!(bytes(&outcome), bytes(&uninterrupted(&scenario)));
}

#[test]
fn a_store_that_fails_does_not_end_the_runs() {
    use sojourn_store::testing::{Fault, Faulty};
    let scenario = scenario(4);
    let folder = tempfile::tempdir().unwrap();
    // The operations of opening the store and beginning a segment.
    let counting = Faulty::counting();
    let opened = RunStore::open(folder.path(), Arc::new(counting.clone())).unwrap();
    let writer = opened.writer().unwrap();
    let before = counting.operations();
    drop(writer);
    let full = Arc::new(Faulty::new(Fault::Forever, before));
    let opened = RunStore::open(folder.path(), full).unwrap();
    let invocation = Invocation::begin(&opened, &scenario, &engine(true), false).unwrap();
    let (outcome, _) = execute(&scenario, &invocation, usize::MAX);
    assert_eq!(bytes(&outcome), bytes(&uninterrupted(&scenario)));
    assert_eq!(invocation.failure().as_deref(), Some("injected fault"));
}
