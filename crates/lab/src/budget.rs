//! Estimates packets, events, CPU time and memory of a scenario before it runs; the memory limits of this process.
//!
//! Memory is an upper bound: queue and window limits count in full where the load can fill them. The sizes per
//! packet, row and flow are measured; `tests/python/result/test_budget.py` compares the estimate with real runs.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use serde_json::{Value, json};
use sojourn_qdisc::PYTHON_PREFIX;
use sojourn_scenario::plan::{Change, Config, RateTrace};
use sojourn_scenario::{Load, Scenario};

/// Data packets simulated per second and core: the slowest of S1 to S5 in `benches/measured.json`.
const PACKETS_PER_S: f64 = 2_880_000.0;

/// Python with its libraries, and the tables of metrics.
pub(crate) const PROCESS: u64 = 150 << 20;
/// A worker process for queues written in Python, without the pages that it shares with others.
const WORKER: u64 = 50 << 20;
/// The helper processes of all workers.
pub(crate) const WORKERS: u64 = 20 << 20;
/// A packet in a queue that grew by doubling, or on a wire.
const PACKET: u64 = 130;
/// Sender state per unacknowledged packet.
const UNACKNOWLEDGED: u64 = 120;
/// An entry in the tables of a queue.
const SLOT: u64 = 100;
/// A link with its queue, histograms and counters.
const LINK: u64 = 20_000;
/// What a byte of the canonical text of a scenario takes in all its forms and copies, those of results included. Points
/// of traces take 33 B (delay, loss) and 37 B (rate) per byte of their text: the case "points" of `test_budget.py`.
const TEXT: u64 = 40;
/// The columns of a link in the metrics of all runs. 2,000 links took 0.61 to 0.87 GB in seven
/// measurements: how much the threads of polars keep varies.
const COLUMNS: u64 = 280_000;
/// A flow with both of its ends.
const FLOW: u64 = 6_000;
/// A connection of an application, with both of its ends.
const CONNECTION: u64 = 12_000;
/// A transaction, during the run and as a table row.
const TRANSACTION: (u64, u64) = (40, 600);
/// A sample of a link or a flow, during the run and as a table row.
const SAMPLE: (u64, u64) = (80, 200);
/// A request, during the run and as a table row.
const PING: (u64, u64) = (40, 320);
/// A drop or mark, during the run and as a table row.
const EVENT: (u64, u64) = (100, 190);
/// The same with the state of the queue.
const EVENT_AND_STATE: (u64, u64) = (500, 790);
/// A statistic of a queue in a sample, during the run and as a table row.
const STATE: (u64, u64) = (64, 130);
/// The rows of a link and of a flow in the tables of totals.
const ROWS: u64 = 3_000;
/// Fixed cost of the tables of a run, one array per column, and of its metrics.
const PIECE: u64 = 190_000;
/// The same if the series stay in the run store, and the totals of 64 runs share their arrays.
const SHARED_PIECE: u64 = 2_000;
/// The metrics of a run whose tables are not kept, as a row and in the table of all runs, and what each link adds.
const METRICS: (u64, u64) = (800, 60);

/// The data of a run that is kept until all runs have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its tables.
    Tables,
    /// Its tables of totals; the series stay in the run store.
    Totals,
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
    /// Events of the simulator, at most.
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
    /// The tables of a queue, whose place is also that of its packets.
    pub of_tables: bool,
}

impl Part {
    fn new(place: &str, cause: String, bytes: u64) -> Self {
        Self {
            place: place.to_owned(),
            cause,
            bytes,
            of_tables: false,
        }
    }

    /// Whether it has the same cause.
    fn is_like(&self, other: &Self) -> bool {
        self.place == other.place && self.of_tables == other.of_tables
    }
}

/// What all links need of something, and the link that needs most of it.
#[derive(Clone, Copy, Default)]
struct Need {
    link: usize,
    most: u64,
    sum: u64,
}

impl Need {
    fn add(&mut self, link: usize, own: u64) {
        self.sum = self.sum.saturating_add(own);
        if own > self.most {
            (self.link, self.most) = (link, own);
        }
    }
}

/// Memory of one run.
#[derive(Default)]
struct Run {
    /// During the run.
    live: Vec<Part>,
    /// From its end until all runs have ended.
    kept: Vec<Part>,
    packets: u64,
    events: u64,
    links: u64,
}

/// Estimates the runs of `scenario` with `jobs` concurrent runs; `None` is one per processor.
pub fn estimate(scenario: &Scenario, jobs: Option<NonZeroUsize>, of: Kept) -> Estimate {
    let replications = u64::from(scenario.replications());
    let runs = replications * scenario.arms().len() as u64;
    let processes = on_processes(scenario, jobs, runs);
    // Worker processes return tables, which are put together in memory.
    let of = match of {
        Kept::Totals if processes => Kept::Tables,
        of => of,
    };
    let arms: Vec<Run> = (0..scenario.arms().len())
        .map(|arm| run(scenario, arm, of))
        .collect();
    let jobs = jobs.or_else(|| thread::available_parallelism().ok());
    let at_once = (jobs.map_or(1, NonZeroUsize::get) as u64).min(runs);
    let all = |count: fn(&Run) -> u64| {
        let counts = arms.iter().map(count).fold(0, u64::saturating_add);
        counts.saturating_mul(replications)
    };
    let packets = all(|run| run.packets);
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
        let cause = format!("{at_once} processes execute queues written in Python");
        let bytes = at_once.saturating_mul(WORKER).saturating_add(WORKERS);
        add(&mut parts, &Part::new("jobs", cause, bytes), 1);
    }
    let links = arms.iter().map(|run| run.links).max().unwrap_or(0);
    let metrics = Part::new("links", format!("{links} links"), links * COLUMNS);
    add(&mut parts, &metrics, 1);
    let text = scenario.to_json().len() as u64;
    let cause = format!("the scenario has {text} B of text");
    add(&mut parts, &Part::new("scenario", cause, text * TEXT), 1);
    parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let cpu_s = packets as f64 / PACKETS_PER_S;
    Estimate {
        runs,
        packets,
        events: all(|run| run.events),
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
    match parts.iter_mut().find(|known| known.is_like(part)) {
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
        Kept::Totals => vec![totals(&config, SHARED_PIECE)],
        Kept::Metrics => vec![metrics(&config)],
    };
    let mut live = live(scenario, arm, &config, &load);
    if of == Kept::Totals {
        // The tables are built before the records are gone.
        for part in rows(&config, &load, |(_, kept)| kept) {
            add(&mut live, &part, 1);
        }
    }
    Run {
        live,
        kept,
        packets: load.packets,
        events: load.events,
        links: config.links.len() as u64,
    }
}

/// Memory in use during a run.
fn live(scenario: &Scenario, arm: usize, config: &Config, load: &Load) -> Vec<Part> {
    let (mut waiting, mut slots, mut points) = (Need::default(), Need::default(), Need::default());
    for (n, (link, offered)) in config.links.iter().zip(&load.links).enumerate() {
        waiting.add(n, offered.waiting);
        // Unused table entries occupy memory too.
        slots.add(n, link.qdisc.footprint().slots);
        let changes = (link.changes.capacity() * size_of::<Change>()) as u64;
        points.add(n, changes + link.rates.as_ref().map_or(0, RateTrace::size));
    }
    let changing = config.links.get(points.link);
    let queue = |n: usize| scenario.place_of(arm, &format!("links[{n}].qdisc"));
    let spec = |n: usize| {
        config
            .links
            .get(n)
            .map_or(String::new(), |l| l.qdisc.to_string())
    };
    let flows = config.flows.len() as u64;
    let mut parts = vec![
        Part::new(
            &queue(waiting.link),
            format!(
                "\"{}\" lets {} packets wait",
                spec(waiting.link),
                waiting.most
            ),
            waiting.sum.saturating_mul(PACKET),
        ),
        Part {
            of_tables: true,
            ..Part::new(
                &queue(slots.link),
                format!(
                    "\"{}\" has tables with {} entries",
                    spec(slots.link),
                    slots.most
                ),
                slots.sum.saturating_mul(SLOT),
            )
        },
        Part::new(
            &changing.map_or(String::new(), |link| format!("links.{}", link.name)),
            "changes and points of traces".to_owned(),
            points.sum,
        ),
        Part::new(
            "rtt",
            format!("{} packets are on the way", load.in_flight),
            load.in_flight.saturating_mul(PACKET),
        ),
        Part::new(
            "traffic",
            format!(
                "{flows} flows and {} packets that are not acknowledged",
                load.unacknowledged
            ),
            (flows * FLOW)
                .saturating_add(load.unacknowledged.saturating_mul(UNACKNOWLEDGED))
                .saturating_add(load.datagrams / 4),
        ),
        Part::new(
            "links",
            format!("{} links", config.links.len()),
            config.links.len() as u64 * LINK,
        ),
    ];
    parts.extend(rows(config, load, |(live, _)| live));
    parts
}

/// Memory of a finished run until all runs have ended.
fn kept(config: &Config, load: &Load) -> Vec<Part> {
    let mut parts = rows(config, load, |(_, kept)| kept);
    parts.push(totals(config, PIECE));
    parts
}

/// Memory of the totals of a run, with the fixed cost of `piece`.
fn totals(config: &Config, piece: u64) -> Part {
    let rows = (config.links.len() + config.flows.len()) as u64;
    let cause = "the totals of every run are kept".to_owned();
    Part::new("replications", cause, piece + rows * ROWS)
}

/// Memory of the tables of a run, at most.
pub(crate) fn tables(config: &Config) -> u64 {
    total(&kept(config, &config.load()))
}

/// Memory of the data that is kept of `runs` runs of a scenario, at most.
pub fn kept_bytes(scenario: &Scenario, runs: u64, of: Kept) -> u64 {
    let arms = 0..scenario.arms().len();
    let most = arms.map(|arm| total(&run(scenario, arm, of).kept)).max();
    most.unwrap_or(0).saturating_mul(runs)
}

/// Memory of the metrics of a run.
fn metrics(config: &Config) -> Part {
    let bytes = METRICS.0 + config.links.len() as u64 * METRICS.1;
    let cause = "the metrics of every run are kept".to_owned();
    Part::new("replications", cause, bytes)
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
        (
            "keep_events",
            events,
            "events",
            if config.sample_state {
                EVENT_AND_STATE
            } else {
                EVENT
            },
        ),
        (
            "sample_state",
            config.state_rows(),
            "rows of queue_series",
            STATE,
        ),
        (
            "traffic.every",
            load.connections,
            "connections",
            (CONNECTION, 0),
        ),
        (
            "traffic.every",
            load.transactions,
            "transactions",
            TRANSACTION,
        ),
    ];
    let parts = all.into_iter().map(|(place, count, what, size)| {
        let cause = format!("{count} {what} per run");
        Part::new(place, cause, count.saturating_mul(bytes(size)))
    });
    parts.collect()
}

impl Estimate {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let parts = self.parts.iter().filter(|part| part.bytes > 0).map(|part| {
            json!({
                "place": part.place,
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

/// Share of the memory that runs may use by default; the rest is for Python, tables and other programs.
const SHARE: (u64, u64) = (4, 5);

/// The default of `max_memory`: 80 % of the smallest limit; `None` if the system names none.
pub fn default_limit() -> Option<u64> {
    usable(Path::new("/")).map(|bytes| bytes / SHARE.1 * SHARE.0)
}

/// The smallest of all limits under `root`, in bytes.
fn usable(root: &Path) -> Option<u64> {
    [available(root), control_groups(root), address_space(root)]
        .into_iter()
        .flatten()
        .min()
}

fn read(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok()
}

/// Memory that programs can get without swapping.
fn available(root: &Path) -> Option<u64> {
    let table = read(root, "proc/meminfo")?;
    let line = table
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

/// The smallest limit of the control groups of this process and of those that contain them.
fn control_groups(root: &Path) -> Option<u64> {
    let mounted = Path::new("sys/fs/cgroup");
    let groups = read(root, "proc/self/cgroup").unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        // `0::/path` in version 2, `5:memory:/path` in version 1.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (folder, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut group = folder.join(path.trim_start_matches('/'));
        // A container sees its own group as the root, whatever its path is outside.
        while group.starts_with(&folder) {
            limits.extend(limit(root, &group.join(file)));
            if !group.pop() {
                break;
            }
        }
    }
    limits.into_iter().min()
}

/// A limit; `max` and a file that does not exist are none.
fn limit(root: &Path, file: &PathBuf) -> Option<u64> {
    fs::read_to_string(root.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// What is left of the address space (`ulimit -v`).
fn address_space(root: &Path) -> Option<u64> {
    let limits = read(root, "proc/self/limits")?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = read(root, "proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let used = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Some(most.saturating_sub(used.unwrap_or(0).saturating_mul(1_024)))
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
        let kept = |runs, of| kept_bytes(&scenario(text), runs, of);
        assert!(kept(50, Kept::Tables) > 50 * PIECE);
        assert!(kept(50, Kept::Metrics) < 50 * 2_000);
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
        let largest = &estimate(&scenario(&text(16)), eight, Kept::Tables).parts[0];
        let expected = "8 processes execute queues written in Python";
        assert_eq!((&*largest.place, &*largest.cause), ("jobs", expected));
        assert_eq!(largest.bytes / 100_000, 4_404);
    }

    #[test]
    fn the_packets_and_the_tables_of_a_queue_are_two_parts() {
        let text = "duration = \"10s\"\nrtt = \"20ms\"\n\
                    links.up = { rate = \"10mbit\", qdisc = \"fq_codel\" }\n\
                    links.down = { rate = \"10mbit\", qdisc = \"pfifo\" }\n\
                    traffic = [{ type = \"tcp\", direction = \"up\" }]\n";
        let of_hashes = Scenario::from_toml(text).unwrap();
        let estimate = estimate(&of_hashes, NonZeroUsize::new(1), Kept::Tables);
        let place = "links.up.qdisc";
        let parts = estimate.parts.iter().filter(|part| part.place == place);
        let mut of_tables: Vec<_> = parts.map(|part| part.of_tables).collect();
        of_tables.sort_unstable();
        assert_eq!(of_tables, [false, true], "{estimate:?}");
    }

    #[test]
    fn the_first_part_is_the_key_that_takes_most() {
        let largest = |text: &str| {
            let jobs = NonZeroUsize::new(1);
            estimate(&scenario(text), jobs, Kept::Tables)
                .parts
                .remove(0)
        };
        let flood = largest(
            "traffic = [{ type = \"udp\", direction = \"up\", rate = \"1gbit\", payload = \"10b\" }]\n",
        );
        let expected = "\"pfifo limit 100000000\" lets 100000000 packets wait";
        assert_eq!((&*flood.place, &*flood.cause), ("links.up.qdisc", expected));
        assert_eq!(flood.bytes / 100_000_000, 130);
        let runs =
            largest("replications = 100000\ntraffic = [{ type = \"tcp\", direction = \"up\" }]\n");
        assert!(
            ["replications", "sample"].contains(&&*runs.place),
            "{runs:?}"
        );
        for (text, place, cause) in [
            (
                "sample = \"1us\"\ntraffic = [{ type = \"tcp\", direction = \"up\" }]\n",
                "sample",
                "30000003 rows of series per run",
            ),
            (
                "traffic = [{ type = \"ping\", direction = \"up\", interval = \"1us\" }]\n",
                "traffic.interval",
                "10000001 echo requests per run",
            ),
        ] {
            let part = largest(text);
            assert_eq!((&*part.place, &*part.cause), (place, cause));
        }
    }

    #[test]
    fn the_points_of_traces_count_as_text_and_in_every_run() {
        let of = |keys: &str| {
            let text = format!(
                "duration = \"10s\"\nrtt = \"20ms\"\n\
                 links.up = {{ rate = \"10mbit\", qdisc = \"pfifo\" }}\n\
                 links.down = {{ qdisc = \"pfifo\", {keys} }}\n\
                 traffic = [{{ type = \"tcp\", direction = \"up\" }}]\n"
            );
            let scenario = Scenario::from_toml(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
            let parts = estimate(&scenario, NonZeroUsize::new(1), Kept::Tables).parts;
            let bytes = |place| {
                parts
                    .iter()
                    .find(|part| part.place == place)
                    .map(|p| p.bytes)
            };
            (bytes("links.down"), bytes("scenario"))
        };
        let change = size_of::<Change>() as u64;
        let (none, short) = of("rate = \"1mbit\"");
        assert_eq!(none, Some(0));
        // Repeated until the end of the run.
        let delays = "delay_trace = { points = \"0s 1ms, 1ms 2ms\", period = \"2ms\" }";
        let (repeated, long) = of(&format!("rate = \"1mbit\", {delays}"));
        assert_eq!(repeated, Some(10_000 * change));
        assert!(long > short);
        let (rates, _) = of("rate_trace = { points = \"0s 1mbit, 1s 2mbit\", period = \"2s\" }");
        assert_eq!(rates, Some(2 * 32));
    }

    const MEMORY: &str = "MemTotal:  9000 kB\nMemAvailable:    4000 kB\n";

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    #[test]
    fn the_smallest_limit_counts() {
        let of = |files: &[_]| usable(machine(files).path());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("proc/meminfo", MEMORY)]), Some(4_096_000));
        let second = ("proc/self/cgroup", "0::/a/b\n");
        let limit = ("sys/fs/cgroup/a/memory.max", "1000000\n");
        let none = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(
            of(&[("proc/meminfo", MEMORY), second, limit, none]),
            Some(1_000_000)
        );
        let first = ("proc/self/cgroup", "7:cpu:/x\n5:memory:/docker/1\n");
        let limit = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
        assert_eq!(
            of(&[("proc/meminfo", MEMORY), first, limit]),
            Some(2_000_000)
        );
        let limits = (
            "proc/self/limits",
            "Max address space   3000000  unlimited  bytes\n",
        );
        let status = ("proc/self/status", "VmSize:\t  1000 kB\n");
        assert_eq!(
            of(&[("proc/meminfo", MEMORY), limits, status]),
            Some(1_976_000)
        );
        let limits = (
            "proc/self/limits",
            "Max address space   unlimited  unlimited  bytes\n",
        );
        assert_eq!(of(&[("proc/meminfo", MEMORY), limits]), Some(4_096_000));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_a_limit() {
        assert!(default_limit().is_some_and(|bytes| bytes > 1 << 20));
    }
}
