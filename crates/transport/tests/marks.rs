//! Responses to CE marks that differ from the kernel.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod middlebox;

use middlebox::{Lab, Rule, Scenario, What};
use sojourn_transport::{CcKind, OnCe, Sender};

/// Two marks: one in slow start, one in a later round of the same connection.
fn run(on_ce: OnCe, rules: &'static [Rule]) -> (usize, Sender) {
    run_control(CcKind::Reno, on_ce, rules)
}

fn run_control(cc: CcKind, on_ce: OnCe, rules: &'static [Rule]) -> (usize, Sender) {
    let scenario = Scenario {
        cc,
        ecn: true,
        on_ce,
        ..Scenario::new("marks", &[(0, 434_400)], rules)
    };
    let (log, client) = Lab::run(&scenario);
    let echoes = log
        .iter()
        .filter(|frame| matches!(frame.what, What::Ack { ece: true, .. }));
    (echoes.count(), client)
}

#[test]
fn a_mark_in_slow_start_ends_it_without_reduction() {
    let first = &[Rule::MarkCe(20)];
    let (_, client) = run(OnCe::Reduce, first);
    let halved = client.ssthresh().unwrap();
    for on_ce in [OnCe::EndSlowStart, OnCe::EndSlowStartOnly] {
        let (echoes, client) = run(on_ce, first);
        let ssthresh = client.ssthresh().unwrap();
        assert_eq!(ssthresh / 2, halved, "{on_ce}");
        assert!(client.cwnd() > ssthresh, "{on_ce}: {}", client.cwnd());
        // The echo ends when CWR arrives, a round later.
        assert!((2..40).contains(&echoes), "{on_ce}: {echoes}");
    }
}

#[test]
fn a_later_mark_is_ignored_or_reduces_to_four_fifths() {
    let both = &[Rule::MarkCe(20), Rule::MarkCe(120)];
    let (echoes, client) = run(OnCe::EndSlowStartOnly, both);
    let unmoved = client.ssthresh().unwrap();
    let (_, client) = run(OnCe::EndSlowStartOnly, &[Rule::MarkCe(20)]);
    assert_eq!(client.ssthresh(), Some(unmoved));
    assert!(echoes < 80, "{echoes}");
    let (_, client) = run(OnCe::EndSlowStart, both);
    let reduced = client.ssthresh().unwrap();
    // The window had grown by one segment per round for a few rounds.
    let gentle = unmoved * 4 / 5..=(unmoved + 4) * 4 / 5;
    assert!(gentle.contains(&reduced), "{reduced}, not {gentle:?}");
}

#[test]
fn alternative_backoff_reduces_less_in_congestion_avoidance_and_as_a_loss_in_slow_start() {
    let (first, both) = (&[Rule::MarkCe(20)], &[Rule::MarkCe(20), Rule::MarkCe(120)]);
    for (cc, percent) in [(CcKind::Reno, 80), (CcKind::Cubic, 85)] {
        let ssthresh = |on_ce, rules| run_control(cc, on_ce, rules).1.ssthresh().unwrap();
        // The first mark is in slow start.
        let after_first = ssthresh(OnCe::Reduce, first);
        assert_eq!(ssthresh(OnCe::Abe, first), after_first, "{cc}");
        let (reduced, gentle) = (ssthresh(OnCe::Reduce, both), ssthresh(OnCe::Abe, both));
        // Both runs have the same window at the second mark: cwnd * 0.5 or 0.7 and cwnd * beta_ecn, rounded down.
        let by_loss = if cc == CcKind::Reno { 50..=50 } else { 69..=71 };
        let windows = reduced * 100 / by_loss.end()..=(reduced + 1) * 100 / by_loss.start();
        let possible = windows.map(|cwnd| cwnd * percent / 100).collect::<Vec<_>>();
        assert!(
            possible.contains(&gentle),
            "{cc}: {gentle}, not of {possible:?}"
        );
        assert!(gentle > reduced, "{cc}");
    }
}
