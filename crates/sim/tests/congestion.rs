//! What congestion controls do to a queue and to each other, over a whole dumbbell.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_sim::{Config, FlowConfig, Hop, LinkConfig, Records, Traffic, run};
use sojourn_transport::{CcKind, SenderParams, SlowStart};

/// Flows over one link.
struct Dumbbell {
    mbit: u64,
    rtt_ms: u64,
    qdisc: &'static str,
    seconds: u64,
    /// What is measured is what comes after.
    warm_up: u64,
    flows: Vec<SenderParams>,
}

fn plain(cc: CcKind) -> SenderParams {
    SenderParams {
        cc,
        ..SenderParams::default()
    }
}

/// What was measured, in ms, Mbit/s a flow, and packets.
#[derive(Debug)]
struct Seen {
    sojourn_ms: f64,
    goodputs: Vec<f64>,
    drops: u64,
}

fn float(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

impl Dumbbell {
    fn records(&self) -> Records {
        let one_way = Duration::from_millis(self.rtt_ms / 2);
        let flow = |(n, params): (usize, &SenderParams)| FlowConfig {
            name: format!("flow {n}"),
            forward: vec![Hop::Link(0), Hop::Delay(one_way)],
            reverse: vec![Hop::Delay(one_way)],
            start: Duration::ZERO,
            start_jitter: Duration::from_millis(100),
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            traffic: Traffic::Tcp {
                bytes: None,
                params: *params,
            },
        };
        let config = Config {
            seed: 1,
            duration: Duration::from_secs(self.seconds),
            measure_from: Duration::from_secs(self.warm_up),
            sample: Duration::from_millis(100),
            links: vec![LinkConfig::new(
                "bottleneck".to_owned(),
                Rate::mbit(self.mbit),
                QdiscSpec::parse(self.qdisc).unwrap(),
            )],
            flows: self.flows.iter().enumerate().map(flow).collect(),
            keep_events: false,
        };
        run(&config, &mut |_| true).unwrap().unwrap()
    }

    fn seen(&self) -> Seen {
        let records = self.records();
        let link = &records.links[0];
        let seconds = float(self.seconds - self.warm_up);
        let goodput = |bytes: u64| float(bytes / 1_000) * 0.008 / seconds;
        let flows = records.flows.iter();
        Seen {
            sojourn_ms: link.sojourn.mean().unwrap() / 1e6,
            goodputs: flows.map(|f| goodput(f.totals.delivered_bytes)).collect(),
            drops: link.totals.drops_overlimit + link.totals.drops_aqm,
        }
    }
}

#[test]
fn vegas_keeps_two_to_four_segments_queued() {
    for mbit in [5, 20] {
        let seen = Dumbbell {
            mbit,
            rtt_ms: 50,
            qdisc: "pfifo limit 10000",
            seconds: 120,
            // Slow start is left late and the surplus given up a segment a round trip.
            warm_up: 60,
            flows: vec![plain(CcKind::Vegas)],
        }
        .seen();
        println!("vegas, {mbit} Mbit/s: {seen:?}");
        let queued = seen.sojourn_ms * float(mbit) / (1.514 * 8.0);
        assert!((2.0..4.5).contains(&queued), "{queued} segments queued");
        assert!(seen.goodputs[0] > 0.95 * float(mbit), "{seen:?}");
    }
}

#[test]
fn ledbat_adds_a_tenth_of_a_second_and_yields() {
    let beside = |other: Option<CcKind>| {
        let seen = Dumbbell {
            mbit: 10,
            rtt_ms: 50,
            qdisc: "pfifo limit 1000",
            seconds: 120,
            warm_up: 60,
            flows: [Some(CcKind::Ledbat), other]
                .into_iter()
                .flatten()
                .map(plain)
                .collect(),
        }
        .seen();
        println!("ledbat beside {other:?}: {seen:?}");
        seen
    };
    let alone = beside(None);
    assert!((95.0..105.0).contains(&alone.sojourn_ms), "{alone:?}");
    assert!(alone.goodputs[0] > 9.5, "{alone:?}");
    for other in [CcKind::Cubic, CcKind::Reno] {
        let seen = beside(Some(other));
        assert!(seen.goodputs[0] < 0.01 * seen.goodputs[1], "{seen:?}");
    }
}

#[test]
fn an_early_way_out_of_slow_start_costs_fewer_packets() {
    let drops = |cc, slow_start| {
        let seen = Dumbbell {
            mbit: 100,
            rtt_ms: 50,
            qdisc: "pfifo limit 400",
            seconds: 5,
            warm_up: 0,
            flows: vec![SenderParams {
                slow_start: Some(slow_start),
                ..plain(cc)
            }],
        }
        .seen();
        println!("{cc}, {slow_start}: {} drops", seen.drops);
        seen.drops
    };
    let [standard, hystart, plus_plus] = SlowStart::ALL.map(|way| drops(CcKind::Cubic, way));
    assert!(hystart < 100 && 5 * plus_plus < 4 * standard);
    let [standard, plus_plus] =
        [SlowStart::Standard, SlowStart::HyStartPlusPlus].map(|way| drops(CcKind::Reno, way));
    assert!(5 * plus_plus < 4 * standard);
}

#[test]
fn bbr_fills_a_link_and_version_3_loses_less_in_a_shallow_queue() {
    let seen = |cc, mbit, qdisc| {
        let seen = Dumbbell {
            mbit,
            rtt_ms: 50,
            qdisc,
            seconds: 60,
            warm_up: 5,
            flows: vec![plain(cc)],
        }
        .seen();
        println!("{cc}, {mbit} Mbit/s, {qdisc}: {seen:?}");
        seen
    };
    for cc in [CcKind::Bbr, CcKind::Bbr3] {
        for mbit in [10, 100] {
            let deep = seen(cc, mbit, "pfifo limit 10000");
            // 95.64 % is payload.
            assert!(deep.goodputs[0] > 0.85 * float(mbit), "{cc}: {deep:?}");
            assert!(deep.sojourn_ms < 26.0, "{cc}: {deep:?}");
            assert_eq!(deep.drops, 0, "{cc}");
        }
    }
    let (one, three) = (CcKind::Bbr, CcKind::Bbr3);
    let [one, three] = [one, three].map(|cc| seen(cc, 100, "pfifo limit 40"));
    assert!(three.drops < one.drops / 4, "{three:?} {one:?}");
    assert!(three.goodputs[0] > 70.0, "{three:?}");
}

#[test]
fn bbr_shares_with_its_kind_and_with_cubic() {
    let shares = |flows: [CcKind; 2]| {
        let seen = Dumbbell {
            mbit: 20,
            rtt_ms: 50,
            qdisc: "pfifo limit 120",
            seconds: 120,
            warm_up: 20,
            flows: flows.map(plain).to_vec(),
        }
        .seen();
        println!("{flows:?}: {seen:?}");
        seen.goodputs[0] / (seen.goodputs[0] + seen.goodputs[1])
    };
    for cc in [CcKind::Bbr, CcKind::Bbr3] {
        let share = shares([cc, cc]);
        assert!((0.35..0.65).contains(&share), "{cc}: {share}");
        // A queue of 1.5 BDP leaves CUBIC its living.
        let share = shares([cc, CcKind::Cubic]);
        assert!((0.2..0.8).contains(&share), "{cc} and cubic: {share}");
    }
}

#[test]
fn marks_make_bbr_version_3_give_way_as_losses_do() {
    let share = |qdisc, ecn, accurate_ecn| {
        let with = |cc| SenderParams {
            ecn,
            accurate_ecn,
            ..plain(cc)
        };
        let seen = Dumbbell {
            mbit: 20,
            rtt_ms: 40,
            qdisc,
            seconds: 120,
            warm_up: 20,
            flows: [CcKind::Bbr3, CcKind::Cubic].map(with).to_vec(),
        }
        .seen();
        println!("bbr3 and cubic, {qdisc}, accurate ECN {accurate_ecn}: {seen:?}");
        seen.goodputs[0] / (seen.goodputs[0] + seen.goodputs[1])
    };
    let losses = share("codel limit 1000", false, false);
    for accurate in [false, true] {
        let marks = share("codel limit 1000 ecn", true, accurate);
        assert!(marks < losses + 0.1, "{marks} {losses}");
    }
}
