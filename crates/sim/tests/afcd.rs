//! The core of the study in `papers/afcd`, at a tenth of its rate: AFCD shares a link more fairly
//! than `CoDel` among flows of different congestion controls, and delays no more.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::{CcKind, SenderParams};

fn flow(n: u32, cc: CcKind) -> FlowConfig {
    FlowConfig {
        name: format!("{cc} {n}"),
        forward: vec![Hop::Link(0), Hop::Delay(Duration::from_millis(60))],
        reverse: vec![Hop::Delay(Duration::from_millis(60))],
        start: Duration::ZERO,
        start_jitter: Duration::from_millis(100),
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic: Traffic::Tcp {
            bytes: None,
            params: SenderParams {
                cc: cc.into(),
                ..SenderParams::default()
            },
        },
    }
}

/// Of the flows and the link of one run, from 20 to 200 s.
#[derive(Debug)]
struct Seen {
    jain: f64,
    sojourn_ms: f64,
    /// In Mbit/s.
    throughput: f64,
}

/// `of_each` flows of CUBIC and of Reno with SACK over 100 Mbit/s and 120 ms.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53 bytes")]
fn shared(queue: &str, of_each: u32) -> Seen {
    let cubic = (0..of_each).map(|n| flow(n, CcKind::Cubic));
    let config = Config {
        seed: 1,
        duration: Duration::from_secs(200),
        measure_from: Duration::from_secs(20),
        sample: Duration::from_secs(1),
        links: vec![LinkConfig::new(
            "link".to_owned(),
            Rate::mbit(100),
            QdiscSpec::parse(&format!("{queue} limit 1000")).unwrap(),
        )],
        flows: cubic
            .chain((0..of_each).map(|n| flow(n, CcKind::Reno)))
            .collect(),
        keep_events: false,
        sample_state: false,
    };
    let records = run(&config, &mut |_| true).unwrap().unwrap();
    let rates: Vec<_> = records
        .flows
        .iter()
        .map(|flow| flow.totals.delivered_bytes as f64 * 8.0 / 180e6)
        .collect();
    let throughput: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    Seen {
        jain: throughput.powi(2) / (f64::from(2 * of_each) * squares),
        sojourn_ms: records.links[0].sojourn.mean().unwrap() / 1e6,
        throughput,
    }
}

#[test]
fn two_flows_of_different_congestion_control_share_as_claimed() {
    let [codel, paper, module] = ["codel", "afcd", "afcd_kernel2012"].map(|q| shared(q, 1));
    for afcd in [&paper, &module] {
        assert!(afcd.jain >= 0.95, "{afcd:?} {codel:?}");
        assert!(
            afcd.sojourn_ms <= 2.0 * codel.sojourn_ms,
            "{afcd:?} {codel:?}"
        );
    }
    assert!(codel.jain < 0.95, "{codel:?}");
    // The module signals after 10 ms above 50 µs, which a round trip of 120 ms does not bear.
    assert!(paper.throughput > 85.0, "{paper:?}");
    assert!(module.throughput < 65.0, "{module:?}");
}

#[test]
fn twenty_flows_share_as_claimed() {
    let [codel, paper, module] = ["codel", "afcd", "afcd_kernel2012"].map(|q| shared(q, 10));
    for afcd in [paper, module] {
        assert!(afcd.jain >= 0.98, "{afcd:?} {codel:?}");
        assert!(
            afcd.sojourn_ms <= 2.0 * codel.sojourn_ms,
            "{afcd:?} {codel:?}"
        );
    }
}
