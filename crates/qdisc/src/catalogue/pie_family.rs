//! What may be set in the disciplines that descend from PIE.

use super::parameters::{LIMIT, LONGEST, PROFILE, count, flag, size, time};
use crate::parameter::{Parameter, Unit};

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
        unit: Unit::Fraction,
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
