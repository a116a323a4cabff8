//! QUIC of `sojourn-transport` beside quinn-proto: the same transfers over the same paths, both
//! whole and in virtual time.

#[path = "../../../crates/transport/tests/quic_path/mod.rs"]
mod quic_path;

mod compare;
mod outcome;
mod scenarios;
mod stand_in;
mod theirs;

use std::process::ExitCode;

fn main() -> ExitCode {
    println!("| scenario | | here | quinn | tolerance |");
    println!("|---|---|---|---|---|");
    let mut off = 0;
    for scenario in scenarios::all() {
        for row in compare::rows(&scenario) {
            off += u32::from(!row.agrees());
            println!("{row}");
        }
    }
    println!("{off} beyond their tolerance");
    if off == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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
