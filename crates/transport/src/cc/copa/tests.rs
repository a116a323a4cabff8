#![expect(clippy::float_cmp, reason = "the numbers compared are exact")]

use super::*;

const MSS: u32 = 1_000;

/// A connection whose acknowledgements each cover one segment.
struct Path {
    copa: Copa,
    window: Window,
    now: Instant,
    una: u32,
}

impl Path {
    /// With this RTT in ms in the handshake.
    fn new(params: CopaParams, rtt_ms: u32) -> Self {
        let now = Instant::from_millis(1_000);
        let mut copa = params.build(&Setup::default());
        let window = Window::new(10, MSS);
        copa.on_start(
            &window,
            &Start {
                now,
                tick: 1_000,
                rtt_micros: 1_000 * rtt_ms,
                measured: true,
                delivered: 1,
            },
        );
        Self {
            copa,
            window,
            now,
            una: 0,
        }
    }

    /// The same after slow start, with this window.
    fn steady(cwnd: u32, rtt_ms: u32) -> Self {
        let mut path = Self::new(CopaParams::default(), rtt_ms);
        path.copa.slow_start = false;
        path.copa.cwnd = cwnd.into();
        path.copa.round_cwnd = cwnd.into();
        path.window.cwnd = cwnd;
        path
    }

    fn ack(&mut self, after_micros: u64, rtt_micros: u32, limited: bool) {
        self.now += Duration::from_micros(after_micros);
        self.una += 1;
        let ack = Ack {
            now: self.now,
            tick: 0,
            rtt_micros: Some(rtt_micros),
            snd_una: self.una,
            snd_nxt: self.una + self.window.cwnd,
            prior_in_flight: self.window.cwnd,
            ..Ack::at(0)
        };
        let progress = Progress {
            newly_delivered: 1,
            cwnd_limited: limited,
            ..Progress::at(self.now)
        };
        self.copa.update(&mut self.window, &ack, &progress);
    }

    /// A round with this RTT; returns the velocity after it.
    fn round(&mut self, rtt_micros: u32) -> f64 {
        let acks = self.window.cwnd;
        for _ in 0..acks {
            self.ack(u64::from(rtt_micros / acks), rtt_micros, true);
        }
        self.copa.velocity
    }
}

#[test]
fn the_rate_moves_towards_one_over_delta_times_the_queueing_delay() {
    // 4 ms of queue: 1 / (0.5 * 0.004 s) = 500 segments/s, 52 in 104 ms.
    for (cwnd, grows) in [(51, true), (53, false)] {
        let mut path = Path::steady(cwnd, 100);
        for _ in 0..3 {
            // The RTT of the path, then a standing queue: 52 ms later the small RTT no longer counts.
            path.ack(30_000, 104_000, true);
        }
        let before = path.copa.cwnd;
        path.ack(1_000, 104_000, true);
        let step = path.copa.cwnd - before;
        assert!((step.abs() * before * 0.5 - 1.0).abs() < 1e-9, "{step}");
        assert_eq!(step > 0.0, grows, "{cwnd}");
    }
}

#[test]
fn the_pacing_rate_is_two_windows_per_standing_rtt() {
    let path = Path::steady(52, 104);
    assert_eq!(path.copa.pacing_rate(MSS), Some(1_000_000));
}

#[test]
fn velocity_doubles_after_three_rounds_in_one_direction() {
    let mut path = Path::steady(100, 100);
    let velocities: Vec<_> = (0..9).map(|_| path.round(100_000)).collect();
    // The first acknowledgement ends a round: three more in the same direction follow before the velocity doubles.
    let doubling = [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    assert_eq!(velocities, doubling);
    // A change of direction: the first round may still grow, since half an RTT passes until the queue counts.
    for _ in 0..3 {
        path.round(200_000);
    }
    assert_eq!(path.copa.velocity, 1.0);
    // At most the window per round: v <= 0.5 cwnd.
    let mut path = Path::steady(10, 100);
    for _ in 0..12 {
        let v = path.round(100_000);
        assert!(v <= (0.5 * path.copa.cwnd).max(1.0));
    }
}

#[test]
fn slow_start_doubles_until_the_rate_exceeds_the_target() {
    let mut path = Path::new(CopaParams::default(), 100);
    path.round(100_000);
    path.round(100_000);
    assert_eq!(path.window.cwnd, 40);
    // 2 ms of queue allow 102 segments, 6 ms 35.
    path.round(102_000);
    assert_eq!((path.window.cwnd, path.copa.slow_start), (80, true));
    path.round(106_000);
    assert!(!path.copa.slow_start);
}

#[test]
fn competitive_mode_starts_after_five_rtts_without_an_empty_queue_and_counts_losses() {
    let mut path = Path::steady(100, 50);
    path.copa.params.delta = 500;
    // The RTT varies between 150 and 250 ms: 10 % of 200 ms above the 50 of the path is 70 ms.
    let mut modes = Vec::new();
    for round in 0..12 {
        path.round(if round % 2 == 0 { 150_000 } else { 250_000 });
        modes.push(path.copa.is_competitive);
    }
    assert_eq!(modes.first(), Some(&false));
    assert_eq!(modes.last(), Some(&true));
    let grown = path.copa.inverse_delta;
    assert!(grown > 4.0, "{grown}");
    path.round(150_000);
    assert_eq!(path.copa.inverse_delta, grown + 1.0);
    assert_eq!(
        path.copa.on_reduction(&path.window, Reduction::Begins),
        None
    );
    assert_eq!(path.copa.inverse_delta, f64::midpoint(grown, 1.0));
    for _ in 0..5 {
        path.copa.on_reduction(&path.window, Reduction::Begins);
    }
    assert_eq!(path.copa.inverse_delta, 2.0);
    // 69 ms is nearly empty.
    path.copa.inverse_delta = 9.0;
    path.ack(1_000, 69_000, true);
    assert_eq!(
        (path.copa.is_competitive, path.copa.inverse_delta),
        (false, 2.0)
    );

    let mut path = Path::steady(100, 50);
    path.copa.params.competitive = false;
    for _ in 0..12 {
        path.round(150_000);
    }
    assert!(!path.copa.is_competitive);
}

#[test]
fn default_mode_ignores_losses_and_a_time_out_starts_again() {
    let mut path = Path::steady(100, 100);
    path.copa.on_reduction(&path.window, Reduction::Begins);
    assert_eq!((path.copa.cwnd, path.copa.inverse_delta), (100.0, 2.0));
    path.copa.on_timeout();
    assert!(path.copa.slow_start);
    path.ack(1_000, 100_000, true);
    assert_eq!(path.window.cwnd, 3);
}

#[test]
fn a_window_that_does_not_limit_sending_stays() {
    let mut path = Path::steady(100, 100);
    path.ack(1_000, 100_000, false);
    assert_eq!(path.copa.cwnd, 100.0);
}

#[test]
fn a_minimum_counts_for_its_window() {
    let at = Instant::from_millis;
    let window = Duration::from_millis(100);
    let mut min = WindowedMin::new(at(0), 50);
    for (ms, value, expected) in [(10, 70, 50), (20, 60, 50), (100, 90, 50), (101, 80, 60)] {
        min.update(at(ms), value, window);
        assert_eq!(min.get(), expected, "{ms}");
    }
    min.update(at(500), 99, window);
    assert_eq!(min.get(), 99);
    // The number of kept values is bounded.
    for us in 0..1_000_000 {
        let value = u32::try_from(100 + us).unwrap();
        min.update(at(600) + Duration::from_micros(us), value, window);
    }
    assert!(min.values.len() < 300, "{}", min.values.len());
}
