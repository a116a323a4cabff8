//! The model does what the kernel did, packet by packet.
//!
//! Each test replays a scenario of `micro/` (see its README): one connection through a scripted
//! middlebox that delays, drops, holds or marks chosen segments. Every frame of the kernel's log
//! must be sent by the model too, in the same order, at the same time, with the same sequence or
//! acknowledgement number, PSH flag and SACK blocks.
//!
//! The congestion window must change as the kernel's, which `tests/vectors/windows` has; the reader of these files
//! compares.
//!
//! The phase of the kernel's timer wheel relative to the connection is given for each run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod middlebox;
#[expect(unreachable_pub, reason = "a file for use in other programs")]
#[path = "../../../tests/vectors/readers/windows.rs"]
mod reader;

use std::collections::BTreeMap;
use std::path::Path;

use middlebox::{Frame, Lab, Rule, Scenario, What};
use serde_json::Value;
use sojourn_net::Duration;
use sojourn_transport::{CcKind, MSS};

/// Segments after which the kernel's send buffer has cut a burst in two, which the model's never
/// does: the bursts from there on, and so the pushes, differ.
const CUT: u64 = 44;

impl What {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Data { offset, len, .. },
                Self::Data {
                    offset: o, len: l, ..
                },
            ) if *offset >= CUT * u64::from(MSS) => offset == o && len == l,
            (a, b) => a == b,
        }
    }
}

/// Reads the kernel's log, up to the server's own FIN: it has none in the model.
fn kernel(scenario: &Scenario) -> Vec<Frame> {
    let name = scenario.name;
    let path = format!("{}/tests/micro/{name}.pk", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut frames = Vec::new();
    let mut next_offset = 0;
    let mut starts: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let ms: f64 = words.next().unwrap().parse().unwrap();
        let (way, flags) = (words.next().unwrap(), words.next().unwrap());
        let words: Vec<&str> = words.collect();
        let after = |key: &str| {
            let at = words.iter().position(|w| *w == key).unwrap();
            words[at + 1]
        };
        let what = if way == "C>S" {
            let len: u16 = after("len").parse().unwrap();
            if flags.contains('S') {
                What::Syn
            } else if len == 0 && (!flags.contains('F') || !scenario.close) {
                // Not data; or the FIN of a client that closes when the log ends.
                continue;
            } else {
                // Segments are numbered by whole ones; the stream is contiguous at first sight.
                let key = format!("{} {len}", after("seq"));
                if !starts.contains_key(&key) {
                    starts.insert(key.clone(), next_offset);
                    next_offset += u64::from(len);
                }
                What::Data {
                    offset: starts[&key],
                    len,
                    push: flags.contains('P'),
                }
            }
        } else {
            if flags.contains('S') {
                frames.push(Frame {
                    ms,
                    what: What::SynAck,
                });
                continue;
            }
            if flags.contains('F') {
                break;
            }
            let bytes = |text: &str| {
                let number: u64 = text.trim_matches(&['<', '>'][..]).parse().unwrap();
                if text.starts_with('<') {
                    number * u64::from(MSS)
                } else {
                    number - 1
                }
            };
            let sacks = words.iter().filter(|w| w.starts_with('['));
            What::Ack {
                bytes: bytes(words[1]),
                sacks: sacks.map(|block| sack(block)).collect(),
                ece: flags.contains('E'),
            }
        };
        frames.push(Frame { ms, what });
    }
    frames
}

/// `[16-18)` in whole segments, `[14481:14482)` in sequence numbers.
fn sack(block: &str) -> (u64, u64) {
    let inner = block.trim_start_matches('[').trim_end_matches(')');
    let (parts, scale, shift) = match inner.split_once('-') {
        Some(parts) => (parts, u64::from(MSS), 0),
        None => (inner.split_once(':').unwrap(), 1, 1),
    };
    let bytes = |text: &str| text.parse::<u64>().unwrap() * scale - shift;
    (bytes(parts.0), bytes(parts.1))
}

/// A microsecond here and there while the kernel works: a tenth of a millisecond per round trip.
fn tolerance_ms(ms: f64) -> f64 {
    0.4 + ms / 1_000.0
}

/// Compares both logs, frame by frame, for each end separately.
fn check(scenario: &Scenario) {
    let lab = Lab::run_to_end(scenario);
    let (ours, theirs) = (lab.log, kernel(scenario));
    let is_client = |f: &&Frame| matches!(f.what, What::Syn | What::Data { .. });
    let (of_client, of_server) = scenario.frames;
    println!(
        "\n# packet_logs\n| log | control | frames of the client | to, s | frames of the server | to, s |"
    );
    println!("|---|---|---|---|---|---|");
    print!("| `{}` | `{}` |", scenario.name, scenario.cc);
    let mut compared_to = f64::MAX;
    for (end, client, count) in [("client", true, of_client), ("server", false, of_server)] {
        let of = |log: &[Frame]| -> Vec<Frame> {
            let frames = log.iter().filter(|f| is_client(f) == client);
            frames.take(count).cloned().collect()
        };
        let all = theirs.iter().filter(|f| is_client(f) == client).count();
        let (ours, theirs) = (of(&ours), of(&theirs));
        let to = theirs.last().map_or(0.0, |f| f.ms / 1_000.0);
        if count < all {
            compared_to = compared_to.min(1_000.0 * to);
        }
        print!(" {} of {all} | {to:.2} |", theirs.len());
        let agree = |n: usize| match (ours.get(n), theirs.get(n)) {
            (Some(a), Some(b)) => a.what.is(&b.what) && (a.ms - b.ms).abs() < tolerance_ms(b.ms),
            (a, b) => a.is_none() && b.is_none(),
        };
        let differs = (0..ours.len().max(theirs.len())).find(|&n| !agree(n));
        if let Some(n) = differs {
            let around = |log: &[Frame]| {
                let lines = log.iter().enumerate().take(n + 5).skip(n.saturating_sub(8));
                let lines = lines.map(|(k, f)| {
                    let mark = if k == n { '>' } else { ' ' };
                    format!("{mark} {:10.3} {:?}", f.ms, f.what)
                });
                lines.collect::<Vec<_>>().join("\n")
            };
            let name = scenario.name;
            panic!(
                "{name}: frame {n} of the {end} differs\nmodel:\n{}\nkernel:\n{}",
                around(&ours),
                around(&theirs)
            );
        }
    }
    println!();
    check_windows(scenario, &lab.windows, compared_to);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time of a run, or the largest number"
)]
fn micros(ms: f64) -> u64 {
    (1_000.0 * ms).round() as u64
}

/// Compares the windows of the kernel, sampled every millisecond, with ours up to a time.
fn check_windows(scenario: &Scenario, ours: &[(f64, u32, Option<u32>)], to: f64) {
    let name = scenario.name;
    let file = format!("../../tests/vectors/windows/{name}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let vector: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(vector["schema"], "sojourn-window-vector/1");
    assert_eq!(vector["control"], scenario.cc.name());
    let events = vector["events"].as_array().unwrap().iter();
    let windows = events.filter(|event| event[1] == "window");
    let number = |value: &Value| value.as_u64().unwrap();
    let kernel: Vec<reader::Window> = windows
        .map(|event| (number(&event[0]), number(&event[2]), event[3].as_u64()))
        .collect();
    let ours: Vec<reader::Window> = ours
        .iter()
        .map(|&(ms, cwnd, ssthresh)| (micros(ms), cwnd.into(), ssthresh.map(u64::from)))
        .collect();
    assert_eq!(reader::check(&kernel, &ours, micros(to)), None, "{name}");
    let compared = kernel.iter().filter(|row| row.0 <= micros(to)).count();
    assert!(compared > 1, "{name}: {compared} windows");
}

#[test]
fn m1_start() {
    // The 10 Mbit/s start: also the first part of M5's log.
    check(&Scenario {
        mbit: Some(10),
        frames: (24, 24),
        ..Scenario::new("burst", &[(0, 289_600)], &[])
    });
}

#[test]
fn m2_three_syns_lost() {
    check(&Scenario {
        seconds: 18,
        ..Scenario::new("syn3", &[(0, 14_480)], &[Rule::DropSyns(3)])
    });
}

#[test]
fn m3_two_syn_acks_lost() {
    check(&Scenario {
        seconds: 8,
        ..Scenario::new("synack2", &[(0, 14_480)], &[Rule::DropSynAcks(2)])
    });
}

const LOSE_15: Rule = Rule::Drop {
    from: 15,
    to: 15,
    times: 1,
};

#[test]
fn m4_one_loss_in_a_window_of_twenty() {
    check(&Scenario::new("one20nr", &[(0, 144_800)], &[LOSE_15]));
}

#[test]
fn m4_one_loss_behind_a_bottleneck() {
    check(&Scenario {
        mbit: Some(10),
        frames: (78, 51),
        ..Scenario::new("one20", &[(0, 144_800)], &[LOSE_15])
    });
}

#[test]
fn m5_a_burst_of_ten_lost() {
    let rules = &[Rule::Drop {
        from: 40,
        to: 49,
        times: 1,
    }];
    check(&Scenario {
        mbit: Some(10),
        seconds: 4,
        frames: (119, 66),
        ..Scenario::new("burst", &[(0, 289_600)], rules)
    });
}

#[test]
fn m6_the_retransmission_is_lost() {
    let rules = &[Rule::Drop {
        from: 15,
        to: 15,
        times: 2,
    }];
    check(&Scenario {
        frames: (140, 24),
        ..Scenario::new("lrt", &[(0, 289_600)], rules)
    });
}

#[test]
fn m7_tail_loss_of_three() {
    let rules = &[Rule::Drop {
        from: 7,
        to: 9,
        times: 1,
    }];
    check(&Scenario::new("tlp3", &[(0, 14_480)], rules));
}

#[test]
fn m7_the_whole_first_window_is_lost_twice() {
    let rules = &[Rule::Drop {
        from: 0,
        to: 9,
        times: 2,
    }];
    check(&Scenario {
        seconds: 6,
        ..Scenario::new("tlpw", &[(0, 14_480)], rules)
    });
}

#[test]
fn m8_a_black_hole_after_ten_segments() {
    check(&Scenario {
        seconds: 60,
        ..Scenario::new("rto", &[(0, 144_800)], &[Rule::DropAfter(10)])
    });
}

#[test]
fn m9_the_last_segment_is_lost_before_the_fin() {
    let rules = &[Rule::Drop {
        from: 9,
        to: 9,
        times: 1,
    }];
    check(&Scenario {
        close: true,
        ..Scenario::new("tlp1", &[(0, 14_480)], rules)
    });
}

#[test]
fn m10_reordering_by_five_milliseconds() {
    let rules = &[Rule::Hold {
        from: 15,
        to: 15,
        ms: 5,
    }];
    check(&Scenario {
        frames: (81, 22),
        ..Scenario::new("reord", &[(0, 289_600)], rules)
    });
}

#[test]
fn m10_reordering_by_twenty_milliseconds() {
    let rules = &[Rule::Hold {
        from: 15,
        to: 15,
        ms: 20,
    }];
    check(&Scenario {
        frames: (80, 22),
        ..Scenario::new("reord2", &[(0, 289_600)], rules)
    });
}

#[test]
fn m11_eight_acks_lost() {
    let rules = &[Rule::DropAcks { from: 11, to: 18 }];
    check(&Scenario {
        frames: (usize::MAX, 18),
        ..Scenario::new("acks", &[(0, 144_800)], rules)
    });
}

#[test]
fn m12_a_delay_spike_of_a_second() {
    let rules = &[Rule::Hold {
        from: 10,
        to: 29,
        ms: 1_000,
    }];
    check(&Scenario {
        seconds: 4,
        frames: (usize::MAX, 33),
        ..Scenario::new("frto", &[(0, 144_800)], rules)
    });
}

#[test]
fn m14_idle_restart() {
    check(&Scenario {
        mbit: Some(10),
        seconds: 8,
        frames: (usize::MAX, 265),
        ..Scenario::new("idle", &[(0, 289_600), (3_000, 289_600)], &[])
    });
}

#[test]
fn m15_one_ce_mark() {
    check(&Scenario {
        mbit: Some(10),
        ecn: true,
        frames: (106, 76),
        ..Scenario::new("ecn", &[(0, 434_400)], &[Rule::MarkCe(20)])
    });
}

#[test]
fn m16_single_writes() {
    const WRITES: [(u64, u64); 17] = [
        (0, 100),
        (500, 1_448),
        (1_000, 1_448),
        (1_100, 1_448),
        (1_200, 1_448),
        (2_000, 28_960),
        (3_000, 1_448),
        (3_030, 1_448),
        (3_060, 1_448),
        (3_090, 1_448),
        (4_000, 72_400),
        (5_000, 1_448),
        (5_100, 1_448),
        (5_200, 1_448),
        (5_300, 1_448),
        (5_400, 1_448),
        (5_500, 1_448),
    ];
    check(&Scenario {
        seconds: 10,
        ..Scenario::new("delack", &WRITES, &[])
    });
}

#[test]
fn m18_bbr() {
    check(&Scenario {
        mbit: Some(10),
        cc: CcKind::Bbr,
        // Then the window of STARTUP is full, and the kernel defers a segment; an ACK before
        // that one is sent alone there and in a pair here.
        frames: (210, 131),
        one_way: Duration::from_micros(25_050),
        ..Scenario::new("bbr", &[(0, 20_000_000)], &[])
    });
}
