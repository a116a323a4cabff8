//! Decodes any bytes as a queue and operations on it, for fuzzing.
//!
//! The first two bytes select a discipline by a hash of its name, so that a new discipline leaves the
//! meaning of recorded bytes alone; the other choices follow, a byte or two each, and missing bytes at the
//! end are zero. Every sequence of bytes is a case.

use sojourn_net::{Duration, Ecn, Rate, Rng};

use crate::parameters::{Entry, LinkFacts, Parameter, Unit};
use crate::registry::QdiscSpec;

use super::{History, Op, TestPacket, check_qdisc, check_reordering_qdisc};

/// More would only take longer.
const MAX_OPS: usize = 600;

/// Each class is a queue of its own: thousands would only take longer.
const MAX_CLASSES: u64 = 64;

/// Limits a wait in multiples of the shortest time that is set: each timer costs a call.
const TIMERS_PER_WAIT: u64 = 1_000;

/// Four pairs of hosts; the last shares its ports with none.
pub(super) const FLOWS: [u32; 8] = [0, 1, 2, 3, 1 << 24 | 3, 1 << 16 | 4, 33_751_045, u32::MAX];

pub(super) const SIZES: [u64; 8] = [1, 40, 64, 66, 700, 1_514, 9_000, 65_535];

const LEAVES: [&str; 8] = [
    "pfifo limit 1",
    "codel limit 20 ecn",
    "sfq limit 20 depth 5",
    "fq_codel limit 20 flows 4",
    "pie limit 9 / bfifo limit 20000b",
    "(prio leaf cobalt / pfifo limit 9 / sfb limit 20)",
    "cake bandwidth 5mbit",
    "red adaptive limit 60000",
];

/// Trees with the leaves a, b and c.
const CLASSES: [&str; 4] = [
    "(name r rate 10mbit burst 1b cburst 1b) (name a parent r rate 1mbit ceil 10mbit) \
     (name b parent r rate 2mbit ceil 5mbit prio 1 leaf codel limit 20 ecn) \
     (name c parent r rate 8kbit ceil 10mbit leaf pfifo limit 2)",
    "(name a rate 1mbit) (name b rate 1gbit quantum 1b) (name c rate 64kbit leaf cake bandwidth 5mbit)",
    "(name r rate 5mbit ceil 4mbit) (name m parent r rate 1mbit ceil 3mbit) \
     (name a parent m rate 1mbit ceil 9mbit leaf fq_codel limit 20 flows 4) \
     (name b parent m rate 500kbit ceil 2mbit prio 7) (name c parent r rate 3mbit overhead 40 linklayer atm)",
    "(name a rate 1kbit ceil 10mbit burst 100kb) (name b rate 10mbit ceil 1kbit) (name c rate 1mbit mpu 2000)",
];

const FILTERS: [&str; 4] = [
    "(to a source_port 0-9) (to b dscp EF)",
    "(to b protocol tcp destination_port 1-60000)",
    "(to a source 0.0.0.1) (to c destination 0.0.0.0/1)",
    "(to c source_port 1)",
];

/// A queue, and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The discipline.
    pub spec: QdiscSpec,
    /// The link that it serves.
    pub link: LinkFacts,
    /// The seed of its generator.
    pub seed: u64,
    /// What happens.
    pub ops: Vec<Op>,
}

impl Case {
    /// The case that `bytes` mean.
    pub fn decode(bytes: &[u8]) -> Self {
        let mut bytes = Reader(bytes);
        let spec = spec(&mut bytes);
        let link = link(&mut bytes);
        let seed = u64::from(bytes.next());
        let ops = ops(&mut bytes, &spec);
        Self {
            spec,
            link,
            seed,
            ops,
        }
    }

    /// Runs [`check_qdisc`]; for `mac80211`, [`check_reordering_qdisc`].
    ///
    /// # Panics
    /// If the queue breaks the contract.
    pub fn check(&self) -> History {
        let build = || {
            let rng = Rng::new(self.seed).fork("queue");
            self.spec.build::<TestPacket>(&self.link, rng)
        };
        if self.spec.kind() == "mac80211" {
            check_reordering_qdisc(build, &self.ops)
        } else {
            check_qdisc(build, &self.ops)
        }
    }
}

/// Bytes; zeros after their end.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    fn next(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.next()) % all.len()]
    }
}

/// A discipline with parameters; those that contradict an earlier one are left out.
fn spec(bytes: &mut Reader<'_>) -> QdiscSpec {
    let (kind, spec) = discipline([bytes.next(), bytes.next()]);
    with_parameters(&kind, spec, bytes)
}

/// `spec`, the discipline of `kind` at its defaults, with up to seven parameters.
pub(super) fn with_parameters(
    kind: &Entry,
    mut spec: QdiscSpec,
    bytes: &mut Reader<'_>,
) -> QdiscSpec {
    let mut text = format!("{} profile {}", kind.name, bytes.of(kind.profiles));
    let mut add = |words: &str| {
        let longer = format!("{text} {words}");
        if let Ok(read) = QdiscSpec::parse(&longer) {
            (text, spec) = (longer, read);
        }
    };
    add(bytes.of(&["", "ecn", "noecn"]));
    let mut leaf = None;
    for _ in 0..bytes.next() % 8 {
        let (which, pick, part) = (bytes.next(), bytes.next(), bytes.next());
        if kind.parameters.is_empty() {
            continue;
        }
        let parameter = &kind.parameters[usize::from(which) % kind.parameters.len()];
        let word = value(parameter, pick, part);
        match parameter.unit {
            // All that follows would be theirs.
            Unit::Leaves => leaf = Some(word),
            // It alters packets on purpose, which the suite does not expect.
            Unit::Flag if parameter.key == "wash" => {}
            _ => add(&word),
        }
    }
    if let Some(leaf) = leaf {
        add(&leaf);
    }
    spec
}

/// The discipline whose name hashes to `selector`, else the one with the next higher hash.
fn discipline(selector: [u8; 2]) -> (Entry, QdiscSpec) {
    let selector = u16::from_be_bytes(selector);
    let distance = |entry: &Entry| {
        let hash = u16::from_be_bytes(selector_of(entry.name));
        (hash.wrapping_sub(selector), entry.name)
    };
    let nearest = QdiscSpec::entries().into_iter().min_by_key(distance);
    let found = nearest.and_then(|entry| QdiscSpec::at_defaults(entry.name));
    found.expect("there are disciplines")
}

/// The first two bytes of a case of the discipline called `name`: the FNV-1a hash of the name, folded.
pub fn selector_of(name: &str) -> [u8; 2] {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let [a, b, c, d] = hash.to_be_bytes();
    [a ^ c, b ^ d]
}

/// A parameter at an end of its range, beside it or between.
fn value(parameter: &Parameter, pick: u8, part: u8) -> String {
    let Parameter { key, min, max, .. } = *parameter;
    let max = if key == "classes" { MAX_CLASSES } else { max };
    let between = min + ((max - min) >> (part % 64));
    let whole = match pick % 5 {
        0 => min,
        1 => min.saturating_add(1).min(max),
        2 => max,
        3 => max.saturating_sub(1).max(min),
        _ => between,
    };
    match parameter.unit {
        // It sends packets of a flow through either queue, and the rest of its parameters require it.
        _ if key == "queue_protection" || key.starts_with("qp_") => String::new(),
        Unit::Time => format!("{key} {whole}ns"),
        Unit::Rate => {
            let shift = if pick.is_multiple_of(2) { part % 40 } else { 0 };
            format!("{key} {}bit", 1_u64 << shift)
        }
        Unit::Size | Unit::SignedSize(_) => format!("{key} {}", parameter.unit.text(whole)),
        Unit::Packets | Unit::Count(_) => format!("{key} {whole}"),
        Unit::Numbers => {
            let count = if key == "weights" { 3 } else { 16 };
            format!("{key} {}", vec![whole.to_string(); count].join(" "))
        }
        Unit::Fraction | Unit::Weight | Unit::Percent => match pick % 4 {
            0 => format!("{key} {min}"),
            1 => format!("{key} {max}"),
            2 => format!("{key} 1e-{part}"),
            _ => format!("{key} {}", f64::from(part) / 64.0),
        },
        Unit::Masked => format!(
            "{key} {}",
            parameter.unit.text(u64::from(part) * 257 % 65_536)
        ),
        Unit::Flag if pick.is_multiple_of(2) => key.into(),
        Unit::Flag => format!("no{key}"),
        // The profile is chosen before, and no queue has values of the other units.
        Unit::Profile
        | Unit::Millis
        | Unit::Micros
        | Unit::CountOrOff(_)
        | Unit::Ratio(_)
        | Unit::Ratios(_)
        | Unit::Decimal(_) => String::new(),
        Unit::Choice(words) => words[usize::from(pick) % words.len()].into(),
        Unit::Leaves => format!("{key} {}", LEAVES[usize::from(pick) % LEAVES.len()]),
        Unit::Word(_) => format!("{key} {}", ["a", "b", "c"][usize::from(pick) % 3]),
        Unit::Entries(_) => {
            let lists = if key == "filters" { FILTERS } else { CLASSES };
            format!("{key} {}", lists[usize::from(pick) % lists.len()])
        }
    }
}

pub(super) fn link(bytes: &mut Reader<'_>) -> LinkFacts {
    let rates = [None, Some(Rate::mbit(10)), Some(Rate::mbit(100_000))];
    LinkFacts {
        rate: bytes.of(&rates),
        ..LinkFacts::default()
    }
}

fn ops(bytes: &mut Reader<'_>, spec: &QdiscSpec) -> Vec<Op> {
    let services = Services::of(spec);
    let max_wait = max_wait(spec);
    let mut ops = Vec::new();
    while !bytes.0.is_empty() && ops.len() < MAX_OPS {
        let (what, of) = (bytes.next(), bytes.next());
        let (what, times) = (what % 8, what / 8);
        let room = MAX_OPS - ops.len();
        let burst = room.min(1 + usize::from(times));
        match what {
            0..=3 => {
                let flow = usize::from(of % 8);
                let ecn = ecn_of(services, flow % 2 == 1, of >> 6);
                let op = Op::Enqueue(FLOWS[flow], SIZES[usize::from(of / 8 % 8)], ecn);
                ops.extend(std::iter::repeat_n(op, burst));
            }
            4..=5 => ops.extend(std::iter::repeat_n(Op::Dequeue, burst)),
            kind => {
                // Up to 26 days.
                let whole = 1_u64 << (of % 51);
                let time = whole + (whole >> 5) * u64::from(times);
                ops.push(if kind == 6 {
                    Op::Wait(Duration::from_nanos(time.min(max_wait)))
                } else {
                    Op::WaitLate(Duration::from_nanos(time))
                });
            }
        }
    }
    ops
}

/// Whether a discipline orders by ECN field as others do by flow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Services {
    /// It orders by flow.
    ByFlow,
    /// ECT(1) and CE are a service of their own.
    L4s,
    /// Everything but Not-ECT is.
    AnyEct,
}

impl Services {
    pub(super) fn of(spec: &QdiscSpec) -> Self {
        match spec.kind() {
            "dualpi2" if spec.to_string().contains(" any_ect") => Self::AnyEct,
            "dualpi2" => Self::L4s,
            _ => Self::ByFlow,
        }
    }
}

/// The ECN field for a `choice` of four; where services differ by it, the flows that are `scalable`
/// are of one of them and the others of the other.
pub(super) const fn ecn_of(services: Services, scalable: bool, choice: u8) -> Ecn {
    use Services::{AnyEct, ByFlow, L4s};
    match (services, scalable, choice) {
        (AnyEct, false, _) | (L4s, false, 0) | (ByFlow, _, 0) => Ecn::NotEct,
        (L4s, false, _) | (ByFlow, _, 1) => Ecn::Ect0,
        (L4s | AnyEct, true, 0 | 1) | (ByFlow, _, 2) => Ecn::Ect1,
        _ => Ecn::Ce,
    }
}

/// Longest wait with timers, in nanoseconds.
pub(super) fn max_wait(spec: &QdiscSpec) -> u64 {
    let shortest = spec.pairs().into_iter().filter_map(|(key, text)| {
        let (kind, _) = spec.entry()?;
        let of_time = |p: &&Parameter| p.key == key && p.unit == Unit::Time;
        kind.parameters.iter().find(of_time)?;
        Some(text.parse::<Duration>().ok()?.as_nanos().max(1))
    });
    let shortest = shortest.min().unwrap_or(1_000_000);
    shortest.saturating_mul(TIMERS_PER_WAIT).min(1_000_000_000)
}
