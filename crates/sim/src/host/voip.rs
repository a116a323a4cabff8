//! A voice call and its record.

use sojourn_apps::{Call, CallRecord, JitterBuffer};
use sojourn_net::Instant;

use super::blank;
use crate::packet::{Kind, Owner, Packet};
use sojourn_records::Histogram;
use sojourn_records::{FlowCounters, FlowKind, FlowRecord, FlowSample};

/// A call, and what is recorded of it.
#[derive(Debug)]
pub(crate) struct Voip {
    started: Instant,
    call: Call,
    received: u64,
    sampled: u64,
    before: FlowCounters,
    one_way_delay: Histogram,
    series: Vec<FlowSample>,
}

impl Voip {
    pub(crate) fn new(now: Instant, buffer: JitterBuffer) -> Self {
        Self {
            started: now,
            call: Call::new(now, buffer),
            received: 0,
            sampled: 0,
            before: FlowCounters::default(),
            one_way_delay: Histogram::default(),
            series: Vec::new(),
        }
    }

    /// The next packet, and when the one after it is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let (number, due) = self.call.send(now);
        let pkt = Packet::of_probe(owner, Kind::Udp, now, number, Call::PAYLOAD);
        (pkt, due)
    }

    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) {
        let probe = pkt.probe();
        let delay = now.since(probe.sent);
        if self.call.on_arrival(probe.number, delay) {
            self.received += 1;
            self.one_way_delay.record(delay.as_nanos());
        }
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        let received = self.received - self.sampled;
        self.sampled = self.received;
        self.series.push(FlowSample {
            at,
            delivered_bytes: received * u64::from(Call::PAYLOAD),
            cwnd: 0,
            ssthresh: None,
            srtt: None,
            in_flight: 0,
        });
    }

    pub(crate) fn begin_measuring(&mut self) {
        self.call.begin_measuring();
        self.before = self.counters();
        self.one_way_delay = Histogram::default();
    }

    fn counters(&self) -> FlowCounters {
        FlowCounters {
            delivered_bytes: self.received * u64::from(Call::PAYLOAD),
            sent_packets: self.call.sent() as u64,
            received_packets: self.received,
            ..FlowCounters::default()
        }
    }

    /// What the receiver got of the call by `end`.
    pub(crate) fn call(&self, end: Instant) -> CallRecord {
        self.call.record(end)
    }

    pub(crate) fn record(self) -> FlowRecord {
        let totals = FlowCounters {
            received_packets: self.call.measured_arrivals() as u64,
            ..self.counters().since(&self.before)
        };
        FlowRecord {
            started: Some(self.started),
            series: self.series,
            totals,
            one_way_delay: Some(Box::new(self.one_way_delay)),
            ..blank(FlowKind::App)
        }
    }
}
