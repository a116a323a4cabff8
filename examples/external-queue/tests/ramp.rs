//! `ramp` keeps the contract of a queue, and refuses parameters that it does not have.

#[path = "../src/ramp.rs"]
mod ramp;

use proptest::collection::vec;
use proptest::prelude::*;
use sojourn_qdisc::testing::{Op, TestPacket, check_qdisc};
use sojourn_qdisc::{AnyQdisc, Duration, Ecn, LinkFacts, QdiscSpec, Rng};

fn spec(text: &str) -> Result<QdiscSpec, String> {
    ramp::register().expect("the name is free");
    text.parse::<QdiscSpec>().map_err(|e| e.to_string())
}

fn op() -> impl Strategy<Value = Op> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ce)];
    prop_oneof![
        4 => (0..3_u32, 64..1_514_u64, ecn).prop_map(|(flow, size, ecn)| Op::Enqueue(flow, size, ecn)),
        3 => Just(Op::Dequeue),
        1 => (0..20_u64).prop_map(|n| Op::Wait(Duration::from_millis(n))),
    ]
}

proptest! {
    #[test]
    fn it_keeps_the_contract(ops in vec(op(), 0..400)) {
        let spec = spec("ramp low 1ms high 5ms limit 20").expect("the parameters are valid");
        let link = LinkFacts::default();
        let build = || -> AnyQdisc<TestPacket> { spec.build(&link, Rng::new(1)) };
        check_qdisc(build, &ops);
    }
}

#[test]
fn invalid_parameters_are_refused() {
    for (text, expected) in [
        (
            "ramp target 5ms",
            r#"unknown parameter "target"; expected limit, low or high"#,
        ),
        ("ramp limit 0", "limit: 0 packets; expected 1 or more"),
        ("ramp low 60ms", "high: not above low; expected low < high"),
        ("ramp low 5", "low: "),
    ] {
        let message = spec(text).expect_err("the parameters are not valid");
        assert!(message.contains(expected), "{text}: {message}");
    }
}
