//! The readers of congestion windows in Rust, C and Go find no difference in a file that is played back, and the first
//! row from which a player's windows are one segment larger.

#[expect(unreachable_pub, reason = "a file for use in other programs")]
#[path = "../readers/windows.rs"]
mod reader;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{compile, here, output};
use reader::{Window, check};

/// The row from which a wrong player's windows are larger.
const FROM: usize = 20;
/// More rows than a file has.
const NEVER: usize = 100_000;

fn windows(path: &Path) -> Vec<Window> {
    let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(
        json["schema"],
        "sojourn-window-vector/1",
        "{}",
        path.display()
    );
    let rows = json["events"].as_array().unwrap().iter();
    rows.filter(|row| row[1] == "window")
        .map(|row| {
            (
                row[0].as_u64().unwrap(),
                row[2].as_u64().unwrap(),
                row[3].as_u64(),
            )
        })
        .collect()
}

fn files() -> Vec<PathBuf> {
    let files = fs::read_dir(here().join("windows")).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 18);
    files
}

fn one() -> PathBuf {
    here().join("windows/one20.json")
}

/// What plays a file back.
fn player(kernel: &[Window], from: usize) -> Vec<Window> {
    let rows = kernel.iter().enumerate();
    rows.map(|(n, &(at, cwnd, ssthresh))| (at, cwnd + u64::from(n >= from), ssthresh))
        .collect()
}

/// What a reader says of the wrong player.
fn first_difference() -> String {
    let (at, cwnd, ssthresh) = windows(&one())[FROM];
    let (more, ssthresh) = (cwnd + 1, ssthresh.unwrap_or(0));
    format!(
        "at {at} us: expected window {cwnd} with threshold {ssthresh}, got window {more} with threshold {ssthresh}"
    )
}

#[test]
fn rust() {
    for path in files() {
        let kernel = windows(&path);
        assert!(kernel.len() > 1, "{path:?}");
        let difference = check(&kernel, &player(&kernel, NEVER), u64::MAX);
        assert_eq!(difference, None, "{path:?}");
    }
    let kernel = windows(&one());
    let wrong = player(&kernel, FROM);
    assert_eq!(check(&kernel, &wrong, u64::MAX), Some(first_difference()));
    assert_eq!(check(&kernel, &wrong, kernel[FROM].0 - 1), None);
    let nothing = check(&kernel, &[], u64::MAX).unwrap();
    assert!(
        nothing.ends_with("got window 0 with threshold 0"),
        "{nothing}"
    );
}

/// Runs a player in another language; the file is its input or, of `by_name`, an argument.
fn play(program: &Path, by_name: bool) {
    let run = |path: &Path, from: usize| {
        let mut command = Command::new(program);
        command.arg(from.to_string());
        if by_name {
            command.arg(path);
        } else {
            command.stdin(File::open(path).unwrap());
        }
        output(&mut command).trim().to_owned()
    };
    for path in files() {
        let rows = windows(&path).len().to_string();
        assert_eq!(run(&path, NEVER), rows, "{}", path.display());
    }
    let rows = windows(&one()).len();
    assert_eq!(run(&one(), FROM), format!("{rows} {}", first_difference()));
}

#[test]
fn c() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("windows");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
    cc.arg(&program).arg(here().join("ours/windows.c"));
    if compile("C", &mut cc) {
        play(&program, false);
    }
}

#[test]
fn go() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("windows");
    let mut go = Command::new("go");
    go.current_dir(here()).args(["build", "-o"]).arg(&program);
    go.arg("./ours/windows").env("GOTOOLCHAIN", "local");
    go.env(
        "GOCACHE",
        crate::library().ancestors().nth(2).unwrap().join("go"),
    );
    if compile("Go", go.env("GOFLAGS", "-mod=mod")) {
        play(&program, true);
    }
}
