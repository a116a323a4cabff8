//! What an enqueue and a dequeue cost in a queue of Sojourn, and in the same queue as a plug-in: `make bench-plugins`.
//!
//! It takes the folder of the libraries of the other examples and prints a row per queue. Exit code 1 if a plug-in
//! costs over [`MOST_NS`] more. With a queue, or a plug-in after a `+`, and a number of packets, which callgrind may
//! count, it measures nothing.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark reads a clock"
)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant as Clock;

use sojourn_plugin::host::Plugin;
use sojourn_plugin::{
    AnyQdisc, Bytes, DropReason, Duration, Ecn, FlowKey, Instant, LinkFacts, MarkReason, Observer,
    Packet, Qdisc, QdiscSpec, QueueClass as _, Rate, Rng, register,
};

/// The most that an enqueue and a dequeue may cost more than built in.
const MOST_NS: f64 = 10.0;
/// The best of these many measurements counts.
const TRIALS: u32 = 25;
const PACKETS: u32 = 1_000_000;
/// Packets that wait, each of a flow of its own.
const STANDING: u32 = 100;
/// A full packet at 1 Gbit/s, so that laws of time see time pass.
const GAP: Duration = Duration::from_micros(12);

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [folder] => compare(Path::new(folder)),
        [folder, queue, packets] => turn(Path::new(folder), queue, packets).map(|()| true),
        _ => Err("cost FOLDER [QUEUE PACKETS]".to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the costs; whether all plug-ins are cheap enough.
fn compare(folder: &Path) -> Result<bool, String> {
    let start = Clock::now();
    println!("| queue | built in | plug-in | more |");
    println!("|---|---:|---:|---:|");
    let mut is_cheap = true;
    for queue in ["pfifo", "codel"] {
        let plugin = load(folder, queue)?;
        let mut belts = [Belt::new(queue)?, Belt::new(&plugin)?];
        let mut best = [f64::MAX; 2];
        // In turns, so that both meet the same load of the machine.
        for _ in 0..TRIALS {
            for (belt, best) in belts.iter_mut().zip(&mut best) {
                let begun = seconds(&start);
                belt.turn(PACKETS);
                *best = best.min((seconds(&start) - begun) * 1e9 / f64::from(PACKETS));
            }
        }
        let [built_in, outside] = best;
        let more = outside - built_in;
        println!("| {queue} | {built_in:.1} ns | {outside:.1} ns | {more:.1} ns |");
        is_cheap &= more <= MOST_NS;
    }
    Ok(is_cheap)
}

/// CPU time of this process, or the time since `start` where the system does not tell.
fn seconds(start: &Clock) -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn turn(folder: &Path, queue: &str, packets: &str) -> Result<(), String> {
    let packets = packets.parse();
    let packets = packets.map_err(|_| "expected a number of packets")?;
    let spec = match queue.strip_prefix('+') {
        Some(plugin) => load(folder, plugin)?,
        None => queue.to_owned(),
    };
    Belt::new(&spec)?.turn(packets);
    Ok(())
}

/// Loads the plug-in of a queue and returns its name.
fn load(folder: &Path, queue: &str) -> Result<String, String> {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    let file = folder.join(format!("{DLL_PREFIX}{queue}{DLL_SUFFIX}"));
    let plugin = Plugin::load(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let name = plugin.name().to_owned();
    register(Arc::new(plugin)).map_err(|error| error.to_string())?;
    Ok(name)
}

/// A packet of the size of a cache line.
#[derive(Clone, Copy, Debug)]
struct Line {
    flow: FlowKey,
    ecn: Ecn,
    size: u32,
    _payload: [u64; 4],
}

impl Packet for Line {
    fn size(&self) -> Bytes {
        Bytes(self.size.into())
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
}

/// A queue in which [`STANDING`] packets wait, and the packets that pass through it.
struct Belt {
    queue: AnyQdisc<Line>,
    packets: Vec<Line>,
    now: Instant,
    dropped: Dropped,
}

impl Belt {
    fn new(spec: &str) -> Result<Self, String> {
        let spec = QdiscSpec::parse(spec).map_err(|error| error.to_string())?;
        let link = LinkFacts {
            rate: Some(Rate::mbit(1_000)),
            ..LinkFacts::default()
        };
        let packets = (0..STANDING).map(|flow| Line {
            flow: FlowKey {
                source: flow.into(),
                destination: 1,
                ports: 443,
                protocol: 6,
            },
            ecn: Ecn::NotEct,
            size: 1_514,
            _payload: [0; 4],
        });
        let mut belt = Self {
            queue: spec.build(&link, Rng::new(1)),
            packets: packets.collect(),
            now: Instant::ZERO,
            dropped: Dropped(0),
        };
        for flow in 0..STANDING {
            belt.offer(flow);
        }
        Ok(belt)
    }

    /// Passes packets through.
    fn turn(&mut self, packets: u32) {
        for packet in 0..packets {
            self.now += GAP;
            if self.queue.next_timer().is_some_and(|at| at <= self.now) {
                self.queue.on_timer(self.now);
            }
            self.offer(packet % STANDING);
            self.queue.dequeue(self.now, &mut self.dropped);
            if self.queue.backlog().packets < STANDING as usize {
                self.offer(packet % STANDING);
            }
        }
    }

    fn offer(&mut self, flow: u32) {
        let packet = self.packets[flow as usize];
        self.queue.enqueue(self.now, packet, &mut self.dropped);
    }
}

struct Dropped(u64);

impl Observer<Line> for Dropped {
    fn on_drop(&mut self, _now: Instant, _packet: Line, _reason: DropReason) {
        self.0 += 1;
    }

    fn on_mark(&mut self, _now: Instant, _packet: &Line, _reason: MarkReason) {}
}
