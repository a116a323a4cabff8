//! Any bytes are read as a list of TCP connections within their bounds, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sojourn_live::testing::check_sock_diag(bytes));
