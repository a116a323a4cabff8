//! What congestion controls do to a queue and to each other, over a whole dumbbell.
//!
//! `make reference` compares what the tests print with the tables of `docs/validation/tcp.md`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::quic::Params;
use sojourn_transport::{CcKind, SenderParams, SlowStart};

/// Flows over one link.
struct Dumbbell {
    mbit: u64,
    rtt_ms: u64,
    qdisc: &'static str,
    seconds: u64,
    /// What is measured is what comes after.
    warm_up: u64,
    flows: Vec<Traffic>,
}

const fn tcp(params: SenderParams) -> Traffic {
    Traffic::Tcp {
        bytes: None,
        params,
    }
}

fn plain(cc: CcKind) -> Traffic {
    tcp(SenderParams {
        cc: cc.into(),
        ..SenderParams::default()
    })
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

/// Holds a number to the one expected, within 20 %.
#[track_caller]
fn near(measured: f64, expected: f64) {
    let error = (measured / expected - 1.0).abs();
    assert!(error < 0.2, "{measured}, not {expected}");
}

impl Dumbbell {
    fn records(&self) -> Records {
        let one_way = Duration::from_millis(self.rtt_ms / 2);
        let flow = |(n, traffic): (usize, &Traffic)| FlowConfig {
            name: format!("flow {n}"),
            forward: vec![Hop::Link(0), Hop::Delay(one_way)],
            reverse: vec![Hop::Delay(one_way)],
            start: Duration::ZERO,
            start_jitter: Duration::from_millis(100),
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: traffic.clone(),
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
            sample_state: false,
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
    println!(
        "\n# vegas\n| link, Mbit/s | goodput, Mbit/s | mean sojourn time, ms | segments queued |"
    );
    println!("|---|---|---|---|");
    for mbit in [5, 20] {
        let seen = Dumbbell {
            mbit,
            rtt_ms: 50,
            qdisc: "pfifo limit 10000",
            seconds: 120,
            // Slow start ends late, and the surplus shrinks by one segment per round trip.
            warm_up: 60,
            flows: vec![plain(CcKind::Vegas)],
        }
        .seen();
        let queued = seen.sojourn_ms * float(mbit) / (1.514 * 8.0);
        let (goodput, ms) = (seen.goodputs[0], seen.sojourn_ms);
        println!("| {mbit} | {goodput:.1} | {ms:.1} | {queued:.1} |");
        assert!((2.0..4.5).contains(&queued), "{queued} segments queued");
        assert!(seen.goodputs[0] > 0.95 * float(mbit), "{seen:?}");
    }
}

#[test]
fn ledbat_adds_a_tenth_of_a_second_and_yields() {
    println!("\n# ledbat\n| beside | LEDBAT, Mbit/s | the other, Mbit/s | mean sojourn time, ms |");
    println!("|---|---|---|---|");
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
        let name = other.map_or("–".to_owned(), |cc| format!("`{cc}`"));
        let share = seen
            .goodputs
            .get(1)
            .map_or("–".to_owned(), |x| format!("{x:.2}"));
        let (goodput, ms) = (seen.goodputs[0], seen.sojourn_ms);
        println!("| {name} | {goodput:.2} | {share} | {ms:.1} |");
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
    use SlowStart::{HyStart, HyStartPlusPlus, Search, Standard};
    println!("\n# slow_start\n| control | `slow_start` | packets lost |\n|---|---|---|");
    for (cc, slow_start, expected) in [
        (CcKind::Cubic, Standard, 1_155.0),
        (CcKind::Cubic, HyStart, 41.0),
        (CcKind::Cubic, HyStartPlusPlus, 712.0),
        // SEARCH needs a longer queue to end slow start.
        (CcKind::Cubic, Search, 1_155.0),
        (CcKind::Reno, Standard, 822.0),
        (CcKind::Reno, HyStartPlusPlus, 562.0),
        (CcKind::Reno, Search, 822.0),
    ] {
        let seen = Dumbbell {
            mbit: 100,
            rtt_ms: 50,
            qdisc: "pfifo limit 400",
            seconds: 5,
            warm_up: 0,
            flows: vec![tcp(SenderParams {
                cc: cc.into(),
                slow_start: Some(slow_start),
                ..SenderParams::default()
            })],
        }
        .seen();
        println!("| `{cc}` | `{slow_start}` | {} |", seen.drops);
        near(float(seen.drops), expected);
    }
}

#[test]
fn bbr_fills_a_link_and_version_3_loses_less_in_a_shallow_queue() {
    println!(
        "\n# bbr\n| control | link, Mbit/s | queue | goodput, Mbit/s | mean sojourn time, ms | drops |"
    );
    println!("|---|---|---|---|---|---|");
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
        let (goodput, ms, drops) = (seen.goodputs[0], seen.sojourn_ms, seen.drops);
        println!("| `{cc}` | {mbit} | `{qdisc}` | {goodput:.1} | {ms:.2} | {drops} |");
        seen
    };
    for (cc, goodput, sojourn_ms) in [(CcKind::Bbr, 93.3, 3.15), (CcKind::Bbr3, 92.4, 3.44)] {
        for mbit in [10, 100] {
            let deep = seen(cc, mbit, "pfifo limit 10000");
            // 95.64 % is payload.
            assert!(deep.goodputs[0] > 0.9 * float(mbit), "{cc}: {deep:?}");
            assert_eq!(deep.drops, 0, "{cc}");
            if mbit == 100 {
                near(deep.goodputs[0], goodput);
                near(deep.sojourn_ms, sojourn_ms);
            }
        }
    }
    for (cc, goodput, drops) in [(CcKind::Bbr, 91.6, 12_028.0), (CcKind::Bbr3, 88.2, 374.0)] {
        let shallow = seen(cc, 100, "pfifo limit 40");
        near(shallow.goodputs[0], goodput);
        near(float(shallow.drops), drops);
    }
}

#[test]
fn bbr_shares_with_its_kind_and_with_cubic() {
    println!("\n# bbr_share\n| control | beside | share |\n|---|---|---|");
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
        let share = seen.goodputs[0] / (seen.goodputs[0] + seen.goodputs[1]);
        println!("| `{}` | `{}` | {share:.2} |", flows[0], flows[1]);
        share
    };
    for (cc, with_its_kind, with_cubic) in [(CcKind::Bbr, 0.51, 0.59), (CcKind::Bbr3, 0.52, 0.62)] {
        near(shares([cc, cc]), with_its_kind);
        // A queue of 1.5 BDP leaves CUBIC its living.
        near(shares([cc, CcKind::Cubic]), with_cubic);
    }
}

/// A fluid model: a sender that doubles until the acknowledgements come at the rate of the link, then sends at twice
/// that rate, checks SEARCH's 0.26 when the RTT is 2.63 times its minimum. Then 5.3 bandwidth-delay products (BDP) are in
/// flight, 4.3 of them in the queue.
#[test]
fn search_ends_slow_start_with_4_3_bdp_in_the_queue() {
    println!("\n# search\n| FIFO, BDP | packets lost |\n|---|---|");
    let lost = |qdisc, bdp| {
        let seen = Dumbbell {
            mbit: 100,
            rtt_ms: 50,
            qdisc,
            seconds: 5,
            warm_up: 0,
            flows: vec![tcp(SenderParams {
                slow_start: Some(SlowStart::Search),
                ..SenderParams::default()
            })],
        }
        .seen();
        println!("| {bdp} | {} |", seen.drops);
        seen.drops
    };
    // One is 413 packets of 1514 B.
    assert!(lost("pfifo limit 826", 2) > 0);
    assert!(lost("pfifo limit 1239", 3) > 0);
    assert_eq!(lost("pfifo limit 2065", 5), 0);
    assert_eq!(lost("pfifo limit 4130", 10), 0);
}

#[test]
fn copa_keeps_five_quarters_of_one_over_delta_queued() {
    println!(
        "\n# copa\n| `copa` | flows | goodput, Mbit/s | segments queued | 1.25 / `delta` of each flow | least share |"
    );
    println!("|---|---|---|---|---|---|");
    let seen = |parameters: &str, flows: u32, paper: f64| {
        let params = SenderParams {
            cc: format!("copa {parameters}").parse().unwrap(),
            ..SenderParams::default()
        };
        let seen = Dumbbell {
            mbit: 24,
            rtt_ms: 50,
            qdisc: "pfifo limit 1000",
            seconds: 60,
            warm_up: 20,
            flows: (0..flows).map(|_| tcp(params)).collect(),
        }
        .seen();
        let goodput: f64 = seen.goodputs.iter().sum();
        // A packet of 1514 B takes 505 µs.
        let queued = seen.sojourn_ms / 0.505;
        let least = seen.goodputs.iter().copied().fold(f64::INFINITY, f64::min);
        let share = least / goodput * f64::from(flows);
        println!(
            "| `{parameters}` | {flows} | {goodput:.1} | {queued:.1} | {paper} | {share:.2} |"
        );
        (goodput, queued, share)
    };
    for (parameters, flows, paper) in [
        ("competitive off", 1, 2.5),
        ("competitive off delta 0.1", 1, 12.5),
        ("competitive off", 2, 5.0),
        ("competitive off", 8, 20.0),
    ] {
        let (goodput, queued, share) = seen(parameters, flows, paper);
        assert!(goodput > 22.5 && share > 0.9, "{goodput} {share}");
        // Acknowledgements of two segments release bursts of a few.
        assert!(
            (0.7 * paper..1.3 * paper + 2.0).contains(&queued),
            "{queued}"
        );
    }
    // With other Copa flows, the queue is not nearly empty often enough: they stay in competitive mode.
    assert!(seen("competitive on", 1, 2.5).1 < 8.0);
    for flows in [2, 8] {
        let (goodput, _, share) = seen("competitive on", flows, 2.5 * f64::from(flows));
        assert!(goodput > 22.5 && share > 0.6, "{goodput} {share}");
    }
}

#[test]
fn copa_competes_with_cubic_in_a_large_buffer() {
    println!("\n# copa_share\n| `copa` | queue | share beside `cubic` | mean sojourn time, ms |");
    println!("|---|---|---|---|");
    for competitive in ["on", "off"] {
        for qdisc in ["pfifo limit 100", "pfifo limit 400"] {
            let copa = format!("copa competitive {competitive}");
            let seen = Dumbbell {
                mbit: 24,
                rtt_ms: 50,
                qdisc,
                seconds: 120,
                warm_up: 20,
                flows: vec![
                    tcp(SenderParams {
                        cc: copa.parse().unwrap(),
                        ..SenderParams::default()
                    }),
                    plain(CcKind::Cubic),
                ],
            }
            .seen();
            let share = seen.goodputs[0] / (seen.goodputs[0] + seen.goodputs[1]);
            println!(
                "| `{copa}` | {qdisc} | {share:.2} | {:.1} |",
                seen.sojourn_ms
            );
        }
    }
}

/// Begins the table of the shares of BBR version 3.
fn bbr3_table() {
    println!("\n# bbr3\n| connections | queue | share of `bbr3` |\n|---|---|---|");
}

/// The share of BBR version 3 beside CUBIC through `qdisc`.
fn beside_cubic(transport: &str, qdisc: &'static str, with: &dyn Fn(CcKind) -> Traffic) -> f64 {
    let seen = Dumbbell {
        mbit: 20,
        rtt_ms: 40,
        qdisc,
        seconds: 120,
        warm_up: 20,
        flows: [CcKind::Bbr3, CcKind::Cubic].map(with).to_vec(),
    }
    .seen();
    let share = seen.goodputs[0] / (seen.goodputs[0] + seen.goodputs[1]);
    println!("| {transport} | `{qdisc}` | {share:.2} |");
    share
}

#[test]
fn marks_make_bbr_version_3_give_way_as_losses_do() {
    let over_tcp = |ecn, accurate_ecn| {
        move |cc: CcKind| {
            tcp(SenderParams {
                cc: cc.into(),
                ecn,
                accurate_ecn,
                ..SenderParams::default()
            })
        }
    };
    bbr3_table();
    let drops = beside_cubic("TCP", "codel limit 1000", &over_tcp(false, false));
    near(drops, 0.79);
    for (name, accurate, expected) in [
        ("TCP with ECN", false, 0.69),
        ("TCP with Accurate ECN", true, 0.78),
    ] {
        let marks = beside_cubic(name, "codel limit 1000 ecn", &over_tcp(true, accurate));
        near(marks, expected);
        assert!(marks < drops + 0.1, "{marks} {drops}");
    }
}

#[test]
fn marks_make_bbr_version_3_give_way_over_quic() {
    let over_quic = |ecn| {
        move |cc: CcKind| Traffic::Quic {
            bytes: None,
            request: Some(400),
            params: Params {
                cc: cc.into(),
                ecn,
                ..Params::default()
            },
        }
    };
    bbr3_table();
    let drops = beside_cubic("QUIC", "codel limit 1000", &over_quic(false));
    near(drops, 0.76);
    let marks = beside_cubic("QUIC with ECN", "codel limit 1000 ecn", &over_quic(true));
    near(marks, 0.77);
    assert!(marks < drops + 0.1, "{marks} {drops}");
}
