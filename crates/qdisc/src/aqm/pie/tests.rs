use sojourn_net::Ecn;

use super::*;
use crate::testing::{Recorder, TestPacket};

const MTU: Bytes = Bytes(1_514);

fn linux(profile: Profile) -> PieParams {
    PieParams {
        profile,
        ..PieParams::default()
    }
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// Offers `load` packets and serves one every millisecond until `last_ms`, with timers in time.
fn run(params: &PieParams, load: u64, ecn: Ecn, last_ms: u64) -> (Pie<TestPacket>, Recorder) {
    let mut pie = Pie::new(params, MTU, Rng::new(1));
    let mut seen = Recorder::default();
    let mut id = 0;
    for ms in 0..last_ms {
        while let Some(due) = pie.next_timer().filter(|&due| due <= at_ms(ms)) {
            pie.on_timer(due);
        }
        for _ in 0..load {
            let pkt = TestPacket {
                ecn,
                ..TestPacket::mtu(id)
            };
            pie.enqueue(at_ms(ms), pkt, &mut seen);
            id += 1;
        }
        pie.dequeue(at_ms(ms), &mut seen);
    }
    (pie, seen)
}

fn aqm_drops(seen: &Recorder) -> impl Iterator<Item = u64> {
    let aqm = seen.drops.iter().filter(|d| d.2 == DropReason::Aqm);
    aqm.map(|d| d.0.as_micros() / 1_000)
}

#[test]
fn timers_start_as_the_profile_says_and_keep_running_while_idle() {
    for (profile, first, period) in [
        (Profile::Rfc, 15, 15),
        (Profile::Linux, 504, 16),
        (Profile::Linux314, 500, 30),
    ] {
        let mut pie = Pie::<TestPacket>::new(&linux(profile), MTU, Rng::new(1));
        assert_eq!(pie.next_timer(), Some(at_ms(first)));
        pie.on_timer(at_ms(first - 1));
        assert_eq!(pie.next_timer(), Some(at_ms(first)), "too early");
        pie.on_timer(at_ms(first));
        assert_eq!(pie.next_timer(), Some(at_ms(first + period)));
    }
}

#[test]
fn nothing_is_dropped_in_the_burst_allowance() {
    // Twice the load from the start. The RFC's allowance of 150 ms lasts while p is 0 and the
    // delay low; Linux's counts from the first departure but p moves only after 504 or 500 ms.
    for (profile, from_ms) in [
        (Profile::Rfc, 150),
        (Profile::Linux, 504),
        (Profile::Linux314, 500),
    ] {
        let (_, seen) = run(&linux(profile), 2, Ecn::NotEct, 3_000);
        let first = aqm_drops(&seen).next().unwrap();
        assert!(first >= from_ms, "{profile}: {first} ms");
    }
}

#[test]
fn the_delay_of_unresponsive_traffic_is_bounded_by_drops_not_marks() {
    // At twice the load p must exceed 10 %, so marks end and drops begin.
    for profile in [Profile::Rfc, Profile::Linux, Profile::Linux314] {
        let params = PieParams {
            ecn: true,
            limit: 100_000,
            ..linux(profile)
        };
        let (pie, seen) = run(&params, 2, Ecn::Ect0, 10_000);
        let marks = seen.marks.iter().filter(|m| m.0 >= at_ms(9_000)).count();
        assert_eq!(marks, 0, "{profile}");
        let waiting = pie.backlog().packets;
        assert!(waiting < 1_000, "{profile}: {waiting}");
        let late = aqm_drops(&seen).filter(|&ms| ms >= 9_000).count();
        assert!((600..1_400).contains(&late), "{profile}: {late} of 2000");
    }
}

#[test]
fn the_delay_in_linux_is_the_last_sojourn_and_0_once_the_queue_is_empty() {
    let mut law = Linux::new(&linux(Profile::Linux), MTU);
    law.on_dequeue(at_ms(20), at_ms(10), Bytes(1), MTU);
    assert_eq!(law.qdelay(), 10_000_000 >> 6);
    law.on_dequeue(at_ms(30), at_ms(10), Bytes(0), MTU);
    assert_eq!(law.qdelay(), 0);
}

#[test]
fn linux_spends_the_burst_allowance_between_departures() {
    let mut law = Linux::new(&linux(Profile::Linux), MTU);
    let start = law.burst_time();
    assert_eq!(start, 150_000_000 >> 6);
    law.on_dequeue(at_ms(100), at_ms(0), Bytes(1), MTU);
    assert_eq!(law.burst_time(), start);
    law.on_dequeue(at_ms(140), at_ms(0), Bytes(1), MTU);
    assert_eq!(law.burst_time(), 110_000_000 >> 6);
    for _ in 0..40 {
        law.calculate_probability(Bytes(100_000));
    }
    assert_eq!(law.burst_time(), 110_000_000 >> 6);
}

/// By how much an update moves probability `p` while the delay stays at `delay_ms`.
fn step(profile: Profile, p: f64, delay_ms: u64) -> f64 {
    let mut law = Linux::new(&linux(profile), MTU);
    // Profile 3.14 knows rates only: 16 times 2^-8 bytes a tick, from departures every 2^20 ns.
    law.on_dequeue(at_ms(0), at_ms(0), Bytes(1 << 20), Bytes(0));
    for n in 1..=10 {
        let now = Instant::from_nanos(n << 20);
        law.on_dequeue(now, at_ms(0), Bytes(1 << 20), Bytes(1_024));
    }
    let backlog = Bytes((1_000_000 * delay_ms) >> 10);
    law.set_for_test(p, backlog.0 << 4, Duration::ZERO);
    let before = law.probability();
    law.calculate_probability(backlog);
    law.probability() - before
}

#[test]
fn the_gain_grows_with_the_probability() {
    // A constant error of 10 ms makes steps of alpha * error * k(p): 1.25e-3 k.
    for (p, k) in [
        (0.0, 2_048.0),
        (0.99e-6, 2_048.0),
        (1.01e-6, 512.0),
        (0.99e-5, 512.0),
        (1.01e-5, 128.0),
        (1.01e-4, 32.0),
        (1.01e-3, 8.0),
        (0.0101, 2.0),
        (0.099, 2.0),
        (0.101, 1.0),
    ] {
        let got = 1.25e-3 / step(Profile::Linux, p, 25);
        assert!((got / k - 1.0).abs() < 1e-3, "{got} at {p}");
    }
    // 3.14 has 1/8, 1/2 and 1; its integers make alpha 4, 17 and 34 of 274 * 2 / 2^k.
    for (p, k) in [(0.0, 8.56), (0.0101, 2.014), (0.101, 1.007)] {
        let got = 1.25e-3 / step(Profile::Linux314, p, 30);
        assert!((got / k - 1.0).abs() < 1e-2, "{got} at {p}");
    }
}

#[test]
fn above_a_quarter_second_the_probability_rises_by_two_percent_more() {
    // alpha * 285 ms = 3.6 % is cut to 2 % from p = 10 % on; then 2 % come on top.
    let large = step(Profile::Linux, 0.3, 300);
    assert!((large - 0.04).abs() < 1e-9, "{large}");
    let small = step(Profile::Linux, 0.0, 249);
    assert!(small < 0.001, "{small}");
}

#[test]
fn the_probability_decays_when_both_delays_are_0() {
    for (profile, factor) in [(Profile::Linux, 1.0 / 64.0), (Profile::Linux314, 0.02)] {
        // What the controller takes at delay 0, and then the decay of what is left.
        let taken = 0.125 * Linux::new(&linux(profile), MTU).target_secs();
        let want = -(taken + (0.5 - taken) * factor);
        let got = step(profile, 0.5, 0);
        assert!((got - want).abs() < 2e-4, "{profile}: {got}, not {want}");
    }
}

#[test]
fn linux_spares_bursts_short_queues_and_light_congestion() {
    let low = ticks_of(7);
    let high = ticks_of(8);
    let none = Duration::ZERO;
    for (p, qdelay, burst, backlog, drops) in [
        (1.0, high, none, 3_028, true),
        (1.0, high, none, 3_027, false),
        (1.0, high, Duration::from_millis(1), 3_028, false),
        (0.21, low, none, 3_028, true),
        (0.19, low, none, 3_028, false),
        (0.19, high, none, 3_028, true),
        // Half the target of 234375 ticks.
        (0.19, 117_186, none, 3_028, false),
        (0.19, 117_187, none, 3_028, true),
    ] {
        let mut law = Linux::new(&linux(Profile::Linux), MTU);
        let mut rng = Rng::new(1);
        law.set_for_test(p, qdelay, burst);
        let dropped = (0..100).any(|_| law.drop_early(Bytes(backlog), MTU, &mut rng));
        assert_eq!(
            dropped, drops,
            "p {p}, qdelay {qdelay}, {burst}, {backlog} B"
        );
    }
}

/// Milliseconds in ticks of 64 ns.
const fn ticks_of(ms: u64) -> u64 {
    (1_000_000 * ms) >> 6
}

#[test]
fn linux_6_1_lets_the_probability_pass_1() {
    let mut law = Linux::new(&linux(Profile::Linux), MTU);
    for _ in 0..100 {
        law.on_dequeue(at_ms(1_000), at_ms(0), Bytes(1), MTU);
        law.calculate_probability(Bytes(1));
    }
    assert!(law.probability() > 2.0);
    assert!(!law.may_mark());
}

#[test]
fn drops_are_spaced_by_the_accumulated_probability() {
    // At p of a few percent no two drops of the lottery come within 0.85 / p arrivals.
    let (mut pie, mut seen) = run(&linux(Profile::Linux), 1, Ecn::NotEct, 400);
    let Law::Linux(law) = &mut pie.law else {
        unreachable!("the profile is linux")
    };
    law.set_for_test(0.05, 20_000_000 >> 6, Duration::ZERO);
    for id in 0..100_000 {
        pie.enqueue(at_ms(400), TestPacket::mtu(1_000 + id), &mut seen);
        if pie.backlog().packets > 10 {
            pie.fifo.pop(at_ms(400));
        }
    }
    let drops: Vec<_> = seen.drops.iter().map(|d| d.1.id).collect();
    let gaps: Vec<_> = drops.windows(2).map(|w| w[1] - w[0]).collect();
    // 0.85 / 0.05 = 17 arrivals, then a lottery of 1 in 20; by 8.5 / 0.05 = 170 a certain drop.
    assert!(gaps.iter().all(|g| (17..=171).contains(g)));
    assert!((2_600..2_900).contains(&drops.len()), "{}", drops.len());
}

/// What an update makes of probability `p` at a delay that stays, while `backlog` bytes wait.
fn updated(params: &PieParams, p: f64, qdelay: u64, backlog: u64) -> f64 {
    let mut law = Linux::new(params, MTU);
    law.set_for_test(p, qdelay, Duration::ZERO);
    law.calculate_probability(Bytes(backlog));
    law.probability()
}

#[test]
fn a_rise_is_cut_to_two_percent_from_a_tenth_on() {
    let steep = PieParams {
        alpha: 32,
        ..linux(Profile::Linux)
    };
    // 2 Hz times 200 ms are 40 %, halved below a tenth.
    let below = updated(&steep, 0.05, ticks_of(215), 100_000) - 0.05;
    assert!(below > 0.1, "{below}");
    let above = updated(&steep, 0.15, ticks_of(215), 100_000) - 0.15;
    assert!((above - 0.02).abs() < 1e-6, "{above}");
}

#[test]
fn a_quarter_second_itself_is_not_above_it() {
    let rise = |qdelay| updated(&linux(Profile::Linux), 0.0, qdelay, 100_000);
    let (at, above) = (rise(ticks_of(250)), rise(ticks_of(250) + 1));
    assert!(at < 0.001 && above > 0.02, "{at} {above}");
}

#[test]
fn no_delay_says_nothing_while_packets_wait() {
    let of = |backlog| updated(&linux(Profile::Linux), 0.5, 0, backlog);
    let (waiting, empty) = (of(100), of(0));
    assert!((empty / waiting - 63.0 / 64.0).abs() < 1e-3, "{empty}");
}

#[test]
fn a_burst_is_allowed_again_below_half_the_target() {
    for (ms, again) in [(0, true), (7, true), (8, false), (20, false)] {
        let mut law = Linux::new(&linux(Profile::Linux), MTU);
        law.set_for_test(0.0, ticks_of(ms), Duration::from_millis(1));
        law.calculate_probability(Bytes(100_000));
        // Twice, so that the delay before is the same.
        law.set_for_test(0.0, ticks_of(ms), Duration::from_millis(1));
        law.calculate_probability(Bytes(100_000));
        assert_eq!(law.burst_time() > ticks_of(1), again, "{ms} ms");
    }
}

fn estimated(law: &Linux) -> f64 {
    let all = law.statistics();
    let found = all.iter().find(|s| s.name == "avg_dq_rate");
    match found.map(|s| s.value) {
        Some(crate::contract::Number::Count(n)) => f64::from(u32::try_from(n).unwrap_or(0)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_departure_rate_is_measured_without_gaps_while_enough_waits() {
    let size = Bytes(65_536);
    let mut law = Linux::new(&linux(Profile::Linux314), MTU);
    for n in 0..400 {
        law.on_dequeue(at_ms(n), at_ms(0), Bytes(1 << 20), size);
    }
    let rate = estimated(&law);
    assert!((rate / 65_536_000.0 - 1.0).abs() < 0.02, "{rate}");
    // The measurement under way ends; none begins while little waits.
    for n in 400..420 {
        law.on_dequeue(at_ms(n), at_ms(0), Bytes(100), size);
    }
    let rate = estimated(&law);
    for n in 0..1_000 {
        let now = at_ms(420) + Duration::from_micros(n);
        law.on_dequeue(now, at_ms(0), Bytes(100), size);
    }
    assert!((estimated(&law) - rate).abs() < 0.5);
}
