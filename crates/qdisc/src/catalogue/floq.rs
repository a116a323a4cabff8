//! What may be set in FLOQ.

use super::Kind;
use super::parameters::{LIMIT, LONGEST, count, flag, fraction, number, time};
use crate::parameters::{Parameter, Profile, Unit};
use crate::registry::QdiscSpec;

/// FLOQ under one of its names.
pub(super) const fn kind(
    name: &'static str,
    summary: &'static str,
    start: fn() -> QdiscSpec,
) -> Kind {
    Kind {
        name,
        summary,
        source: "reconstruction of Yanev's FLOQ from slides and abstract",
        reconstruction: Some(
            "only the idea of FLOQ was published; classifier, threshold, formula and every \
             constant are ours",
        ),
        profiles: &[Profile::Rfc],
        start,
        parameters: FLOQ,
    }
}

const FLOQ: &[Parameter] = &[
    LIMIT,
    fraction(
        "threshold",
        (0, 1),
        "part of the limit above which arrivals are signalled",
    ),
    count(
        "gamma",
        1,
        8,
        "",
        "power of the ramp from threshold to limit",
    ),
    fraction(
        "probability",
        (0, 1),
        "probability of a signal when the buffer is full, before weight and share",
    ),
    weight("setup_weight", "weight of packets of a set-up"),
    weight("responsive_weight", "weight of other responsive traffic"),
    weight("unresponsive_weight", "weight of unresponsive traffic"),
    count(
        "exponent",
        0,
        8,
        "",
        "power of the class's share of the traffic",
    ),
    fraction(
        "gain",
        (0, 1),
        "weight of 1514 bytes in the average of the shares",
    ),
    count(
        "setup_packets",
        0,
        1_000_000,
        "",
        "packets with data that belong to a set-up",
    ),
    time(
        "setup_time",
        0,
        LONGEST,
        "",
        "longest set-up, from the last SYN",
    ),
    count(
        "connections",
        1,
        1 << 20,
        "",
        "connections that are remembered, rounded up to fours",
    ),
    time(
        "expiry",
        0,
        LONGEST,
        "",
        "idle time after which a connection is forgotten",
    ),
    time(
        "resume",
        0,
        LONGEST,
        "off",
        "idle time after which a connection has a set-up again",
    ),
    flag("quic", "count QUIC as responsive, with a set-up"),
    flag(
        "pushout",
        "a set-up packet takes the place of the youngest other when the buffer is full",
    ),
    flag("ecn", "mark ECN-capable packets of responsive traffic"),
];

const fn weight(key: &'static str, meaning: &'static str) -> Parameter {
    number(key, Unit::Weight, (0, 10), "", meaning)
}
