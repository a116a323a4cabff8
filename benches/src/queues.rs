//! S6: what an enqueue and a dequeue cost in each queue of the catalogue.

use sojourn_net::{Bytes, Duration, Ecn, FlowKey, Instant, Packet, Rate, Rng};
use sojourn_qdisc::{
    AnyQdisc, DropReason, LinkFacts, MarkReason, Observer, Qdisc, QdiscSpec, TcpHeader, Transport,
    catalogue,
};

/// Flows of the small measurement, each with a packet that waits while others come and go.
pub const FEW: u32 = 100;
/// Flows of the large one.
pub const MANY: u32 = 1_000;
/// A full packet at 1 Gbit/s, so that laws of time see time pass.
const GAP: Duration = Duration::from_micros(12);

/// The names of the queues there are.
pub fn kinds() -> Vec<&'static str> {
    catalogue().into_iter().map(|info| info.name).collect()
}

/// The queue `kind` as it must be asked for to hold a packet of each of [`MANY`] flows.
pub fn spacious(kind: &str) -> &str {
    match kind {
        "sfq" => "sfq limit 2000 flows 1100 divisor 16384",
        "sfq_codel" => "sfq_codel limit 10000",
        other => other,
    }
}

/// A packet of the size of a cache line.
#[derive(Clone, Copy, Debug)]
struct Line {
    flow: FlowKey,
    ecn: Ecn,
    size: u32,
    _payload: [u64; 4],
}

const _: () = assert!(size_of::<Line>() == 64, "a cache line");

impl Line {
    /// Each flow joins hosts of its own, as on a core link; CAKE shares among hosts first.
    fn of(flow: u32) -> Self {
        Self {
            flow: FlowKey {
                source: 0x0A00_0001 + u64::from(flow),
                destination: 0x0A10_0001 + u64::from(flow),
                ports: (flow << 16) + 443,
                protocol: 6,
            },
            ecn: Ecn::NotEct,
            size: 1_514,
            _payload: [0; 4],
        }
    }
}

impl Packet for Line {
    fn size(&self) -> Bytes {
        Bytes(u64::from(self.size))
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn flow(&self) -> FlowKey {
        self.flow
    }

    fn transport(&self) -> Transport {
        Transport::Tcp(TcpHeader {
            payload: 1_448,
            flags: TcpHeader::ACK,
            ..TcpHeader::default()
        })
    }
}

#[derive(Default)]
struct Dropped(u64);

impl Observer<Line> for Dropped {
    fn on_drop(&mut self, _now: Instant, _pkt: Line, _reason: DropReason) {
        self.0 += 1;
    }

    fn on_mark(&mut self, _now: Instant, _pkt: &Line, _reason: MarkReason) {}
}

/// A queue with its standing packets, and the clock that drives it.
pub struct Treadmill {
    queue: AnyQdisc<Line>,
    now: Instant,
    flows: u32,
    /// Packets that wait.
    standing: usize,
    next: u32,
    dropped: Dropped,
    /// Packets of a growing load that are due.
    credit: f64,
}

impl Treadmill {
    /// The queue that `spec` describes, filled with `packets` of `flows`.
    ///
    /// # Errors
    /// When the catalogue does not know it.
    pub fn new(spec: &str, flows: u32, packets: usize) -> Result<Self, String> {
        let mut treadmill = Self::empty(spec)?;
        treadmill.flows = flows;
        treadmill.standing = packets;
        for _ in 0..packets {
            treadmill.offer();
        }
        Ok(treadmill)
    }

    /// The queue that `spec` describes, with nothing in it.
    ///
    /// # Errors
    /// When the catalogue does not know it.
    pub fn empty(spec: &str) -> Result<Self, String> {
        Ok(Self {
            queue: build(spec)?,
            now: Instant::ZERO,
            flows: 1,
            standing: 0,
            next: 0,
            dropped: Dropped::default(),
            credit: 0.0,
        })
    }

    /// Passes `packets` through.
    pub fn turn(&mut self, packets: u64) {
        for _ in 0..packets {
            self.now += GAP;
            if self.queue.next_timer().is_some_and(|at| at <= self.now) {
                self.queue.on_timer(self.now);
            }
            self.offer();
            self.queue.dequeue(self.now, &mut self.dropped);
            if self.queue.backlog().packets < self.standing {
                self.offer();
            }
        }
    }

    /// Passes a millisecond of a load that doubles in 100 ms up to all of the link and then begins
    /// anew, and leaves what is due at its end to [`Treadmill::tick`].
    pub fn grow(&mut self) {
        const ROUND: u64 = 100;
        let round = self.now.as_nanos() / 1_000_000 % (8 * ROUND);
        let full = 82.0;
        let packets = full * ((round as f64 + 1.0) / ROUND as f64 - 8.0).exp2();
        self.credit += packets;
        let until = self.now + Duration::from_millis(1);
        while self.credit >= 1.0 {
            self.credit -= 1.0;
            self.now += GAP;
            self.offer();
            self.queue.dequeue(self.now, &mut self.dropped);
        }
        self.now = until;
    }

    /// Tells the queue that its timer is due, if it is.
    pub fn tick(&mut self) {
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.on_timer(self.now);
        }
    }

    /// Packets the queue discarded so far.
    pub const fn dropped(&self) -> u64 {
        self.dropped.0
    }

    fn offer(&mut self) {
        let pkt = Line::of(self.next);
        self.next = (self.next + 1) % self.flows;
        self.queue.enqueue(self.now, pkt, &mut self.dropped);
    }
}

fn build(spec: &str) -> Result<AnyQdisc<Line>, String> {
    // ns-2's buffer of 25 kB does not hold the packets that are to stand.
    let spec = match spec {
        "red_ns2" | "nlred" => format!("{spec} limit 1000"),
        other => other.to_owned(),
    };
    let spec = QdiscSpec::parse(&spec).map_err(|e| e.to_string())?;
    let link = LinkFacts {
        rate: Some(Rate::mbit(1_000)),
        ..LinkFacts::default()
    };
    Ok(spec.build(&link, Rng::new(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands(spec: &str, flows: u32) {
        let packets = flows as usize;
        let mut treadmill = Treadmill::new(spec, flows, packets).expect("it is in the catalogue");
        treadmill.turn(100_000);
        let standing = treadmill.queue.backlog().packets;
        assert!(
            (packets - 1..=packets + 1).contains(&standing),
            "{spec}: {standing} of {packets}"
        );
    }

    #[test]
    fn the_packets_that_stand_keep_standing() {
        for kind in kinds() {
            stands(kind, FEW);
        }
    }

    #[test]
    fn flow_queues_hold_a_packet_of_each_of_many_flows() {
        for kind in ["sfq", "fq", "fq_codel", "cocoa"] {
            stands(spacious(kind), MANY);
        }
    }
}
