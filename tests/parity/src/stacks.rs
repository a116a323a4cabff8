//! Stacks that no released kernel has, and scenarios that once disagreed.
//!
//! Each scenario is in the format of Sojourn's scenario files, with what the kernel did in each of its runs.
//! `data/README.md` says how it was measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;
use sojourn_net::{Duration, Instant};
use sojourn_records::{FlowRecord, Records};
use sojourn_scenario::plan::Traffic;
use sojourn_scenario::{Plan, Scenario};
use sojourn_sim::run;

use crate::metric::{Metric, deviation, mean, percentile};
use crate::report::{Score, number, share};

const FILES: [&str; 4] = [
    include_str!("../data/stacks-bbr3.json"),
    include_str!("../data/stacks-prague.json"),
    include_str!("../data/stacks-regression.json"),
    include_str!("../data/stacks-htb.json"),
];

/// What was measured on one kernel.
#[derive(Debug, Deserialize)]
struct Measured {
    /// The full version, such as 6.12.117.
    kernel: String,
    /// The congestion control that was added to it, or the queue that is compared; `None`: a regression set, which
    /// is not a score.
    stack: Option<String>,
    scenarios: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    scenario: Value,
    /// The values of each metric, one per run of the kernel.
    linux: BTreeMap<String, Vec<f64>>,
}

/// One metric of one scenario, ours and the kernel's.
#[derive(Debug)]
pub(crate) struct StackCell {
    scenario: String,
    metric: String,
    ours: Vec<f64>,
    linux: Vec<f64>,
    tolerance: f64,
}

impl StackCell {
    fn new(scenario: &str, metric: &str, ours: Vec<f64>, linux: &[f64]) -> Self {
        let of_metric = tolerance(metric, mean(linux).unwrap_or_default());
        Self {
            scenario: scenario.to_owned(),
            metric: metric.to_owned(),
            ours,
            linux: linux.to_vec(),
            tolerance: of_metric.max(2.0 * deviation(linux)),
        }
    }

    /// In tolerances; up to 1 is agreement.
    fn distance(&self) -> f64 {
        match (mean(&self.ours), mean(&self.linux)) {
            (Some(ours), Some(linux)) => (ours - linux).abs() / self.tolerance,
            _ => f64::INFINITY,
        }
    }

    fn line(&self) -> String {
        let value = |values: &[f64]| mean(values).map_or_else(|| "-".to_owned(), number);
        format!(
            "{:24} {:11} ours {:>8} ±{:<7} linux {:>8} ±{:<7} tol {:<7} x{:.2}",
            self.scenario,
            self.metric,
            value(&self.ours),
            number(deviation(&self.ours)),
            value(&self.linux),
            number(deviation(&self.linux)),
            number(self.tolerance),
            self.distance(),
        )
    }
}

/// How far from the kernel's value counts as agreement, whatever its spread.
fn tolerance(metric: &str, linux: f64) -> f64 {
    let like = match metric.split(' ').next() {
        Some("goodput" | "udp" | "rate") => Metric::UdpGoodput,
        Some("share") => Metric::Share(0),
        Some("fct" | "rr") => Metric::Completion,
        Some("rr95") => return 0.1 * linux,
        Some("srtt" | "ping" | "owd") => Metric::PingMean,
        Some("ping95" | "owd95") => Metric::PingP95,
        Some("drops" | "leaf_drops" | "marks") => Metric::Drops(crate::truth::Direction::Up),
        _ => panic!("{metric}: no such metric"),
    };
    like.tolerance(linux)
}

/// The cells of one kernel.
#[derive(Debug)]
pub(crate) struct Stack {
    kernel: String,
    control: Option<String>,
    scenarios: usize,
    pub(crate) cells: Vec<StackCell>,
}

impl Stack {
    fn title(&self) -> String {
        match &self.control {
            Some(control) => format!("{control} on Linux {}", self.kernel),
            None => format!("regression set on Linux {}", self.kernel),
        }
    }

    fn score(&self) -> Score {
        let within = |most: f64| self.cells.iter().filter(|c| c.distance() <= most).count();
        Score {
            agreeing: within(1.0),
            close: within(0.5),
            cells: self.cells.len(),
        }
    }

    /// Whether fewer cells agree than `least`. A regression set has no score.
    pub(crate) fn falls_short(&self, least: f64) -> bool {
        self.control.is_some() && !self.cells.is_empty() && self.score().share() < least
    }

    fn misses(&self) -> Vec<&StackCell> {
        let mut misses: Vec<_> = self.cells.iter().filter(|c| c.distance() > 1.0).collect();
        misses.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
        misses
    }
}

/// Runs the scenarios whose name matches and compares them. The result does not depend on the number of threads.
///
/// # Errors
/// When a scenario is refused or a run breaks off.
pub(crate) fn compare(only: &Regex, kernel: Option<&str>) -> Result<Vec<Stack>, String> {
    FILES
        .iter()
        .map(|text| {
            let measured: Measured = serde_json::from_str(text).expect("the file is complete");
            measured.compare(only, kernel)
        })
        .collect()
}

impl Measured {
    fn compare(self, only: &Regex, kernel: Option<&str>) -> Result<Stack, String> {
        let on_kernel = kernel.is_none_or(|k| self.kernel.starts_with(&format!("{k}.")));
        let mut chosen = Vec::new();
        for entry in &self.scenarios {
            let scenario =
                Scenario::from_json(&entry.scenario.to_string()).map_err(|e| e.to_string())?;
            if on_kernel && only.is_match(scenario.name()) {
                chosen.push((entry, scenario));
            }
        }
        let jobs: Vec<(usize, u32)> = chosen
            .iter()
            .enumerate()
            .flat_map(|(n, (_, s))| (0..s.replications()).map(move |k| (n, k)))
            .collect();
        let outcomes: Vec<OnceLock<Result<Vec<Option<f64>>, String>>> =
            jobs.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let job = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(n, replication)) = jobs.get(job) else {
                    return;
                };
                let (entry, scenario) = &chosen[n];
                outcomes[job].get_or_init(|| measure(entry, scenario, replication));
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        let mut runs = vec![Vec::new(); chosen.len()];
        for (&(n, replication), outcome) in jobs.iter().zip(outcomes) {
            let values = outcome.into_inner().expect("every job was taken");
            let name = chosen[n].1.name();
            runs[n].push(values.map_err(|e| format!("{name} replication {replication}: {e}"))?);
        }
        let cells = chosen
            .iter()
            .zip(&runs)
            .flat_map(|((entry, scenario), runs)| {
                let metrics = entry.linux.iter().enumerate();
                metrics.map(|(n, (metric, linux))| {
                    let ours = runs.iter().filter_map(|values| values[n]).collect();
                    StackCell::new(scenario.name(), metric, ours, linux)
                })
            });
        Ok(Stack {
            kernel: self.kernel.clone(),
            control: self.stack.clone(),
            scenarios: chosen.len(),
            cells: cells.collect(),
        })
    }
}

/// The values of one run, in the order of the metrics.
fn measure(
    entry: &Entry,
    scenario: &Scenario,
    replication: u32,
) -> Result<Vec<Option<f64>>, String> {
    let plan = scenario.plan(0, replication);
    let records = match catch_unwind(|| run(&plan.config, &mut |_| true)) {
        Ok(Ok(Some(records))) => records,
        Ok(Ok(None)) => return Err("stopped before its end".to_owned()),
        Ok(Err(e)) => return Err(e.to_string()),
        Err(_) => return Err("panicked".to_owned()),
    };
    let metrics = entry.linux.keys();
    Ok(metrics
        .map(|metric| of_ours(metric, &plan, &records))
        .collect())
}

/// Our value of a metric: `goodput up`, `share g1`, `ping`.
fn of_ours(metric: &str, plan: &Plan, records: &Records) -> Option<f64> {
    let (name, of) = metric.split_once(' ').unwrap_or((metric, "ping"));
    let warm = Instant::ZERO + plan.config.measure_from;
    let end = Instant::ZERO + plan.config.duration;
    let flows = || {
        plan.config
            .flows
            .iter()
            .zip(&plan.flows)
            .zip(&records.flows)
    };
    let is_of = |group: &str| {
        group
            .strip_prefix(of)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let group = || {
        flows()
            .filter(|((_, label), _)| is_of(&label.group))
            .map(|(_, record)| record)
    };
    let goodput = |record: &FlowRecord| {
        let from = record.started.unwrap_or(end).max(warm);
        record.totals.delivered_bytes as f64 * 8.0 / end.saturating_since(from).as_secs_f64() / 1e6
    };
    // Connections without end, which share the bottleneck.
    let bulk = |direction: &str| -> f64 {
        let of_way = flows().filter(|((flow, label), _)| {
            let endless = matches!(flow.traffic, Traffic::Tcp { bytes: None, .. });
            endless && label.direction == Some(direction)
        });
        of_way.map(|(_, record)| goodput(record)).sum()
    };
    match name {
        "goodput" => Some(bulk(of)),
        "share" => {
            let ((_, label), _) = flows().find(|((_, label), _)| is_of(&label.group))?;
            let own: f64 = group().map(goodput).sum();
            Some(100.0 * own / bulk(label.direction?))
        }
        "udp" => group().map(goodput).next(),
        "rate" => Some(group().map(goodput).sum()),
        "srtt" => mean(
            &group()
                .filter_map(|record| srtt(record, warm))
                .collect::<Vec<_>>(),
        ),
        "fct" => {
            let times = group().filter_map(|r| Some(r.completed?.since(r.started?).as_secs_f64()));
            mean(&times.collect::<Vec<_>>())
        }
        "rr" => mean(&transactions(plan, records, of, warm).concat()),
        "rr95" => {
            let by_flow = transactions(plan, records, of, warm).into_iter();
            mean(
                &by_flow
                    .filter_map(|d| percentile(d, 0.95))
                    .collect::<Vec<_>>(),
            )
        }
        "owd" => Some(group().next()?.one_way_delay.as_ref()?.mean()? / 1e6),
        "owd95" => Some(group().next()?.one_way_delay.as_ref()?.quantile(0.95)? as f64 / 1e6),
        "ping" => mean(&pings(group().next()?, warm)),
        "ping95" => percentile(pings(group().next()?, warm), 0.95),
        "drops" | "marks" => {
            let totals = &records.links.iter().find(|link| link.name == of)?.totals;
            Some(match name {
                "drops" => totals.drops_overlimit + totals.drops_aqm,
                _ => totals.marks_aqm + totals.marks_ce_threshold,
            } as f64)
        }
        // Names of classes are unique in a scenario with this metric.
        "leaf_drops" => {
            let mut classes = records.links.iter().flat_map(|link| &link.classes);
            let totals = &classes.find(|record| record.class.name == of)?.totals;
            Some((totals.drops_overlimit + totals.drops_aqm) as f64)
        }
        _ => panic!("{metric}: no such metric"),
    }
}

/// The mean of the smoothed RTT after the warm-up, in milliseconds.
fn srtt(record: &FlowRecord, warm: Instant) -> Option<f64> {
    let from = record.started?.max(warm);
    let samples = record.series.iter().filter(|s| s.at > from);
    let values = samples.filter_map(|s| s.srtt.map(Duration::as_millis_f64));
    mean(&values.collect::<Vec<_>>())
}

/// Round trips of the requests sent after the warm-up, in milliseconds.
fn pings(record: &FlowRecord, warm: Instant) -> Vec<f64> {
    let sent = record.pings.iter().filter(|p| p.sent >= warm);
    sent.filter_map(|p| p.rtt.map(Duration::as_millis_f64))
        .collect()
}

/// Durations in seconds of the transactions that started after the warm-up, for each flow of one group.
fn transactions(plan: &Plan, records: &Records, group: &str, warm: Instant) -> Vec<Vec<f64>> {
    let mut by_flow: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for t in &records.transactions {
        let of_group = plan.flows[t.flow as usize].group == group;
        if let Some(completed) = t.completed.filter(|_| of_group && t.started >= warm) {
            let duration = completed.since(t.started).as_secs_f64();
            by_flow.entry(t.flow).or_default().push(duration);
        }
    }
    by_flow.into_values().collect()
}

/// The misses and the scores as text.
pub(crate) fn lines(stacks: &[Stack], all: bool) -> String {
    let mut text = String::new();
    for stack in stacks.iter().filter(|stack| !stack.cells.is_empty()) {
        if all {
            let lines = stack.cells.iter().map(StackCell::line);
            text.extend(lines.map(|line| line + "\n"));
        } else {
            let lines = stack.misses().into_iter().map(StackCell::line);
            text.extend(lines.map(|line| line + "\n"));
        }
        let _ = writeln!(text, "{}: agree {}\n", stack.title(), share(stack.score()));
    }
    text
}

/// The tables of `docs/validation/parity.md`.
pub(crate) fn sections(stacks: &[Stack]) -> String {
    let mut scores =
        "| compared | scenarios | cells | agree | % | within half of the tolerance |\n".to_owned();
    scores += "|---|---|---|---|---|---|\n";
    let mut misses =
        "| kernel | scenario | metric | Sojourn | Linux | runs of Linux | distance, tolerances |\n"
            .to_owned();
    misses += "|---|---|---|---|---|---|---|\n";
    for stack in stacks {
        let score = stack.score();
        let _ = writeln!(
            scores,
            "| {} | {} | {} | {} | {:.1} | {} |",
            stack.title(),
            stack.scenarios,
            score.cells,
            score.agreeing,
            100.0 * score.share(),
            score.close
        );
        for cell in stack.misses() {
            let _ = writeln!(
                misses,
                "| {} | {} | {} | {} ±{} | {} ±{} | {} | {:.1} |",
                stack.kernel,
                cell.scenario.replace('_', " "),
                cell.metric,
                mean(&cell.ours).map_or_else(|| "-".to_owned(), number),
                number(deviation(&cell.ours)),
                mean(&cell.linux).map_or_else(|| "-".to_owned(), number),
                number(deviation(&cell.linux)),
                cell.linux.len(),
                cell.distance()
            );
        }
    }
    format!("# stacks\n\n{scores}\n# stack_misses\n\n{misses}\n")
}
