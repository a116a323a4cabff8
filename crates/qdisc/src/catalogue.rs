//! What disciplines there are, and what may be set in each: the one place that says so.

use crate::codel::CodelParams;
use crate::droptail::DropTailParams;
use crate::fq::FqParams;
use crate::fq_codel::FqCodelParams;
use crate::parameter::{Parameter, Profile, Unit};
use crate::pie::PieParams;
use crate::red::RedParams;
use crate::sfq::SfqParams;
use crate::spec::QdiscSpec;

/// A discipline, as a person choosing one wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdiscInfo {
    /// The name in a specification.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Whose law it can follow; the first is the default.
    pub profiles: &'static [Profile],
    /// What may be set.
    pub parameters: Vec<ParameterInfo>,
}

/// A parameter of a discipline, as a person setting it wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The name in a specification.
    pub key: &'static str,
    /// What kind of value it takes.
    pub unit: Unit,
    /// The value if none is given, as text.
    pub default: String,
    /// The values allowed, as text.
    pub range: String,
    /// What it means.
    pub meaning: &'static str,
}

/// Every discipline, aliases included, in the order in which to read about them.
pub fn catalogue() -> Vec<QdiscInfo> {
    KINDS.iter().map(Kind::info).collect()
}

/// A name under which a discipline is asked for.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    summary: &'static str,
    source: &'static str,
    pub(crate) profiles: &'static [Profile],
    /// The discipline at its defaults under this name.
    pub(crate) start: fn() -> QdiscSpec,
    pub(crate) parameters: &'static [Parameter],
}

impl Kind {
    fn info(&self) -> QdiscInfo {
        let mut start = (self.start)();
        let parameters = self.parameters.iter().map(|parameter| {
            let default = start.field(parameter.key).and_then(|field| field.text());
            ParameterInfo {
                key: parameter.key,
                unit: parameter.unit,
                default: default.unwrap_or_else(|| parameter.unset.into()),
                range: parameter.range(self.profiles),
                meaning: parameter.meaning,
            }
        });
        QdiscInfo {
            name: self.name,
            summary: self.summary,
            source: self.source,
            profiles: self.profiles,
            parameters: parameters.collect(),
        }
    }
}

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "pfifo",
        summary: "A FIFO that holds so many packets and drops what does not fit",
        source: "Linux 6.1 sch_fifo",
        profiles: LINUX,
        start: || QdiscSpec::Fifo(DropTailParams::PFIFO),
        parameters: &[LIMIT],
    },
    Kind {
        name: "bfifo",
        summary: "A FIFO that holds so many bytes and drops what does not fit",
        source: "Linux 6.1 sch_fifo",
        profiles: LINUX,
        start: || QdiscSpec::Fifo(DropTailParams::BFIFO),
        parameters: &[
            size("limit", 1, 1 << 32, "", "bytes the buffer holds"),
            flag("headdrop", "make room by dropping the oldest packet"),
        ],
    },
    Kind {
        name: "pfifo_head_drop",
        summary: "A FIFO that makes room by dropping its oldest packet",
        source: "Linux 6.1 sch_fifo",
        profiles: LINUX,
        start: || QdiscSpec::Fifo(DropTailParams::PFIFO_HEAD_DROP),
        parameters: &[LIMIT],
    },
    Kind {
        name: "red",
        summary: "Signals at random as the average backlog grows",
        source: "Linux 6.1 sch_red, iproute2; Floyd and Jacobson 1993",
        profiles: LINUX,
        start: || QdiscSpec::Red(RedParams::default()),
        parameters: RED,
    },
    Kind {
        name: "ared",
        summary: "red adaptive: the probability follows the load",
        source: "Linux 6.1 sch_red, iproute2; Floyd, Gummadi and Shenker 2001",
        profiles: LINUX,
        start: || QdiscSpec::Red(RedParams::adaptive()),
        parameters: RED,
    },
    Kind {
        name: "codel",
        summary: "Signals when the delay has stood above a target for an interval",
        source: "RFC 8289; Linux 6.1 sch_codel",
        profiles: &[Profile::Rfc, Profile::Linux],
        start: || QdiscSpec::Codel(CodelParams::default()),
        parameters: &[LIMIT, TARGET, INTERVAL, CE_THRESHOLD, ECN, PROFILE],
    },
    Kind {
        name: "pie",
        summary: "Signals with a probability that holds the delay at a target",
        source: "RFC 8033; Linux 6.1 and 3.14 sch_pie",
        profiles: ALL_PROFILES,
        start: || QdiscSpec::Pie(PieParams::default()),
        parameters: PIE,
    },
    Kind {
        name: "fq_codel",
        summary: "A queue per flow, sparse flows first, CoDel in each",
        source: "RFC 8290; Linux 6.1 and 3.14 sch_fq_codel",
        profiles: ALL_PROFILES,
        start: || QdiscSpec::FqCodel(FqCodelParams::default()),
        parameters: FQ_CODEL,
    },
    Kind {
        name: "fq_nocodel",
        summary: "fq_codel whose CoDel never signals: fair queueing alone",
        source: "Linux 6.1 sch_fq_codel with target 100s",
        profiles: ALL_PROFILES,
        start: || QdiscSpec::FqCodel(FqCodelParams::without_codel()),
        parameters: FQ_CODEL,
    },
    Kind {
        name: "sfq",
        summary: "Flows hashed to slots that take turns",
        source: "Linux 6.1 sch_sfq; McKenney 1990",
        profiles: LINUX,
        start: || QdiscSpec::Sfq(SfqParams::default()),
        parameters: SFQ,
    },
    Kind {
        name: "fq",
        summary: "A queue per flow with a limit of its own, flows that come back first",
        source: "Linux 6.1 sch_fq",
        profiles: LINUX,
        start: || QdiscSpec::Fq(FqParams::default()),
        parameters: FQ,
    },
];

const LINUX: &[Profile] = &[Profile::Linux];
const ALL_PROFILES: &[Profile] = &[Profile::Rfc, Profile::Linux, Profile::Linux314];

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// Sums of this and a time of the simulation stay far below 2^64 ns.
const LONGEST: u64 = 1_000_000 * NANOS_PER_SEC;
const OFF: &str = "off";
const MTU: &str = "the MTU";

const LIMIT: Parameter = packets("limit", 1, 100_000_000, "packets the buffer holds");
const TARGET: Parameter = time("target", 1, LONGEST, "", "acceptable standing delay");
const INTERVAL: Parameter = time(
    "interval",
    1,
    LONGEST,
    "",
    "a little more than the longest common round-trip time",
);
const CE_THRESHOLD: Parameter = time(
    "ce_threshold",
    0,
    LONGEST,
    OFF,
    "mark every packet that waited longer than this",
);
const ECN: Parameter = flag("ecn", "mark ECN-capable packets instead of dropping them");
pub(crate) const PROFILE: Parameter = Parameter {
    key: "profile",
    unit: Unit::Profile,
    least: 0,
    most: 0,
    unset: "",
    meaning: "whose law: the RFC's or a kernel's",
};

const RED: &[Parameter] = &[
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
    count(
        "burst",
        1,
        1 << 24,
        "(2 min + max) / (3 avpkt)",
        "packets of a burst that shall pass",
    ),
    Parameter {
        key: "probability",
        unit: Unit::Fraction,
        least: 0,
        most: 1,
        unset: "",
        meaning: "highest probability of a signal between min and max",
    },
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
];

const PIE: &[Parameter] = &[
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

const FQ_CODEL: &[Parameter] = &[
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

const SFQ: &[Parameter] = &[
    packets("limit", 1, 65_536 * 127, "packets all slots hold"),
    count("depth", 1, 127, "", "packets one slot holds"),
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
];

const FQ: &[Parameter] = &[
    packets("limit", 1, 100_000_000, "packets all flows hold"),
    count("flow_limit", 1, 100_000_000, "", "packets one flow holds"),
    FQ_QUANTUM,
    FQ_INITIAL_QUANTUM,
    FQ_REFILL_DELAY,
    FQ_ORPHAN_MASK,
    CE_THRESHOLD,
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

const fn number(
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

const fn time(
    key: &'static str,
    least: u64,
    most: u64,
    unset: &'static str,
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Time, (least, most), unset, meaning)
}

const fn size(
    key: &'static str,
    least: u64,
    most: u64,
    unset: &'static str,
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Size, (least, most), unset, meaning)
}

const fn count(
    key: &'static str,
    least: u64,
    most: u64,
    unset: &'static str,
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Count, (least, most), unset, meaning)
}

const fn packets(key: &'static str, least: u64, most: u64, meaning: &'static str) -> Parameter {
    number(key, Unit::Packets, (least, most), "", meaning)
}

const fn flag(key: &'static str, meaning: &'static str) -> Parameter {
    number(key, Unit::Flag, (0, 1), "", meaning)
}
