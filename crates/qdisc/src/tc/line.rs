//! Lines for `tc`: a specification in its spelling and units.
//!
//! # Source
//!
//! iproute2 6.1 `tc/q_*.c` and Linux 6.1 `net/sched/sch_*.c`; for `dualpi2`, which they do not have, iproute2 6.19.

use sojourn_net::{Bytes, Duration, Rate};

use crate::parameters::{Parameter, ParameterError, Unit};
use crate::registry::QdiscSpec;

/// How `tc` writes a kind where it differs from the text of a specification.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    kind: &'static str,
    /// Parameters that it does not have.
    lacks: &'static [&'static str],
    /// The words that switch a flag off, if not `no` and its name; "" if nothing does.
    off: &'static [(&'static str, &'static str)],
    /// The words for no value.
    unset: &'static [(&'static str, &'static str)],
    /// Numbers of which it ignores 0 and keeps its default.
    pub(super) ignores_zero: &'static [&'static str],
    /// The bounds to which the kernel raises or lowers a number.
    pub(super) clamps: &'static [(&'static str, u64, u64)],
}

impl Dialect {
    const fn of(kind: &'static str, lacks: &'static [&'static str]) -> Self {
        Self {
            kind,
            lacks,
            off: &[],
            unset: &[],
            ignores_zero: &[],
            clamps: &[],
        }
    }

    /// That of a kind, if `tc` has it.
    pub(super) fn named(kind: &str) -> Option<&'static Self> {
        DIALECTS.iter().find(|dialect| dialect.kind == kind)
    }

    const fn off(self, off: &'static [(&'static str, &'static str)]) -> Self {
        Self { off, ..self }
    }

    const fn unset(self, unset: &'static [(&'static str, &'static str)]) -> Self {
        Self { unset, ..self }
    }

    const fn ignores_zero(self, ignores_zero: &'static [&'static str]) -> Self {
        Self {
            ignores_zero,
            ..self
        }
    }

    const fn clamps(self, clamps: &'static [(&'static str, u64, u64)]) -> Self {
        Self { clamps, ..self }
    }
}

const CAKE: Dialect = Dialect::of("cake", &[])
    .off(&[("ingress", "egress")])
    .unset(&[("bandwidth", "unlimited"), ("overhead", "raw")])
    .ignores_zero(&["rtt", "memlimit"]);

/// The kinds of `tc`.
const DIALECTS: &[Dialect] = &[
    Dialect::of("pfifo", &["ce_threshold"]),
    Dialect::of("bfifo", &["headdrop", "ce_threshold"]),
    Dialect::of("pfifo_head_drop", &["ce_threshold"]),
    Dialect::of("pfifo_fast", &["limit"]),
    Dialect::of("red", &["gentle", "leaf"])
        .off(&[
            ("ecn", ""),
            ("harddrop", ""),
            ("nodrop", ""),
            ("adaptive", ""),
        ])
        .ignores_zero(&["min", "max", "burst"]),
    Dialect::of("choke", &["harddrop"])
        .off(&[("ecn", "")])
        .ignores_zero(&["min", "max", "burst"]),
    Dialect::of("codel", &[]).ignores_zero(&["limit", "target", "interval"]),
    Dialect::of("pie", &["derandomise", "cap"])
        .off(&[("dq_rate_estimator", "no_dq_rate_estimator")])
        .ignores_zero(&["limit", "target", "tupdate", "alpha", "beta"]),
    Dialect::of(
        "dualpi2",
        &[
            "range",
            "th_len",
            "tshift",
            "nqb",
            "queue_protection",
            "qp_latency_threshold",
            "qp_queuing_score_threshold",
            "qp_drain_rate_exponent",
        ],
    )
    .off(&[("drop_on_overload", "overflow")])
    .ignores_zero(&[
        "limit",
        "memlimit",
        "target",
        "tupdate",
        "step_thresh",
        "max_rtt",
        "typical_rtt",
    ])
    .clamps(&[
        ("tupdate", 0, u32::MAX as u64),
        ("step_thresh", 0, u32::MAX as u64),
    ]),
    Dialect::of("fq_codel", &[])
        .ignores_zero(&[
            "limit",
            "flows",
            "target",
            "interval",
            "quantum",
            "drop_batch",
        ])
        .clamps(&[("quantum", 256, u64::MAX), ("memory_limit", 0, 1 << 31)]),
    Dialect::of("fq_pie", &[])
        .off(&[("dq_rate_estimator", "no_dq_rate_estimator")])
        .ignores_zero(&[
            "limit",
            "flows",
            "target",
            "tupdate",
            "alpha",
            "beta",
            "quantum",
            "memory_limit",
            "ecn_prob",
        ]),
    Dialect::of("sfq", &["ce_threshold"])
        .off(&[("headdrop", "")])
        .ignores_zero(&["limit", "depth", "flows", "divisor", "quantum", "perturb"])
        .clamps(&[("depth", 0, 127), ("flows", 0, 65_408)]),
    Dialect::of("fq", &["bands", "priomap", "weights"]),
    Dialect::of("prio", &["leaf"]),
    Dialect::of("sfb", &["leaf"]).ignores_zero(&["limit", "target", "max"]),
    CAKE,
    Dialect {
        kind: "cake_mq",
        // The transmit queues are a property of the device, and the kernel has no parameter for the time.
        lacks: &["queues", "sync_time"],
        ..CAKE
    },
];

/// The longest time that `tc` passes on: microseconds in 32 bits.
const LONGEST: Duration = Duration::from_micros(u32::MAX as u64);

impl QdiscSpec {
    /// What follows `tc qdisc replace dev … root` for this queue, every parameter stated, on a link of this rate.
    ///
    /// The profile is not part of it: `tc` configures the queue of the kernel.
    ///
    /// # Errors
    /// If `tc` has no such queue, or cannot say one of its parameters.
    pub fn tc_line(&self, rate: Option<Rate>) -> Result<String, ParameterError> {
        let kind = self.kind();
        let fail = |why: String| ParameterError::Conflict { kind, why };
        let dialect = Dialect::named(kind);
        let (Some(dialect), Some((entry, mut defaults))) = (dialect, self.entry()) else {
            let why = match kind {
                "drr" | "htb" => "tc takes several commands: the queue, its classes and a filter",
                _ => "tc has no such queue",
            };
            return Err(fail(why.into()));
        };
        let beyond = match self {
            Self::Red(params) => params.beyond_kernel(),
            Self::Choke(params) => params.beyond_kernel(),
            _ => None,
        };
        if let Some(why) = beyond {
            return Err(fail(why));
        }
        let mut values = self.clone();
        let mut words = vec![kind.to_owned()];
        // `raw` resets the framing.
        let mut framing = None;
        for parameter in entry.parameters {
            let key = parameter.key;
            let text = |spec: &mut Self| spec.value(key).and_then(|value| parameter.text(value));
            let value = text(&mut values);
            if dialect.lacks.contains(&key) {
                if value != text(&mut defaults) {
                    return Err(fail(format!("tc cannot set {}", shown(parameter, value))));
                }
                continue;
            }
            let Some(value) = value else {
                let unset = dialect.unset.iter().find(|(known, _)| *known == key);
                words.extend(unset.map(|(_, word)| (*word).to_owned()));
                // RED and CHOKe derive a decay from the rate of the link, and choke needs it.
                if key == "bandwidth" && unset.is_none() {
                    let rate = rate.map_or("10mbit".to_owned(), |rate| rate.to_string());
                    words.push(format!("bandwidth {rate}"));
                }
                if key == "overhead" {
                    words.extend(framing.take());
                }
                continue;
            };
            let whole = values.value(key).and_then(|value| value.whole());
            if whole == Some(0) && dialect.ignores_zero.contains(&key) {
                return Err(fail(format!("tc cannot set {key} 0")));
            }
            match parameter.unit {
                Unit::Profile => {}
                Unit::Flag if value == "on" => words.push(key.to_owned()),
                Unit::Flag => {
                    let off = dialect.off.iter().find(|(known, _)| *known == key);
                    let word = off.map_or_else(|| format!("no{key}"), |(_, word)| (*word).into());
                    words.extend((!word.is_empty()).then_some(word));
                }
                Unit::Choice(_) if key == "framing" => framing = Some(value),
                Unit::Choice(_) => words.push(value),
                Unit::Time | Unit::Millis | Unit::Micros => {
                    let time = value.parse().unwrap_or(LONGEST);
                    let time =
                        in_tc(parameter, time).map_err(|why| fail(format!("{key} {why}")))?;
                    words.push(format!("{key} {time}"));
                }
                Unit::Size => {
                    let bytes = value.parse().unwrap_or(Bytes(u64::MAX)).0;
                    if bytes > u32::MAX.into() {
                        return Err(fail(format!("{key} {value} exceeds the 32 bits of tc")));
                    }
                    words.push(format!("{key} {bytes}"));
                }
                Unit::SignedSize(_) => words.push(format!("{key} {}", value.trim_end_matches('b'))),
                // CAKE has 64 bits.
                Unit::Rate if !matches!(kind, "cake" | "cake_mq") => {
                    let bytes = whole.unwrap_or(0) / 8;
                    if bytes >= u32::MAX.into() {
                        return Err(fail(format!("{key} {value} exceeds the 34 Gbit/s of tc")));
                    }
                    words.push(format!("{key} {value}"));
                }
                Unit::Percent if value.contains('.') => {
                    let why = format!("tc takes a whole percentage, not {key} {value}");
                    return Err(fail(why));
                }
                _ => words.push(format!("{key} {value}")),
            }
            if key == "overhead" {
                words.extend(framing.take());
            }
        }
        Ok(words.join(" "))
    }
}

/// A parameter as its error names it.
fn shown(parameter: &Parameter, value: Option<String>) -> String {
    match value {
        Some(value) if !parameter.is_flag() => format!("{} {value}", parameter.key),
        Some(off) if off == "off" => format!("no{}", parameter.key),
        _ => parameter.key.to_owned(),
    }
}

/// A time as `tc` reads it, if it can.
fn in_tc(parameter: &Parameter, time: Duration) -> Result<String, String> {
    let nanos = time.as_nanos();
    let text = Unit::Time.text(nanos);
    if let Some(unit) = parameter.plain {
        let one = format!("1{unit}").parse().map_or(1, Duration::as_nanos);
        return nanos
            .is_multiple_of(one)
            .then(|| (nanos / one).to_string())
            .ok_or_else(|| format!("{text} is not a multiple of 1{unit}, as tc requires"));
    }
    if !nanos.is_multiple_of(1_000) {
        return Err(format!(
            "{text} is not a whole number of microseconds, as tc requires"
        ));
    }
    if time > LONGEST {
        return Err(format!("{text} exceeds the 4294 s of tc"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let spec: QdiscSpec = text.parse().expect(text);
        spec.tc_line(Some(Rate::mbit(20)))
            .unwrap_or_else(|refused| refused.to_string())
    }

    #[test]
    fn lines_have_the_spelling_and_the_units_of_tc() {
        for (text, expected) in [
            ("pfifo", "pfifo limit 1000"),
            ("bfifo limit 15k", "bfifo limit 15360"),
            ("pfifo_fast", "pfifo_fast"),
            (
                "red ecn",
                "red limit 1514000 avpkt 1000 probability 0.02 bandwidth 20mbit ecn",
            ),
            (
                "choke",
                "choke limit 1000 avpkt 1000 probability 0.02 bandwidth 20mbit",
            ),
            (
                "cake_mq bandwidth 50mbit besteffort",
                "cake_mq bandwidth 50mbit besteffort triple-isolate nonat nowash no-ack-filter rtt 100ms raw \
                 noatm mpu 0 egress",
            ),
            ("cake_mq queues 8", "cake_mq: tc cannot set queues 8"),
            ("dualpi2 nqb", "dualpi2: tc cannot set nqb"),
            (
                "fq_codel ce_threshold 1ms ce_threshold_selector 80/252",
                "fq_codel limit 10240 memory_limit 33554432 flows 1024 target 5ms interval 100ms drop_batch 64 \
                 ce_threshold 1ms ce_threshold_selector 0x50/0xfc ecn",
            ),
            (
                "codel target 12500",
                "codel limit 1000 target 12500us interval 100ms noecn",
            ),
            (
                "pie profile linux",
                "pie limit 1000 alpha 2 beta 20 noecn nobytemode no_dq_rate_estimator",
            ),
            (
                "fq_codel quantum 300 profile linux",
                "fq_codel limit 10240 memory_limit 33554432 flows 1024 target 5ms interval 100ms \
                 quantum 300 drop_batch 64 ecn",
            ),
            (
                "sfq perturb 10s",
                "sfq limit 127 depth 127 flows 128 divisor 1024 perturb 10",
            ),
            (
                "sfb",
                "sfb limit 1000 rehash 600000 db 60000 increment 0.0005 decrement 0.00005 \
                 penalty_rate 10 penalty_burst 20",
            ),
            (
                "dualpi2 profile linux nodrop_on_overload classic_protection 20%",
                "dualpi2 limit 10000 target 15ms coupling_factor 2 drop_dequeue l4s_ect \
                 classic_protection 20 overflow",
            ),
            (
                "cake bandwidth 18mbit ptm overhead -4 mpu 84 nat",
                "cake bandwidth 18mbit diffserv3 triple-isolate nat nowash no-ack-filter rtt 100ms \
                 overhead -4 ptm mpu 84 egress",
            ),
            (
                "cake atm",
                "cake unlimited diffserv3 triple-isolate nonat nowash no-ack-filter rtt 100ms raw \
                 atm mpu 0 egress",
            ),
            (
                "prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1",
                "prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1",
            ),
        ] {
            assert_eq!(line(text), expected, "{text}");
        }
    }

    #[test]
    fn what_tc_cannot_say_is_an_error() {
        for (text, refused) in [
            ("floq", "floq: tc has no such queue"),
            (
                "drr",
                "drr: tc takes several commands: the queue, its classes and a filter",
            ),
            ("red leaf codel", "red: tc cannot set leaf codel"),
            ("red gentle", "red: tc cannot set gentle"),
            (
                "red limit 1gb",
                "red: max 268435456 is too large for a weight of 2^-17 in the kernel; lower max or burst",
            ),
            (
                "choke limit 131071 max 131071 min 40000 burst 80000",
                "choke: max 131071 is too large for a weight of 2^-16 in the kernel; lower max or burst",
            ),
            ("pie nocap profile rfc", "pie: tc cannot set nocap"),
            ("pie alpha 0 profile rfc", "pie: tc cannot set alpha 0"),
            (
                "pfifo ce_threshold 1ms",
                "pfifo: tc cannot set ce_threshold 1ms",
            ),
            (
                "codel target 1500ns",
                "codel: target 1500ns is not a whole number of microseconds, as tc requires",
            ),
            (
                "codel target 5000s",
                "codel: target 5000s exceeds the 4294 s of tc",
            ),
            (
                "sfq perturb 1500ms",
                "sfq: perturb 1500ms is not a multiple of 1s, as tc requires",
            ),
            (
                "fq_codel memory_limit 8gb profile rfc",
                "fq_codel: memory_limit 8589934592b exceeds the 32 bits of tc",
            ),
            (
                "fq maxrate 40gbit",
                "fq: maxrate 40gbit exceeds the 34 Gbit/s of tc",
            ),
            (
                "dualpi2 classic_protection 12.5 profile rfc",
                "dualpi2: tc takes a whole percentage, not classic_protection 12.5",
            ),
        ] {
            assert!(line(text).starts_with(refused), "{text}: {}", line(text));
        }
    }

    /// A line is read again as what it says; the profile is not part of it.
    #[test]
    fn a_line_reads_back() {
        for entry in QdiscSpec::entries() {
            let profile = match entry.profiles {
                [] | [_] => "",
                all if all.contains(&crate::Profile::Linux) => " profile linux",
                _ => "",
            };
            let spec: QdiscSpec = format!("{}{profile}", entry.name)
                .parse()
                .expect(entry.name);
            let Ok(line) = spec.tc_line(None) else {
                continue;
            };
            let again: QdiscSpec = format!("{line}{profile}").parse().expect(&line);
            assert_eq!(again.tc_line(None), Ok(line.clone()));
            // The bandwidth of a link without a known rate is iproute2's.
            let plain = |spec: &QdiscSpec| spec.to_string().replace(" bandwidth 10mbit", "");
            assert_eq!(plain(&again), plain(&spec), "{line}");
        }
    }
}
