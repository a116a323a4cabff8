//! Headers of simulated packets: layout, options and checksums.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use sojourn_capture::headers::{Headers, Transport};
use sojourn_capture::{AccurateEcn, Protocol, Synth, Tcp};
use sojourn_net::{Dscp, Ecn, TcpHeader};

fn synth(protocol: Protocol, payload: u16) -> Synth {
    Synth {
        source: "198.18.0.1:49159".parse().unwrap(),
        destination: "198.18.0.2:5001".parse().unwrap(),
        ecn: Ecn::Ect0,
        dscp: Dscp::EF,
        ttl: 64,
        identification: 0xBEEF,
        protocol,
        payload,
    }
}

/// The same over IPv6.
fn synth6(protocol: Protocol, payload: u16) -> Synth {
    Synth {
        source: "[2001:2::1]:49159".parse().unwrap(),
        destination: "[2001:2::2]:5001".parse().unwrap(),
        ..synth(protocol, payload)
    }
}

/// The headers, and the length of the packet.
fn written(synth: &Synth) -> (Vec<u8>, u32) {
    let mut out = vec![0xFF; 7];
    let length = synth.write(&mut out).unwrap();
    (out, length)
}

/// The sum of RFC 1071 in its plainest form: 0xFFFF if the checksum in `bytes` is right.
fn sum(bytes: &[u8]) -> u32 {
    let mut sum = 0;
    for (place, byte) in bytes.iter().enumerate() {
        sum += u32::from(*byte) << if place % 2 == 0 { 8 } else { 0 };
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum
}

/// Checks every checksum of a packet, its payload included; returns what follows the IP header.
fn checked(synth: &Synth) -> Vec<u8> {
    let (mut packet, length) = written(synth);
    assert!(packet.len() <= 120);
    packet.resize(length as usize, 0);
    let is_ipv6 = synth.source.is_ipv6();
    let segment = packet.split_off(if is_ipv6 { 40 } else { 20 });
    let number = |at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let mut covered = Vec::new();
    if is_ipv6 {
        assert_eq!(packet[0] >> 4, 6);
        // The payload length (RFC 8200 §3), then the pseudo-header (§8.1).
        assert_eq!(number(4) + 40, length);
        covered.extend(&packet[8..40]);
        covered.extend(u32::try_from(segment.len()).unwrap().to_be_bytes());
        covered.extend([0, 0, 0, packet[6]]);
    } else {
        assert_eq!(sum(&packet), 0xFFFF, "IP");
        assert_eq!(number(2), length);
        if packet[9] != 1 {
            covered.extend(&packet[12..20]);
            covered.extend([0, packet[9]]);
            covered.extend(u16::try_from(segment.len()).unwrap().to_be_bytes());
        }
    }
    covered.extend(&segment);
    assert_eq!(sum(&covered), 0xFFFF, "{synth:?}");
    segment
}

const SYN: Tcp = Tcp {
    seq: 0x0102_0304,
    ack: 0,
    flags: TcpHeader::SYN,
    window: 64_240,
    window_scale: 11,
    mss: Some(1_460),
    timestamps: Some((0x0A0B_0C0D, 0)),
    sacks: [(0, 0); 3],
    accurate_ecn: None,
};

const ACK: Tcp = Tcp {
    ack: 0x1112_1314,
    flags: TcpHeader::ACK,
    mss: None,
    timestamps: Some((1, 2)),
    ..SYN
};

#[test]
fn an_ip_header_has_class_ecn_and_identification() {
    let (bytes, length) = written(&synth(Protocol::Udp, 100));
    assert_eq!(length, 128);
    assert_eq!(bytes[..2], [0x45, 46 << 2 | 2]);
    assert_eq!(bytes[2..10], [0, 128, 0xBE, 0xEF, 0x40, 0, 64, 17]);
    assert_eq!(bytes[12..20], [198, 18, 0, 1, 198, 18, 0, 2]);
    assert_eq!(bytes[20..26], [0xC0, 0x07, 0x13, 0x89, 0, 108]);
    assert_eq!(bytes.len(), 28);
}

#[test]
fn an_ipv6_header_has_class_ecn_payload_length_and_hop_limit() {
    let (bytes, length) = written(&synth6(Protocol::Udp, 100));
    assert_eq!(length, 40 + 8 + 100);
    // Version 6, the traffic class 46 << 2 | 2 = 0xBA in the next eight bits, and a flow label of 0.
    assert_eq!(bytes[..8], [0x6B, 0xA0, 0, 0, 0, 108, 17, 64]);
    let address: Ipv6Addr = "2001:2::1".parse().unwrap();
    assert_eq!(bytes[8..24], address.octets());
    assert_eq!((bytes[39], bytes.len()), (2, 48));
    assert_eq!(bytes[40..46], [0xC0, 0x07, 0x13, 0x89, 0, 108]);
}

#[test]
fn our_reader_reads_ipv6_packets() {
    const RAW: u16 = 101;
    let read = |protocol, payload| {
        let (bytes, length) = written(&synth6(protocol, payload));
        let headers = Headers::of(RAW, &bytes, length).unwrap();
        assert_eq!((headers.ecn, headers.length), (2, length));
        let ends = [headers.source, headers.destination].map(|ip| ip.to_string());
        assert_eq!(ends, ["2001:2::1", "2001:2::2"]);
        headers.transport
    };
    let Transport::Tcp(tcp) = read(Protocol::Tcp(ACK), 1_428) else {
        panic!("TCP");
    };
    assert_eq!((tcp.ports, tcp.payload), ([49_159, 5_001], 1_428));
    let echo = |protocol| match read(protocol, 56) {
        Transport::Echo {
            is_request,
            identifier,
            sequence,
            payload,
        } => (is_request, identifier, sequence, payload),
        other => panic!("{other:?}"),
    };
    let (identifier, sequence) = (7, 260);
    let request = Protocol::EchoRequest {
        identifier,
        sequence,
    };
    assert_eq!(echo(request), (true, 7, 260, 56));
    let reply = Protocol::EchoReply {
        identifier,
        sequence,
    };
    assert_eq!(echo(reply), (false, 7, 260, 56));
}

#[test]
fn a_syn_has_the_options_of_linux_in_their_order() {
    let segment = checked(&synth(Protocol::Tcp(SYN), 0));
    assert_eq!(segment[4..14], [1, 2, 3, 4, 0, 0, 0, 0, 0xA0, 2]);
    assert_eq!(segment[14..16], 64_240_u16.to_be_bytes(), "not scaled");
    let options = [
        2, 4, 5, 180, 4, 2, 8, 10, 10, 11, 12, 13, 0, 0, 0, 0, 1, 3, 3, 11,
    ];
    assert_eq!(segment[20..], options);
}

#[test]
fn a_segment_has_timestamps_and_up_to_three_sack_blocks() {
    for count in 0..=3_u8 {
        let mut tcp = ACK;
        for n in 0..count {
            tcp.sacks[usize::from(n)] = (0x100 + u32::from(n), 0x200 + u32::from(n));
        }
        let segment = checked(&synth(Protocol::Tcp(tcp), 0));
        assert_eq!(segment[20..32], [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(usize::from(segment[12] >> 4) * 4, segment.len());
        // 64,240 / 2,048 rounded up.
        assert_eq!(segment[14..16], [0, 32]);
        if count == 0 {
            assert_eq!(segment.len(), 32);
            continue;
        }
        assert_eq!(segment[32..36], [1, 1, 5, 2 + 8 * count]);
        assert_eq!(segment.len(), 36 + 8 * usize::from(count));
        assert_eq!(segment[36..44], [0, 0, 1, 0, 0, 0, 2, 0]);
    }
}

#[test]
fn accurate_ecn_takes_the_room_of_a_sack_block() {
    let mut tcp = ACK;
    tcp.flags |= TcpHeader::AE;
    tcp.sacks = [(1, 2), (3, 4), (5, 6)];
    for (l4s, kind) in [(true, 172), (false, 174)] {
        tcp.accurate_ecn = Some(AccurateEcn {
            ce_bytes: 0x0A_0B0C,
            l4s,
        });
        let segment = checked(&synth(Protocol::Tcp(tcp), 0));
        assert_eq!(segment.len(), 60);
        assert_eq!(segment[12..14], [0xF1, 0x10]);
        assert_eq!(segment[32..40], [kind, 8, 0, 0, 1, 0x0A, 0x0B, 0x0C]);
        assert_eq!(segment[40..44], [1, 1, 5, 18]);
    }
}

#[test]
fn quic_has_the_fixed_bit() {
    let short = checked(&synth(Protocol::Quic { long: false }, 1_200));
    assert_eq!((short[8], short[9]), (0x40, 0));
    let long = checked(&synth(Protocol::Quic { long: true }, 1_200));
    assert_eq!(long[8..14], *b"\xC0sjrn\0");
    assert_eq!(
        checked(&synth(Protocol::Quic { long: true }, 2))[8..],
        *b"\xC0s"
    );
}

#[test]
fn an_echo_request_differs_from_its_reply_in_the_type() {
    let (identifier, sequence) = (7, 260);
    let request = checked(&synth(
        Protocol::EchoRequest {
            identifier,
            sequence,
        },
        56,
    ));
    let reply = checked(&synth(
        Protocol::EchoReply {
            identifier,
            sequence,
        },
        56,
    ));
    assert_eq!((request[0], reply[0], request.len()), (8, 0, 64));
    assert_eq!(request[4..8], [0, 7, 1, 4]);
    assert_eq!(request[4..], reply[4..]);
}

#[test]
fn a_packet_longer_than_ip_allows_has_no_headers() {
    let mut out = Vec::new();
    assert_eq!(synth(Protocol::Udp, 65_507).write(&mut out), Some(65_535));
    assert_eq!(synth(Protocol::Udp, 65_508).write(&mut out), None);
    assert_eq!(synth(Protocol::Udp, u16::MAX).write(&mut out), None);
    assert_eq!(
        synth(Protocol::Tcp(ACK), 65_483).write(&mut out),
        Some(65_535)
    );
    assert_eq!(synth(Protocol::Tcp(ACK), 65_484).write(&mut out), None);
    let quic = synth(Protocol::Quic { long: true }, 65_507);
    assert_eq!(quic.write(&mut out), Some(65_535));
    // The length field of IPv6 does not count the header.
    assert_eq!(synth6(Protocol::Udp, 65_527).write(&mut out), Some(65_575));
    assert_eq!(synth6(Protocol::Udp, 65_528).write(&mut out), None);
    let mixed = Synth {
        source: synth6(Protocol::Udp, 1).source,
        ..synth(Protocol::Udp, 1)
    };
    assert_eq!(mixed.write(&mut out), None);
}

#[test]
fn a_udp_checksum_of_zero_is_written_as_all_ones() {
    let mut ones = 0;
    for port in 0..=u16::MAX {
        let mut packet = synth(Protocol::Udp, 0);
        packet.source.set_port(port);
        let (bytes, _) = written(&packet);
        assert_ne!(bytes[26..28], [0, 0]);
        // No other sum has this complement.
        if bytes[26..28] == [0xFF, 0xFF] {
            checked(&packet);
            ones += 1;
        }
    }
    assert_eq!(ones, 1, "one port makes the sum 0xFFFF");
}

fn ip(bits: u128, is_ipv6: bool) -> IpAddr {
    let [a, b, c, d, ..] = bits.to_be_bytes();
    if is_ipv6 {
        IpAddr::V6(bits.into())
    } else {
        IpAddr::V4([a, b, c, d].into())
    }
}

fn protocols() -> impl Strategy<Value = Protocol> {
    let numbers = (any::<u32>(), any::<u32>(), 0..512_u16, any::<u32>());
    let mss = proptest::option::of(any::<u16>());
    let clocks = proptest::option::of(any::<(u32, u32)>());
    let counters = proptest::option::of((0..1_u32 << 24, any::<bool>()));
    let options = (mss, clocks, any::<[(u32, u32); 3]>(), counters, any::<u8>());
    let tcp = (numbers, options).prop_map(|(numbers, options)| {
        let (seq, ack, flags, window) = numbers;
        let (mss, timestamps, sacks, counters, window_scale) = options;
        let accurate_ecn = counters.map(|(ce_bytes, l4s)| AccurateEcn { ce_bytes, l4s });
        Protocol::Tcp(Tcp {
            seq,
            ack,
            flags,
            window,
            window_scale,
            mss,
            timestamps,
            sacks,
            accurate_ecn,
        })
    });
    prop_oneof![
        4 => tcp,
        1 => Just(Protocol::Udp),
        1 => any::<bool>().prop_map(|long| Protocol::Quic { long }),
        1 => any::<(u16, u16)>().prop_map(|(identifier, sequence)| Protocol::EchoRequest {
            identifier,
            sequence,
        }),
        1 => any::<(u16, u16)>().prop_map(|(identifier, sequence)| Protocol::EchoReply {
            identifier,
            sequence,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checksums_cover_headers_and_zero_payload(
        protocol in protocols(),
        addresses in any::<[(u128, u16); 2]>(),
        is_ipv6 in any::<bool>(),
        payload in 0..20_000_u16,
        class in 0..64_u8,
        ecn in 0..4_u8,
        rest in any::<(u8, u16)>(),
    ) {
        let [source, destination] =
            addresses.map(|(bits, port)| SocketAddr::new(ip(bits, is_ipv6), port));
        let packet = Synth {
            source,
            destination,
            ecn: Ecn::from_bits(ecn),
            dscp: Dscp::new(class).unwrap(),
            ttl: rest.0,
            identification: rest.1,
            protocol,
            payload,
        };
        let segment = checked(&packet);
        if let Protocol::Tcp(_) = protocol {
            let header = usize::from(segment[12] >> 4) * 4;
            prop_assert_eq!(segment.len(), header + usize::from(payload));
        }
    }
}
