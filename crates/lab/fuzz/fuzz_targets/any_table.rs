//! A table of any columns, such as those of sweeps, searches and shared stores, is read or refused, and takes
//! no more memory than it may.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_lab::read_table;

/// The memory that a table may take.
const MAX_BYTES: u64 = 1_000_000;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(table) = read_table(bytes.to_vec(), MAX_BYTES) {
        let batches = table.batches().expect("they are in memory");
        let batches = batches.iter();
        let taken = batches.map(|batch| batch.get_array_memory_size()).sum::<usize>();
        assert!(u64::try_from(taken).is_ok_and(|taken| taken <= MAX_BYTES), "{taken}");
    }
});
