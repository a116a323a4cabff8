//! Does the simulator predict the Linux kernel?
//!
//! Runs Sojourn on the scenarios the kernel was measured in (`data/`) and compares goodput, delays,
//! drops and completion times, cell by cell. `docs/validation/parity.md` says what counts as agreement.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "measurements of minutes and megabits, for display and comparison within per cents"
)]

mod compare;
mod markdown;
mod metric;
mod report;
mod series;
mod setup;
mod truth;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use regex_lite::Regex;

use crate::report::{MissesOnly, Score};
use crate::truth::{Scenario, Truth};

const USAGE: &str = "\
usage: sojourn-parity [options]
  --only REGEX     scenarios whose name matches, such as '^R1.*codel$'
  --misses         print only the cells that disagree
  --json FILE      write every cell there
  --markdown FILE  write the tables of docs/validation/parity.md there
  --require SHARE  exit with 1 if the score is below it
  --series NAME    instead: our congestion window and RTT beside the kernel's each 0.5 s
  --list           instead: the names of the scenarios";

struct Options {
    only: Regex,
    misses_only: MissesOnly,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
    require: Option<f64>,
    series: Option<String>,
    list: bool,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(e) => {
            eprintln!("{e}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match answer(&options) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        only: Regex::new("").expect("the empty expression matches all"),
        misses_only: MissesOnly::No,
        json: None,
        markdown: None,
        require: None,
        series: None,
        list: false,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word}: what?"));
        match word.as_str() {
            "--only" => options.only = Regex::new(&value()?).map_err(|e| e.to_string())?,
            "--misses" => options.misses_only = MissesOnly::Yes,
            "--json" => options.json = Some(value()?.into()),
            "--markdown" => options.markdown = Some(value()?.into()),
            "--require" => {
                let share = value()?;
                let parsed = share.parse().map_err(|e| format!("{share}: {e}"))?;
                options.require = Some(parsed);
            }
            "--series" => options.series = Some(value()?),
            "--list" => options.list = true,
            _ => return Err(format!("{word}: unknown")),
        }
    }
    Ok(options)
}

fn answer(options: &Options) -> Result<ExitCode, String> {
    let truth = Truth::load();
    let named = |s: &&Scenario| options.only.is_match(&s.name);
    if options.list {
        for scenario in truth.scenarios.iter().filter(named) {
            println!("{}", scenario.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &options.series {
        let mut scenarios = truth.scenarios.iter();
        let scenario = scenarios
            .find(|s| s.name == *name)
            .ok_or_else(|| format!("{name}: no such scenario (--list names them)"))?;
        print!("{}", series::table(&truth, scenario)?);
        return Ok(ExitCode::SUCCESS);
    }
    let wanted: Vec<_> = truth.scenarios.iter().filter(named).collect();
    let comparison = compare::compare(&wanted);
    let score = Score::of(&comparison.cells);
    println!("{}", report::lines(&comparison.cells, options.misses_only));
    println!("{}", report::subtotal_lines(&comparison.cells));
    println!("{}", report::by_controller(&comparison.cells));
    for failure in &comparison.failures {
        println!("failed: {failure}");
    }
    let failed = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
    if let Some(path) = &options.json {
        report::write_json(path, &truth.kernel, &comparison).map_err(|e| failed(path, e))?;
    }
    if let Some(path) = &options.markdown {
        report::write_text(path, &markdown::sections(&comparison.cells))
            .map_err(|e| failed(path, e))?;
    }
    println!("{}", report::stricter(&comparison.cells));
    println!("{}", report::last_line(score));
    let missed = options.require.is_some_and(|share| score.share() < share);
    Ok(ExitCode::from(u8::from(missed)))
}
