//! Measures scenarios again, in the kernel that they were measured on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};
use sojourn_backend::{Backend, Cancellation};
use sojourn_kernel::{Folder, LinuxKernel};
use sojourn_net::Duration;
use sojourn_records::{FlowRecord, Records};
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Config, FlowLabel, Hop};

use crate::metric::{Metric, mean, percentile, pings, srtt, window};
use crate::setup::{Draw, config, recorded};
use crate::truth::Direction::{Down, Up};
use crate::truth::{Scenario, Truth};

/// One run in the kernel.
///
/// # Errors
/// If the kernel was not built, or cannot run the scenario.
pub(crate) fn run(scenario: &Scenario, draw: &Draw) -> Result<Records, String> {
    let kernel = LinuxKernel::new(&scenario.kernel, Folder::of_user(), None);
    let plan = plan(config(scenario, draw)?);
    let mut records = Records::default();
    let cancellation = Cancellation::new(&|| false);
    kernel
        .run(&plan, &cancellation, &mut records)
        .map_err(|e| e.to_string())?;
    Ok(records)
}

/// A plan of this configuration: the data of a flow goes up if its path begins with a link.
fn plan(config: Config) -> Plan {
    let label = |flow: &sojourn_scenario::plan::FlowConfig| FlowLabel {
        group: flow.name.clone(),
        kind: "tcp",
        direction: Some(match flow.forward.first() {
            Some(Hop::Delay(_)) => Down.name(),
            _ => Up.name(),
        }),
        rtt: Duration::ZERO,
    };
    Plan {
        flows: config.flows.iter().map(label).collect(),
        controller: None,
        config,
    }
}

/// Measures scenarios and writes the results in place of those in `data`.
///
/// # Errors
/// If a run fails or a file cannot be written.
pub(crate) fn record(
    truth: &Truth,
    scenarios: &[&Scenario],
    repetitions: usize,
) -> Result<(), String> {
    let jobs: Vec<(usize, usize, Draw)> = (scenarios.iter().enumerate())
        .flat_map(|(n, scenario)| {
            let draws = recorded(truth, scenario).into_iter().take(repetitions);
            draws.enumerate().map(move |(rep, draw)| (n, rep, draw))
        })
        .collect();
    let queue = Mutex::new(jobs.into_iter());
    let measured: Mutex<BTreeMap<(usize, usize), Value>> = Mutex::default();
    let work = || -> Result<(), String> {
        loop {
            let job = queue.lock().expect("no thread panics").next();
            let Some((n, rep, draw)) = job else {
                return Ok(());
            };
            let scenario = scenarios[n];
            let records = run(scenario, &draw).map_err(|e| format!("{}: {e}", scenario.name))?;
            let value = repetition(scenario, &draw, rep + 1, &records);
            println!(
                "{} {} repetition {}",
                scenario.kernel,
                scenario.name,
                rep + 1
            );
            let mut measured = measured.lock().expect("no thread panics");
            measured.insert((n, rep), value);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut done = threads
            .into_iter()
            .map(|one| one.join().expect("no thread panics"));
        done.find(Result::is_err).unwrap_or(Ok(()))
    })?;
    let mut by_scenario: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    for ((n, _), value) in measured.into_inner().expect("no thread panics") {
        by_scenario.entry(n).or_default().push(value);
    }
    for (n, reps) in by_scenario {
        replace(scenarios[n], &reps)?;
    }
    Ok(())
}

/// Puts the repetitions of a scenario in place of those in its file, which has a line for each scenario.
fn replace(scenario: &Scenario, reps: &[Value]) -> Result<(), String> {
    let name = format!("data/linux-{}.json", scenario.kernel);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let text = fs::read_to_string(&path).map_err(failed)?;
    let begins = format!("{{\"name\":\"{}\",", scenario.name);
    let lines = text.lines().map(|line| {
        let (before, _) = line
            .split_once("\"reps\":")
            .filter(|_| line.starts_with(&begins))?;
        let comma = if line.ends_with(',') { "," } else { "" };
        let reps = Value::from(reps.to_vec());
        Some(format!("{before}\"reps\":{reps}}}{comma}"))
    });
    let lines: Vec<String> = (text.lines().zip(lines))
        .map(|(old, new)| new.unwrap_or_else(|| old.to_owned()))
        .collect();
    fs::write(&path, lines.join("\n") + "\n").map_err(failed)
}

/// What is kept of one run, as `compact.py` writes it.
fn repetition(scenario: &Scenario, draw: &Draw, number: usize, records: &Records) -> Value {
    let flows = || scenario.flows.iter().zip(&records.flows).zip(&draw.starts);
    let endless = || flows().filter(|((flow, _), _)| flow.bytes.is_none());
    let of = |value: fn(&[f64]) -> Option<f64>| -> Vec<Option<f64>> {
        let values = endless().map(|((flow, record), &start)| {
            let found = srtt(record, start.max(scenario.warm), flow.stop);
            value(&found).map(|ms| rounded(ms, 3))
        });
        values.collect()
    };
    let all = pings(records, scenario.warm, scenario.duration);
    let mut value = json!({
        "rep": number,
        "starts": draw.starts,
        "ping_start": draw.ping_start,
        "ping": {
            "n": all.len(),
            "mean": mean(&all).map(|ms| rounded(ms, 3)),
            "p95": percentile(all, 0.95).map(|ms| rounded(ms, 3)),
        },
        "drops": {},
        "udp": [],
    });
    if endless().next().is_some() {
        let goodput: Vec<_> = endless()
            .map(|((flow, record), &start)| {
                rounded(
                    crate::metric::goodput(record, start.max(scenario.warm), flow.stop),
                    4,
                )
            })
            .collect();
        value["goodput"] = goodput.into();
        value["srtt_mean_ms"] = of(mean).into();
        value["srtt_p95_ms"] = of(|values| percentile(values.to_vec(), 0.95)).into();
    }
    let finite: Vec<Option<f64>> = flows()
        .filter(|((flow, _), _)| flow.bytes.is_some())
        .map(|((_, record), &start)| Some(rounded(record.completed?.as_secs_f64() - start, 4)))
        .collect();
    if !finite.is_empty() {
        value["fct_s"] = finite.into();
    }
    for name in scenario.windows.keys() {
        let found = mean(&window(scenario, records, name));
        value["windows"][name] = found.map(|ms| rounded(ms, 3)).into();
    }
    let directions = [Up, Down].into_iter().filter(|way| {
        let name = way.name();
        records.links.iter().any(|link| link.name == name)
    });
    for way in directions {
        let count = |metric: Metric| metric.of_ours(scenario, &draw.starts, records);
        value["drops"][way.name()] = count(Metric::Drops(way)).into();
        if scenario.has_marks() {
            value["marks"][way.name()] = count(Metric::Marks(way)).into();
        }
    }
    let of_udp = |metric: Metric| metric.of_ours(scenario, &draw.starts, records);
    if !scenario.udp.is_empty() {
        value["udp"] = json!([{
            "goodput_mbps": of_udp(Metric::UdpGoodput).map(|mbit| rounded(mbit, 4)),
            "owd_mean_ms": of_udp(Metric::OwdMean).map(|ms| rounded(ms, 3)),
            "owd_p95_ms": of_udp(Metric::OwdP95).map(|ms| rounded(ms, 3)),
        }]);
    }
    if number == 1 {
        let series = |of: fn(&sojourn_records::FlowSample) -> Option<f64>| -> Value {
            flows()
                .map(|((_, record), _)| decimated(record, of))
                .collect()
        };
        value["cwnd"] = series(|sample| sample.cwnd.map(|cwnd| f64::from(cwnd.get())));
        value["srtt_ms"] =
            series(|sample| sample.srtt.map(|srtt| rounded(srtt.as_millis_f64(), 1)));
    }
    value
}

/// Every fifth sample of a series, which is one each 0.5 s.
fn decimated(record: &FlowRecord, of: fn(&sojourn_records::FlowSample) -> Option<f64>) -> Value {
    let samples = record
        .series
        .iter()
        .filter_map(|sample| Some((sample.at, of(sample)?)));
    let kept: Vec<_> = samples.step_by(5).collect();
    json!({
        "from": kept.first().map(|(at, _)| at.as_secs_f64()),
        "values": kept.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
    })
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}
