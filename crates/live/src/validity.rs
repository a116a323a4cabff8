//! Facts that decide whether a live run can be trusted.

use std::fs;

use sojourn_backend::Completion;
use sojourn_net::Instant;
use sojourn_records::{ChangeRecord, Histogram, LinkRecord, ValidityFact};
use sojourn_scenario::Config;

use crate::connections::{Seen, Watched};
use crate::datapath::Counted;
use crate::error::plain;
use crate::hosts::Finished;
use crate::internet::WayOut;
use crate::space::Lost;

/// Limit of the 99th percentile of the lateness of events.
const MOST_LATE_NANOS: u64 = 1_000_000;
/// Limit of the processor time of the datapath, in percent of one processor.
const MOST_CPU: u64 = 90;

/// The facts of a run with devices of this kind; `lost` is that of [`lost_outside_queue`].
pub(crate) fn facts(
    counted: &Counted,
    links: &[LinkRecord],
    finished: &Finished,
    lost: ValidityFact,
    devices: String,
) -> Vec<ValidityFact> {
    let cpu = counted.cpu.as_nanos() * 100 / counted.elapsed.as_nanos().max(1);
    let late = counted.lateness.quantile(0.99).unwrap_or(0);
    let mut facts = vec![
        fact(
            "datapath_lateness",
            lateness(&counted.lateness),
            late <= MOST_LATE_NANOS,
        ),
        fact(
            "datapath_cpu",
            format!("{cpu} % of a processor"),
            cpu <= MOST_CPU,
        ),
        lost,
        fact(
            "larger_than_mtu",
            format!("{} packets", counted.unreadable),
            counted.unreadable == 0,
        ),
        fact("bottleneck", bottleneck(links, counted), true),
        fact(
            "ecn_capable",
            format!("{} of {} packets", counted.ecn_capable, counted.read),
            true,
        ),
        fact("devices", devices, true),
        fact("clock_source", clock_source(), true),
        fact("timer_slack", timer_slack(counted), true),
    ];
    let mut controls = finished.controls.clone();
    controls.sort();
    controls.dedup();
    if !controls.is_empty() {
        facts.push(fact("congestion_control", controls.join(", "), true));
        let (ecn, all) = finished.with_ecn;
        facts.push(fact(
            "ecn_negotiated",
            format!("{ecn} of {}", connections(all)),
            true,
        ));
    }
    facts
}

/// Packets lost elsewhere than at a queue or on a wire, in total and at each place; `lost` are those that the datapath
/// has not counted, `ends` is what it writes to.
pub(crate) fn lost_outside_queue(
    counted: &Counted,
    lost: Option<&Lost>,
    ends: [&str; 2],
) -> ValidityFact {
    const NAME: &str = "lost_outside_queue";
    let Some(lost) = lost else {
        let unknown = "unknown: the devices or hosts have no counters";
        return fact(NAME, unknown.to_owned(), false);
    };
    let datapath = [
        ("devices", lost.at_devices),
        ("packet buffers", counted.lost),
    ];
    let mut places: Vec<_> = datapath
        .into_iter()
        .chain(lost.at_sockets.places())
        .filter(|&(_, count)| count > 0)
        .map(|(place, count)| format!("{count} at {place}"))
        .collect();
    let mut all = lost.at_devices + counted.lost;
    let offered = counted.read + all;
    all += lost.at_sockets.total();
    for (end, refused) in ends.into_iter().zip(&counted.refused) {
        all += refused.count;
        if refused.count > 0 {
            let why = refused
                .last
                .as_ref()
                .map(|error| format!(" ({})", plain(error)));
            let why = why.unwrap_or_default();
            places.push(format!("{} written to {end}{why}", refused.count));
        }
    }
    let mut value = format!("{all} of {offered} packets");
    if !places.is_empty() {
        value = format!("{value}: {}", places.join(", "));
    }
    fact(NAME, value, all == 0)
}

/// Frames of a bridge that had been merged, and are split where they enter: their packets arrive at once.
pub(crate) fn of_merged(counted: &Counted) -> ValidityFact {
    fact(
        "merged_frames",
        format!("{} frames split", counted.split),
        true,
    )
}

/// What was done to packets at the end of their path, or beside them.
pub(crate) fn of_path((name, described): (&'static str, &Option<String>)) -> Option<ValidityFact> {
    let value = described.clone()?;
    Some(fact(name, value, true))
}

/// Where packets leave the machine, and what limits the result.
pub(crate) fn of_way_out(way_out: &WayOut) -> Vec<ValidityFact> {
    let mut facts = vec![fact("internet", way_out.described(), true)];
    let limits = way_out.limits();
    facts.extend(
        limits
            .into_iter()
            .map(|limit| fact("limit", limit.to_owned(), true)),
    );
    facts
}

/// Most changes that a fact quotes; the table of changes has all of them.
const QUOTED: usize = 3;

/// The changes that were asked for during the run: what was measured covers the time before and after them.
pub(crate) fn of_changes(changes: &[ChangeRecord], config: &Config) -> Option<ValidityFact> {
    let quoted = changes.iter().take(QUOTED).map(|change| {
        let (seconds, name) = (change.at.as_secs_f64(), &config.links[change.link].name);
        format!("{name} at {seconds:.2} s {}", change.text)
    });
    let mut all: Vec<_> = quoted.collect();
    if changes.len() > QUOTED {
        all.push(format!("{} more", changes.len() - QUOTED));
    }
    (!all.is_empty()).then(|| fact("changed_during_run", all.join(", "), true))
}

/// Exit status of the program.
pub(crate) fn of_program(status: Option<i32>) -> ValidityFact {
    let ended = match status {
        Some(code) => format!("exit code {code}"),
        None => "still running at the end".to_owned(),
    };
    fact("program", ended, status.is_none_or(|code| code == 0))
}

/// Congestion controls of the connections of programs, and how many of these negotiated ECN; `defaults`: the control of
/// connections that do not choose one, at the client and at the server; `None`: unknown, for example because the servers
/// are other machines.
pub(crate) fn of_connections(
    watched: &Watched,
    defaults: [Option<String>; 2],
) -> [ValidityFact; 2] {
    let (controls, ecn) = match watched {
        Ok(ends) => {
            let [client, server] = defaults;
            let described = [(&ends[0], client), (&ends[1], server)]
                .map(|(end, default)| controls_of(end, default));
            (both(described), both(ends.each_ref().map(ecn_of)))
        }
        Err(reason) => {
            let unknown = format!("unknown: the kernel does not list connections: {reason}");
            (unknown.clone(), unknown)
        }
    };
    [
        fact("program_congestion_control", controls, true),
        fact("program_ecn_negotiated", ecn, true),
    ]
}

fn both([client, server]: [String; 2]) -> String {
    format!("client: {client}; server: {server}")
}

fn controls_of(seen: &Seen, default: Option<String>) -> String {
    if seen.controls.is_empty() {
        let default = default.unwrap_or_else(|| "unknown".to_owned());
        return format!("no connection seen, default {default}");
    }
    let each = seen
        .controls
        .iter()
        .map(|(control, &count)| format!("{control} ({})", connections(count)));
    each.collect::<Vec<_>>().join(", ")
}

fn ecn_of(seen: &Seen) -> String {
    format!("{} of {}", seen.with_ecn, connections(seen.count()))
}

fn connections(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} connection{plural}")
}

/// What ended a run that lasts as long as its program. Runs that last for the duration of their scenario lack this fact.
pub(crate) fn of_end(completion: Completion, status: Option<i32>) -> ValidityFact {
    let by = match (completion, status) {
        (Completion::Cancelled, _) => "a signal",
        (Completion::Finished, Some(_)) => "the program",
        (Completion::Finished, None) => "the time limit",
    };
    fact("ended_by", by.to_owned(), true)
}

/// Whether the server ended with an error during the run: its exit code, and when.
pub(crate) fn of_server(failed: Option<(i32, Instant)>) -> ValidityFact {
    let value = match failed {
        Some((code, at)) => {
            let seconds = at.since(Instant::ZERO).as_secs_f64();
            format!("ended with exit code {code} after {seconds:.1} s")
        }
        None => "no error".to_owned(),
    };
    fact("server", value, failed.is_none())
}

fn fact(name: &'static str, value: String, passed: bool) -> ValidityFact {
    ValidityFact {
        name,
        value,
        passed,
    }
}

/// Quantiles of the lateness of events.
fn lateness(histogram: &Histogram) -> String {
    let us = |q| histogram.quantile(q).unwrap_or(0) / 1_000;
    let most = histogram.max().unwrap_or(0) / 1_000;
    format!(
        "median {} us, p99 {} us, maximum {most} us",
        us(0.5),
        us(0.99)
    )
}

/// How long each link was busy.
fn bottleneck(links: &[LinkRecord], counted: &Counted) -> String {
    let elapsed = counted.elapsed.as_nanos().max(1);
    let share = |link: &LinkRecord| {
        let percent = u128::from(link.sending.as_nanos()) * 100 / u128::from(elapsed);
        format!("{} sending {percent} % of the time", link.name)
    };
    links.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn clock_source() -> String {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(file).map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}

fn timer_slack(counted: &Counted) -> String {
    let slack = counted
        .slack
        .map_or("unknown".to_owned(), |nanos| format!("{nanos} ns"));
    let priority = if counted.is_preferred {
        "highest"
    } else {
        "usual"
    };
    format!("{slack}, {priority} priority")
}

#[cfg(test)]
mod tests {
    use sojourn_net::Duration;
    use sojourn_scenario::Scenario;

    use super::*;
    use crate::namespace::Refused;

    #[test]
    fn a_server_that_failed_fails_the_check() {
        assert!(of_server(None).passed);
        let at = Instant::ZERO + Duration::from_millis(1_240);
        let failed = of_server(Some((137, at)));
        assert!(!failed.passed);
        assert_eq!(failed.value, "ended with exit code 137 after 1.2 s");
    }

    #[test]
    fn packets_lost_outside_the_queue_are_named_by_place() {
        let counted = Counted {
            read: 90,
            lost: 3,
            refused: [
                Refused::default(),
                Refused {
                    count: 1,
                    last: Some(std::io::Error::from_raw_os_error(libc::EMSGSIZE)),
                },
            ],
            ..Counted::default()
        };
        let ends = ["eth1", "eth2"];
        let mut lost = Lost::default();
        assert_eq!(
            lost_outside_queue(&counted, Some(&lost), ends).value,
            "4 of 93 packets: 3 at packet buffers, 1 written to eth2 (Message too long)"
        );
        lost.at_devices = 7;
        let failed = lost_outside_queue(&counted, Some(&lost), ends);
        assert!(
            failed
                .value
                .starts_with("11 of 100 packets: 7 at devices, ")
        );
        assert!(!failed.passed);
        let none = lost_outside_queue(
            &Counted {
                read: 5,
                ..Counted::default()
            },
            Some(&Lost::default()),
            ends,
        );
        assert_eq!((&*none.value, none.passed), ("0 of 5 packets", true));
        assert!(!lost_outside_queue(&counted, None, ends).passed);
    }

    #[test]
    fn the_controls_of_programs_are_counted_at_each_end() {
        let mut client = Seen::default();
        client.add(1, "cubic", true);
        client.add(2, "cubic", false);
        client.add(3, "reno", true);
        let watched = Ok([client, Seen::default()]);
        let defaults = [Some("cubic".to_owned()), Some("bbr".to_owned())];
        let [controls, ecn] = of_connections(&watched, defaults);
        assert_eq!(
            controls.value,
            "client: cubic (2 connections), reno (1 connection); server: no connection seen, default bbr"
        );
        assert_eq!(
            ecn.value,
            "client: 2 of 3 connections; server: 0 of 0 connections"
        );
        let unknown = of_connections(&Err("No such file".to_owned()), [None, None]);
        assert!(
            unknown
                .iter()
                .all(|fact| fact.value.starts_with("unknown: ") && fact.passed)
        );
    }

    #[test]
    fn changes_of_a_run_are_quoted_with_their_times() {
        let text = "duration = \"9s\"\nlinks.a = { rate = \"1mbit\", qdisc = \"pfifo\" }\n\
                    links.b = { rate = \"1mbit\", qdisc = \"pfifo\" }\n\
                    traffic = [{ type = \"tcp\", path = [\"a\"], return = [\"b\"] }]";
        let config = Scenario::from_toml(text).expect("valid").plan(0, 0).config;
        assert_eq!(of_changes(&[], &config), None);
        let change = |millis, link| ChangeRecord {
            at: Instant::from_millis(millis),
            link,
            rate: None,
            delay: None,
            text: "{qdisc = \"pie\"}".to_owned(),
        };
        let one = of_changes(&[change(3_204, 1)], &config).expect("a fact");
        assert_eq!(one.value, "b at 3.20 s {qdisc = \"pie\"}");
        let five = of_changes(&[0, 1, 2, 3, 4].map(|n| change(n, 0)), &config).expect("a fact");
        assert!(five.value.ends_with(", 2 more"), "{}", five.value);
        assert_eq!(five.value.matches("pie").count(), 3);
    }

    #[test]
    fn the_end_of_a_run_has_one_cause() {
        let by = |completion, status| of_end(completion, status).value;
        assert_eq!(by(Completion::Finished, Some(7)), "the program");
        assert_eq!(by(Completion::Finished, None), "the time limit");
        assert_eq!(by(Completion::Cancelled, Some(130)), "a signal");
    }
}
