//! QUIC of `sojourn-transport` beside quinn-proto: the same transfers over the same paths, both
//! whole and in virtual time.

mod compare;
mod network;
mod ours;
mod outcome;
mod scenarios;
mod stand_in;
mod theirs;

use std::io;
use std::process::ExitCode;

const USAGE: &str = "\
usage: sojourn-quic-parity [--markdown FILE]
  --markdown FILE  write the table of docs/validation/quic.md there and print only what disagrees";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let file = match words[..] {
        [] => None,
        ["--markdown", file] => Some(file),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match answer(file) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("{}: {e}", file.unwrap_or("standard output"));
            ExitCode::from(2)
        }
    }
}

fn answer(file: Option<&str>) -> io::Result<ExitCode> {
    let rows: Vec<_> = scenarios::all().iter().flat_map(compare::rows).collect();
    let off = rows.iter().filter(|row| !row.agrees());
    if let Some(file) = file {
        let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
        let table = format!("# quinn\n\n{}\n{}\n", compare::HEAD, rows.join("\n"));
        std::fs::write(file, table)?;
        for row in off.clone() {
            println!("{row}");
        }
    } else {
        println!("{}", compare::HEAD);
        for row in &rows {
            println!("{row}");
        }
    }
    let off = off.count();
    println!("QUIC: {} of {} numbers agree", rows.len() - off, rows.len());
    Ok(ExitCode::from(u8::from(off > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_go_as_those_of_quinn_do() {
        let rows: Vec<_> = scenarios::all().iter().flat_map(compare::rows).collect();
        assert!(rows.len() > 30, "only {} numbers were compared", rows.len());
        let off = rows.iter().filter(|row| !row.agrees());
        let off: Vec<String> = off.map(ToString::to_string).collect();
        assert!(off.is_empty(), "{}", off.join("\n"));
    }
}
