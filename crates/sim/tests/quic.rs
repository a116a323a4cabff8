//! QUIC over links with queues: what a run says of it, and what queues see of it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_apps::{Phase, Spacing, UdpConfig};
use sojourn_net::{Dscp, Duration, Instant, IpVersion, Rate};
use sojourn_qdisc::{Number, QdiscSpec};
use sojourn_records::{FlowKind, FlowRecord, Records};
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::CcKind;
use sojourn_transport::quic::Params;

const MS: fn(u64) -> Duration = Duration::from_millis;
const RTT: Duration = Duration::from_millis(40);

/// Data passes the link, what comes back an ideal wire.
fn flow(name: &str, bytes: Option<u64>, request: Option<u64>, params: Params) -> FlowConfig {
    let half = Hop::Delay(Duration::from_nanos(RTT.as_nanos() / 2));
    FlowConfig {
        name: name.to_owned(),
        forward: vec![Hop::Link(0), half],
        reverse: vec![half],
        start: MS(100),
        start_jitter: Duration::ZERO,
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic: Traffic::Quic {
            bytes,
            request,
            params,
        },
    }
}

fn config(mbit: u64, queue: &str, flows: Vec<FlowConfig>) -> Config {
    Config {
        seed: 1,
        duration: Duration::from_secs(20),
        measure_from: Duration::ZERO,
        sample: MS(100),
        links: vec![LinkConfig::new(
            "link".to_owned(),
            Rate::mbit(mbit),
            QdiscSpec::parse(queue).unwrap(),
        )],
        flows,
        keep_events: true,
        sample_state: false,
    }
}

fn records(config: &Config) -> Records {
    run(config, &mut |_| true).unwrap().unwrap()
}

fn fct(flow: &FlowRecord) -> Duration {
    flow.completed.unwrap().since(flow.started.unwrap())
}

#[test]
fn a_fetch_takes_two_round_trips_with_a_handshake_and_one_without() {
    let early = Params {
        zero_rtt: true,
        ..Params::default()
    };
    let flows = vec![
        flow("fetch", Some(2_000), Some(400), Params::default()),
        flow("early", Some(2_000), Some(400), early),
        flow("upload", Some(2_000), None, Params::default()),
        // Three times the client's 1200 B is all that the server may send before it knows better.
        flow("early but long", Some(5_000), Some(400), early),
    ];
    let records = records(&config(1_000, "pfifo", flows));
    for (flow, least) in records.flows.iter().zip([80, 40, 60, 80]) {
        assert_eq!(flow.kind, FlowKind::Quic);
        assert!(flow.totals.delivered_bytes >= 2_000);
        assert_eq!((flow.totals.retransmits, flow.totals.timeouts), (0, 0));
        let took = fct(flow);
        assert!(
            took >= MS(least) && took < MS(least + 1),
            "{}: {took:?}",
            flow.name
        );
    }
    let connected = |n: usize| {
        records.flows[n]
            .connected
            .unwrap()
            .since(Instant::from_millis(100))
    };
    assert!(
        connected(0) >= RTT && connected(0) < MS(41),
        "{:?}",
        connected(0)
    );
}

#[test]
fn a_long_transfer_fills_the_link_and_its_record_agrees_with_the_links() {
    for cc in [CcKind::Reno, CcKind::Cubic] {
        let params = Params {
            cc: cc.into(),
            ..Params::default()
        };
        let records = records(&config(
            10,
            "pfifo limit 50",
            vec![flow("quic", None, Some(400), params)],
        ));
        let (flow, link) = (&records.flows[0], &records.links[0]);
        let rate = flow.totals.delivered_bytes * 8 / 20;
        assert!((9_200_000..9_700_000).contains(&rate), "{cc}: {rate}");
        assert_eq!(link.totals.drops_overlimit, records.events.len() as u64);
        let lost = flow.totals.sent_packets - flow.totals.received_packets;
        let underway = u64::from(flow.series.last().unwrap().in_flight);
        let drops = link.totals.drops_overlimit;
        assert!(
            drops > 0 && drops <= lost && lost <= drops + underway + 2,
            "{drops} {lost}"
        );
        assert!(
            flow.series
                .iter()
                .any(|s| s.ssthresh.is_some() && s.cwnd.is_some_and(|cwnd| cwnd.get() > 20))
        );
        let delivered: u64 = flow.series.iter().map(|s| s.delivered_bytes).sum();
        assert_eq!(delivered, flow.totals.delivered_bytes);
    }
}

#[test]
fn a_dropped_flight_is_counted_and_waited_for() {
    // Only one packet fits: of the server's flight of three the last two are dropped.
    let flows = vec![flow("quic", Some(100_000), Some(400), Params::default())];
    let records = records(&config(10, "pfifo limit 1", flows));
    let flow = &records.flows[0];
    assert!(
        flow.initial_losses.handshake >= 1,
        "{:?}",
        flow.initial_losses
    );
    assert!(flow.initial_losses.window >= 1, "{:?}", flow.initial_losses);
    assert!(flow.totals.syn_retransmits >= 1);
    assert!(flow.completed.is_some());
    assert!(fct(flow) > MS(100), "{:?}", fct(flow));
}

#[test]
fn floq_spares_the_set_up_of_quic_and_takes_the_rest_for_responsive() {
    let mut flows = vec![flow("quic", None, Some(400), Params::default())];
    flows.push(FlowConfig {
        traffic: Traffic::datagrams(UdpConfig {
            phase: Phase::Fixed(Duration::ZERO),
            rate: Rate::mbit(5),
            payload: sojourn_net::Bytes(1_000),
            spacing: Spacing::CONSTANT,
        }),
        ..flow("udp", None, None, Params::default())
    });
    let records = records(&config(10, "floq limit 100", flows));
    let statistics = &records.links[0].statistics;
    // Of the classes of set-ups and of responsive traffic.
    let of = |class| {
        let packets = statistics
            .iter()
            .find(|s| s.name == "packets" && s.part == Some(("classes", class)));
        match packets.unwrap().value {
            Number::Count(n) => n,
            ref other => panic!("{other:?}"),
        }
    };
    let (setup, responsive) = (of(0), of(1));
    // The server's flight and ten packets with data.
    assert!((10..16).contains(&setup), "{setup}");
    let sent = records.flows[0].totals.sent_packets;
    assert!(responsive.abs_diff(sent) < 20, "{sent} {responsive}");
}

#[test]
fn a_client_whose_server_is_unreachable_gives_up_after_30_s() {
    let mut config = config(
        10,
        "pfifo",
        vec![flow("quic", Some(1_000), None, Params::default())],
    );
    config.duration = Duration::from_secs(100);
    // A link too slow for the first packet to get through within the run.
    config.links[0].rate = Rate::from_bits_per_sec(8).unwrap();
    let records = records(&config);
    let flow = &records.flows[0];
    assert_eq!((flow.connected, flow.completed), (None, None));
    // At 1, 3, 7, 15 s after the first.
    assert_eq!(flow.totals.timeouts, 4);
    // It gives up at 30 s. The interval that ends then ends first, so the last sample is that of the next one.
    assert_eq!(flow.series.last().unwrap().at, Instant::from_millis(30_100));
}

#[test]
fn marks_reduce_the_window_without_losses() {
    let params = Params {
        ecn: true,
        ..Params::default()
    };
    let records = records(&config(
        10,
        "codel ecn",
        vec![flow("quic", None, Some(400), params)],
    ));
    let link = &records.links[0];
    assert!(link.totals.marks_aqm > 10 && link.totals.drops_aqm == 0);
    assert_eq!(records.flows[0].totals.retransmits, 0);
    let sojourn = link.sojourn.mean().unwrap() / 1e6;
    assert!(sojourn < 15.0, "{sojourn} ms");
}
