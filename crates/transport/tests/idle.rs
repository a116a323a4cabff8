//! What becomes of the window in a pause of a connection.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod middlebox;

use middlebox::{Lab, Rule, Scenario, What};
use sojourn_transport::{AfterIdle, CcKind, Sender};

/// 200 segments, a pause until 3 s, 200 more; how many of these leave at once, and the sender then.
fn resumed(after_idle: AfterIdle, rules: &'static [Rule]) -> (usize, Sender) {
    let mut scenario = Scenario::new("idle", &[(0, 289_600), (3_000, 289_600)], rules);
    scenario.cc = CcKind::Reno;
    scenario.after_idle = after_idle;
    scenario.seconds = 6;
    let (log, client) = Lab::run(&scenario);
    let at_once = log.iter().filter(|frame| {
        let data = matches!(frame.what, What::Data { .. });
        data && (3_000.0..3_050.0).contains(&frame.ms)
    });
    (at_once.count(), client)
}

#[test]
fn a_window_decays_restarts_or_stays() {
    let [decayed, restarted, kept] = AfterIdle::ALL.map(|after| resumed(after, &[]));
    // Eight time-outs of 0.3 s have passed.
    assert_eq!((decayed.0, restarted.0), (10, 10));
    assert!(kept.0 >= 100, "{}", kept.0);
    // Nothing was lost: there is no threshold to slow start.
    for (_, client) in [decayed, restarted, kept] {
        assert_eq!(client.ssthresh(), None);
        assert!(client.cwnd() > 150, "{}", client.cwnd());
    }
}

#[test]
fn no_pause_lowers_the_threshold() {
    // One loss in the first transfer sets a threshold; another after the pause would halve it.
    let loss = &[Rule::Drop {
        from: 60,
        to: 60,
        times: 1,
    }];
    let before = Lab::run(&Scenario {
        cc: CcKind::Reno,
        ..Scenario::new("no pause", &[(0, 289_600)], loss)
    })
    .1;
    let threshold = before.ssthresh().unwrap();
    for after_idle in AfterIdle::ALL {
        let (_, client) = resumed(after_idle, loss);
        assert!(client.ssthresh().unwrap() >= threshold, "{after_idle}");
        assert!(client.cwnd() >= threshold, "{after_idle}");
    }
}
