//! Outcomes that are put together from the parts that several processes ran.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arrow_schema::ArrowError;
use sojourn_lab::{Outcome, Provenance, RunOptions, Scenario, run};
use sojourn_sim::Simulator;

/// Its queue is a reconstruction, which the manifest notices.
const SCENARIO: &str = r#"
    duration = "1s"
    replications = 2
    links.up = { rate = "8mbit", qdisc = "floq" }
    traffic = [{ type = "udp", direction = "up", rate = "1mbit" }]
"#;

fn ran(only: Option<&[usize]>) -> Outcome {
    let options = RunOptions {
        only,
        ..RunOptions::default()
    };
    run(&Simulator::default(), &scenario(), options).unwrap()
}

fn scenario() -> Scenario {
    Scenario::from_toml(SCENARIO).unwrap()
}

fn assembled(parts: &[Vec<u8>]) -> Result<Outcome, ArrowError> {
    let provenance = Provenance::of(&Simulator::default());
    Outcome::assemble(&scenario(), provenance, parts.iter().map(Vec::as_slice))
}

#[test]
fn the_parts_make_the_manifest_of_the_whole() {
    let parts = [0, 1].map(|number| ran(Some(&[number])).to_bytes().unwrap());
    assert_eq!(assembled(&parts).unwrap().manifest(), ran(None).manifest());
}

#[test]
fn no_part_at_all_leaves_the_manifest_of_the_scenario() {
    let nothing = assembled(&[]).unwrap();
    assert_eq!(nothing.manifest(), ran(Some(&[])).manifest());
    assert_eq!(nothing.manifest().notices.len(), 1);
    assert!(!nothing.is_complete());
}

#[test]
fn a_part_of_another_build_is_refused() {
    let part = ran(Some(&[0])).to_bytes().unwrap();
    let text = String::from_utf8_lossy(&part);
    let at = text.find("\"metric_definitions\": ").unwrap() + "\"metric_definitions\": ".len();
    let mut other = part.clone();
    other[at] = b'9';
    let error = assembled(&[part, other]).unwrap_err().to_string();
    assert!(
        error.contains("expected the output of to_bytes for this scenario"),
        "{error}"
    );
}
