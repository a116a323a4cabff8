//! Accurate ECN (RFC 9768) through queues that mark, for controls that could do without.
//!
//! `make reference` compares what the test prints with the table of `docs/validation/tcp.md`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::{CcKind, SenderParams};

const SECONDS: u64 = 20;

fn float(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

/// Goodput in Mbit/s, mean sojourn in ms, drops, and acknowledgements for each thousand segments.
fn alone(cc: CcKind, accurate_ecn: bool, queue: &str) -> (f64, f64, u64, f64) {
    let one_way = Duration::from_millis(10);
    let link = |name: &str, queue: &str| {
        LinkConfig::new(
            name.to_owned(),
            Rate::mbit(100),
            QdiscSpec::parse(queue).unwrap(),
        )
    };
    let config = Config {
        seed: 1,
        duration: Duration::from_secs(SECONDS),
        measure_from: Duration::from_secs(SECONDS / 4),
        sample: Duration::from_millis(100),
        links: vec![link("there", queue), link("back", "pfifo limit 1000")],
        flows: vec![FlowConfig {
            name: "flow".to_owned(),
            forward: vec![Hop::Link(0), Hop::Delay(one_way)],
            reverse: vec![Hop::Link(1), Hop::Delay(one_way)],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: Traffic::Tcp {
                bytes: None,
                params: SenderParams {
                    cc: cc.into(),
                    ecn: true,
                    accurate_ecn,
                    ..SenderParams::default()
                },
            },
        }],
        keep_events: false,
        sample_state: false,
    };
    let records = run(&config, &mut |_| true).unwrap().unwrap();
    let seconds = float(SECONDS - SECONDS / 4);
    let link = &records.links[0];
    let seen = (
        float(records.flows[0].totals.delivered_bytes / 1_000) * 0.008 / seconds,
        link.sojourn.mean().unwrap() / 1e6,
        link.totals.drops_overlimit + link.totals.drops_aqm,
        1_000.0 * float(records.links[1].totals.sent_packets) / float(link.totals.sent_packets),
    );
    let feedback = if accurate_ecn {
        "Accurate ECN"
    } else {
        "classic ECN"
    };
    let (goodput, ms, _, acks) = seen;
    println!("| `{cc}` | `{queue}` | {feedback} | {goodput:.1} | {ms:.2} | {acks:.0} |");
    seen
}

#[test]
fn what_marks_cost_does_not_depend_on_their_feedback() {
    println!(
        "\n# accurate_ecn\n| control | queue | feedback | goodput, Mbit/s | mean sojourn time, ms | \
         ACKs per 1000 segments |\n|---|---|---|---|---|---|"
    );
    for (cc, queue) in [
        (CcKind::Cubic, "codel limit 1000 ecn"),
        (CcKind::Reno, "codel limit 1000 ecn"),
        (CcKind::Dctcp, "pfifo limit 1000 ce_threshold 1ms"),
    ] {
        let classic = alone(cc, false, queue);
        let counted = alone(cc, true, queue);
        assert!(
            (classic.0 - counted.0).abs() < 2.0,
            "{cc}: {classic:?} {counted:?}"
        );
        assert!(
            (classic.1 - counted.1).abs() < 0.5,
            "{cc}: {classic:?} {counted:?}"
        );
        assert_eq!((classic.2, counted.2), (0, 0), "{cc}");
    }
}
