//! A result with any manifest is loaded or refused in one line.

#![no_main]

mod saved;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    saved::check_manifest(bytes);
});
