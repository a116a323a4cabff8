//! Several time-outs in a row reduce the threshold once per episode.

mod path;

use path::Path;
use sojourn_net::{Duration, Rate};
use sojourn_transport::CcKind;

/// The threshold after each of `timeouts` time-outs of a connection whose segments are all lost from
/// the 400th on.
fn thresholds(cc: CcKind, timeouts: u32) -> Vec<u32> {
    let mut path = Path::new(cc, Duration::from_millis(50), Rate::mbit(1_000));
    let mut loss = |n| n >= 400;
    let mut seen = Vec::new();
    while path.sender.counters().timeouts < timeouts {
        let before = path.sender.counters().timeouts;
        path.step(&mut loss);
        if path.sender.counters().timeouts > before {
            seen.extend(path.sender.ssthresh());
        }
    }
    seen
}

#[test]
fn a_time_out_after_another_keeps_the_threshold() {
    for cc in [CcKind::Reno, CcKind::Cubic, CcKind::Dctcp] {
        let seen = thresholds(cc, 4);
        assert_eq!(seen.len(), 4, "{cc}: {seen:?}");
        assert!(seen[0] >= 20, "{cc}: {seen:?}");
        assert!(seen.iter().all(|&s| s == seen[0]), "{cc}: {seen:?}");
    }
    // tcp_prague 0.7 sets the threshold only as its window comes down with acknowledgements.
    assert!(thresholds(CcKind::Prague, 4).is_empty());
}

#[test]
fn a_first_sack_with_a_cumulative_acknowledgement_is_no_reordering() {
    const RTT: Duration = Duration::from_millis(100);
    // Every second segment is acknowledged: before one of two neighbours a segment waits for its acknowledgement,
    // which comes with the first SACK.
    for at in 200..204 {
        let mut path = Path::new(CcKind::Reno, RTT, Rate::mbit(10_000));
        let mut lost_at = None;
        while path.sender.ssthresh().is_none() {
            path.step(&mut |n| n == at);
            if lost_at.is_none() && path.offered() > at {
                lost_at = Some(path.now);
            }
        }
        let took = path.now.since(lost_at.expect("it was sent"));
        // The third SACK, and no quarter of the round trip for reordering.
        assert!(took < RTT + Duration::from_millis(5), "{at}: {took}");
    }
}
