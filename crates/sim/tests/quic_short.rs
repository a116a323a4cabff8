//! What a short transfer takes longer over QUIC than over TCP, cause by cause.
//!
//! `make reference` compares what the test prints with the table of `docs/validation/quic.md`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::SenderParams;
use sojourn_transport::quic::Params;

const RTT: Duration = Duration::from_millis(100);

/// The completion time of a transfer over 50 Mbit/s and 100 ms, in ms.
fn took(traffic: Traffic) -> f64 {
    let half = Hop::Delay(Duration::from_nanos(RTT.as_nanos() / 2));
    let config = Config {
        seed: 1,
        duration: Duration::from_secs(10),
        measure_from: Duration::ZERO,
        sample: RTT,
        links: vec![LinkConfig::new(
            "link".to_owned(),
            Rate::mbit(50),
            QdiscSpec::parse("pfifo limit 1000").unwrap(),
        )],
        flows: vec![FlowConfig {
            name: "transfer".to_owned(),
            forward: vec![Hop::Link(0), half],
            reverse: vec![half],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic,
        }],
        keep_events: false,
        sample_state: false,
    };
    let records = run(&config, &mut |_| true).unwrap().unwrap();
    let flow = &records.flows[0];
    let time = flow.completed.unwrap().since(flow.started.unwrap());
    time.as_millis_f64()
}

fn quic(bytes: u64, request: Option<u64>, params: Params) -> f64 {
    took(Traffic::Quic {
        bytes: Some(bytes),
        request,
        params,
    })
}

#[test]
fn a_short_transfer_takes_longer_for_its_direction_its_pacing_and_its_initial_window() {
    println!(
        "\n# quic_short\n| bytes | TCP, ms | QUIC, ms | and the client sends | and without pacing | \
         and 12 datagrams of initial window |\n|---|---|---|---|---|---|"
    );
    for bytes in [100_000, 512_000, 1_000_000] {
        let tcp = took(Traffic::Tcp {
            bytes: Some(bytes),
            params: SenderParams::default(),
        });
        let paced = Params::default();
        let unpaced = Params {
            pacing: false,
            ..paced
        };
        let wider = Params {
            initial_window: 12,
            ..unpaced
        };
        let fetch = quic(bytes, Some(400), paced);
        let [upload, burst, wide] = [paced, unpaced, wider].map(|p| quic(bytes, None, p));
        println!("| {bytes} | {tcp:.0} | {fetch:.0} | {upload:.0} | {burst:.0} | {wide:.0} |");
        // A client that asks for the data waits half a round trip longer for its first byte than the receiver of
        // TCP's sender, which connects itself.
        assert!((30.0..60.0).contains(&(fetch - upload)), "{fetch} {upload}");
        // Four fifths of a round trip at most: 5/4 of a window per round trip.
        assert!((0.0..80.0).contains(&(upload - burst)), "{upload} {burst}");
        // Ten datagrams of 1200 B are 12,000 B, TCP's ten segments 14,480 B.
        assert!(wide < burst, "{wide} {burst}");
        assert!(wide < 1.01 * tcp, "{wide} {tcp}");
        // Which may take a round trip more; the rest is the size of headers.
        assert!(burst < 1.04 * tcp + 100.0, "{burst} {tcp}");
    }
}
