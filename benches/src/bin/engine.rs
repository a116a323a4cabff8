//! `engine`: the CPU time of the simulator alone for all runs of scenarios, for `benches/sweeps.py`.
//!
//! It takes files with scenarios as JSON and prints the number of runs and the CPU time in seconds of
//! their simulation, without reading, checking and planning.

use std::process::ExitCode;

use sojourn_bench::usage::cpu_seconds;
use sojourn_scenario::Scenario;

fn main() -> ExitCode {
    let mut files = std::env::args().skip(1);
    match files.try_fold((0, 0.0), |sum, file| add(sum, &file)) {
        Ok((runs, cpu_s)) => {
            println!("{runs} {cpu_s}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Adds the runs of a file to a number of runs and their CPU time.
fn add((mut runs, mut cpu_s): (u32, f64), file: &str) -> Result<(u32, f64), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let scenario = Scenario::from_json(&text).map_err(|e| format!("{file}: {e}"))?;
    for arm in 0..scenario.arms().len() {
        for replication in 0..scenario.replications() {
            let plan = scenario.plan(arm, replication);
            let before = cpu_seconds();
            let records = sojourn_sim::run(&plan.config, &mut |_| true);
            let records = records.map_err(|e| format!("{file}: {e}"))?;
            cpu_s += cpu_seconds() - before;
            drop(records);
            runs += 1;
        }
    }
    Ok((runs, cpu_s))
}
