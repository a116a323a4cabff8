//! Connections against the response functions of their congestion controls.
//!
//! `make reference` compares what the tests print with the tables of `docs/validation/tcp.md`.

mod models;
mod path;

use path::Path;
use sojourn_net::{Duration, Rate, Rng};
use sojourn_transport::{CcKind, MSS};

const RTT: Duration = Duration::from_millis(100);

fn float(n: u64) -> f64 {
    f64::from(u32::try_from(n).expect("less than 2^32"))
}

/// How segments are lost.
#[derive(Clone, Copy, Debug)]
enum Losses {
    /// Each with the same probability.
    Random,
    /// One in `every`, periodically.
    Regular,
}

/// Segments per round trip that a connection delivers while one in `every` is lost, over `episodes`
/// losses.
fn window(cc: CcKind, losses: Losses, every: u64, episodes: u64) -> f64 {
    let mut path = Path::new(cc, RTT, Rate::mbit(10_000));
    let mut rng = Rng::new(1).fork("loss");
    let mut loss = |n| match losses {
        Losses::Random => rng.below(every) == 0,
        Losses::Regular => n % every == every - 1,
    };
    // The first tenth still depends on slow start.
    let warm_up = every * episodes / 10;
    while path.offered() < warm_up {
        path.step(&mut loss);
    }
    let (from, before) = (path.now, path.receiver.delivered_bytes());
    while path.offered() < 11 * warm_up {
        path.step(&mut loss);
    }
    let trips = path.now.since(from).as_secs_f64() / RTT.as_secs_f64();
    let segments = (path.receiver.delivered_bytes() - before) / u64::from(MSS);
    float(segments) / trips
}

/// Begins a table of windows.
fn head(name: &str) {
    println!(
        "\n# {name}\n| control, compared with | one loss in | segments per round trip | expected | ratio |"
    );
    println!("|---|---|---|---|---|");
}

/// Prints the measured value and that of the formula; returns their ratio.
fn compare(what: &str, every: u64, measured: f64, formula: f64) -> f64 {
    let share = measured / formula;
    println!("| {what} | {every} | {measured:.1} | {formula:.1} | {share:.3} |");
    share
}

#[test]
fn reno_follows_the_line_of_mathis() {
    head("mathis");
    for (every, episodes) in [
        (100, 10_000),
        (1_000, 5_000),
        (10_000, 1_000),
        (100_000, 100),
    ] {
        let measured = window(CcKind::Reno, Losses::Random, every, episodes);
        let line = (1.5 * float(every)).sqrt();
        let share = compare("Reno, formula", every, measured, line);
        assert!((share - 1.0).abs() < 0.1, "one in {every}: {share}");
    }
}

#[test]
fn cubic_and_highspeed_follow_their_response_functions() {
    // 5 % of the models, which include what the formulae omit; set after the ratios were seen.
    let near = |share: f64| (share - 1.0).abs() < 0.05;
    head("response");
    for (every, episodes) in [(10_000, 500), (100_000, 200)] {
        // RFC 9438 §5.2 with the decrease of 0.7.
        let measured = window(CcKind::Cubic, Losses::Regular, every, episodes);
        let seconds = float(every) * RTT.as_secs_f64();
        let formula = (0.4_f64 * 3.7 / (4.0 * 0.3)).powf(0.25) * seconds.powf(0.75);
        compare("CUBIC, formula", every, measured, formula);
        // Whole segments make the plateau wide: windows within it are all their own successors, and
        // one that comes from above, as slow start leaves it, ends at the upper edge.
        let losses = u32::try_from(episodes).expect("few");
        let model = models::cubic(float(every), losses, RTT.as_secs_f64(), 20.0 * formula);
        let share = compare("CUBIC, model", every, measured, model);
        assert!(near(share), "one in {every}: {share}");

        // RFC 3649 §5 with half the increase, as every second segment is acknowledged and Linux
        // counts acknowledgements.
        let measured = window(CcKind::HighSpeed, Losses::Regular, every, episodes);
        let formula = 0.12 * float(every).powf(0.835) / 2_f64.powf(1.0 / 1.2);
        compare("HighSpeed TCP, formula", every, measured, formula);
        // Linux takes the row above the window.
        let share = compare(
            "HighSpeed TCP, model",
            every,
            measured,
            models::hstcp(float(every), losses),
        );
        assert!(near(share), "one in {every}: {share}");
    }
}

/// The window of CUBIC before its only loss, that of segment `at`, and those in the seconds after
/// recovery from it.
fn curve_after_a_loss(at: u64, seconds: f64) -> (f64, Vec<(f64, f64)>) {
    let mut path = Path::new(CcKind::Cubic, RTT, Rate::mbit(10_000));
    let mut loss = |n| n == at;
    let mut before = 0;
    while path.sender.ssthresh().is_none() {
        before = path.sender.cwnd();
        path.step(&mut loss);
    }
    while path.sender.cwnd() > path.sender.ssthresh().expect("a loss") {
        path.step(&mut loss);
    }
    let begin = path.now;
    let mut curve = Vec::new();
    while path.now.since(begin).as_secs_f64() < seconds {
        if path.step(&mut loss) {
            let t = path.now.since(begin).as_secs_f64();
            curve.push((t, f64::from(path.sender.cwnd())));
        }
    }
    (f64::from(before), curve)
}

#[test]
fn cubic_follows_its_curve_after_a_single_loss() {
    println!(
        "\n# curve\n| W_max, segments | K, s | fitted C | outside the band by at most |\n|---|---|---|---|"
    );
    for at in [100, 700, 3_000] {
        let (w_max, curve) = curve_after_a_loss(at, 25.0);
        let k = (w_max * 0.3 / 0.4).cbrt();
        let (mut products, mut squares, mut worst) = (0.0, 0.0, 0.0);
        for (t, w) in curve {
            let curve = |t: f64| w_max + 0.4 * (t - k).powi(3);
            let cube = (t - k).powi(3);
            products += cube * (w - w_max);
            squares += cube * cube;
            // Between the curve and its value a round trip later, the target of each
            // acknowledgement.
            let late = curve(t) - w;
            let early = w - curve(t + RTT.as_secs_f64());
            worst = f64::max(worst, f64::max(late, early) / w);
            assert!(
                late.max(early) < 2.0 + w / 200.0,
                "{w} at {t} s, W_max {w_max}"
            );
        }
        let c = products / squares;
        println!("| {w_max} | {k:.2} | {c:.4} | {:.2} % |", 100.0 * worst);
        assert!((c - 0.4).abs() < 0.004, "C {c}");
    }
}

/// The mean window of a control that grows by `growth` segments per round trip and gives up the part `given` of the
/// window at each loss, one in `every`: the segments of a sawtooth between two losses are as many.
fn sawtooth(every: u64, growth: f64, given: f64) -> f64 {
    let mean = 1.0 - given / 2.0;
    mean * (float(every) * growth / (given * mean)).sqrt()
}

/// The same of a control that grows by the part `growth` of the window per round trip.
fn exponential(every: u64, growth: f64, given: f64) -> f64 {
    let trips = -(1.0 - given).ln() / growth.ln_1p();
    float(every) / trips
}

/// Without a queue: the delay stays at its minimum, as Veno, Illinois and `YeAH` have it on an empty path.
#[test]
fn controls_of_linux_follow_their_response_functions() {
    head("response_linux");
    for (every, episodes) in [(1_000, 2_000), (10_000, 500)] {
        // A window of 100 segments grows by more than 1 %, as Reno's.
        let large = every > 1_000;
        let laws = [
            ("Veno", CcKind::Veno, sawtooth(every, 1.0, 0.2)),
            ("Illinois", CcKind::Illinois, sawtooth(every, 10.0, 0.125)),
            // rho is 4; each second segment is acknowledged.
            ("Hybla", CcKind::Hybla, sawtooth(every, 8.0, 0.5)),
            (
                "Scalable TCP",
                CcKind::Scalable,
                exponential(every, 0.01, 0.125),
            ),
            ("YeAH", CcKind::Yeah, exponential(every, 0.01, 0.125)),
        ];
        for (name, cc, formula) in laws {
            if !large && matches!(cc, CcKind::Scalable | CcKind::Yeah) {
                continue;
            }
            let measured = window(cc, Losses::Regular, every, episodes);
            let share = compare(name, every, measured, formula);
            assert!((share - 1.0).abs() < 0.1, "{name}, one in {every}: {share}");
        }
    }
}

/// A path with a queue: after a loss the window is what the path holds without it.
#[test]
fn westwood_empties_the_queue_after_a_loss() {
    let mut path = Path::new(CcKind::Westwood, RTT, Rate::mbit(10));
    // The first loss ends slow start, in which the measured bandwidth lags behind.
    while path.now.as_nanos() < 13_000_000_000 {
        path.step(&mut |n| n == 200 || n == 7_000);
    }
    // 10 Mbit/s of packets of 1514 B hold 84 segments in 100 ms and the time of one.
    let (cwnd, threshold) = (path.sender.cwnd(), path.sender.ssthresh());
    assert!((75..=120).contains(&cwnd), "{cwnd}");
    assert!(
        threshold.is_some_and(|n| (75..=86).contains(&n)),
        "{threshold:?}"
    );
}

#[test]
fn hybla_begins_with_the_round_trip_over_25_ms() {
    for (ms, segments) in [(20, 1), (100, 4), (550, 22)] {
        let mut path = Path::new(CcKind::Hybla, Duration::from_millis(ms), Rate::mbit(10_000));
        while path.offered() == 0 {
            path.step(&mut |_| false);
        }
        assert_eq!(path.sender.cwnd(), segments, "{ms} ms");
    }
}
