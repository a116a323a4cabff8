//! Captures compared with the records of the same run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../capture/tests/reading/mod.rs"]
mod reading;

use std::collections::{BTreeMap, BTreeSet};

use reading::{Block, blocks};
use sojourn_net::{Duration, Rate};
use sojourn_qdisc::QdiscSpec;
use sojourn_records::{CaptureOutput, LinkRecord, Records};
use sojourn_scenario::plan::Hop;
use sojourn_scenario::{Config, Scenario};
use sojourn_sim::{run, run_captured};

const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const PACKET_ID: u16 = 5;

/// A packet at a point of a link.
#[derive(Clone, Debug)]
struct Seen {
    point: String,
    time: u64,
    id: u64,
    comment: String,
    length: u32,
    data: Vec<u8>,
}

/// All traffic over two links whose queues are `up` and `down`, from the start on.
fn config(up: &str, down: &str, line: &str, traffic: &str) -> Config {
    let text = format!(
        "duration = \"8s\"\nwarmup = \"1s\"\nrtt = \"30ms\"\n[links.up]\nrate = \"6mbit\"\nqdisc = \"{up}\"\n{line}\n\
         [links.down]\nrate = \"12mbit\"\nqdisc = \"{down}\"\n{line}\n{traffic}"
    );
    let mut config = Scenario::from_toml(&text).unwrap().plan(0, 0).config;
    config.measure_from = Duration::ZERO;
    config
}

const MIXED: &str = r#"
[[traffic]]
type = "tcp"
direction = "up"
count = 2
ecn = true
[[traffic]]
type = "tcp"
direction = "down"
count = 2
[[traffic]]
type = "tcp"
direction = "down"
cc = "prague"
[[traffic]]
type = "quic"
direction = "down"
bytes = "200kb"
[[traffic]]
type = "web"
direction = "down"
page = "small"
count = 3
think = "100ms"
[[traffic]]
type = "udp"
direction = "up"
rate = "500kbit"
[[traffic]]
type = "voip"
direction = "up"
[[traffic]]
type = "ping"
direction = "up"
interval = "10ms"
"#;

fn captured(config: &Config) -> (Records, Vec<Block>) {
    let mut bytes = Vec::new();
    let output = CaptureOutput {
        out: &mut bytes,
        comment: "run 7",
        with_state: false,
    };
    let records = run_captured(config, Some(output), &mut |_| true).unwrap();
    (records.unwrap(), blocks(&bytes))
}

fn packets(blocks: &[Block]) -> Vec<Seen> {
    let interfaces = blocks.iter().filter(|block| block.kind == INTERFACE);
    let names: Vec<_> = interfaces.map(|block| block.text(NAME).unwrap()).collect();
    let packets = blocks.iter().filter(|block| block.kind == PACKET);
    packets
        .map(|block| Seen {
            point: names[block.field(0) as usize].to_owned(),
            time: block.time(),
            id: block.number(PACKET_ID).unwrap(),
            comment: block.text(COMMENT).unwrap_or_default().to_owned(),
            length: block.field(16),
            data: block.data().to_vec(),
        })
        .collect()
}

/// The packets at a point, by number.
fn at<'a>(seen: &'a [Seen], link: &str, point: &str) -> BTreeMap<u64, &'a Seen> {
    let name = format!("{link}.{point}");
    let there = seen.iter().filter(|packet| packet.point == name);
    let all: Vec<_> = there.collect();
    let by_id: BTreeMap<_, _> = all.iter().map(|packet| (packet.id, *packet)).collect();
    assert_eq!(by_id.len(), all.len(), "{name}: a packet is seen twice");
    by_id
}

fn count(seen: &BTreeMap<u64, &Seen>, comment: &str) -> u64 {
    let all = seen.values();
    all.filter(|packet| packet.comment.starts_with(comment))
        .count() as u64
}

/// Checks the packets at a link against its record; returns how many were marked.
fn check_link(seen: &[Seen], link: &LinkRecord) -> u64 {
    let name = &link.name;
    let [enq, deq, drop] = ["enq", "deq", "drop"].map(|point| at(seen, name, point));
    let totals = &link.totals;
    assert!(totals.sent_packets > 1_000, "{name}: {totals:?}");
    assert_eq!(deq.len() as u64, totals.sent_packets, "{name}");
    let bytes: u64 = deq.values().map(|packet| u64::from(packet.length)).sum();
    assert_eq!(bytes + 14 * totals.sent_packets, totals.sent_bytes);
    assert_eq!(
        (count(&drop, "dropped: "), count(&drop, "lost on the wire"),),
        (
            totals.drops_overlimit + totals.drops_aqm,
            totals.lost_packets,
        ),
        "{name}"
    );
    assert_eq!(
        drop.len() as u64,
        count(&drop, "dropped: ") + count(&drop, "lost on")
    );
    let by_limit = drop.values().filter(|p| p.comment.ends_with(" overlimit"));
    assert_eq!(by_limit.count() as u64, totals.drops_overlimit);
    let dropped = drop.values().filter(|p| p.comment.starts_with("dropped"));
    let gone: BTreeSet<u64> = dropped
        .map(|packet| packet.id)
        .chain(deq.keys().copied())
        .collect();
    let entered: BTreeSet<u64> = enq.keys().copied().collect();
    assert!(gone.is_subset(&entered), "{name}");
    let waiting = entered.len() - gone.len();
    let last = link.series.last().unwrap();
    assert_eq!(waiting as u64, last.backlog_packets, "{name}");
    // Those that wait at the end may have been marked on arrival.
    let marks = totals.marks_aqm + totals.marks_ce_threshold;
    let marked = count(&deq, "marked CE: ");
    assert!(
        (marks.saturating_sub(last.backlog_packets)..=marks).contains(&marked),
        "{name}"
    );
    for (id, left) in &deq {
        let before = enq[id];
        assert!(before.time <= left.time, "{name}: {id}");
        // All but the IP header is the same.
        assert_eq!(before.data[20..], left.data[20..], "{name}: {id}");
        let is_marked = left.comment.starts_with("marked CE");
        let ecn = |packet: &Seen| packet.data[1] & 3;
        assert_eq!(is_marked, ecn(before) != ecn(left), "{name}: {id}");
        assert!(!is_marked || ecn(left) == 3, "{name}: {id}");
    }
    count(&deq, "marked")
}

#[test]
fn packets_are_those_of_the_records_whatever_the_queues() {
    let queues = [
        ("pfifo limit 20", "fq_codel"),
        ("codel", "cake bandwidth 10mbit"),
        ("dualpi2", "pie ecn"),
        ("red", "sfq"),
        ("fq", "pfifo_head_drop limit 30"),
    ];
    let mut marked = 0;
    for (up, down) in queues {
        let config = config(up, down, "", MIXED);
        let (records, blocks) = captured(&config);
        let plain = run(&config, &mut |_| true).unwrap().unwrap();
        assert_eq!(format!("{plain:?}"), format!("{records:?}"), "{up}, {down}");
        let seen = packets(&blocks);
        let times = seen.windows(2);
        assert!(times.into_iter().all(|pair| pair[0].time <= pair[1].time));
        for link in &records.links {
            marked += check_link(&seen, link);
        }
        let ids: BTreeSet<_> = seen.iter().map(|packet| packet.id).collect();
        assert!(ids.len() > 5_000);
        let counted: Vec<_> = blocks.iter().filter(|b| b.kind == STATISTICS).collect();
        assert_eq!(counted.len(), 3 * records.links.len());
    }
    assert!(marked > 100, "{marked}");
}

/// Without a capture, a burst enters the queue of a busy link in one loop, and a packet enters the queue of the next
/// link before the previous link dequeues again. With a capture, each packet is offered separately.
#[test]
fn packets_pass_several_links_as_in_a_run_without_a_capture() {
    let queues = [
        ("codel", "codel"),
        ("codel", "fq_codel"),
        ("codel", "pie"),
        ("codel", "cake"),
        ("pie", "dualpi2"),
        ("dualpi2", "cake bandwidth 3mbit"),
        ("cake bandwidth 5mbit", "fq maxrate 2mbit limit 50"),
        (
            "red adaptive leaf cake bandwidth 5mbit",
            "prio leaf pie / cake bandwidth 3mbit",
        ),
        // Both signal, the first at dequeue and the second at enqueue, often at the same instant.
        (
            "codel target 100us interval 1ms ecn profile rfc",
            "pfifo limit 3",
        ),
    ];
    for (first, queue) in queues {
        for keep_events in [false, true] {
            let mut config = config("pfifo limit 100", first, "", MIXED);
            config.keep_events = keep_events;
            for n in [0, 1] {
                let mut slower = config.links[n].clone();
                slower.name += " behind";
                slower.rate = Rate::from_bits_per_sec(slower.rate.bits_per_sec() * 3 / 4).unwrap();
                slower.qdisc = QdiscSpec::parse(queue).unwrap();
                config.links.push(slower);
            }
            for flow in &mut config.flows {
                for way in [&mut flow.forward, &mut flow.reverse] {
                    let hops = way.iter().flat_map(|hop| match hop {
                        Hop::Link(n) => vec![*hop, Hop::Link(n + 2)],
                        Hop::Delay(_) => vec![*hop],
                    });
                    *way = hops.collect();
                }
            }
            let records = same_with_and_without_capture(&config);
            for link in &records.links[2..] {
                assert!(link.totals.sent_packets > 1_000, "{queue}: {}", link.name);
            }
            assert!(drops(&records) > 20, "{queue}");
            if keep_events && queue == "pfifo limit 3" {
                let pairs = records.events.windows(2);
                let both =
                    pairs.filter(|pair| pair[0].at == pair[1].at && pair[0].link != pair[1].link);
                assert!(both.count() > 0, "no instant has signals of two links");
            }
        }
    }
}

#[test]
fn packets_pass_the_same_link_twice_as_in_a_run_without_a_capture() {
    for qdisc in ["pfifo limit 20", "dualpi2 limit 20", "cake bandwidth 5mbit"] {
        let mut config = config(qdisc, qdisc, "", MIXED);
        for flow in &mut config.flows {
            for way in [&mut flow.forward, &mut flow.reverse] {
                let hops = way.iter().flat_map(|hop| match hop {
                    Hop::Link(_) => vec![*hop; 2],
                    Hop::Delay(_) => vec![*hop],
                });
                *way = hops.collect();
            }
        }
        assert!(
            drops(&same_with_and_without_capture(&config)) > 20,
            "{qdisc}"
        );
    }
}

fn same_with_and_without_capture(config: &Config) -> Records {
    let (records, _) = captured(config);
    let plain = run(config, &mut |_| true).unwrap().unwrap();
    assert_eq!(format!("{plain:?}"), format!("{records:?}"));
    records
}

fn drops(records: &Records) -> u64 {
    let totals = records.links.iter().map(|link| &link.totals);
    totals
        .map(|totals| totals.drops_overlimit + totals.drops_aqm)
        .sum()
}

#[test]
fn losses_and_copies_on_the_wire_keep_their_numbers() {
    let line = "loss = \"2%\"\nduplicate = \"3%\"\njitter = { spread = \"5ms\", order = \"free\" }";
    let config = config("codel", "fq_codel", line, MIXED);
    let (records, blocks) = captured(&config);
    let seen = packets(&blocks);
    let mut lost = 0;
    for link in &records.links {
        check_link(&seen, link);
        assert!(link.totals.duplicated_packets > 20, "{:?}", link.totals);
        lost += link.totals.lost_packets;
    }
    assert!(lost > 40, "{lost}");
}

#[test]
fn a_wireless_link_is_captured_between_its_queue_and_its_driver() {
    let line = "medium = { type = \"wifi\", name = \"home\" }";
    let config = config("fq_codel", "codel", line, MIXED);
    let (records, blocks) = captured(&config);
    let seen = packets(&blocks);
    for link in &records.links {
        check_link(&seen, link);
    }
}

#[test]
fn a_run_that_is_ended_leaves_a_whole_capture() {
    let config = config("codel", "fq_codel", "", MIXED);
    let mut bytes = Vec::new();
    let output = CaptureOutput {
        out: &mut bytes,
        comment: "ended",
        with_state: false,
    };
    let half = sojourn_net::Instant::from_millis(2_000);
    let records = run_captured(&config, Some(output), &mut |at| at < half).unwrap();
    assert!(records.is_none());
    let blocks = blocks(&bytes);
    assert_eq!(blocks.last().unwrap().kind, STATISTICS);
    let seen = packets(&blocks);
    assert_eq!(seen.last().unwrap().time / 1_000_000_000, 1);
}

/// Five-tuple of a packet of TCP.
fn tuple(packet: &Seen) -> Option<Vec<u8>> {
    (packet.data[9] == 6).then(|| packet.data[12..24].to_vec())
}

#[test]
fn each_connection_has_addresses_of_its_own() {
    let traffic =
        "[[traffic]]\ntype = \"sessions\"\ndirection = \"down\"\nevery = \"20ms\"\nbytes = \"5kb\"";
    let config = config("pfifo", "pfifo", "", traffic);
    let (records, blocks) = captured(&config);
    let seen = packets(&blocks);
    // The SYN of the client and the answer of the server, once per connection.
    let left = ["up.deq", "down.deq"];
    let is_syn = |packet: &&Seen| packet.data[33] & 2 != 0 && left.contains(&&*packet.point);
    let syns: Vec<_> = seen.iter().filter(is_syn).filter_map(tuple).collect();
    let distinct: BTreeSet<_> = syns.iter().cloned().collect();
    assert_eq!(syns.len(), distinct.len(), "no connection is reused");
    let connections: u64 = records.apps.iter().map(|app| app.connections).sum();
    assert!(connections > 300, "{connections}");
    assert!(
        distinct
            .len()
            .abs_diff(2 * usize::try_from(connections).unwrap())
            <= 2
    );
}

#[test]
fn both_copies_of_a_packet_have_its_number_at_the_next_link() {
    let text = "duration = \"8s\"\nwarmup = \"1s\"\nrtt = \"30ms\"\n\
                [links.first]\nrate = \"10mbit\"\nqdisc = \"pfifo\"\nduplicate = \"10%\"\n\
                [links.second]\nrate = \"8mbit\"\nqdisc = \"codel\"\n\
                [[traffic]]\ntype = \"tcp\"\npath = [\"first\", \"second\"]\n";
    let mut config = Scenario::from_toml(text).unwrap().plan(0, 0).config;
    config.measure_from = Duration::ZERO;
    let (records, blocks) = captured(&config);
    let seen = packets(&blocks);
    let ids = |point: &str| {
        let there = seen.iter().filter(|packet| packet.point == point);
        there.map(|packet| packet.id).collect::<Vec<_>>()
    };
    let [left, entered] = [ids("first.deq"), ids("second.enq")];
    let distinct: BTreeSet<_> = entered.iter().collect();
    let copies = records.links[0].totals.duplicated_packets;
    assert!(copies > 300, "{copies}");
    // The last ones are on the wire.
    assert!((entered.len() - distinct.len()).abs_diff(usize::try_from(copies).unwrap()) < 3);
    assert!(distinct.iter().all(|id| left.contains(id)));
    let gone = ids("second.deq").len() + ids("second.drop").len();
    let waiting = records.links[1].series.last().unwrap().backlog_packets;
    assert_eq!(entered.len() - gone, usize::try_from(waiting).unwrap());
}
