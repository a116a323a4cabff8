//! What may be set in the disciplines that come from ns-2.

use super::parameters::{
    ECN, INTERVAL, LONGEST, TARGET, count, flag, fraction, packets, size, time,
};
use crate::parameters::{Parameter, Unit};

pub(super) const SFQ_CODEL: &[Parameter] = &[
    packets("limit", 1, 100_000_000, "packets all bins hold"),
    count("flows", 1, 65_536, "", "bins that flows are hashed to"),
    TARGET,
    INTERVAL,
    size(
        "quantum",
        1,
        1 << 20,
        "one packet",
        "bytes a bin sends in its turn",
    ),
    ECN,
];

pub(super) const RED_NS2: &[Parameter] = &[
    count(
        "limit",
        1,
        100_000_000,
        "",
        "average packets the buffer holds",
    ),
    threshold(
        "min",
        "5, or half of targetdelay if that is more",
        "average queue in packets where signals begin",
    ),
    threshold(
        "max",
        "3 min",
        "average queue in packets where the probability is at its highest",
    ),
    Parameter {
        key: "q_weight",
        unit: Unit::Fraction,
        least: 0,
        most: 1,
        unset: "from ten round trips of 100 ms",
        meaning: "weight of a sample in the average",
    },
    fraction("probability", (0, 1), "probability of a signal at max"),
    size("mean_pktsize", 1, 65_536, "", "size of an average packet"),
    BANDWIDTH,
    time(
        "targetdelay",
        1,
        LONGEST,
        "",
        "delay that min and max aim at if they are not given",
    ),
    flag(
        "bytes",
        "measure the queue in bytes, drop large packets more often",
    ),
    flag(
        "wait",
        "after a signal wait until the next is due on average",
    ),
    flag("gentle", "above max let the probability rise slowly to 1"),
    flag("nonlinear", "let the probability rise as a square"),
    flag("adaptive", "let the probability follow the load"),
    ECN,
];

pub(super) const HRED: &[Parameter] = &[
    time("rtt", 1_000, LONGEST, "", "round trip it is tuned for"),
    BANDWIDTH,
    count(
        "limit",
        1,
        100_000_000,
        "twice max",
        "packets the buffer holds",
    ),
    fraction("q_weight", (0, 1), "weight of a sample in the average"),
    fraction(
        "min",
        (0, 1_000),
        "average queue where signals begin, in rtt of the link",
    ),
    fraction(
        "max",
        (0, 1_000),
        "average queue where the probability is at its highest, in rtt of the link",
    ),
    fraction("probability", (0, 1), "probability of a signal at max"),
    ECN,
];

const BANDWIDTH: Parameter = Parameter {
    key: "bandwidth",
    unit: Unit::Rate,
    least: 1,
    most: u64::MAX,
    unset: "the link's rate, else 10mbit",
    meaning: "rate of the link",
};

const fn threshold(key: &'static str, unset: &'static str, meaning: &'static str) -> Parameter {
    Parameter {
        key,
        unit: Unit::Fraction,
        least: 0,
        most: 100_000_000,
        unset,
        meaning,
    }
}
