//! Where connections are stored and how they are distinguished.

use super::*;

#[test]
fn connections_of_one_set_are_distinguished() {
    let params = FloqParams {
        connections: 4,
        setup_packets: 2,
        ..FloqParams::default()
    };
    let mut packets = Vec::new();
    for pkt in [syn, data, data, data] {
        packets.extend((1..=4).map(|flow| (0, pkt(flow))));
    }
    let all = classes(&params, &packets);
    assert_eq!(all[..12], [Setup; 12]);
    assert_eq!(all[12..], [Responsive; 4]);
}

#[test]
fn the_whole_table_is_used() {
    let params = FloqParams {
        connections: 1_024,
        ..FloqParams::default()
    };
    let mut connections = Connections::new(&params, 7);
    for flow in 0..256 {
        connections.classify(ms(0), &syn(flow));
    }
    // A quarter of the places is taken, so few connections lost theirs.
    let known = (0..256).filter(|&flow| connections.classify(ms(1), &data(flow)) == Setup);
    assert!(known.count() > 250);
}

#[test]
fn connections_that_differ_in_the_lower_port_alone_are_two() {
    let (one, other) = (0x0005_0003, 0x0005_0004);
    let packets = [syn(one), data(one), data(other)].map(|pkt| (0, pkt));
    assert_eq!(of_one(&packets), [Setup, Setup, Responsive]);
}

#[test]
fn without_quic_all_udp_does_not_answer() {
    let params = FloqParams {
        quic: false,
        ..three()
    };
    let packets = [Transport::QuicLong, Transport::Udp].map(|t| (0, datagram(1, t)));
    assert_eq!(classes(&params, &packets), [Unresponsive; 2]);
}
