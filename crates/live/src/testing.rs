//! Properties of every packet, for the fuzzer and the tests.

use crate::frame::{Parsed, write_tos};

/// Reads bytes as a packet, changes its DSCP and ECN, and reads it again.
///
/// # Panics
/// If a parsed field exceeds the bytes, or the change alters anything else.
pub fn check_frame(bytes: &[u8]) {
    let Some(parsed) = Parsed::of(bytes) else {
        // Bytes that are no packet are left alone or changed within their bounds.
        return write_tos(&mut bytes.to_vec(), 0xFF);
    };
    assert!(usize::from(parsed.len) <= bytes.len(), "{parsed:?}");
    assert!(parsed.payload <= parsed.len, "{parsed:?}");
    let mut changed = bytes.to_vec();
    write_tos(&mut changed, !parsed.tos);
    let again = Parsed::of(&changed).expect("a packet stays one");
    let tos = !parsed.tos;
    assert_eq!(again, Parsed { tos, ..parsed });
    write_tos(&mut changed, parsed.tos);
    let header_is_same = |at: usize| at == 10 || at == 11 || changed[at] == bytes[at];
    assert!(
        (0..bytes.len()).all(header_is_same),
        "only the checksum may differ"
    );
}
