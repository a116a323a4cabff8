//! The queues of profile `linux` do what the kernel's did with the same arrivals, packet for
//! packet: `tests/vectors` holds what was recorded and says how.
//!
//! Where the kernel draws random numbers, distributions are compared instead.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{
    AnyQdisc, Bytes, Dscp, Duration, Ecn, Instant, LinkFacts, Number, Packet, Qdisc, QdiscSpec,
    Rate, Rng, Statistic,
};

/// What happened to the kernel's queue.
#[derive(Clone, Copy)]
enum Event {
    Arrival(TestPacket),
    /// The packet that the queue gave when it was asked.
    Departure(u64),
}

/// A recorded case that no random number decides.
struct Vector {
    setting: Setting,
    events: Vec<(Instant, Event)>,
    drops: BTreeSet<u64>,
    marks: BTreeSet<u64>,
    /// Of `tc -j -s` at the end.
    counters: Value,
}

/// What queue, on what link.
struct Setting {
    qdisc: QdiscSpec,
    link: LinkFacts,
}

/// The file of a case.
fn open(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let path = folder.join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "sojourn-qdisc-vector/1", "{name}");
    json
}

fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap().iter();
    list.map(|number| number.as_u64().unwrap()).collect()
}

fn packet(id: u64, flow: u64, size: u64, tos: u64) -> TestPacket {
    let ecn = match tos & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    TestPacket {
        flow: u32::try_from(flow).unwrap(),
        size,
        ecn,
        dscp: Dscp::new(u8::try_from(tos >> 2).unwrap()).unwrap(),
        ..TestPacket::mtu(id)
    }
}

impl Setting {
    fn read(json: &Value) -> Self {
        let qdisc = json["qdisc"].as_str().unwrap();
        let rate = json["rate_bps"].as_u64();
        Self {
            qdisc: QdiscSpec::parse(&format!("{qdisc} profile linux")).unwrap(),
            link: LinkFacts {
                rate: rate.map(|bits| Rate::from_bits_per_sec(bits).unwrap()),
                mtu: Bytes(json["mtu"].as_u64().unwrap()),
                ..LinkFacts::default()
            },
        }
    }

    fn queue(&self, seed: u64) -> AnyQdisc<TestPacket> {
        self.qdisc.build(&self.link, Rng::new(seed))
    }
}

impl Vector {
    fn read(name: &str) -> Self {
        let json = open(name);
        let mut arrived = 0;
        let mut event = |row: &Value| {
            let event = match numbers(row)[..] {
                [_, flow, size, tos] => {
                    arrived += 1;
                    Event::Arrival(packet(arrived - 1, flow, size, tos))
                }
                [_, id] => Event::Departure(id),
                _ => panic!("{name}: {row}"),
            };
            (Instant::from_nanos(row[0].as_u64().unwrap()), event)
        };
        let events = json["events"].as_array().unwrap().iter();
        Self {
            setting: Setting::read(&json),
            events: events.map(&mut event).collect(),
            drops: numbers(&json["drops"]).into_iter().collect(),
            marks: numbers(&json["marks"]).into_iter().collect(),
            counters: json["counters"].clone(),
        }
    }
}

/// Hands our queue the kernel's arrivals, asks it when the kernel asked its own, and compares.
fn replay(name: &str) {
    let vector = Vector::read(name);
    let mut queue = vector.setting.queue(1);
    let mut signals = Recorder::default();
    let shapes = vector.setting.link.rate.is_none();
    // Events of a tree change the modes of its classes, which it counts, even if nothing may leave.
    let polls = matches!(queue, AnyQdisc::Htb(_));
    for (nth, &(at, event)) in vector.events.iter().enumerate() {
        if polls {
            poll(&mut queue, at, &mut signals);
        }
        tell(&mut queue, at);
        match event {
            Event::Arrival(packet) => queue.enqueue(at, packet, &mut signals),
            Event::Departure(kernel) => {
                let ours = queue.dequeue(at, &mut signals).map(|pkt| pkt.id);
                assert_eq!(ours, Some(kernel), "{name}: event {nth} at {at:?}");
            }
        }
        // The kernel asks until it gets nothing, which a queue with a shaper of its own counts.
        let next = vector.events.get(nth + 1);
        let goes_on = matches!(next, Some(&(then, Event::Departure(_))) if then == at);
        if shapes && !goes_on {
            let early = queue.dequeue(at, &mut signals).map(|pkt| pkt.id);
            assert_eq!(early, None, "{name}: after event {nth} at {at:?}");
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
    let counters = match &queue {
        AnyQdisc::Drr(_) => compare_hashed(name, &vector.counters, queue.statistics()),
        _ => compare_counters(name, &vector.counters, &queue.statistics()),
    };
    println!(
        "{name}: {} events, {} drops, {} marks, {counters} counters, as the kernel's",
        vector.events.len(),
        drops.len(),
        marks.len(),
    );
}

/// The same of a queue that hashes flows to its classes, which the kernel's filters choose: those of the classes in any
/// order.
fn compare_hashed(name: &str, kernel: &Value, ours: Vec<Statistic>) -> usize {
    const NAMES: [&str; 4] = ["bytes", "packets", "drops", "qlen"];
    let (of_classes, whole): (Vec<_>, Vec<_>) = ours.into_iter().partition(|s| s.part.is_some());
    let mut classes: BTreeMap<usize, [u64; NAMES.len()]> = BTreeMap::new();
    for statistic in of_classes {
        let at = NAMES.iter().position(|name| *name == statistic.name);
        if let (Some((_, place)), Some(at), Number::Count(count)) =
            (statistic.part, at, statistic.value)
        {
            classes.entry(place).or_default()[at] = count;
        }
    }
    let mut classes: Vec<_> = classes.into_values().filter(|of| *of != [0; 4]).collect();
    let of_kernel = kernel["classes"].as_array().unwrap().iter();
    let mut of_kernel: Vec<_> = of_kernel
        .map(|of| NAMES.map(|name| of[name].as_u64().unwrap()))
        .collect();
    classes.sort_unstable();
    of_kernel.sort_unstable();
    assert_eq!(classes, of_kernel, "{name}: {NAMES:?} of the classes");
    compare_counters(name, kernel, &whole) + NAMES.len() * classes.len()
}

/// Compares what a queue counted with what `tc -j -s` said of the kernel's; says how many numbers.
///
/// What `tc` does not print is 0.
fn compare_counters(name: &str, kernel: &Value, ours: &[Statistic]) -> usize {
    let mut compared = 0;
    for statistic in ours {
        let printed = match statistic.part {
            None => &kernel[statistic.name],
            Some((list, place)) => &kernel[list][place][statistic.name],
        };
        // The recording has the counters of the classes of a tree, not those of their queues; `pfifo_fast` has none of
        // its bands, `cake_mq` none of its instances.
        let of_leaf = matches!(statistic.part, Some(("classes" | "bands" | "queues", _)))
            && printed.is_null();
        match statistic.value {
            _ if of_leaf => continue,
            // The kernel leaves out what the queue of a class drops when it is dequeued.
            Number::Count(count) if statistic.part.is_some() && statistic.name == "drops" => {
                let printed = printed.as_u64().unwrap_or(0);
                assert!(count >= printed, "{name}: {statistic:?}, {printed}");
            }
            Number::Count(count) => {
                let printed = printed.as_u64().unwrap_or(0);
                assert_eq!(count, printed, "{name}: {statistic:?}");
            }
            Number::Real(value) if statistic.name.ends_with("tokens") => {
                let printed = printed.as_f64().unwrap();
                assert!(
                    (value - printed).abs() < 0.5,
                    "{name}: {statistic:?}, {printed}"
                );
            }
            _ => continue,
        }
        compared += 1;
    }
    compared
}

/// Asks a queue at its timers long before `now`, as the kernel does: nothing leaves.
fn poll(queue: &mut AnyQdisc<TestPacket>, now: Instant, signals: &mut Recorder) {
    // The clock of the recording has a grain of 256 ns.
    const GRAIN: Duration = Duration::from_nanos(1_000);
    while let Some(due) = queue.next_timer().filter(|&due| due + GRAIN < now) {
        queue.on_timer(due);
        let early = queue.dequeue(due, signals).map(|pkt| pkt.id);
        assert_eq!(early, None, "at {due:?}");
    }
}

/// Lets the timers run that are due by `now`.
fn tell(queue: &mut AnyQdisc<TestPacket>, now: Instant) {
    while let Some(due) = queue.next_timer().filter(|&due| due <= now) {
        queue.on_timer(due);
    }
}

/// What a run is summed up in: drops of each quarter of the arrivals, marks, delays in milliseconds.
const SUMS: [&str; 7] = [
    "drops, 1st quarter",
    "drops, 2nd quarter",
    "drops, 3rd quarter",
    "drops, 4th quarter",
    "marks",
    "mean delay, ms",
    "95th percentile of delay, ms",
];

type Sums = [f64; SUMS.len()];

/// A recorded case in which the kernel drew random numbers.
struct Lottery {
    setting: Setting,
    arrivals: Vec<(Instant, TestPacket)>,
    kernel: Vec<Sums>,
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

fn sums(offered: usize, drops: &[u64], marks: usize, mean_ms: f64, p95_ms: f64) -> Sums {
    let mut quarters = [0; 4];
    for &id in drops {
        quarters[4 * usize::try_from(id).unwrap() / offered] += 1;
    }
    let [first, second, third, fourth] = quarters.map(count);
    [first, second, third, fourth, count(marks), mean_ms, p95_ms]
}

fn millis(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_millis_f64()
}

impl Lottery {
    fn read(name: &str) -> Self {
        let json = open(name);
        let rows = json["arrivals"].as_array().unwrap();
        let arrival = |(id, row): (u64, &Value)| match numbers(row)[..] {
            [at, flow, size, tos] => (Instant::from_nanos(at), packet(id, flow, size, tos)),
            _ => panic!("{name}: {row}"),
        };
        let run = |run: &Value| {
            let delay = |key| millis(run["delay_ns"][key].as_u64().unwrap());
            let marks = numbers(&run["marks"]).len();
            let drops = numbers(&run["drops"]);
            sums(rows.len(), &drops, marks, delay("mean"), delay("p95"))
        };
        Self {
            setting: Setting::read(&json),
            arrivals: (0..).zip(rows).map(arrival).collect(),
            kernel: json["runs"].as_array().unwrap().iter().map(run).collect(),
        }
    }

    /// One run of ours: a link that dequeues when it is free, and only from a queue that has a packet.
    fn run(&self, seed: u64) -> Sums {
        let mut queue = self.setting.queue(seed);
        let mut signals = Recorder::default();
        let rate = self.setting.link.rate.unwrap();
        // As old as the kernel's, so that what acts periodically is in the same phases.
        let origin = Duration::from_millis(3_000 + seed % RUNS);
        let mut free = Instant::ZERO;
        let mut delays = Vec::new();
        let mut next = self.arrivals.iter().map(|&(at, pkt)| (at + origin, pkt));
        let mut arrival = next.next();
        while arrival.is_some() || queue.backlog().packets > 0 {
            let waiting = queue.backlog().packets > 0;
            match arrival {
                Some((at, pkt)) if !waiting || at < free => {
                    tell(&mut queue, at);
                    queue.enqueue(at, pkt, &mut signals);
                    free = free.max(at);
                    arrival = next.next();
                }
                _ => {
                    tell(&mut queue, free);
                    if let Some(pkt) = queue.dequeue(free, &mut signals) {
                        let came = self.arrivals[usize::try_from(pkt.id).unwrap()].0 + origin;
                        delays.push(free.since(came).as_nanos());
                        free += rate.serialise(pkt.size());
                    }
                }
            }
        }
        let drops: Vec<_> = signals.drops.iter().map(|(_, pkt, _)| pkt.id).collect();
        let mean = millis(delays.iter().sum::<u64>()) / count(delays.len());
        delays.sort_unstable();
        let p95 = millis(delays[delays.len() * 95 / 100]);
        let offered = self.arrivals.len();
        // The recording cannot tell whether a packet that came with CE was marked.
        let came = |id: u64| self.arrivals[usize::try_from(id).unwrap()].1.ecn;
        let marks = signals
            .marks
            .iter()
            .filter(|(_, pkt, _)| came(pkt.id) != Ecn::Ce);
        sums(offered, &drops, marks.count(), mean, p95)
    }
}

/// Runs recorded of each case, and runs of ours.
const RUNS: u64 = 24;
const OURS: u64 = 240;

/// How many standard errors two means may be apart. Were the means normally distributed, sixty pairs
/// of equal ones would exceed this once in 260 times.
const MOST_ERRORS: f64 = 4.0;

/// Number of values, their mean and the sum of the squares of what they are off it.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64, f64) {
    let n = count(values.clone().count());
    let mean = values.clone().sum::<f64>() / n;
    (n, mean, values.map(|value| (value - mean).powi(2)).sum())
}

/// Compares the means of the kernel's runs with those of ours.
fn compare(name: &str) {
    let lottery = Lottery::read(name);
    assert_eq!(lottery.kernel.len() as u64, RUNS, "{name}");
    let ours: Vec<_> = (0..OURS).map(|seed| lottery.run(seed)).collect();
    let mut apart = Vec::new();
    for (at, what) in SUMS.iter().enumerate() {
        let (n, kernel, squares) = moments(lottery.kernel.iter().map(|run| run[at]));
        let (m, mine, more_squares) = moments(ours.iter().map(|run| run[at]));
        // Of one distribution, if the queues are alike: what is rare may be in one sample only.
        let variance = (squares + more_squares) / (n + m - 2.0);
        let error = (variance / n + variance / m).sqrt();
        let distance = (mine - kernel).abs();
        println!("{name:12} {what:30} kernel {kernel:8.3} ours {mine:8.3} +- {error:6.3}");
        if distance > MOST_ERRORS * error {
            apart.push(*what);
        }
    }
    assert!(apart.is_empty(), "{name}: {apart:?}");
}

#[test]
fn red_drops_as_many_as_the_kernel() {
    compare("red");
    compare("red_ecn");
    compare("red_idle");
}

#[test]
fn adaptive_red_drops_as_many_as_the_kernel() {
    compare("ared");
    compare("ared_ecn");
}

#[test]
fn dualpi2_drops_and_marks_as_many_as_the_kernel() {
    compare("dualpi2");
    compare("dualpi2_overload");
    compare("dualpi2_enqueue");
    compare("dualpi2_parameters");
}

#[test]
fn pie_drops_as_many_as_the_kernel() {
    compare("pie");
    compare("pie_ecn");
    compare("pie_dq_rate");
}

#[test]
fn choke_drops_as_many_as_the_kernel() {
    compare("choke");
}

#[test]
fn fq_pie_drops_as_many_as_the_kernel() {
    compare("fq_pie");
}

#[test]
fn sfb_drops_as_many_as_the_kernel() {
    compare("sfb");
    compare("sfb_fast");
}

#[test]
fn fifos_drop_what_the_kernel_drops() {
    replay("pfifo");
    replay("bfifo");
    replay("pfifo_head_drop");
}

#[test]
fn bands_are_served_in_the_same_order_as_by_the_kernel() {
    replay("prio");
    replay("prio_map");
    replay("pfifo_fast");
    replay("pfifo_fast_short");
}

#[test]
fn drr_serves_classes_in_the_same_order_as_the_kernel() {
    replay("drr");
    replay("drr_quantum");
    replay("drr_codel");
}

#[test]
fn codel_signals_for_the_same_packets_as_the_kernel() {
    replay("codel");
    replay("codel_ecn");
    replay("codel_limit");
    replay("codel_slow");
    replay("codel_ticks");
    replay("codel_ce_threshold");
}

#[test]
fn fq_codel_serves_flows_in_the_same_order_as_the_kernel() {
    replay("fq_codel");
    replay("fq_codel_ecn");
    replay("fq_codel_limit");
    replay("fq_codel_sparse");
    replay("fq_codel_ce_selector");
    replay("fq_codel_ce_dscp");
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

#[test]
fn cake_signals_and_serves_as_the_kernel() {
    replay("cake_flowblind_ecn");
    replay("cake_flows");
    replay("cake_diffserv4");
    replay("cake_shaper");
    replay("cake_overhead");
}

#[test]
fn instances_of_cake_share_a_rate_as_in_the_kernel() {
    replay("cake_mq");
}

#[test]
fn htb_shapes_and_borrows_as_the_kernel() {
    replay("htb_borrow");
    replay("htb_prio");
    replay("htb_tree");
    replay("htb_cells");
}
