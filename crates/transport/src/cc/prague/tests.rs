use super::*;
use crate::cc::{Ack, EcnFeedback};

/// A connection whose window of segments is acknowledged each round trip.
struct Rounds {
    cc: Prague,
    window: Window,
    now: Instant,
    rtt_micros: u32,
    limited: bool,
    episode: Episode,
}

impl Rounds {
    fn new(cwnd: u32, rtt_micros: u32) -> Self {
        Self::of(PragueParams::default(), cwnd, rtt_micros)
    }

    fn of(params: PragueParams, cwnd: u32, rtt_micros: u32) -> Self {
        let (mut cc, window) = (params.build(&Setup::default()), Window::new(cwnd, 1_448));
        cc.on_start(
            &window,
            &Start {
                now: Instant::ZERO,
                tick: 0,
                rtt_micros,
                measured: true,
                delivered: 1,
            },
        );
        Self {
            cc,
            window,
            now: Instant::ZERO,
            rtt_micros,
            limited: true,
            episode: Episode::None,
        }
    }

    /// A round trip, in which each segment is acknowledged and `marked` were marked.
    fn round(&mut self, marked: u32) {
        let flight = self.window.cwnd;
        for n in 0..flight {
            let gap = u64::from(self.rtt_micros) * 1_000 / u64::from(flight);
            self.now += sojourn_net::Duration::from_nanos(gap);
            let ack = Ack {
                now: self.now,
                tick: 0,
                rtt_micros: Some(self.rtt_micros),
                one_way_ms: None,
                snd_una: 0,
                snd_nxt: 0,
                prior_in_flight: flight,
                pacing_rate: 0,
            };
            let progress = Progress {
                newly_delivered: 1,
                ecn: Some(EcnFeedback {
                    snd_una: 0,
                    snd_nxt: 0,
                    delivered: 1,
                    marked: u32::from(n < marked),
                }),
                cwnd_limited: self.limited,
                episode: self.episode,
                ..Progress::at(self.now)
            };
            self.cc.update(&mut self.window, &ack, &progress);
        }
    }
}

#[test]
fn the_first_mark_ends_slow_start_and_halves() {
    let mut rounds = Rounds::new(10, 50_000);
    rounds.round(0);
    rounds.round(0);
    assert_eq!(
        (rounds.window.cwnd, rounds.window.ssthresh.segments()),
        (40, None)
    );
    rounds.round(1);
    // Half, and what the 39 unmarked segments of the round add to it.
    let grown = rounds.window.cwnd;
    assert!((20..=22).contains(&grown), "{grown}");
    assert_eq!(rounds.window.ssthresh.segments(), Some(20));
}

#[test]
fn alpha_settles_at_the_part_marked_and_marks_cost_half_of_it() {
    let mut rounds = Rounds::new(100, 50_000);
    rounds.cc.ssthresh = 100.0;
    for _ in 0..200 {
        rounds.cc.cwnd = 100.0;
        rounds.window.cwnd = 100;
        rounds.round(10);
    }
    assert!((rounds.cc.alpha - 0.1).abs() < 0.01, "{}", rounds.cc.alpha);
    // A cut of 5 and growth of 0.9 a round trip, begun at 100.
    rounds.cc.cwnd = 100.0;
    rounds.window.cwnd = 100;
    rounds.round(10);
    assert!((rounds.cc.cwnd - 95.9).abs() < 0.5, "{}", rounds.cc.cwnd);
}

#[test]
fn short_round_trips_grow_as_slowly_as_one_of_25_ms() {
    // Segments of growth in a second, from 100 of a window in avoidance.
    let growth = |rtt_micros: u32| {
        let mut rounds = Rounds::new(100, rtt_micros);
        rounds.cc.ssthresh = 50.0;
        for _ in 0..1_000_000 / rtt_micros {
            rounds.round(0);
        }
        rounds.cc.cwnd - 100.0
    };
    // One second has 40 round trips of 25 ms, and the rate is to grow equally fast at all RTTs: a
    // window for a fifth of the round trip needs a fifth of the growth.
    let [slow, same, fast] = [50_000, 25_000, 5_000].map(growth);
    assert!((slow - 20.0).abs() < 1.0, "{slow}");
    assert!((same - 40.0).abs() < 1.0, "{same}");
    assert!((fast - 8.0).abs() < 1.0, "{fast}");
}

#[test]
fn a_loss_halves_and_undoing_takes_that_back() {
    let mut rounds = Rounds::new(100, 50_000);
    let reduced = rounds.cc.on_reduction(&rounds.window, Reduction::Loss);
    assert_eq!(reduced, Some(Threshold::of_segments(50)));
    rounds.cc.on_undo();
    assert_eq!(rounds.cc.whole(), 100);
    rounds.cc.on_reduction(&rounds.window, Reduction::Loss);
    rounds.cc.on_timeout();
    assert_eq!((rounds.cc.whole(), rounds.cc.ssthresh), (1, 50.0));
}

#[test]
fn the_window_is_rounded_up_and_pacing_keeps_the_fraction() {
    let mut rounds = Rounds::new(4, 50_000);
    rounds.cc.ssthresh = 4.0;
    rounds.cc.cwnd = 4.3;
    rounds.round(0);
    // A round trip of growth is a segment.
    let cwnd = rounds.cc.cwnd;
    assert!((5.0..5.3).contains(&cwnd), "{cwnd}");
    assert_eq!(rounds.window.cwnd, 6);
    let rate = rounds.cc.pacing_rate(1_000).unwrap();
    assert_eq!(rate, whole_rate(cwnd * 20_000.0));
}

#[test]
fn only_a_window_that_limits_sending_grows_and_none_in_recovery() {
    let mut rounds = Rounds::new(10, 50_000);
    rounds.limited = false;
    rounds.round(0);
    assert_eq!(rounds.window.cwnd, 10);
    (rounds.limited, rounds.episode) = (true, Episode::Recovery);
    rounds.round(0);
    assert_eq!(rounds.window.cwnd, 10);
    rounds.episode = Episode::None;
    rounds.round(0);
    assert_eq!(rounds.window.cwnd, 20);
}

#[test]
fn pacing_doubles_below_half_the_threshold() {
    let mut rounds = Rounds::new(10, 50_000);
    let per_window = |rounds: &Rounds| {
        let rate = rounds.cc.pacing_rate(1_000).unwrap();
        rate / whole_rate(rounds.cc.cwnd * 20_000.0)
    };
    assert_eq!(per_window(&rounds), 2, "slow start without a threshold");
    rounds.cc.ssthresh = 21.0;
    assert_eq!(per_window(&rounds), 2);
    rounds.cc.ssthresh = 20.0;
    assert_eq!(per_window(&rounds), 1);
}

#[test]
fn each_parameter_has_its_effect() {
    let default = PragueParams::default();
    let alpha_after_marks = |params| {
        let mut rounds = Rounds::of(params, 100, 50_000);
        for _ in 0..4 {
            rounds.round(5);
        }
        rounds.cc.alpha
    };
    let gain = PragueParams { g: 512, ..default };
    assert!(alpha_after_marks(gain) < alpha_after_marks(default) - 0.3);
    let start = PragueParams {
        alpha_on_init: 0,
        ..default
    };
    assert!(alpha_after_marks(start) < 0.2);
    let after_loss = |params| {
        let mut rounds = Rounds::of(params, 100, 50_000);
        rounds.cc.on_reduction(&rounds.window, Reduction::Loss);
        rounds.cc.whole()
    };
    let beta = PragueParams {
        beta: 717,
        ..default
    };
    // 717 / 1024 of 100 is 70.02.
    assert_eq!([default, beta].map(after_loss), [50, 71]);
    let burst = |params| Rounds::of(params, 10, 50_000).cc.burst_size().pacing_shift;
    let long = PragueParams {
        burst_shift: 10,
        ..default
    };
    assert_eq!([default, long].map(burst), [12, 10]);
    let growth = |params| {
        let mut rounds = Rounds::of(params, 100, 5_000);
        rounds.cc.ssthresh = 50.0;
        for _ in 0..100 {
            rounds.round(0);
        }
        rounds.cc.cwnd - 100.0
    };
    let free = PragueParams {
        rtt_virt_min: 0,
        ..default
    };
    assert!(growth(default) < 5.0 && growth(free) > 60.0);
}

#[test]
#[expect(clippy::float_cmp, reason = "the numbers compared are whole")]
fn windows_and_rates_are_rounded_as_the_c_library_does() {
    let mut rng = sojourn_net::Rng::new(1);
    for n in 0..20_000_u32 {
        let window = 1.0 + rng.uniform() * f64::from(n);
        assert_eq!(f64::from(whole(window)), window.ceil(), "{window}");
        assert_eq!(f64::from(whole(window.ceil())), window.ceil());
        for rate in [window * 1e5, f64::from(n) + 0.5, f64::from(n)] {
            #[expect(clippy::cast_precision_loss, reason = "it is below 2^53")]
            let rounded = whole_rate(rate) as f64;
            assert_eq!(rounded, rate.round(), "{rate}");
        }
    }
    assert_eq!(whole(1e300), 1_000_000_000);
    assert_eq!(
        [1e300, 1e18].map(whole_rate),
        [u64::MAX, 1_000_000_000_000_000_000]
    );
}

#[test]
fn a_delivery_rate_changes_nothing() {
    let after = |sample| {
        let mut rounds = Rounds::new(20, 30_000);
        let ack = Ack {
            now: Instant::from_millis(30),
            tick: 30,
            rtt_micros: Some(30_000),
            one_way_ms: None,
            snd_una: 1,
            snd_nxt: 20,
            prior_in_flight: 20,
            pacing_rate: 0,
        };
        let progress = Progress {
            newly_delivered: 1,
            cwnd_limited: true,
            sample,
            ..Progress::at(ack.now)
        };
        let held = rounds.cc.update(&mut rounds.window, &ack, &progress);
        format!("{held} {:?} {:?}", rounds.cc, rounds.window)
    };
    let sample = crate::cc::RateSample {
        prior_delivered: 0,
        delivered: 20,
        interval_micros: 30_000,
        app_limited: true,
        in_flight_then: 20,
        lost_since: 1,
    };
    assert!(!Prague::default().needs_delivery_rates());
    assert_eq!(after(None), after(Some(sample)));
}
