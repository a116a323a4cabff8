//! Any bytes as a queue and what happens to it, for fuzzing.
//!
//! The first byte is the place of a discipline in the catalogue; the other choices follow, a byte
//! or two each, and what is missing at the end is zero. So no bytes are wrong.

use sojourn_net::{Duration, Ecn, Rate, Rng};

use crate::catalogue::KINDS;
use crate::link::LinkFacts;
use crate::parameters::{Parameter, Unit};
use crate::registry::QdiscSpec;

use super::{History, Op, TestPacket, check_qdisc};

/// More would only take longer.
const MOST_OPS: usize = 600;

/// Each class is a queue of its own: thousands would only take longer.
const MOST_CLASSES: u64 = 64;

/// A told wait is at most so often the shortest time that is set: each timer costs a call.
const TIMERS_A_WAIT: u64 = 1_000;

/// Four pairs of hosts; the last shares its ports with none.
const FLOWS: [u32; 8] = [0, 1, 2, 3, 1 << 24 | 3, 1 << 16 | 4, 33_751_045, u32::MAX];

const SIZES: [u64; 8] = [1, 40, 64, 66, 700, 1_514, 9_000, 65_535];

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

    /// Runs [`check_qdisc`].
    ///
    /// # Panics
    /// If the queue breaks the contract.
    pub fn check(&self) -> History {
        let build = || {
            let rng = Rng::new(self.seed).fork("queue");
            self.spec.build::<TestPacket>(&self.link, rng)
        };
        check_qdisc(build, &self.ops)
    }
}

/// Bytes; zeros after their end.
struct Reader<'a>(&'a [u8]);

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

/// A discipline with up to seven parameters; those that contradict an earlier one are left out.
fn spec(bytes: &mut Reader<'_>) -> QdiscSpec {
    let kind = &KINDS[usize::from(bytes.next()) % KINDS.len()];
    let mut text = format!("{} profile {}", kind.name, bytes.of(kind.profiles));
    let mut spec = (kind.start)();
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
            // It alters packets, as told; the suite knows of no alteration.
            Unit::Flag if parameter.key == "wash" => {}
            _ => add(&word),
        }
    }
    if let Some(leaf) = leaf {
        add(&leaf);
    }
    spec
}

/// A parameter at an end of its range, beside it or between.
fn value(parameter: &Parameter, pick: u8, part: u8) -> String {
    let Parameter {
        key, least, most, ..
    } = *parameter;
    let most = if key == "classes" { MOST_CLASSES } else { most };
    let between = least + ((most - least) >> (part % 64));
    let whole = match pick % 5 {
        0 => least,
        1 => least.saturating_add(1).min(most),
        2 => most,
        3 => most.saturating_sub(1).max(least),
        _ => between,
    };
    match parameter.unit {
        Unit::Time => format!("{key} {whole}ns"),
        Unit::Rate => {
            let shift = if pick.is_multiple_of(2) { part % 40 } else { 0 };
            format!("{key} {}bit", 1_u64 << shift)
        }
        Unit::Size => format!("{key} {whole}b"),
        Unit::Packets | Unit::Count => format!("{key} {whole}"),
        Unit::Numbers => format!("{key} {}", [whole.to_string().as_str(); 16].join(" ")),
        Unit::Fraction | Unit::Weight | Unit::Percent => match pick % 4 {
            0 => format!("{key} {least}"),
            1 => format!("{key} {most}"),
            2 => format!("{key} 1e-{part}"),
            _ => format!("{key} {}", f64::from(part) / 64.0),
        },
        Unit::Flag if pick.is_multiple_of(2) => key.into(),
        Unit::Flag => format!("no{key}"),
        Unit::Profile => String::new(),
        Unit::Choice(words) => words[usize::from(pick) % words.len()].into(),
        Unit::Leaves => format!("{key} {}", LEAVES[usize::from(pick) % LEAVES.len()]),
    }
}

fn link(bytes: &mut Reader<'_>) -> LinkFacts {
    let rates = [None, Some(Rate::mbit(10)), Some(Rate::mbit(100_000))];
    LinkFacts {
        rate: bytes.of(&rates),
        ..LinkFacts::default()
    }
}

fn ops(bytes: &mut Reader<'_>, spec: &QdiscSpec) -> Vec<Op> {
    // It orders by ECN field as others do by flow.
    let by_ecn = spec.kind() == "dualpi2";
    let most_told = most_told(spec);
    let mut ops = Vec::new();
    while !bytes.0.is_empty() && ops.len() < MOST_OPS {
        let (what, of) = (bytes.next(), bytes.next());
        let (what, times) = (what % 8, what / 8);
        let room = MOST_OPS - ops.len();
        let burst = room.min(1 + usize::from(times));
        match what {
            0..=3 => {
                let flow = usize::from(of % 8);
                let ecn = match (by_ecn, flow % 2, of >> 6) {
                    (true, 0, 0) | (false, _, 0) => Ecn::NotEct,
                    (true, 0, _) | (false, _, 1) => Ecn::Ect0,
                    (true, _, 0 | 1) | (false, _, 2) => Ecn::Ect1,
                    _ => Ecn::Ce,
                };
                let op = Op::Enqueue(FLOWS[flow], SIZES[usize::from(of / 8 % 8)], ecn);
                ops.extend(std::iter::repeat_n(op, burst));
            }
            4..=5 => ops.extend(std::iter::repeat_n(Op::Dequeue, burst)),
            told => {
                // Up to 26 days.
                let whole = 1_u64 << (of % 51);
                let time = whole + (whole >> 5) * u64::from(times);
                ops.push(if told == 6 {
                    Op::Wait(Duration::from_nanos(time.min(most_told)))
                } else {
                    Op::WaitUntold(Duration::from_nanos(time))
                });
            }
        }
    }
    ops
}

/// How long a wait may be whose timers are told, in nanoseconds.
fn most_told(spec: &QdiscSpec) -> u64 {
    let shortest = spec.pairs().into_iter().filter_map(|(key, text)| {
        let kind = KINDS.iter().find(|kind| kind.name == spec.kind())?;
        let of_time = |p: &&Parameter| p.key == key && p.unit == Unit::Time;
        kind.parameters.iter().find(of_time)?;
        Some(text.parse::<Duration>().ok()?.as_nanos().max(1))
    });
    let shortest = shortest.min().unwrap_or(1_000_000);
    shortest.saturating_mul(TIMERS_A_WAIT).min(1_000_000_000)
}
