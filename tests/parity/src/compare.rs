//! Runs the simulations and puts their means beside the kernel's.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sojourn_records::Records;
use sojourn_sim::run;

use crate::cell::Cell;
use crate::measure;
use crate::metric::Metric;
use crate::setup::{Draw, config, draws, recorded, spec};
use crate::truth::Direction::{Down, Up};
use crate::truth::{Scenario, Truth};

/// What came of a set of scenarios.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) cells: Vec<Cell>,
    /// Runs that broke off, and why.
    pub(crate) failures: Vec<String>,
}

type Outcome = Result<Vec<Option<f64>>, String>;

/// Where the scenarios run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// In the simulator.
    Simulator,
    /// In the kernel that they were measured on, this number of repetitions.
    Kernel(usize),
}

impl Place {
    fn draws(self, truth: &Truth, scenario: &Scenario) -> Vec<Draw> {
        match self {
            Self::Simulator => draws(truth, scenario),
            Self::Kernel(repetitions) => {
                let mut all = recorded(truth, scenario);
                all.truncate(repetitions);
                all
            }
        }
    }

    /// One run, to its end.
    fn run(self, scenario: &Scenario, draw: &Draw) -> Result<Records, String> {
        match self {
            Self::Simulator => simulate(scenario, draw),
            Self::Kernel(_) => measure::run(scenario, draw),
        }
    }
}

/// Runs every scenario and compares. The result does not depend on the number of threads.
pub(crate) fn compare(truth: &Truth, scenarios: &[&Scenario], place: Place) -> Comparison {
    // A scenario that was measured on several kernels is simulated once, unless its queue changed.
    let kernel = |s: &Scenario| match place {
        Place::Simulator => String::new(),
        Place::Kernel(_) => s.kernel.clone(),
    };
    let mut known = BTreeMap::new();
    let same: Vec<usize> = scenarios
        .iter()
        .enumerate()
        .map(|(n, s)| {
            *known
                .entry((&s.name, kernel(s), spec(s, Up), spec(s, Down)))
                .or_insert(n)
        })
        .collect();
    let jobs: Vec<(usize, Draw)> = scenarios
        .iter()
        .enumerate()
        .filter(|&(n, _)| same[n] == n)
        .flat_map(|(n, s)| {
            let draws = place.draws(truth, s).into_iter();
            draws.map(move |draw| (n, draw))
        })
        .collect();
    let outcomes: Vec<OnceLock<Outcome>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some((n, draw)) = jobs.get(job) else {
                return;
            };
            outcomes[job].get_or_init(|| values(scenarios[*n], draw, place));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut runs = vec![Vec::new(); scenarios.len()];
    let mut failures = Vec::new();
    for ((n, draw), outcome) in jobs.iter().zip(outcomes) {
        match outcome.into_inner().expect("every job was taken") {
            Ok(values) => runs[*n].push(values),
            Err(e) => failures.push(format!("{} seed {}: {e}", scenarios[*n].name, draw.seed)),
        }
    }
    let cells = scenarios
        .iter()
        .zip(same)
        .flat_map(|(s, n)| rows(truth, s, &runs[n]))
        .collect();
    Comparison { cells, failures }
}

/// The scenarios of `one` kernel in place of our runs, beside those of the `other`.
pub(crate) fn kernels(truth: &Truth, one: &str, other: &str) -> Vec<Cell> {
    let measured = truth.scenarios.iter().filter(|s| s.kernel == one);
    measured
        .filter_map(|s| Some((s, truth.on(other, s)?)))
        .flat_map(|(s, reference)| {
            let values = |rep| Metric::of(s).iter().map(|m| m.of_linux(s, rep)).collect();
            let runs: Vec<_> = s.reps.iter().map(values).collect();
            rows(truth, reference, &runs)
        })
        .collect()
}

/// One run, to its end.
pub(crate) fn simulate(scenario: &Scenario, draw: &Draw) -> Result<Records, String> {
    let config = config(scenario, draw)?;
    // A defect in one scenario must not hide the others.
    match catch_unwind(|| run(&config, &mut |_| true)) {
        Ok(Ok(Some(records))) => Ok(records),
        Ok(Ok(None)) => Err("stopped before its end".to_owned()),
        Ok(Err(e)) => Err(e.to_string()),
        Err(_) => Err("panicked".to_owned()),
    }
}

/// The values of the scenario's metrics, in their order.
fn values(scenario: &Scenario, draw: &Draw, place: Place) -> Outcome {
    let records = place.run(scenario, draw)?;
    let metrics = Metric::of(scenario).iter();
    Ok(metrics
        .map(|m| m.of_ours(scenario, &draw.starts, &records))
        .collect())
}

/// The cells of a scenario, of runs with the values of its metrics.
fn rows(truth: &Truth, scenario: &Scenario, runs: &[Vec<Option<f64>>]) -> Vec<Cell> {
    let values = |metric: Metric, s: &Scenario| -> Vec<f64> {
        let reps = s.reps.iter();
        reps.filter_map(|r| metric.of_linux(s, r)).collect()
    };
    let most = truth.most_repeated(scenario);
    let metrics = Metric::of(scenario).iter().enumerate();
    metrics
        .filter_map(|(n, &metric)| {
            let ours: Vec<f64> = runs.iter().filter_map(|values| values[n]).collect();
            let linux = values(metric, scenario);
            Cell::of(scenario, metric, &ours, &linux, &values(metric, most))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kernels_are_compared_as_sojourn_is() {
        let truth = Truth::load();
        let cells = kernels(&truth, "6.12", "6.1");
        assert_eq!(cells.len(), 471);
        assert!(cells.iter().all(|cell| cell.kernel == "6.1"));
        let same = kernels(&truth, "6.1", "6.1");
        assert!(same.iter().all(|cell| cell.distance() < 1e-12));
    }

    #[test]
    fn the_deviation_is_that_of_the_kernel_with_the_most_repetitions() {
        let truth = Truth::load();
        let mut all = truth.scenarios.iter();
        let newer = all
            .find(|s| s.kernel == "6.12" && s.name == "R1_10m_100ms_sfb")
            .unwrap();
        let older = truth.on("6.1", newer).unwrap();
        assert_eq!((newer.reps.len(), older.reps.len()), (3, 10));
        let deviations = |s| -> Vec<f64> {
            let cells = rows(&truth, s, &[]);
            cells.iter().map(|cell| cell.linux_deviation).collect()
        };
        assert_eq!(deviations(newer), deviations(older));
    }
}
