//! What the tests of all stacks share: bottlenecks, digests of events, CPU time.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use sojourn_path::{
    Bottleneck, Direction, Duration, EventKind, Instant, LinkCounters, Path, Rate, Trace,
};

/// Length of each run.
pub const SECONDS: u64 = 30;
/// CPU time that a run may take, in seconds.
pub const MOST_CPU: f64 = 2.0;

/// When a run ends.
pub const END: Instant = Instant::from_millis(1_000 * SECONDS);

/// A bottleneck of 20 Mbit/s with this queue, and an RTT of 40 ms; events are recorded.
pub fn wired(qdisc: &str) -> Path {
    let bottleneck = Bottleneck::new(Rate::mbit(20), qdisc).expect("a queue");
    build(bottleneck)
}

/// The same over a link whose rate varies as that of a cellular link.
pub fn cellular(qdisc: &str) -> Path {
    build(Bottleneck::following(&trace(), qdisc).expect("a queue"))
}

fn build(bottleneck: Bottleneck) -> Path {
    let path = Path::builder().forward(bottleneck.delay(Duration::from_millis(20)));
    path.events().seed(1).build().expect("parameters in range")
}

/// Opportunities for 10 s: every 100 ms, the rate is multiplied by a number between 1/2 and 2, within 4 to 60 Mbit/s.
fn trace() -> Trace {
    let (mut lines, mut state, mut per_ms, mut credit) = (String::new(), 1_u64, 1.7_f64, 0.0);
    for ms in 1..=10_000 {
        if ms % 100 == 0 {
            // A linear congruential generator (Knuth, MMIX).
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let draw = (state >> 33) as f64 / f64::from(1_u32 << 31);
            per_ms = (per_ms * (0.5 + 1.5 * draw * draw.sqrt())).clamp(0.33, 5.0);
        }
        credit += per_ms;
        while credit >= 1.0 {
            credit -= 1.0;
            lines.push_str(&format!("{ms}\n"));
        }
    }
    Trace::parse(&lines).expect("a trace")
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Bytes that the receiving application got.
    pub bytes: u64,
    /// A digest of all events of the path.
    pub digest: u64,
    /// Events.
    pub events: u64,
    /// What the bottleneck counted.
    pub counters: LinkCounters,
    /// The 95th percentile of sojourn times, in ms.
    pub sojourn_ms_p95: f64,
}

impl Report {
    /// Goodput in Mbit/s.
    pub fn goodput(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6 / SECONDS as f64
    }
}

/// Collects the events of a path.
#[derive(Default)]
pub struct Digest {
    hasher: DefaultHasher,
    events: u64,
    arrived: u64,
}

impl Digest {
    /// Adds the events so far.
    pub fn add(&mut self, path: &mut Path) {
        for event in path.events() {
            event.hash(&mut self.hasher);
            self.events += 1;
            self.arrived += u64::from(event.kind == EventKind::Arrived);
        }
    }

    /// Ends a run in which the application got this number of bytes.
    pub fn report(mut self, mut path: Path, bytes: u64) -> Report {
        self.add(&mut path);
        assert!(self.arrived > 0, "no packet arrived");
        let p95 = path.sojourn(Direction::Forward).quantile(0.95).unwrap_or(0);
        Report {
            bytes,
            digest: self.hasher.finish(),
            events: self.events,
            counters: *path.counters(Direction::Forward),
            sojourn_ms_p95: p95 as f64 / 1e6,
        }
    }
}

/// Runs twice, compares, checks the CPU time of the faster run, and prints a line.
pub fn twice(name: &str, run: impl Fn() -> Report) -> Report {
    let timed = || {
        let before = cpu();
        let report = run();
        (report, cpu() - before)
    };
    let ((first, one), (second, two)) = (timed(), timed());
    assert_eq!(first, second, "{name}: the same seed gives other events");
    let (cpu, goodput) = (one.min(two), first.goodput());
    let LinkCounters {
        drops_overlimit,
        drops_aqm,
        marks_aqm,
        ..
    } = first.counters;
    println!(
        "{name}: {goodput:.2} Mbit/s, p95 {:.2} ms, drops {}, marks {marks_aqm}, {} events, digest {:016x}, {cpu:.2} s",
        first.sojourn_ms_p95,
        drops_overlimit + drops_aqm,
        first.events,
        first.digest,
    );
    assert!(
        cpu < MOST_CPU,
        "{name}: {cpu:.2} s of CPU time; at most {MOST_CPU} s"
    );
    first
}

/// CPU time of this thread in seconds, of Linux.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos: u64 = text
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    nanos as f64 / 1e9
}
