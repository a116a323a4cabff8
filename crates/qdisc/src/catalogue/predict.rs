//! What may be set in Predict.

use super::Kind;
use super::parameters::{ECN, INTERVAL, LIMIT, TARGET, count, flag, fraction, number, time};
use crate::aqm::predict::PredictParams;
use crate::parameters::{Parameter, Profile, Unit};
use crate::registry::QdiscSpec;

/// Busy time in a window is kept in 32 bits of nanoseconds, 4.3 s.
const LONGEST_RTT: u64 = 2_000_000_000;

pub(super) const PREDICT: Kind = Kind {
    name: "predict",
    summary: "Marks in time for slow start to end at a full link (reconstructed)",
    source: "Järvinen and Kojo, slides at ICCRG, IETF 97, 2016",
    reconstruction: Some(
        "only the structure was published: the constants, the tests of growth, the choice of a \
         candidate and what is marked are ours",
    ),
    profiles: &[Profile::Rfc],
    start: || QdiscSpec::Predict(PredictParams::default()),
    parameters: PARAMETERS,
};

const PARAMETERS: &[Parameter] = &[
    LIMIT,
    number(
        "bandwidth",
        Unit::Rate,
        (1, u64::MAX),
        "the link's rate, else 10mbit",
        "rate of the link",
    ),
    time("slot", 500_000, 10_000_000, "", "length of a time slot"),
    time(
        "rtt_min",
        500_000,
        LONGEST_RTT,
        "",
        "shortest candidate for the round-trip time",
    ),
    time(
        "rtt_max",
        500_000,
        LONGEST_RTT,
        "",
        "longest candidate for the round-trip time",
    ),
    count("per_octave", 1, 16, "", "candidates to each doubling"),
    count(
        "rounds",
        1,
        4,
        "",
        "round trips of growth that are looked at",
    ),
    fraction("growth_min", (1, 10), "least growth in a round trip"),
    fraction("growth_max", (1, 10), "largest growth in a round trip"),
    fraction(
        "consistency",
        (1, 10),
        "ratio of the largest growth to the smallest",
    ),
    fraction(
        "significance",
        (0, 1_000),
        "standard deviations that the growth is away from chance",
    ),
    fraction(
        "persistence",
        (0, 10),
        "round trips that a growth lasts before it counts",
    ),
    fraction(
        "hold",
        (0, 10),
        "round trips that a candidate that fitted stays active",
    ),
    fraction(
        "dominance",
        (1, 10_000),
        "ratio of the longest active candidate to the chosen one",
    ),
    fraction(
        "full",
        (0, 10),
        "predicted load of a signal; 1 is a full link without a queue",
    ),
    fraction(
        "mark",
        (0, 10),
        "stretched round trips for which departures are marked",
    ),
    flag("stretch", "add what waited to the round trips looked back"),
    flag(
        "compact",
        "a sum a slot instead of a history a candidate: the same numbers",
    ),
    ECN,
    flag("nodrop", "let pass what cannot be marked"),
    flag("fallback", "govern by CoDel while no growth is followed"),
    TARGET,
    INTERVAL,
];
