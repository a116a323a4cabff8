//! Measurements, each in a process of its own, so that none warms the caches or grows the heap of
//! another.

use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sojourn_apps::Http;
use sojourn_bench::dumbbell::{Dumbbell, SHORT};
use sojourn_bench::idle::{self, Idle};
use sojourn_bench::queues::{self, Treadmill};
use sojourn_bench::{usage, web};
use sojourn_net::Instant;
use sojourn_records::Records;
use sojourn_scenario::plan::Config;

/// One run of S1 to S5.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) delivered_per_cpu_s: f64,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) cpu_s: f64,
    pub(crate) delivered: u64,
    pub(crate) drops: u64,
    pub(crate) events: u64,
    /// Counted in a run of its own; `None`: valgrind is absent.
    pub(crate) instructions_per_packet: Option<f64>,
}

/// What an idle flow takes, in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IdleFlow {
    /// One that has not started.
    pub(crate) waiting_bytes: f64,
    /// One that has sent all it had.
    pub(crate) done_bytes: f64,
}

/// Many web connections at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WebConnections {
    /// Open when the run ended.
    pub(crate) connections: u64,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) cpu_s: f64,
    /// CPU time per packet that left the link, in ns, in each second of simulated time.
    pub(crate) ns_per_packet: Vec<f64>,
}

/// The cost of a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) ns_per_packet: f64,
    /// `None`: valgrind is absent.
    pub(crate) instructions_per_packet: Option<f64>,
    /// The same as `ns_per_packet` with [`queues::MANY`] flows active.
    pub(crate) ns_many_flows: f64,
    /// Memory that an empty queue touches.
    pub(crate) empty_bytes: Option<f64>,
    /// Memory beside the packet itself that each waiting packet touches.
    pub(crate) bytes_per_packet: Option<f64>,
    /// Memory that each active flow touches, beside its packet.
    pub(crate) bytes_per_flow: Option<f64>,
}

/// Runs a simulation to its end.
pub(crate) fn simulate(config: &Config) -> Result<Records, String> {
    sojourn_sim::run(config, &mut |_| true)
        .map_err(|e| e.to_string())?
        .ok_or_else(|| "stopped before its end".to_owned())
}

/// The measurement called `name`, in this process, as JSON.
pub(crate) fn one(name: &str, packets: Option<u64>) -> Result<String, String> {
    let json = match name.split_once(':') {
        None if name == "web" => serde_json::to_string(&web_connections(Http::One)?),
        None if name == "web3" => serde_json::to_string(&web_connections(Http::Three)?),
        None if name == SHORT.name => serde_json::to_string(&ms_per_short_run()?),
        None => serde_json::to_string(&dumbbell(name)?),
        Some(("slot", spec)) => serde_json::to_string(&ns_per_slot(spec)?),
        Some(("S6", kind)) => match packets {
            Some(n) => return turned(kind, queues::FEW, n),
            None => serde_json::to_string(&Cost {
                ns_per_packet: ns_per_packet(kind, queues::FEW)?,
                instructions_per_packet: None,
                ns_many_flows: ns_per_packet(queues::spacious(kind), queues::MANY)?,
                empty_bytes: None,
                bytes_per_packet: None,
                bytes_per_flow: None,
            }),
        },
        // For a profiler: the flows of `ns_many_flows`.
        Some(("S6-many", kind)) => {
            return turned(
                queues::spacious(kind),
                queues::MANY,
                packets.unwrap_or(1_000_000),
            );
        }
        Some(("memory", what)) => serde_json::to_string(&memory(what)?),
        Some(("waiting", n)) => serde_json::to_string(&growth(n, Idle::Waiting)?),
        Some(("done", n)) => serde_json::to_string(&growth(n, Idle::Done)?),
        Some(_) => return Err(format!("{name}: no such measurement")),
    };
    json.map_err(|e| e.to_string())
}

/// Passes `packets` through a queue and measures nothing.
fn turned(spec: &str, flows: u32, packets: u64) -> Result<String, String> {
    Treadmill::new(spec, flows, flows as usize)?.turn(packets);
    Ok(String::new())
}

fn web_connections(http: Http) -> Result<WebConnections, String> {
    let config = web::config(http)?;
    let mut marks = vec![usage::cpu_seconds()];
    let mut next = Instant::ZERO + config.sample;
    // Asked more often than once per sample.
    let records = sojourn_sim::run(&config, &mut |at| {
        if at >= next {
            marks.push(usage::cpu_seconds());
            next += config.sample;
        }
        true
    });
    let records = records.map_err(|e| e.to_string())?;
    let records = records.ok_or("stopped before its end")?;
    let seconds = marks.windows(2).map(|pair| pair[1] - pair[0]);
    let series = &records.links[0].series;
    if marks.len() != series.len() + 1 {
        return Err(format!(
            "{} marks of {} samples",
            marks.len() - 1,
            series.len()
        ));
    }
    let ns = seconds
        .zip(series)
        .map(|(cpu_s, sample)| cpu_s * 1e9 / sample.counters.sent_packets as f64);
    Ok(WebConnections {
        connections: web::open_at_the_end(&records),
        peak_rss_bytes: usage::peak_rss(),
        cpu_s: usage::cpu_seconds(),
        ns_per_packet: ns.collect(),
    })
}

/// CPU time of one of many short runs, with their records, in ms.
fn ms_per_short_run() -> Result<f64, String> {
    const RUNS: u32 = 500;
    let mut config = SHORT.config();
    for seed in 0..RUNS {
        config.seed = seed.into();
        simulate(&config)?;
    }
    Ok(usage::cpu_seconds() * 1e3 / f64::from(RUNS))
}

/// The fastest of `runs` processes, in ms per short run.
pub(crate) fn short_run(runs: u32) -> Result<f64, String> {
    (0..runs).try_fold(f64::INFINITY, |best, _| {
        in_child(SHORT.name).map(|ms: f64| best.min(ms))
    })
}

/// Web connections in a process of its own; `name`: `web` of TCP, `web3` of QUIC.
pub(crate) fn web(name: &str) -> Result<WebConnections, String> {
    in_child(name)
}

fn dumbbell(name: &str) -> Result<Run, String> {
    let dumbbell = Dumbbell::named(name).ok_or_else(|| format!("{name}: no such scenario"))?;
    let records = simulate(&dumbbell.config())?;
    let cpu_s = usage::cpu_seconds();
    let bottleneck = &records.links[Dumbbell::BOTTLENECK].totals;
    Ok(Run {
        delivered_per_cpu_s: bottleneck.sent_packets as f64 / cpu_s,
        peak_rss_bytes: usage::peak_rss(),
        cpu_s,
        delivered: bottleneck.sent_packets,
        drops: bottleneck.drops_aqm + bottleneck.drops_overlimit,
        events: records.agenda_events,
        instructions_per_packet: None,
    })
}

/// How far `n` idle flows grow the resident set beyond their configuration, in bytes.
fn growth(n: &str, why: Idle) -> Result<f64, String> {
    let n = n.parse().map_err(|e| format!("{n}: {e}"))?;
    let config = idle::config(n, why);
    let before = usage::rss().ok_or("/proc does not tell the resident set")?;
    // The last question of the run is at its end, when the flows are idle and nothing has been turned into records yet.
    let mut after = None;
    sojourn_sim::run(&config, &mut |_| {
        after = usage::rss();
        true
    })
    .map_err(|e| e.to_string())?;
    let after = after.ok_or("/proc does not tell the resident set")?;
    Ok(after.saturating_sub(before) as f64)
}

/// The best of several batches, after one to warm up.
fn ns_per_packet(spec: &str, flows: u32) -> Result<f64, String> {
    const BATCH: u64 = 1_000_000;
    let mut treadmill = Treadmill::new(spec, flows, flows as usize)?;
    treadmill.turn(BATCH / 4);
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let before = usage::cpu_seconds();
        treadmill.turn(BATCH);
        best = best.min(usage::cpu_seconds() - before);
    }
    Ok(best * 1e9 / BATCH as f64)
}

/// What the end of a slot of Predict costs under a growing load: ten times as long a slot has a
/// tenth of them.
fn ns_per_slot(spec: &str) -> Result<f64, String> {
    const MILLISECONDS: u32 = 80_000;
    let time = |spec: &str| -> Result<f64, String> {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let mut treadmill = Treadmill::empty(spec)?;
            let before = usage::cpu_seconds();
            for _ in 0..MILLISECONDS {
                treadmill.grow();
                treadmill.tick();
            }
            best = best.min(usage::cpu_seconds() - before);
        }
        Ok(best)
    };
    let long = time(&format!("{spec} slot 10ms rtt_min 10ms"))?;
    let short = time(&format!("{spec} slot 1ms rtt_min 10ms"))?;
    Ok((short - long) * 1e9 / (0.9 * f64::from(MILLISECONDS)))
}

/// The end of a slot of Predict in ns.
pub(crate) fn slot(spec: &str) -> Result<f64, String> {
    in_child(&format!("slot:{spec}"))
}

/// Growth of the resident set for each of many queues; `what`: flows, packets and the queue.
fn memory(what: &str) -> Result<Option<f64>, String> {
    const QUEUES: usize = 200;
    let mut parts = what.splitn(3, ' ');
    let mut number = || parts.next()?.parse::<u32>().ok();
    let (Some(flows), Some(packets)) = (number(), number()) else {
        return Err(format!("{what}: flows, packets and a queue are needed"));
    };
    let spec = parts.next().unwrap_or_default();
    let before = usage::rss();
    let many: Vec<_> = (0..QUEUES)
        .map(|_| match packets {
            0 => Treadmill::empty(spec),
            packets => Treadmill::new(spec, flows, packets as usize),
        })
        .collect::<Result<_, _>>()?;
    let after = usage::rss();
    drop(many);
    Ok(before
        .zip(after)
        .map(|(before, after)| after.saturating_sub(before) as f64 / QUEUES as f64))
}

/// The fastest of `runs` processes.
pub(crate) fn best_of(runs: u32, name: &str) -> Result<Run, String> {
    let mut best: Option<Run> = None;
    for _ in 0..runs {
        let run: Run = in_child(name)?;
        if best.as_ref().is_none_or(|b| run.cpu_s < b.cpu_s) {
            best = Some(run);
        }
    }
    best.ok_or_else(|| "at least one run is needed".to_owned())
}

/// What 99,000 more idle flows add, divided by their number.
pub(crate) fn idle() -> Result<IdleFlow, String> {
    const FEW: f64 = 1_000.0;
    const MANY: f64 = 100_000.0;
    let each = |why: &str| -> Result<f64, String> {
        let few: f64 = in_child(&format!("{why}:{FEW}"))?;
        let many: f64 = in_child(&format!("{why}:{MANY}"))?;
        Ok((many - few) / (MANY - FEW))
    };
    Ok(IdleFlow {
        waiting_bytes: each("waiting")?,
        done_bytes: each("done")?,
    })
}

/// Time, instructions and memory of one queue.
pub(crate) fn queue(kind: &str) -> Result<Cost, String> {
    let cost: Cost = in_child(&format!("S6:{kind}"))?;
    let spec = queues::spacious(kind);
    let bytes = |flows: u32, packets: u32| -> Result<Option<f64>, String> {
        in_child(&format!("memory:{flows} {packets} {spec}"))
    };
    let (light, heavy, wide) = (bytes(10, 100)?, bytes(10, 1_000)?, bytes(1_000, 1_000)?);
    let slope = |less: Option<f64>, more: Option<f64>, over: f64| Some((more? - less?) / over);
    Ok(Cost {
        instructions_per_packet: instructions(kind)?,
        empty_bytes: in_child(&format!("memory:1 0 {kind}"))?,
        bytes_per_packet: slope(light, heavy, 900.0).map(|b| (b - PACKET_BYTES).max(0.0)),
        bytes_per_flow: slope(heavy, wide, 990.0).map(|b| b.max(0.0)),
        ..cost
    })
}

/// The packet of the measurement.
const PACKET_BYTES: f64 = 64.0;

fn in_child<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(exe)
        .args(["--one", name])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| e.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|e| format!("{name}: {}: {e}", output.status))
}

/// Instructions a packet, from two runs of different length so that start-up cancels; `None`
/// where valgrind is absent.
fn instructions(kind: &str) -> Result<Option<f64>, String> {
    const SHORT: u64 = 20_000;
    const LONG: u64 = 120_000;
    let spec = format!("S6:{kind}");
    let turned = |n: u64| collected(&["--one", &spec, "--packets", &n.to_string()]);
    let Some(short) = turned(SHORT)? else {
        return Ok(None);
    };
    let long = turned(LONG)?;
    Ok(long.map(|long| long.saturating_sub(short) as f64 / (LONG - SHORT) as f64))
}

/// Instructions of one run of S1 to S5; `None` where valgrind is absent.
pub(crate) fn instructions_of_run(name: &str) -> Result<Option<u64>, String> {
    collected(&["--profile", name])
}

/// Instructions of this program with `arguments`, by callgrind.
fn collected(arguments: &[&str]) -> Result<Option<u64>, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(exe)
        .args(arguments)
        .output();
    let Ok(output) = run else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|l| l.split_once("Collected : "));
    let (_, count) = counted.ok_or_else(|| format!("valgrind: {}: {text}", output.status))?;
    let parsed = count.trim().parse();
    parsed.map(Some).map_err(|e| format!("{count}: {e}"))
}
