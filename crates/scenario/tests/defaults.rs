//! The defaults of keys are those of the crates that execute a plan.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_scenario::Scenario;
use sojourn_scenario::plan::Traffic;
use sojourn_transport::{SenderParams, quic};

/// What a flow runs whose block has only the keys in `block`.
fn traffic(block: &str) -> Traffic {
    let text = format!(
        "duration = \"5s\"\nrtt = \"9ms\"\nlinks.up = {{ rate = \"1mbit\", qdisc = \"pfifo\" }}\nlinks.down = \"unlimited\"\n\
         traffic = [{{ direction = \"up\", {block} }}]"
    );
    let mut flows = Scenario::from_toml(&text).unwrap().config(0, 0).flows;
    flows.remove(0).traffic
}

#[test]
fn a_connection_without_keys_has_the_defaults_of_the_transport() {
    let Traffic::Tcp { bytes, params } = traffic("type = \"tcp\"") else {
        panic!("not TCP");
    };
    assert_eq!((bytes, params), (None, SenderParams::default()));
    let Traffic::Quic { bytes, params, .. } = traffic("type = \"quic\"") else {
        panic!("not QUIC");
    };
    assert_eq!((bytes, params), (None, quic::Params::default()));
}
