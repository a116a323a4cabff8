//! Writers that are killed at random moments.
//!
//! `SOJOURN_KILLS` is the number of kills: 40 by default, 500 in `make test-full`.

#![expect(
    clippy::disallowed_methods,
    reason = "the moments of the kills are to be random"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sojourn_store::{Disk, RunStore};

const BYTES: usize = 3_000;

#[test]
fn a_killed_writer_loses_nothing_that_it_committed() {
    let kills: u32 = std::env::var("SOJOURN_KILLS").map_or(40, |kills| kills.parse().unwrap());
    let (mut most, mut partial) = (0, 0);
    for kill in 0..kills {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Command::new(env!("CARGO_BIN_EXE_run-store-load"))
            .arg(folder.path())
            .args(["2000", &BYTES.to_string(), "--report"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(writer.stdout.take().unwrap());
        let reader = thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines
                .filter_map(|line| line.parse::<usize>().ok())
                .last()
                .unwrap_or(0)
        });
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .subsec_nanos();
        thread::sleep(Duration::from_micros(u64::from(nanos % 500_000)));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let committed = reader.join().unwrap();

        let store = RunStore::open(folder.path(), Arc::new(Disk)).unwrap();
        let segments = store.select(|_| true).unwrap();
        let mut found = 0;
        for segment in &segments {
            for record in segment.records() {
                let payload = segment.read(record).unwrap();
                let number = u64::from_le_bytes(record.key()[..8].try_into().unwrap());
                assert_eq!(number, found as u64, "kill {kill}: the order");
                assert_eq!(payload.len(), BYTES, "kill {kill}");
                let wanted = number.to_le_bytes();
                assert!(
                    payload.chunks_exact(8).all(|chunk| chunk == wanted),
                    "kill {kill}"
                );
                found += 1;
            }
            let whole = 16 + found * (64 + BYTES);
            let length = fs::metadata(segment.path()).unwrap().len();
            assert_eq!(length, whole as u64, "kill {kill}: a torn tail stays");
        }
        assert!(
            found >= committed,
            "kill {kill}: {committed} committed, {found} found"
        );
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert!(left <= segments.len() + 1, "kill {kill}: {left} files");
        most = most.max(committed);
        partial += usize::from(0 < found && found < 2_000);
    }
    // Else the test would only have seen writers that had not begun or had ended.
    assert!(
        most > 0 && partial > 0,
        "{most} committed, {partial} partial"
    );
}
