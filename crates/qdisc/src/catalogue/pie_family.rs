//! What may be set in the disciplines that descend from PIE.

use super::parameters::{LIMIT, LONGEST, MTU, PROFILE, TARGET, count, flag, packets, size, time};
use crate::parameters::{Parameter, Unit};

const GAIN_MOST: u64 = 1_000_000;

pub(super) const DUALPI2: &[Parameter] = &[
    LIMIT,
    size(
        "memlimit",
        1_514,
        1 << 40,
        "250 ms of the link; linux: limit times 2 MTU",
        "bytes both queues hold",
    ),
    time(
        "target",
        1,
        LONGEST,
        "",
        "delay to hold the Classic queue at",
    ),
    time(
        "max_rtt",
        1_000,
        LONGEST,
        "100ms",
        "longest round trip to be stable at; profile rfc",
    ),
    time(
        "tupdate",
        1_000,
        LONGEST,
        "target, at most max_rtt / 3; linux: 16ms",
        "time between updates of the probability",
    ),
    gain(
        "alpha",
        "0.1 tupdate / max_rtt^2; linux: 41/256",
        "gain on the error, in 1/s",
    ),
    gain(
        "beta",
        "0.3 / max_rtt; linux: 819/256",
        "gain on the trend, in 1/s",
    ),
    count(
        "coupling_factor",
        1,
        255,
        "",
        "how many times the base probability L4S is marked with",
    ),
    time(
        "step_thresh",
        0,
        LONGEST,
        "800us; linux: 1ms",
        "sojourn from which L4S is marked whatever the probability",
    ),
    time(
        "range",
        0,
        LONGEST,
        "0 if step_thresh is given, else 400us",
        "over what width that marking becomes certain; profile rfc",
    ),
    count(
        "th_len",
        0,
        100_000_000,
        "1",
        "packets of L4S below or at which that marking is off; profile rfc",
    ),
    Parameter {
        key: "classic_protection",
        unit: Unit::Percent,
        least: 0,
        most: 100,
        unset: "6.25; linux: 10",
        meaning: "per cent of the link for Classic while both queues hold packets",
    },
    time(
        "tshift",
        0,
        LONGEST,
        "off",
        "serve by age, Classic made younger by this, not in turn; profile rfc",
    ),
    flag(
        "drop_on_overload",
        "drop from L4S when marks no longer suffice, instead of overflowing",
    ),
    PROFILE,
];

pub(super) const FQ_PIE: &[Parameter] = &[
    packets("limit", 1, 100_000_000, "packets all queues hold"),
    count("flows", 1, 65_536, "", "queues that flows are hashed to"),
    TARGET,
    time(
        "tupdate",
        1_000,
        LONGEST,
        "",
        "time between updates of the probabilities",
    ),
    count(
        "alpha",
        0,
        32,
        "",
        "gain on the error, in sixteenths of 1/s",
    ),
    count("beta", 0, 32, "", "gain on the trend, in sixteenths of 1/s"),
    size(
        "quantum",
        1,
        1 << 20,
        MTU,
        "bytes a queue sends in its turn",
    ),
    size(
        "memory_limit",
        1,
        1 << 40,
        "",
        "bytes above which arrivals are counted",
    ),
    count(
        "ecn_prob",
        0,
        100,
        "",
        "highest probability in per cent at which packets are marked",
    ),
    flag(
        "ecn",
        "mark ECN-capable packets while the probability is low",
    ),
    flag("bytemode", "scale the probability by the packet's size"),
    flag("dq_rate_estimator", "delay from backlog and departure rate"),
];

const fn gain(key: &'static str, unset: &'static str, meaning: &'static str) -> Parameter {
    Parameter {
        key,
        unit: Unit::Fraction,
        least: 0,
        most: GAIN_MOST,
        unset,
        meaning,
    }
}
