//! What an enqueue and a dequeue cost in a queue of Sojourn, and in the same queue as a plug-in: `make bench-plugins`.
//!
//! It takes the folder of the libraries of the examples of `sojourn-plugin` and prints a row per queue. Exit code 1 if a
//! plug-in costs over [`MOST_NS`] more. With a queue, or a plug-in after a `+`, and a number of packets, which callgrind
//! may count, it measures nothing.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sojourn_bench::queues::{FEW, Treadmill};
use sojourn_bench::usage;
use sojourn_plugin::host::Plugin;
use sojourn_plugin::{QueueClass as _, register};

/// The most that an enqueue and a dequeue may cost more than built in.
const MOST_NS: f64 = 10.0;
/// The best of these many measurements counts.
const TRIALS: u32 = 25;
const PACKETS: u64 = 1_000_000;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [folder] => compare(Path::new(folder)),
        [folder, queue, packets] => turn(Path::new(folder), queue, packets).map(|()| true),
        _ => Err("plugins FOLDER [QUEUE PACKETS]".to_owned()),
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
    usage::pin();
    println!("| queue | built in | plug-in | more |");
    println!("|---|---:|---:|---:|");
    let mut is_cheap = true;
    for queue in ["pfifo", "codel"] {
        let mut treadmills = [standing(queue)?, standing(&load(folder, queue)?)?];
        let mut best = [f64::MAX; 2];
        // In turns, so that both meet the same load of the machine.
        for _ in 0..TRIALS {
            for (treadmill, best) in treadmills.iter_mut().zip(&mut best) {
                let begun = usage::cpu_seconds();
                treadmill.turn(PACKETS);
                *best = best.min((usage::cpu_seconds() - begun) * 1e9 / PACKETS as f64);
            }
        }
        let [built_in, outside] = best;
        let more = outside - built_in;
        println!("| {queue} | {built_in:.1} ns | {outside:.1} ns | {more:.1} ns |");
        is_cheap &= more <= MOST_NS;
    }
    Ok(is_cheap)
}

fn turn(folder: &Path, queue: &str, packets: &str) -> Result<(), String> {
    let packets = packets.parse();
    let packets = packets.map_err(|_| "expected a number of packets")?;
    let spec = match queue.strip_prefix('+') {
        Some(plugin) => load(folder, plugin)?,
        None => queue.to_owned(),
    };
    standing(&spec)?.turn(packets);
    Ok(())
}

fn standing(spec: &str) -> Result<Treadmill, String> {
    Treadmill::new(spec, FEW, FEW as usize)
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
