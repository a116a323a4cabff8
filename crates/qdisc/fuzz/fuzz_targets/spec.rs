//! What is read of a text is displayed so that it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sojourn_qdisc::QdiscSpec;

fuzz_target!(|text: &str| {
    if let Ok(spec) = QdiscSpec::parse(text) {
        assert_eq!(QdiscSpec::parse(&spec.to_string()), Ok(spec));
    }
});
