//! Writes records to a run store: `run-store-load FOLDER RECORDS BYTES [--report]`.
//!
//! Prints the time and the number of commits. With `--report` it prints the number of committed records
//! continuously and runs until it is killed; the kill tests compare this number with the stored records.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures"
)]

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sojourn_store::{Disk, Key, Kind, RunStore};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, records, bytes, rest @ ..] = &arguments[..] else {
        return Err("expected FOLDER RECORDS BYTES [--report]".into());
    };
    let (records, bytes): (u64, usize) = (records.parse()?, bytes.parse()?);
    let store = RunStore::open(Path::new(folder), Arc::new(Disk))?;
    if rest.iter().any(|argument| argument == "--report") {
        return report(&store, records, bytes);
    }
    let began = Instant::now();
    let writer = store.writer()?;
    for number in 0..records {
        writer.append(Kind::Run, key(number), payload(number, bytes));
    }
    writer.flush();
    if let Some(failure) = writer.failure() {
        return Err(failure.into());
    }
    let (written, syncs) = (began.elapsed(), writer.syncs());
    drop(writer);
    let began = Instant::now();
    let segments = store.select(|_| true)?;
    let found: usize = segments.iter().map(|segment| segment.records().len()).sum();
    println!(
        "{records} records of {bytes} bytes: written in {:.2} s with {syncs} commits; {found} found \
         in {:.2} s",
        written.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

fn report(store: &RunStore, records: u64, bytes: usize) -> Result<(), Box<dyn Error>> {
    let writer = store.writer()?;
    let mut said = 0;
    for number in 0..records {
        writer.append(Kind::Run, key(number), payload(number, bytes));
        let committed = writer.committed();
        if committed > said {
            said = committed;
            println!("{said}");
            std::io::stdout().flush()?;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    writer.flush();
    println!("{}", writer.committed());
    // Ends: whoever started this kills it.
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The key of a record holds its number.
fn key(number: u64) -> Key {
    let mut key = Key::default();
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
}

/// Bytes that differ from those of every other record.
fn payload(number: u64, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().repeat(bytes.div_ceil(8));
    payload.truncate(bytes);
    payload
}
