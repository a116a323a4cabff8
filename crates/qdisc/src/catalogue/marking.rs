//! What may be set in the disciplines that signal at random.

use super::parameters::{ECN, LIMIT, LONGEST, flag, fraction, number, size, time};
use crate::parameters::{Parameter, Unit};

pub(super) const CHOKE: &[Parameter] = &[
    LIMIT,
    number(
        "min",
        Unit::Packets,
        (1, 100_000_000),
        "max / 3",
        "average backlog in packets above which arrivals are compared",
    ),
    number(
        "max",
        Unit::Packets,
        (1, 100_000_000),
        "limit / 4",
        "average backlog in packets above which all are signalled",
    ),
    size("avpkt", 1, 65_536, "", "size of an average packet"),
    number(
        "burst",
        Unit::Packets,
        (1, 1 << 24),
        "(2 min + max) / 3",
        "packets of a burst that shall pass",
    ),
    fraction(
        "probability",
        (0, 1),
        "highest probability of a signal between min and max",
    ),
    number(
        "bandwidth",
        Unit::Rate,
        (1, u64::MAX),
        "the link's rate, else 10mbit",
        "rate at which the average decays while idle",
    ),
    ECN,
    flag("harddrop", "drop above max even what could be marked"),
];

pub(super) const BLUE: &[Parameter] = &[
    LIMIT,
    fraction(
        "increment",
        (0, 1),
        "rise of the probability when a packet does not fit",
    ),
    fraction(
        "decrement",
        (0, 1),
        "fall of the probability when the link idles",
    ),
    time(
        "freeze",
        1,
        LONGEST,
        "",
        "least time between two changes of the probability",
    ),
    ECN,
];
