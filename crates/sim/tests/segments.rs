//! Acknowledgement policies, receive offload, bursts of segmentation offload, and sources with a rate.

#![expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::{FlowRecord, Records};
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::{AckPolicy, BurstLimits, Device, ReceiverParams, SenderParams, Writer};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// One CUBIC flow at 10 Mbit/s and a base RTT of 40 ms, for 10 s. Its acknowledgements are the packets of link 1.
fn records(params: SenderParams, bytes: Option<u64>) -> Records {
    let link = |name: &str, rate, queue| {
        LinkConfig::new(
            name.to_owned(),
            Rate::mbit(rate),
            QdiscSpec::parse(queue).unwrap(),
        )
    };
    let config = Config {
        seed: 1,
        duration: MS(10_000),
        measure_from: Duration::ZERO,
        sample: MS(100),
        links: vec![
            link("up", 10, "pfifo limit 100"),
            link("down", 1_000, "pfifo limit 1000"),
        ],
        flows: vec![FlowConfig {
            name: "bulk".to_owned(),
            forward: vec![Hop::Link(0), Hop::Delay(MS(20))],
            reverse: vec![Hop::Delay(MS(20)), Hop::Link(1)],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            ip: IpVersion::V4,
            traffic: Traffic::Tcp { bytes, params },
        }],
        keep_events: false,
        sample_state: false,
    };
    run(&config, &mut |_| true).unwrap().unwrap()
}

/// Data packets per acknowledgement; the flow must not be slower than the usual one.
fn packets_per_ack(params: SenderParams) -> f64 {
    let records = records(params, None);
    let flow = &records.flows[0];
    assert!(goodput(flow) > 8.5, "{}", goodput(flow));
    flow.totals.received_packets as f64 / records.links[1].totals.sent_packets as f64
}

/// Mbit/s.
fn goodput(flow: &FlowRecord) -> f64 {
    let series = &flow.series[10..];
    let bytes: u64 = series.iter().map(|sample| sample.delivered_bytes).sum();
    bytes as f64 * 8.0 / 1e5 / series.len() as f64
}

fn with_acks(acks: AckPolicy) -> SenderParams {
    SenderParams {
        receiver: ReceiverParams {
            acks,
            ..ReceiverParams::default()
        },
        ..SenderParams::default()
    }
}

#[test]
fn the_policy_sets_the_number_of_acknowledgements() {
    let every = |every, quick| {
        packets_per_ack(with_acks(AckPolicy {
            every,
            quick,
            delay: Some(MS(100)),
        }))
    };
    let usual = packets_per_ack(SenderParams::default());
    assert!((1.5..2.0).contains(&usual), "{usual}");
    let each = every(1, true);
    assert!((0.99..1.01).contains(&each), "{each}");
    let second = every(2, false);
    assert!((1.7..2.01).contains(&second), "{second}");
    let eighth = every(8, false);
    assert!((4.0..8.01).contains(&eighth), "{eighth}");
}

#[test]
fn merged_segments_are_acknowledged_together() {
    let merged = |poll, least| {
        packets_per_ack(SenderParams {
            receiver: ReceiverParams {
                device: Device {
                    merges: true,
                    poll: Some(MS(poll)),
                },
                ..ReceiverParams::default()
            },
            bursts: BurstLimits {
                least,
                ..BurstLimits::default()
            },
            ..SenderParams::default()
        })
    };
    // A burst of two ends with PSH.
    let two = merged(10, 2);
    assert!((1.8..2.5).contains(&two), "{two}");
    let eight = merged(10, 8);
    assert!((3.5..8.1).contains(&eight), "{eight}");
}

#[test]
fn a_source_with_a_rate_delivers_that_rate() {
    let writer = |mbit, block| SenderParams {
        writer: Some(Writer {
            rate: Rate::mbit(mbit),
            block,
        }),
        ..SenderParams::default()
    };
    for (mbit, block) in [(2, Writer::BLOCK), (2, 8_192), (6, Writer::BLOCK)] {
        let flow = records(writer(mbit, block), None).flows.remove(0);
        let rate = goodput(&flow) / mbit as f64;
        assert!((0.98..1.02).contains(&rate), "{mbit} {block}: {rate}");
        assert!(flow.totals.limited_application > 2_000_000_000);
    }
    // Faster than the link, it is as any other.
    let flow = records(writer(50, Writer::BLOCK), None).flows.remove(0);
    assert!(goodput(&flow) > 9.0);
}

#[test]
fn a_transfer_at_a_rate_completes() {
    let params = SenderParams {
        writer: Some(Writer {
            rate: Rate::mbit(2),
            block: 10_000,
        }),
        ..SenderParams::default()
    };
    let flow = records(params, Some(1_000_000)).flows.remove(0);
    let completed = flow.completed.unwrap().as_nanos() / 1_000_000;
    // 99 blocks of 40 ms, then a flight.
    assert!((3_960..4_200).contains(&completed), "{completed}");
    assert_eq!(flow.totals.delivered_bytes, 1_000_000);
}
