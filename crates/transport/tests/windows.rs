//! Slow-start exit and burst sizes, as measured on the kernel.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod middlebox;

use middlebox::{Lab, Scenario, What};
use sojourn_net::Duration;
use sojourn_transport::{CcKind, Sender, SenderParams, SlowStart, Ticks};

/// More data than any test here sends.
const ENDLESS: [(u64, u64); 1] = [(0, 1 << 40)];

/// One flow over a long FIFO; packets depart when their service begins, and the delay follows.
const fn path(mbit: u64, rtt_ms: u64, seconds: u64) -> Scenario {
    let mut scenario = Scenario::new("steady", &ENDLESS, &[]);
    scenario.mbit = Some(mbit);
    scenario.one_way = Duration::from_micros(500 * rtt_ms);
    scenario.departs_early = true;
    scenario.seconds = seconds;
    scenario
}

#[test]
fn m13_hystart_leaves_slow_start_where_the_kernel_does() {
    // Rate, RTT, the threshold that Linux 6.1.192 set behind the same middlebox, and how far off
    // the model may be. At 100 Mbit/s and 10 ms it leaves 7 segments early (the kernel's own
    // range there is 122 to 127); why is not known.
    for (mbit, rtt_ms, kernel, off) in [
        (10, 10, 25, 2),
        (10, 50, 63, 2),
        (10, 100, 122, 2),
        (20, 20, 38, 2),
        (20, 100, 244, 2),
        (50, 40, 246, 2),
        (100, 10, 124, 7),
        (100, 50, 532, 2),
        (100, 100, 1_059, 2),
        (1, 50, 30, 2),
    ] {
        let (_, client) = Lab::run(&path(mbit, rtt_ms, 3));
        let ssthresh = client.ssthresh().unwrap();
        assert!(
            ssthresh.abs_diff(kernel) <= off,
            "{mbit} Mbit/s, {rtt_ms} ms: model {ssthresh}, kernel {kernel}"
        );
    }
}

/// Sizes of bursts after slow start: a burst ends at a pause of 0.3 ms.
fn groups(scenario: &Scenario) -> Vec<usize> {
    let (log, _) = Lab::run(scenario);
    let sent = log.iter().filter(|f| matches!(f.what, What::Data { .. }));
    let times: Vec<f64> = sent.map(|f| f.ms).filter(|&ms| ms > 2_000.0).collect();
    let mut sizes = vec![1];
    for pair in times.windows(2) {
        if pair[1] - pair[0] > 0.3 {
            sizes.push(0);
        }
        *sizes.last_mut().unwrap() += 1;
    }
    sizes
}

fn share(sizes: &[usize], wanted: std::ops::RangeInclusive<usize>) -> f64 {
    let packets = |sizes: Vec<usize>| sizes.iter().sum::<usize>();
    let all = packets(sizes.to_vec());
    let within = packets(
        sizes
            .iter()
            .copied()
            .filter(|n| wanted.contains(n))
            .collect(),
    );
    f64::from(u32::try_from(within).unwrap()) / f64::from(u32::try_from(all).unwrap())
}

#[test]
fn m17_a_fast_flow_sends_nine_or_ten_at_a_time() {
    let sizes = groups(&path(100, 100, 4));
    assert!(share(&sizes, 8..=11) > 0.7, "{sizes:?}");
}

#[test]
fn m17_a_slow_flow_sends_two_at_a_time() {
    let sizes = groups(&path(10, 50, 10));
    assert!(share(&sizes, 2..=2) > 0.6, "{sizes:?}");
    assert!(share(&sizes, 1..=3) > 0.98, "{sizes:?}");
}

/// BBR over 10 Mbit/s and 50 ms with a queue that never overflows.
fn bbr(seconds: u64) -> Scenario {
    let mut scenario = path(10, 50, seconds);
    scenario.cc = CcKind::Bbr;
    scenario.departs_early = false;
    scenario
}

#[test]
fn m18_bbr_settles_where_the_kernel_does() {
    // Linux 6.1.192: 126 at the end of STARTUP, 92 from about 1 s on, 92 to 98 after PROBE_RTT.
    let cwnd = |seconds| Lab::run(&bbr(seconds)).1.cwnd();
    assert_eq!((cwnd(2), cwnd(9)), (92, 92));
    assert!((92..=98).contains(&cwnd(12)), "{}", cwnd(12));
}

#[test]
fn m18_bbr_asks_for_the_minimum_rtt_ten_seconds_after_the_handshake() {
    let (log, _) = Lab::run(&bbr(11));
    let sent = |from: f64, to: f64| {
        let data = log.iter().filter(|f| matches!(f.what, What::Data { .. }));
        data.filter(|f| (from..to).contains(&f.ms)).count()
    };
    // 10 Mbit/s are 124 segments in 150 ms; 4 per round trip are 12.
    assert!((100..140).contains(&sent(9_800.0, 9_950.0)));
    assert!(
        sent(10_120.0, 10_270.0) <= 16,
        "{}",
        sent(10_120.0, 10_270.0)
    );
    assert!((100..140).contains(&sent(10_450.0, 10_600.0)));
}

/// How long it takes to send the second window, of 20 segments; in ms.
fn second_window_takes(pacing: bool, cc: CcKind) -> f64 {
    let mut scenario = path(100, 100, 1);
    (scenario.pacing, scenario.cc) = (pacing, cc);
    let (log, _) = Lab::run(&scenario);
    let data = log.iter().filter(|f| matches!(f.what, What::Data { .. }));
    let times: Vec<f64> = data.map(|f| f.ms).collect();
    times[29] - times[10]
}

#[test]
fn pacing_spreads_a_window_of_slow_start_over_half_a_round_trip() {
    for cc in [CcKind::Cubic, CcKind::Reno] {
        // Unpaced, segments follow the acknowledgements, ten in 1.2 ms.
        assert!(second_window_takes(false, cc) < 1.5, "{cc}");
        let paced = second_window_takes(true, cc);
        // Two windows of 20 per round trip: nine gaps of 5 ms between ten pairs.
        assert!((40.0..50.0).contains(&paced), "{cc}: {paced}");
    }
}

#[test]
fn a_connection_begins_with_the_initial_ssthresh() {
    let ssthresh = |cc: &str, slow_start| {
        let params = SenderParams {
            cc: cc.parse().unwrap(),
            slow_start,
            ..SenderParams::default()
        };
        Sender::new(&params, Ticks::new(Duration::ZERO)).ssthresh()
    };
    let limited = "cubic initial_ssthresh 40";
    assert_eq!(ssthresh(limited, None), None, "HyStart is on");
    assert_eq!(ssthresh(limited, Some(SlowStart::Standard)), Some(40));
    assert_eq!(
        ssthresh("cubic initial_ssthresh 40 hystart off", None),
        Some(40)
    );
    assert_eq!(ssthresh("cubic hystart off", None), None);
}
