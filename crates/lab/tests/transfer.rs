//! Outcomes that are put together from the runs of several processes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::AtomicBool;

use arrow_schema::ArrowError;
use sojourn_lab::{Outcome, Provenance, RunOptions, Scenario, TableKind, run, run_one};
use sojourn_sim::Simulator;

/// Its queue is a reconstruction, which the manifest notices.
const SCENARIO: &str = r#"
    duration = "1s"
    replications = 2
    links.up = { rate = "8mbit", qdisc = "floq" }
    traffic = [{ type = "udp", direction = "up", rate = "1mbit" }]
"#;

fn ran(cancelled: bool) -> Outcome {
    let options = RunOptions {
        cancel: &AtomicBool::new(cancelled),
        ..RunOptions::default()
    };
    run(&Simulator::default(), &scenario(), options).unwrap()
}

fn scenario() -> Scenario {
    Scenario::from_toml(SCENARIO).unwrap()
}

fn part(number: usize) -> Vec<u8> {
    run_one(&Simulator::default(), &scenario(), number).unwrap()
}

fn assembled(parts: &[(usize, Vec<u8>)]) -> Result<Outcome, ArrowError> {
    let provenance = Provenance::of(&Simulator::default());
    let parts = parts.iter().map(|(number, part)| (*number, &part[..]));
    Outcome::assemble(&scenario(), provenance, parts)
}

#[test]
fn the_parts_in_any_order_make_the_whole() {
    let whole = ran(false);
    let assembled = assembled(&[(1, part(1)), (0, part(0))]).unwrap();
    assert_eq!(assembled.manifest(), whole.manifest());
    for kind in TableKind::ALL {
        let [assembled, whole] = [&assembled, &whole].map(|of| of.table(kind).batches().unwrap());
        assert_eq!(assembled, whole);
    }
}

#[test]
fn no_part_at_all_leaves_the_manifest_of_the_scenario() {
    let nothing = assembled(&[]).unwrap();
    assert_eq!(nothing.manifest(), ran(true).manifest());
    assert_eq!(nothing.manifest().notices.len(), 1);
    assert!(!nothing.is_complete());
}

#[test]
fn a_part_of_another_run_or_build_or_a_damaged_one_is_refused() {
    let part = part(0);
    let mut other = part.clone();
    other[0] ^= 1;
    let cut = part[..part.len() - 5].to_vec();
    for parts in [
        (1, part.clone()),
        (0, other),
        (0, cut),
        (2, part.clone()),
        (0, Vec::new()),
    ] {
        let number = parts.0;
        assert!(assembled(&[parts]).is_err(), "{number}");
    }
    let error = assembled(&[(1, part)]).unwrap_err().to_string();
    assert!(
        error.contains("expected the bytes of this run of this scenario"),
        "{error}"
    );
}
