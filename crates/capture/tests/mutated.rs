//! Damaged captures end in one line or are read as far as they go, in bounded memory and time.
//!
//! `make soak` continues with other seeds.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod making;

use std::fs;

use making::{ACK, File, Packet, SYN, pcap, pcapng, tcp, udp_v6};
use sojourn_capture::analysis::Analysis;
use sojourn_net::Rng;

const CASES: u32 = 10_000;
/// What the process may take beyond what it has after the first case. A length field of a damaged file must not
/// reserve memory: a packet may state 256 KiB, and a block 16 MiB.
const MOST_GROWTH_KB: u64 = 64 << 10;
/// A packet takes at least this many bytes of a file.
const LEAST_PACKET_BYTES: usize = 16;
const LONGEST_LINE: usize = 200;

/// Numbers that formats treat in a special way: type codes, limits of lengths, and signs.
const WORDS: [u32; 14] = [
    0,
    1,
    3,
    6,
    16,
    0xFFFF,
    0x0004_0000,
    0x0100_0000,
    0x0100_0001,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x0A0D_0D0A,
    0x1A2B_3C4D,
];

/// A connection, datagrams, and packets that were dropped from a queue.
fn packets() -> Vec<Packet> {
    let mut found = vec![
        tcp(0, false, 100, 0, SYN, 0),
        tcp(10, true, 900, 101, SYN | ACK, 0),
        tcp(11, false, 101, 901, ACK, 0),
    ];
    for number in 0..20 {
        // Every fifth segment is resent.
        let seq = 101 + 1_000 * (number - u32::from(number % 5 == 4));
        found.push(tcp(20 + 10 * number, false, seq, 901, ACK, 1_000));
        found.push(tcp(25 + 10 * number, true, 901, seq, ACK, 0));
        found.push(Packet {
            at_ms: 26 + 10 * number,
            id: Some(number.into()),
            comment: Some("dropped: codel aqm"),
            ..udp_v6(26 + 10 * number, 100, 1)
        });
    }
    found
}

fn originals() -> Vec<Vec<u8>> {
    let packets = packets();
    let mut found = Vec::new();
    for (big_endian, link_type) in [(false, 101), (true, 1), (false, 276)] {
        let file = File {
            big_endian,
            link_type,
            ..File::default()
        };
        found.push(pcap(&packets, &file));
        found.push(pcapng(&packets, &["up.enq"], &file));
    }
    found
}

fn index_below(rng: &mut Rng, limit: usize) -> usize {
    let limit = u64::try_from(limit).unwrap();
    usize::try_from(rng.below(limit)).unwrap()
}

/// `original` with up to six changes, and in one of four cases cut.
fn mutated(rng: &mut Rng, original: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=rng.below(6) {
        // Most headers of a file and of its first packets are at its begin.
        let reach = if rng.below(2) == 0 { 200 } else { bytes.len() };
        let at = index_below(rng, reach.min(bytes.len()));
        match rng.below(4) {
            0 => bytes[at] = rng.next_u64().to_le_bytes()[0],
            1 => bytes[at] ^= 1 << rng.below(8),
            2 => {
                let word = WORDS[index_below(rng, WORDS.len())].to_le_bytes();
                let end = bytes.len().min(at / 4 * 4 + 4);
                let range = at / 4 * 4..end;
                let length = range.len();
                bytes[range].copy_from_slice(&word[..length]);
            }
            _ => {
                let end = bytes.len().min(at + index_below(rng, 64));
                let copied = bytes[at..end].to_vec();
                if rng.below(2) == 0 {
                    bytes.splice(at..at, copied);
                } else {
                    bytes.drain(at..end);
                }
            }
        }
        if bytes.is_empty() {
            return bytes;
        }
    }
    if rng.below(4) == 0 {
        bytes.truncate(index_below(rng, bytes.len()));
    }
    bytes
}

/// Reads a file in parts; returns the line that refuses it.
fn read(rng: &mut Rng, bytes: &[u8]) -> Option<String> {
    let mut analysis = Analysis::default();
    let part = 1 + index_below(rng, 2 * bytes.len().max(1));
    for part in bytes.chunks(part) {
        if let Err(damage) = analysis.feed(part) {
            return Some(damage.to_string());
        }
    }
    match analysis.finish() {
        Ok(found) => {
            assert!(found.packets.at.len() <= bytes.len() / LEAST_PACKET_BYTES);
            assert!(found.packets.at.len() >= found.connections.len());
            None
        }
        Err(damage) => Some(damage.to_string()),
    }
}

/// The most memory that the process has had, where Linux tells.
fn peak_kb() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn ten_thousand_damaged_captures_end_in_one_line_in_bounded_memory() {
    let originals = originals();
    let seed = std::env::var("SOJOURN_SOAK_SEED").map_or(0, |seed| seed.parse().unwrap());
    let mut rng = Rng::new(seed).fork("captures");
    for original in &originals {
        assert_eq!(read(&mut rng, original), None);
    }
    let before = peak_kb();
    let mut refused = 0;
    for case in 0..CASES {
        let original = &originals[index_below(&mut rng, originals.len())];
        let bytes = mutated(&mut rng, original);
        if let Some(line) = read(&mut rng, &bytes) {
            let is_one_line = line.starts_with("byte ") && !line.contains('\n');
            assert!(
                is_one_line && line.len() <= LONGEST_LINE,
                "seed {seed}, case {case}: {line:?}"
            );
            refused += 1;
        }
    }
    assert!(
        refused > CASES / 10 && refused < CASES * 9 / 10,
        "{refused} of {CASES} refused"
    );
    if let (Some(before), Some(after)) = (before, peak_kb()) {
        let growth = after - before;
        assert!(growth < MOST_GROWTH_KB, "{growth} kB");
    }
}
