//! Cost per packet of a path, compared with its queue alone: `cargo bench -p sojourn-path`.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::hint::black_box;

use sojourn_net::Packet;
use sojourn_path::{
    Bottleneck, Bytes, DropReason, Duration, Ecn, FlowKey, Instant, MarkReason, Path, QdiscSpec,
    Rate, udp_flow,
};
use sojourn_qdisc::{LinkFacts, Observer, Qdisc};

/// Packets per measurement.
const PACKETS: u64 = 2_000_000;
/// Packets that wait.
const BACKLOG: u64 = 100;
/// Measurements; the fastest counts.
const ROUNDS: u32 = 5;
/// A path must not cost more than this above its queue, in ns per packet.
const MOST: f64 = 60.0;
const RATE: Rate = Rate::mbit(1_000);
const PAYLOAD: &[u8] = &[0; 1_208];
/// Transmission time of a frame of 1,250 B.
const GAP: Duration = Duration::from_micros(10);

/// A packet of 64 bytes, as in the simulator.
#[derive(Clone, Copy)]
struct Bare(
    FlowKey,
    Ecn,
    #[expect(dead_code, reason = "fills the packet")] [u64; 4],
);

const _: () = assert!(size_of::<Bare>() == 64, "the size of a simulated packet");

impl Packet for Bare {
    fn size(&self) -> Bytes {
        Bytes(1_250)
    }

    fn ecn(&self) -> Ecn {
        self.1
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.1 = ecn;
    }

    fn flow(&self) -> FlowKey {
        self.0
    }
}

#[derive(Default)]
struct Signals(u64);

impl Observer<Bare> for Signals {
    fn on_drop(&mut self, _now: Instant, _pkt: Bare, _reason: DropReason) {
        self.0 += 1;
    }

    fn on_mark(&mut self, _now: Instant, _pkt: &Bare, _reason: MarkReason) {
        self.0 += 1;
    }
}

/// The packets: eight flows, in turn.
fn flow(n: u64) -> FlowKey {
    udp_flow(u16::try_from(n % 8).unwrap())
}

fn queue_alone(qdisc: &str) -> u64 {
    let facts = LinkFacts {
        rate: Some(RATE),
        ..LinkFacts::default()
    };
    let spec = QdiscSpec::parse(qdisc).unwrap();
    let mut queue = spec.build(&facts, sojourn_net::Rng::new(1));
    let mut signals = Signals::default();
    let (mut now, mut sent) = (Instant::ZERO, 0);
    for n in 0..PACKETS {
        queue.enqueue(now, Bare(flow(n), Ecn::Ect0, [n; 4]), &mut signals);
        if n >= BACKLOG {
            while queue.next_timer().is_some_and(|due| due <= now) {
                queue.on_timer(now);
            }
            sent += u64::from(black_box(queue.dequeue(now, &mut signals)).is_some());
            now += GAP;
        }
    }
    sent + signals.0
}

fn path(qdisc: &str) -> u64 {
    let bottleneck = Bottleneck::new(RATE, qdisc).unwrap();
    let bottleneck = bottleneck.delay(Duration::from_millis(1));
    let mut path = Path::builder().forward(bottleneck).build().unwrap();
    let (mut now, mut arrived) = (Instant::ZERO, 0);
    for n in 0..PACKETS {
        path.push(now, PAYLOAD, Ecn::Ect0, flow(n));
        if n >= BACKLOG {
            now += GAP;
            while let Some(delivery) = path.poll(now) {
                black_box(delivery);
                arrived += 1;
            }
        }
    }
    arrived
}

/// Time on a processor since the start of this thread, in ns, of Linux.
fn busy() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// The fastest of some rounds, in ns per packet.
#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn cost(run: impl Fn() -> u64) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let began = busy();
        black_box(run());
        busy() - began
    });
    rounds.min().unwrap() as f64 / PACKETS as f64
}

fn main() {
    println!("queue      alone    path    more (ns per packet; at most {MOST})");
    let mut failed = false;
    for qdisc in ["pfifo", "fq_codel", "dualpi2", "pie"] {
        let (alone, whole) = (cost(|| queue_alone(qdisc)), cost(|| path(qdisc)));
        let more = whole - alone;
        failed |= more > MOST;
        println!("{qdisc:<8} {alone:>7.1} {whole:>7.1} {more:>7.1}");
    }
    if failed {
        std::process::exit(1);
    }
}
