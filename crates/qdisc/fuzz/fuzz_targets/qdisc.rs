//! Any queue keeps the contract, whatever happens to it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_qdisc::testing::fuzz::Case;

fuzz_target!(|bytes: &[u8]| {
    Case::decode(bytes).check();
});
