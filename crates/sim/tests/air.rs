//! The air below a queue: why an AQM above a deep driver fails, and what helps.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_apps::{Phase, PingConfig, PingPace};
use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::Records;
use sojourn_scenario::plan::{
    ChannelConfig, Config, DriverLimit, FlowConfig, Hop, LinkConfig, RadioConfig, RateControl,
    Sharing, Standard, Traffic,
};
use sojourn_sim::run;
use sojourn_transport::SenderParams;

const MS: Duration = Duration::from_millis(1);

/// Four downloads and a ping through an access point with `qdisc`, whose driver holds `driver`;
/// the station answers over the same air.
fn download(qdisc: &str, driver: DriverLimit) -> Records {
    let link = |name: &str, driver| LinkConfig {
        radio: Some(RadioConfig {
            medium: "air".to_owned(),
            standard: Standard::N,
            driver,
            stations: Vec::new(),
            sharing: Sharing::Turns,
            aggregate_time: RadioConfig::AGGREGATE_TIME,
            aggregate_packets: RadioConfig::AGGREGATE_PACKETS,
            rate_control: RateControl::Fixed,
            channel: ChannelConfig::default(),
        }),
        ..LinkConfig::new(
            name.to_owned(),
            Rate::mbit(13),
            QdiscSpec::parse(qdisc).unwrap(),
        )
    };
    let half = Hop::Delay(MS.times(10));
    let flow = |name: &str, traffic| FlowConfig {
        name: name.to_owned(),
        forward: vec![half, Hop::Link(0)],
        reverse: vec![Hop::Link(1), half],
        start: Duration::ZERO,
        start_jitter: MS.times(100),
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic,
    };
    let bulk = Traffic::Tcp {
        bytes: None,
        params: SenderParams::default(),
    };
    let mut flows: Vec<_> = (0..4)
        .map(|n| flow(&format!("tcp {n}"), bulk.clone()))
        .collect();
    flows.push(flow(
        "ping",
        Traffic::datagrams(PingConfig {
            pace: PingPace::Every {
                interval: MS.times(100),
                phase: Phase::Fixed(Duration::ZERO),
            },
            payload: None,
        }),
    ));
    let config = Config {
        seed: 1,
        duration: Duration::from_secs(40),
        measure_from: Duration::from_secs(10),
        sample: MS.times(100),
        links: vec![link("down", driver), link("up", driver)],
        flows,
        keep_events: false,
        sample_state: false,
    };
    run(&config, &mut |_| true).unwrap().unwrap()
}

/// Of the pings of the last 30 s, in milliseconds; and what the downloads carried, in Mbit/s.
fn median_and_goodput(records: &Records) -> (f64, f64) {
    let pings = &records.flows[4].pings[100..];
    let mut rtts: Vec<_> = pings.iter().filter_map(|p| p.rtt).collect();
    rtts.sort_unstable();
    let bytes: u64 = records.flows.iter().map(|f| f.totals.delivered_bytes).sum();
    let bits = f64::from(u32::try_from(8 * bytes / 1_000).unwrap()) * 1e3;
    (rtts[rtts.len() / 2].as_millis_f64(), bits / 30.0 / 1e6)
}

#[test]
fn a_queue_above_a_deep_driver_cannot_help_and_a_limit_below_it_does() {
    let deep = download("fq_codel", DriverLimit::Packets(1_000));
    let limited = download("fq_codel", DriverLimit::Airtime(MS.times(12)));
    let (deep_ms, deep_mbit) = median_and_goodput(&deep);
    let (limited_ms, limited_mbit) = median_and_goodput(&limited);
    println!("1000 packets: {deep_ms:.1} ms, {deep_mbit:.2} Mbit/s");
    println!("12 ms of air: {limited_ms:.1} ms, {limited_mbit:.2} Mbit/s");
    // The queue's own delay is small either way: it does not see what waits below it.
    for records in [&deep, &limited] {
        let above = records.links[0].sojourn.quantile(0.5).unwrap();
        assert!(above < 40_000_000, "{above}");
    }
    let below = |records: &Records| records.links[0].driver.as_ref().unwrap().mean().unwrap();
    assert!(below(&deep) > 300e6 && below(&limited) < 30e6);
    // 20 ms of path; the rest waits.
    assert!(deep_ms > 300.0 && limited_ms < 60.0);
    // Short aggregates cost some of the air, not much.
    assert!(limited_mbit > 0.85 * deep_mbit);
}

#[test]
fn a_queue_with_a_periodic_update_is_updated_above_a_driver() {
    for qdisc in ["pie", "dualpi2", "fq_pie"] {
        let records = download(qdisc, DriverLimit::Airtime(MS.times(12)));
        let drops = records.links[0].totals.drops_aqm;
        // With one update only, the probability stays 0.
        assert!(drops > 50, "{qdisc}: {drops}");
    }
}
