//! CoDel does what the pseudo-code of RFC 8289 §5 does, packet for packet; and what Linux does
//! where its published numbers say so.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod rfc8289;

use rfc8289::{CodelQueue, INTERVAL, TARGET};
use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{Bytes, Codel, CodelParams, Ecn, Instant, Profile, Qdisc, Rng};

/// What the seeds exercised, so that a test which tests nothing fails.
#[derive(Default)]
struct Coverage {
    signals: usize,
    signalled_twice_at_once: usize,
}

fn pick(rng: &mut Rng, from: &[u64]) -> u64 {
    from[usize::try_from(rng.below(from.len() as u64)).unwrap()]
}

/// Drives both implementations with the traffic of `seed` and compares every answer.
///
/// Time moves on a grid of half milliseconds, so that delays *equal* to a parameter are
/// common; idle gaps are drawn from the constants of the algorithm, so that both sides of
/// each comparison are visited. With continuous random time, four of ten deliberate errors
/// went unnoticed.
fn compare(seed: u64, cov: &mut Coverage) {
    const TICK: u64 = 500_000;
    const GAPS: [u64; 6] = [
        TARGET,
        INTERVAL - TICK,
        INTERVAL,
        15 * INTERVAL,
        16 * INTERVAL,
        17 * INTERVAL,
    ];
    let params = CodelParams {
        limit: usize::MAX,
        profile: Profile::Rfc,
        ..CodelParams::default()
    };
    let mut ours = Codel::new(&params, Bytes(rfc8289::MAXPACKET));
    let (mut rfc, mut signals) = (CodelQueue::default(), Recorder::default());
    let mut ns = 0;
    let mut rng = Rng::new(seed);
    let gap_one_in = 20 + rng.below(400);
    let load_percent = 40 + rng.below(40);

    for id in 0..4_000 {
        let gap = rng.below(gap_one_in) == 0;
        ns += if gap {
            pick(&mut rng, &GAPS)
        } else {
            rng.below(8) * TICK
        };
        let now = Instant::from_nanos(ns);

        if rng.below(100) < load_percent {
            let size = pick(&mut rng, &[64, 700, 814, 1_500, 1_514]);
            let pkt = TestPacket {
                size,
                ..TestPacket::mtu(id)
            };
            ours.enqueue(now, pkt, &mut signals);
            rfc.enqueue(ns, pkt);
        } else {
            let before = signals.drops.len();
            let (got, want) = (ours.dequeue(now, &mut signals), rfc.dequeue(ns));
            assert_eq!(got, want, "delivered: seed {seed}, step {id}");
            let dropped: Vec<_> = signals.drops[before..].iter().map(|d| d.1.id).collect();
            assert_eq!(dropped, rfc.dropped[before..], "seed {seed}, step {id}");
            cov.signalled_twice_at_once += usize::from(dropped.len() > 1);
        }
        assert_eq!(ours.backlog().bytes, Bytes(rfc.bytes), "seed {seed}");
    }
    cov.signals += signals.drops.len();
}

#[test]
fn agrees_with_the_rfc_on_random_traffic() {
    let mut cov = Coverage::default();
    for seed in 0..1_000 {
        compare(seed, &mut cov);
    }
    assert!(cov.signals > 10_000, "only {} signals", cov.signals);
    let twice = cov.signalled_twice_at_once;
    assert!(twice > 1_000, "only {twice}");
}

/// Signals of a queue that always stands, a packet leaves every 0.1 ms. The gaps between the first eight signals, in tenths of milliseconds.
fn gaps(profile: Profile, ecn: Ecn) -> Vec<u64> {
    let params = CodelParams {
        limit: usize::MAX,
        ecn: true,
        profile,
        ..CodelParams::default()
    };
    let mut codel = Codel::new(&params, Bytes(1_514));
    let mut signals = Recorder::default();
    for id in 0..20_000 {
        let pkt = TestPacket {
            ecn,
            ..TestPacket::mtu(id)
        };
        codel.enqueue(Instant::ZERO, pkt, &mut signals);
    }
    for step in 0..9_000 {
        codel.dequeue(Instant::from_nanos(step * 100_000), &mut signals);
    }
    let drops = signals.drops.iter().map(|d| d.0);
    let marks = signals.marks.iter().map(|m| m.0);
    let at: Vec<u64> = drops.chain(marks).map(|t| t.as_micros() / 100).collect();
    at.windows(2).take(7).map(|w| w[1] - w[0]).collect()
}

#[test]
fn the_gaps_between_signals_are_those_published() {
    let close = |got: Vec<u64>, want: &[u64]| {
        // A signal waits for the next departure, at most one grid step later than the law's time.
        let near = got.iter().zip(want).all(|(g, w)| g.abs_diff(*w) <= 1);
        assert!(near && got.len() >= want.len(), "{got:?} is not {want:?}");
    };
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let rfc = [1_000, 707, 577, 500, 447, 408];
        close(gaps(Profile::Rfc, ecn), &rfc);
        let linux = [1_000, 500, 563, 488, 442, 404];
        close(gaps(Profile::Linux, ecn), &linux);
    }
}
