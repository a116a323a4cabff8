//! A specification means the same as text, as pairs and as a value.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use proptest::sample::{Index, select};
use sojourn_qdisc::{CodelParams, Duration, LinkFacts, Profile, QdiscSpec, Unit, catalogue};

/// Bands of the 16 priorities.
const EVEN_AND_ODD: &str = "0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1";
const ALL_FIRST: &str = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
/// Of the bands of fq.
const WEIGHTS: &str = "20000 30000 16384";

fn refusal(text: &str) -> String {
    QdiscSpec::parse(text).unwrap_err().to_string()
}

/// Entries of `htb`.
const CLASSES: &str = "(name a rate 8mbit) (name b rate 1mbit prio 3)";
const FILTERS: &str = "(to a dscp EF)";

/// A text that sets some parameters of some discipline to allowed values.
fn texts() -> impl Strategy<Value = String> {
    let kinds = select(catalogue());
    (kinds, any::<[Index; 12]>(), any::<u16>()).prop_map(|(kind, choices, chosen)| {
        let mut text = kind.name.to_string();
        for (n, (parameter, choice)) in kind.parameters.iter().zip(choices).enumerate() {
            if chosen & (1 << n) == 0 {
                continue;
            }
            let key = parameter.key;
            let of = |values: &[&str]| values[choice.index(values.len())].to_string();
            let word = match parameter.unit {
                Unit::Time => format!(" {key} {}", of(&["5ms", "12.5ms", "1001us", "1s", "99s"])),
                Unit::Rate => format!(" {key} {}", of(&["10mbit", "1.5gbit", "8kbps"])),
                Unit::Size => format!(" {key} {}", of(&["1514", "32kb", "20000b", "4k"])),
                Unit::SignedSize(_) => format!(" {key} {}", of(&["-64", "-4", "0", "18b", "256"])),
                Unit::Packets => format!(" {key} {}", of(&["1", "127", "10240p"])),
                Unit::Count(_) => format!(" {key} {}", of(&["1", "2", "16", "32"])),
                Unit::Fraction => format!(" {key} {}", of(&["0.02", "1", "1.25"])),
                Unit::Weight => format!(" {key} {}", of(&["0", "0.2", "1", "1.25"])),
                Unit::Percent => format!(" {key} {}", of(&["0.5", "12.5%", "50%"])),
                Unit::Numbers => format!(" {key} {}", of(&[EVEN_AND_ODD, ALL_FIRST, WEIGHTS])),
                Unit::Masked => format!(" {key} {}", of(&["0x1/0x3", "80/252", "0/0"])),
                Unit::Flag => format!(" {}{key}", of(&["", "no"])),
                Unit::Profile => {
                    let profile = kind.profiles[choice.index(kind.profiles.len())];
                    format!(" {key} {profile}")
                }
                Unit::Choice(words) => format!(" {}{}", of(&["", &format!("{key} ")]), of(words)),
                // All that follows would be theirs; their tests read them back.
                Unit::Leaves => continue,
                Unit::Word(_) => format!(" {key} {}", of(&["a", "b"])),
                Unit::Entries(_) => format!(" {key} {}", of(&[CLASSES, FILTERS])),
                unit => panic!("{key}: no value of {unit:?} here"),
            };
            text.push_str(&word);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_displayed_is_read_back(text in texts()) {
        // Some texts contradict themselves; those are refused, not misread.
        if let Ok(spec) = QdiscSpec::parse(&text) {
            prop_assert_eq!(QdiscSpec::parse(&spec.to_string()), Ok(spec.clone()));
            let pairs = spec.pairs().into_iter().map(|(key, value)| (key.into(), value));
            prop_assert_eq!(QdiscSpec::from_pairs(spec.kind(), pairs), Ok(spec.clone()));
            prop_assert_eq!(spec.validate(), Ok(()));
        }
    }
}

#[test]
fn the_strings_of_tc_are_read() {
    for (text, canonical) in [
        (
            "fq_codel limit 10240p target 5ms interval 100ms quantum 1514 ecn",
            "fq_codel limit 10240 memory_limit 33554432b flows 1024 target 5ms interval 100ms \
             quantum 1514b drop_batch 64 ecn",
        ),
        ("pfifo limit 127", "pfifo limit 127"),
        ("pfifo", "pfifo limit 1000"),
        ("pfifo_head_drop limit 5p", "pfifo_head_drop limit 5"),
        ("bfifo limit 15140b", "bfifo limit 15140b"),
        ("bfifo limit 15k headdrop", "bfifo limit 15360b headdrop"),
        (
            "red limit 192278 min 12500 avpkt 1000 bandwidth 10mbit adaptive",
            "red limit 192278b min 12500b avpkt 1000b probability 0.02 bandwidth 10mbit adaptive",
        ),
        (
            "pie limit 1000 target 20ms tupdate 30ms",
            "pie limit 1000 target 20ms tupdate 30ms alpha 2 beta 20",
        ),
        (
            "pie profile linux-3.14",
            "pie limit 1000 alpha 2 beta 20 profile linux-3.14",
        ),
        (
            "pie nocap profile rfc",
            "pie limit 1000 alpha 2 beta 20 nocap profile rfc",
        ),
        (
            "codel limit 1000p target 13ms interval 100ms noecn",
            "codel limit 1000 target 13ms interval 100ms",
        ),
        (
            "sfq limit 127 perturb 10s",
            "sfq limit 127 depth 127 flows 128 divisor 1024 perturb 10s",
        ),
        (
            "fq limit 5000p quantum 3028 initial_quantum 3028",
            "fq limit 5000 flow_limit 100 quantum 3028b initial_quantum 3028b refill_delay 40ms \
             orphan_mask 1023",
        ),
        (
            "cocoa flow_limit 100 guard_interval 1.25 max_increase 2.0 profile linux",
            "cocoa limit 10000 flow_limit 100 refill_delay 40ms orphan_mask 1023 \
             guard_interval 1.25 max_increase 2 max_monitoring_interval 1s profile linux",
        ),
        (
            "sfb profile linux",
            "sfb limit 1000 rehash 600s db 60s increment 0.0005 decrement 0.00005 \
             penalty_rate 10 penalty_burst 20",
        ),
        (
            "cobalt limit 500p target 10ms noecn",
            "cobalt limit 500 target 10ms interval 100ms increment 0.00390625 \
             decrement 0.000244140625 noecn",
        ),
    ] {
        assert_eq!(QdiscSpec::parse(text).unwrap().to_string(), canonical);
    }
}

#[test]
fn the_presets_and_words_of_tc_are_read() {
    for (text, canonical) in [
        (
            "cake bandwidth 10mbit besteffort dual-srchost nat",
            "cake bandwidth 10mbit besteffort dual-srchost nat no-ack-filter rtt 100ms noatm mpu 0b",
        ),
        (
            "cake unlimited docsis lan ack-filter nowash egress split-gso memlimit 32mb",
            "cake diffserv3 triple-isolate ack-filter rtt 1ms noatm overhead 18b mpu 64b \
             memlimit 33554432b",
        ),
        (
            "cake flowmode flows ack_filter ack-filter-aggressive framing ptm rtt 30ms",
            "cake diffserv3 flows ack-filter-aggressive rtt 30ms ptm mpu 0b",
        ),
        (
            "dualpi2 step_thresh 1ms alpha 0.16 profile linux",
            "dualpi2 limit 10000 target 15ms alpha 0.16 coupling_factor 2 step_thresh 1ms \
             drop_dequeue l4s_ect drop_on_overload",
        ),
        (
            "dualpi2 min_qlen_step 2p drop_enqueue any_ect profile linux",
            "dualpi2 limit 10000 target 15ms coupling_factor 2 min_qlen_step 2 drop_enqueue \
             any_ect drop_on_overload",
        ),
        (
            "predict slot 2ms full 2 nostretch compact",
            "predict limit 1000 slot 2ms rtt_min 8ms rtt_max 700ms per_octave 8 rounds 2 \
             growth_min 1.25 growth_max 2.3 consistency 1.5 significance 3 persistence 0.5 hold 1 \
             dominance 1.6 full 2 mark 1 nostretch compact ecn target 5ms interval 100ms",
        ),
        (
            "fq nopacing",
            "fq limit 10000 flow_limit 100 refill_delay 40ms orphan_mask 1023",
        ),
        (
            // The Ethernet header stays, as in `sch_cake`.
            "cake raw overhead 0",
            "cake diffserv3 triple-isolate no-ack-filter rtt 100ms noatm mpu 0b",
        ),
        (
            "cake docsis overhead 20",
            "cake diffserv3 triple-isolate no-ack-filter rtt 100ms noatm overhead 20b mpu 64b",
        ),
        (
            "sfq depth 20p profile linux",
            "sfq limit 127 depth 20 flows 128 divisor 1024",
        ),
        (
            "dualpi2 classic_protection 12%",
            "dualpi2 limit 10000 target 15ms coupling_factor 2 drop_dequeue l4s_ect classic_protection 12 \
             drop_on_overload",
        ),
        (
            "sfq profile linux",
            "sfq limit 127 depth 127 flows 128 divisor 1024",
        ),
    ] {
        assert_eq!(QdiscSpec::parse(text).unwrap().to_string(), canonical);
    }
}

fn canonical(text: &str) -> String {
    QdiscSpec::parse(text).map_or_else(|e| panic!("{text}: {e}"), |spec| spec.to_string())
}

/// Texts that mean the same, with the notes on the first.
#[test]
fn a_line_of_tc_is_read_as_tc_does() {
    let no_notes: &[&str] = &[];
    for (text, same, notes) in [
        // The line of piece_of_cake.qos in sqm-scripts.
        (
            "cake bandwidth 10mbit overhead 38 mpu 84 diffserv3 nat besteffort",
            "cake bandwidth 10mbit overhead 38 mpu 84 nat besteffort",
            &["cake: diffserv: besteffort, not diffserv3: as in tc, the last one counts"][..],
        ),
        (
            "cake rtt 100ms regional nat nonat",
            "cake rtt 30ms",
            &[
                "cake: rtt: 30ms, not 100ms: as in tc, the last one counts",
                "cake: nat: off, not on: as in tc, the last one counts",
            ],
        ),
        (
            "cake bandwidth 1mbit unlimited",
            "cake",
            &["cake: bandwidth: unlimited, not 1mbit: as in tc, the last one counts"],
        ),
        ("cake regional rtt 50ms", "cake rtt 50ms", no_notes),
        (
            "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3",
            "fq_codel ce_threshold 1ms ce_threshold_selector 1/3",
            no_notes,
        ),
        (
            "fq_codel ce_threshold_selector 0x1/0x3",
            "fq_codel",
            &["fq_codel: ce_threshold_selector has no effect without ce_threshold"],
        ),
        (
            "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x0",
            "fq_codel ce_threshold 1ms",
            &["fq_codel: ce_threshold_selector has no effect with a mask of 0"],
        ),
        ("codel ecn ecn target 5ms target 5ms", "codel ecn", no_notes),
        (
            "fq_codel target 5000 interval 100000",
            "fq_codel target 5ms interval 100ms",
            &[
                "fq_codel: target 5000: tc reads 5000 as 5000us; write 5ms",
                "fq_codel: interval 100000: tc reads 100000 as 100000us; write 100ms",
            ],
        ),
        (
            "cake bandwidth 1000000",
            "cake bandwidth 1mbit",
            &["cake: bandwidth 1000000: tc reads 1000000 as 1000000bit"],
        ),
        ("cake interplanetary", "cake rtt 1e+03s", no_notes),
        (
            "cake overhead 20 conservative",
            "cake atm overhead 48",
            &["cake: overhead: 48b, not 20b: as in tc, the last one counts"],
        ),
        // raw clears the overhead and keeps the Ethernet header, in any place.
        ("cake raw overhead 0", "cake", no_notes),
        (
            "cake overhead 20 raw",
            "cake",
            &["cake: overhead: raw, not 20b: as in tc, the last one counts"],
        ),
        ("cake raw overhead 20", "cake overhead 34", no_notes),
        ("cake raw docsis", "cake overhead 32 mpu 64", no_notes),
        (
            "cake no-sce via-ethernet fwmark 0xff no-split-gso split-gso",
            "cake",
            &[
                "cake: no-sce: no effect: the model never signals SCE",
                "cake: via-ethernet: no effect: tc ignores it",
                "cake: fwmark: no effect: packets here have no firewall mark",
                "cake: no-split-gso: no effect: no packet here is a batch of segments",
            ],
        ),
        (
            "pfifo_fast bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
            "pfifo_fast",
            &[
                "pfifo_fast: bands: no effect: the bands of pfifo_fast are fixed",
                "pfifo_fast: priomap: no effect: the bands of pfifo_fast are fixed",
            ],
        ),
        (
            "prio leaf codel target 5000 / pfifo",
            "prio leaf codel target 5ms / pfifo",
            &["codel: target 5000: tc reads 5000 as 5000us; write 5ms"],
        ),
    ] {
        assert_eq!(canonical(text), canonical(same), "{text}");
        assert_eq!(QdiscSpec::notes_on(text), notes, "{text}");
    }
}

/// Texts that mean the same, without a note.
#[test]
fn what_tc_takes_and_what_it_prints_is_read() {
    for (text, same) in [
        // What tc takes, and what it prints.
        ("sfq perturb 10", "sfq perturb 10s"),
        ("sfq perturb 10sec", "sfq perturb 10s"),
        ("sfb rehash 600000 db 60000", "sfb rehash 600s db 60s"),
        (
            "sfb penalty_rate 12pps penalty_burst 30p",
            "sfb penalty_rate 12 penalty_burst 30",
        ),
        ("fq orphan_mask 0x3f", "fq orphan_mask 63"),
        ("pie no_dq_rate_estimator", "pie"),
        ("red adaptative", "red adaptive"),
        ("cake diffserv", "cake diffserv4"),
        ("cake overhead -4 atm", "cake atm overhead -4b"),
        // Link layers add to the overhead before them; Ethernet keeps the framing.
        (
            "cake docsis ether-vlan ether-vlan",
            "cake overhead 26 mpu 64",
        ),
        ("cake overhead 4 ethernet", "cake overhead 42 mpu 84"),
        ("cake atm ethernet", "cake atm overhead 38 mpu 84"),
        ("cake docsis overhead 4", "cake overhead 4 mpu 64"),
    ] {
        assert_eq!(canonical(text), canonical(same), "{text}");
        assert_eq!(QdiscSpec::notes_on(text), Vec::<String>::new(), "{text}");
    }
}

/// Texts whose numbers `tc` or the kernel changes, and what they then are, with the notes on the first.
const CHANGED: &[(&str, &str, &[&str])] = &[
    (
        "sfq depth 1000",
        "sfq depth 127",
        &["sfq: depth: 127, not 1000: as in the kernel"],
    ),
    (
        "sfq flows 100000 divisor 65536",
        "sfq flows 65408 divisor 65536",
        &["sfq: flows: 65408, not 100000: as in the kernel"],
    ),
    (
        "sfq flows 1024 divisor 64 limit 50",
        "sfq flows 50 divisor 64 limit 50",
        &["sfq: flows: 50, not 1024: the kernel allows at most divisor"],
    ),
    (
        "sfq depth 10 flows 20 limit 1000",
        "sfq depth 10 flows 20 limit 200",
        &["sfq: limit: 200, not 1000: the kernel allows at most depth * flows"],
    ),
    (
        "sfq limit 20 flows 200",
        "sfq limit 20 flows 20",
        &["sfq: flows: 20, not 200: the kernel allows at most limit"],
    ),
    ("sfq limit 20", "sfq limit 20 flows 20", &[]),
    ("sfq depth 20 flows 2", "sfq depth 20 flows 2 limit 40", &[]),
    ("sfq divisor 64", "sfq divisor 64 flows 64", &[]),
    (
        "sfq perturb 0",
        "sfq",
        &["sfq: perturb 0ms: no effect: tc takes the default, off"],
    ),
    (
        "fq_codel quantum 100 memory_limit 3gb profile linux",
        "fq_codel quantum 256 memory_limit 2147483648 profile linux",
        &[
            "fq_codel: quantum: 256b, not 100: as in the kernel",
            "fq_codel: memory_limit: 2147483648b, not 3gb: as in the kernel",
        ],
    ),
    (
        "pie alpha 5 alpha 0 profile linux",
        "pie profile linux",
        &[
            "pie: alpha 0: no effect: tc takes the default, 2",
            "pie: alpha: 2, not 5: as in tc, the last one counts",
        ],
    ),
    (
        "fq_pie ecn_prob 0 quantum 0",
        "fq_pie",
        &[
            "fq_pie: ecn_prob 0: no effect: tc takes the default, 10",
            "fq_pie: quantum 0: no effect: tc takes the default, the MTU",
        ],
    ),
    ("sfb target 40", "sfb target 40 max 50", &[]),
    ("sfb max 40", "sfb max 40 target 32", &[]),
    (
        "dualpi2 profile linux max_rtt 100ms",
        "dualpi2 profile linux target 16666us tupdate 16666us alpha 0.1640625 beta 3",
        &[],
    ),
    (
        "dualpi2 profile linux typical_rtt 20ms target 5ms",
        "dualpi2 profile linux target 20ms tupdate 20ms alpha 0.13671875 beta 2.5",
        &["dualpi2: max_rtt and typical_rtt override target, tupdate, alpha and beta, as in tc"],
    ),
    (
        "dualpi2 classic_protection 12.5 tupdate 5s step_thresh 5s",
        "dualpi2 classic_protection 12 tupdate 4294967295ns step_thresh 4294967295ns",
        &[
            "dualpi2: tupdate: 4294967295ns, not 5s: as in the kernel",
            "dualpi2: step_thresh: 4294967295ns, not 5s: as in the kernel",
            "dualpi2: classic_protection: 12, not 12.5: tc takes a whole percentage",
        ],
    ),
    (
        "dualpi2 limit 2000000",
        "dualpi2 limit 2000000 memlimit 4294967295",
        &[],
    ),
    (
        "fq_nocodel quantum 100",
        "fq_nocodel quantum 256",
        &["fq_nocodel: quantum: 256b, not 100: as in the kernel"],
    ),
    (
        "fq_codel profile rfc quantum 100 profile linux",
        "fq_codel quantum 256",
        &[
            "fq_codel: quantum: 256b, not 100: as in the kernel",
            "fq_codel: profile: linux, not rfc: as in tc, the last one counts",
        ],
    ),
    (
        "fq offload_horizon 1ms",
        "fq",
        &["fq: offload_horizon: no effect: it concerns local senders; packets here are forwarded"],
    ),
    (
        "fq",
        "fq quantum 3028 initial_quantum 15140 low_rate_threshold 550kbit",
        &[],
    ),
    (
        "fq maxrate 1mbit nopacing",
        "fq",
        &["fq: maxrate: unlimited, not 1mbit: nopacing switches it off, as in the kernel"],
    ),
    (
        "codel target 0.5 interval 1000.7",
        "codel interval 1ms",
        &[
            "codel: target 0.5: tc reads 0.5 as 0us; write 0ms",
            "codel: target 0ms: no effect: tc takes the default, 5ms",
            "codel: interval 1000.7: tc reads 1000.7 as 1000us; write 1ms",
        ],
    ),
    (
        "fq nopacing maxrate 1mbit",
        "fq",
        &["fq: maxrate: unlimited, not 1mbit: nopacing switches it off, as in the kernel"],
    ),
    (
        "fq maxrate 1mbit nopacing pacing",
        "fq maxrate 1mbit pacing",
        &[],
    ),
    (
        "fq pacing nopacing",
        "fq",
        &["fq: pacing: off, not on: as in tc, the last one counts"],
    ),
    (
        "fq profile linux-6.12",
        "fq profile linux-6.12 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 \
             weights 589824 196608 65536",
        &[],
    ),
    (
        "cake rtt 0ms memlimit 0",
        "cake",
        &[
            "cake: rtt 0ms: no effect: tc takes the default, 100ms",
            "cake: memlimit 0: no effect: tc takes the default, max(4 MiB, 4 * bandwidth * rtt), \
                 at most 10240 MTU; 10240 MTU if unlimited",
        ],
    ),
    ("choke max 90", "choke max 90 min 30 burst 50", &[]),
    ("red min 30000", "red min 30000 max 90000 burst 50", &[]),
];

#[test]
fn what_tc_and_the_kernel_change_is_changed_with_a_note() {
    for &(text, same, notes) in CHANGED {
        let resolved = |text| {
            let mut spec = QdiscSpec::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            spec.resolve(&LinkFacts::default());
            spec.to_string()
        };
        assert_eq!(resolved(text), resolved(same), "{text}");
        assert_eq!(QdiscSpec::notes_on(text), notes, "{text}");
    }
    let of_rfc = "fq_codel quantum 100 profile rfc";
    assert_eq!(QdiscSpec::notes_on(of_rfc), Vec::<String>::new());
    assert!(canonical(of_rfc).contains("quantum 100b"));
    // A table, which has no notes, is refused.
    for (kind, pairs, why) in [
        (
            "sfq",
            [("flows", "1024"), ("divisor", "64")],
            "sfq: flows: 64, not 1024: the kernel allows at most divisor",
        ),
        (
            "sfq",
            [("depth", "1000"), ("divisor", "64")],
            "sfq: depth: 127, not 1000: as in the kernel",
        ),
        (
            "fq_codel",
            [("quantum", "100"), ("profile", "linux")],
            "fq_codel: quantum: 256b, not 100: as in the kernel",
        ),
        (
            "pie",
            [("limit", "50"), ("alpha", "0")],
            "pie: alpha 0: no effect: tc takes the default, 2",
        ),
    ] {
        let pairs = pairs.map(|(key, value)| (key.into(), value.into()));
        let read = QdiscSpec::from_pairs(kind, pairs.into_iter());
        let refused = format!("{why}; write that value");
        assert_eq!(read.map_err(|e| e.to_string()), Err(refused));
    }
    let free =
        [("quantum", "100"), ("profile", "rfc")].map(|(key, value)| (key.into(), value.into()));
    assert!(QdiscSpec::from_pairs("fq_codel", free.into_iter()).is_ok());
}

#[test]
fn what_tc_or_the_kernel_refuses_is_refused() {
    for (text, refused) in [
        (
            "cake regional satellite",
            "cake: satellite after regional: tc refuses a second preset of the RTT; expected one of them",
        ),
        (
            "cake lan rtt 20ms lan",
            "cake: lan after lan: tc refuses a second preset of the RTT; expected one of them",
        ),
        (
            "fq_pie ecn_prob 100",
            "fq_pie: ecn_prob 100 is out of range; expected 0 to 99",
        ),
        (
            "choke limit 131072",
            "choke: limit 131072 is out of range; expected 1 to 131071",
        ),
        (
            "red limit 4294967296",
            "red: limit 4294967296 is out of range; expected 1b to 4294967295b",
        ),
        (
            "dualpi2 profile linux typical_rtt 20ms max_rtt 10ms",
            "dualpi2: typical_rtt must not exceed max_rtt",
        ),
        (
            "sfq limit 1",
            "sfq: limit 1 is out of range; expected 2 to 8323072",
        ),
        (
            "fq initial_quantum 2mb",
            "fq: initial_quantum 2mb is out of range; expected 0b to 1048576b",
        ),
        (
            "dualpi2 alpha 0.001",
            "dualpi2: alpha 0.001 is out of range in the kernel; expected 0.00390625 to 65536",
        ),
        (
            "dualpi2 max_rtt 1us",
            "dualpi2: max_rtt 1us makes beta too large, as in tc; raise it",
        ),
        (
            "dualpi2 classic_protection 0.2",
            "dualpi2: tc rounds classic_protection 0.2 to 0; expected 1 to 100",
        ),
        (
            "dualpi2 profile linux max_rtt 100s",
            "dualpi2: max_rtt 100s makes alpha or beta less than 1/256, as in tc; lower it or raise typical_rtt",
        ),
    ] {
        assert_eq!(refusal(text), refused);
    }
}

#[test]
fn words_of_tc_that_are_not_modelled_are_refused_by_name() {
    for (text, refused) in [
        (
            "cake autorate-ingress bandwidth 5mbit",
            "cake: autorate-ingress is not modelled: it changes the rate of the shaper; give the bandwidth",
        ),
        (
            "fq_codel ce_threshold 1ms ce_threshold_selector 0x1",
            "fq_codel: ce_threshold_selector \"0x1\" is not VALUE/MASK; expected VALUE/MASK, two bytes such as 0x1/0x3",
        ),
        (
            "dualpi2 qp_latency_threshold 2ms",
            "dualpi2: qp_latency_threshold requires queue_protection",
        ),
        (
            "sfq redflowlimit 100000",
            "sfq: redflowlimit is not modelled: RED within the slots",
        ),
        (
            "cake ackfilter",
            "cake: unknown parameter \"ackfilter\"; did you mean \"ack-filter\"?",
        ),
        (
            "cake overhead -65",
            "cake: overhead -65 is out of range; expected -64b to 256b",
        ),
        (
            "cake raw overhead 250",
            "cake: raw overhead 250 is overhead 264; expected at most 256",
        ),
        (
            "fq_codel flows 010",
            "fq_codel: flows 010 is octal in tc: 8; write 8; expected 1 to 65536",
        ),
    ] {
        assert_eq!(refusal(text), refused);
    }
    for (kind, key) in [
        ("tbf", "rate, burst"),
        ("hfsc", "rate and burst"),
        ("netem", "delay, jitter, loss, duplicate"),
        ("ets", "prio"),
        ("mq", "queue inside"),
        ("droptail", "pfifo"),
        ("sqm", "sojourn import /etc/config/sqm"),
    ] {
        let refused = refusal(&format!("{kind} limit 100"));
        assert!(
            refused.starts_with(&format!("unknown queue \"{kind}\"; ")),
            "{refused}"
        );
        assert!(
            refused.contains(key) && !refused.contains("did you mean"),
            "{refused}"
        );
    }
}

#[test]
fn in_a_table_no_key_comes_twice_and_times_have_units() {
    let read = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()));
        QdiscSpec::from_pairs("cake", pairs).map_err(|error| error.to_string())
    };
    let twice = "cake: diffserv is given twice".to_owned();
    assert_eq!(
        read(&[("diffserv3", "true"), ("diffserv", "diffserv4")]),
        Err(twice)
    );
    assert_eq!(
        read(&[("rtt", "5000")]),
        Err(
            "cake: rtt \"5000\" is not a time: the unit is missing; write 5000s or 5000ms; \
             expected 1us to 4294967295us"
                .into()
        )
    );
    // Presets first, whatever the order of the keys.
    let raw = read(&[("overhead", "20"), ("raw", "true")]);
    assert_eq!(
        raw.map(|spec| spec.to_string()),
        Ok(canonical("cake raw overhead 20"))
    );
}

#[test]
fn an_alias_is_what_it_stands_for() {
    let parse = |text| QdiscSpec::parse(text).unwrap();
    assert_eq!(parse("ared"), parse("red adaptive"));
    assert_eq!(parse("nlred"), parse("red_ns2 nonlinear"));
    assert_eq!(
        parse("fq_nocodel limit 127"),
        parse("fq_codel limit 127 target 100s noecn")
    );
}

#[test]
fn a_refusal_says_what_would_be_right() {
    assert_eq!(
        refusal("fq_codl"),
        "unknown queue \"fq_codl\"; did you mean \"fq_codel\"?"
    );
    assert!(refusal("xyzzy").starts_with(
        "unknown queue \"xyzzy\"; expected one of pfifo, bfifo, pfifo_head_drop, red,"
    ));
    assert_eq!(
        refusal("codel intervall 100ms"),
        "codel: unknown parameter \"intervall\"; did you mean \"interval\"?"
    );
    assert_eq!(
        refusal("cake dual-srchosts"),
        "cake: unknown parameter \"dual-srchosts\"; did you mean \"dual-srchost\"?"
    );
    assert_eq!(
        refusal("cake framing cells"),
        "cake: framing \"cells\" is unknown; expected one of noatm, atm, ptm"
    );
    assert_eq!(
        refusal("cake docsys"),
        "cake: unknown parameter \"docsys\"; did you mean \"docsis\"?"
    );
    assert_eq!(
        refusal("pfifo 100"),
        "pfifo: unknown parameter \"100\"; expected a parameter name before the value"
    );
    assert_eq!(
        refusal("codel noecn off"),
        "codel: ecn is a flag and does not take the value \"off\"; expected ecn or noecn"
    );
    assert_eq!(
        refusal("predict rtt_min 9ms rtt_max 8ms"),
        "predict: rtt_min 9ms must not exceed rtt_max 8ms"
    );
    assert_eq!(
        refusal("pie alpha 33"),
        "pie: alpha 33 is out of range; expected 0 to 32"
    );
    assert_eq!(
        refusal("fq_codel flows 65537"),
        "fq_codel: flows 65537 is out of range; expected 1 to 65536"
    );
    assert_eq!(
        refusal("pfifo limit"),
        "pfifo: limit needs a value; expected 1 to 100000000"
    );
    assert_eq!(
        refusal("codel profile linux-3.14"),
        "codel: profile \"linux-3.14\" is unknown; expected one of linux, rfc"
    );
    assert_eq!(
        refusal("sfq profile rfc"),
        "sfq: profile \"rfc\" is unknown; expected linux"
    );
    assert_eq!(
        refusal("cocoa profile rfc"),
        "cocoa: profile \"rfc\" is unknown; expected one of paper, linux"
    );
    assert_eq!(
        refusal("floq profile rfc"),
        "floq: profile \"rfc\" is unknown; expected one of paper, kernel"
    );
}

#[test]
fn a_conflict_is_reported_with_its_values() {
    assert_eq!(refusal("red nodrop"), "red: nodrop requires ecn");
    assert_eq!(
        refusal("red probability 1.25"),
        "red: probability 1.25 is out of range; expected > 0 and at most 1"
    );
    assert_eq!(
        refusal("cocoa max_increase 0.5"),
        "cocoa: max_increase 0.5 is out of range; expected 1 to 1000"
    );
    assert_eq!(
        refusal("pie bytemode profile rfc"),
        "pie: bytemode requires profile linux or linux-3.14"
    );
    assert_eq!(
        refusal("red min 30000 max 20000"),
        "red: min 30000B must be positive and below max 20000B"
    );
    assert_eq!(
        refusal("choke limit 20 max 30"),
        "choke: max 30 must not exceed limit 20"
    );
    assert_eq!(
        refusal("choke limit 8"),
        "choke: min 0 must be positive and below max 2"
    );
    assert_eq!(
        refusal("sfq divisor 1000"),
        "sfq: divisor 1000 is not a power of 2"
    );
}

#[test]
fn what_contradicts_itself_is_refused_and_what_only_comes_near_is_not() {
    for (wrong, why, right) in [
        (
            "predict rtt_min 101ms rtt_max 100ms",
            "predict: rtt_min 101ms must not exceed rtt_max 100ms",
            "predict rtt_min 100ms rtt_max 100ms",
        ),
        (
            "predict growth_min 2.3 growth_max 2.3",
            "predict: growth_min 2.3 must be below growth_max 2.3",
            "predict growth_min 2.2 growth_max 2.3",
        ),
        (
            "predict slot 9ms rtt_min 8ms",
            "predict: rtt_min 8ms must not be shorter than slot 9ms",
            "predict slot 8ms rtt_min 8ms",
        ),
        (
            "hred min 0.5 max 0.5",
            "hred: min 0.5 must be below max 0.5",
            "hred min 0.5 max 0.6",
        ),
        (
            "red_ns2 min 9 max 9",
            "red_ns2: min 9 must be below max 9",
            "red_ns2 min 9 max 10",
        ),
        (
            "choke limit 20 max 21",
            "choke: max 21 must not exceed limit 20",
            "choke limit 20 max 20",
        ),
        (
            "pie profile linux nocap",
            "pie: nocap and noderandomise require profile rfc",
            "pie profile rfc nocap noderandomise",
        ),
        (
            "pie profile linux noderandomise",
            "pie: nocap and noderandomise require profile rfc",
            "pie profile linux bytemode dq_rate_estimator",
        ),
    ] {
        assert_eq!(refusal(wrong), why);
        assert!(QdiscSpec::parse(right).is_ok(), "{right}");
    }
}

#[test]
fn typed_values_pass_the_same_checks() {
    let wrong = QdiscSpec::Codel(CodelParams {
        target: Duration::ZERO,
        ..CodelParams::default()
    });
    assert_eq!(
        wrong.validate().unwrap_err().to_string(),
        "codel: target 0ms: no effect: tc takes the default, 5ms; write that value"
    );
    let wrong = QdiscSpec::Codel(CodelParams {
        profile: Profile::Linux314,
        ..CodelParams::default()
    });
    assert!(wrong.validate().is_err());
}

#[test]
fn a_flag_in_a_table_is_true_or_false() {
    let pair = |key: &str, value: &str| std::iter::once((key.to_string(), value.to_string()));
    let on = QdiscSpec::from_pairs("codel", pair("ecn", "true")).unwrap();
    assert_eq!(on, QdiscSpec::parse("codel ecn").unwrap());
    let off = QdiscSpec::from_pairs("fq_codel", pair("ecn", "false")).unwrap();
    assert_eq!(off, QdiscSpec::parse("fq_codel noecn").unwrap());
    assert_eq!(
        QdiscSpec::from_pairs("codel", pair("ecn", "maybe"))
            .unwrap_err()
            .to_string(),
        "codel: ecn \"maybe\" is neither on nor off; expected on or off"
    );
    assert_eq!(
        QdiscSpec::from_pairs("codel", pair("noecn", "true"))
            .unwrap_err()
            .to_string(),
        "codel: unknown parameter \"noecn\"; set ecn = false"
    );
}

/// What could be written after a key, as the catalogue's range has it.
fn values(unit: Unit, default: &str) -> Vec<String> {
    let texts: &[&str] = match unit {
        Unit::Time => &["7ms", "3ms", "500us", "600ms", "90s"],
        Unit::Rate => &["8mbit", "3mbit"],
        Unit::SignedSize(_) => &["18b", "-4b"],
        Unit::Size => &["4000b", "200b", "300b", "20000b", "90000b"],
        Unit::Packets | Unit::Count(_) => &["3", "2", "16", "700", "100"],
        Unit::Fraction | Unit::Weight | Unit::Percent => &["0.25", "1.5", "3", "25%"],
        Unit::Numbers => &[EVEN_AND_ODD, WEIGHTS],
        Unit::Masked => &["0x1/0x3"],
        Unit::Flag => &["on", "off"],
        Unit::Profile => &["linux", "linux-3.14", "linux-6.12", "rfc", "kernel"],
        Unit::Choice(words) => words,
        Unit::Leaves => &["sfq limit 9 depth 127 flows 128 divisor 1024"],
        Unit::Word(_) => &["a"],
        Unit::Entries(_) => &[CLASSES, FILTERS],
        unit => panic!("no value of {unit:?} here"),
    };
    let others = texts.iter().filter(|&&text| text != default);
    others.map(ToString::to_string).collect()
}

/// What some parameters need beside them.
const COMPANY: &str = "; ecn; profile rfc; profile linux; profile linux-6.12; limit 60000 min 2000; \
                       queue_protection; ce_threshold 1ms; classes (name a rate 8mbit)";

#[test]
fn every_parameter_can_be_set_and_is_read_back() {
    let mut lost = Vec::new();
    for kind in catalogue() {
        for p in &kind.parameters {
            // Becomes target, tupdate, alpha and beta.
            let derives = p.key == "typical_rtt";
            if derives || p.unit == Unit::Profile && kind.profiles.len() == 1 {
                continue;
            }
            let kept = |value: &String| {
                COMPANY.split(';').any(|company| {
                    let text = match (p.unit, value.as_str()) {
                        (Unit::Flag, "on") => format!("{} {company} {}", kind.name, p.key),
                        (Unit::Flag, _) => format!("{} {company} no{}", kind.name, p.key),
                        _ => format!("{} {company} {} {value}", kind.name, p.key),
                    };
                    QdiscSpec::parse(&text)
                        .is_ok_and(|spec| spec.pairs().contains(&(p.key, value.clone())))
                })
            };
            let mut values = values(p.unit, &p.default);
            values.extend((p.range == p.default).then(|| p.default.clone()));
            if !values.iter().any(kept) {
                lost.push((kind.name, p.key, values));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn a_word_of_tc_in_a_table_is_true() {
    let read = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()));
        QdiscSpec::from_pairs("cake", pairs)
    };
    let given = read(&[
        ("diffserv4", "true"),
        ("docsis", "true"),
        ("overhead", "20"),
    ]);
    assert_eq!(given, QdiscSpec::parse("cake diffserv4 docsis overhead 20"));
}

#[test]
fn a_refused_leaf_is_named_by_its_place() {
    assert_eq!(
        refusal("prio leaf pie / codel tarqet 5ms / pfifo"),
        "prio: leaf 2: codel: unknown parameter \"tarqet\"; did you mean \"target\"?"
    );
    assert_eq!(
        refusal("prio leaf pie / (drr leaf codel / pie alpha 33)"),
        "prio: leaf 2: drr: leaf 2: pie: alpha 33 is out of range; expected 0 to 32"
    );
    assert_eq!(
        refusal("prio leaf codel /"),
        "prio: leaf has no queue at position 2 of 2; expected queues separated by /"
    );
}
