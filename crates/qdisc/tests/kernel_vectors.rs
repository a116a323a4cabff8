//! The queues of profile `linux` do what the kernel's did with the same arrivals, packet for
//! packet: `tests/vectors` holds what was recorded and says how.
//!
//! Where the kernel draws random numbers, distributions are compared instead.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{AnyQdisc, Bytes, Ecn, Instant, LinkFacts, Qdisc, QdiscSpec, Rate, Rng};

/// What happened to the kernel's queue.
#[derive(Clone, Copy)]
enum Event {
    Arrival(TestPacket),
    /// The packet that the queue gave when it was asked.
    Departure(u64),
}

struct Vector {
    qdisc: String,
    link: LinkFacts,
    events: Vec<(Instant, Event)>,
    drops: BTreeSet<u64>,
    marks: BTreeSet<u64>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors")
}

fn ecn(tos: u64) -> Ecn {
    match tos & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

impl Vector {
    fn read(name: &str) -> Self {
        let path = folder().join(format!("{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["schema"], "sojourn-qdisc-vector/1", "{name}");
        let numbers = |list: &Value| -> Vec<u64> {
            let list = list.as_array().unwrap().iter();
            list.map(|number| number.as_u64().unwrap()).collect()
        };
        let mut arrived = 0;
        let mut event = |row: &Value| {
            let event = match numbers(row)[..] {
                [_, flow, size, tos] => {
                    arrived += 1;
                    Event::Arrival(TestPacket {
                        id: arrived - 1,
                        flow: u32::try_from(flow).unwrap(),
                        size,
                        ecn: ecn(tos),
                        ..TestPacket::mtu(0)
                    })
                }
                [_, id] => Event::Departure(id),
                _ => panic!("{name}: {row}"),
            };
            (Instant::from_nanos(row[0].as_u64().unwrap()), event)
        };
        let rate = json["rate_bps"].as_u64();
        Self {
            qdisc: json["qdisc"].as_str().unwrap().into(),
            link: LinkFacts {
                rate: rate.map(|bits| Rate::from_bits_per_sec(bits).unwrap()),
                mtu: Bytes(json["mtu"].as_u64().unwrap()),
            },
            events: json["events"]
                .as_array()
                .unwrap()
                .iter()
                .map(&mut event)
                .collect(),
            drops: numbers(&json["drops"]).into_iter().collect(),
            marks: numbers(&json["marks"]).into_iter().collect(),
        }
    }
}

/// Hands our queue the kernel's arrivals, asks it when the kernel asked its own, and compares.
fn replay(name: &str) {
    let vector = Vector::read(name);
    let spec = QdiscSpec::parse(&format!("{} profile linux", vector.qdisc)).unwrap();
    let mut queue: AnyQdisc<TestPacket> = spec.build(&vector.link, Rng::new(1));
    let mut signals = Recorder::default();
    for (nth, &(at, event)) in vector.events.iter().enumerate() {
        tell(&mut queue, at);
        match event {
            Event::Arrival(packet) => queue.enqueue(at, packet, &mut signals),
            Event::Departure(kernel) => {
                let ours = queue.dequeue(at, &mut signals).map(|pkt| pkt.id);
                assert_eq!(ours, Some(kernel), "{name}: event {nth} at {at:?}");
            }
        }
    }
    assert_eq!(
        queue.backlog().packets,
        0,
        "{name}: what the kernel dropped"
    );
    let drops: BTreeSet<_> = signals.drops.iter().map(|(_, pkt, _)| pkt.id).collect();
    assert_eq!(drops, vector.drops, "{name}: drops");
    let marks: BTreeSet<_> = signals.marks.iter().map(|(_, pkt, _)| pkt.id).collect();
    assert_eq!(marks, vector.marks, "{name}: marks");
    println!(
        "{name}: {} events, {} drops, {} marks, as the kernel's",
        vector.events.len(),
        drops.len(),
        marks.len(),
    );
}

/// Lets the timers run that are due by `now`.
fn tell(queue: &mut AnyQdisc<TestPacket>, now: Instant) {
    while let Some(due) = queue.next_timer().filter(|&due| due <= now) {
        queue.on_timer(due);
    }
}

#[test]
fn fifos_drop_what_the_kernel_drops() {
    replay("pfifo");
    replay("bfifo");
    replay("pfifo_head_drop");
}

#[test]
fn codel_signals_for_the_same_packets_as_the_kernel() {
    replay("codel");
    replay("codel_ecn");
    replay("codel_limit");
    replay("codel_slow");
    replay("codel_ce_threshold");
}

#[test]
fn fq_codel_serves_flows_in_the_same_order_as_the_kernel() {
    replay("fq_codel");
    replay("fq_codel_ecn");
    replay("fq_codel_limit");
}

#[test]
fn sfq_serves_flows_in_the_same_order_as_the_kernel() {
    replay("sfq");
    replay("sfq_depth");
}

#[test]
fn fq_serves_flows_in_the_same_order_as_the_kernel() {
    replay("fq");
    replay("fq_limit");
}
