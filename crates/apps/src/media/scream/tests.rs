//! Steps of the algorithm, computed by hand from the draft's pseudocode.

use super::*;
use crate::media::control::Acked;

const RATES: Rates = Rates {
    min: 150_000.0,
    max: 10_000_000.0,
    start: 2_000_000.0,
    frame_period: Duration::from_millis(40),
};

fn close(got: f64, expected: f64) {
    let error = (got / expected - 1.0).abs();
    assert!(error < 1e-9, "{got} is not {expected}");
}

/// Feedback at `now` on 10 packets of 1,200 B, sent 50 ms before, that took `delay` and of which `marked` were marked.
fn feedback(now: u64, delay: u64, marked: usize, lost: u64) -> (Instant, Feedback) {
    let sent = Instant::from_millis(now - 50);
    let acked = (0..10).map(|n| Acked {
        bytes: 1_200,
        sent,
        arrived: sent + Duration::from_millis(delay),
        marked: n < marked,
    });
    let feedback = Feedback {
        acked: acked.collect(),
        lost,
        newly_acked: 12_000,
        newly_acked_ce: 1_200 * marked as u64,
        in_flight: 12_000,
    };
    (Instant::from_millis(now), feedback)
}

/// A control with a window of 24,000 B and an RTT of 50 ms, which has seen no congestion.
fn scream(mode: ScreamMode) -> Scream {
    let mut scream = Scream::new(RATES, mode);
    scream.ref_wnd = 24_000.0;
    scream.max_bytes_in_flight = 24_000.0;
    scream.s_rtt = Some(0.05);
    scream
}

fn step(scream: &mut Scream, (now, feedback): (Instant, Feedback)) {
    scream.on_feedback(now, &feedback);
}

#[test]
fn without_congestion_the_window_grows_by_half_a_segment_in_half_a_round() {
    let mut scream = scream(ScreamMode::Classic);
    step(&mut scream, feedback(1_000, 20, 0, 0));
    // 12,000 B x 1,200 / 24,000; times 1 + 0.02 x 20 x (1 s / 100 RTTs of 50 ms).
    close(scream.ref_wnd, 24_000.0 + 600.0 * (1.0 + 0.02 * 20.0 * 0.2));
    // The ratio of MSS and window is below 0.1: no factor.
    let expected = 1_200.0 / 1_220.0 / 1.2 * 8.0 * scream.ref_wnd / 0.05;
    close(scream.target(), expected);
    // 0.8 of the maximum and below: 1.5 times the target.
    close(scream.pacing_rate(), 1.5 * expected);
    assert_eq!(scream.send_window(), 3 * 24_648);
}

#[test]
fn a_loss_takes_30_percent_and_growth_is_slow_at_the_last_maximum() {
    let mut scream = scream(ScreamMode::Classic);
    step(&mut scream, feedback(1_000, 20, 0, 1));
    // 0.7; then 600 / 0.7 B without multiplicative increase, since the congestion is now.
    close(scream.ref_wnd, 16_800.0 + 12_000.0 * 1_200.0 / 16_800.0);
    close(scream.ref_wnd_i, 24_000.0);
    // At the maximum: a quarter.
    scream.ref_wnd = 24_000.0;
    step(&mut scream, feedback(1_100, 20, 0, 0));
    let multiplicative = 0.02 * 20.0 * (0.1 / 5.0) * 0.1;
    close(
        scream.ref_wnd,
        24_000.0 + 600.0 * 0.25 * (1.0 + multiplicative),
    );
}

#[test]
fn there_is_one_reaction_per_virtual_rtt() {
    let mut scream = scream(ScreamMode::Classic);
    step(&mut scream, feedback(1_000, 20, 0, 1));
    let after = scream.ref_wnd;
    step(&mut scream, feedback(1_020, 20, 0, 1));
    assert!(scream.ref_wnd > after);
    // The loss of 20 ms ago is not forgotten.
    step(&mut scream, feedback(1_026, 20, 0, 0));
    assert!(scream.ref_wnd < 0.8 * after);
}

#[test]
fn a_mark_of_classic_ecn_takes_20_percent() {
    let mut scream = scream(ScreamMode::Classic);
    step(&mut scream, feedback(1_000, 20, 1, 0));
    // Nine of ten packets count for the increase.
    close(scream.ref_wnd, 19_200.0 + 10_800.0 * 1_200.0 / 19_200.0);
}

#[test]
fn marks_of_l4s_count_in_proportion() {
    let mut scream = scream(ScreamMode::L4s);
    scream.last_reaction_to_congestion_time = 0.9;
    step(&mut scream, feedback(1_000, 20, 4, 0));
    // 4 of 10: alpha = 0.4 / 8; an RTT of two virtual ones halves the reduction.
    close(scream.l4s_alpha, 0.05);
    let reduced = 24_000.0 * (1.0 - 0.05 / 2.0 / 2.0);
    close(scream.ref_wnd, reduced + 7_200.0 * 1_200.0 / reduced);
    // Without marks it decays by 1/128.
    step(&mut scream, feedback(1_020, 20, 0, 0));
    close(scream.l4s_alpha, 0.05 * 127.0 / 128.0);
}

#[test]
fn after_100_rtts_without_congestion_a_mark_of_l4s_sets_the_window_to_what_was_in_flight() {
    let mut scream = scream(ScreamMode::L4s);
    scream.max_bytes_in_flight_prev = 10_000.0;
    step(&mut scream, feedback(6_000, 20, 4, 0));
    let reduced = 10_000.0 * (1.0 - 0.05 / 2.0 / 2.0);
    close(scream.ref_wnd, reduced + 7_200.0 * 1_200.0 / reduced);
}

#[test]
fn the_average_queue_delay_above_half_its_target_reduces_the_window() {
    let mut scream = scream(ScreamMode::Classic);
    step(&mut scream, feedback(1_000, 20, 0, 0));
    assert!(scream.qdelay_avg.abs() < 1e-12);
    // 28 ms of queue: 7 ms on average.
    step(&mut scream, feedback(1_100, 48, 0, 0));
    close(scream.qdelay_avg, 0.007);
    scream.qdelay_avg = 0.05;
    scream.ref_wnd = 24_000.0;
    scream.max_bytes_in_flight = 24_000.0;
    scream.ref_wnd_i = 1.0;
    step(&mut scream, feedback(1_200, 50, 0, 0));
    // 30 ms is less than 50 ms: the average falls at once, to half the target, which is no congestion.
    close(scream.qdelay_avg, 0.03);
    assert!(scream.ref_wnd > 24_000.0);
    scream.qdelay_avg = 0.045;
    scream.last_update_qdelay_avg_time = 1.3;
    scream.ref_wnd = 24_000.0;
    scream.max_bytes_in_flight = 24_000.0;
    step(&mut scream, feedback(1_300, 50, 0, 0));
    // (45 - 30) / 30 = 1/2; halved twice: by the law and by an RTT of two virtual ones.
    let reduced = 24_000.0 * (1.0 - 0.5 / 2.0 / 2.0);
    let multiplicative = 0.02 * reduced / 1_200.0 * (1.3 / 5.0);
    close(
        scream.ref_wnd,
        reduced + 12_000.0 * 1_200.0 / reduced * (1.0 + multiplicative),
    );
}

#[test]
fn the_window_grows_only_with_bytes_in_flight_and_below_the_largest_rate() {
    let mut idle = scream(ScreamMode::Classic);
    idle.max_bytes_in_flight = 15_000.0;
    step(&mut idle, feedback(1_000, 20, 0, 0));
    close(idle.ref_wnd, 24_000.0);
    let mut fast = scream(ScreamMode::Classic);
    fast.target_bitrate = RATES.max;
    step(&mut fast, feedback(1_000, 20, 0, 0));
    close(fast.ref_wnd, 24_000.0);
}

#[test]
fn a_queue_at_the_sender_and_large_frames_lower_the_target() {
    let mut scream = scream(ScreamMode::Classic);
    // 2 Mbit/s in 40 ms: 10,000 B. Waiting for 30 ms: (30 - 10) / 40 / 16 = 1/32.
    scream.on_frame(20_000, Duration::from_millis(30));
    close(scream.rate_adjust_factor, 1.0 / 32.0);
    close(scream.frame_size_dev, 1.0 / 64.0);
    scream.update_target();
    let divisor = 1.2 + 3.0 / 64.0;
    close(
        scream.target(),
        1_200.0 / 1_220.0 / divisor * 8.0 * 24_000.0 / 0.05,
    );
}

#[test]
fn the_smallest_window_is_3000_bytes_and_lowers_the_rate() {
    let mut scream = scream(ScreamMode::Classic);
    scream.ref_wnd = 3_100.0;
    scream.max_bytes_in_flight = 0.0;
    step(&mut scream, feedback(1_000, 20, 0, 1));
    close(scream.ref_wnd, 3_000.0);
    // MSS / window = 0.4: 0.2 less, the most.
    close(
        scream.target(),
        0.8 * 1_200.0 / 1_220.0 / 1.2 * 8.0 * 3_000.0 / 0.05,
    );
}

#[test]
fn pacing_is_relaxed_near_the_largest_rate() {
    let mut scream = scream(ScreamMode::Classic);
    scream.target_bitrate = 9e6;
    // Half way from 0.8 to 1: half the interval.
    close(scream.pacing_rate(), 9e6 * 1.5 * 2.0);
    scream.target_bitrate = 10e6;
    close(scream.pacing_rate(), 10e6 * 1.5 * 4.0);
    scream.target_bitrate = 20_000.0;
    close(scream.pacing_rate(), 50_000.0 * 1.5);
}

#[test]
fn the_base_delay_is_that_of_the_last_ten_minutes() {
    let mut base = BaseDelay::default();
    let ms = Duration::from_millis;
    assert_eq!(base.qdelay(Instant::ZERO, ms(20)), ms(0));
    for minute in 1..10 {
        let now = Instant::from_millis(60_000 * minute);
        assert_eq!(base.qdelay(now, ms(30)), ms(10));
    }
    assert_eq!(base.qdelay(Instant::from_millis(600_000), ms(30)), ms(0));
}
