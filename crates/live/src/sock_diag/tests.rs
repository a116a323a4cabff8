//! The parser of connections on replies made by hand, and on any bytes.

use proptest::prelude::*;

use super::*;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(value.len() + 4)
        .unwrap()
        .to_ne_bytes()
        .to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(body.len() + 16)
        .unwrap()
        .to_ne_bytes()
        .to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A connection from port 5000 to port 80.
fn reply(family: u8, addresses: [&[u8]; 2], control: &[u8], options: u8) -> Vec<u8> {
    let mut head = vec![family, 1, 0, 0];
    head.extend([5_000_u16.to_be_bytes(), 80_u16.to_be_bytes()].concat());
    for address in addresses {
        head.extend(address);
        head.resize(head.len() + 16 - address.len(), 0);
    }
    head.extend([0; 4]);
    head.extend(77_u64.to_ne_bytes());
    head.resize(HEAD, 0);
    head.extend(attribute(8, &[0]));
    head.extend(attribute(INFO, &[1, 0, 0, 0, 0, options, 0x77, 0]));
    head.extend(attribute(CONTROL, control));
    message(BY_FAMILY, &head)
}

fn listed(bytes: &[u8]) -> (Vec<(Connection<'static>, String)>, io::Result<Part>) {
    let mut all = Vec::new();
    let part = read_part(bytes, &mut |found| {
        let nameless = Connection {
            control: "",
            ..found
        };
        // The name is borrowed from the reply.
        let Connection {
            cookie,
            local,
            peer,
            ecn,
            ..
        } = nameless;
        let kept = Connection {
            cookie,
            local,
            peer,
            control: "",
            ecn,
        };
        all.push((kept, found.control.to_owned()));
    });
    (all, part)
}

#[test]
fn the_control_and_the_options_of_connections_are_read() {
    let mapped = Ipv4Addr::new(100, 64, 0, 2).to_ipv6_mapped().octets();
    let mut bytes = reply(2, [&[100, 64, 0, 1], &[100, 64, 0, 2]], b"cubic\0", 0x0F);
    bytes.extend(reply(10, [&mapped, &mapped], b"bbr\0", 0x07));
    bytes.extend(message(DONE, &[0; 4]));
    let (all, part) = listed(&bytes);
    assert_eq!(part.unwrap(), Part::Last);
    let client = Ipv4Addr::new(100, 64, 0, 1).into();
    let server = Ipv4Addr::new(100, 64, 0, 2).into();
    let found = |local, ecn| Connection {
        cookie: 77,
        local: (local, 5_000),
        peer: (server, 80),
        control: "",
        ecn,
    };
    let expected = [
        (found(client, true), "cubic".to_owned()),
        (found(server, false), "bbr".to_owned()),
    ];
    assert_eq!(all, expected);
}

#[test]
fn an_error_of_the_kernel_and_a_cut_part_end_a_dump() {
    for kind in [ERROR, DONE] {
        let missing = message(kind, &(-libc::ENOENT).to_ne_bytes());
        let error = listed(&missing).1.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
    let whole = reply(2, [&[100, 64, 0, 1], &[100, 64, 0, 2]], b"cubic\0", 0);
    for cut in 0..whole.len() {
        let (all, part) = listed(&whole[..cut]);
        assert!(all.is_empty(), "{cut} bytes of a longer message");
        assert_eq!(part.unwrap(), Part::More);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_are_read_beyond_their_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        crate::testing::check_sock_diag(&bytes);
    }

    #[test]
    fn a_changed_byte_of_a_reply_panics_nowhere(at in 0_usize..128, to in any::<u8>()) {
        let mut bytes = reply(2, [&[100, 64, 0, 1], &[100, 64, 0, 2]], b"cubic\0", 0);
        bytes.extend(reply(10, [&[1; 16], &[2; 16]], b"reno\0", 0));
        bytes[at] = to;
        crate::testing::check_sock_diag(&bytes);
    }
}
