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

mod cell;
mod compare;
mod markdown;
mod measure;
mod metric;
mod report;
mod sample;
mod series;
mod setup;
mod stacks;
mod truth;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use regex_lite::Regex;

use crate::compare::Place;
use crate::markdown::Yardstick;
use crate::report::{MissesOnly, Score, Tests};
use crate::truth::{Scenario, Truth};

const USAGE: &str = "\
usage: sojourn-parity [options]
  --only REGEX     scenarios whose name matches, such as '^R1.*codel$'
  --kernel VERSION those measured on this kernel, such as 6.12
  --misses         print only the cells that disagree
  --json FILE      write every cell there
  --markdown FILE  write the tables of docs/validation/parity.md there
  --require SHARE  exit with 1 if the score is below it
  --require-half SHARE  the same for the cells within half of the tolerance
  --require-stacks SHARE  the same for each kernel with a congestion control that was added to it
  --stacks         only these kernels and the regression set
  --series NAME    instead: our congestion window and RTT beside the kernel's each 0.5 s
  --list           instead: the names of the scenarios
  --again N        run the scenarios in the kernel instead of the simulator, N repetitions; `sojourn kernel build`
  --record         with --again: write what the kernel did to data/";

struct Options {
    only: Regex,
    kernel: Option<String>,
    misses_only: MissesOnly,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
    require: Option<f64>,
    require_half: Option<f64>,
    require_stacks: Option<f64>,
    stacks_only: bool,
    series: Option<String>,
    list: bool,
    again: Option<usize>,
    record: bool,
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
        kernel: None,
        misses_only: MissesOnly::No,
        json: None,
        markdown: None,
        require: None,
        require_half: None,
        require_stacks: None,
        stacks_only: false,
        series: None,
        list: false,
        again: None,
        record: false,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word}: what?"));
        match word.as_str() {
            "--only" => options.only = Regex::new(&value()?).map_err(|e| e.to_string())?,
            "--misses" => options.misses_only = MissesOnly::Yes,
            "--json" => options.json = Some(value()?.into()),
            "--markdown" => options.markdown = Some(value()?.into()),
            "--kernel" => options.kernel = Some(value()?),
            "--require" => options.require = Some(share(&value()?)?),
            "--require-half" => options.require_half = Some(share(&value()?)?),
            "--require-stacks" => options.require_stacks = Some(share(&value()?)?),
            "--stacks" => options.stacks_only = true,
            "--series" => options.series = Some(value()?),
            "--list" => options.list = true,
            "--again" => {
                let count = value()?;
                options.again = Some(count.parse().map_err(|e| format!("{count}: {e}"))?);
            }
            "--record" => options.record = true,
            _ => return Err(format!("{word}: unknown")),
        }
    }
    Ok(options)
}

fn share(word: &str) -> Result<f64, String> {
    word.parse().map_err(|e| format!("{word}: {e}"))
}

fn answer(options: &Options) -> Result<ExitCode, String> {
    let truth = Truth::load();
    let on_kernel = |s: &&Scenario| options.kernel.as_ref().is_none_or(|k| *k == s.kernel);
    let named = |s: &&Scenario| options.only.is_match(&s.name) && on_kernel(s);
    if options.list {
        for scenario in truth.scenarios.iter().filter(named) {
            println!("{:4} {}", scenario.kernel, scenario.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &options.series {
        let mut scenarios = truth.scenarios.iter();
        let scenario = scenarios
            .find(|s| s.name == *name && on_kernel(s))
            .ok_or_else(|| format!("{name}: no such scenario (--list names them)"))?;
        print!("{}", series::table(&truth, scenario)?);
        return Ok(ExitCode::SUCCESS);
    }
    let wanted: Vec<_> = truth.scenarios.iter().filter(named).collect();
    if let Some(repetitions) = options.again {
        return again(options, &truth, &wanted, repetitions);
    }
    let stacks = stacks::compare(&options.only, options.kernel.as_deref())?;
    let stack_lines = stacks::lines(&stacks, options.misses_only == MissesOnly::No);
    let falls_short = |least: f64| stacks.iter().any(|stack| stack.falls_short(least));
    let stacks_missed = options.require_stacks.is_some_and(falls_short);
    if options.stacks_only {
        print!("{stack_lines}");
        return Ok(ExitCode::from(u8::from(stacks_missed)));
    }
    let comparison = compare::compare(&truth, &wanted, Place::Simulator);
    let score = Score::of(&comparison.cells);
    println!("{}", report::lines(&comparison.cells, options.misses_only));
    println!("{}", report::subtotal_lines(&comparison.cells));
    println!("{}", report::by_controller(&comparison.cells));
    for failure in &comparison.failures {
        println!("failed: {failure}");
    }
    let yardstick = Yardstick {
        one: "6.12",
        other: "6.1",
        cells: compare::kernels(&truth, "6.12", "6.1"),
    };
    let failed = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
    if let Some(path) = &options.json {
        report::write_json(path, &comparison).map_err(|e| failed(path, e))?;
    }
    if let Some(path) = &options.markdown {
        let tables = markdown::sections(&comparison.cells, &yardstick) + &stacks::sections(&stacks);
        report::write_text(path, &tables).map_err(|e| failed(path, e))?;
    }
    println!("{}", report::stricter(&comparison.cells));
    println!("{}", report::tests_line(Tests::of(&comparison.cells)));
    let Yardstick { one, other, cells } = &yardstick;
    println!("{}", report::kernels_line(one, other, Score::of(cells)));
    print!("{stack_lines}");
    println!("{}", report::last_line(score));
    let missed = stacks_missed
        || options.require.is_some_and(|share| score.share() < share)
        || options
            .require_half
            .is_some_and(|share| score.close_share() < share);
    Ok(ExitCode::from(u8::from(missed)))
}

/// Runs scenarios in the kernel that they were measured on, and compares with what it did then.
fn again(
    options: &Options,
    truth: &Truth,
    wanted: &[&Scenario],
    repetitions: usize,
) -> Result<ExitCode, String> {
    if options.record {
        measure::record(truth, wanted, repetitions)?;
        return Ok(ExitCode::SUCCESS);
    }
    let comparison = compare::compare(truth, wanted, Place::Kernel(repetitions));
    println!("{}", report::lines(&comparison.cells, options.misses_only));
    for failure in &comparison.failures {
        println!("failed: {failure}");
    }
    if let Some(path) = &options.json {
        let failed = |e: io::Error| format!("{}: {e}", path.display());
        report::write_json(path, &comparison).map_err(failed)?;
    }
    println!("{}", report::stricter(&comparison.cells));
    println!("{}", report::in_range_line(&comparison.cells));
    let score = Score::of(&comparison.cells);
    println!("{}", report::last_line(score));
    let missed = options.require.is_some_and(|share| score.share() < share);
    Ok(ExitCode::from(u8::from(missed)))
}
