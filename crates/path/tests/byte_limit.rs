//! Byte queue limits against those of Linux 6.1.192.
//!
//! `data/byte_limit.json` has what `lib/dynamic_queue_limits.c`, compiled as a program, answered to random sequences of
//! packets and completions: five rings with full frames, mixed sizes, idle times and partial completions.

use serde::Deserialize;
use sojourn_net::Instant;
use sojourn_path::links::ByteLimit;

#[derive(Deserialize)]
struct Recorded {
    sequences: Vec<Sequence>,
}

#[derive(Deserialize)]
struct Sequence {
    name: String,
    /// Time in ms and bytes; of a completion, also the limit after it.
    events: Vec<Vec<u64>>,
}

#[test]
fn the_limit_after_each_completion_is_that_of_linux() {
    let recorded: Recorded =
        serde_json::from_str(include_str!("data/byte_limit.json")).expect("valid JSON");
    let (mut raised, mut lowered) = (0, 0);
    for Sequence { name, events } in recorded.sequences {
        let mut limit = ByteLimit::default();
        for event in events {
            match event[..] {
                [_, bytes] => {
                    assert!(limit.permits(), "{name}: {event:?}");
                    limit.on_queued(bytes);
                }
                [ms, bytes, expected] => {
                    let before = limit.bytes();
                    limit.on_completed(Instant::from_millis(ms), bytes);
                    assert_eq!(limit.bytes(), expected, "{name}: {event:?}");
                    raised += usize::from(expected > before);
                    lowered += usize::from(expected < before);
                }
                _ => panic!("{name}: {event:?} is neither a packet nor a completion"),
            }
        }
    }
    assert!(raised > 20 && lowered > 5, "{raised} {lowered}");
}
