//! `sojourn-bench`: speed and memory of the simulator (S1-S5), cost of the queues (S6).

mod child;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use sojourn_bench::dumbbell::{DUMBBELLS, Dumbbell, MANY_FLOWS, TRANSPORTS};
use sojourn_bench::{queues, usage, web};
use sojourn_net::Duration;

use crate::table::Report;

const USAGE: &str = "\
usage: sojourn-bench [options]
  --only LIST            of S1 to S6, slot, idle, web, web3 and worst, such as S1,S3
  --json FILE            output file [target/bench.json]
  --runs N               number of runs, of which the best counts [9]
  --profile S3           only run this scenario, for a profiler; also: web, tcp, quic, bbr,
                         dualpi2, prague, wifi, series, thousand, many_codel, many_fq_codel, short,
                         short_drr
  --repeat N             number of repetitions with --profile [1]
  --seconds N            simulated time with --profile, if not all of the scenario's
  --one NAME             measure once in this process and print one line of JSON";

struct Options {
    only: Option<Vec<String>>,
    json: PathBuf,
    runs: u32,
    profile: Option<String>,
    repeat: u32,
    seconds: Option<u32>,
    one: Option<String>,
    packets: Option<u64>,
}

fn main() -> ExitCode {
    let done = options(std::env::args().skip(1)).and_then(|options| run(&options));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        only: None,
        json: "target/bench.json".into(),
        runs: 9,
        profile: None,
        repeat: 1,
        seconds: None,
        one: None,
        packets: None,
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word}: what?"))?;
        let number = || value.parse::<u32>().map_err(|e| format!("{value}: {e}"));
        match word.as_str() {
            "--only" => options.only = Some(value.split(',').map(str::to_owned).collect()),
            "--json" => options.json = value.into(),
            "--runs" => options.runs = number()?,
            "--profile" => options.profile = Some(value),
            "--repeat" => options.repeat = number()?,
            "--seconds" => options.seconds = Some(number()?),
            "--one" => options.one = Some(value),
            "--packets" => options.packets = Some(u64::from(number()?)),
            _ => return Err(format!("{word}: unknown")),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<(), String> {
    if let Some(name) = &options.one {
        usage::pin();
        println!("{}", child::one(name, options.packets)?);
        return Ok(());
    }
    if let Some(name) = &options.profile {
        let named = || Dumbbell::named(name).ok_or_else(|| format!("{name}: no such scenario"));
        let mut config = match name.as_str() {
            "web" => web::small()?,
            _ => named()?.config(),
        };
        if let Some(seconds) = options.seconds {
            config.duration = Duration::from_secs(seconds.into());
        }
        for _ in 0..options.repeat {
            child::simulate(&config)?;
        }
        return Ok(());
    }
    let wanted = |name: &str| {
        let only = options.only.as_ref();
        only.is_none_or(|names| names.iter().any(|n| n == name))
    };
    let mut report = Report::default();
    if DUMBBELLS.iter().any(|d| wanted(d.name)) {
        table::head();
    }
    for dumbbell in DUMBBELLS.iter().filter(|d| wanted(d.name)) {
        let best = child::best_of(options.runs, dumbbell.name)?;
        table::dumbbell(dumbbell, &best);
        report.dumbbells.insert(dumbbell.name, best);
    }
    for dumbbell in DUMBBELLS.iter().filter(|d| wanted(d.name)) {
        let count = child::instructions_of_run(dumbbell.name)?;
        if let Some(run) = report.dumbbells.get_mut(dumbbell.name) {
            run.instructions_per_packet = count.map(|n| n as f64 / run.delivered as f64);
            table::instructions(dumbbell.name, run.instructions_per_packet);
        }
    }
    if wanted("idle") {
        let idle = child::idle()?;
        table::idle(&idle);
        report.idle_flow = Some(idle);
    }
    if wanted("web") {
        let web = child::web("web")?;
        table::web("web", &web);
        report.web_connections = Some(web);
    }
    if wanted("web3") {
        let web = child::web("web3")?;
        table::web("web3", &web);
        report.web3_connections = Some(web);
    }
    if wanted("S6") {
        table::queues_head();
        for kind in queues::kinds() {
            let cost = child::queue(kind)?;
            table::queue(kind, &cost);
            report.queues.insert(kind, cost);
        }
    }
    if wanted("worst") {
        worst(options.runs, &mut report)?;
    }
    if wanted("slot") {
        for spec in ["predict", "predict compact"] {
            let ns = child::slot(spec)?;
            table::slot(spec, ns);
            report.slots.insert(spec, ns);
        }
    }
    write(&options.json, &report).map_err(|e| format!("{}: {e}", options.json.display()))
}

/// The cases that cost most; instructions are counted where a run of callgrind takes seconds.
fn worst(runs: u32, report: &mut Report) -> Result<(), String> {
    let cases = [&TRANSPORTS[..], &MANY_FLOWS].concat();
    for case in &cases {
        let mut best = child::best_of(runs, case.name)?;
        if TRANSPORTS.contains(case) {
            let count = child::instructions_of_run(case.name)?;
            best.instructions_per_packet = count.map(|n| n as f64 / best.delivered as f64);
        }
        report.worst.insert(case.name, best);
    }
    let short_ms = child::short_run(runs)?;
    table::worst(&cases, &report.worst, short_ms);
    report.short_run_ms = Some(short_ms);
    Ok(())
}

/// Readers never see half a file.
fn write(path: &Path, report: &Report) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let partial = path.with_extension("partial");
    fs::write(&partial, serde_json::to_string_pretty(report)? + "\n")?;
    fs::rename(partial, path)
}
