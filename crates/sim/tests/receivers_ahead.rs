//! Receivers that are ahead of the network (ADR 23): the records are those of receivers whose packets arrive on wires.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Bytes, Dscp, Duration, Instant, IpVersion, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::{FlowRecord, Records};
use sojourn_scenario::plan::{
    Config, Distribution, FlowConfig, Hop, Jitter, LinkConfig, Order, Shaper, Traffic,
};
use sojourn_sim::{run, run_on_wires};
use sojourn_transport::{CcKind, Reader, ReceiveBuffer, ReceiverParams, SenderParams};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A flow of CUBIC over link 0, with wires of different delays there and back.
fn flow(n: u64, rtt: Duration) -> FlowConfig {
    FlowConfig {
        name: format!("flow {n}"),
        forward: vec![Hop::Link(0), Hop::Delay(rtt.scaled(0.7))],
        reverse: vec![Hop::Delay(rtt.scaled(0.3))],
        start: MS(7 * n),
        start_jitter: MS(10),
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic: tcp(CcKind::Cubic, None),
    }
}

fn tcp(cc: CcKind, bytes: Option<u64>) -> Traffic {
    Traffic::Tcp {
        bytes,
        params: SenderParams {
            cc: cc.into(),
            ..SenderParams::default()
        },
    }
}

fn config(queue: &str, rate: Rate, flows: Vec<FlowConfig>) -> Config {
    let queue = QdiscSpec::parse(queue).unwrap();
    Config {
        seed: 3,
        // Neither is a multiple of the interval; `on_boundaries` has those.
        duration: MS(6_050),
        measure_from: MS(1_530),
        sample: MS(100),
        links: vec![LinkConfig::new("there".to_owned(), rate, queue)],
        flows,
        keep_events: true,
        sample_state: false,
    }
}

/// The records of a run with and without receivers ahead of the network; the first has fewer events.
fn both(config: &Config) -> (Records, Records) {
    let ahead = run(config, &mut |_| true).unwrap().unwrap();
    let mut reference = run_on_wires(config).unwrap();
    assert!(
        ahead.agenda_events < reference.agenda_events,
        "no receiver is ahead: {} events",
        ahead.agenda_events
    );
    reference.agenda_events = ahead.agenda_events;
    (ahead, reference)
}

/// Compares both, and returns the records.
fn agree(config: &Config) -> Records {
    let (ahead, reference) = both(config);
    for (ahead, reference) in ahead.flows.iter().zip(&reference.flows) {
        assert_eq!(ahead, reference);
    }
    assert_eq!(ahead.links, reference.links);
    assert!(ahead == reference, "other records differ");
    ahead
}

/// The same, but run and warm-up end with intervals.
fn on_boundaries(mut config: Config) -> Config {
    config.duration = MS(6_000);
    config.measure_from = MS(1_500);
    config
}

#[test]
fn receivers_have_finite_buffers_and_read_slowly() {
    let receivers = [
        (ReceiveBuffer::Fixed(32_000), None, None),
        (ReceiveBuffer::Tuned(200_000), None, None),
        (ReceiveBuffer::Fixed(100_000), Some(Rate::mbit(1)), None),
        (
            ReceiveBuffer::Tuned(300_000),
            None,
            Some((MS(2_000), MS(3_500))),
        ),
    ];
    let flows = (0..).zip(receivers).map(|(n, (buffer, rate, pause))| {
        let receiver = ReceiverParams {
            buffer,
            reader: Reader { rate, pause },
            ..ReceiverParams::default()
        };
        FlowConfig {
            traffic: Traffic::Tcp {
                bytes: (n == 1).then_some(1_000_000),
                params: SenderParams {
                    receiver,
                    ..SenderParams::default()
                },
            },
            ..flow(n, MS(30 + 20 * n))
        }
    });
    let records = agree(&config("pfifo limit 60", Rate::mbit(8), flows.collect()));
    assert!(
        records
            .flows
            .iter()
            .all(|f| f.totals.received_packets > 100)
    );
}

/// The application reads the last bytes after the sender has finished, and an interval may end in between.
#[test]
fn a_slow_reader_ends_transfers() {
    let flows = (0..40).map(|n| {
        let receiver = ReceiverParams {
            reader: Reader {
                rate: Rate::from_bits_per_sec(300_000 + 7_000 * n).filter(|_| n % 2 == 0),
                pause: (n % 2 == 1).then_some((MS(500), MS(1_000 + 37 * n))),
            },
            ..ReceiverParams::default()
        };
        FlowConfig {
            traffic: Traffic::Tcp {
                bytes: Some(30_000 + 1_000 * n),
                params: SenderParams {
                    receiver,
                    ..SenderParams::default()
                },
            },
            ..flow(n, MS(400))
        }
    });
    let endless = flow(40, MS(100));
    let flows = flows.chain([endless]).collect();
    let records = agree(&config("codel", Rate::mbit(20), flows));
    let completed = |flow: &&FlowRecord| flow.completed.is_some();
    assert_eq!(records.flows.iter().filter(completed).count(), 40);
}

#[test]
fn run_and_warm_up_end_with_intervals_and_packets_arrive_then() {
    // A link of 1514 B per ms, and delays of whole milliseconds: many packets arrive at the ends of intervals.
    let rate = Rate::from_bits_per_sec(1_514 * 8_000).unwrap();
    for (n, rtt) in [10, 40, 100, 700].into_iter().enumerate() {
        let mut only = flow(0, MS(rtt));
        only.start = MS(100 * n as u64);
        only.start_jitter = Duration::ZERO;
        only.stop = (n == 1).then_some(MS(3_000));
        let config = on_boundaries(config("codel", rate, vec![only]));
        let records = agree(&config);
        assert!(records.flows[0].totals.received_packets > 100, "{rtt}");
    }
}

#[test]
fn bursts_of_several_flows_arrive_at_one_instant() {
    let mut config = config(
        "fq_codel",
        Rate::mbit(20),
        vec![flow(0, MS(20)), flow(1, MS(40))],
    );
    config.links[0].shaper = Shaper::Bucket {
        burst: Bytes(20 * 1_514),
    };
    let records = agree(&on_boundaries(config));
    assert!(records.links[0].totals.drops_aqm > 0);
}

#[test]
fn jitter_before_the_fixed_delay() {
    for order in [Order::Kept, Order::Free] {
        let mut config = config(
            "codel",
            Rate::mbit(20),
            vec![flow(0, MS(30)), flow(1, MS(50))],
        );
        config.links[0].line.jitter = Some(Jitter {
            spread: MS(3),
            distribution: Distribution::Uniform,
            order,
        });
        agree(&config);
    }
}

#[test]
fn one_flow_through_each_of_several_queues() {
    for queue in ["pfifo limit 40", "codel", "fq_codel", "pie", "fq", "cake"] {
        let records = agree(&config(queue, Rate::mbit(10), vec![flow(0, MS(40))]));
        assert!(records.flows[0].totals.received_packets > 1_000, "{queue}");
    }
}

#[test]
fn flows_with_equal_and_with_different_delays() {
    let rtts = [40, 40, 90, 15].map(MS);
    let flows = (0..).zip(rtts).map(|(n, rtt)| flow(n, rtt)).collect();
    let records = agree(&config("fq_codel", Rate::mbit(30), flows));
    assert!(records.links[0].totals.drops_aqm > 10);
}

#[test]
fn the_delay_exceeds_several_intervals_and_the_warm_up() {
    let flows = vec![flow(0, MS(2_400)), flow(1, MS(700))];
    let records = agree(&config("pfifo limit 300", Rate::mbit(8), flows));
    let series = &records.flows[0].series;
    let first = series.iter().find(|sample| sample.delivered_bytes > 0);
    // After a handshake of one round trip and the way there.
    assert!(first.unwrap().at >= Instant::from_millis(2_400 + 1_680));
    assert!(records.flows[0].totals.delivered_bytes > 0);
}

#[test]
fn transfers_that_end_are_stopped_or_start_late() {
    let short = FlowConfig {
        traffic: tcp(CcKind::Reno, Some(200_000)),
        ..flow(0, MS(60))
    };
    let stopped = FlowConfig {
        stop: Some(MS(3_333)),
        ..flow(1, MS(300))
    };
    let late = FlowConfig {
        start: MS(5_900),
        ..flow(2, MS(200))
    };
    let in_warm_up = FlowConfig {
        stop: Some(MS(1_530)),
        ..flow(3, MS(100))
    };
    let last = FlowConfig {
        start: MS(4_000),
        traffic: tcp(CcKind::Cubic, Some(700_000)),
        ..flow(4, MS(1_000))
    };
    let flows = vec![short, stopped, late, in_warm_up, last];
    let records = agree(&config("codel", Rate::mbit(10), flows));
    let completed = records.flows[0].completed.unwrap();
    assert!(completed > Instant::from_millis(60));
    assert!(records.flows[1].series.last().unwrap().delivered_bytes > 0);
}

#[test]
fn marks_delayed_acknowledgements_and_pacing() {
    for cc in [CcKind::Dctcp, CcKind::Prague, CcKind::Bbr] {
        let mut marked = flow(0, MS(30));
        if let Traffic::Tcp { params, .. } = &mut marked.traffic {
            params.cc = cc.into();
            params.ecn = true;
            params.accurate_ecn = cc == CcKind::Prague;
        }
        let flows = vec![marked, flow(1, MS(30))];
        let records = agree(&config("dualpi2", Rate::mbit(20), flows));
        assert!(records.flows[0].totals.received_packets > 500, "{cc}");
    }
}

#[test]
fn hundreds_of_flows_of_which_some_end() {
    let flows = (0..600).map(|n| FlowConfig {
        start: MS(n),
        stop: (n % 7 == 0).then(|| MS(1_000 + 3 * n)),
        traffic: tcp(CcKind::Cubic, (n % 5 == 0).then_some(30_000 + 100 * n)),
        ..flow(n, MS(10 + n % 90))
    });
    let config = Config {
        duration: MS(3_000),
        ..config("fq_codel", Rate::mbit(200), flows.collect())
    };
    let records = agree(&config);
    let completed = records.flows.iter().filter(|f| f.completed.is_some());
    assert!(completed.count() > 50);
}

#[test]
fn acknowledgements_through_a_link_of_their_own() {
    let mut config = config("codel", Rate::mbit(20), vec![]);
    let queue = QdiscSpec::parse("pfifo limit 5").unwrap();
    let back = LinkConfig::new(
        "back".to_owned(),
        Rate::from_bits_per_sec(300_000).unwrap(),
        queue,
    );
    config.links.push(back);
    for n in 0..3 {
        let mut flow = flow(n, MS(50));
        flow.reverse.push(Hop::Link(1));
        config.flows.push(flow);
    }
    let records = agree(&config);
    assert!(records.links[1].totals.drops_overlimit > 10);
}
