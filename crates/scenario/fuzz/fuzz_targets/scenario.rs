//! Any text is refused in one line, or read as a scenario that survives being written.

#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    support::check_text(text);
});
