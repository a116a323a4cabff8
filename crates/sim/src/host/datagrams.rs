//! Datagrams as packets of the simulator.

use std::num::NonZeroU16;

use sojourn_apps::DatagramConfig;
use sojourn_net::{Bytes, Instant, Rng};
use sojourn_records::Datagrams as Counted;

use crate::packet::{Kind, Owner, Packet};

/// A source of datagrams, its receiver, and what is recorded of them.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Payload of its packets; `None`: ICMP.
    payload: Option<NonZeroU16>,
    pub(crate) counted: Counted,
}

impl Datagrams {
    pub(crate) fn new(now: Instant, config: &dyn DatagramConfig, rng: &Rng) -> Self {
        let counted = Counted::new(now, config, rng);
        let bytes = |payload: Bytes| u16::try_from(payload.0).unwrap_or(u16::MAX);
        let payload = counted.kind().payload().map(bytes);
        Self {
            payload: payload.and_then(NonZeroU16::new),
            counted,
        }
    }

    /// The packet to send now, and when the next one is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let (number, due) = self.counted.send(now);
        let kind = if self.counted.kind().is_echo() {
            Kind::Ping
        } else {
            Kind::Udp
        };
        let pkt = Packet::of_probe(owner, kind, now, number, self.payload);
        (pkt, due)
    }

    /// A packet arrived; returns whether it asks for a reply.
    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) -> bool {
        if pkt.kind() == Kind::Ping {
            return true;
        }
        let probe = pkt.probe();
        self.counted.on_arrival(probe.number, now.since(probe.sent));
        false
    }
}
