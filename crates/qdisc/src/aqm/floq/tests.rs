use super::connections::Class::{Responsive, Setup, Unresponsive};
use super::*;
use crate::contract::Number::Count;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::{Duration, Ecn, FlowKey, TcpHeader, Transport};

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn tcp(flow: u32, flags: u16, payload: u32) -> TestPacket {
    TestPacket {
        flow,
        transport: Transport::Tcp(TcpHeader {
            flags,
            payload,
            ..TcpHeader::default()
        }),
        ..TestPacket::mtu(0)
    }
}

const SYN: u16 = TcpHeader::SYN;
const ACK: u16 = TcpHeader::ACK;

fn syn(flow: u32) -> TestPacket {
    tcp(flow, SYN, 0)
}

fn data(flow: u32) -> TestPacket {
    tcp(flow, ACK, 1_448)
}

fn datagram(flow: u32, transport: Transport) -> TestPacket {
    TestPacket {
        flow,
        transport,
        ..TestPacket::mtu(0)
    }
}

/// The classes that packets get, each at its time in ms.
fn classes(params: &FloqParams, packets: &[(u64, TestPacket)]) -> Vec<Class> {
    let mut connections = Connections::new(params, 7);
    packets
        .iter()
        .map(|(at, pkt)| connections.classify(ms(*at), pkt))
        .collect()
}

/// Set-ups of three packets, so that timelines are short.
fn three() -> FloqParams {
    FloqParams {
        setup_packets: 3,
        ..FloqParams::default()
    }
}

fn of_one(packets: &[(u64, TestPacket)]) -> Vec<Class> {
    classes(&three(), packets)
}

#[test]
fn by_default_a_set_up_has_an_initial_window() {
    let packets: Vec<_> = std::iter::once(syn(1)).chain([data(1); 11]).collect();
    let at_once: Vec<_> = packets.into_iter().map(|pkt| (0, pkt)).collect();
    let all = classes(&FloqParams::default(), &at_once);
    assert_eq!(all[..11], [Setup; 11]);
    assert_eq!(all[11], Responsive);
}

#[test]
fn a_set_up_is_the_syn_and_its_packets_with_data() {
    // The bare ACK counts for nothing; what was never seen to open is established.
    let packets = [syn(1), tcp(1, ACK, 0), data(1), data(1), data(1), data(1)];
    let at_once = packets.map(|pkt| (0, pkt));
    assert_eq!(
        of_one(&at_once),
        [Setup, Setup, Setup, Setup, Setup, Responsive]
    );
    assert_eq!(of_one(&[(0, data(1))]), [Responsive]);
}

#[test]
fn a_set_up_ends_with_its_time_and_a_syn_begins_it_again() {
    assert_eq!(
        of_one(&[(0, syn(1)), (3_000, data(1)), (3_001, data(1))]),
        [Setup, Setup, Responsive]
    );
    // The SYN that is sent again counts its time from itself.
    assert_eq!(
        of_one(&[(0, syn(1)), (1_000, syn(1)), (4_000, data(1))]),
        [Setup, Setup, Setup]
    );
    let mut packets = vec![(0, syn(1))];
    packets.extend([(0, data(1)); 4]);
    packets.extend([(0, syn(1)), (0, data(1))]);
    assert_eq!(of_one(&packets)[4..], [Responsive, Setup, Setup]);
}

#[test]
fn fin_and_rst_end_a_set_up_after_themselves() {
    for flags in [TcpHeader::FIN, TcpHeader::RST] {
        assert_eq!(
            of_one(&[(0, syn(1)), (0, tcp(1, flags | ACK, 100)), (0, data(1))]),
            [Setup, Setup, Responsive]
        );
    }
}

#[test]
fn quic_is_known_by_its_long_headers_and_other_udp_does_not_answer() {
    let long = datagram(1, Transport::QuicLong);
    let short = datagram(1, Transport::Udp);
    let packets = [short, long, long, short, short, long];
    let at_once = packets.map(|pkt| (0, pkt));
    assert_eq!(
        of_one(&at_once),
        [Unresponsive, Setup, Setup, Setup, Responsive, Responsive]
    );
    // Forgotten with the connection; a long header after the time of a setup begins another.
    assert_eq!(
        of_one(&[(0, long), (10_000, short), (20_001, short)]),
        [Setup, Responsive, Unresponsive]
    );
    assert_eq!(
        of_one(&[(0, long), (3_001, short), (3_001, long)]),
        [Setup, Responsive, Setup]
    );
    let no_quic = FloqParams {
        quic: false,
        ..three()
    };
    assert_eq!(
        classes(&no_quic, &at_once),
        [Unresponsive; 6],
        "by the protocol alone"
    );
}

#[test]
fn of_other_protocols_sctp_and_dccp_answer() {
    let mut connections = Connections::new(&three(), 7);
    for (protocol, class) in [
        (132, Responsive),
        (33, Responsive),
        (1, Unresponsive),
        (6, Unresponsive),
    ] {
        let key = FlowKey {
            protocol,
            ..FlowKey::default()
        };
        let pkt = Directed(TestPacket::mtu(0), key);
        assert_eq!(connections.classify(ms(0), &pkt), class, "{protocol}");
    }
}

#[test]
fn a_connection_that_rested_is_set_up_again_if_asked_for() {
    let mut packets = vec![(0, syn(1))];
    packets.extend([(0, data(1)); 4]);
    packets.extend([(1_000, data(1)), (2_001, data(1)), (30_000, data(1))]);
    assert_eq!(of_one(&packets)[4..], [Responsive; 4]);
    let resume = FloqParams {
        resume: Some(Duration::from_secs(1)),
        ..three()
    };
    assert_eq!(
        classes(&resume, &packets)[4..],
        [Responsive, Responsive, Setup, Setup]
    );
}

/// A packet with a five-tuple of its own.
#[derive(Clone, Copy)]
struct Directed(TestPacket, FlowKey);
impl Packet for Directed {
    fn size(&self) -> Bytes {
        self.0.size()
    }
    fn ecn(&self) -> Ecn {
        self.0.ecn()
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.0.set_ecn(ecn);
    }
    fn transport(&self) -> Transport {
        self.0.transport
    }
    fn flow(&self) -> FlowKey {
        self.1
    }
}

#[test]
fn both_directions_are_one_connection() {
    let there = FlowKey {
        source: 1,
        destination: 2,
        ports: (40_000 << 16) + 443,
        protocol: 6,
    };
    for ports in [(443 << 16) + 40_000, there.ports] {
        let back = FlowKey {
            source: 2,
            destination: 1,
            ports,
            protocol: 6,
        };
        let mut connections = Connections::new(&three(), 7);
        for (pkt, key, class) in [
            (syn(1), there, Setup),
            (data(1), back, Setup),
            (data(1), there, Setup),
            (data(1), back, Setup),
            (data(1), there, Responsive),
        ] {
            let pkt = Directed(pkt, key);
            assert_eq!(connections.classify(ms(0), &pkt), class);
        }
    }
}

#[test]
fn the_connection_idle_longest_makes_room() {
    let four = FloqParams {
        connections: 4,
        ..three()
    };
    let mut packets: Vec<_> = (1..=4).map(|flow| (u64::from(flow), syn(flow))).collect();
    // Flow 1 was seen again, so flow 2 goes.
    packets.extend([(5, data(1)), (6, syn(5)), (7, data(1)), (8, data(2))]);
    assert_eq!(
        classes(&four, &packets)[4..],
        [Setup, Setup, Setup, Responsive]
    );
}

fn law(params: FloqParams) -> RealLaw {
    RealLaw::new(&FloqParams {
        limit: 200,
        ..params
    })
}

#[test]
fn the_probability_is_that_of_the_formula() {
    let mut share = law(FloqParams::default());
    share.responsive_share = 0.6;
    for (backlog, ramp) in [(100, 0.0), (101, 0.01), (150, 0.5), (200, 1.0)] {
        for (class, weight) in [(Setup, 0.0), (Responsive, 0.36), (Unresponsive, 0.16)] {
            let p = share.probability(class, backlog);
            assert!((p - ramp * weight).abs() < 1e-12, "{class:?} {backlog} {p}");
        }
    }
    let mut fixed = law(FloqParams {
        gamma: 2,
        probability: 0.5,
        setup_weight: 10.0,
        ..FloqParams::fixed()
    });
    fixed.responsive_share = 0.1;
    for (class, p) in [(Setup, 1.0), (Responsive, 0.025), (Unresponsive, 0.125)] {
        assert!(
            (fixed.probability(class, 150) - p).abs() < 1e-12,
            "{class:?}"
        );
    }
    let protect = law(FloqParams::protect());
    assert_eq!(
        protect.probability(Responsive, 150).to_bits(),
        protect.probability(Unresponsive, 150).to_bits()
    );
}

#[test]
fn a_threshold_of_the_whole_limit_signals_nobody() {
    let law = law(FloqParams {
        threshold: 1.0,
        ..FloqParams::default()
    });
    assert!(law.probability(Responsive, 200) <= 0.0);
}

#[test]
fn the_share_is_that_of_the_bytes_without_set_ups() {
    let mut law = law(FloqParams::default());
    law.on_arrival(Responsive, Bytes(1_514));
    assert!((law.responsive_share - (0.5 + 0.002 * 0.5)).abs() < 1e-12);
    // Three times as many packets of a sixth of the size: two thirds of the bytes.
    for _ in 0..20_000 {
        law.on_arrival(Responsive, Bytes(1_200));
        law.on_arrival(Setup, Bytes(1_500));
        for _ in 0..3 {
            law.on_arrival(Unresponsive, Bytes(200));
        }
    }
    let wanted = 2.0 / 3.0;
    assert!(
        (law.responsive_share - wanted).abs() < 0.002,
        "{}",
        law.responsive_share
    );
    // However large a packet, the average stays one.
    law.on_arrival(Unresponsive, Bytes(u64::MAX));
    assert!(law.responsive_share.abs() < 1e-12);
}

/// Offers `n` packets to a queue of 200 that is kept at `backlog`; what was dropped and marked.
fn offered(params: FloqParams, backlog: usize, pkt: TestPacket, n: u64) -> (usize, usize) {
    let mut queue = Floq::new(
        &FloqParams {
            limit: 200,
            ..params
        },
        Rng::new(3),
    );
    let mut seen = Recorder::default();
    for flow in 0..u32::try_from(backlog).unwrap() {
        queue.push(Unresponsive, syn(flow));
    }
    if let Law::Real(law) = &mut queue.law {
        law.responsive_share = 0.5;
        law.gain = 0.0;
    }
    for _ in 0..n {
        queue.enqueue(ms(0), pkt, &mut seen);
        if queue.backlog().packets > backlog {
            queue.dequeue(ms(0), &mut seen);
        }
    }
    (seen.drops.len(), seen.marks.len())
}

#[test]
fn drops_are_as_frequent_as_the_probability_says() {
    // At 160 of 200 the ramp stands at 0.6; the share's square is 1/4: 1500 of 10,000, and five
    // standard deviations are 179.
    let (drops, _) = offered(FloqParams::default(), 160, data(9_999), 10_000);
    assert!((1_321..1_679).contains(&drops), "{drops}");
    assert_eq!(offered(FloqParams::default(), 160, syn(9_999), 10_000).0, 0);
    assert_eq!(
        offered(FloqParams::default(), 100, data(9_999), 10_000).0,
        0
    );
}

#[test]
fn only_what_answers_to_marks_is_marked() {
    let ecn = FloqParams {
        ecn: true,
        ..FloqParams::protect()
    };
    let able = |pkt: TestPacket| TestPacket {
        ecn: Ecn::Ect0,
        ..pkt
    };
    let (drops, marks) = offered(ecn, 160, able(data(9_999)), 1_000);
    assert_eq!(drops, 0);
    assert!((523..677).contains(&marks), "{marks}");
    for (params, pkt) in [
        (ecn, data(9_999)),
        (ecn, able(datagram(9_999, Transport::Udp))),
        (FloqParams::protect(), able(data(9_999))),
    ] {
        let (drops, marks) = offered(params, 160, pkt, 1_000);
        assert_eq!(marks, 0, "{pkt:?}");
        assert!((523..677).contains(&drops), "{drops}");
    }
}

#[test]
fn a_full_buffer_drops_even_a_set_up_unless_it_may_push_out() {
    let fill = |pushout| {
        let params = FloqParams {
            limit: 4,
            threshold: 1.0,
            pushout,
            ..FloqParams::default()
        };
        let (mut queue, mut seen) = (Floq::new(&params, Rng::new(1)), Recorder::default());
        let packets = [
            data(1),
            data(2),
            syn(3),
            syn(4),
            syn(5),
            syn(6),
            syn(7),
            data(1),
        ];
        for (id, pkt) in (0..).zip(packets) {
            queue.enqueue(ms(0), TestPacket { id, ..pkt }, &mut seen);
        }
        let lost: Vec<_> = seen.drops.iter().map(|drop| drop.1.id).collect();
        assert!(
            seen.drops
                .iter()
                .all(|drop| drop.2 == DropReason::Overlimit)
        );
        let left = std::iter::from_fn(|| queue.dequeue(ms(0), &mut seen));
        let left: Vec<_> = left.map(|pkt| pkt.id).collect();
        assert_eq!(queue.backlog(), Backlog::default());
        (lost, left, queue.pushed_out)
    };
    assert_eq!(fill(false), (vec![4, 5, 6, 7], vec![0, 1, 2, 3], 0));
    // The youngest that is no setup goes first; when none is left, the arrival does.
    assert_eq!(fill(true), (vec![1, 0, 6, 7], vec![2, 3, 4, 5], 2));
}

#[test]
fn set_ups_that_have_left_do_not_keep_another_from_pushing_out() {
    let params = FloqParams {
        limit: 4,
        threshold: 1.0,
        pushout: true,
        ..FloqParams::default()
    };
    let (mut queue, mut seen) = (Floq::new(&params, Rng::new(1)), Recorder::default());
    for flow in [1, 2] {
        queue.enqueue(ms(0), syn(flow), &mut seen);
        assert!(queue.dequeue(ms(0), &mut seen).is_some());
    }
    for pkt in [data(3), data(4), data(5), data(6), syn(7)] {
        queue.enqueue(ms(0), pkt, &mut seen);
    }
    assert_eq!((queue.pushed_out, seen.drops.len()), (1, 1));
}

#[test]
fn each_class_is_counted() {
    let params = FloqParams {
        limit: 2,
        threshold: 1.0,
        ..FloqParams::default()
    };
    let (mut queue, mut seen) = (Floq::new(&params, Rng::new(1)), Recorder::default());
    for pkt in [syn(1), data(2), data(3), datagram(4, Transport::Udp)] {
        queue.enqueue(ms(0), pkt, &mut seen);
    }
    let of = |class: Class, name| {
        let part = Some(("classes", class.place()));
        let all = queue.statistics();
        let found = all.iter().find(|s| s.part == part && s.name == name);
        found.map(|s| s.value)
    };
    for (class, packets, lost) in [(Setup, 1, 0), (Responsive, 2, 1), (Unresponsive, 1, 1)] {
        assert_eq!(of(class, "packets"), Some(Count(packets)));
        assert_eq!(of(class, "overlimit"), Some(Count(lost)));
        assert_eq!(of(class, "early"), Some(Count(0)));
    }
}

#[test]
fn it_costs_as_many_bytes_as_documented() {
    assert_eq!(size_of::<connections::Connection>(), 32);
}

#[test]
fn a_victim_counts_as_lost_of_its_class() {
    let params = FloqParams {
        limit: 2,
        threshold: 1.0,
        pushout: true,
        ..FloqParams::default()
    };
    let (mut queue, mut seen) = (Floq::new(&params, Rng::new(1)), Recorder::default());
    for pkt in [data(1), data(2), syn(3), syn(4)] {
        queue.enqueue(ms(0), pkt, &mut seen);
    }
    assert_eq!(queue.counted[Responsive.place()].overlimit, 2);
    assert_eq!(queue.counted[Setup.place()].overlimit, 0);
}

#[test]
fn marks_are_counted_and_where_a_signal_is_certain_ecn_saves_nobody() {
    let params = FloqParams {
        limit: 200,
        ecn: true,
        threshold: 0.1,
        responsive_weight: 1.2,
        exponent: 0,
        ..FloqParams::default()
    };
    let ect = TestPacket {
        ecn: Ecn::Ect0,
        ..data(9)
    };
    let at = |backlog: u32| {
        let (mut queue, mut seen) = (Floq::new(&params, Rng::new(1)), Recorder::default());
        for flow in 0..backlog {
            queue.push(Responsive, data(flow));
        }
        for _ in 0..50 {
            queue.enqueue(ms(0), ect, &mut seen);
            if queue.backlog().packets > backlog as usize {
                queue.dequeue(ms(0), &mut seen);
            }
        }
        assert_eq!(queue.marked, seen.marks.len() as u64);
        (seen.drops.len(), seen.marks.len())
    };
    // 1.2 (120 / 200 - 0.1) / 0.9 is two thirds; from 170 on it is 1.
    let (drops, marks) = at(120);
    assert!(drops == 0 && marks > 20, "{drops} {marks}");
    assert_eq!(at(180), (50, 0));
}

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
