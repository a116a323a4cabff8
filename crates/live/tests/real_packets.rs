//! Runs with the system calls of this machine: the part that tests in virtual time do not reach.
//!
//! `make sanitize` repeats them with the address sanitizer. A machine without the permission to create network
//! namespaces skips them by name.

#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::io::Write as _;

use sojourn_backend::{BackendError, Cancellation, Completion};
use sojourn_live::{Ended, Options, run};
use sojourn_records::Records;
use sojourn_scenario::Scenario;

const NETWORK: &str = "duration = \"1s\"\nrtt = \"10ms\"\nwarmup = \"0s\"\n\
     [links]\nup = { rate = \"20mbit\", qdisc = \"fq_codel\" }\n\
     down = { rate = \"20mbit\", qdisc = \"fq_codel\" }\n";

fn run_live(traffic: &str, options: &Options) -> Option<(Ended, Records)> {
    let text = format!("{NETWORK}{traffic}");
    let scenario = Scenario::from_toml(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut records = Records::default();
    let never = || false;
    let cancellation = Cancellation::new(&never);
    match run(
        &scenario.plan(0, 0),
        options,
        None,
        None,
        &cancellation,
        &mut records,
    ) {
        Ok(ended) => Some((ended, records)),
        Err(BackendError::Environment(reason)) => {
            skipped(&format!("no live runs: {reason}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Says why the test is skipped, also to `tools/skipped.py`.
fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os("SOJOURN_SKIPPED") {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        let mut list = opened.expect("the list of skipped tests opens");
        list.write_all(format!("{reason}\n").as_bytes())
            .expect("a line is written");
    }
}

#[test]
fn applications_send_real_packets() {
    let traffic = "[[traffic]]\ntype = \"tcp\"\ndirection = \"down\"\n\
         [[traffic]]\ntype = \"ping\"\ndirection = \"up\"\ninterval = \"50ms\"\n\
         [[traffic]]\ntype = \"udp\"\ndirection = \"up\"\nrate = \"1mbit\"\n";
    let Some((ended, records)) = run_live(traffic, &Options::default()) else {
        return;
    };
    assert_eq!(ended.completion, Completion::Finished);
    let delivered: Vec<_> = records
        .flows
        .iter()
        .map(|flow| flow.totals.delivered_bytes)
        .collect();
    assert!(delivered[0] > 500_000, "{delivered:?}");
    assert!(delivered[2] > 50_000, "{delivered:?}");
}

#[test]
fn a_program_runs_between_the_namespaces_and_its_code_is_returned() {
    let traffic = "[[traffic]]\ntype = \"program\"\ndirection = \"down\"\n\
         command = [\"sh\", \"-c\", \"test \\\"$SOJOURN_SERVER\\\" = 100.64.0.2 && exit 7\"]\n";
    let options = Options {
        in_foreground: true,
        ..Options::default()
    };
    let Some((ended, _)) = run_live(traffic, &options) else {
        return;
    };
    assert_eq!(ended.status, Some(7));
}
