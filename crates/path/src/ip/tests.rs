//! The parser of packets on packets made by hand.

use super::*;

/// The checksum of an IPv4 header (RFC 791 §3.1): 0 over a header with a correct one.
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !u16::try_from((folded & 0xFFFF) + (folded >> 16)).unwrap()
}

/// A TCP segment over IPv4 with timestamps and one SACK block.
fn segment() -> Vec<u8> {
    let mut packet = vec![0x45, 0x02, 0, 0, 0, 1, 0x40, 0, 64, TCP, 0, 0];
    packet.extend([100, 64, 0, 1, 100, 64, 0, 2]);
    packet.extend([0x4E, 0x20, 0x80, 0]);
    packet.extend(7_u32.to_be_bytes());
    packet.extend(9_u32.to_be_bytes());
    packet.extend((0xB000 | TcpHeader::ACK).to_be_bytes());
    packet.extend([1, 0, 0, 0, 0, 0]);
    packet.extend([
        1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4, 1, 1, 5, 10, 0, 0, 0, 20, 0, 0, 0, 30,
    ]);
    packet.extend([0; 100]);
    let len = u16::try_from(packet.len()).unwrap();
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn the_headers_of_a_segment_are_read() {
    let packet = segment();
    let parsed = Parsed::of(&packet).unwrap();
    assert_eq!((parsed.len, parsed.payload, parsed.tos), (164, 100, 2));
    assert_eq!(parsed.flow.ports, 0x4E20_8000);
    assert_eq!(
        (parsed.flow.source, parsed.flow.protocol),
        (0x6440_0001, TCP)
    );
    let Transport::Tcp(tcp) = parsed.transport else {
        panic!("{parsed:?}");
    };
    assert_eq!(
        (tcp.seq, tcp.ack, tcp.window, tcp.flags),
        (7, 9, 256, TcpHeader::ACK)
    );
    assert_eq!(tcp.timestamps, Some((3, 4)));
    assert_eq!(tcp.sacks, [(20, 30), (0, 0), (0, 0), (0, 0)]);
    assert!(!tcp.other_options);
    for cut in 0..packet.len() {
        assert_eq!(
            Parsed::of(&packet[..cut]),
            None,
            "{cut} bytes of a longer packet"
        );
    }
}

/// The header of a segment over IPv4 with these bits and options.
fn header_with(flags: u16, options: &[u8]) -> TcpHeader {
    let words = u16::try_from(5 + options.len().div_ceil(4)).unwrap();
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, TCP, 0, 0];
    packet.extend([100, 64, 0, 1, 100, 64, 0, 2, 0x4E, 0x20, 0x80, 0]);
    packet.extend([0; 8]);
    packet.extend((words << 12 | flags).to_be_bytes());
    packet.extend([0; 6]);
    packet.extend(options);
    packet.resize(20 + 4 * usize::from(words), 0);
    let len = u16::try_from(packet.len()).unwrap();
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    match Parsed::of(&packet).unwrap().transport {
        Transport::Tcp(header) => header,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_flags_of_accurate_ecn_and_the_reserved_bits_are_read() {
    for bit in [0, TcpHeader::AE, 512, 1_024, 2_048] {
        let flags = TcpHeader::ACK | bit;
        assert_eq!(header_with(flags, &[]).flags, flags);
    }
}

#[test]
fn options_that_the_ack_filter_does_not_know_are_named() {
    let mut md5 = vec![19, 18];
    md5.extend([7; 16]);
    let mut four_blocks = vec![1, 1, 5, 34];
    four_blocks.extend((1..9_u32).flat_map(u32::to_be_bytes));
    for known in [
        vec![],
        vec![1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4],
        md5,
        four_blocks.clone(),
        // The end of the list, and an option of no length: what follows is not read.
        vec![0, 172, 8],
        vec![1, 1, 1, 172, 0, 0, 0, 0],
    ] {
        assert!(
            !header_with(TcpHeader::ACK, &known).other_options,
            "{known:?}"
        );
    }
    for unknown in [
        // Accurate ECN, the largest segment, a timestamp and blocks of a wrong length, fast open, experiments.
        vec![172, 8, 0, 0, 1, 0, 0, 5],
        vec![174, 2, 1, 1],
        vec![2, 4, 5, 180],
        vec![8, 6, 0, 0, 0, 3],
        vec![5, 6, 0, 0, 0, 3],
        vec![1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4, 34, 2, 1, 1],
        vec![254, 4, 0xF9, 0x89],
    ] {
        assert!(
            header_with(TcpHeader::ACK, &unknown).other_options,
            "{unknown:?}"
        );
    }
    let blocks = header_with(TcpHeader::ACK, &four_blocks).sacks;
    assert_eq!(blocks, [(1, 2), (3, 4), (5, 6), (7, 8)]);
}

#[test]
fn what_is_behind_an_ipv6_extension_header_is_read_and_of_a_later_fragment_is_not() {
    let mut packet = vec![0x6A, 0x80, 0, 0, 0, 24, 60, 64];
    packet.extend([0xFD; 16]);
    packet.extend([0xFE; 16]);
    packet.extend([UDP, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend([0, 53, 0, 99, 0, 16, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0]);
    let parsed = Parsed::of(&packet).unwrap();
    assert_eq!(
        (parsed.tos, parsed.flow.protocol, parsed.payload),
        (0xA8, UDP, 8)
    );
    assert_eq!(
        (parsed.flow.ports, parsed.transport),
        (0x35_0063, Transport::QuicLong)
    );
    packet[6] = 44;
    packet[42..44].copy_from_slice(&(1_u16 << 3).to_be_bytes());
    let parsed = Parsed::of(&packet).unwrap();
    assert_eq!((parsed.flow.ports, parsed.transport), (0, Transport::Other));
}

#[test]
fn a_mark_keeps_the_checksum_correct_and_changes_nothing_else() {
    for tos in 0..=u8::MAX {
        let (before, mut packet) = (segment(), segment());
        write_tos(&mut packet, tos);
        assert_eq!(checksum(&packet[..20]), 0, "tos {tos}");
        assert_eq!(Parsed::of(&packet).unwrap().tos, tos);
        assert_eq!(
            (&packet[2..10], &packet[12..]),
            (&before[2..10], &before[12..])
        );
        let mut ipv6 = [0x6F; 48];
        write_tos(&mut ipv6, tos);
        assert_eq!((ipv6[0] & 0xF) << 4 | ipv6[1] >> 4, tos);
        assert_eq!((ipv6[0] >> 4, ipv6[1] & 0xF), (6, 0xF));
    }
}

#[test]
fn a_changed_byte_of_a_segment_panics_nowhere() {
    for at in 0..segment().len() {
        for to in 0..=u8::MAX {
            let mut packet = segment();
            packet[at] = to;
            if let Some(parsed) = Parsed::of(&packet) {
                assert!(parsed.payload <= parsed.len, "{at} {to}: {parsed:?}");
            }
            write_tos(&mut packet, !to);
        }
    }
}
