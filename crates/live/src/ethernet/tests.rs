use proptest::prelude::*;

use super::*;

const TCP_OVER_IPV4: Offload = Offload {
    checksum: Some((34, 16)),
    split: Some(Split {
        size: 1_000,
        is_tcp: true,
        has_ecn: true,
    }),
};

/// A frame of TCP over IPv4 or IPv6 with this payload, whose checksums are left to the device.
fn tcp(payload: &[u8], is_ipv6: bool, flags: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let length = u16::try_from(20 + payload.len()).unwrap();
    if is_ipv6 {
        frame.extend([0x86, 0xDD, 0x60, 2, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([6, 64]);
        frame.extend([0xFD; 16]);
        frame.extend([0xFC; 16]);
    } else {
        frame.extend([0x08, 0x00, 0x45, 2]);
        frame.extend((20 + length).to_be_bytes());
        frame.extend([0xFF, 0xFF, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    frame.extend([0x1F, 0x90, 0xC3, 0x50]);
    frame.extend(0xFFFF_FF00_u32.to_be_bytes());
    frame.extend([0, 0, 0, 9, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    frame
}

/// Whether the checksums of a segment are valid: they and what they cover add up to zero.
fn is_valid(segment: &[u8], ip: usize, transport: usize, is_ipv6: bool) -> bool {
    let addresses = if is_ipv6 {
        ip + 8..ip + 40
    } else {
        ip + 12..ip + 20
    };
    let protocol = segment[if is_ipv6 { ip + 6 } else { ip + 9 }];
    let pseudo =
        sum_of(&segment[addresses]) + u64::from(protocol) + (segment.len() - transport) as u64;
    let header_is_valid = is_ipv6 || checksum(0, &segment[ip..transport]) == 0;
    header_is_valid && checksum(pseudo, &segment[transport..]) == 0
}

#[test]
fn a_merged_frame_of_tcp_is_split_as_its_sender_would_have_sent_it() {
    const FIN_PUSH_ACK_CWR: u8 = 0x99;
    let payload: Vec<u8> = (0..2_500_u16).map(|n| n.to_be_bytes()[1]).collect();
    for is_ipv6 in [false, true] {
        let frame = tcp(&payload, is_ipv6, FIN_PUSH_ACK_CWR);
        let transport = if is_ipv6 { 54 } else { 34 };
        let start = u16::try_from(transport).unwrap();
        let offload = Offload {
            checksum: Some((start, 16)),
            ..TCP_OVER_IPV4
        };
        let segments = Segments::of(&frame, &offload).unwrap();
        assert_eq!(segments.count(), 3);
        let mut again: Vec<u8> = Vec::new();
        for (n, flags) in [0x90, 0x10, 0x19].into_iter().enumerate() {
            let mut buffer = [0; 1_600];
            let length = segments.write(n, &mut buffer).unwrap();
            let segment = &buffer[..length];
            assert!(is_valid(segment, 14, transport, is_ipv6), "segment {n}");
            let read = read(segment).unwrap();
            assert!(read.is_ip);
            assert_eq!(usize::from(read.parsed.len), length - 14);
            let Transport::Tcp(header) = read.parsed.transport else {
                panic!("{:?}", read.parsed);
            };
            let passed = u32::try_from(n * 1_000).unwrap();
            assert_eq!(header.seq, 0xFFFF_FF00_u32.wrapping_add(passed));
            assert_eq!(header.flags, flags);
            again.extend(&segment[transport + 20..]);
        }
        assert_eq!(again, payload);
        assert_eq!(segments.write(3, &mut [0; 1_600]), None);
    }
}

#[test]
fn all_segments_keep_a_bit_of_accurate_ecn() {
    const ACK_CWR: u8 = 0x90;
    let frame = tcp(&[7; 2_500], false, ACK_CWR);
    let flags_with = |kind| {
        // The checksum from byte 34 on, at 16, and segments of 1,000 bytes.
        let mut header = [0; Offload::LENGTH];
        (header[0], header[1]) = (1, kind);
        for (at, value) in [(4, 1_000_u16), (6, 34), (8, 16)] {
            header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        let segments = Segments::of(&frame, &Offload::of(header).unwrap()).unwrap();
        [0, 1, 2].map(|n| {
            let mut buffer = [0; 1_600];
            segments.write(n, &mut buffer).unwrap();
            buffer[34 + 13]
        })
    };
    assert_eq!(flags_with(0x01), [ACK_CWR; 3]);
    assert_eq!(flags_with(0x81), [ACK_CWR, 0x10, 0x10]);
}

#[test]
fn a_merged_frame_of_udp_is_split_into_datagrams() {
    let mut frame = tcp(&[], false, 0)[..34].to_vec();
    frame[23] = 17;
    frame.extend([0x1F, 0x90, 0xC3, 0x50, 0, 0, 0, 0]);
    frame.extend([7; 1_201]);
    let offload = Offload {
        checksum: Some((34, 6)),
        split: Some(Split {
            size: 600,
            is_tcp: false,
            has_ecn: false,
        }),
    };
    let segments = Segments::of(&frame, &offload).unwrap();
    let mut buffer = [0; 700];
    let lengths: Vec<_> = (0..segments.count())
        .map(|n| {
            let length = segments.write(n, &mut buffer).unwrap();
            assert!(is_valid(&buffer[..length], 14, 34, false));
            u16::from_be_bytes([buffer[38], buffer[39]])
        })
        .collect();
    assert_eq!(lengths, [608, 608, 9]);
}

#[test]
fn a_frame_in_a_tunnel_is_not_split() {
    let frame = tcp(&[0; 3_000], false, 0x10);
    let inner = Offload {
        checksum: Some((84, 16)),
        ..TCP_OVER_IPV4
    };
    assert!(Segments::of(&frame, &inner).is_none());
}

#[test]
fn the_checksum_that_a_sender_left_to_its_device_is_written() {
    let mut frame = tcp(b"odd", false, 0x10);
    // The kernel leaves the sum of the pseudo header in the field.
    let pseudo = sum_of(&frame[26..34]) + 6 + 23;
    frame[50..52].copy_from_slice(&(!checksum(pseudo, &[])).to_be_bytes());
    assert!(complete(&mut frame, (34, 16)));
    assert_eq!(checksum(pseudo, &frame[34..]), 0);
    assert!(!complete(&mut frame, (34, 40)));
}

#[test]
fn a_tag_is_put_back_and_read() {
    let frame = tcp(b"data", false, 0x10);
    let mut buffer = frame.clone();
    buffer.resize(100, 0);
    let vlan = Vlan {
        protocol: 0x8100,
        control: 0x2007,
    };
    let length = insert(&mut buffer, frame.len(), vlan);
    assert_eq!(length, frame.len() + 4);
    assert_eq!(buffer[..16], [&frame[..12], &[0x81, 0, 0x20, 7]].concat());
    let tagged = read(&buffer[..length]).unwrap();
    assert_eq!((tagged.header, tagged.is_ip), (18, true));
    assert_eq!(tagged.parsed, read(&frame).unwrap().parsed);
    assert_eq!(insert(&mut buffer, 98, vlan), 98, "no room for a tag");
}

#[test]
fn what_is_not_ip_is_one_flow_per_pair_of_addresses() {
    let mut arp = vec![0xFF; 6];
    arp.extend([2, 0, 0, 0, 0, 2, 0x08, 0x06, 0, 1]);
    arp.resize(60, 0);
    let found = read(&arp).unwrap();
    assert!(!found.is_ip && found.parsed.is_multicast);
    assert_eq!((found.parsed.len, found.parsed.flow.ports), (46, 0x0806));
    assert_eq!(found.parsed.flow.source, 0x0200_0000_0002);
    // Not the version of IP that its protocol says.
    let mut damaged = tcp(&[], false, 0);
    damaged[14] = 0x65;
    assert!(!read(&damaged).unwrap().is_ip);
    assert!(read(&arp[..13]).is_none());
}

proptest! {
    #[test]
    fn no_bytes_are_read_or_written_beyond_their_end(
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
        header in any::<[u8; 10]>(),
        is_ip in any::<bool>(),
        room in 0_usize..200,
    ) {
        if is_ip && frame.len() > 15 {
            frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        }
        let _ = read(&frame);
        if let Some(offload) = Offload::of(header) {
            if let Some(at) = offload.checksum {
                complete(&mut frame.clone(), at);
            }
            if let Some(segments) = Segments::of(&frame, &offload) {
                for n in 0..=segments.count() {
                    let length = segments.write(n, &mut vec![0; room]);
                    prop_assert!(length.is_none_or(|length| length <= room));
                }
            }
        }
        let vlan = Vlan { protocol: 0x8100, control: 1 };
        let length = frame.len();
        prop_assert!(insert(&mut frame, length, vlan) == length);
    }
}
