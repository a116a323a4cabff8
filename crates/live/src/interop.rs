//! The scenarios of the QUIC network simulator, in its own syntax: `drop-rate --delay=15ms --bandwidth=10Mbps …`.
//!
//! # Source
//!
//! The options that the scenarios in `sim/scenarios` of
//! [quic-network-simulator](https://github.com/quic-interop/quic-network-simulator) accept; times and rates as ns-3
//! writes them. Of Sojourn are the options `--qdisc`, `--qdisc_to_client` and `--qdisc_to_server`, and the scenarios
//! `aqm` and `l4s`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use sojourn_net::{Duration, Rate};

use crate::cross::Cross;
use crate::impairment::{Blackhole, Chance, Impairment, Rebind};

/// A link between two networks, and what happens to its packets. Of two values, the first is for packets to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interop {
    /// Rate of the link in both directions.
    pub bandwidth: Rate,
    /// One-way delay.
    pub delay: Duration,
    /// The queues, in the syntax of `tc`.
    pub qdiscs: [String; 2],
    /// What happens to packets at the end of the link.
    pub impairment: Impairment,
    /// Other traffic on the link.
    pub cross: Option<Cross>,
}

/// Why a text is not a scenario, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InteropError(String);

impl fmt::Display for InteropError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InteropError {}

/// A scenario: its name, its options besides those of the link, and its queue if none is given.
struct Kind {
    name: &'static str,
    options: &'static [&'static str],
    qdisc: Option<&'static str>,
}

impl Kind {
    const fn new(name: &'static str, options: &'static [&'static str]) -> Self {
        Self {
            name,
            options,
            qdisc: None,
        }
    }
}

const RATES: &[&str] = &[
    "rate_to_client",
    "rate_to_server",
    "burst_to_client",
    "burst_to_server",
];
const KINDS: [Kind; 10] = [
    Kind::new("simple-p2p", &[]),
    Kind::new("drop-rate", RATES),
    Kind::new("corrupt-rate", RATES),
    Kind::new("droplist", &["drops_to_client", "drops_to_server"]),
    Kind::new("rebind", &["first-rebind", "rebind-freq", "rebind-addr"]),
    Kind::new("blackhole", &["on", "off", "repeat", "direction"]),
    Kind::new("tcp-cross-traffic", &[]),
    Kind::new("udp-cross-traffic", &["crossdatarate"]),
    Kind {
        qdisc: Some("fq_codel"),
        ..Kind::new("aqm", &[])
    },
    Kind {
        qdisc: Some("dualpi2"),
        ..Kind::new("l4s", &[])
    },
];
/// The options of the link, which all scenarios have.
const LINK: [&str; 6] = [
    "delay",
    "bandwidth",
    "queue",
    "qdisc",
    "qdisc_to_client",
    "qdisc_to_server",
];
/// Options without a value.
const SWITCHES: [&str; 1] = ["rebind-addr"];

impl Interop {
    /// Reads the words of a scenario, as a shell splits them.
    ///
    /// ```
    /// use sojourn_live::Interop;
    ///
    /// let words = ["simple-p2p", "--delay=15ms", "--bandwidth=10Mbps", "--queue=25"];
    /// let scenario = Interop::of(&words).unwrap();
    /// assert_eq!(scenario.qdiscs, ["pfifo limit 26", "pfifo limit 26"]);
    /// ```
    ///
    /// # Errors
    /// If the scenario or an option is unknown, or a value is missing or not valid.
    pub fn of(words: &[impl AsRef<str>]) -> Result<Self, InteropError> {
        let names = || KINDS.map(|kind| kind.name).join(", ");
        let Some((name, rest)) = words.split_first() else {
            return Err(InteropError(format!(
                "no scenario; expected one of {}",
                names()
            )));
        };
        let name = name.as_ref();
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
            return Err(InteropError(format!(
                "unknown scenario {name:?}; expected one of {}",
                names()
            )));
        };
        let given = Given::read(kind, rest)?;
        Ok(Self {
            bandwidth: given.needed("bandwidth", rate)?,
            delay: given.needed("delay", time)?,
            qdiscs: given.qdiscs(kind)?,
            impairment: given.impairment()?,
            cross: match name {
                "tcp-cross-traffic" => Some(Cross::Tcp),
                "udp-cross-traffic" => Some(Cross::Udp(given.needed("crossdatarate", rate)?)),
                _ => None,
            },
        })
    }
}

/// The options of a scenario as they are given.
struct Given<'a> {
    name: &'static str,
    options: Vec<(&'static str, &'a str)>,
}

impl<'a> Given<'a> {
    fn read(kind: &Kind, words: &'a [impl AsRef<str>]) -> Result<Self, InteropError> {
        let known = || LINK.iter().chain(kind.options).copied();
        let mut options = Vec::new();
        for word in words.iter().map(AsRef::as_ref) {
            let refuse = |problem: &str| {
                let expected: Vec<_> = known().map(|name| format!("--{name}")).collect();
                InteropError(format!(
                    "{}: {problem} {word:?}; expected {}",
                    kind.name,
                    expected.join(", ")
                ))
            };
            let Some(option) = word.strip_prefix("--") else {
                return Err(refuse("unexpected word"));
            };
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let Some(name) = known().find(|known| *known == name) else {
                return Err(refuse("unknown option"));
            };
            if value.is_empty() && !SWITCHES.contains(&name) {
                return Err(InteropError(format!(
                    "{}: --{name} has no value; expected --{name}=VALUE",
                    kind.name
                )));
            }
            // As in ns-3, the last one counts.
            options.retain(|(before, _)| *before != name);
            options.push((name, value));
        }
        Ok(Self {
            name: kind.name,
            options,
        })
    }

    /// The value of an option; `None`: it is not given.
    fn optional<T>(&self, name: &str, read: Reader<T>) -> Result<Option<T>, InteropError> {
        let given = self.options.iter().find(|(given, _)| *given == name);
        given
            .map(|(_, text)| read(text).map_err(|expected| self.invalid(name, text, expected)))
            .transpose()
    }

    /// The value of an option that the scenario needs.
    fn needed<T>(&self, name: &str, read: Reader<T>) -> Result<T, InteropError> {
        self.optional(name, read)?
            .ok_or_else(|| self.missing(&format!("--{name}")))
    }

    fn missing(&self, what: &str) -> InteropError {
        InteropError(format!("{}: missing option {what}", self.name))
    }

    fn invalid(&self, name: &str, text: &str, expected: &str) -> InteropError {
        InteropError(format!(
            "{}: --{name}={text} is not valid; expected {expected}",
            self.name
        ))
    }

    /// The queues of both directions.
    fn qdiscs(&self, kind: &Kind) -> Result<[String; 2], InteropError> {
        let whole = |text: &str| Ok(text.to_owned());
        let both = match self.optional("qdisc", whole)? {
            Some(qdisc) => Some(qdisc),
            // Behind the queue, the device of ns-3 holds one packet besides the one that it sends.
            None => (self.optional("queue", number)?)
                .map(|packets: u32| format!("pfifo limit {}", u64::from(packets) + 1))
                .or_else(|| kind.qdisc.map(str::to_owned)),
        };
        let of = |name| {
            let own = self.optional(name, whole)?;
            own.or_else(|| both.clone())
                .ok_or_else(|| self.missing("--queue or --qdisc"))
        };
        Ok([of("qdisc_to_client")?, of("qdisc_to_server")?])
    }

    fn impairment(&self) -> Result<Impairment, InteropError> {
        Ok(match self.name {
            "drop-rate" => Impairment::Drop(self.chances()?),
            "corrupt-rate" => Impairment::Corrupt(self.chances()?),
            "droplist" => {
                let of = |name| Ok(self.optional(name, numbers)?.unwrap_or_default());
                Impairment::DropList([of("drops_to_client")?, of("drops_to_server")?])
            }
            "rebind" => Impairment::Rebind(Rebind {
                first: self.needed("first-rebind", positive_time)?,
                every: self
                    .optional("rebind-freq", time)?
                    .filter(|every| *every > Duration::ZERO),
                address: self.optional("rebind-addr", switch)?.unwrap_or(false),
            }),
            "blackhole" => Impairment::Blackhole(Blackhole {
                on: self.needed("on", time)?,
                off: self.needed("off", positive_time)?,
                repeat: self.optional("repeat", positive)?.unwrap_or(1),
                toward: self.optional("direction", direction)?.unwrap_or([true; 2]),
            }),
            _ => Impairment::None,
        })
    }

    fn chances(&self) -> Result<[Chance; 2], InteropError> {
        let of = |rate, burst| {
            Ok(Chance {
                per_million: self.needed(rate, percent)?,
                burst: self.optional(burst, number)?,
            })
        };
        Ok([
            of("rate_to_client", "burst_to_client")?,
            of("rate_to_server", "burst_to_server")?,
        ])
    }
}

/// Reads a value; the error is what is expected.
type Reader<T> = fn(&str) -> Result<T, &'static str>;

/// A time of ns-3: without a unit, seconds.
fn time(text: &str) -> Result<Duration, &'static str> {
    const UNITS: [(&str, f64); 8] = [
        ("", 1e9),
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
        ("h", 3_600e9),
        ("d", 86_400e9),
    ];
    let expected = "a time from 0 to 10 h such as 15ms or 2s";
    let nanos = scaled(text, &UNITS).ok_or(expected)?;
    // As long as the simulator runs.
    let longest = 36_000e9;
    if !(0.0..=longest).contains(&nanos) {
        return Err(expected);
    }
    Ok(Duration::from_nanos(rounded(nanos)))
}

fn positive_time(text: &str) -> Result<Duration, &'static str> {
    time(text)
        .ok()
        .filter(|time| *time > Duration::ZERO)
        .ok_or("a time above 0, up to 10 h, such as 1s")
}

/// A rate of ns-3, such as `10Mbps` or `1MB/s`: `b` is a bit and `B` a byte. Also one of Sojourn, such as `10mbit`.
fn rate(text: &str) -> Result<Rate, &'static str> {
    let expected = "a rate from 1kbps to 100Gbps, such as 10Mbps";
    let prefixes = [
        ("", 1.0),
        ("k", 1e3),
        ("K", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("Ki", 1_024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
    ];
    let ends = [("bps", 1.0), ("b/s", 1.0), ("Bps", 8.0), ("B/s", 8.0)];
    let bits = ends.iter().find_map(|(end, bits)| {
        let units = prefixes.map(|(prefix, factor)| (prefix, factor * bits));
        scaled(text.strip_suffix(end)?, &units)
    });
    let Some(bits) = bits else {
        return if text.ends_with("bit") {
            Rate::from_str(text).map_err(|_| expected)
        } else {
            Err(expected)
        };
    };
    if !(1e3..=100e9).contains(&bits) {
        return Err(expected);
    }
    Rate::from_bits_per_sec(rounded(bits)).ok_or(expected)
}

/// A decimal number with a unit.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text.rfind(|c: char| c.is_ascii_digit() || c == '.')? + 1;
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(known, _)| *known == unit)?;
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    Some(number.parse::<f64>().ok().filter(|_| is_plain)? * factor)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the callers have checked the range"
)]
const fn rounded(value: f64) -> u64 {
    value.round() as u64
}

fn number(text: &str) -> Result<u32, &'static str> {
    text.parse().map_err(|_| "a whole number such as 25")
}

fn positive(text: &str) -> Result<u32, &'static str> {
    let found = text.parse().ok().filter(|number| *number > 0);
    found.ok_or("a whole number above 0")
}

/// A percentage, as parts per million.
fn percent(text: &str) -> Result<u32, &'static str> {
    let millionths = scaled(text, &[("", 1e4)]).filter(|value| (0.0..=1e6).contains(value));
    millionths
        .and_then(|value| u32::try_from(rounded(value)).ok())
        .ok_or("a percentage from 0 to 100")
}

/// Numbers of packets.
fn numbers(text: &str) -> Result<BTreeSet<u64>, &'static str> {
    let all = text.split(',').map(|number| {
        let number = number.parse().ok();
        number.filter(|number| *number > 0)
    });
    all.collect::<Option<_>>()
        .ok_or("numbers of packets from 1 on, such as 1,3,15")
}

fn switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "" | "1" | "t" | "true" => Ok(true),
        "0" | "f" | "false" => Ok(false),
        _ => Err("true or false, or no value for true"),
    }
}

fn direction(text: &str) -> Result<[bool; 2], &'static str> {
    match text {
        "both" => Ok([true, true]),
        "toclient" => Ok([true, false]),
        "toserver" => Ok([false, true]),
        _ => Err("both, toclient or toserver"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Interop, String> {
        let words: Vec<_> = text.split_whitespace().collect();
        Interop::of(&words).map_err(|error| error.to_string())
    }

    const LINE: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

    fn impairment(text: &str) -> Impairment {
        let scenario = read(text).expect(text);
        assert_eq!(scenario.bandwidth, Rate::mbit(10));
        assert_eq!(scenario.delay, Duration::from_millis(15));
        assert_eq!(scenario.cross, None);
        scenario.impairment
    }

    /// The scenarios of the test cases of the QUIC interop runner, as it passes them.
    #[test]
    fn the_scenarios_of_the_interop_runner_are_read() {
        assert_eq!(impairment(&format!("simple-p2p {LINE}")), Impairment::None);
        let long = read("simple-p2p --delay=750ms --bandwidth=10Mbps --queue=25").expect("longrtt");
        assert_eq!(long.delay, Duration::from_millis(750));
        let strong = Chance {
            per_million: 300_000,
            burst: Some(3),
        };
        let weak = Chance {
            per_million: 20_000,
            ..strong
        };
        let rates = |percent: u32| {
            format!(
                "{LINE} --rate_to_server={percent} --rate_to_client={percent} --burst_to_server=3 --burst_to_client=3"
            )
        };
        for (percent, chance) in [(30, strong), (2, weak)] {
            let line = rates(percent);
            assert_eq!(
                impairment(&format!("drop-rate {line}")),
                Impairment::Drop([chance; 2])
            );
            assert_eq!(
                impairment(&format!("corrupt-rate {line}")),
                Impairment::Corrupt([chance; 2])
            );
        }
        assert_eq!(
            impairment(&format!("droplist {LINE} --drops_to_server=2,3,4,5,6,7")),
            Impairment::DropList([BTreeSet::new(), (2..=7).collect()])
        );
        assert_eq!(
            impairment(&format!("blackhole {LINE} --on=5s --off=2s")),
            Impairment::Blackhole(Blackhole {
                on: Duration::from_secs(5),
                off: Duration::from_secs(2),
                repeat: 1,
                toward: [true; 2],
            })
        );
        let port = Rebind {
            first: Duration::from_secs(1),
            every: Some(Duration::from_secs(5)),
            address: false,
        };
        let text = format!("rebind {LINE} --first-rebind=1s --rebind-freq=5s");
        assert_eq!(impairment(&text), Impairment::Rebind(port));
        let address = Rebind {
            address: true,
            ..port
        };
        let text = format!("{text} --rebind-addr");
        assert_eq!(impairment(&text), Impairment::Rebind(address));
    }

    #[test]
    fn the_other_options_are_read() {
        let scenario = read(&format!("tcp-cross-traffic {LINE}")).expect("TCP");
        assert_eq!(scenario.cross, Some(Cross::Tcp));
        let text = format!("udp-cross-traffic {LINE} --crossdatarate=512kbps");
        let kbit_512 = Rate::from_bits_per_sec(512_000).expect("positive");
        assert_eq!(read(&text).expect("UDP").cross, Some(Cross::Udp(kbit_512)));
        let text = format!("blackhole {LINE} --on=1s --off=500ms --repeat=3 --direction=toclient");
        let Impairment::Blackhole(found) = impairment(&text) else {
            panic!("{text}")
        };
        assert_eq!((found.repeat, found.toward), (3, [true, false]));
        let text = format!("rebind {LINE} --first-rebind=2 --rebind-freq=0s --rebind-addr=false");
        let once = Rebind {
            first: Duration::from_secs(2),
            every: None,
            address: false,
        };
        assert_eq!(impairment(&text), Impairment::Rebind(once));
        let text = format!("drop-rate {LINE} --rate_to_client=0.5 --rate_to_server=0");
        let none = Chance::default();
        let some = Chance {
            per_million: 5_000,
            burst: None,
        };
        assert_eq!(impairment(&text), Impairment::Drop([some, none]));
    }

    #[test]
    fn every_scenario_takes_queues_of_sojourn() {
        let words = [
            "rebind",
            "--delay=15ms",
            "--bandwidth=10Mbps",
            "--queue=25",
            "--first-rebind=1s",
            "--qdisc=fq_codel target 13ms",
            "--qdisc_to_server=pfifo limit 50",
        ];
        let scenario = Interop::of(&words).expect("valid");
        assert_eq!(scenario.qdiscs, ["fq_codel target 13ms", "pfifo limit 50"]);
        let line = "--delay=15ms --bandwidth=10Mbps";
        let usual = |name| read(&format!("{name} {line}")).map(|found| found.qdiscs);
        assert_eq!(
            usual("aqm"),
            Ok(["fq_codel", "fq_codel"].map(str::to_owned))
        );
        assert_eq!(usual("l4s"), Ok(["dualpi2", "dualpi2"].map(str::to_owned)));
        let missing = "simple-p2p: missing option --queue or --qdisc";
        assert_eq!(usual("simple-p2p"), Err(missing.to_owned()));
    }

    #[test]
    fn times_and_rates_have_the_units_of_ns3() {
        let rates = [
            ("10Mbps", 10_000_000),
            ("10Mb/s", 10_000_000),
            ("1.5Mbps", 1_500_000),
            ("1MBps", 8_000_000),
            ("64kbps", 64_000),
            ("64Kbps", 64_000),
            ("1Mib/s", 1_048_576),
            ("2000bps", 2_000),
            ("1Gbps", 1_000_000_000),
            ("10mbit", 10_000_000),
        ];
        for (text, bits) in rates {
            assert_eq!(rate(text).expect(text).bits_per_sec(), bits, "{text}");
        }
        for text in [
            "", "Mbps", "10", "10mbps", "0Mbps", "-1Mbps", "1e3Mbps", "10M", "1..2Mbps",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
        let times = [
            ("15ms", 15_000),
            ("2s", 2_000_000),
            ("1.5", 1_500_000),
            ("0s", 0),
            ("250us", 250),
            ("1min", 60_000_000),
        ];
        for (text, micros) in times {
            assert_eq!(
                time(text).expect(text),
                Duration::from_micros(micros),
                "{text}"
            );
        }
        for text in ["", "ms", "-1s", "11h", "1 s", "1e3s", "NaN", "inf"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("", "no scenario; expected one of simple-p2p, drop-rate, "),
            (
                "simple",
                "unknown scenario \"simple\"; expected one of simple-p2p, ",
            ),
            (
                "simple-p2p --dely=1ms",
                "simple-p2p: unknown option \"--dely=1ms\"; expected --delay, --bandwidth, ",
            ),
            (
                "simple-p2p --rate_to_client=3",
                "simple-p2p: unknown option \"--rate_to_client=3\"; expected ",
            ),
            (
                "simple-p2p 5",
                "simple-p2p: unexpected word \"5\"; expected --delay",
            ),
            (
                "simple-p2p --delay=1ms --queue=25",
                "simple-p2p: missing option --bandwidth",
            ),
            (
                "simple-p2p --delay",
                "simple-p2p: --delay has no value; expected --delay=VALUE",
            ),
            (
                "simple-p2p --delay=1ms --bandwidth=10 --queue=25",
                "simple-p2p: --bandwidth=10 is not valid; expected a rate from 1kbps to 100Gbps",
            ),
            (
                "droplist --delay=1ms --bandwidth=1Mbps --queue=25 --drops_to_client=0,1",
                "droplist: --drops_to_client=0,1 is not valid; expected numbers of packets from 1 on",
            ),
            (
                "drop-rate --delay=1ms --bandwidth=1Mbps --queue=25 --rate_to_client=101",
                "drop-rate: --rate_to_client=101 is not valid; expected a percentage from 0 to 100",
            ),
            (
                "rebind --delay=1ms --bandwidth=1Mbps --queue=25 --first-rebind=0s",
                "rebind: --first-rebind=0s is not valid; expected a time above 0",
            ),
            (
                "blackhole --delay=1ms --bandwidth=1Mbps --queue=25 --on=1s --off=1s --repeat=0",
                "blackhole: --repeat=0 is not valid; expected a whole number above 0",
            ),
            (
                "blackhole --delay=1ms --bandwidth=1Mbps --queue=25 --on=1s --off=1s --direction=up",
                "blackhole: --direction=up is not valid; expected both, toclient or toserver",
            ),
            (
                "udp-cross-traffic --delay=1ms --bandwidth=1Mbps --queue=25",
                "udp-cross-traffic: missing option --crossdatarate",
            ),
        ];
        for (text, expected) in cases {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
