mod filter;
mod shaping;
mod sharing;

use super::*;
use crate::contract::Number;
use crate::registry::QdiscSpec;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Duration;

const MTU: Bytes = Bytes(1_514);

/// The queue that `text` describes after `cake `.
fn cake(text: &str) -> Cake<TestPacket> {
    match QdiscSpec::parse(&format!("cake {text}")) {
        Ok(QdiscSpec::Cake(params)) => Cake::new(&params, MTU, Rng::new(1)),
        other => panic!("{text}: {other:?}"),
    }
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn of_flow(flow: u32, id: u64) -> TestPacket {
    TestPacket {
        flow,
        ..TestPacket::mtu(id)
    }
}

fn of_class(number: u8, id: u64) -> TestPacket {
    TestPacket {
        dscp: Dscp::new(number).unwrap_or_default(),
        ..TestPacket::mtu(id)
    }
}

/// A number of a tin, in the order in which `tc` shows them.
fn number(queue: &Cake<TestPacket>, tin: usize, name: &str) -> u64 {
    let all = queue.statistics();
    let found = all
        .iter()
        .find(|s| s.part == Some(("tins", tin)) && s.name == name);
    match found.map(|s| s.value) {
        Some(Number::Count(n)) => n,
        other => panic!("{name}: {other:?}"),
    }
}

/// Takes packets at `every` as long as there are any, or for `most`.
fn drain(
    queue: &mut Cake<TestPacket>,
    from: Instant,
    every: Duration,
    most: usize,
) -> Vec<TestPacket> {
    let mut seen = Recorder::default();
    let mut now = from;
    let mut sent = Vec::new();
    while sent.len() < most
        && let Some(pkt) = queue.dequeue(now, &mut seen)
    {
        sent.push(pkt);
        now += every;
    }
    sent
}
