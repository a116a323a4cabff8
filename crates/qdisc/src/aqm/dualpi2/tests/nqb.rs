//! NQB traffic in L, and what queue protection sends to C.

use super::*;

fn nqb(id: u64, ecn: Ecn) -> TestPacket {
    TestPacket {
        dscp: Dscp::NQB,
        ..packet(id, ecn)
    }
}

fn with_nqb(profile: Profile) -> DualPi2Params {
    DualPi2Params {
        nqb: true,
        ..params(profile)
    }
}

fn count(q: &DualPi2<TestPacket>, name: &str) -> Option<u64> {
    let all = q.statistics();
    let found = all.iter().find(|statistic| statistic.name == name)?;
    match found.value {
        Count(n) => Some(n),
        _ => None,
    }
}

#[test]
fn nqb_goes_to_l_if_that_is_asked_for_and_other_code_points_do_not() {
    for profile in [Profile::Rfc, Profile::Linux] {
        for (asked, in_l) in [(false, 0), (true, 2)] {
            let (mut q, mut seen) = queue(&DualPi2Params {
                nqb: asked,
                ..params(profile)
            });
            q.enqueue(us(0), nqb(0, Ecn::NotEct), &mut seen);
            q.enqueue(us(0), nqb(1, Ecn::Ect0), &mut seen);
            let ef = TestPacket {
                dscp: Dscp::EF,
                ..packet(2, Ecn::NotEct)
            };
            q.enqueue(us(0), ef, &mut seen);
            assert_eq!(q.l4s.backlog().packets, in_l, "{profile}");
            assert_eq!(count(&q, "pkts_nqb"), asked.then_some(2));
        }
    }
}

/// Class 3 of the kernel: neither the coupled probability, nor the threshold, nor overload.
#[test]
fn nqb_that_is_not_l4s_passes_the_kernels_l_queue_unchanged() {
    for (ecn, p) in [(Ecn::NotEct, 0.2), (Ecn::Ect0, 0.2), (Ecn::NotEct, 0.9)] {
        let (mut q, mut seen) = queue(&with_nqb(Profile::Linux));
        set_p(&mut q, p);
        for id in 0..1_000 {
            q.enqueue(us(0), nqb(id, ecn), &mut seen);
        }
        for _ in 0..1_000 {
            assert_eq!(
                q.dequeue(us(5_000), &mut seen).map(|pkt| pkt.ecn),
                Some(ecn)
            );
        }
        assert!(seen.drops.is_empty() && seen.marks.is_empty());
    }
}

#[test]
fn nqb_with_ect1_is_signalled_as_l4s() {
    let (mut q, mut seen) = queue(&with_nqb(Profile::Linux));
    q.enqueue(us(0), nqb(0, Ecn::Ect1), &mut seen);
    assert_eq!(
        q.dequeue(us(1_001), &mut seen).map(|pkt| pkt.ecn),
        Some(Ecn::Ce)
    );
    assert_eq!(count(&q, "pkts_nqb"), Some(0));
}

/// RFC 9332 section 2.5.1.1: with p = 0.2 and k = 2, L4S is marked with 0.4; NQB is signalled with 0.04.
#[test]
fn the_rfc_signals_nqb_without_protection_as_classic_traffic() {
    let share = |waited, ecn, p| {
        let (mut q, mut seen) = queue(&with_nqb(Profile::Rfc));
        set_p(&mut q, p);
        for id in 0..10_010 {
            q.enqueue(us(0), nqb(id, ecn), &mut seen);
        }
        while q.backlog().packets > 10 {
            q.dequeue(us(waited), &mut seen);
        }
        let share = |n: usize| f64::from(u32::try_from(n).unwrap()) / 10_000.0;
        (share(seen.drops.len()), share(seen.marks.len()))
    };
    for (waited, ecn, p, drops, marks) in [
        (0, Ecn::NotEct, 0.2, 0.04, 0.0),
        (0, Ecn::Ect0, 0.2, 0.0, 0.04),
        // Above the ramp, L4S is marked with 1 = k p for p = 0.5.
        (2_000, Ecn::NotEct, 0.2, 0.25, 0.0),
        (2_000, Ecn::Ect0, 0.2, 0.0, 0.25),
        // In overload, everything is dropped with p^2.
        (0, Ecn::Ect0, 0.6, 0.36, 0.0),
    ] {
        let (dropped, marked) = share(waited, ecn, p);
        assert_near(dropped, drops, 0.000_2);
        assert_near(marked, marks, 0.000_2);
    }
}

#[test]
fn the_rfc_forwards_nqb_unchanged_with_protection() {
    let (mut q, mut seen) = queue(&DualPi2Params {
        queue_protection: true,
        ..with_nqb(Profile::Rfc)
    });
    set_p(&mut q, 0.4);
    for id in 0..100 {
        q.enqueue(us(0), nqb(id, Ecn::NotEct), &mut seen);
    }
    for _ in 0..100 {
        assert!(q.dequeue(us(3_000), &mut seen).is_some());
    }
    assert!(seen.drops.is_empty() && seen.marks.is_empty());
}

#[test]
fn packets_of_a_flow_that_builds_the_l_queue_are_redirected_to_c() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let protected = DualPi2Params {
            queue_protection: true,
            ..params(profile)
        };
        let rate = Some(Rate::mbit(12));
        let mut q = DualPi2::new(&protected, rate, MTU, Rng::new(1));
        let mut seen = Recorder::default();
        // 1514 bytes take 1009 us: the third packet finds a delay of 2 ms.
        for id in 0..20 {
            q.enqueue(us(0), packet(id, Ecn::Ect1), &mut seen);
        }
        let sanctioned = count(&q, "qp_sanctioned").unwrap_or(0);
        assert_eq!(q.classic.backlog().packets as u64, sanctioned, "{profile}");
        assert_eq!(sanctioned, 18, "{profile}");
        // Another flow finds the same delay and has no score yet.
        let other = TestPacket {
            flow: 9,
            size: 100,
            ..packet(20, Ecn::Ect1)
        };
        q.enqueue(us(0), other, &mut seen);
        assert_eq!(q.l4s.backlog().packets, 3, "{profile}");
        assert_eq!(count(&q, "qp_shared_bucket"), Some(0));
    }
}

/// RFC 9332 section 2.5.1.1: a redirected packet is L4S still.
#[test]
fn the_rfc_marks_ect1_in_c_with_the_coupled_probability() {
    let mut law = Rfc::new(&params(Profile::Rfc));
    law.set_for_test(0.2);
    let leaving = Leaving {
        band: Band::Classic,
        ecn: Ecn::Ect1,
        waited: Duration::ZERO,
        step: false,
        held: 1,
        left: Bytes(0),
    };
    let marks = (0..1_000).filter(|_| law.judge(&leaving) == Verdict::Mark(MarkReason::Aqm));
    assert!((399..=400).contains(&marks.count()));
    law.set_for_test(0.6);
    let drops = (0..1_000).filter(|_| law.judge(&leaving) == Verdict::Drop);
    assert!((359..=360).contains(&drops.count()));
}

#[test]
fn the_parameters_of_queue_protection_require_it() {
    let lonely = DualPi2Params {
        qp_latency_threshold: Some(Duration::from_millis(2)),
        ..params(Profile::Linux)
    };
    assert_eq!(
        lonely.conflict().as_deref(),
        Some("qp_latency_threshold requires queue_protection")
    );
}
