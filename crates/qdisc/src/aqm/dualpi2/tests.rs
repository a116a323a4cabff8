use super::signed;
use super::*;
use crate::contract::Number::{Count, Real};
use crate::testing::{Recorder, TestPacket};

const MTU: Bytes = Bytes(1_514);

fn params(profile: Profile) -> DualPi2Params {
    DualPi2Params {
        limit: 1_000_000,
        profile,
        ..DualPi2Params::default()
    }
}

fn queue(params: &DualPi2Params) -> (DualPi2<TestPacket>, Recorder) {
    let queue = DualPi2::new(params, None, MTU, Rng::new(1));
    (queue, Recorder::default())
}

fn packet(id: u64, ecn: Ecn) -> TestPacket {
    TestPacket {
        ecn,
        ..TestPacket::mtu(id)
    }
}

const fn us(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

/// Sets the base probability, in both of its forms.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test sets a probability"
)]
fn set_p(q: &mut DualPi2<TestPacket>, p: f64) {
    match &mut q.law {
        Law::Rfc(law) => law.set_for_test(p),
        Law::Linux(law) => law.set_for_test((p * f64::from(u32::MAX)) as u32),
    }
}

/// Shares of `n` packets of one kind, with no wait, that are dropped and marked.
fn shares(q: &mut DualPi2<TestPacket>, ecn: Ecn, n: u32) -> (f64, f64) {
    let mut seen = Recorder::default();
    for id in 0..u64::from(n) + 10 {
        q.enqueue(us(0), packet(id, ecn), &mut seen);
    }
    let mut left = 0;
    while q.backlog().packets > 10 {
        left += u32::from(q.dequeue(us(0), &mut seen).is_some());
    }
    assert!(left > 0, "none left");
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (drops, marks) = (count(seen.drops.len()), count(seen.marks.len()));
    while q.dequeue(us(0), &mut seen).is_some() {}
    (
        f64::from(drops) / f64::from(n),
        f64::from(marks) / f64::from(n - drops),
    )
}

#[track_caller]
fn assert_near(got: f64, want: f64, by: f64) {
    assert!((got - want).abs() <= by, "{got}, not {want}");
}

#[test]
fn the_defaults_are_those_of_the_rfc_and_of_the_kernel() {
    let rfc = params(Profile::Rfc);
    assert_eq!(rfc.tupdate(), Duration::from_millis(15));
    let limit = rfc.memlimit(Some(Rate::mbit(100)), MTU);
    assert_eq!(limit, Bytes(100_000_000 / 8 / 4));
    let linux = params(Profile::Linux);
    assert_eq!(linux.tupdate(), Duration::from_millis(16));
    assert_eq!(Linux::new(&linux, MTU).gains(), (44, 879));
    // tc rounds down: 0.16 Hz is passed as 40/256, not as the default of 41.
    let rounded = DualPi2Params {
        alpha: Some(0.16),
        beta: Some(3.2),
        ..linux
    };
    assert_eq!(Linux::new(&rounded, MTU).gains(), (42, 879));
}

/// `max_rtt` of 30 ms: updates three times in it, gains from Figure 2.
#[test]
fn the_gains_of_the_rfc_follow_the_longest_round_trip() {
    let short = DualPi2Params {
        max_rtt: Some(Duration::from_millis(30)),
        ..params(Profile::Rfc)
    };
    assert_eq!(short.tupdate(), Duration::from_millis(10));
    let mut law = Rfc::new(&short);
    law.update(Duration::from_millis(20));
    // 0.1 * 0.01 / 0.03^2 * 5 ms + 0.3 / 0.03 * 20 ms
    assert_near(law.probability(), 0.205_555_555, 1e-8);
}

#[test]
fn the_kernels_probability_moves_as_its_integers_do() {
    let mut law = Linux::new(&params(Profile::Linux), MTU);
    let mut step = |ms| {
        law.update(Duration::from_millis(ms));
        law.prob()
    };
    // (10 ms * 44 + 25 ms * 879) / 64, then the error alone.
    assert_eq!(step(25), 350_234_375);
    assert_eq!(step(25), 357_109_375);
    // -(15 ms * 44 + 25 ms * 879) / 64
    assert_eq!(step(0), 3_437_500);
    assert_eq!(step(0), 0);
    assert_eq!(step(200), 2_874_062_500);
    assert_eq!(step(350), u32::MAX);
}

#[test]
fn a_leap_of_the_delay_wraps_the_kernels_probability() {
    let mut law = Linux::new(&params(Profile::Linux), MTU);
    law.update(Duration::from_millis(400));
    // (385 ms * 44 + 400 ms * 879) / 64 is 5758437500, of which 32 bits are kept.
    assert_eq!(law.prob(), 1_463_470_204);
}

#[test]
fn classic_is_signalled_with_the_square_and_l4s_with_twice_the_probability() {
    for (profile, by) in [(Profile::Rfc, 0.000_1), (Profile::Linux, 0.01)] {
        let (mut q, _) = queue(&params(profile));
        for (p, squared, doubled) in [(0.2, 0.04, 0.4), (0.45, 0.202_5, 0.9)] {
            set_p(&mut q, p);
            let (drops, marks) = shares(&mut q, Ecn::NotEct, 40_000);
            assert_near(drops, squared, by);
            assert_near(marks, 0.0, 0.0);
            let (drops, marks) = shares(&mut q, Ecn::Ect0, 40_000);
            assert_near(drops, 0.0, 0.0);
            assert_near(marks, squared, by);
            let (drops, marks) = shares(&mut q, Ecn::Ect1, 40_000);
            assert_near(drops, 0.0, 0.0);
            assert_near(marks, doubled, by);
        }
    }
}

#[test]
fn in_overload_ecn_saves_nobody_and_what_stays_of_l4s_is_marked() {
    for (profile, by) in [(Profile::Rfc, 0.000_1), (Profile::Linux, 0.01)] {
        let (mut q, _) = queue(&params(profile));
        set_p(&mut q, 0.6);
        let (drops, marks) = shares(&mut q, Ecn::Ect0, 40_000);
        assert_near(drops, 0.36, by);
        assert_near(marks, 0.0, 0.0);
        let (drops, marks) = shares(&mut q, Ecn::Ect1, 40_000);
        assert_near(drops, 0.36, by);
        assert_near(marks, 1.0, by);
    }
}

#[test]
fn without_drop_on_overload_the_probability_stops_where_all_of_l4s_is_marked() {
    for (profile, most) in [(Profile::Rfc, 0.5), (Profile::Linux, 0.499_999_999)] {
        let (mut q, mut seen) = queue(&DualPi2Params {
            drop_on_overload: false,
            ..params(profile)
        });
        q.enqueue(us(0), packet(0, Ecn::Ect1), &mut seen);
        q.on_timer(us(10_000_000));
        let prob = q.statistics()[0];
        assert_eq!(prob.name, "prob");
        let crate::contract::Number::Real(prob) = prob.value else {
            panic!("no number");
        };
        assert_near(prob, most, 1e-9);
        q.dequeue(us(10_000_000), &mut seen);
        let (drops, marks) = shares(&mut q, Ecn::Ect1, 10_000);
        assert_near(drops, 0.0, 0.0);
        assert_near(marks, 1.0, 0.000_2);
    }
}

#[test]
fn a_small_backlog_escapes_the_kernels_probability_but_not_its_threshold() {
    let (mut q, mut seen) = queue(&params(Profile::Linux));
    set_p(&mut q, 1.0);
    q.enqueue(us(0), packet(0, Ecn::NotEct), &mut seen);
    q.enqueue(us(0), packet(1, Ecn::NotEct), &mut seen);
    // One of 1514 bytes is left behind the first, none behind the second.
    assert!(q.dequeue(us(900), &mut seen).is_some());
    assert!(q.dequeue(us(900), &mut seen).is_some());
    assert!(seen.drops.is_empty());
    q.enqueue(us(1_000), packet(2, Ecn::Ect1), &mut seen);
    assert_eq!(
        q.dequeue(us(2_001), &mut seen).map(|p| p.ecn),
        Some(Ecn::Ce)
    );
    assert_eq!(seen.marks[0].2, MarkReason::CeThreshold);
    // The third of three finds 2 MTU behind itself.
    for id in 3..6 {
        q.enqueue(us(3_000), packet(id, Ecn::NotEct), &mut seen);
    }
    assert_eq!(q.dequeue(us(3_000), &mut seen).map(|p| p.id), Some(4));
    assert_eq!(seen.drops[0].1.id, 3);
}

#[test]
fn a_step_is_met_by_reaching_it_in_the_rfc_and_by_passing_it_in_the_kernel() {
    for (profile, at, past) in [(Profile::Rfc, true, true), (Profile::Linux, false, true)] {
        let stepped = DualPi2Params {
            step_thresh: Some(Duration::from_millis(1)),
            ..params(profile)
        };
        for (wait, want) in [(999, false), (1_000, at), (1_001, past)] {
            let (mut q, mut seen) = queue(&stepped);
            // A count of exactly 1 is no signal yet: the first of a certain series passes.
            for id in 0..3 {
                q.enqueue(us(0), packet(id, Ecn::Ect1), &mut seen);
            }
            q.dequeue(us(wait), &mut seen);
            q.dequeue(us(wait), &mut seen);
            assert_eq!(!seen.marks.is_empty(), want, "{profile}, {wait} us");
        }
    }
}

#[test]
fn a_queue_of_one_packet_is_spared_by_the_rfcs_threshold() {
    let (mut q, mut seen) = queue(&params(Profile::Rfc));
    for id in 0..10 {
        q.enqueue(us(id * 50_000), packet(id, Ecn::Ect1), &mut seen);
        q.dequeue(us(id * 50_000 + 12_000), &mut seen);
    }
    assert!(seen.marks.is_empty());
}

#[test]
fn both_queues_full_share_the_link_by_weight() {
    for (profile, protection, want) in [
        (Profile::Rfc, None, 0.062_5),
        (Profile::Linux, None, 0.1),
        (Profile::Linux, Some(30.0), 0.3),
    ] {
        let (mut q, mut seen) = queue(&DualPi2Params {
            classic_protection: protection,
            ..params(profile)
        });
        for id in 0..20_000 {
            let ecn = [Ecn::Ect0, Ecn::Ect1][id % 2];
            q.enqueue(us(0), packet(id as u64, ecn), &mut seen);
        }
        let left = (0..8_000).filter_map(|_| q.dequeue(us(0), &mut seen));
        let share = |ecn| if ecn == Ecn::Ect0 { 1.0 / 8_000.0 } else { 0.0 };
        let classic: f64 = left.map(|pkt| share(pkt.ecn)).sum();
        assert_near(classic, want, 0.002);
    }
}

#[test]
fn a_packet_alone_does_not_change_whose_turn_it_is() {
    let (mut q, mut seen) = queue(&params(Profile::Linux));
    for id in 0..50 {
        q.enqueue(us(id), packet(id, Ecn::Ect1), &mut seen);
        q.dequeue(us(id), &mut seen);
    }
    // L, favoured by 80 MTU of credit at 10 a packet, goes first nine times in ten.
    for id in 50_u8..70 {
        q.enqueue(
            us(100),
            packet(u64::from(id), [Ecn::Ect0, Ecn::Ect1][usize::from(id % 2)]),
            &mut seen,
        );
    }
    let order = (0..10).filter_map(|_| q.dequeue(us(100), &mut seen));
    let l4s: Vec<_> = order.map(|p| p.ecn == Ecn::Ect1).collect();
    assert_eq!(
        l4s,
        [true, true, true, true, true, true, true, true, true, false]
    );
}

#[test]
fn any_ect_sends_ect0_to_the_l4s_queue() {
    for profile in [Profile::Rfc, Profile::Linux] {
        for (ecn_mask, in_l4s) in [(EcnMask::L4s, 2), (EcnMask::Any, 3)] {
            let (mut q, mut seen) = queue(&DualPi2Params {
                ecn_mask,
                ..params(profile)
            });
            for (id, ecn) in (0..).zip([Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]) {
                q.enqueue(us(0), packet(id, ecn), &mut seen);
            }
            assert_eq!(q.l4s.backlog().packets, in_l4s, "{profile}");
        }
    }
    // The coupled probability applies to it, not the square.
    let (mut q, _) = queue(&DualPi2Params {
        ecn_mask: EcnMask::Any,
        ..params(Profile::Linux)
    });
    set_p(&mut q, 0.2);
    let (drops, marks) = shares(&mut q, Ecn::Ect0, 40_000);
    assert_near(drops, 0.0, 0.0);
    assert_near(marks, 0.4, 0.01);
}

#[test]
fn drop_enqueue_signals_what_arrives_and_nothing_that_leaves() {
    let (mut q, mut seen) = queue(&DualPi2Params {
        drop_early: DropEarly::Enqueue,
        ..params(Profile::Linux)
    });
    set_p(&mut q, 0.45);
    for (ecn, drops, marks) in [
        (Ecn::NotEct, 0.202_5, 0.0),
        (Ecn::Ect0, 0.0, 0.202_5),
        (Ecn::Ect1, 0.0, 0.9),
    ] {
        seen = Recorder::default();
        for id in 0..40_000 {
            q.enqueue(us(0), packet(id, ecn), &mut seen);
        }
        let signalled = |n: usize| f64::from(u32::try_from(n).unwrap()) / 40_000.0;
        assert_near(signalled(seen.drops.len()), drops, 0.01);
        assert_near(signalled(seen.marks.len()), marks, 0.01);
        assert!(seen.drops.iter().all(|d| d.2 == DropReason::Aqm));
    }
    // L's own threshold still holds for what leaves, once per packet.
    let (marked, queued) = (seen.marks.len(), q.l4s.backlog().packets);
    while q.dequeue(us(2_000), &mut seen).is_some() {}
    assert_eq!(seen.marks.len(), queued);
    let by_step = |m: &&(_, _, MarkReason)| m.2 == MarkReason::CeThreshold;
    assert_eq!(seen.marks.iter().filter(by_step).count(), queued - marked);
}

#[test]
fn a_small_backlog_spares_what_arrives() {
    let (mut q, mut seen) = queue(&DualPi2Params {
        drop_early: DropEarly::Enqueue,
        ..params(Profile::Linux)
    });
    set_p(&mut q, 1.0);
    for id in 0..3 {
        q.enqueue(us(0), packet(id, Ecn::NotEct), &mut seen);
    }
    // The third finds 2 MTU.
    assert_eq!(seen.drops.len(), 1);
    assert_eq!(seen.drops[0].1.id, 2);
}

#[test]
fn the_step_spares_packets_that_found_a_short_queue() {
    for (min_qlen_step, want) in [(None, 4), (Some(0), 4), (Some(1), 3), (Some(3), 1)] {
        let (mut q, mut seen) = queue(&DualPi2Params {
            min_qlen_step,
            ..params(Profile::Linux)
        });
        q.enqueue(us(0), packet(9, Ecn::NotEct), &mut seen);
        for id in 0..4 {
            q.enqueue(us(0), packet(id, Ecn::Ect1), &mut seen);
        }
        while q.dequeue(us(2_000), &mut seen).is_some() {}
        assert_eq!(seen.marks.len(), want, "{min_qlen_step:?}");
        // Those that came first are the ones spared, though all leave at once.
        let marked: Vec<_> = seen.marks.iter().map(|m| m.1.id).collect();
        assert_eq!(marked, (4 - want as u64..4).collect::<Vec<_>>());
    }
}

#[test]
fn what_the_rfc_does_not_know_is_refused_in_its_profile() {
    for foreign in ["min_qlen_step 2", "drop_enqueue"] {
        let text = format!("dualpi2 {foreign} profile rfc");
        let flaw = crate::QdiscSpec::parse(&text).expect_err(foreign);
        assert!(flaw.to_string().contains("requires profile linux"));
        let text = format!("dualpi2 {foreign}");
        assert!(crate::QdiscSpec::parse(&text).is_ok());
    }
    assert!(crate::QdiscSpec::parse("dualpi2 any_ect profile rfc").is_ok());
}

#[test]
fn what_the_kernel_does_not_know_is_refused_in_its_profile() {
    for foreign in ["range 1ms", "th_len 2", "tshift 50ms"] {
        let text = format!("dualpi2 {foreign}");
        let flaw = crate::QdiscSpec::parse(&text).expect_err(foreign);
        assert!(flaw.to_string().contains("requires profile rfc"));
    }
    let both = crate::QdiscSpec::parse("dualpi2 tshift 50ms classic_protection 10 profile rfc");
    assert!(both.is_err());
}

#[test]
fn the_buffer_holds_250_ms_of_the_link_or_two_packets_and_in_the_kernel_two_mtu_for_each() {
    let rfc = params(Profile::Rfc);
    let slow = Rate::from_bits_per_sec(8_000).expect("a rate");
    assert_eq!(rfc.memlimit(Some(slow), MTU), Bytes(2 * 1_514));
    assert_eq!(rfc.memlimit(None, MTU), Bytes(u64::MAX));
    let linux = params(Profile::Linux);
    assert_eq!(linux.memlimit(Some(slow), MTU), Bytes(2_000_000 * 1_514));
}

#[test]
fn overload_begins_where_certainty_is_passed() {
    let (mut q, mut seen) = queue(&DualPi2Params {
        coupling_factor: 1,
        ..params(Profile::Linux)
    });
    // Certain for both queues, so Classic is signalled but still by marks.
    set_p(&mut q, 1.0);
    for id in 0..10 {
        q.enqueue(us(0), packet(id, Ecn::Ect0), &mut seen);
    }
    q.dequeue(us(0), &mut seen);
    assert_eq!((seen.drops.len(), seen.marks.len()), (0, 1));
}

#[test]
fn an_error_below_the_kernels_precision_leaves_its_probability() {
    let mut law = Linux::new(&params(Profile::Linux), MTU);
    law.update(Duration::from_millis(25));
    let target = Duration::from_millis(15);
    law.update(target);
    let p = law.prob();
    assert!(p > 0 && p < u32::MAX);
    // 44 and 0 sixty-fourths of a step.
    law.update(target + Duration::from_nanos(1));
    law.set_for_test(p);
    law.update(target + Duration::from_nanos(1));
    assert_eq!(law.prob(), p);
    law.update(target);
    law.set_for_test(p);
    law.update(target);
    assert_eq!(law.prob(), p);
}

#[test]
fn it_counts_what_each_queue_took_and_why_it_marked() {
    let (mut q, mut seen) = queue(&DualPi2Params {
        limit: 5,
        ..params(Profile::Linux)
    });
    for (id, ecn) in (0..).zip([
        Ecn::Ect1,
        Ecn::Ce,
        Ecn::NotEct,
        Ecn::Ect0,
        Ecn::Ect1,
        Ecn::Ect1,
    ]) {
        q.enqueue(us(0), packet(id, ecn), &mut seen);
    }
    assert_eq!(seen.drops.len(), 1);
    set_p(&mut q, 0.0);
    while q.dequeue(us(2_000), &mut seen).is_some() {}
    let count = |name| {
        let all = q.statistics();
        let found = all.iter().find(|s| s.name == name);
        found.map(|s| s.value)
    };
    assert_eq!(count("pkts_in_l"), Some(Count(3)));
    assert_eq!(count("pkts_in_c"), Some(Count(2)));
    assert_eq!(count("step_mark"), Some(Count(3)));
    assert_eq!(count("ecn_mark"), Some(Count(3)));
    assert!(seen.marks.iter().all(|m| m.2 == MarkReason::CeThreshold));
    // Idle: a packet of L4S, then one of Classic, in bytes times per cent.
    let (mut q, mut seen) = queue(&params(Profile::Linux));
    q.dequeue(us(0), &mut seen);
    let credit = q.statistics().pop().map(|s| s.value);
    assert_eq!(credit, Some(Real(1_514.0 * (10.0 - 90.0))));
}

#[test]
fn a_length_beyond_any_packet_is_cut_so_that_weights_do_not_overflow() {
    assert_eq!(signed(Bytes(u64::MAX)), 1 << 40);
    assert_eq!(signed(Bytes(1_514)), 1_514);
}

mod nqb;
