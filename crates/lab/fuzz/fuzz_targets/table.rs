//! A result with any bytes for a table is loaded or refused in one line.

#![no_main]

mod saved;

use libfuzzer_sys::fuzz_target;
use sojourn_lab::TableKind;

fuzz_target!(|bytes: &[u8]| {
    if let Some((first, table)) = bytes.split_first() {
        let kind = TableKind::ALL[usize::from(*first) % TableKind::ALL.len()];
        saved::check_table(kind, table);
    }
});
