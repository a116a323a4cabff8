//! The queues of Sojourn, behind the interface of the reader.

use sojourn_qdisc::testing::{Driven, TestPacket};
use sojourn_qdisc::{Bytes, Dscp, Ecn, Instant, LinkFacts, ParameterError, QdiscSpec, Rate, Rng};
use sojourn_vectors::{Packet, Queue};

/// A queue of Sojourn.
pub(crate) struct Ours {
    queue: Driven,
    /// What a wrong queue sends before anything else.
    ahead: Option<TestPacket>,
    /// Whether it sends the packets that it should drop.
    is_wrong: bool,
}

impl Ours {
    /// The queue that a vector names, on a link of that rate (0: it has its own shaper) and MTU.
    pub(crate) fn new(qdisc: &str, rate: u64, mtu: u64) -> Result<Self, ParameterError> {
        let link = LinkFacts {
            rate: Rate::from_bits_per_sec(rate),
            mtu: Bytes(mtu),
            ..LinkFacts::default()
        };
        let spec = QdiscSpec::parse(&format!("{qdisc} profile linux"))?;
        Ok(Self {
            queue: Driven::new(&spec, &link, Rng::new(1)),
            ahead: None,
            is_wrong: false,
        })
    }

    /// The same with a deliberate error: it sends the packet that it should drop when it is dequeued.
    pub(crate) fn wrong(self) -> Self {
        Self {
            is_wrong: true,
            ..self
        }
    }
}

impl Queue for Ours {
    fn enqueue(&mut self, now: u64, [number, flow, size, tos]: Packet) {
        let packet = TestPacket {
            flow: u32::try_from(flow).unwrap_or(u32::MAX),
            size,
            ecn: Ecn::from_bits(u8::try_from(tos & 3).unwrap_or(0)),
            dscp: (u8::try_from(tos >> 2).ok())
                .and_then(Dscp::new)
                .unwrap_or_default(),
            ..TestPacket::mtu(number)
        };
        self.queue.enqueue(Instant::from_nanos(now), packet);
    }

    fn dequeue(&mut self, now: u64) -> Option<Packet> {
        let dropped = self.queue.signals.drops.len();
        let packet = (self.ahead.take()).or_else(|| self.queue.dequeue(Instant::from_nanos(now)));
        let drop = self
            .queue
            .signals
            .drops
            .get(dropped)
            .filter(|_| self.is_wrong);
        let packet = match drop {
            Some(&(_, wrong, _)) => {
                self.ahead = packet;
                wrong
            }
            None => packet?,
        };
        let tos = u64::from(packet.dscp.number()) << 2 | u64::from(packet.ecn.bits());
        Some([packet.id, packet.flow.into(), packet.size, tos])
    }
}
