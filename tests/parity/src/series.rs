//! Our congestion window and RTT beside the kernel's, for diagnosis.

use std::fmt::Write;

use sojourn_net::Duration;

use crate::compare::simulate;
use crate::setup::draws;
use crate::truth::{Scenario, Series, Truth};

/// A table over time for each flow of the first repetition.
///
/// # Errors
/// When the scenario cannot be simulated.
pub(crate) fn table(truth: &Truth, scenario: &Scenario) -> Result<String, String> {
    let draw = &draws(truth, scenario)[0];
    let records = simulate(scenario, draw)?;
    let linux = &scenario.reps[0];
    let mut text = String::new();
    for (n, flow) in scenario.flows.iter().enumerate() {
        let _ = writeln!(
            text,
            "{} flow {n} {} {}\n{:>7} {:>7} {:>7} {:>9} {:>9} {:>8} {:>8} {:>7}",
            scenario.name,
            flow.dir.name(),
            flow.cc,
            "s",
            "cwnd",
            "linux",
            "srtt ms",
            "linux",
            "ssthresh",
            "backlog",
            "drops",
        );
        let link = records.links.iter().find(|l| l.name == flow.dir.name());
        let mut dropped = 0;
        let mut counted = 0;
        for (k, &cwnd) in linux.cwnd[n].values.iter().enumerate() {
            let at = linux.cwnd[n].from + k as f64 * truth.series_step_s;
            // The samples before `at` are counted, the one that ends at or after it is shown.
            let Some(m) = records.flows[n]
                .series
                .iter()
                .position(|s| s.at.as_secs_f64() >= at)
            else {
                break;
            };
            let ours = &records.flows[n].series[m];
            let queue = link.and_then(|l| l.series.get(m));
            if let Some(link) = link {
                for sample in link.series.get(counted..=m).unwrap_or_default() {
                    dropped += sample.counters.drops_aqm + sample.counters.drops_overlimit;
                }
                counted = m + 1;
            }
            let _ = writeln!(
                text,
                "{at:7.2} {:>7} {cwnd:7.0} {:>9} {:>9} {:>8} {:>8} {dropped:7}",
                ours.cwnd.map_or("-".to_owned(), |cwnd| cwnd.to_string()),
                ours.srtt.map_or("-".to_owned(), millis),
                value(linux.srtt_ms.get(n), k),
                ours.ssthresh.map_or("-".to_owned(), |s| s.to_string()),
                queue.map_or("-".to_owned(), |q| q.backlog_packets.to_string()),
            );
        }
    }
    Ok(text)
}

fn millis(d: Duration) -> String {
    format!("{:.1}", d.as_millis_f64())
}

fn value(series: Option<&Series>, k: usize) -> String {
    series
        .and_then(|s| s.values.get(k))
        .map_or("-".to_owned(), |v| format!("{v:.1}"))
}
