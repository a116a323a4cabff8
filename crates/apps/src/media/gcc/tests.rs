//! Steps of the algorithm, computed by hand from the draft's equations.

use super::*;

const RATES: Rates = Rates {
    min: 150_000.0,
    max: 10_000_000.0,
    start: 1_000_000.0,
    frame_period: Duration::from_millis(40),
};

fn close(got: f64, expected: f64) {
    let error = (got / expected - 1.0).abs();
    assert!(error < 1e-6, "{got} is not {expected}");
}

const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

const fn packet(sent: u64, arrived: u64) -> Acked {
    Acked {
        bytes: 1_000,
        sent: at(sent),
        arrived: at(arrived),
        marked: false,
    }
}

#[test]
fn the_states_follow_the_table_of_section_5_5() {
    use {Signal::*, State::*};
    let table = [
        (Over, [Decrease, Decrease, Decrease]),
        (Normal, [Increase, Increase, Hold]),
        (Under, [Hold, Hold, Hold]),
    ];
    for (signal, after) in table {
        assert_eq!(
            [Hold, Increase, Decrease].map(|state| state.after(signal)),
            after
        );
    }
}

#[test]
fn the_filter_follows_the_equations_of_section_5_3() {
    let mut filter = Filter::new();
    // Groups 33 ms apart: alpha = 0.99^0.99. The variance takes 3 instead of 10.
    filter.update(10.0, 33.0);
    close(filter.var_v_hat, 1.079_203_973);
    close(filter.m_hat, 0.855_784_274);
    close(filter.e, 0.092_356_579);
    filter.update(2.0, 33.0);
    close(filter.var_v_hat, 1.081_481_342);
    close(filter.m_hat, 0.946_707_510);
}

#[test]
fn packets_sent_within_5_ms_or_delivered_in_a_burst_are_a_group() {
    let group = Group::of(&packet(100, 150));
    let takes = |sent, arrived| group.takes(&Group::of(&packet(sent, arrived)));
    assert!(takes(105, 170));
    assert!(!takes(106, 157));
    // Sent 20 ms later, arrived 4 ms later.
    assert!(takes(120, 154));
    assert!(!takes(120, 155));
}

#[test]
fn over_use_takes_10_ms_and_a_mean_that_does_not_fall() {
    let mut detector = Detector::new();
    let mut detect = |m| detector.detect(m, 9.0);
    assert_eq!(detect(20.0), Signal::Normal);
    assert_eq!(detect(20.0), Signal::Normal);
    assert_eq!(detect(20.0), Signal::Over);
    assert_eq!(detect(19.0), Signal::Normal);
    assert_eq!(detect(0.0), Signal::Normal);
    assert_eq!(detect(-20.0), Signal::Under);
}

#[test]
fn the_threshold_follows_the_mean() {
    let after = |m| {
        let mut detector = Detector::new();
        detector.detect(m, 10.0);
        detector.del_var_th
    };
    // 12.5 + 10 x 0.01 x 7.5, and 12.5 - 10 x 0.00018 x 7.5.
    close(after(20.0), 13.25);
    close(after(5.0), 12.4865);
    close(after(27.0), 13.95);
    close(after(28.0), 12.5);
}

/// A control whose `R_hat` is 800 kbit/s: 50 packets of 1,000 B in 500 ms.
fn steady() -> Gcc {
    let mut gcc = Gcc::new(RATES);
    (0..100).for_each(|n| gcc.count(&packet(10 * n, 10 * n)));
    gcc.last_update = Some(at(1_000));
    gcc
}

#[test]
fn the_incoming_rate_is_that_of_half_a_second() {
    let mut gcc = Gcc::new(RATES);
    (0..50).for_each(|n| gcc.count(&packet(10 * n, 10 * n)));
    assert_eq!(gcc.r_hat(), None);
    close(steady().r_hat().expect("known"), 800_000.0);
}

#[test]
fn far_from_the_maxima_the_estimate_grows_by_8_percent_per_second() {
    let mut gcc = steady();
    gcc.update_a_hat(at(1_500), Signal::Normal);
    close(gcc.a_hat, 1_000_000.0 * 1.08_f64.sqrt());
    // At most 1.5 R_hat.
    gcc.a_hat = 1_190_000.0;
    gcc.update_a_hat(at(2_500), Signal::Normal);
    close(gcc.a_hat, 1_200_000.0);
}

#[test]
fn over_use_takes_the_estimate_to_85_percent_of_the_incoming_rate() {
    let mut gcc = steady();
    gcc.update_a_hat(at(1_500), Signal::Over);
    close(gcc.a_hat, 680_000.0);
    // Then it holds, and is near the maximum: half a packet of 680,000 / 30 / 3 bits per response time of 200 ms.
    gcc.update_a_hat(at(1_600), Signal::Normal);
    assert_eq!(gcc.state, State::Hold);
    gcc.update_a_hat(at(1_700), Signal::Normal);
    close(gcc.a_hat, 680_000.0 + 0.25 * 680_000.0 / 90.0);
    gcc.update_a_hat(at(1_701), Signal::Normal);
    close(gcc.a_hat, 680_000.0 + 0.25 * 680_000.0 / 90.0 + 1_000.0);
}

#[test]
fn the_average_and_the_deviation_of_the_maxima_are_smoothed() {
    let first = Maxima::with(None, 800_000.0);
    assert_eq!((first.average, first.variance), (800_000.0, 0.0));
    let second = Maxima::with(Some(first), 900_000.0);
    close(second.average, 805_000.0);
    // 0.95 x 0.05 x 100,000^2.
    close(second.variance, 4.75e8);
}

#[test]
fn a_rate_above_three_deviations_resets_the_maxima() {
    let mut gcc = steady();
    gcc.maxima = Some(Maxima {
        average: 700_000.0,
        variance: 1e9,
    });
    gcc.update_a_hat(at(1_500), Signal::Normal);
    assert_eq!(gcc.maxima, None);
}

/// A report on packets of which `lost` of 20 are lost.
fn losses(lost: u64) -> Feedback {
    Feedback {
        acked: (0..20 - lost).map(|n| packet(n, n)).collect(),
        lost,
        ..Feedback::default()
    }
}

#[test]
fn the_loss_based_estimate_follows_section_6() {
    let after = |lost| {
        let mut gcc = Gcc::new(RATES);
        gcc.update_as_hat(&losses(lost));
        gcc.as_hat
    };
    close(after(0), 1_050_000.0);
    close(after(1), 1_000_000.0);
    close(after(2), 1_000_000.0);
    close(after(4), 900_000.0);
}

#[test]
fn the_target_is_the_smaller_estimate() {
    let mut gcc = Gcc::new(RATES);
    gcc.as_hat = 900_000.0;
    close(gcc.target(), 900_000.0);
    close(gcc.pacing_rate(), 1_350_000.0);
}
