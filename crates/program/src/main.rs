//! The program `sojourn` without Python: one file, which runs where neither Python nor its packages are.
//!
//! It runs scenario files, lists the queues and, on Linux, runs programs behind a queue. Results that it saves are those
//! of the Python package, which compares, draws and reports them.

mod arguments;
#[cfg(target_os = "linux")]
mod live;
mod run;
mod signals;
mod summary;

use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use arguments::{Asked, Problem};

const USAGE: &str = "\
Queue disciplines in simulation and with real packets. This is the program without Python.

Usage:
  sojourn run FILE [--out DIR] [--jobs N] [--seed N] [--on live] [--force]
  sojourn live [--link RATES] [--rtt TIME] [--qdisc QDISC] [--ecn] [--out DIR] -- PROGRAM...
  sojourn qdiscs [NAME]

Options:
  --out DIR      Directory to save the result in, as the Python package reads it; created if needed.
  --jobs N       Runs at once; as many as there are processors by default.
  --seed N       Seed of the first run, instead of that of the file.
  --on live      Run with real packets (Linux).
  --force        Replace an existing result.
  --link RATES   Down/up rates of the line, such as 10/1mbit, or one rate for both directions [default: 10mbit]
  --rtt TIME     Round-trip time with empty queues [default: 50ms]
  --qdisc QDISC  Queue for both directions, in tc syntax [default: fq_codel]
  --ecn          Negotiate ECN on all connections.
  --version      Print the version.

$SOJOURN_SERVER is the address of the other host. Exit codes are 2 for invalid input, 3 for what this machine lacks;
`sojourn live` ends with the exit code of the program. Ctrl-C ends `sojourn run` with the runs that have finished (130).
";

fn main() -> ExitCode {
    let answer = arguments::parse(std::env::args_os().skip(1)).and_then(|asked| match asked {
        Asked::Help => Ok((USAGE.to_owned(), 0)),
        Asked::Version => Ok((run::version(), 0)),
        Asked::Queues(name) => Ok((queues(name.as_deref())?, 0)),
        Asked::Run(asked) => run::run(&asked),
        #[cfg(target_os = "linux")]
        Asked::Live(asked) => live::live(&asked).map(|status| (String::new(), status)),
        #[cfg(not(target_os = "linux"))]
        Asked::Live(_) => Err(Problem::environment("live runs need Linux")),
    });
    let (text, status) = answer.unwrap_or_else(|problem| {
        eprintln!("sojourn: {}", problem.message);
        (String::new(), problem.status)
    });
    match io::stdout().write_all(text.as_bytes()) {
        // The reader, such as `head`, has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(status),
        Err(error) => {
            eprintln!("sojourn: standard output: {error}");
            ExitCode::from(arguments::ENVIRONMENT)
        }
        Ok(()) => ExitCode::from(status),
    }
}

/// The queues, one on a line, or the parameters of one.
fn queues(name: Option<&str>) -> Result<String, Problem> {
    let mut all = sojourn_qdisc::catalogue().into_iter();
    let Some(name) = name else {
        let lines = all.map(|queue| {
            let note = queue.reconstruction.map_or("", |_| " [R]");
            format!("{:<16}  {}{note}\n", queue.name, queue.summary)
        });
        return Ok(lines.collect::<String>()
            + "\n[R]: the authors' code is not public; a reconstruction\n");
    };
    let Some(queue) = all.find(|queue| queue.name == name) else {
        let message = format!("no queue {name:?}; expected a name that `sojourn qdiscs` lists");
        return Err(Problem::usage(message));
    };
    let note = |what| format!("[R] A reconstruction: {what}\n");
    let head = format!(
        "{}: {}\nSource: {}\n{}",
        queue.name,
        queue.summary,
        queue.source,
        queue.reconstruction.map_or(String::new(), note)
    );
    let parameters = queue.parameters.iter().map(|parameter| {
        let (key, default, range) = (parameter.key, &parameter.default, &parameter.range);
        let meaning = parameter.meaning;
        format!("\n{key} [default: {default}; {range}]\n    {meaning}\n")
    });
    Ok(head + &parameters.collect::<String>())
}
