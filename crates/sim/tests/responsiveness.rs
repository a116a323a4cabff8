//! Round trips per minute over paths whose times are known.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use sojourn_apps::{Confidence, Exchange, ResponsivenessConfig, ResponsivenessRecord, Transport};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion, Rate};
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::SenderParams;

fn usual() -> ResponsivenessConfig {
    ResponsivenessConfig {
        exchange: Exchange {
            transport: Transport::Tcp,
            tcp: SenderParams::default(),
            request: Bytes(400),
        },
        connections: 16,
        load: true,
        tls: true,
    }
}

/// A test behind a link of `mbit` with 100 ms of round trip.
fn config(mbit: u64, qdisc: &str, seconds: u64, test: ResponsivenessConfig) -> Config {
    let one_way = Hop::Delay(Duration::from_millis(50));
    let qdisc = qdisc.parse().unwrap();
    Config {
        seed: 1,
        duration: Duration::from_secs(seconds),
        measure_from: Duration::ZERO,
        sample: Duration::from_secs(1),
        links: vec![LinkConfig::new("down".to_owned(), Rate::mbit(mbit), qdisc)],
        flows: vec![FlowConfig {
            name: "test".to_owned(),
            forward: vec![one_way, Hop::Link(0)],
            reverse: vec![one_way],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: Traffic::App(Arc::new(test)),
        }],
        keep_events: false,
        sample_state: false,
    }
}

fn records(config: &Config) -> Records {
    run(config, &mut |_| true).unwrap().unwrap()
}

fn found(records: &Records) -> ResponsivenessRecord {
    records.apps[0].responsiveness.unwrap()
}

#[test]
fn an_idle_link_has_as_many_round_trips_a_minute_as_fit() {
    for tls in [true, false] {
        let test = ResponsivenessConfig {
            load: false,
            tls,
            ..usual()
        };
        let records = records(&config(1_000, "pfifo limit 1000", 30, test));
        let found = found(&records);
        // 60 s / 100 ms; packets take microseconds more.
        for rpm in [
            found.times.rpm(),
            found.times.foreign_rpm(),
            found.times.loaded_rpm(),
        ] {
            assert!(rpm > 599.0 && rpm <= 600.0, "{rpm}");
        }
        assert_eq!(found.times.tls.is_some(), tls);
        assert_eq!(found.confidence, Confidence::High);
        assert_eq!(found.connections, 1);
    }
}

/// A test behind a bloated buffer: what came of it, the base RTT and the mean wait together in milliseconds, and
/// how many packets were dropped.
fn bloated(qdisc: &str, tcp: SenderParams) -> (ResponsivenessRecord, f64, u64) {
    let test = ResponsivenessConfig {
        exchange: Exchange {
            tcp,
            ..usual().exchange
        },
        ..usual()
    };
    let records = records(&config(20, qdisc, 60, test));
    let link = &records.links[0];
    let waits = link.sojourn.mean().unwrap() / 1e6;
    assert!(waits > 150.0, "{waits}: no bloat");
    let found = found(&records);
    // Self probes wait behind what the server has written ahead, too.
    assert!(found.times.loaded_rpm() < found.times.foreign_rpm());
    assert!(found.probes > 100, "{}", found.probes);
    (found, 100.0 + waits, link.totals.drops_overlimit)
}

#[test]
fn a_bloated_buffer_lowers_it_by_what_waits() {
    let marked = SenderParams {
        ecn: true,
        ..SenderParams::default()
    };
    let (found, one, drops) = bloated("pfifo limit 5000 ce_threshold 250ms", marked);
    assert_eq!(drops, 0);
    // Each time is of one round trip through the queue.
    let times = found.times;
    for time in [times.tcp, times.tls.unwrap(), times.http] {
        let ms = time.as_secs_f64() * 1e3;
        assert!((ms / one - 1.0).abs() < 0.15, "{ms}, not {one}");
    }
    let (rpm, wanted) = (times.foreign_rpm(), 60_000.0 / one);
    assert!((rpm / wanted - 1.0).abs() < 0.15, "{rpm}, not {wanted}");
}

#[test]
fn drops_lengthen_the_handshake_of_tls() {
    let (found, one, drops) = bloated("pfifo limit 500", SenderParams::default());
    assert!(drops > 0);
    for time in [found.times.tcp, found.times.http] {
        let ms = time.as_secs_f64() * 1e3;
        assert!((ms / one - 1.0).abs() < 0.15, "{ms}, not {one}");
    }
    // The three segments of a server are too few for duplicate acknowledgements.
    let tls = found.times.tls.unwrap().as_secs_f64() * 1e3;
    assert!((1.15..2.0).contains(&(tls / one)), "{tls}, not {one}");
}

#[test]
fn a_queue_for_each_flow_spares_the_foreign_probes() {
    let records = records(&config(20, "fq_codel", 60, usual()));
    let found = found(&records);
    let rpm = found.times.foreign_rpm();
    assert!(rpm > 540.0 && rpm <= 600.0, "{rpm}");
    assert_eq!(found.confidence, Confidence::High);
}

#[test]
fn load_grows_by_a_connection_a_second_and_probes_take_a_twentieth() {
    let seconds = 30;
    let few = ResponsivenessConfig {
        connections: 4,
        ..usual()
    };
    let records = records(&config(20, "fq_codel", seconds, few));
    assert_eq!(found(&records).connections, 4);
    let utilisation = records.links[0].sending.as_secs_f64() / f64::from(30);
    assert!(utilisation > 0.9, "{utilisation}");
    // 4 for load; 5 % of 2.4 MB/s is room for 20 pairs of 6,000 B.
    let until = found(&records).at.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let rate = (records.apps[0].connections - 4) as f64 / until;
    assert!(rate > 10.0 && rate <= 20.0, "{rate}");
}

#[test]
fn the_result_is_of_what_follows_the_warm_up() {
    let mut config = config(20, "fq_codel", 40, usual());
    let early = found(&records(&config)).at;
    config.measure_from = Duration::from_secs(30);
    let late = found(&records(&config)).at;
    assert!(early.as_secs_f64() < 25.0, "{early:?}");
    assert!(late.as_secs_f64() > 32.0, "{late:?}");
}

#[test]
fn a_test_cut_short_says_so_and_one_without_time_says_nothing() {
    let records_of = |seconds| records(&config(20, "pfifo limit 500", seconds, usual()));
    assert_eq!(found(&records_of(3)).confidence, Confidence::Low);
    let mut short = config(20, "pfifo limit 500", 1, usual());
    short.duration = Duration::from_millis(150);
    short.sample = Duration::from_millis(50);
    assert_eq!(records(&short).apps[0].responsiveness, None);
}
