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
    acked: u32,
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
            acked: 0,
        }
    }

    /// In congestion avoidance, after a mark, for as many rounds as make it independent of the RTT.
    fn independent(cwnd: u32, rtt_micros: u32) -> Self {
        let mut rounds = Self::new(cwnd, rtt_micros);
        rounds.window.ssthresh = Threshold::of_segments(cwnd);
        rounds.cc.saw_ce = true;
        rounds.cc.round = rounds.cc.params.rtt_transition.into();
        rounds
    }

    /// A round trip, in which each segment is acknowledged and the first `marked` were marked.
    fn round(&mut self, marked: u32) {
        let flight = self.window.cwnd;
        for n in 0..flight {
            let gap = u64::from(self.rtt_micros) * 1_000 / u64::from(flight);
            self.now += Duration::from_nanos(gap);
            self.ack(flight, n < marked);
        }
    }

    /// An acknowledgement of one of `flight` segments.
    fn ack(&mut self, flight: u32, marked: bool) {
        self.acked += 1;
        let ack = Ack {
            now: self.now,
            tick: 0,
            rtt_micros: Some(self.rtt_micros),
            echo: None,
            acked: 0,
            srtt8: 0,
            snd_una: self.acked,
            snd_nxt: self.acked + flight - 1,
            prior_in_flight: flight,
            pacing_rate: 0,
        };
        let progress = Progress {
            newly_delivered: 1,
            in_flight: flight - 1,
            ecn: Some(EcnFeedback {
                snd_una: ack.snd_una,
                snd_nxt: ack.snd_nxt,
                delivered: 1,
                marked: marked.into(),
            }),
            cwnd_limited: self.limited,
            episode: self.episode,
            ..Progress::at(self.now)
        };
        self.cc.update(&mut self.window, &ack, &progress);
    }
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9 * expected.abs().max(1.0)
}

#[test]
fn the_first_mark_halves_once_and_ends_slow_start() {
    let mut rounds = Rounds::new(10, 50_000);
    rounds.round(0);
    rounds.round(0);
    assert_eq!(rounds.window, Window::new(40, 1_448));
    rounds.ack(40, true);
    assert!(close(rounds.cc.cwnd, 20.0), "{}", rounds.cc.cwnd);
    // The window for sending follows by a segment per acknowledgement.
    assert_eq!(rounds.window.cwnd, 39);
    assert_eq!(rounds.window.ssthresh.segments(), Some(39));
    // Alpha has just left 0: a mark of the next round trip costs little.
    rounds.round(39);
    rounds.round(1);
    assert!((19.0..21.0).contains(&rounds.cc.cwnd), "{}", rounds.cc.cwnd);
    assert!(rounds.cc.alpha <= 2.0 / 16.0, "{}", rounds.cc.alpha);
}

#[test]
fn with_an_initial_alpha_the_first_mark_costs_half_of_it() {
    let params = PragueParams {
        alpha_on_init: 512,
        ..PragueParams::default()
    };
    let mut rounds = Rounds::of(params, 40, 50_000);
    rounds.ack(40, true);
    assert!(close(rounds.cc.cwnd, 30.0), "{}", rounds.cc.cwnd);
}

#[test]
fn the_window_for_sending_falls_and_rises_by_one_segment_per_acknowledgement() {
    let mut rounds = Rounds::independent(40, 50_000);
    rounds.limited = false;
    let mut windows = |cwnd: f64| {
        rounds.cc.cwnd = cwnd;
        let mut next = || {
            rounds.ack(40, false);
            rounds.window.cwnd
        };
        [next(), next(), next(), next()]
    };
    assert_eq!(windows(37.2), [39, 38, 38, 38]);
    assert_eq!(windows(40.1), [39, 40, 41, 41]);
}

#[test]
fn alpha_settles_at_the_part_marked_and_marks_cost_half_of_it() {
    let mut rounds = Rounds::independent(100, 50_000);
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
fn a_flow_depends_on_its_rtt_for_four_rounds_after_slow_start() {
    let mut rounds = Rounds::new(100, 5_000);
    rounds.window.ssthresh = Threshold::of_segments(100);
    let mut growth = || {
        let before = rounds.cc.cwnd;
        rounds.round(0);
        rounds.cc.cwnd - before
    };
    // Whole segments per round trip, then (5 / 25)^2 of one.
    let first: Vec<f64> = (0..3).map(|_| growth()).collect();
    assert!(first.iter().all(|g| (0.95..1.02).contains(g)), "{first:?}");
    let later: Vec<f64> = (0..8).map(|_| growth()).collect();
    assert!(
        later[3..].iter().all(|g| (0.039..0.041).contains(g)),
        "{later:?}"
    );
    assert!(rounds.cc.is_rtt_independent(&rounds.window));
}

#[test]
fn short_round_trips_grow_as_slowly_as_one_of_25_ms() {
    // Segments of growth in a second, from 100 of a window in avoidance.
    let growth = |rtt_micros: u32| {
        let mut rounds = Rounds::independent(100, rtt_micros);
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
fn alpha_changes_and_marks_are_answered_once_per_25_ms_and_round_trip() {
    // Changes of alpha, and answers, in a second of marks.
    let counted = |mut rounds: Rounds| {
        let (mut updates, mut answers) = (0, 0);
        while rounds.now < Instant::from_millis(1_000) {
            rounds.now += Duration::from_nanos(u64::from(rounds.rtt_micros) * 1_000 / 20);
            let before = (rounds.cc.alpha_at, rounds.cc.answered_at);
            rounds.ack(20, true);
            updates += u32::from(rounds.cc.alpha_at != before.0);
            answers += u32::from(rounds.cc.answered_at != before.1);
        }
        (updates, answers)
    };
    // Alpha every 25 ms. An answer begins a round trip of 20 ms without one, and so does the mark after it, which
    // comes too early.
    assert_eq!(counted(Rounds::independent(20, 20_000)), (40, 25));
    assert_eq!(counted(Rounds::independent(20, 50_000)), (21, 20));
    let mut young = Rounds::independent(20, 20_000);
    young.cc.params.rtt_transition = 10_000;
    assert_eq!(counted(young), (53, 50));
}

#[test]
fn a_small_window_is_governed_by_a_rate() {
    let mut rounds = Rounds::independent(4, 5_000);
    // 2.5 segments per 5 ms, less than a window of whole segments.
    (rounds.cc.rate_based, rounds.cc.rate, rounds.cc.cwnd) = (true, 500.0, 2.5);
    rounds.now += Duration::from_millis(1);
    rounds.ack(4, false);
    // A segment per 25 ms and as many, of the 11.9 per 25 ms rounded up; a second has 1.048576 s.
    assert!(
        close(rounds.cc.rate, 500.0 + LONG_SECOND / (0.025 * 12.0)),
        "{}",
        rounds.cc.rate
    );
    assert!(
        close(rounds.cc.cwnd, rounds.cc.rate * 0.005 / 1.048_576),
        "{}",
        rounds.cc.cwnd
    );
    assert_eq!(rounds.window.cwnd, 3);
    // Marks take from the rate.
    rounds.cc.alpha = 0.5;
    let before = rounds.cc.rate;
    rounds.ack(4, true);
    assert!(close(rounds.cc.rate, before * 0.75), "{}", rounds.cc.rate);
    // From 5 segments on, the window governs again.
    rounds.window.cwnd = 6;
    rounds.cc.cwnd = 5.5;
    rounds.cc.choose_mode(&rounds.window);
    assert!(!rounds.cc.is_rate_governed(&rounds.window));
    assert!(close(rounds.cc.rate, 1_100.0), "{}", rounds.cc.rate);
}

#[test]
fn only_a_marked_path_and_an_independent_flow_are_governed_by_a_rate() {
    let mut rounds = Rounds::independent(4, 5_000);
    rounds.cc.choose_mode(&rounds.window);
    assert!(rounds.cc.is_rate_governed(&rounds.window));
    rounds.cc.round = 3;
    assert!(!rounds.cc.is_rate_governed(&rounds.window));
    rounds.cc.round = 4;
    rounds.cc.saw_ce = false;
    rounds.cc.choose_mode(&rounds.window);
    assert!(!rounds.cc.is_rate_governed(&rounds.window));
}

#[test]
fn a_rate_swings_by_a_thirty_second_in_each_half_of_25_ms() {
    let mut rounds = Rounds::independent(4, 5_000);
    (rounds.cc.rate_based, rounds.cc.rate) = (true, 1_000.0);
    let mut pacing = |ms| {
        let cc = &mut rounds.cc;
        cc.set_pacing_rate(&rounds.window, Instant::from_millis(ms), 4);
        cc.pacing
    };
    assert!(close(pacing(0), 1_031.25) && close(pacing(12), 1_031.25));
    assert!(close(pacing(13), 968.75) && close(pacing(25), 968.75));
}

#[test]
fn the_rate_falls_to_100_kbit_per_s_at_most() {
    let mut rounds = Rounds::independent(4, 5_000);
    (rounds.cc.rate_based, rounds.cc.rate, rounds.cc.alpha) = (true, 9.0, 1.0);
    rounds.ack(4, true);
    // Of packets of 1500 bytes.
    assert!(
        close(rounds.cc.rate, 12_500.0 / 1_500.0),
        "{}",
        rounds.cc.rate
    );
}

#[test]
fn a_loss_halves_and_undoing_takes_that_back() {
    let mut rounds = Rounds::independent(100, 50_000);
    rounds.round(0);
    let before = rounds.cc.cwnd;
    assert_eq!(
        rounds.cc.on_reduction(&rounds.window, Reduction::Begins),
        None
    );
    assert!(
        close(rounds.cc.cwnd, before),
        "marks are answered elsewhere"
    );
    rounds.cc.on_reduction(&rounds.window, Reduction::Loss);
    assert!(close(rounds.cc.cwnd, before / 2.0), "{}", rounds.cc.cwnd);
    rounds.episode = Episode::Recovery;
    rounds.ack(100, false);
    assert!(rounds.window.cwnd < 101 && close(rounds.cc.cwnd, before / 2.0));
    rounds.cc.on_undo();
    rounds.limited = false;
    rounds.ack(100, false);
    // The rate is as before. The window, 101 before, goes to that of the rate by one segment per acknowledgement.
    let restored = before / LONG_SECOND;
    assert!(close(rounds.cc.cwnd, restored), "{}", rounds.cc.cwnd);
    assert_eq!(rounds.window.cwnd, 100);
}

#[test]
fn pacing_counts_whole_segments_and_packets_of_full_length() {
    let mut rounds = Rounds::independent(10, 50_000);
    let mut rate = |cwnd: f64, in_flight| {
        rounds.cc.cwnd = cwnd;
        rounds
            .cc
            .set_pacing_rate(&rounds.window, Instant::ZERO, in_flight);
        rounds.cc.pacing_rate(1_448).unwrap()
    };
    // 20 round trips per second, 1500 bytes per packet.
    assert_eq!(rate(10.9, 9), 10 * 20 * 1_500);
    assert_eq!(rate(10.9, 11), 11 * 20 * 1_500);
}

#[test]
fn only_a_window_that_limits_sending_grows_and_none_in_recovery() {
    let mut rounds = Rounds::new(10, 50_000);
    rounds.limited = false;
    rounds.round(0);
    assert_eq!(rounds.window.cwnd, 10);
    rounds.limited = true;
    rounds.cc.on_reduction(&rounds.window, Reduction::Loss);
    rounds.episode = Episode::Recovery;
    rounds.round(0);
    assert_eq!(rounds.window.cwnd, 5);
    rounds.episode = Episode::None;
    rounds.round(0);
    assert_eq!(rounds.window.cwnd, 6);
}

#[test]
fn pacing_doubles_below_half_the_threshold() {
    let mut rounds = Rounds::new(10, 50_000);
    let mut per_window = |ssthresh| {
        rounds.window.ssthresh = ssthresh;
        rounds.cc.set_pacing_rate(&rounds.window, Instant::ZERO, 0);
        rounds.cc.pacing / 200.0
    };
    assert!(close(per_window(Threshold::UNSET), 2.0));
    assert!(close(per_window(Threshold::of_segments(22)), 2.0));
    assert!(close(per_window(Threshold::of_segments(21)), 1.0));
}

#[test]
fn each_parameter_has_its_effect() {
    let default = PragueParams::default();
    let alpha_after_marks = |params| {
        let mut rounds = Rounds::of(params, 100, 50_000);
        for _ in 0..4 {
            rounds.round(50);
        }
        rounds.cc.alpha
    };
    let gain = PragueParams { g: 512, ..default };
    assert!(alpha_after_marks(gain) > 2.0 * alpha_after_marks(default));
    let start = PragueParams {
        alpha_on_init: 1_024,
        ..default
    };
    assert!(alpha_after_marks(start) > alpha_after_marks(default) + 0.5);
    let after_loss = |params| {
        let mut rounds = Rounds::of(params, 100, 50_000);
        rounds.cc.on_reduction(&rounds.window, Reduction::Loss);
        whole(rounds.cc.cwnd)
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
        rounds.window.ssthresh = Threshold::of_segments(100);
        for _ in 0..100 {
            rounds.round(0);
        }
        rounds.cc.cwnd - 100.0
    };
    let free = PragueParams {
        rtt_virt_min: 0,
        ..default
    };
    let late = PragueParams {
        rtt_transition: 10_000,
        ..default
    };
    assert!(growth(default) < 10.0 && growth(free) > 60.0 && growth(late) > 60.0);
    let is_rate_based = |params| {
        let mut rounds = Rounds::of(params, 4, 5_000);
        rounds.cc.saw_ce = true;
        rounds.cc.choose_mode(&rounds.window);
        rounds.cc.rate_based
    };
    let never = PragueParams {
        cwnd_transit: 0,
        ..default
    };
    assert_eq!([default, never].map(is_rate_based), [true, false]);
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
            echo: None,
            acked: 0,
            srtt8: 0,
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
