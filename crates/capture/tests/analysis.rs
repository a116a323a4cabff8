//! The analysis of captures: formats, link types, and what the packets of a connection show.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod making;

use making::{ACK, File, Packet, SYN, ethernet, pcap, pcapng, tcp, udp_v6, vlan};
use proptest::prelude::*;
use sojourn_capture::analysis::{Analysis, Found, Point, Reason, kind};

const MS: i64 = 1_000_000;

fn analysed(file: &[u8]) -> Found {
    let mut analysis = Analysis::default();
    analysis.feed(file).unwrap();
    analysis.finish().unwrap()
}

/// A handshake with an RTT of 10 ms, three segments, of which the second is lost, and its repair.
fn exchange() -> Vec<Packet> {
    let up = |at, seq, ack, flags, payload| tcp(at, false, seq, ack, flags, payload);
    let down = |at, seq, ack, flags, payload| tcp(at, true, seq, ack, flags, payload);
    vec![
        up(0, 100, 0, SYN, 0),
        down(10, 900, 101, SYN | ACK, 0),
        up(11, 101, 901, ACK, 0),
        up(20, 101, 901, ACK, 1_000),
        up(21, 1_101, 901, ACK, 1_000),
        up(22, 2_101, 901, ACK, 500),
        down(32, 901, 1_101, ACK, 0),
        down(33, 901, 1_101, ACK, 0),
        up(250, 1_101, 901, ACK, 1_000),
        down(262, 901, 2_601, ACK, 0),
    ]
}

#[test]
fn a_connection_shows_retransmissions_acknowledged_bytes_and_rtt() {
    let found = analysed(&pcap(&exchange(), &File::default()));
    let packets = &found.packets;
    assert_eq!(found.connections.len(), 1);
    let connection = &found.connections[0];
    assert_eq!(connection.endpoints[0].1, 40_000);
    assert_eq!(
        (connection.opened_at, connection.connected_at),
        (Some(0), Some(11 * MS))
    );
    assert_eq!(packets.direction, [0, 1, 0, 0, 0, 0, 1, 1, 0, 1]);
    let resent = |&bits: &u8| bits & kind::RETRANSMISSION != 0;
    assert_eq!(packets.kind.iter().position(resent), Some(8));
    assert_eq!(packets.kind.iter().filter(|bits| resent(bits)).count(), 1);
    assert_eq!(packets.acked, [0, 0, 0, 0, 0, 0, 1_000, 0, 0, 1_500]);
    assert_eq!(packets.offset[3..9], [0, 1_000, 2_000, 0, 0, 1_000]);
    assert_eq!(packets.acked_until[6..], [1_000, 1_000, 0, 2_500]);
    let rtt = |row: usize| packets.rtt[row];
    assert_eq!([rtt(1), rtt(2), rtt(6), rtt(7)], [10 * MS, MS, 12 * MS, -1]);
    // The ACK of the last byte of the third segment.
    assert_eq!(rtt(9), 240 * MS);
}

#[test]
fn a_segment_that_fills_a_gap_early_is_out_of_order_and_late_a_retransmission() {
    for (at, expected) in [(25, kind::OUT_OF_ORDER), (60, kind::RETRANSMISSION)] {
        let mut packets = exchange();
        // The capture lacks the first transmission.
        packets.remove(4);
        packets.truncate(5);
        packets.push(tcp(at, false, 1_101, 901, ACK, 1_000));
        let found = analysed(&pcap(&packets, &File::default()));
        assert_eq!(found.packets.kind[4], kind::NEW | kind::AFTER_GAP);
        assert_eq!(found.packets.kind[5], expected, "{at} ms");
    }
}

#[test]
fn a_segment_that_is_resent_within_the_rtt_of_the_handshake_is_an_early_retransmission() {
    for (at, expected) in [(30, kind::EARLY), (60, kind::RETRANSMISSION)] {
        let mut packets = exchange();
        packets.truncate(6);
        packets.push(tcp(at, false, 1_101, 901, ACK, 1_000));
        let found = analysed(&pcap(&packets, &File::default()));
        assert_eq!(found.packets.kind[6], expected, "{at} ms");
    }
}

#[test]
fn a_syn_that_is_resent_begins_the_rtt_samples_anew() {
    let mut packets = exchange();
    packets.truncate(2);
    packets.extend([
        tcp(1_000, false, 100, 0, SYN, 0),
        tcp(1_010, true, 900, 101, SYN | ACK, 0),
        tcp(1_011, false, 101, 901, ACK, 0),
    ]);
    let found = analysed(&pcap(&packets, &File::default()));
    assert_eq!(found.packets.rtt[1..], [10 * MS, -1, 10 * MS, MS]);
}

#[test]
fn what_was_acknowledged_before_is_spurious_and_a_keep_alive_no_data() {
    let mut packets = exchange();
    packets.push(tcp(300, false, 101, 901, ACK, 1_000));
    packets.push(tcp(400, false, 2_600, 901, ACK, 1));
    let found = analysed(&pcap(&packets, &File::default()));
    assert_eq!(
        found.packets.kind[10],
        kind::RETRANSMISSION | kind::SPURIOUS
    );
    assert_eq!(found.packets.kind[11], kind::PROBE);
}

#[test]
fn sequence_numbers_continue_beyond_2_to_the_32() {
    let begin = u32::MAX - 500;
    let packets = [
        tcp(0, false, begin, 1, ACK, 1_000),
        tcp(5, true, 1, begin.wrapping_add(1_000), ACK, 0),
        tcp(6, false, begin.wrapping_add(1_000), 1, ACK, 1_000),
        tcp(11, true, 1, begin.wrapping_add(2_000), ACK, 0),
    ];
    let found = analysed(&pcap(&packets, &File::default()));
    assert_eq!(found.packets.kind, [kind::NEW, 0, kind::NEW, 0]);
    // The first ACK of a connection whose begin was not captured has no predecessor.
    assert_eq!(found.packets.acked, [0, 0, 0, 1_000]);
    assert_eq!(found.packets.rtt, [-1, 5 * MS, -1, 5 * MS]);
}

#[test]
fn every_form_of_a_file_has_the_same_packets() {
    let raw = exchange();
    let expected = analysed(&pcap(&raw, &File::default()));
    for file in [
        File {
            big_endian: true,
            ..File::default()
        },
        File {
            nanoseconds: true,
            ..File::default()
        },
        File {
            link_type: 1,
            ..File::default()
        },
        File {
            link_type: 0,
            ..File::default()
        },
        File {
            link_type: 113,
            ..File::default()
        },
        File {
            link_type: 276,
            ..File::default()
        },
        File {
            link_type: 228,
            ..File::default()
        },
        // Cut behind the TCP header.
        File {
            snap_length: 40,
            ..File::default()
        },
    ] {
        for bytes in [pcap(&raw, &file), pcapng(&raw, &["eth0"], &file)] {
            let found = analysed(&bytes);
            assert_eq!(found.packets.kind, expected.packets.kind, "{file:?}");
            assert_eq!(found.packets.rtt, expected.packets.rtt, "{file:?}");
            assert_eq!(found.packets.bytes, expected.packets.bytes, "{file:?}");
            assert_eq!(found.packets.acked, expected.packets.acked, "{file:?}");
        }
    }
}

#[test]
fn vlan_tags_and_pppoe_are_skipped_and_ipv6_extension_headers_read() {
    let tagged = vlan(&exchange()[3]);
    let v6 = udp_v6(5, 700, 3);
    let file = File {
        link_type: 1,
        is_framed: true,
        ..File::default()
    };
    let found = analysed(&pcap(&[tagged, ethernet(&v6, 0x86DD)], &file));
    assert_eq!(found.packets.payload, [1_000, 700]);
    assert_eq!(found.packets.ecn, [0, 3]);
    assert_eq!(found.connections[1].endpoints[0].1, 5_000);
}

#[test]
fn packets_without_headers_are_counted_by_cause() {
    let mut cut = exchange()[3].clone();
    cut.data.truncate(30);
    let mut fragment = exchange()[3].clone();
    fragment.data[6] = 0x20;
    let mut short = exchange()[3].clone();
    short.data[3] = 10;
    short.data[2] = 0;
    let found = analysed(&pcap(&[cut, fragment, short], &File::default()));
    let left_out = found.left_out;
    assert_eq!(
        (left_out.cut, left_out.fragments, left_out.malformed),
        (1, 1, 1)
    );
    let file = File {
        link_type: 127,
        ..File::default()
    };
    let left_out = analysed(&pcap(&exchange(), &file)).left_out;
    assert_eq!((left_out.link_type, left_out.unsupported), (10, Some(127)));
}

#[test]
fn points_of_sojourn_give_sojourn_times_and_reasons() {
    let mut packets = exchange();
    packets.truncate(4);
    for (number, packet) in packets.iter_mut().enumerate() {
        packet.id = Some(number as u64);
    }
    let mut left = packets[3].clone();
    (left.at_ms, left.source, left.comment) = (27, 1, Some("marked CE: codel aqm"));
    let mut dropped = packets[2].clone();
    (dropped.at_ms, dropped.source, dropped.comment) = (30, 2, Some("dropped: pfifo overlimit"));
    packets.extend([left, dropped]);
    let file = pcapng(&packets, &["up.enq", "up.deq", "up.drop"], &File::default());
    let found = analysed(&file);
    assert_eq!(found.sources, ["up.enq", "up.deq", "up.drop"]);
    assert_eq!(
        found.packets.point,
        [0, 0, 0, 0, Point::Leaving as u8, Point::Dropped as u8]
    );
    assert_eq!(found.packets.sojourn[4..], [7 * MS, 19 * MS]);
    assert_eq!(
        found.packets.reason[4..],
        [Reason::MarkAqm as u8, Reason::Overlimit as u8]
    );
    // Neither is a retransmission.
    assert_eq!(found.packets.kind[4..], [0, 0]);
}

#[test]
fn a_packet_that_is_seen_at_two_interfaces_counts_once() {
    let mut packets = exchange();
    let again: Vec<_> = packets
        .iter()
        .cloned()
        .map(|packet| Packet {
            source: 1,
            ..packet
        })
        .collect();
    packets.extend(again);
    let found = analysed(&pcapng(&packets, &["eth0", "eth1"], &File::default()));
    assert_eq!(found.packets.at.len(), 10);
    assert_eq!(found.left_out.repeated, 10);
}

#[test]
fn a_file_that_ends_within_a_packet_is_read_up_to_there() {
    let whole = pcap(&exchange(), &File::default());
    let found = analysed(&whole[..whole.len() - 3]);
    assert_eq!((found.packets.at.len(), found.ends_early), (9, true));
    assert!(!analysed(&whole).ends_early);
}

#[test]
fn what_is_no_capture_is_refused_with_its_place() {
    let said = |bytes: &[u8]| {
        let mut analysis = Analysis::default();
        let fed = analysis.feed(bytes);
        fed.and_then(|()| analysis.finish().map(|_| ()))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said(b"hello"),
        "byte 0: not the begin of a pcap or pcapng file"
    );
    assert_eq!(
        said(&pcap(&[], &File::default())[..10]),
        "byte 0: ends within its header"
    );
    let mut file = pcap(&exchange(), &File::default());
    file[24 + 11] = 0xFF;
    assert!(said(&file).starts_with("byte 24: a packet of "));
    let mut file = pcapng(&exchange(), &["x"], &File::default());
    file[4] = 3;
    assert!(said(&file).starts_with("byte 0: a block of 3 bytes; expected a multiple of 4"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn damaged_files_give_an_error_or_an_analysis(
        is_pcapng: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        is_cut: bool,
        part in 1_usize..400,
    ) {
        let form = File { link_type: 1, ..File::default() };
        let names = ["up.enq", "up.deq", "eth0"];
        let mut file = if is_pcapng { pcapng(&exchange(), &names, &form) } else { pcap(&exchange(), &form) };
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if is_cut {
            file.truncate(end.index(file.len()));
        }
        let mut analysis = Analysis::default();
        for bytes in file.chunks(part) {
            if let Err(damage) = analysis.feed(bytes) {
                prop_assert!(!damage.to_string().contains('\n'));
                return Ok(());
            }
        }
        if let Ok(found) = analysis.finish() {
            prop_assert!(found.packets.at.len() <= 10);
        }
    }
}
