use super::*;
use crate::cc::Threshold;

fn htcp() -> HTcp {
    HTcpParams::default().build(&Setup::default())
}

fn sample(tick: u64, rtt_ms: u32, acked: u32) -> Ack {
    Ack {
        rtt_micros: Some(1_000 * rtt_ms),
        acked,
        ..Ack::at(tick)
    }
}

fn enters(to: Phase, tick: u64) -> Transition {
    Transition {
        to,
        tick,
        snd_nxt: 0,
    }
}

/// Alpha in 128ths, `passed` ms after a congestion, with a minimum RTT of `rtt` ms.
fn alpha(rtt: u32, passed: u32) -> u32 {
    let mut cc = htcp();
    cc.min_rtt = rtt;
    cc.update_alpha(passed);
    cc.alpha
}

#[test]
fn growth_rises_with_the_time_since_the_last_congestion() {
    // 100 ms: not scaled. 2 s: 1 + 10 + 0.25; 5 s: 1 + 40 + 4; 61 s: 1 + 600 + 900.
    let of = |passed| alpha(100, passed) / 128;
    assert_eq!(
        [500, 1_000, 2_000, 5_000, 61_000].map(of),
        [1, 1, 11, 45, 1_501]
    );
    // 200 ms: twice; 1 s: no more than twice; 10 ms: a tenth; 1 ms: no less.
    let scaled = |rtt| alpha(rtt, 5_000) / 128;
    assert_eq!([200, 1_000, 10, 1].map(scaled), [90, 90, 4, 4]);
    // 2^16 ms squared wraps to 0: of 1 + 10 * 131.072 s only the second term is left.
    assert_eq!(alpha(100, 1_000 + (1 << 17)) / 128, 1_311);
}

#[test]
fn without_rtt_scaling_growth_is_per_round_trip() {
    let mut cc = HTcpParams {
        use_rtt_scaling: false,
        ..HTcpParams::default()
    }
    .build(&Setup::default());
    cc.min_rtt = 10;
    cc.update_alpha(5_000);
    assert_eq!(cc.alpha / 128, 45);
}

#[test]
fn the_window_grows_when_what_was_acknowledged_times_alpha_reaches_it() {
    let (mut cc, mut window) = (htcp(), Window::new(10, 1));
    window.ssthresh = Threshold::of_segments(10);
    // The threshold is compared before an acknowledgement counts: six of two segments, and one more.
    let grows = |n: u64, cc: &mut HTcp, window: &mut Window| {
        cc.on_ack(window, &sample(n, 100, 2));
        cc.grow(window, &sample(n, 100, 2), 2);
        window.cwnd
    };
    let windows: Vec<_> = (0..12).map(|n| grows(n, &mut cc, &mut window)).collect();
    assert_eq!(windows, [10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11]);
    assert_eq!(grows(12, &mut cc, &mut window), 12);
}

#[test]
fn an_acknowledgement_between_others_that_grow_counts_once() {
    let (mut cc, mut window) = (htcp(), Window::new(10, 1));
    window.ssthresh = Threshold::of_segments(5);
    cc.on_ack(&mut window, &sample(0, 100, 3));
    cc.grow(&mut window, &Ack::at(0), 3);
    // Without another acknowledgement in Open only one segment is taken.
    cc.grow(&mut window, &Ack::at(0), 3);
    assert_eq!(window.cnt, 4);
    cc.on_phase(&enters(Phase::Loss, 0));
    cc.on_ack(&mut window, &sample(0, 100, 7));
    cc.grow(&mut window, &Ack::at(0), 7);
    assert_eq!(window.cnt, 5);
}

#[test]
fn beta_is_the_ratio_of_the_rtts_from_the_second_congestion_on() {
    let (mut cc, window) = (htcp(), Window::new(100, 1));
    let mut congest = |min_rtt, max_rtt| {
        cc.min_rtt = min_rtt;
        cc.since.max_rtt = max_rtt;
        cc.ssthresh(&window, 0)
    };
    // 100/128 of 100; 40/60 of 128 is 85; at most 102, at least 64.
    assert_eq!(congest(40, 60), 50);
    assert_eq!(congest(40, 60), 66);
    assert_eq!(congest(40, 41), 79);
    assert_eq!(congest(40, 100), 50);
    assert_eq!(congest(10, 12), 50);
    assert_eq!(cc.since.max_rtt, 11);
    assert_eq!(cc.ssthresh(&Window::new(3, 1), 0), 2);
}

#[test]
fn a_change_of_bandwidth_by_more_than_a_fifth_halves_the_window() {
    let left = |old, new| {
        let (mut cc, window) = (htcp(), Window::new(128, 1));
        cc.is_adaptive = true;
        (cc.min_rtt, cc.since.max_rtt) = (80, 100);
        cc.since.old_max_bandwidth = old;
        cc.max_bandwidth = new;
        cc.ssthresh(&window, 0)
    };
    assert_eq!(left(1_000, 1_000), 102);
    assert_eq!([left(1_000, 1_200), left(1_000, 1_201)], [102, 64]);
    assert_eq!([left(1_000, 800), left(1_000, 799)], [102, 64]);
    assert_eq!(left(0, 1_000), 64);
}

#[test]
fn the_bandwidth_is_measured_per_window_and_smoothed_after_three_round_trips() {
    let (mut cc, mut window) = (htcp(), Window::new(11, 1));
    // 10 segments in a time that is not known; then 10 in 100 ms: 100 per s.
    cc.on_ack(&mut window, &sample(0, 100, 10));
    assert_eq!((cc.bandwidth, cc.max_bandwidth), (0, 0));
    cc.on_ack(&mut window, &sample(50, 100, 9));
    cc.on_ack(&mut window, &sample(100, 100, 1));
    assert_eq!((cc.bandwidth, cc.max_bandwidth), (100, 100));
    // 20 in 50 ms wait for the rest of the round trip; more than three round trips after the start: a quarter counts.
    cc.on_ack(&mut window, &sample(399, 100, 0));
    cc.measured_at = Some(400);
    cc.segments = 0;
    cc.on_ack(&mut window, &sample(450, 100, 20));
    assert_eq!(cc.bandwidth, 100);
    cc.on_ack(&mut window, &sample(500, 100, 0));
    assert_eq!((cc.bandwidth, cc.max_bandwidth), (125, 125));
    // Nothing counts during a recovery.
    cc.on_phase(&enters(Phase::Recovery, 600));
    cc.on_ack(&mut window, &sample(610, 100, 30));
    assert_eq!((cc.segments, cc.measured_at), (0, Some(610)));
}

#[test]
fn the_maximum_rtt_rises_by_20_ms_and_only_in_open() {
    let (mut cc, mut window) = (htcp(), Window::new(1_000, 1));
    for (rtt, max) in [(50, 50), (70, 70), (91, 70), (60, 70), (90, 90)] {
        cc.on_ack(&mut window, &sample(0, rtt, 1));
        assert_eq!(cc.since.max_rtt, max);
    }
    cc.on_phase(&enters(Phase::Disorder, 0));
    cc.on_ack(&mut window, &sample(0, 100, 1));
    assert_eq!((cc.min_rtt, cc.since.max_rtt), (50, 90));
}

#[test]
fn a_congestion_counts_from_its_end_and_not_at_all_if_it_was_spurious() {
    let mut cc = htcp();
    cc.on_phase(&enters(Phase::Recovery, 5_000));
    assert_eq!(cc.since.congestion, 5_000);
    cc.on_phase(&enters(Phase::Open, 5_100));
    assert_eq!(cc.since.congestion, 5_100);
    cc.since.max_rtt = 70;
    cc.on_phase(&enters(Phase::Loss, 9_000));
    cc.since.max_rtt = 60;
    cc.on_undo();
    cc.on_phase(&enters(Phase::Open, 9_100));
    assert_eq!((cc.since.congestion, cc.since.max_rtt), (5_100, 70));
}
