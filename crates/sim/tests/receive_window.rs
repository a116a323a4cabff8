//! Receivers with a finite buffer, and applications that do not always read.

#![expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Dscp, Duration, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::{FlowRecord, Records};
use sojourn_scenario::plan::{Config, FlowConfig, Hop, LinkConfig, Traffic};
use sojourn_sim::run;
use sojourn_transport::{Reader, ReceiveBuffer, ReceiverParams, SenderParams};

const MS: fn(u64) -> Duration = Duration::from_millis;
const MSS: u64 = 1_448;

/// One CUBIC flow at 10 Mbit/s and a base RTT of 100 ms, for 20 s of which the first 5 do not count.
fn records(receiver: ReceiverParams, bytes: Option<u64>, queue: &str) -> Records {
    let params = SenderParams {
        receiver,
        ecn: queue.contains("ecn"),
        ..SenderParams::default()
    };
    let config = Config {
        seed: 1,
        duration: MS(20_000),
        measure_from: MS(5_000),
        sample: MS(100),
        links: vec![LinkConfig::new(
            "up".to_owned(),
            Rate::mbit(10),
            QdiscSpec::parse(queue).unwrap(),
        )],
        flows: vec![FlowConfig {
            name: "bulk".to_owned(),
            forward: vec![Hop::Link(0), Hop::Delay(MS(50))],
            reverse: vec![Hop::Delay(MS(50))],
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

fn flow(receiver: ReceiverParams) -> FlowRecord {
    records(receiver, None, "pfifo limit 1000").flows.remove(0)
}

fn buffer(buffer: ReceiveBuffer) -> ReceiverParams {
    ReceiverParams {
        buffer,
        ..ReceiverParams::default()
    }
}

/// Goodput in Mbit/s from the end of the warm-up on.
fn goodput(flow: &FlowRecord) -> f64 {
    flow.totals.delivered_bytes as f64 * 8.0 / 15.0 / 1e6
}

#[test]
fn a_window_below_the_bandwidth_delay_product_sets_the_rate() {
    for (window, segments) in [(16_384, 11), (65_536, 45)] {
        let flow = flow(buffer(ReceiveBuffer::Fixed(window)));
        // The window per base RTT and the transmission of a segment: there is no queue but of a burst.
        let most = (segments * MSS * 8) as f64 / 0.100 / 1e6;
        let ratio = goodput(&flow) / most;
        assert!((0.94..=1.0).contains(&ratio), "{window}: {ratio}");
        let limited = flow.totals.limited_receive_window as f64 / 15e9;
        assert!(limited > 0.9, "{window}: {limited}");
    }
}

#[test]
fn a_window_above_it_limits_the_queue_instead() {
    let flow = flow(buffer(ReceiveBuffer::Fixed(262_144)));
    assert!(goodput(&flow) > 9.4);
    // 181 segments at 1514 bytes take 219 ms on the link.
    let srtt = flow.series.last().unwrap().srtt.unwrap().as_micros();
    assert!((215_000..223_000).contains(&srtt), "{srtt}");
}

#[test]
fn a_tuned_buffer_offers_at_most_half_of_it() {
    let flow = flow(buffer(ReceiveBuffer::Tuned(131_072)));
    // 64 kB less a segment, which is reserved: 44 segments.
    let most = (44 * MSS * 8) as f64 / 0.100 / 1e6;
    let ratio = goodput(&flow) / most;
    assert!((0.94..=1.0).contains(&ratio), "{ratio}");
}

#[test]
fn a_reader_sets_the_rate() {
    let reader = Reader {
        rate: Some(Rate::mbit(2)),
        pause: None,
    };
    let flow = flow(ReceiverParams {
        buffer: ReceiveBuffer::Fixed(65_536),
        reader,
        ..ReceiverParams::default()
    });
    assert!((1.95..2.01).contains(&goodput(&flow)), "{}", goodput(&flow));
    assert!(flow.totals.limited_receive_window > 10_000_000_000);
}

#[test]
fn a_pause_stops_the_flow_which_then_continues() {
    let reader = Reader {
        rate: None,
        pause: Some((MS(10_000), MS(15_000))),
    };
    let receiver = ReceiverParams {
        buffer: ReceiveBuffer::Fixed(65_536),
        reader,
        ..ReceiverParams::default()
    };
    let flow = flow(receiver);
    let read = |from: usize, to: usize| -> u64 {
        let series = &flow.series[from..to];
        series.iter().map(|sample| sample.delivered_bytes).sum()
    };
    assert_eq!(read(101, 149), 0);
    // More than the window waited.
    assert!(read(149, 151) > 65_536);
    assert!(read(160, 200) * 8 > 4 * 4_900_000);
    assert_eq!(flow.totals.timeouts, 0);
}

#[test]
fn a_transfer_is_complete_when_it_has_been_read() {
    let complete = |reader| {
        let receiver = ReceiverParams {
            buffer: ReceiveBuffer::Fixed(65_536),
            reader,
            ..ReceiverParams::default()
        };
        let records = records(receiver, Some(100_000), "pfifo limit 1000");
        records.flows[0].completed.unwrap().as_nanos() / 1_000_000
    };
    let at_once = complete(Reader::default());
    let slowly = complete(Reader {
        rate: Some(Rate::mbit(1)),
        pause: None,
    });
    assert!((300..500).contains(&at_once), "{at_once}");
    // 100 kB at 1 Mbit/s, less the last read.
    assert!((790..1_000).contains(&slowly), "{slowly}");
}
