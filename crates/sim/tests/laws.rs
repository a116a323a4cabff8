//! Laws that hold for every run, whatever is simulated.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mixed;

use sojourn_apps::{Phase, PingConfig, PingPace};
use sojourn_net::{Bytes, Duration, Instant, Rate};
use sojourn_records::{FlowRecord, InitialLosses, LinkCounters, Records, Signal};
use sojourn_scenario::plan::{Client, Config, FlowConfig, Hop, Shaper, Traffic};
use sojourn_sim::run;
use sojourn_transport::CcKind;

use mixed::{MS, bulk, cbr, flow, link, mixed, records};

const SECOND: Duration = Duration::from_secs(1);

const QDISCS: [&str; 8] = [
    "pfifo limit 1",
    "pfifo limit 50",
    "red",
    "codel ecn",
    "pie",
    "sfq",
    "fq_codel",
    "cake bandwidth 9500kbit ack-filter",
];

fn refused(config: &Config) -> String {
    run(config, &mut |_| true).unwrap_err().to_string()
}

#[test]
fn the_same_configuration_gives_the_same_records() {
    for qdisc in QDISCS {
        assert_eq!(records(&mixed(qdisc, 7)), records(&mixed(qdisc, 7)));
        assert_ne!(records(&mixed(qdisc, 7)), records(&mixed(qdisc, 8)));
    }
}

#[test]
fn a_datagram_is_delivered_dropped_or_on_its_way() {
    for qdisc in QDISCS {
        let mut config = mixed(qdisc, 3);
        config.measure_from = Duration::ZERO;
        config.duration = Duration::from_secs(8);
        // It stops sending, and seven seconds later nothing of it is on its way.
        let before = records(&config);
        let cbr = before.flows.iter().find(|f| f.name == "cbr").unwrap();
        let dropped = dropped(&before, 3);
        assert_eq!(cbr.lost_packets, Some(dropped), "{qdisc}");
        let missing = cbr.totals.sent_packets - cbr.totals.received_packets - dropped;
        // 20 ms of wire and what the queue holds at most.
        let held = before.links[0].series.last().unwrap().backlog_packets;
        assert!(missing <= held + 20, "{qdisc}: {missing} of {held} waiting");
        assert!(cbr.totals.sent_packets > 1_900, "{:?}", cbr.totals);
    }
}

/// Drops of a flow's packets, by the events.
fn dropped(records: &Records, flow: u32) -> u64 {
    let of_flow =
        |e: &&sojourn_records::SignalRecord| e.flow == flow && matches!(e.signal, Signal::Drop(_));
    records.events.iter().filter(of_flow).count() as u64
}

#[test]
fn a_link_passes_on_what_it_does_not_drop_or_hold() {
    for qdisc in QDISCS {
        let mut config = mixed(qdisc, 4);
        config.measure_from = Duration::ZERO;
        // Only datagrams, at twice the rate: what enters is known.
        config.flows = vec![flow("cbr", cbr(20, 0.9))];
        let records = records(&config);
        let (link, cbr) = (&records.links[0], &records.flows[0]);
        let drops = link.totals.drops_overlimit + link.totals.drops_aqm;
        assert_eq!(drops, dropped(&records, 0));
        let held = link.series.last().unwrap().backlog_packets;
        assert_eq!(
            cbr.totals.sent_packets,
            link.totals.sent_packets + drops + held,
            "{qdisc}"
        );
        // On the wire: 20 ms at 10 Mbit/s, and one in the transmitter.
        let in_flight = link.totals.sent_packets - cbr.totals.received_packets;
        assert!((20..=26).contains(&in_flight), "{qdisc}: {in_flight}");
    }
}

#[test]
fn totals_are_the_sum_of_the_series_after_the_warm_up() {
    for qdisc in QDISCS {
        // Datagrams every 4 ms on the millisecond: events and samples coincide.
        let mut config = mixed(qdisc, 5);
        let regular = FlowConfig {
            start_jitter: Duration::ZERO,
            ..flow("regular", cbr(2, 0.0))
        };
        config.flows.push(regular);
        config.measure_from = Duration::from_secs(2);
        let records = records(&config);
        let counted = |at: Instant| at > Instant::ZERO + config.measure_from;
        for link in &records.links {
            let series = link.series.iter().filter(|s| counted(s.at));
            let mut sum = LinkCounters::default();
            for c in series.map(|s| s.counters) {
                sum.sent_packets += c.sent_packets;
                sum.sent_bytes += c.sent_bytes;
                sum.drops_overlimit += c.drops_overlimit;
                sum.drops_aqm += c.drops_aqm;
                sum.marks_aqm += c.marks_aqm;
                sum.marks_ce_threshold += c.marks_ce_threshold;
            }
            assert_eq!(sum, link.totals, "{qdisc}");
            assert_eq!(link.sojourn.count(), sum.sent_packets);
        }
        for flow in &records.flows {
            let series = flow.series.iter().filter(|s| counted(s.at));
            let sum: u64 = series.map(|s| s.delivered_bytes).sum();
            let counted = u64::from(flow.pings.is_empty());
            assert_eq!(sum, counted * flow.totals.delivered_bytes, "{}", flow.name);
        }
    }
}

#[test]
fn a_ping_is_counted_from_the_end_of_the_warm_up_too() {
    let config = mixed("pfifo limit 50", 6);
    let records = records(&config);
    let ping = &records.flows[4];
    let late = |p: &&sojourn_apps::PingSample| p.sent > Instant::ZERO + config.measure_from;
    let sent = ping.pings.iter().filter(late).count() as u64;
    assert!(sent < ping.pings.len() as u64);
    assert_eq!(ping.totals.sent_packets, sent);
    let answered = ping.pings.iter().filter(late).filter(|p| p.rtt.is_some());
    let missing = sent - answered.count() as u64;
    assert_eq!(ping.missing_packets, Some(missing));
    // What was sent in the last second may be on its way.
    let end = Instant::ZERO + config.duration;
    let settled = |p: &&sojourn_apps::PingSample| p.rtt.is_none() && p.sent + SECOND < end;
    let unanswered = ping.pings.iter().filter(late).filter(settled).count() as u64;
    let lost = ping.lost_packets.unwrap();
    assert!((unanswered..=missing).contains(&lost), "{lost} lost");
    assert!(unanswered > 0);
    let warm = Instant::ZERO + config.measure_from;
    let replies = ping.pings.iter().filter_map(|p| Some(p.sent + p.rtt?));
    let received = replies.filter(|&at| at > warm).count() as u64;
    assert_eq!(ping.totals.received_packets, received);
}

#[test]
fn received_packets_and_delivered_bytes_count_the_same_datagrams() {
    let mut config = mixed("pfifo limit 20000", 8);
    // A queue of seconds stands when measuring begins: 20 Mbit/s into 10.
    config.flows = vec![flow("cbr", cbr(20, 0.0))];
    let records = records(&config);
    let (link, cbr) = (&records.links[0], &records.flows[0]);
    let totals = cbr.totals;
    assert_eq!(totals.delivered_bytes, totals.received_packets * 1_000);
    // None is lost; but half of what is sent after the warm-up, and all that stood before it, still waits.
    let held = link.series.last().unwrap().backlog_packets;
    let missing = cbr.missing_packets.unwrap();
    let on_wire = missing.abs_diff(held.min(totals.sent_packets));
    assert!(on_wire <= 30, "{missing} missing, {held} waiting");
    assert!(totals.received_packets > totals.sent_packets - missing);
    assert_eq!(cbr.lost_packets, Some(0));
}

#[test]
fn another_flow_changes_nobody_elses_draws() {
    let starts = |records: &Records| -> Vec<Option<Instant>> {
        records.flows.iter().take(6).map(|f| f.started).collect()
    };
    let config = mixed("pfifo limit 50", 9);
    let without = records(&config);
    let mut more = config.clone();
    // Beside the links, so that packets do not meet.
    more.flows.push(FlowConfig {
        forward: vec![Hop::Delay(MS)],
        reverse: vec![Hop::Delay(MS)],
        ..flow("other", cbr(1, 1.0))
    });
    let with = records(&more);
    assert_eq!(starts(&without), starts(&with));
    assert_eq!(without.links, with.links);
    assert_eq!(without.flows[..], with.flows[..6]);
}

/// Megabits that one flow of client 0 and four of client 1 deliver: the first, the others together.
fn client_shares(qdisc: &str, receives: bool) -> (u64, u64) {
    let mut config = mixed(qdisc, 3);
    config.flows = (0..5)
        .map(|n| FlowConfig {
            client: Some(Client {
                number: u8::from(n > 0),
                receives,
            }),
            ..flow(&format!("flow {n}"), cbr(8, 0.5))
        })
        .collect();
    config.duration = Duration::from_secs(12);
    let flows = records(&config).flows;
    let mbit = |flows: &[FlowRecord]| -> u64 {
        let bytes = flows.iter().map(|f| f.totals.delivered_bytes);
        bytes.sum::<u64>() * 8 / 1_000_000
    };
    (mbit(&flows[..1]), mbit(&flows[1..]))
}

#[test]
fn a_queue_that_isolates_hosts_sees_the_clients() {
    let even = |(one, four): (u64, u64)| 10 * one > 9 * four && 9 * one < 10 * four;
    for (qdisc, receives) in [
        ("cake dual-srchost", false),
        ("cake dual-dsthost", true),
        ("cake", false),
        ("cake", true),
    ] {
        let shares = client_shares(qdisc, receives);
        assert!(even(shares), "{qdisc}: {shares:?}");
    }
    // Each flow has a server of its own, and flows know no hosts.
    for (qdisc, receives) in [
        ("cake dual-srchost", true),
        ("cake dual-dsthost", false),
        ("cake flows", false),
    ] {
        let (one, four) = client_shares(qdisc, receives);
        assert!(7 * one < 2 * four, "{qdisc}: {one} and {four}");
    }
}

#[test]
fn an_idle_ping_takes_the_delay_of_its_way() {
    let mut config = mixed("pfifo limit 50", 1);
    config.measure_from = Duration::ZERO;
    config.flows.retain(|f| f.name == "ping");
    config.links[0].delay = MS.times(3);
    // 98 bytes at 10 and at 2 Mbit/s.
    let sending = Duration::from_nanos(78_400 + 392_000);
    let ping = |config: &Config| -> FlowRecord { records(config).flows[0].clone() };
    let through_links = ping(&config);
    assert!(through_links.pings.len() > 150);
    for p in &through_links.pings[..through_links.pings.len() - 2] {
        assert_eq!(p.rtt, Some(MS.times(43) + sending));
    }
    for link in &mut config.links {
        link.shaper = Shaper::Bucket {
            burst: Bytes(1_514),
        };
    }
    let through_buckets = ping(&config);
    for p in &through_buckets.pings[..through_buckets.pings.len() - 2] {
        assert_eq!(p.rtt, Some(MS.times(43)));
    }
    config.flows[0].forward = vec![];
    config.flows[0].reverse = vec![];
    let at_home = ping(&config);
    assert!(at_home.pings.iter().all(|p| p.rtt == Some(Duration::ZERO)));
}

#[test]
fn a_connection_without_time_or_end_is_refused() {
    let mut config = mixed("pfifo limit 50", 2);
    config.flows = vec![flow("tcp", bulk(CcKind::Cubic, None, false))];
    let endless = "flows[0].forward: an endless transfer needs a path with a link or a delay > 0";
    let many = "duration: too long for the rates: \"tcp\" could send more than the 2^32 packets";
    let ways: [(Vec<Hop>, Vec<Hop>, &str); 3] = [
        (vec![], vec![], endless),
        (vec![Hop::Delay(Duration::ZERO)], vec![], endless),
        (vec![Hop::Delay(Duration::from_nanos(1))], vec![], many),
    ];
    for (forward, reverse, expected) in ways {
        config.flows[0].forward = forward;
        config.flows[0].reverse = reverse;
        let refusal = refused(&config);
        assert!(refusal.starts_with(expected), "{refusal}");
    }
    // What ends, ends, though it takes no time.
    config.flows[0].traffic = bulk(CcKind::Cubic, Some(1_000_000), false);
    config.measure_from = Duration::ZERO;
    let records = records(&config);
    assert_eq!(records.flows[0].totals.delivered_bytes, 1_000_000);

    // Ten hours at 10 Gbit/s are 3 * 10^10 segments.
    config.flows = vec![flow("tcp", bulk(CcKind::Cubic, None, false))];
    config.links[0].rate = Rate::mbit(10_000);
    config.duration = Duration::from_secs(36_000);
    assert!(refused(&config).starts_with(many), "{}", refused(&config));
    config.duration = Duration::from_secs(3_600);
    assert!(config.check().is_ok());
}

#[test]
fn names_are_unique_and_times_finite() {
    let mut config = mixed("pfifo limit 50", 2);
    config.flows[1].name = "cubic".to_owned();
    assert_eq!(refused(&config), "flows: duplicate name \"cubic\"");
    config = mixed("pfifo limit 50", 2);
    config.links[1].name = "down".to_owned();
    assert_eq!(refused(&config), "links: duplicate name \"down\"");

    let faults: [fn(&mut Config); 6] = [
        |c| c.duration = Duration::MAX,
        |c| c.links[0].delay = Duration::MAX,
        |c| c.flows[0].start = Duration::MAX,
        |c| c.flows[0].start_jitter = Duration::MAX,
        |c| c.flows[0].forward = vec![Hop::Delay(Duration::MAX)],
        |c| {
            c.flows[4].traffic = Traffic::datagrams(PingConfig {
                pace: PingPace::Every {
                    interval: Duration::MAX,
                    phase: Phase::Fixed(Duration::ZERO),
                },
                payload: None,
            });
        },
    ];
    for fault in faults {
        let mut config = mixed("pfifo limit 50", 2);
        fault(&mut config);
        assert!(refused(&config).contains("at most one year"));
    }
}

#[test]
fn a_flow_that_ends_in_a_cut_interval_has_no_sample_of_it() {
    let mut config = mixed("pfifo limit 50", 2);
    config.flows.retain(|f| f.name == "finite");
    config.measure_from = Duration::ZERO;
    config.sample = Duration::from_secs(4);
    let records = records(&config);
    let flow = &records.flows[0];
    assert!(flow.completed.is_some());
    assert!(
        flow.series
            .iter()
            .all(|s| s.at == Instant::from_millis(4_000))
    );

    config.sample = Duration::from_secs(5);
    config.duration = Duration::from_secs(4);
    assert!(self::records(&config).flows[0].series.is_empty());
}

/// A connection that opens while `cbr` fills one of its links; it has ten segments to send.
fn opening(cbr_on: usize) -> Records {
    let mut cbr = flow("cbr", cbr(4, 0.0));
    cbr.forward[0] = Hop::Link(cbr_on);
    cbr.stop = Some(MS.times(2_000));
    let mut tcp = flow("tcp", bulk(CcKind::Cubic, Some(10 * 1_448), false));
    tcp.start = MS.times(1_500);
    records(&Config {
        seed: 1,
        duration: Duration::from_secs(30),
        measure_from: Duration::ZERO,
        sample: MS.times(100),
        links: vec![
            link("down", 1, "pfifo limit 1"),
            link("up", 1, "pfifo limit 1"),
        ],
        flows: vec![cbr, tcp],
        keep_events: true,
        sample_state: false,
    })
}

#[test]
fn a_lost_syn_or_syn_ack_waits_for_its_timer_and_is_counted() {
    for (cbr_on, syn_retransmits) in [(0, 1..=1), (1, 0..=1)] {
        let records = opening(cbr_on);
        let tcp = &records.flows[1];
        // It met a full queue; the next came a second later, when the queue was idle. The timer
        // wheel may be late by an eighth.
        let waited = tcp.connected.unwrap().since(tcp.started.unwrap());
        assert!(
            MS.times(1_040) < waited && waited < MS.times(1_200),
            "{waited:?}"
        );
        assert!(syn_retransmits.contains(&tcp.totals.syn_retransmits));
        assert_eq!(tcp.initial_losses.handshake, 1);
        // Of the initial window at once, one segment is sent and one waits.
        assert!(tcp.initial_losses.window >= 8);
        let drops = u64::from(tcp.initial_losses.handshake + tcp.initial_losses.window);
        assert_eq!(drops, dropped(&records, 1));
        assert!(tcp.completed.is_some());
        assert_eq!(records.flows[0].initial_losses, InitialLosses::default());
    }
}
