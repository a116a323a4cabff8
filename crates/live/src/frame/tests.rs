//! Buffers, and the size of a frame.

use proptest::prelude::*;

use super::*;

#[test]
fn the_ethernet_header_counts_as_in_the_simulator() {
    let parsed = Parsed {
        len: 164,
        ..Frame::NONE.parsed
    };
    assert_eq!(Frame::new(parsed, 0, 0, Instant::ZERO).size(), Bytes(178));
}

#[test]
fn a_buffer_is_free_again_after_its_last_handle() {
    let mut pool = Pool::new(16, 2);
    let (a, b) = (pool.take().expect("one"), pool.take().expect("two"));
    assert_ne!(a, b);
    assert_eq!(pool.take(), None, "two at most");
    pool.bytes_mut(a).fill(1);
    pool.bytes_mut(b).fill(2);
    assert_eq!(pool.bytes_mut(a)[15], 1);
    let lent = pool.lend(a);
    assert_eq!((pool.bytes_mut(a).len(), lent.len()), (0, 16));
    pool.give_back(a, lent);
    assert_eq!(pool.bytes_mut(a)[15], 1);
    assert!(!pool.is_shared(a));
    pool.retain(a);
    assert!(pool.is_shared(a));
    pool.release(a);
    assert_eq!((pool.take(), pool.used()), (None, 2));
    pool.release(a);
    assert_eq!((pool.take(), pool.used()), (Some(a), 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_are_read_beyond_their_end(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in prop::sample::select(vec![0x45_u8, 0x4F, 0x60, 0x6F, 0x00]),
        protocol in any::<u8>(),
        tos in any::<u8>(),
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        if let Some(field) = bytes.get_mut(9) {
            *field = protocol;
        }
        // Lengths that fit are rare by chance.
        if bytes.len() > 5 && version >> 4 == 4 {
            let len = u16::try_from(bytes.len()).unwrap();
            bytes[2..4].copy_from_slice(&len.to_be_bytes());
        }
        crate::testing::check_frame(&bytes);
        write_tos(&mut bytes, tos);
    }
}
