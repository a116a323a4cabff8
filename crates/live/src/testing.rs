//! Properties of every packet and of every reply of the kernel, for the fuzzer and the tests.

use crate::sock_diag::read_part;
use sojourn_path::ip::{Parsed, write_tos};

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

/// Reads bytes as a part of the kernel's list of TCP connections.
///
/// # Panics
/// If a connection has no congestion control, or there are more of them than the bytes have room for.
pub fn check_sock_diag(bytes: &[u8]) {
    let mut found = 0;
    // Errors of the kernel are in the bytes, too.
    let _ = read_part(bytes, &mut |connection| {
        assert!(!connection.control.is_empty(), "{connection:?}");
        found += 1;
    });
    assert!(
        found * 88 <= bytes.len(),
        "{found} in {} bytes",
        bytes.len()
    );
}
