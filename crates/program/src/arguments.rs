//! The command line.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use lexopt::Parser;
use lexopt::prelude::*;

/// Exit codes, as `docs/policy.md` lists them.
pub(crate) const USAGE: u8 = 2;
pub(crate) const ENVIRONMENT: u8 = 3;

/// Why the program ends, in one line.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) status: u8,
}

impl Problem {
    /// The input is wrong.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is the argument of map_err"
    )]
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            status: USAGE,
        }
    }

    /// The machine lacks something.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is the argument of map_err"
    )]
    pub(crate) fn environment(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            status: ENVIRONMENT,
        }
    }
}

impl From<lexopt::Error> for Problem {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(format!("{error}; see sojourn --help"))
    }
}

/// What the user asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
    Version,
    Queues(Option<String>),
    Run(Run),
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "live runs need Linux")
    )]
    Live(Live),
}

/// Where a result goes.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) force: bool,
}

/// `sojourn run`.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) file: PathBuf,
    pub(crate) output: Output,
    pub(crate) jobs: Option<NonZeroUsize>,
    pub(crate) seed: Option<u64>,
    pub(crate) on: Option<String>,
}

/// `sojourn live`.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) down: String,
    pub(crate) up: String,
    pub(crate) rtt: String,
    pub(crate) qdisc: String,
    pub(crate) ecn: bool,
    pub(crate) output: Output,
    pub(crate) command: Vec<String>,
}

/// Reads the command line.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Asked, Problem> {
    let mut parser = Parser::from_args(words);
    let Some(first) = parser.next()? else {
        return Ok(Asked::Help);
    };
    match first {
        Long("help") | Short('h') => Ok(Asked::Help),
        Long("version") => Ok(Asked::Version),
        Value(command) => match command.to_str() {
            Some("run") => run(&mut parser),
            Some("live") => live(&mut parser),
            Some("qdiscs") => queues(&mut parser),
            _ => {
                let message = format!(
                    "no command {:?}; expected run, live or qdiscs; the others need the Python package",
                    command.display()
                );
                Err(Problem::usage(message))
            }
        },
        other => Err(other.unexpected().into()),
    }
}

fn queues(parser: &mut Parser) -> Result<Asked, Problem> {
    let mut name = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Asked::Help),
            Value(value) if name.is_none() => name = Some(value.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Asked::Queues(name))
}

fn run(parser: &mut Parser) -> Result<Asked, Problem> {
    let mut asked = Run::default();
    let mut file = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Asked::Help),
            Long("jobs") => asked.jobs = Some(parser.value()?.parse()?),
            Long("seed") => asked.seed = Some(parser.value()?.parse()?),
            Long("on") => asked.on = Some(parser.value()?.string()?),
            Value(value) if file.is_none() => file = Some(PathBuf::from(value)),
            Long("out") => asked.output.folder = Some(parser.value()?.into()),
            Long("force") => asked.output.force = true,
            other => return Err(other.unexpected().into()),
        }
    }
    asked.file = file.ok_or_else(|| Problem::usage("run: no file; expected sojourn run FILE"))?;
    Ok(Asked::Run(asked))
}

fn live(parser: &mut Parser) -> Result<Asked, Problem> {
    let mut asked = Live {
        down: "10mbit".to_owned(),
        up: "10mbit".to_owned(),
        rtt: "50ms".to_owned(),
        qdisc: "fq_codel".to_owned(),
        ecn: false,
        output: Output::default(),
        command: Vec::new(),
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Asked::Help),
            Long("link") => (asked.down, asked.up) = rates(&parser.value()?.string()?),
            Long("rtt") => asked.rtt = parser.value()?.string()?,
            Long("qdisc") => asked.qdisc = parser.value()?.string()?,
            Long("ecn") => asked.ecn = true,
            Value(program) => {
                asked.command.push(program.string()?);
                for word in parser.raw_args()? {
                    asked.command.push(word.string()?);
                }
            }
            Long("out") => asked.output.folder = Some(parser.value()?.into()),
            Long("force") => asked.output.force = true,
            other => return Err(other.unexpected().into()),
        }
    }
    if asked.command.is_empty() {
        let message = "live: no program; expected sojourn live -- PROGRAM, such as ping -c 3 '$SOJOURN_SERVER'";
        return Err(Problem::usage(message));
    }
    Ok(Asked::Live(asked))
}

/// The rates down and up: `10/1mbit` has one unit for both. The scenario says what is wrong with them.
fn rates(text: &str) -> (String, String) {
    let Some((down, up)) = text.split_once('/') else {
        return (text.to_owned(), text.to_owned());
    };
    let unit = up.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has_unit = down.ends_with(|c: char| c.is_ascii_alphabetic());
    let down = if has_unit {
        down.to_owned()
    } else {
        format!("{down}{unit}")
    };
    (down, up.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|problem| problem.message)
    }

    #[test]
    fn one_unit_is_for_both_rates() {
        for (text, down, up) in [
            ("10/1mbit", "10mbit", "1mbit"),
            ("20mbit/500kbit", "20mbit", "500kbit"),
            ("8mbit", "8mbit", "8mbit"),
        ] {
            assert_eq!(rates(text), (down.to_owned(), up.to_owned()));
        }
    }

    #[test]
    fn the_words_of_a_program_are_its_own() {
        let Ok(Asked::Live(asked)) = parsed("live --qdisc pie --ecn -- ping -c 3 --out x") else {
            panic!("it is a live run");
        };
        assert_eq!(asked.command, ["ping", "-c", "3", "--out", "x"]);
        assert_eq!((asked.qdisc.as_str(), asked.ecn), ("pie", true));
        assert!(asked.output.folder.is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, said) in [
            ("walk", "no command \"walk\"; expected run, live or qdiscs"),
            ("run", "run: no file"),
            ("run a.toml --jobs many", "many"),
            ("run a.toml b.toml", "b.toml"),
            ("run a.toml --fast", "--fast"),
            ("live --link 1mbit", "live: no program"),
        ] {
            let message = parsed(line).expect_err(line);
            assert!(message.contains(said), "{line}: {message}");
        }
    }
}
