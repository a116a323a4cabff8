use super::*;

const CLIENT: Ipv4Addr = Ipv4Addr::new(193, 167, 0, 100);
const SERVER: Ipv4Addr = Ipv4Addr::new(193, 167, 100, 100);
const ROUTER: Ipv4Addr = Ipv4Addr::new(193, 167, 0, 2);
const CLIENT6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0xCAFE, 0xCAFE, 0, 0, 0, 0, 0x100);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0xFD00, 0xCAFE, 0xCAFE, 0x100, 0, 0, 0, 0x100);

/// The ones' complement sum of the words of all parts (RFC 1071), computed from scratch.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut total = 0_u64;
    for part in parts {
        for pair in part.chunks(2) {
            total += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    u16::try_from(total).expect("folded")
}

/// Whether the checksums of a packet of UDP are right.
fn is_intact(packet: &[u8]) -> bool {
    let udp = Udp::of(packet).expect("UDP");
    let addresses = if udp.is_ipv6 {
        &packet[8..40]
    } else {
        &packet[12..20]
    };
    let segment = &packet[udp.header..udp.end];
    let length = u16::try_from(segment.len()).expect("short").to_be_bytes();
    let header = udp.is_ipv6 || sum(&[&packet[..udp.header]]) == u16::MAX;
    header && sum(&[addresses, &[0, 17], &length, segment]) == u16::MAX
}

fn udp4(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 28).expect("short");
    let mut packet = vec![0x45, 2, 0, 0, 0, 7, 0x40, 0, 64, 17, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend(from.0.octets());
    packet.extend(to.0.octets());
    let header = !sum(&[&packet]);
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    with_udp(packet, (from.1, to.1), payload)
}

fn udp6(from: (Ipv6Addr, u16), to: (Ipv6Addr, u16), payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 8).expect("short");
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet.extend(from.0.octets());
    packet.extend(to.0.octets());
    with_udp(packet, (from.1, to.1), payload)
}

fn with_udp(mut packet: Vec<u8>, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 8)
        .expect("short")
        .to_be_bytes();
    let addresses = if packet[0] >> 4 == 6 {
        packet[8..40].to_vec()
    } else {
        packet[12..20].to_vec()
    };
    let mut segment = [ports.0.to_be_bytes(), ports.1.to_be_bytes(), length, [0, 0]].concat();
    segment.extend(payload);
    let checksum = !sum(&[&addresses, &[0, 17], &length, &segment]);
    segment[6..8].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(segment);
    packet
}

fn to_server(payload: &[u8]) -> Vec<u8> {
    udp4((CLIENT, 50_000), (SERVER, 443), payload)
}

fn impaired(impairment: Impairment) -> Impaired {
    Impaired::new(impairment, vec![ROUTER.into()], Rng::new(1))
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

const NEVER: Chance = Chance {
    per_million: 0,
    burst: None,
};

#[test]
fn a_packet_of_a_test_is_intact() {
    assert!(is_intact(&to_server(b"payload")));
    assert!(is_intact(&udp6((CLIENT6, 1), (SERVER6, 443), b"odd")));
}

#[test]
fn packets_are_lost_at_the_rate_and_at_most_in_bursts() {
    let chance = Chance {
        per_million: 300_000,
        burst: Some(3),
    };
    let mut path = impaired(Impairment::Drop([NEVER, chance]));
    let (mut lost, mut in_a_row, mut longest) = (0, 0, 0);
    for _ in 0..100_000 {
        let before = to_server(b"data");
        let mut packet = before.clone();
        if path.pass(at(0), Side::Server, &mut packet) {
            assert_eq!(packet, before);
            in_a_row = 0;
        } else {
            lost += 1;
            in_a_row += 1;
        }
        longest = longest.max(in_a_row);
        assert!(path.pass(at(0), Side::Client, &mut before.clone()));
    }
    // The chain of 0 to 3 losses in a row, each with probability p = 0.3, then one that passes.
    let p = 0.3_f64;
    let runs = [1.0, p, p * p, p * p * p];
    let share = runs[1..].iter().sum::<f64>() / runs.iter().sum::<f64>();
    assert!((f64::from(lost) / 1e5 - share).abs() < 0.005, "{lost}");
    assert_eq!(longest, 3);
    let said = path.described().expect("an impairment");
    let expected =
        format!("UDP packets lost: 0 of 100000 to the client, {lost} of 100000 to the server");
    assert_eq!(said, expected);
}

#[test]
fn without_a_limit_bursts_are_as_long_as_chance_makes_them() {
    let always = Chance {
        per_million: 1_000_000,
        burst: None,
    };
    let mut path = impaired(Impairment::Drop([NEVER, always]));
    assert!((0..100).all(|_| !path.pass(at(0), Side::Server, &mut to_server(b"data"))));
}

#[test]
fn packets_are_lost_by_number_and_other_protocols_do_not_count() {
    let mut path = impaired(Impairment::DropList([
        BTreeSet::new(),
        BTreeSet::from([2, 3]),
    ]));
    let mut tcp = to_server(b"data");
    tcp[9] = 6;
    let passed: Vec<_> = (0..5)
        .map(|_| {
            assert!(path.pass(at(0), Side::Server, &mut tcp));
            path.pass(at(0), Side::Server, &mut to_server(b"data"))
        })
        .collect();
    assert_eq!(passed, [true, false, false, true, true]);
}

#[test]
fn a_corrupted_packet_has_one_other_byte_and_right_checksums() {
    let always = Chance {
        per_million: 1_000_000,
        burst: None,
    };
    let mut path = impaired(Impairment::Corrupt([always, NEVER]));
    let mut changed = BTreeSet::new();
    for length in [1_usize, 2, 33, 1_200, 1_201].repeat(100) {
        let payload: Vec<u8> = (0..length).map(|n| n.to_le_bytes()[0]).collect();
        for before in [
            udp4((SERVER, 443), (CLIENT, 50_000), &payload),
            udp6((SERVER6, 443), (CLIENT6, 50_000), &payload),
        ] {
            let mut packet = before.clone();
            assert!(path.pass(at(0), Side::Client, &mut packet));
            assert!(is_intact(&packet));
            let udp = Udp::of(&before).expect("UDP");
            let (old, new) = (udp.payload(&before), udp.payload(&packet));
            let differs: Vec<_> = (0..length).filter(|&n| old[n] != new[n]).collect();
            assert_eq!(differs.len(), 1, "{length}");
            assert_eq!(
                before[..udp.header + CHECKSUM],
                packet[..udp.header + CHECKSUM]
            );
            changed.insert(differs[0]);
        }
    }
    assert_eq!(changed, (0..=50).collect());
}

#[test]
fn the_list_of_versions_is_not_corrupted_and_a_packet_without_checksum_gets_none() {
    let always = Chance {
        per_million: 1_000_000,
        burst: None,
    };
    let mut path = impaired(Impairment::Corrupt([always, always]));
    let versions = udp4(
        (SERVER, 443),
        (CLIENT, 50_000),
        &[0xC0, 0, 0, 0, 0, 8, 1, 2],
    );
    let mut packet = versions.clone();
    assert!(path.pass(at(0), Side::Client, &mut packet));
    assert_eq!(packet, versions);
    let mut without = to_server(b"payload");
    without[26..28].fill(0);
    let mut packet = without.clone();
    assert!(path.pass(at(0), Side::Server, &mut packet));
    assert_ne!(packet, without);
    assert_eq!(packet[..28], without[..28]);
    // Nothing to corrupt.
    let empty = to_server(b"");
    let mut packet = empty.clone();
    assert!(path.pass(at(0), Side::Server, &mut packet));
    assert_eq!(packet, empty);
}

#[test]
fn a_blackhole_takes_all_packets_while_it_lasts() {
    let blackhole = Blackhole {
        on: Duration::from_millis(500),
        off: Duration::from_millis(200),
        repeat: 2,
        toward: [false, true],
    };
    let mut path = impaired(Impairment::Blackhole(blackhole));
    let mut passes = |ms, to| path.pass(at(ms), to, &mut [0x45]);
    for (ms, expected) in [
        (0, true),
        (499, true),
        (500, false),
        (699, false),
        (700, true),
        (1_199, true),
        (1_200, false),
        (1_399, false),
        (1_400, true),
        (1_950, true),
        (99_999, true),
    ] {
        assert_eq!(passes(ms, Side::Server), expected, "{ms}");
        assert!(passes(ms, Side::Client), "{ms}");
    }
}

/// A packet of the client crosses the NAT, and so does the answer; returns what the server sees.
fn exchange(path: &mut Impaired, ms: u64, port: u16) -> (IpAddr, u16) {
    let mut packet = udp4((CLIENT, port), (SERVER, 443), b"hello");
    assert!(path.pass(at(ms), Side::Server, &mut packet));
    assert!(is_intact(&packet));
    let udp = Udp::of(&packet).expect("UDP");
    let seen = (udp.address(&packet, true), udp.port(&packet, SOURCE_PORT));
    assert_eq!(udp.address(&packet, false), IpAddr::from(SERVER));
    let IpAddr::V4(address) = seen.0 else {
        panic!("{seen:?}")
    };
    let mut answer = udp4((SERVER, 443), (address, seen.1), b"answer");
    assert!(path.pass(at(ms), Side::Client, &mut answer));
    assert!(is_intact(&answer));
    let udp = Udp::of(&answer).expect("UDP");
    let to = (
        udp.address(&answer, false),
        udp.port(&answer, DESTINATION_PORT),
    );
    assert_eq!(to, (CLIENT.into(), port));
    seen
}

fn rebinding(address: bool) -> Impaired {
    impaired(Impairment::Rebind(Rebind {
        first: Duration::from_secs(1),
        every: Some(Duration::from_secs(5)),
        address,
    }))
}

#[test]
fn ports_change_at_the_first_time_and_then_regularly() {
    let mut path = rebinding(false);
    let before = exchange(&mut path, 0, 50_000);
    assert_eq!(before, (CLIENT.into(), 50_000));
    assert_eq!(exchange(&mut path, 999, 50_000), before);
    let second = exchange(&mut path, 1_000, 50_000);
    assert_eq!(second.0, IpAddr::from(CLIENT));
    assert_ne!(second.1, before.1);
    assert!(second.1 >= FIRST_PORT);
    // What the server sends to the old port is lost.
    let mut late = udp4((SERVER, 443), (CLIENT, 50_000), b"late");
    assert!(!path.pass(at(1_010), Side::Client, &mut late));
    assert_eq!(exchange(&mut path, 5_999, 50_000), second);
    let third = exchange(&mut path, 6_000, 50_000);
    assert_ne!(third.1, second.1);
    // A connection that began later has another port.
    assert_ne!(exchange(&mut path, 6_001, 50_001).1, third.1);
    let said = path.described().expect("an impairment");
    assert!(
        said.starts_with("2 rebindings; UDP packets lost without a binding: 1 of "),
        "{said}"
    );
}

#[test]
fn addresses_change_within_the_network_and_never_to_that_of_the_router() {
    let mut path = rebinding(true);
    let mut seen = BTreeSet::new();
    for n in 0..2_000_u64 {
        let (address, _) = exchange(&mut path, n * 5_000, 50_000);
        seen.insert(address);
    }
    assert!(!seen.contains(&IpAddr::from(ROUTER)));
    // All but those of the network, of broadcasts and of the router.
    assert_eq!(seen.len(), 253);
    assert!(
        seen.iter()
            .all(|one| one.to_string().starts_with("193.167.0."))
    );
}

#[test]
fn rebinding_changes_ipv6_too() {
    let mut path = rebinding(true);
    let mut seen = Vec::new();
    for ms in [0, 1_000] {
        let mut packet = udp6((CLIENT6, 50_000), (SERVER6, 443), b"hello");
        assert!(path.pass(at(ms), Side::Server, &mut packet));
        assert!(is_intact(&packet));
        let udp = Udp::of(&packet).expect("UDP");
        seen.push((udp.address(&packet, true), udp.port(&packet, SOURCE_PORT)));
    }
    assert_eq!(seen[0], (CLIENT6.into(), 50_000));
    assert!(seen[0].0 != seen[1].0 && seen[0].1 != seen[1].1, "{seen:?}");
}

#[test]
fn any_bytes_pass_without_a_panic() {
    let mut rng = Rng::new(7);
    let kinds = [
        Impairment::Drop(
            [Chance {
                per_million: 500_000,
                burst: None,
            }; 2],
        ),
        Impairment::Corrupt(
            [Chance {
                per_million: 1_000_000,
                burst: None,
            }; 2],
        ),
        Impairment::Rebind(Rebind {
            first: Duration::ZERO,
            every: None,
            address: true,
        }),
    ];
    for kind in kinds {
        let mut path = impaired(kind);
        for _ in 0..20_000 {
            let length = usize::try_from(rng.below(80)).expect("small");
            let mut packet: Vec<u8> = (0..length)
                .map(|_| rng.next_u64().to_le_bytes()[0])
                .collect();
            if let Some(first) = packet.first_mut() {
                *first = if rng.below(2) == 0 { 0x45 } else { 0x60 };
            }
            for (at, value) in [(9, 17), (6, 17)] {
                if let Some(byte) = packet.get_mut(at).filter(|_| rng.below(2) == 0) {
                    *byte = value;
                }
            }
            path.pass(at(0), Side::Server, &mut packet.clone());
            path.pass(at(0), Side::Client, &mut packet);
        }
    }
}
