//! Running a program behind a queue, with real packets.

use std::sync::atomic::Ordering;

use serde_json::json;
use sojourn_backend::Cancellation;
use sojourn_lab::{Build, Scenario};
use sojourn_live::{Live, Options};
use sojourn_net::Duration;

use crate::arguments::{Live as Asked, Problem};
use crate::run::{claimed, of_backend, saved};
use crate::signals::Signals;
use crate::summary;

/// The longest run of a program.
const LONGEST: &str = "3600s";

/// Runs a program and returns the exit code. Standard output is the program's; the summary goes to standard error.
pub(crate) fn live(asked: &Asked) -> Result<u8, Problem> {
    // It needs a process with one thread.
    sojourn_live::enter_user_namespace().map_err(Problem::environment)?;
    let scenario = Scenario::from_json(&document(asked)).map_err(Problem::usage)?;
    let options = Options {
        in_foreground: true,
        ecn: asked.ecn,
        ..Options::default()
    };
    let live = Live::new(Build::current().commit, options);
    sojourn_lab::check(&live, &scenario).map_err(Problem::usage)?;
    let claim = claimed(&asked.output)?;
    let signals = Signals::receive()?;
    let is_stopped = || signals.ended.load(Ordering::Relaxed);
    let cancellation = Cancellation::new(&is_stopped);
    let taken = || live.last().map_or(Duration::ZERO, |ended| ended.duration);
    let outcome = sojourn_lab::run_while_it_lasts(&live, &scenario, &cancellation, None, taken)
        .map_err(of_backend)?;
    eprint!("{}", summary::of(&outcome));
    saved(&outcome, claim.as_ref())?;
    let of_program = live.last().and_then(|ended| ended.status).unwrap_or(0);
    let of_program = u8::try_from(of_program).unwrap_or(u8::MAX);
    Ok(signals.status().unwrap_or(of_program))
}

/// The scenario of a program behind one link in each direction.
fn document(asked: &Asked) -> String {
    let program = json!({
        "type": "program",
        "name": "program",
        "direction": "down",
        "command": asked.command,
    });
    json!({
        "name": "live",
        "duration": LONGEST,
        "warmup": "0s",
        "rtt": asked.rtt,
        "links": {
            "down": {"rate": asked.down, "qdisc": asked.qdisc},
            "up": {"rate": asked.up, "qdisc": asked.qdisc},
        },
        "traffic": [program],
    })
    .to_string()
}
