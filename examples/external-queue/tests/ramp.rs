//! `ramp` keeps the contract of a queue, and refuses parameters that it does not have.

#[path = "../src/ramp.rs"]
pub mod ramp;

use proptest::collection::vec;
use proptest::prelude::*;
use sojourn_qdisc::testing::{Op, TestPacket, check_qdisc};
use sojourn_qdisc::{AnyQdisc, LinkFacts, QdiscSpec, Rng};

fn spec(text: &str) -> Result<QdiscSpec, String> {
    ramp::register().expect("the name is free");
    text.parse::<QdiscSpec>().map_err(|e| e.to_string())
}

proptest! {
    #[test]
    fn it_keeps_the_contract(ops in vec(any::<u64>().prop_map(Op::decode), 0..400)) {
        let spec = spec("ramp low 1ms high 5ms limit 20").expect("the parameters are valid");
        let link = LinkFacts::default();
        let build = || -> AnyQdisc<TestPacket> { spec.build(&link, Rng::new(1)) };
        check_qdisc(build, &ops);
    }
}

#[test]
fn the_defaults_are_those_of_the_declaration() {
    let given = spec("ramp low 5ms high 50ms limit 1000p");
    assert_eq!(spec("ramp"), given);
    assert_eq!(
        given.expect("the parameters are valid").to_string(),
        "ramp limit 1000 low 5ms high 50ms"
    );
}

#[test]
fn invalid_parameters_are_refused_as_those_of_a_queue_of_sojourn() {
    for (text, expected) in [
        (
            "ramp target 5ms",
            "ramp: unknown parameter \"target\"; expected one of limit, low, high",
        ),
        (
            "ramp hihg 5ms",
            "ramp: unknown parameter \"hihg\"; did you mean \"high\"?",
        ),
        (
            "ramp limit 0",
            "ramp: limit 0 is out of range; expected 1 to 100000000",
        ),
        ("ramp low 60ms", "ramp: low 60ms must be below high 50ms"),
        (
            "ramp low",
            "ramp: low needs a value; expected 1ns to 1000000s",
        ),
    ] {
        assert_eq!(spec(text), Err(expected.to_owned()), "{text}");
        // A built-in queue with the same range.
        if text.ends_with("limit 0") {
            let pfifo = "pfifo limit 0".parse::<QdiscSpec>();
            let message = pfifo.expect_err("the limit is out of range").to_string();
            assert_eq!(message, expected.replace("ramp", "pfifo"));
        }
    }
}
