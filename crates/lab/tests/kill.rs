//! Processes that are killed while they replace a result.
//!
//! `SOJOURN_KILLS` is the number of kills: 100 by default, 500 in `make kills`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "real processes take real time")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use sojourn_lab::{Outcome, Replace};
use sojourn_net::Rng;

mod support;

use support::outcome;

/// Names the directory that [`replaces_a_result_until_it_is_killed`] saves in.
const DIRECTORY: &str = "SOJOURN_TEST_KILLED_IN";

#[test]
#[ignore = "the process that the other test kills"]
fn replaces_a_result_until_it_is_killed() {
    let folder = PathBuf::from(env::var_os(DIRECTORY).unwrap());
    let results = [outcome(1, false), outcome(2, false)];
    for result in results.iter().cycle() {
        result.save(&folder, Replace::Result).unwrap();
    }
}

/// The hidden names in a directory.
fn hidden(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn a_killed_process_leaves_a_complete_result() {
    let kills: u32 = env::var("SOJOURN_KILLS").map_or(100, |kills| kills.parse().unwrap());
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("result");
    let result = outcome(1, false);
    result.save(&folder, Replace::Nothing).unwrap();
    let mut rng = Rng::new(1);
    let mut interrupted = 0;
    for n in 0..kills {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "replaces_a_result_until_it_is_killed",
            ])
            .env(DIRECTORY, &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(10_000 + rng.below(60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = Outcome::load(&folder);
        assert!(
            found.as_ref().is_ok_and(Outcome::is_complete),
            "{n}: {found:?}"
        );
        interrupted += usize::from(!hidden(&folder).is_empty());
        result.save(&folder, Replace::Result).unwrap();
        assert_eq!(hidden(&folder), Vec::<String>::new(), "{n}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "{n}");
    }
    println!("{interrupted} of {kills} kills interrupted a save");
    assert!(interrupted > 0);
}
