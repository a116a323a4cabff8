use super::*;
use crate::cc::RateSample;

/// A path that delivers one segment a millisecond after 100 ms, and a sender that keeps what the
/// controller allows in flight: one step is one round trip.
struct Path {
    bbr: Bbr,
    window: Window,
    ms: u64,
    delivered: u64,
    lost: u64,
}

const RTT_MS: u64 = 100;
const CAPACITY: u64 = 100;

impl Path {
    fn new() -> Self {
        Self::of(BbrParams::default())
    }

    fn of(params: BbrParams) -> Self {
        let mut bbr = Bbr::new(params, 1);
        let window = Window::new(10, 1_448);
        let start = Start {
            now: Instant::ZERO,
            tick: 0,
            rtt_micros: 100_000,
            measured: true,
            delivered: 1,
        };
        bbr.on_start(&window, &start);
        Self {
            bbr,
            window,
            ms: 0,
            delivered: 1,
            lost: 0,
        }
    }

    /// A round trip in which the whole window is delivered, as fast as the path allows.
    fn round(&mut self) {
        self.round_with(0, Episode::None, 0);
    }

    fn round_with(&mut self, lost: u32, episode: Episode, in_flight: u32) {
        let cwnd = u64::from(self.window.cwnd);
        let queued_ms = cwnd.saturating_sub(CAPACITY);
        let took = RTT_MS + queued_ms;
        self.ms += took;
        let prior = self.delivered;
        self.delivered += cwnd - u64::from(lost);
        self.lost += u64::from(lost);
        let now = Instant::from_millis(self.ms);
        let p = Progress {
            delivered: self.delivered,
            lost: self.lost,
            newly_delivered: self.window.cwnd - lost,
            newly_lost: lost,
            in_flight,
            episode,
            sample: Some(RateSample {
                prior_delivered: prior,
                delivered: cwnd - u64::from(lost),
                interval_micros: took * 1_000,
                app_limited: false,
                in_flight_then: self.window.cwnd,
                lost_since: lost.into(),
            }),
            ..Progress::at(now)
        };
        let ack = Ack {
            now,
            tick: self.ms,
            rtt_micros: Some(u32::try_from(took * 1_000).unwrap()),
            echo: None,
            acked: 0,
            srtt8: 0,
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: self.window.cwnd,
            pacing_rate: 0,
        };
        self.bbr.update(&mut self.window, &ack, &p);
    }

    /// A round of one second in which one segment is delivered.
    fn deliver_one(&mut self) {
        self.ms += 1_000;
        let prior = self.delivered;
        self.delivered += 1;
        let now = Instant::from_millis(self.ms);
        let p = Progress {
            delivered: self.delivered,
            newly_delivered: 1,
            sample: Some(RateSample {
                prior_delivered: prior,
                delivered: 1,
                interval_micros: 1_000_000,
                app_limited: true,
                in_flight_then: 1,
                lost_since: 0,
            }),
            ..Progress::at(now)
        };
        let ack = Ack {
            now,
            tick: self.ms,
            rtt_micros: None,
            echo: None,
            acked: 0,
            srtt8: 0,
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: 0,
            pacing_rate: 0,
        };
        self.bbr.update(&mut self.window, &ack, &p);
    }

    fn until(&mut self, mode: Mode) {
        for _ in 0..300 {
            if self.bbr.mode == mode {
                return;
            }
            self.round();
        }
        panic!("never reached {mode:?}, but is in {:?}", self.bbr.mode);
    }
}

#[test]
fn the_first_rate_is_the_initial_window_a_round_trip_times_the_high_gain() {
    let bbr = Path::new().bbr;
    let want = 10.0 * 1_448.0 / 0.1 * 739.0 / 256.0 * 0.99;
    let got = f64::from(u32::try_from(bbr.pacing_rate).unwrap());
    assert!((got - want).abs() < 0.001 * want, "{got}, not {want}");
}

#[test]
fn startup_doubles_the_window_until_three_rounds_bring_no_more_bandwidth() {
    let mut path = Path::new();
    for want in [20, 40, 80, 160] {
        path.round();
        assert_eq!(path.window.cwnd, want);
    }
    // 160 fill the path of 100: the fourth round without growth, counted from the first full one.
    let mut rounds = 0;
    while path.bbr.mode == Mode::Startup {
        path.round();
        rounds += 1;
    }
    assert_eq!(rounds, 4);
    assert!(path.bbr.full_bw_reached);
}

#[test]
fn startup_is_left_for_drain_and_drain_for_the_cycle() {
    let mut path = Path::new();
    path.until(Mode::Startup);
    while path.bbr.mode == Mode::Startup {
        // What is in flight stays above the BDP.
        path.round_with(0, Episode::None, 300);
    }
    assert_eq!(path.bbr.mode, Mode::Drain);
    assert_eq!(path.bbr.pacing_gain, 88);
    path.round_with(0, Episode::None, 90);
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
    assert_ne!(path.bbr.cycle_idx, 1, "not the phase that drains");
}

#[test]
fn the_cycle_paces_at_five_fourths_three_fourths_and_six_times_the_bandwidth() {
    let mut path = Path::new();
    path.until(Mode::ProbeBw);
    // One segment a ms with 1 % margin.
    let bandwidth = 1_448_000.0 * 0.99;
    let mut gains = Vec::new();
    let mut last = u8::MAX;
    while gains.len() < 9 {
        path.round();
        if path.bbr.cycle_idx != last {
            last = path.bbr.cycle_idx;
            let rate = f64::from(u32::try_from(path.bbr.pacing_rate).unwrap());
            gains.push(format!("{:.2}", rate / bandwidth));
        }
    }
    let first = gains.iter().position(|g| g == "1.25").unwrap();
    gains.rotate_left(first);
    assert_eq!(gains[..2], ["1.25", "0.75"]);
    assert!(gains[2..].iter().filter(|&g| g == "1.00").count() >= 6);
    // Twice the BDP, a BDP for the whole window acknowledged at once, and the budget.
    let cwnd = path.window.cwnd;
    assert!((300..=312).contains(&cwnd), "{cwnd}");
}

#[test]
fn after_ten_seconds_without_a_smaller_rtt_the_window_is_four_for_200_ms_and_a_round() {
    let mut path = Path::new();
    path.until(Mode::ProbeRtt);
    // From the last time nothing was queued, in STARTUP.
    assert!((10_000..11_500).contains(&path.ms), "{} ms", path.ms);
    assert_eq!(path.window.cwnd, 4);
    let began = path.ms;
    path.until(Mode::ProbeBw);
    assert!((200..=500).contains(&(path.ms - began)));
    assert!(path.window.cwnd > 190, "as before: {}", path.window.cwnd);
}

#[test]
fn a_loss_takes_the_window_to_what_was_delivered_for_one_round() {
    let mut path = Path::new();
    path.until(Mode::ProbeBw);
    for _ in 0..3 {
        path.round();
    }
    let before = path.window.cwnd;
    path.bbr.on_reduction(&path.window, Reduction::Begins);
    path.round_with(10, Episode::Recovery, 20);
    assert_eq!(path.window.cwnd, 20 + before - 10);
    path.round();
    assert!(path.window.cwnd >= before, "{}", path.window.cwnd);
}

#[test]
fn a_time_out_keeps_the_model() {
    let mut path = Path::new();
    path.until(Mode::ProbeBw);
    let before = path.window.cwnd;
    path.bbr.on_reduction(&path.window, Reduction::Begins);
    path.bbr.on_timeout();
    path.window.cwnd = 1;
    path.round_with(0, Episode::Loss, 0);
    assert_eq!(path.window.cwnd, 4);
    path.round();
    assert!(path.window.cwnd >= before, "{}", path.window.cwnd);
}

#[test]
fn gains_and_margin_scale_the_rate() {
    let rate = |params| Path::of(params).bbr.pacing_rate;
    let default = rate(BbrParams::default());
    let doubled = BbrParams {
        high_gain: 2 * 739,
        ..BbrParams::default()
    };
    assert!(rate(doubled).abs_diff(2 * default) < 10);
    let margin = BbrParams {
        pacing_margin_percent: 50,
        ..BbrParams::default()
    };
    assert!((2 * rate(margin) * 99 / 100).abs_diff(default) < 10);
}

#[test]
fn the_parameters_of_the_states_change_them() {
    let default = BbrParams::default();
    let drained = |params| {
        let mut path = Path::of(params);
        while path.bbr.mode == Mode::Startup {
            path.round_with(0, Episode::None, 300);
        }
        (path.ms, path.bbr.pacing_gain)
    };
    let (ms, gain) = drained(default);
    assert_eq!(gain, 88);
    let slow = BbrParams {
        drain_gain: 200,
        full_bw_cnt: 6,
        ..default
    };
    assert!(drained(slow).0 > ms && drained(slow).1 == 200);
    let greedy = BbrParams {
        full_bw_thresh: 2_000,
        ..default
    };
    assert!(drained(greedy).0 < ms);

    let cruising = |params| {
        let mut path = Path::of(params);
        path.until(Mode::ProbeBw);
        for _ in 0..20 {
            path.round();
        }
        path
    };
    let wide = BbrParams {
        cwnd_gain: 1_024,
        extra_acked_gain: 0,
        ..default
    };
    let narrow = BbrParams {
        extra_acked_gain: 0,
        ..default
    };
    let [wide, narrow, usual] = [wide, narrow, default].map(|p| cruising(p).window.cwnd);
    assert!(
        wide > narrow + 150 && usual > narrow + 80,
        "{wide} {narrow} {usual}"
    );
    let capped = BbrParams {
        extra_acked_max_us: 0,
        ..default
    };
    assert_eq!(cruising(capped).window.cwnd, narrow);
    let flat = BbrParams {
        pacing_gain: [256; 8],
        ..default
    };
    assert_eq!(cruising(flat).bbr.pacing_gain, 256);
}

#[test]
fn the_parameters_of_probe_rtt_change_it() {
    let default = BbrParams::default();
    let probe = |params| {
        let mut path = Path::of(params);
        path.until(Mode::ProbeRtt);
        let (began, cwnd) = (path.ms, path.window.cwnd);
        path.until(Mode::ProbeBw);
        (began, cwnd, path.ms - began)
    };
    let (began, cwnd, lasted) = probe(default);
    let early = BbrParams {
        min_rtt_win_sec: 3,
        ..default
    };
    assert!(probe(early).0 < began - 6_000);
    let long = BbrParams {
        probe_rtt_mode_ms: 2_000,
        cwnd_min_target: 10,
        ..default
    };
    assert!(probe(long).2 > lasted + 1_500);
    assert_eq!((cwnd, probe(long).1), (4, 10));
}

#[test]
fn the_filters_have_the_lengths_asked_for() {
    let default = BbrParams::default();
    let after_three_rounds = |params| {
        let mut bw = Path::of(params).bbr.bw;
        bw.update(0, 100);
        bw.update(3, 10);
        bw.get()
    };
    let short = BbrParams {
        bw_rtts: 2,
        extra_acked_win_rtts: 1,
        ..default
    };
    assert_eq!([default, short].map(after_three_rounds), [100, 10]);

    // Aggregation, then four rounds without.
    let aggregation = |params| {
        let mut path = Path::of(params);
        path.until(Mode::ProbeBw);
        path.round();
        for _ in 0..4 {
            path.deliver_one();
        }
        path.bbr.extra_acked.get()
    };
    let [usual, short] = [default, short].map(aggregation);
    assert!(usual > 50 && short < 5, "{usual} {short}");

    let mut slow = Path::of(default);
    slow.bbr.pacing_rate = 140_000;
    assert_eq!(slow.bbr.burst_size().min_tso_segs, 1);
    let pairs = BbrParams {
        min_tso_rate: 1_000_000,
        ..default
    };
    let mut slow = Path::of(pairs);
    slow.bbr.pacing_rate = 140_000;
    assert_eq!(slow.bbr.burst_size().min_tso_segs, 2);
}

#[test]
fn rates_and_bursts_are_those_of_the_segments_of_the_connection() {
    let started = |mss| {
        let mut bbr = Bbr::new(BbrParams::default(), 1);
        let start = Start {
            now: Instant::ZERO,
            tick: 0,
            rtt_micros: 250_000,
            measured: true,
            delivered: 1,
        };
        bbr.on_start(&Window::new(10, mss), &start);
        bbr
    };
    // 10 segments in 250 ms times 2.89: 1.33 and 1.1 Mbit/s, around the 1.2 Mbit/s of `min_tso_rate`.
    let [large, small] = [1_448, 1_200].map(started);
    assert_eq!(
        [large.pacing_rate(1_448), small.pacing_rate(1_200)],
        [Some(165_504), Some(137_158)]
    );
    assert_eq!(large.burst_size().min_tso_segs, 2);
    assert_eq!(small.burst_size().min_tso_segs, 1);
}
