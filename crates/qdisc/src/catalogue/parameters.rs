//! What may be set in each discipline, and to which values.

use crate::parameters::{Parameter, Profile, Unit};

pub(super) const LINUX: &[Profile] = &[Profile::Linux];
pub(super) const ALL_PROFILES: &[Profile] = &[Profile::Rfc, Profile::Linux, Profile::Linux314];

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// Sums of this and a time of the simulation stay far below 2^64 ns.
pub(super) const LONGEST: u64 = 1_000_000 * NANOS_PER_SEC;
const OFF: &str = "off";
pub(super) const MTU: &str = "the MTU";

pub(super) const LIMIT: Parameter = packets("limit", 1, 100_000_000, "packets the buffer holds");
pub(super) const TARGET: Parameter = time("target", 1, LONGEST, "", "acceptable standing delay");
pub(super) const INTERVAL: Parameter = time(
    "interval",
    1,
    LONGEST,
    "",
    "a little more than the longest common round-trip time",
);
pub(super) const CE_THRESHOLD: Parameter = time(
    "ce_threshold",
    0,
    LONGEST,
    OFF,
    "mark every packet that waited longer than this",
);
pub(super) const ECN: Parameter = flag("ecn", "mark ECN-capable packets instead of dropping them");
pub(crate) const PROFILE: Parameter = Parameter {
    key: "profile",
    unit: Unit::Profile,
    least: 0,
    most: 0,
    unset: "",
    meaning: "whose law: the RFC's or a kernel's",
};

pub(super) const RED: &[Parameter] = &[
    size("limit", 1, 1 << 32, "", "bytes the buffer holds"),
    size(
        "min",
        1,
        1 << 32,
        "max / 3",
        "average backlog where signals begin",
    ),
    size(
        "max",
        1,
        1 << 32,
        "3 min, else limit / 4",
        "average backlog where every packet is signalled",
    ),
    size("avpkt", 1, 65_536, "", "size of an average packet"),
    number(
        "burst",
        Unit::Packets,
        (1, 1 << 24),
        "(2 min + max) / (3 avpkt)",
        "packets of a burst that shall pass",
    ),
    fraction(
        "probability",
        (0, 1),
        "highest probability of a signal between min and max",
    ),
    Parameter {
        key: "bandwidth",
        unit: Unit::Rate,
        least: 1,
        most: u64::MAX,
        unset: "the link's rate, else 10mbit",
        meaning: "rate at which the average decays while idle",
    },
    ECN,
    flag("harddrop", "drop above max even what could be marked"),
    flag("nodrop", "queue what cannot be marked; needs ecn"),
    flag("adaptive", "let the probability follow the load"),
    flag("gentle", "above max let the probability rise slowly to 1"),
    number(
        "leaf",
        Unit::Leaves,
        (1, 1),
        "a FIFO of limit bytes",
        "where packets wait instead, without limit",
    ),
];

pub(super) const PIE: &[Parameter] = &[
    LIMIT,
    time(
        "target",
        1,
        LONGEST,
        "15ms; linux-3.14: 20ms",
        "the delay to hold",
    ),
    time(
        "tupdate",
        1_000,
        LONGEST,
        "15ms; linux-3.14: 30ms",
        "time between updates of the probability",
    ),
    count(
        "alpha",
        0,
        32,
        "",
        "gain on the error, in sixteenths of 1/s",
    ),
    count("beta", 0, 32, "", "gain on the trend, in sixteenths of 1/s"),
    flag(
        "ecn",
        "mark ECN-capable packets while the probability is low",
    ),
    flag("bytemode", "scale the probability by the packet's size"),
    flag("dq_rate_estimator", "delay from backlog and departure rate"),
    flag("derandomise", "space the drops evenly (RFC 8033 5.4)"),
    flag(
        "cap",
        "let the probability rise by 2 % an update (RFC 8033 5.5)",
    ),
    PROFILE,
];

pub(super) const FQ_CODEL: &[Parameter] = &[
    packets("limit", 1, 100_000_000, "packets all queues hold"),
    size("memory_limit", 1, 1 << 40, "", "bytes all queues hold"),
    count("flows", 1, 65_536, "", "queues that flows are hashed to"),
    TARGET,
    INTERVAL,
    size(
        "quantum",
        1,
        1 << 20,
        MTU,
        "bytes a queue sends in its turn",
    ),
    count(
        "drop_batch",
        1,
        65_536,
        "",
        "most packets dropped at once on overload",
    ),
    CE_THRESHOLD,
    ECN,
    PROFILE,
];

pub(super) const SFQ: &[Parameter] = &[
    packets("limit", 1, 65_536 * 127, "packets all slots hold"),
    number(
        "depth",
        Unit::Packets,
        (1, 127),
        "",
        "packets one slot holds",
    ),
    count("flows", 1, 65_408, "", "flows that may wait at once"),
    count(
        "divisor",
        1,
        65_536,
        "",
        "buckets that flows are hashed to; a power of 2",
    ),
    size("quantum", 1, 1 << 20, MTU, "bytes a slot sends in its turn"),
    time(
        "perturb",
        NANOS_PER_SEC,
        LONGEST,
        OFF,
        "time between two changes of the hash",
    ),
    flag(
        "headdrop",
        "drop the oldest packet of a slot, not the newest",
    ),
    CE_THRESHOLD,
];

pub(super) const FQ: &[Parameter] = &[
    packets("limit", 1, 100_000_000, "packets all flows hold"),
    number(
        "flow_limit",
        Unit::Packets,
        (1, 100_000_000),
        "",
        "packets one flow holds",
    ),
    FQ_QUANTUM,
    FQ_INITIAL_QUANTUM,
    FQ_REFILL_DELAY,
    FQ_ORPHAN_MASK,
    CE_THRESHOLD,
    rate("maxrate", "unlimited", "most that a flow may send"),
    rate(
        "low_rate_threshold",
        "550kbit",
        "at this maxrate or less every packet is spaced",
    ),
];

const fn rate(key: &'static str, unset: &'static str, meaning: &'static str) -> Parameter {
    Parameter {
        key,
        unit: Unit::Rate,
        least: 1,
        most: u64::MAX,
        unset,
        meaning,
    }
}

pub(super) const COCOA: &[Parameter] = &[
    packets("limit", 1, 100_000_000, "packets all flows hold"),
    number(
        "flow_limit",
        Unit::Packets,
        (1, 100_000_000),
        "",
        "packets one flow holds at first",
    ),
    FQ_QUANTUM,
    FQ_INITIAL_QUANTUM,
    FQ_REFILL_DELAY,
    FQ_ORPHAN_MASK,
    fraction(
        "guard_interval",
        (0, 1_000),
        "intervals without loss for which a limit is watched",
    ),
    fraction(
        "max_increase",
        (1, 1_000),
        "most that a limit is multiplied with",
    ),
    time(
        "max_monitoring_interval",
        1,
        LONGEST,
        "",
        "longest time for which a limit is watched",
    ),
    PROFILE,
];

const FQ_QUANTUM: Parameter = size(
    "quantum",
    1,
    1 << 20,
    "2 MTU",
    "bytes a flow sends in its turn",
);
const FQ_INITIAL_QUANTUM: Parameter = size(
    "initial_quantum",
    1,
    1 << 24,
    "10 MTU",
    "bytes a flow sends in its first turn",
);
const FQ_REFILL_DELAY: Parameter = time(
    "refill_delay",
    0,
    LONGEST,
    "",
    "a flow away for longer comes back with a quantum",
);
const FQ_ORPHAN_MASK: Parameter = count(
    "orphan_mask",
    0,
    65_535,
    "",
    "bits of the hash that tell flows apart",
);

pub(super) const SFB: &[Parameter] = &[
    LIMIT,
    time(
        "rehash",
        1,
        LONGEST,
        "",
        "time between two changes of the hash",
    ),
    time(
        "db",
        0,
        LONGEST,
        "",
        "time before a change that penalised flows enter the next hash",
    ),
    number(
        "target",
        Unit::Packets,
        (1, 100_000_000),
        "4/5 max",
        "packets of a bin at which its probability rises",
    ),
    number(
        "max",
        Unit::Packets,
        (1, 100_000_000),
        "",
        "packets one flow holds",
    ),
    fraction(
        "increment",
        (0, 1),
        "rise of the probability of a full bin at an arrival",
    ),
    fraction(
        "decrement",
        (0, 1),
        "fall of the probability of an empty bin at an arrival",
    ),
    count(
        "penalty_rate",
        0,
        1_000_000,
        "",
        "packets a second of flows that do not answer",
    ),
    count(
        "penalty_burst",
        0,
        1_000_000,
        "",
        "packets at once of flows that do not answer",
    ),
    number(
        "leaf",
        Unit::Leaves,
        (1, 1),
        "a FIFO",
        "where packets wait instead, still at most limit",
    ),
];

pub(super) const COBALT: &[Parameter] = &[
    LIMIT,
    TARGET,
    INTERVAL,
    fraction(
        "increment",
        (0, 1),
        "rise of BLUE's probability when the buffer is full",
    ),
    fraction(
        "decrement",
        (0, 1),
        "fall of BLUE's probability when the buffer is empty",
    ),
    ECN,
];

pub(super) const AFCD: &[Parameter] = &[
    LIMIT,
    TARGET,
    fraction("target_scale", (0, 1_000), "what target is multiplied with"),
    count(
        "exponent",
        1,
        8,
        "",
        "power of fair share over share that a flow's target follows",
    ),
    INTERVAL,
    time(
        "persist",
        0,
        LONGEST,
        "interval",
        "time a flow stays above its target before it is signalled",
    ),
    flag("protect", "never signal a flow below its fair share"),
    SHADOW,
    TABLE,
    SAMPLE,
    flag("average", "steer the fair share by the backlog"),
    ALPHA,
    BETA,
    QTARGET,
    ECN,
];

pub(super) const AFD: &[Parameter] = &[
    LIMIT,
    SHADOW,
    TABLE,
    SAMPLE,
    flag("random", "draw what is sampled and what it replaces"),
    flag("accumulate", "let the fair share move on from what it was"),
    time(
        "tupdate",
        1_000,
        LONGEST,
        "",
        "time between two moves of the fair share",
    ),
    ALPHA,
    BETA,
    QTARGET,
    fraction(
        "tolerance",
        (0, 1_000),
        "fair shares a flow may have before it is dropped",
    ),
    fraction(
        "gain",
        (0, 1),
        "what the probability of a drop is multiplied with",
    ),
    ECN,
];

const SHADOW: Parameter = count("shadow", 1, 1 << 20, "", "arrivals that are remembered");
const TABLE: Parameter = count("table", 1, 1 << 20, "", "bins that flows are hashed to");
const SAMPLE: Parameter = count(
    "sample",
    1,
    1_000_000_000,
    "such that shadow is 1.2 s of the link; without a rate 500",
    "one arrival in so many is remembered",
);
const ALPHA: Parameter = fraction("alpha", (0, 1_000), "gain on the backlog a period ago");
const BETA: Parameter = fraction("beta", (0, 1_000), "gain on the backlog");
const QTARGET: Parameter = count(
    "qtarget",
    0,
    100_000_000,
    "limit / 5",
    "packets that the fair share is steered to",
);

pub(super) const fn number(
    key: &'static str,
    unit: Unit,
    (least, most): (u64, u64),
    unset: &'static str,
    meaning: &'static str,
) -> Parameter {
    Parameter {
        key,
        unit,
        least,
        most,
        unset,
        meaning,
    }
}

pub(super) const fn time(
    key: &'static str,
    least: u64,
    most: u64,
    unset: &'static str,
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Time, (least, most), unset, meaning)
}

pub(super) const fn size(
    key: &'static str,
    least: u64,
    most: u64,
    unset: &'static str,
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Size, (least, most), unset, meaning)
}

pub(super) const fn count(
    key: &'static str,
    least: u64,
    most: u64,
    unset: &'static str,
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Count, (least, most), unset, meaning)
}

pub(super) const fn fraction(
    key: &'static str,
    range: (u64, u64),
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Fraction, range, "", meaning)
}

pub(super) const fn packets(
    key: &'static str,
    least: u64,
    most: u64,
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Packets, (least, most), "", meaning)
}

pub(super) const fn flag(key: &'static str, meaning: &'static str) -> Parameter {
    number(key, Unit::Flag, (0, 1), "", meaning)
}
