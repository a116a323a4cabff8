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
    for cc in [CcKind::Reno, CcKind::Cubic, CcKind::Dctcp, CcKind::Prague] {
        let seen = thresholds(cc, 4);
        assert_eq!(seen.len(), 4, "{cc}: {seen:?}");
        assert!(seen[0] >= 20, "{cc}: {seen:?}");
        assert!(seen.iter().all(|&s| s == seen[0]), "{cc}: {seen:?}");
    }
}
