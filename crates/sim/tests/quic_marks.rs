//! Controls that live on marks, over QUIC: RFC 9000 §13.4 counts them.
//!
//! `make reference` compares what the tests print with the tables of `docs/validation/quic.md`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::quic::Params;
use sojourn_transport::{CcKind, SenderParams};

const SECONDS: u64 = 30;

fn float(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

fn quic(cc: CcKind) -> Traffic {
    Traffic::Quic {
        bytes: None,
        request: Some(400),
        params: Params {
            cc: cc.into(),
            ..Params::default()
        },
    }
}

fn tcp(cc: CcKind) -> Traffic {
    Traffic::Tcp {
        bytes: None,
        params: SenderParams {
            cc: cc.into(),
            ecn: true,
            ..SenderParams::default()
        },
    }
}

/// Flows without end over 20 ms, measured in the last two thirds.
fn records(mbit: u64, queue: &str, traffic: Vec<Traffic>) -> Records {
    let one_way = Duration::from_millis(10);
    let flow = |(n, traffic)| FlowConfig {
        name: format!("flow {n}"),
        forward: vec![Hop::Link(0), Hop::Delay(one_way)],
        reverse: vec![Hop::Delay(one_way)],
        start: Duration::ZERO,
        start_jitter: Duration::from_millis(500),
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic,
    };
    let config = Config {
        seed: 1,
        duration: Duration::from_secs(SECONDS),
        measure_from: Duration::from_secs(SECONDS / 3),
        sample: Duration::from_millis(100),
        links: vec![LinkConfig::new(
            "bottleneck".to_owned(),
            Rate::mbit(mbit),
            QdiscSpec::parse(queue).unwrap(),
        )],
        flows: traffic.into_iter().enumerate().map(flow).collect(),
        keep_events: false,
        sample_state: false,
    };
    run(&config, &mut |_| true).unwrap().unwrap()
}

/// Goodput of each flow in Mbit/s.
fn goodputs(records: &Records) -> Vec<f64> {
    let seconds = float(SECONDS - SECONDS / 3);
    let goodput = |bytes: u64| float(bytes / 1_000) * 0.008 / seconds;
    let flows = records.flows.iter();
    flows.map(|f| goodput(f.totals.delivered_bytes)).collect()
}

/// Mean sojourn in ms, and drops.
fn queue(records: &Records) -> (f64, u64) {
    let link = &records.links[0];
    let drops = link.totals.drops_overlimit + link.totals.drops_aqm;
    (link.sojourn.mean().unwrap() / 1e6, drops)
}

#[test]
fn prague_fills_the_link_and_hardly_waits() {
    println!(
        "\n# prague_quic\n| link, Mbit/s | goodput, Mbit/s | mean sojourn time, ms |\n|---|---|---|"
    );
    for mbit in [40, 100] {
        let records = records(mbit, "dualpi2", vec![quic(CcKind::Prague)]);
        let (goodput, (wait_ms, drops)) = (goodputs(&records)[0], queue(&records));
        println!("| {mbit} | {goodput:.1} | {wait_ms:.2} |");
        assert!(goodput > 0.94 * float(mbit), "{goodput}");
        assert!(wait_ms < 1.0 && drops == 0, "{wait_ms} ms, {drops}");
    }
}

#[test]
fn prague_over_quic_shares_with_prague_over_tcp_and_with_cubic() {
    println!("\n# prague_beside\n| beside | QUIC, Mbit/s | TCP, Mbit/s |\n|---|---|---|");
    for (other, traffic) in [
        ("prague over TCP", tcp(CcKind::Prague)),
        ("cubic over TCP", tcp(CcKind::Cubic)),
    ] {
        let records = records(40, "dualpi2", vec![quic(CcKind::Prague), traffic]);
        let shares = goodputs(&records);
        println!("| {other} | {:.1} | {:.1} |", shares[0], shares[1]);
        assert!(shares[0] + shares[1] > 0.93 * 40.0, "{shares:?}");
        let ratio = shares[0] / shares[1];
        // On Linux, TCP Prague 0.7 gets up to 2.2 times as much as CUBIC (tests/parity/data).
        assert!((0.5..2.5).contains(&ratio), "beside {other}: {shares:?}");
    }
}

#[test]
fn dctcp_holds_the_queue_at_the_step_that_marks() {
    // 100 Mbit/s: a packet takes 0.12 ms, so 1 ms of the step are eight.
    let step = "pfifo limit 1000 ce_threshold 1ms";
    let one = records(100, step, vec![quic(CcKind::Dctcp)]);
    let ((wait_ms, drops), goodput) = (queue(&one), goodputs(&one)[0]);
    println!("\n# step\n| connections | QUIC, Mbit/s | TCP, Mbit/s |\n|---|---|---|");
    println!("| `dctcp` | {goodput:.1} | – |");
    let marked = one.links[0].totals.marks_ce_threshold;
    assert!(marked > 1_000, "{marked}");
    assert!(wait_ms < 1.5 && drops == 0, "{wait_ms} ms, {drops}");
    assert!(goodput > 85.0, "{goodput}");
    // Each mark answered as a loss leaves more of the link empty.
    let classic = Traffic::Quic {
        bytes: None,
        request: Some(400),
        params: Params {
            cc: CcKind::Reno.into(),
            ecn: true,
            ..Params::default()
        },
    };
    let reno = goodputs(&records(100, step, vec![classic]))[0];
    println!("| `reno` with ECN | {reno:.1} | – |");
    assert!(reno + 5.0 < goodput, "{reno}");
    // Beside itself over TCP, whose alpha stays so small that a mark costs nothing but growth.
    let two = records(100, step, vec![quic(CcKind::Dctcp), tcp(CcKind::Dctcp)]);
    let shares = goodputs(&two);
    println!(
        "| `dctcp` beside `dctcp` over TCP | {:.1} | {:.1} |",
        shares[0], shares[1]
    );
    assert!(shares[0] + shares[1] > 93.0, "{shares:?}");
    assert!(shares[0] > 20.0 && shares[0] < shares[1], "{shares:?}");
}
