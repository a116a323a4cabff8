//! Every application over TCP and over QUIC, alone and beside a bulk transfer.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use sojourn_apps::{
    Amount, ApplicationConfig, DashConfig, Exchange, Phase, RequestsConfig, ResponsivenessConfig,
    SessionsConfig, Transport, Wait,
};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion, Rate};
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::SenderParams;

const REQUEST: Bytes = Bytes(400);

fn flow(name: &str, traffic: Traffic) -> FlowConfig {
    let one_way = Hop::Delay(Duration::from_millis(25));
    FlowConfig {
        name: name.to_owned(),
        forward: vec![one_way, Hop::Link(0)],
        reverse: vec![one_way],
        start: Duration::ZERO,
        start_jitter: Duration::ZERO,
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic,
    }
}

/// The records of 20 s of `app` behind a link of 20 Mbit/s with 50 ms of round trip.
fn records(app: Arc<dyn ApplicationConfig>, qdisc: &str, beside_bulk: bool) -> Records {
    let mut flows = vec![flow("app", Traffic::App(app))];
    if beside_bulk {
        let params = SenderParams::default();
        flows.push(flow(
            "bulk",
            Traffic::Tcp {
                bytes: None,
                params,
            },
        ));
    }
    let config = Config {
        seed: 1,
        duration: Duration::from_secs(20),
        measure_from: Duration::ZERO,
        sample: Duration::from_millis(100),
        links: vec![LinkConfig::new(
            "down".to_owned(),
            Rate::mbit(20),
            qdisc.parse().unwrap(),
        )],
        flows,
        keep_events: false,
        sample_state: false,
    };
    run(&config, &mut |_| true).unwrap().unwrap()
}

fn sessions(transport: Transport) -> Arc<dyn ApplicationConfig> {
    Arc::new(SessionsConfig {
        exchange: Exchange {
            transport,
            tcp: SenderParams::default(),
            request: REQUEST,
        },
        every: Wait::Fixed(Duration::from_millis(500)),
        response: Amount::Fixed(Bytes(20_000)),
    })
}

fn requests(transport: Transport, servers: u32, think: Duration) -> Arc<dyn ApplicationConfig> {
    Arc::new(RequestsConfig {
        exchange: Exchange {
            transport,
            tcp: SenderParams::default(),
            request: REQUEST,
        },
        servers,
        response: Amount::Fixed(Bytes(10_000)),
        work: Duration::from_millis(5),
        think: Wait::Fixed(think),
        rounds: None,
    })
}

fn dash(transport: Transport) -> Arc<dyn ApplicationConfig> {
    Arc::new(DashConfig {
        phase: Phase::Fixed(Duration::ZERO),
        exchange: Exchange {
            transport,
            tcp: SenderParams::default(),
            request: REQUEST,
        },
        ladder: vec![Rate::mbit(1), Rate::mbit(2), Rate::mbit(4)],
        segment: Duration::from_secs(2),
        buffer: Duration::from_secs(10),
        start: Duration::from_secs(2),
    })
}

fn responsiveness(transport: Transport, load: bool) -> Arc<dyn ApplicationConfig> {
    Arc::new(ResponsivenessConfig {
        exchange: Exchange {
            transport,
            tcp: SenderParams::default(),
            request: REQUEST,
        },
        connections: 4,
        load,
        tls: true,
    })
}

/// Durations of the completed transactions in ms, and how many did not complete.
fn durations_ms(records: &Records) -> (Vec<f64>, usize) {
    let ended = records
        .transactions
        .iter()
        .map(|t| (t.started, t.completed));
    let took: Vec<_> = ended
        .filter_map(|(started, completed)| Some(completed?.since(started).as_millis_f64()))
        .collect();
    let open = records.transactions.len() - took.len();
    (took, open)
}

#[test]
fn every_application_completes_its_transactions_over_either_transport() {
    let think = Duration::from_millis(200);
    for transport in Transport::ALL {
        for (app, least) in [
            (sessions(transport), 38),
            (requests(transport, 1, think), 60),
            (requests(transport, 8, think), 60),
            (dash(transport), 9),
        ] {
            let name = format!("{app:?}");
            let records = records(app, "fq_codel", false);
            let (took, open) = durations_ms(&records);
            assert!(took.len() >= least, "{name}: {} of {least}", took.len());
            assert!(open <= 1, "{name}: {open} did not complete");
            assert_eq!(records.apps[0].failed, 0, "{name}");
            let completed = records
                .transactions
                .iter()
                .filter(|t| t.completed.is_some());
            let bytes: u64 = completed.map(|t| t.bytes).sum();
            let delivered = records.flows[0].totals.delivered_bytes;
            assert!(delivered >= bytes, "{name}: {delivered} B of {bytes} B");
        }
    }
}

#[test]
fn a_request_takes_the_round_trips_of_its_transport() {
    let app = |transport| requests(transport, 1, Duration::from_millis(200));
    for transport in Transport::ALL {
        let (took, _) = durations_ms(&records(app(transport), "fq_codel", false));
        // Handshake, request and response; 5 ms of the server's work; 10 kB take 4 ms at 20 Mbit/s.
        assert!((took[0] - 109.5).abs() < 3.0, "{transport:?}: {}", took[0]);
        assert!((took[1] - 59.5).abs() < 2.0, "{transport:?}: {}", took[1]);
    }
}

/// An application over a transport, with a pause between its rounds.
type Choose = fn(Transport, Duration) -> Arc<dyn ApplicationConfig>;

#[test]
fn applications_share_a_link_with_bulk_alike_over_either_transport() {
    let think = Duration::from_millis(200);
    let apps: [Choose; 3] = [
        |transport, _| sessions(transport),
        |transport, think| requests(transport, 1, think),
        |transport, _| dash(transport),
    ];
    for app in apps {
        let [tcp, quic] = Transport::ALL.map(|transport| {
            let records = records(app(transport, think), "fq_codel", true);
            assert_eq!(records.apps[0].failed, 0, "{transport:?}");
            let (took, open) = durations_ms(&records);
            let bulk = records.flows[1].totals.delivered_bytes;
            assert!(open <= 2, "{transport:?}: {open} did not complete");
            (took.len(), bulk)
        });
        let name = format!("{:?}", app(Transport::Quic, think));
        assert!(10 * quic.0 >= 9 * tcp.0, "{name}: {quic:?} {tcp:?}");
        assert!(10 * quic.1 >= 8 * tcp.1, "{name}: {quic:?} {tcp:?}");
    }
}

#[test]
fn responsiveness_over_quic_counts_one_handshake() {
    let idle = records(responsiveness(Transport::Quic, false), "fq_codel", false);
    let test = idle.apps[0].responsiveness.unwrap();
    assert_eq!(test.times.tls, None);
    // Handshake and requests take a round trip of 50 ms each; a datagram of 1,200 B 0.5 ms more.
    let rpm = test.times.rpm();
    assert!(rpm > 1_120.0 && rpm < 1_200.0, "{rpm}");
    let over = |transport, qdisc| {
        let records = records(responsiveness(transport, true), qdisc, false);
        records.apps[0].responsiveness.unwrap().times
    };
    // A large FIFO makes probes wait for the load; FQ-CoDel does not make foreign ones wait.
    let fifo = over(Transport::Quic, "pfifo limit 500");
    let fair = over(Transport::Quic, "fq_codel");
    assert!(
        fifo.rpm() < 0.5 * fair.rpm(),
        "{} {}",
        fifo.rpm(),
        fair.rpm()
    );
    assert!(fair.foreign_rpm() > 900.0, "{}", fair.foreign_rpm());
    // A self probe on a stream of its own does not wait behind what the server has written.
    let tcp = over(Transport::Tcp, "fq_codel");
    assert!(fair.own < tcp.own, "{:?} {:?}", fair.own, tcp.own);
}

#[test]
fn an_idle_quic_connection_is_opened_again_for_the_next_request() {
    let app = requests(Transport::Quic, 1, Duration::from_secs(31));
    let mut config = Config {
        seed: 1,
        duration: Duration::from_secs(100),
        measure_from: Duration::ZERO,
        sample: Duration::from_secs(1),
        links: vec![LinkConfig::new(
            "down".to_owned(),
            Rate::mbit(20),
            "fq_codel".parse().unwrap(),
        )],
        flows: vec![flow("app", Traffic::App(app))],
        keep_events: false,
        sample_state: false,
    };
    let quic = run(&config, &mut |_| true).unwrap().unwrap();
    let (took, open) = durations_ms(&quic);
    assert_eq!((took.len(), open, quic.apps[0].connections), (4, 0, 4));
    // Each needs a handshake.
    assert!(took.iter().all(|&ms| (ms - 109.5).abs() < 3.0), "{took:?}");
    let app = requests(Transport::Tcp, 1, Duration::from_secs(31));
    config.flows = vec![flow("app", Traffic::App(app))];
    let tcp = run(&config, &mut |_| true).unwrap().unwrap();
    assert_eq!(tcp.apps[0].connections, 1);
}
