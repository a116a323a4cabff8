//! Estimates packets, events, CPU time and memory of a scenario before it runs.
//!
//! Memory is an upper bound: queue and window limits count in full where the load can fill them. The sizes per
//! packet, row and flow are measured; `tests/python/result/test_budget.py` compares the estimate with real runs.

mod machine;

use std::num::NonZeroUsize;
use std::thread;

use serde_json::{Value, json};
use sojourn_qdisc::PYTHON_PREFIX;
use sojourn_scenario::plan::Config;
use sojourn_scenario::{Load, Scenario, ScenarioError};

pub use machine::default_limit;

/// Data packets simulated per second and core: the slowest of S1 to S5 in `benches/measured.json`.
const PACKETS_PER_S: f64 = 2_880_000.0;
/// Simulator events per data packet: between 2.5 and 3.6 in S1 to S5.
const EVENTS_PER_PACKET: u64 = 4;

/// Python with its libraries, and the tables of metrics.
const PROCESS: u64 = 150 << 20;
/// A worker process for queues written in Python, without the pages that it shares with others.
const WORKER: u64 = 50 << 20;
/// The helper processes of all workers.
const WORKERS: u64 = 20 << 20;
/// A packet in a queue that grew by doubling, or on a wire.
const PACKET: u64 = 130;
/// Sender state per unacknowledged packet.
const UNACKNOWLEDGED: u64 = 120;
/// An entry in the tables of a queue.
const SLOT: u64 = 100;
/// A link with its queue, histograms and counters.
const LINK: u64 = 20_000;
/// The columns of a link in the metrics of all runs. 2,000 links took 0.61 to 0.87 GB in seven
/// measurements: how much the threads of polars keep varies.
const COLUMNS: u64 = 280_000;
/// A flow with both of its ends.
const FLOW: u64 = 6_000;
/// A connection of an application and its transaction.
const CONNECTION: u64 = 12_000;
/// A sample of a link or a flow, during the run and as a table row.
const SAMPLE: (u64, u64) = (80, 200);
/// A request, during the run and as a table row.
const PING: (u64, u64) = (40, 320);
/// A drop or mark, during the run and as a table row.
const EVENT: (u64, u64) = (40, 130);
/// The rows of a link and of a flow in the tables of totals.
const ROWS: u64 = 3_000;
/// Fixed cost of the tables of a run, one array per column, and of its metrics.
const PIECE: u64 = 160_000;
/// The metrics of a run whose tables are not kept, as a row and in the table of all runs, and what each link adds.
const METRICS: (u64, u64) = (800, 60);

/// The data of a run that is kept until all runs have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its tables.
    Tables,
    /// Its metrics.
    Metrics,
}

/// Estimate for all runs of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Number of runs.
    pub runs: u64,
    /// Data packets and datagrams that hosts send, at most.
    pub packets: u64,
    /// Events of the simulator.
    pub events: u64,
    /// Processor time, in seconds.
    pub cpu_s: f64,
    /// Peak memory of the process, at most.
    pub peak_bytes: u64,
    /// Memory by cause, largest first.
    pub parts: Vec<Part>,
}

/// A part of the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The key of the scenario that causes most of this part.
    pub place: String,
    /// The cause, such as `1001 packets wait`.
    pub cause: String,
    /// Bytes.
    pub bytes: u64,
}

/// Memory of one run.
#[derive(Default)]
struct Run {
    /// During the run.
    live: Vec<Part>,
    /// From its end until all runs have ended.
    kept: Vec<Part>,
    packets: u64,
    links: u64,
}

/// Estimates the runs of `scenario` with `jobs` concurrent runs; `None` is one per processor.
pub fn estimate(scenario: &Scenario, jobs: Option<NonZeroUsize>, of: Kept) -> Estimate {
    let arms: Vec<Run> = (0..scenario.arms().len())
        .map(|arm| run(scenario, arm, of))
        .collect();
    let replications = u64::from(scenario.replications());
    let runs = replications * arms.len() as u64;
    let processes = on_processes(scenario, jobs, runs);
    let jobs = jobs.or_else(|| thread::available_parallelism().ok());
    let at_once = (jobs.map_or(1, NonZeroUsize::get) as u64).min(runs);
    let packets = arms
        .iter()
        .map(|run| run.packets.saturating_mul(replications));
    let packets = packets.fold(0, u64::saturating_add);
    let mut parts: Vec<Part> = Vec::new();
    // Any of the arms may be the one of which several runs go on.
    let largest = arms.iter().max_by_key(|run| total(&run.live));
    for part in largest.into_iter().flat_map(|run| &run.live) {
        add(&mut parts, part, at_once);
    }
    for part in arms.iter().flat_map(|run| &run.kept) {
        add(&mut parts, part, replications);
    }
    if processes {
        let workers = Part {
            place: "jobs".to_owned(),
            cause: format!("{at_once} processes execute queues written in Python"),
            bytes: at_once.saturating_mul(WORKER).saturating_add(WORKERS),
        };
        add(&mut parts, &workers, 1);
    }
    let links = arms.iter().map(|run| run.links).max().unwrap_or(0);
    let metrics = Part {
        place: "links".to_owned(),
        cause: format!("{links} links"),
        bytes: links * COLUMNS,
    };
    add(&mut parts, &metrics, 1);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let cpu_s = packets as f64 / PACKETS_PER_S;
    Estimate {
        runs,
        packets,
        events: packets.saturating_mul(EVENTS_PER_PACKET),
        cpu_s,
        peak_bytes: PROCESS.saturating_add(total(&parts)),
        parts,
    }
}

/// Whether `sojourn.run` executes the runs in worker processes.
fn on_processes(scenario: &Scenario, jobs: Option<NonZeroUsize>, runs: u64) -> bool {
    let queues = scenario.external_queues();
    let in_python = queues.iter().any(|name| name.starts_with(PYTHON_PREFIX));
    in_python && runs > 1 && jobs.is_none_or(|jobs| jobs.get() > 1)
}

/// Adds `times` such parts, merged with an existing part of the same cause.
fn add(parts: &mut Vec<Part>, part: &Part, times: u64) {
    let bytes = part.bytes.saturating_mul(times);
    match parts.iter_mut().find(|known| known.place == part.place) {
        Some(known) => known.bytes = known.bytes.saturating_add(bytes),
        None => parts.push(Part {
            bytes,
            ..part.clone()
        }),
    }
}

fn total(parts: &[Part]) -> u64 {
    parts
        .iter()
        .map(|part| part.bytes)
        .fold(0, u64::saturating_add)
}

fn run(scenario: &Scenario, arm: usize, of: Kept) -> Run {
    let config = scenario.plan(arm, 0).config;
    let load = config.load();
    let kept = match of {
        Kept::Tables => kept(&config, &load),
        Kept::Metrics => vec![metrics(&config)],
    };
    let live = live(scenario, arm, &config, &load);
    Run {
        live,
        kept,
        packets: load.packets,
        links: config.links.len() as u64,
    }
}

/// Memory in use during a run.
fn live(scenario: &Scenario, arm: usize, config: &Config, load: &Load) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = |place: &str, cause: String, bytes: u64| {
        parts.push(Part {
            place: place.to_owned(),
            cause,
            bytes,
        });
    };
    let (mut waiting, mut slots) = ((0, 0, 0_u64), (0, 0, 0_u64));
    for (n, (link, offered)) in config.links.iter().zip(&load.links).enumerate() {
        // Unused table entries occupy memory too.
        let tables = link.qdisc.footprint().slots;
        let larger = |most: (usize, u64, u64), own: u64| {
            let sum = most.2.saturating_add(own);
            if own > most.1 {
                (n, own, sum)
            } else {
                (most.0, most.1, sum)
            }
        };
        waiting = larger(waiting, offered.waiting);
        slots = larger(slots, tables);
    }
    let queue = |n: usize| scenario.place_of(arm, &format!("links[{n}].qdisc"));
    let spec = |n: usize| {
        config
            .links
            .get(n)
            .map_or(String::new(), |l| l.qdisc.to_string())
    };
    part(
        &queue(waiting.0),
        format!("\"{}\" lets {} packets wait", spec(waiting.0), waiting.1),
        waiting.2.saturating_mul(PACKET),
    );
    part(
        &format!("{} ", queue(slots.0)),
        format!("\"{}\" has tables with {} entries", spec(slots.0), slots.1),
        slots.2.saturating_mul(SLOT),
    );
    part(
        "rtt",
        format!("{} packets are on the way", load.in_flight),
        load.in_flight.saturating_mul(PACKET),
    );
    part(
        "traffic",
        format!(
            "{} flows and {} packets that are not acknowledged",
            config.flows.len(),
            load.unacknowledged
        ),
        (config.flows.len() as u64 * FLOW)
            .saturating_add(load.unacknowledged.saturating_mul(UNACKNOWLEDGED))
            .saturating_add(load.datagrams / 4),
    );
    part(
        "links",
        format!("{} links", config.links.len()),
        config.links.len() as u64 * LINK,
    );
    parts.extend(rows(config, load, |(live, _)| live));
    parts
}

/// Memory of a finished run until all runs have ended.
fn kept(config: &Config, load: &Load) -> Vec<Part> {
    let mut parts = rows(config, load, |(_, kept)| kept);
    parts.push(Part {
        place: "replications".to_owned(),
        cause: "the totals of every run are kept".to_owned(),
        bytes: PIECE + (config.links.len() + config.flows.len()) as u64 * ROWS,
    });
    parts
}

/// Memory of the metrics of a run.
fn metrics(config: &Config) -> Part {
    Part {
        place: "replications".to_owned(),
        cause: "the metrics of every run are kept".to_owned(),
        bytes: METRICS.0 + config.links.len() as u64 * METRICS.1,
    }
}

/// Rows of tables that grow with the length of a run, of the size that `bytes` selects.
fn rows(config: &Config, load: &Load, bytes: impl Fn((u64, u64)) -> u64) -> Vec<Part> {
    let samples = config.duration.as_nanos() / config.sample.as_nanos().max(1) + 1;
    let series = (config.links.len() + config.flows.len()) as u64;
    let samples = samples.saturating_mul(series);
    let signals = load.links.iter().map(|link| link.signals);
    let events = if config.keep_events {
        signals.fold(0, u64::saturating_add)
    } else {
        0
    };
    let all = [
        ("sample", samples, "rows of series", SAMPLE),
        ("traffic.interval", load.pings, "echo requests", PING),
        ("keep_events", events, "events", EVENT),
        (
            "traffic.every",
            load.connections,
            "connections",
            (CONNECTION, CONNECTION / 20),
        ),
    ];
    let parts = all.into_iter().map(|(place, count, what, size)| Part {
        place: place.to_owned(),
        cause: format!("{count} {what} per run"),
        bytes: count.saturating_mul(bytes(size)),
    });
    parts.collect()
}

/// Rejects a scenario whose runs could need more than `limit` bytes.
///
/// # Errors
/// Names the key that needs the most memory, its memory, and the limit.
pub fn check(
    scenario: &Scenario,
    jobs: Option<NonZeroUsize>,
    of: Kept,
    limit: u64,
) -> Result<(), ScenarioError> {
    let estimate = estimate(scenario, jobs, of);
    if estimate.peak_bytes <= limit {
        return Ok(());
    }
    let (place, cause, bytes) = match estimate.parts.first() {
        Some(part) if part.bytes > PROCESS / 4 => {
            (part.place.as_str(), part.cause.as_str(), part.bytes)
        }
        _ => ("memory", "the process itself", PROCESS),
    };
    Err(ScenarioError {
        path: place.trim_end().to_owned(),
        rule: format!(
            "{cause} ({}); all runs may take {}, more than max_memory = {}",
            size(bytes),
            size(estimate.peak_bytes),
            size(limit)
        ),
        line: None,
    })
}

/// A size in human-readable form.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let (mut scaled, mut unit) = (bytes / 100, UNITS[0]);
    for next in &UNITS[1..] {
        if scaled >= 10_000 {
            (scaled, unit) = (scaled / 1_000, next);
        }
    }
    format!("{}.{} {unit}", scaled / 10, scaled % 10)
}

impl Estimate {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let parts = self.parts.iter().filter(|part| part.bytes > 0).map(|part| {
            json!({
                "place": part.place.trim_end(),
                "cause": part.cause,
                "bytes": part.bytes,
            })
        });
        json!({
            "runs": self.runs,
            "packets": self.packets,
            "events": self.events,
            "cpu_s": self.cpu_s,
            "peak_memory_bytes": self.peak_bytes,
            "memory": parts.collect::<Vec<Value>>(),
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(rest: &str) -> Scenario {
        let text = format!(
            "duration = \"10s\"\nrtt = \"20ms\"\n\
             links.up = {{ rate = \"10mbit\", qdisc = \"pfifo limit 100000000\" }}\n\
             links.down = {{ rate = \"10mbit\", qdisc = \"pfifo\" }}\n{rest}"
        );
        Scenario::from_toml(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    fn tcp() -> Scenario {
        scenario("traffic = [{ type = \"tcp\", direction = \"up\" }]\n")
    }

    #[test]
    fn a_small_run_takes_little_and_more_runs_take_more() {
        let one = estimate(&tcp(), NonZeroUsize::new(1), Kept::Tables);
        assert!(one.peak_bytes < PROCESS + (20 << 20), "{one:?}");
        let text = "replications = 50\ntraffic = [{ type = \"tcp\", direction = \"up\" }]\n";
        let many = estimate(&scenario(text), NonZeroUsize::new(1), Kept::Tables);
        assert_eq!((many.runs, many.packets), (50, 50 * one.packets));
        assert!(many.peak_bytes > one.peak_bytes + 49 * PIECE);
        let metrics = estimate(&scenario(text), NonZeroUsize::new(1), Kept::Metrics);
        assert_eq!(metrics.packets, many.packets);
        assert!(metrics.peak_bytes < one.peak_bytes + 50 * 2_000);
    }

    #[test]
    fn processes_for_queues_in_python_are_counted() {
        let text = |replications: u32| {
            format!(
                "replications = {replications}\n\
                 traffic = [{{ type = \"tcp\", direction = \"up\" }}]\n\
                 [[arms]]\nname = \"a\"\n\
                 set = {{ \"links.up.qdisc\" = \"python:Tail:0123\" }}\n"
            )
        };
        let workers = |replications: u32, jobs: Option<usize>| {
            let jobs = jobs.and_then(NonZeroUsize::new);
            let estimate = estimate(&scenario(&text(replications)), jobs, Kept::Tables);
            let part = estimate.parts.into_iter().find(|part| part.place == "jobs");
            part.map(|part| (part.bytes - WORKERS) / WORKER)
        };
        assert_eq!(workers(16, Some(8)), Some(8));
        assert_eq!(workers(4, Some(8)), Some(4), "one per run at most");
        assert!(workers(16, None).is_some());
        assert_eq!(workers(16, Some(1)), None);
        assert_eq!(workers(1, Some(8)), None);
        let eight = NonZeroUsize::new(8);
        let refused = check(&scenario(&text(16)), eight, Kept::Tables, 400 << 20).unwrap_err();
        let expected =
            "jobs: 8 processes execute queues written in Python (440.4 MB); all runs may";
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }

    #[test]
    fn the_refusal_names_the_key_that_takes_most() {
        let refused = |text: &str| {
            check(
                &scenario(text),
                NonZeroUsize::new(1),
                Kept::Tables,
                400 << 20,
            )
            .unwrap_err()
            .to_string()
        };
        let flood = refused(
            "traffic = [{ type = \"udp\", direction = \"up\", rate = \"1gbit\", payload = \"10b\" }]\n",
        );
        assert!(
            flood.starts_with("links.up.qdisc: \"pfifo limit 100000000\" lets 100000000 packets wait (13.0 GB); all runs may take"),
            "{flood}"
        );
        assert!(
            flood.ends_with("more than max_memory = 419.4 MB"),
            "{flood}"
        );
        let runs =
            refused("replications = 100000\ntraffic = [{ type = \"tcp\", direction = \"up\" }]\n");
        assert!(
            runs.starts_with("replications: ") || runs.starts_with("sample: "),
            "{runs}"
        );
        let samples =
            refused("sample = \"1us\"\ntraffic = [{ type = \"tcp\", direction = \"up\" }]\n");
        assert!(
            samples.starts_with("sample: 30000003 rows of series per run ("),
            "{samples}"
        );
        let pings =
            refused("traffic = [{ type = \"ping\", direction = \"up\", interval = \"1us\" }]\n");
        assert!(
            pings.starts_with("traffic.interval: 10000001 echo requests per run ("),
            "{pings}"
        );
    }
}
