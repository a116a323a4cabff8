//! Runs the simulations and puts their means beside the kernel's.

use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;
use sojourn_records::Records;
use sojourn_sim::run;

use crate::metric::{Metric, deviation, mean};
use crate::setup::{Draw, config, draws};
use crate::truth::Scenario;

/// One metric of one scenario, ours and the kernel's.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) suite: String,
    pub(crate) scenario: String,
    pub(crate) title: String,
    /// Whom it measures, where TCP flows run.
    pub(crate) cc: Option<String>,
    pub(crate) metric: &'static str,
    /// The metric in full with its unit.
    #[serde(skip)]
    pub(crate) described: &'static str,
    /// Mean over our runs; `None`: no run yielded it.
    pub(crate) ours: Option<f64>,
    pub(crate) ours_deviation: f64,
    pub(crate) ours_runs: usize,
    pub(crate) linux: f64,
    pub(crate) linux_deviation: f64,
    /// How far apart still is agreement.
    pub(crate) tolerance: f64,
    /// The same without regard to the kernel's deviation.
    pub(crate) metric_tolerance: f64,
}

impl Cell {
    /// Distance from the kernel in tolerances; up to 1 is agreement.
    pub(crate) fn distance(&self) -> f64 {
        match self.ours {
            None => f64::INFINITY,
            // Also where nothing is allowed: the kernel had 0 in every repetition.
            Some(ours) if (ours - self.linux).abs() <= self.tolerance => {
                (ours - self.linux).abs() / self.tolerance.max(f64::MIN_POSITIVE)
            }
            Some(ours) => (ours - self.linux).abs() / self.tolerance,
        }
    }

    pub(crate) fn agrees(&self) -> bool {
        self.distance() <= 1.0
    }

    /// Whether the kernel's deviation allows more than the metric does.
    pub(crate) fn is_limited_by_deviation(&self) -> bool {
        self.tolerance > self.metric_tolerance
    }

    /// Whether it agrees only because the kernel's deviation allows more than the metric does.
    pub(crate) fn agrees_by_deviation(&self) -> bool {
        let agrees_with = |tolerance| {
            let strict = Self {
                tolerance,
                ..self.clone()
            };
            strict.agrees()
        };
        self.agrees() && !agrees_with(self.metric_tolerance)
    }
}

/// What came of a set of scenarios.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) cells: Vec<Cell>,
    /// Runs that broke off, and why.
    pub(crate) failures: Vec<String>,
}

type Outcome = Result<Vec<Option<f64>>, String>;

/// Simulates every scenario and compares. The result does not depend on the number of threads.
pub(crate) fn compare(scenarios: &[&Scenario]) -> Comparison {
    let jobs: Vec<(usize, Draw)> = scenarios
        .iter()
        .enumerate()
        .flat_map(|(n, s)| draws(s).into_iter().map(move |draw| (n, draw)))
        .collect();
    let outcomes: Vec<OnceLock<Outcome>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some((n, draw)) = jobs.get(job) else {
                return;
            };
            outcomes[job].get_or_init(|| measure(scenarios[*n], draw));
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
    let cells = scenarios.iter().zip(&runs);
    Comparison {
        cells: cells.flat_map(|(s, runs)| rows(s, runs)).collect(),
        failures,
    }
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
fn measure(scenario: &Scenario, draw: &Draw) -> Outcome {
    let records = simulate(scenario, draw)?;
    let metrics = Metric::of(scenario).iter();
    Ok(metrics
        .map(|m| m.of_ours(scenario, &draw.starts, &records))
        .collect())
}

fn rows(scenario: &Scenario, runs: &[Vec<Option<f64>>]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (n, &metric) in Metric::of(scenario).iter().enumerate() {
        let reps = scenario.reps.iter();
        let linux: Vec<f64> = reps.filter_map(|r| metric.of_linux(scenario, r)).collect();
        let Some(linux_mean) = mean(&linux) else {
            continue;
        };
        let ours: Vec<f64> = runs.iter().filter_map(|values| values[n]).collect();
        let metric_tolerance = metric.tolerance(linux_mean);
        cells.push(Cell {
            suite: scenario.suite.clone(),
            scenario: scenario.name.clone(),
            title: scenario.title(),
            cc: scenario.controller().map(str::to_owned),
            metric: metric.name(),
            described: metric.described(),
            ours: mean(&ours),
            ours_deviation: deviation(&ours),
            ours_runs: ours.len(),
            linux: linux_mean,
            linux_deviation: deviation(&linux),
            tolerance: metric_tolerance.max(2.0 * deviation(&linux)),
            metric_tolerance,
        });
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(ours: Option<f64>, linux: f64, tolerance: f64) -> Cell {
        Cell {
            suite: String::new(),
            scenario: String::new(),
            title: String::new(),
            cc: None,
            metric: "drops",
            described: "drops, packets",
            ours,
            ours_deviation: 0.0,
            ours_runs: 3,
            linux,
            linux_deviation: 0.0,
            tolerance,
            metric_tolerance: tolerance,
        }
    }

    #[test]
    fn agreement_ends_at_the_tolerance() {
        assert!(cell(Some(10.0), 8.0, 2.0).agrees());
        assert!(!cell(Some(10.1), 8.0, 2.0).agrees());
        assert!((cell(Some(11.0), 8.0, 2.0).distance() - 1.5).abs() < 1e-12);
    }

    #[test]
    fn the_deviation_of_the_kernel_may_decide() {
        let mut wide = cell(Some(10.0), 8.0, 3.0);
        assert!(!wide.is_limited_by_deviation() && !wide.agrees_by_deviation());
        wide.metric_tolerance = 2.5;
        assert!(wide.is_limited_by_deviation() && !wide.agrees_by_deviation());
        wide.metric_tolerance = 1.5;
        assert!(wide.agrees_by_deviation());
    }

    #[test]
    fn what_no_run_yielded_disagrees() {
        assert!(!cell(None, 8.0, 100.0).agrees());
        assert!(cell(Some(0.0), 0.0, 0.0).agrees());
    }
}
