//! The congestion window after an idle period.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod middlebox;

use middlebox::{Lab, Rule, Scenario, What};
use sojourn_transport::{AfterIdle, CcKind, Sender};

/// 200 segments, a pause until 3 s, 200 more. Returns how many of these are sent immediately, and the
/// sender at that time.
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
    let [decayed, restarted, kept, validated] = AfterIdle::ALL.map(|after| resumed(after, &[]));
    // Eight time-outs of 0.3 s have passed.
    assert_eq!((decayed.0, restarted.0), (10, 10));
    assert!(kept.0 >= 100, "{}", kept.0);
    // The end of the first transfer does not fill the window, which then does not grow.
    assert!((180..=kept.0).contains(&validated.0), "{}", validated.0);
    // Nothing was lost: there is no threshold to slow start.
    for (_, client) in [decayed, restarted, kept, validated] {
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
    for after_idle in AfterIdle::ALL {
        let before = Lab::run(&Scenario {
            cc: CcKind::Reno,
            after_idle,
            ..Scenario::new("no pause", &[(0, 289_600)], loss)
        })
        .1;
        let threshold = before.ssthresh().unwrap();
        let (_, client) = resumed(after_idle, loss);
        assert!(client.ssthresh().unwrap() >= threshold, "{after_idle}");
        assert!(client.cwnd() >= threshold, "{after_idle}");
    }
}

/// 200 segments, a pause, 20 more of which one may be lost. Returns the sender after each.
fn short_resumption(after_idle: AfterIdle, pause: u64, rules: &'static [Rule]) -> (Sender, Sender) {
    let run = |seconds| {
        let writes: &'static [(u64, u64)] = match pause {
            3 => &[(0, 289_600), (3_000, 28_960)],
            _ => &[(0, 289_600), (400_000, 28_960)],
        };
        let scenario = Scenario {
            cc: CcKind::Reno,
            after_idle,
            seconds,
            ..Scenario::new("short", writes, rules)
        };
        Lab::run(&scenario).1
    };
    (run(pause - 1), run(pause + 3))
}

#[test]
fn an_unvalidated_window_is_reduced_to_what_was_used() {
    // Segment 210 is the eleventh after the pause.
    let loss = &[Rule::Drop {
        from: 210,
        to: 210,
        times: 1,
    }];
    let (before, kept) = short_resumption(AfterIdle::Keep, 3, loss);
    assert!(kept.cwnd() >= before.cwnd() / 2, "{}", kept.cwnd());
    let (before, validated) = short_resumption(AfterIdle::Validate, 3, loss);
    assert!(before.cwnd() > 150);
    // Ten were acknowledged and ten in flight, one lost: (10 - 1) / 2.
    assert_eq!(validated.ssthresh(), Some(4));
}

#[test]
fn an_unvalidated_window_neither_grows_nor_lasts() {
    let (before, after) = short_resumption(AfterIdle::Validate, 3, &[]);
    assert_eq!(after.cwnd(), before.cwnd());
    // 400 s hold one period of five minutes.
    let (before, after) = short_resumption(AfterIdle::Validate, 400, &[]);
    assert_eq!(after.cwnd(), before.cwnd() / 2);
    // There was no threshold to keep three quarters in.
    assert_eq!(after.ssthresh(), None);
}
