//! Any text is refused in one line, or read as a scenario that survives being written.
//!
//! `make soak` continues with other seeds, `make fuzz` with a fuzzer.

use std::panic::catch_unwind;

use sojourn_net::Rng;

mod support;

use support::check_text;

const CASES: u32 = 4_000;

/// The longest range that one mutation removes or copies.
const LONGEST_RANGE: u64 = 40;

const TRACE: &str = "duration = \"1s\"\n[links.up]\ntrace = { gaps_ms = \"1 2x10\" }\nqdisc = \"pfifo\"\n\
    [[traffic]]\ntype = \"ping\"\npath = [\"up\"]\nrtt = \"9ms\"\n";

const PROGRAM: &str = "duration = \"1s\"\n[links.up]\nrate = \"1mbit\"\nqdisc = \"pfifo\"\n[[traffic]]\n\
    type = \"program\"\npath = [\"up\"]\nrtt = \"9ms\"\ncommand = [\"a\", \"$SOJOURN_SERVER\"]\nserver = [\"b\"]\n";

const WORDS: [&str; 30] = [
    "\n",
    "\"",
    "'''",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    "0",
    "-1",
    "1e308",
    "nan",
    "inf",
    "true",
    "9223372036854775808",
    "0s",
    "1ns",
    "584y",
    "100%",
    "1tbit",
    "\\u0000",
    "\u{1b}",
    "[links.up]\n",
    "[[traffic]]\n",
    "fq_codel",
    "traffic[0]",
];

const VALUES: [&str; 14] = [
    "0",
    "1",
    "-1",
    "1e308",
    "nan",
    "true",
    "\"\"",
    "\"1ns\"",
    "\"3s\"",
    "\"100kbit\"",
    "\"tcp\"",
    "\"fq_codel target 1ms\"",
    "[\"up\"]",
    "[{}]",
];

/// `original` after one or two random mutations.
fn mutated(rng: &mut Rng, original: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=rng.below(2) {
        let start = index_below(rng, bytes.len() + 1);
        let end = bytes.len().min(start + below(rng, LONGEST_RANGE));
        let word = WORDS[index_below(rng, WORDS.len())];
        match rng.below(16) {
            0 => bytes.truncate(start),
            1 => drop(bytes.drain(start..end)),
            2 => {
                let copy = bytes[start..end].to_vec();
                let to = index_below(rng, bytes.len() + 1);
                drop(bytes.splice(to..to, copy));
            }
            3 | 4 => drop(bytes.splice(start..end, word.bytes())),
            5 => drop(bytes.splice(start..start, word.bytes())),
            6 => {
                if let Some(byte) = bytes.get_mut(start) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            7 => {
                if let Some(byte) = bytes.get_mut(start) {
                    *byte = rng.next_u32().to_le_bytes()[3];
                }
            }
            _ => replace_value(rng, &mut bytes),
        }
    }
    bytes
}

/// Replaces the value of a random key by another: most other mutations are no TOML.
fn replace_value(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let is_value = |at: &usize| bytes[..*at].ends_with(b" = ");
    let places: Vec<usize> = (0..bytes.len()).filter(is_value).collect();
    if places.is_empty() {
        return;
    }
    let start = places[index_below(rng, places.len())];
    let length = bytes[start..].iter().position(|b| b",\n".contains(b));
    let end = start + length.unwrap_or(bytes.len() - start);
    let value = VALUES[index_below(rng, VALUES.len())];
    drop(bytes.splice(start..end, value.bytes()));
}

fn index_below(rng: &mut Rng, count: usize) -> usize {
    below(rng, count as u64)
}

fn below(rng: &mut Rng, bound: u64) -> usize {
    usize::try_from(rng.below(bound)).expect("a small bound")
}

#[test]
fn mutated_scenarios_are_refused_in_one_line_or_survive_being_written() {
    let seed = std::env::var("SOJOURN_SOAK_SEED").map_or(0, |seed| {
        seed.parse().expect("SOJOURN_SOAK_SEED is a number")
    });
    let mut rng = Rng::new(seed).fork("scenario");
    let (mut read, mut refused) = (0, 0);
    for n in 0..CASES {
        let original = match n % 8 {
            0 | 4 => TRACE,
            1 => PROGRAM,
            _ => include_str!("full.toml"),
        };
        let bytes = mutated(&mut rng, original.as_bytes());
        let text = String::from_utf8_lossy(&bytes);
        let checked = catch_unwind(|| check_text(&text));
        let was_read = checked.unwrap_or_else(|_| panic!("seed {seed}, case {n}:\n{text}"));
        *if was_read { &mut read } else { &mut refused } += 1;
    }
    // Else nothing was tried.
    assert!(
        read > CASES / 50 && refused > CASES / 4,
        "{read} read, {refused} refused"
    );
}
