//! Byte numbers of simulated connections.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod path;
mod reading;

use std::collections::BTreeSet;

use path::{Capture, Script, run};
use proptest::prelude::*;
use reading::blocks;
use sojourn_capture::{Connection, Role, Tcp, WINDOW_SCALE};
use sojourn_net::TcpHeader;

const ACK: u16 = TcpHeader::ACK;
const DATA_START: u32 = 1_000_000_001;
const REQUEST_START: u32 = 2_000_000_001;

/// A segment, by index.
fn segment(seq: u32, payload: u32, ack: u32, flags: u16) -> TcpHeader {
    TcpHeader {
        seq,
        ack,
        payload,
        window: 65_536,
        flags,
        timestamps: Some((1, 2)),
        ..TcpHeader::default()
    }
}

/// A connection after its handshake, opened by the end that sends data.
fn opened(mss: u16) -> Connection {
    let mut connection = Connection::new(mss);
    let syn = connection.send(Role::Data, &segment(0, 0, 0, TcpHeader::SYN));
    let expected = Tcp {
        seq: DATA_START - 1,
        ack: 0,
        flags: 2,
        window: 65_536,
        window_scale: WINDOW_SCALE,
        mss: Some(mss + 12),
        timestamps: Some((1, 2)),
        sacks: [(0, 0); 3],
        accurate_ecn: None,
    };
    assert_eq!(syn, expected);
    let answer = connection.send(Role::Ack, &segment(0, 0, 0, TcpHeader::SYN | ACK));
    assert_eq!((answer.seq, answer.ack), (REQUEST_START - 1, DATA_START));
    assert_eq!(answer.mss, Some(mss + 12));
    let confirmation = connection.send(Role::Data, &segment(0, 0, 0, ACK));
    assert_eq!(
        (confirmation.seq, confirmation.ack),
        (DATA_START, REQUEST_START)
    );
    assert_eq!(confirmation.mss, None);
    connection
}

#[test]
fn requests_and_data_are_numbered_separately() {
    let mut connection = opened(1_448);
    let numbers = |tcp: Tcp| {
        (
            tcp.seq.wrapping_sub(DATA_START),
            tcp.ack.wrapping_sub(REQUEST_START),
        )
    };
    let swapped = |tcp: Tcp| {
        (
            tcp.seq.wrapping_sub(REQUEST_START),
            tcp.ack.wrapping_sub(DATA_START),
        )
    };
    let mut sent = |role, header: TcpHeader| connection.send(role, &header);
    let request = sent(Role::Request, segment(0, 300, 0, ACK));
    assert_eq!(swapped(request), (0, 0));
    let ack = sent(Role::RequestAck, segment(0, 0, 1, ACK));
    assert_eq!(numbers(ack), (0, 300));
    let data = sent(Role::Data, segment(0, 1_448, 0, ACK));
    assert_eq!(numbers(data), (0, 300), "data repeats the acknowledgement");
    let data = sent(Role::Data, segment(1, 52, 0, ACK));
    assert_eq!(numbers(data), (1_448, 300));
    let ack = sent(Role::Ack, segment(99, 0, 2, ACK));
    assert_eq!(swapped(ack), (300, 1_500), "its own index has no meaning");
    let request = sent(Role::Request, segment(1, 300, 0, ACK));
    assert_eq!(swapped(request), (300, 1_500));
    let again = sent(Role::Request, segment(0, 300, 0, ACK));
    assert_eq!(swapped(again), (0, 1_500), "a retransmission");
    let ack = sent(Role::RequestAck, segment(0, 0, 2, ACK));
    assert_eq!(numbers(ack), (1_500, 600));
}

#[test]
fn a_fin_takes_a_number_and_a_probe_none() {
    let mut connection = opened(1_000);
    let mut seq = |header| connection.send(Role::Data, &header).seq - DATA_START;
    // Before any data: the number of the SYN.
    assert_eq!(seq(segment(0, 1_000, 0, ACK)), 0);
    assert_eq!(seq(segment(1, 10, 0, ACK)), 1_000);
    // Of a closed window, for the byte before the next.
    assert_eq!(seq(segment(1, 0, 0, ACK)), 1_009);
    assert_eq!(seq(segment(2, 5, 0, ACK)), 1_010);
    let fin = ACK | TcpHeader::FIN;
    assert_eq!(seq(segment(3, 0, 0, fin)), 1_015);
    assert_eq!(seq(segment(3, 0, 0, fin)), 1_015, "a retransmission");
    let ack = connection.send(Role::Ack, &segment(0, 0, 4, ACK));
    assert_eq!(ack.ack - DATA_START, 1_016);

    let mut connection = opened(1_000);
    let probe = connection.send(Role::Data, &segment(u32::MAX, 0, 0, ACK));
    assert_eq!(probe.seq, DATA_START - 1);
    let with_data = connection.send(Role::Data, &segment(0, 1_000, 0, fin));
    assert_eq!(with_data.seq, DATA_START);
    let ack = connection.send(Role::Ack, &segment(0, 0, 1, ACK));
    assert_eq!(ack.ack - DATA_START, 1_001);
}

#[test]
fn numbers_wrap_after_four_gibibytes() {
    let mut connection = opened(1_448);
    let index = 5_000_000;
    let data = connection.send(Role::Data, &segment(index, 1_448, 0, ACK));
    let byte = u64::from(DATA_START) + u64::from(index) * 1_448;
    assert!(byte > u64::from(u32::MAX));
    assert_eq!(u64::from(data.seq), byte % (1 << 32));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn segments_are_contiguous_and_acknowledgements_name_their_edges(
        lengths in proptest::collection::vec(prop_oneof![3 => Just(1_448_u16), 1 => 1..1_448_u16], 1..200),
        again in any::<prop::sample::Index>(),
        edges in any::<[prop::sample::Index; 3]>(),
    ) {
        let mut connection = opened(1_448);
        let mut starts = vec![DATA_START];
        for (index, length) in (0..).zip(&lengths) {
            let tcp = connection.send(Role::Data, &segment(index, (*length).into(), 0, ACK));
            prop_assert_eq!(tcp.seq, *starts.last().unwrap());
            starts.push(tcp.seq + u32::from(*length));
        }
        let repeated = again.index(lengths.len());
        let header = segment(
            u32::try_from(repeated).unwrap(), lengths[repeated].into(), 0, ACK,
        );
        prop_assert_eq!(connection.send(Role::Data, &header).seq, starts[repeated]);

        let mut places = edges.map(|edge| edge.index(starts.len()));
        places.sort_unstable();
        let index = |place: usize| u32::try_from(places[place]).unwrap();
        let mut header = segment(0, 0, index(0), ACK);
        header.sacks[0] = (index(1), index(2));
        let ack = connection.send(Role::Ack, &header);
        prop_assert_eq!(ack.ack, starts[places[0]]);
        let block = (starts[places[1]], starts[places[2]]);
        let is_used = places[1] != places[2];
        prop_assert_eq!(ack.sacks[0], if is_used { block } else { (0, 0) });
    }
}

/// The numbers of bytes that the packets of a point carry.
fn carried(blocks: &[reading::Block], point: u32) -> BTreeSet<(u32, u32)> {
    let packets = blocks.iter().filter(|block| block.kind == 6);
    packets
        .filter(|block| block.field(0) == point)
        .map(|block| {
            let data = block.data();
            let seq = u32::from_be_bytes(data[24..28].try_into().unwrap());
            let headers = 20 + u32::from(data[32] >> 4) * 4;
            (seq, block.field(16) - headers)
        })
        .filter(|(_, length)| *length > 0)
        .collect()
}

#[test]
fn a_captured_connection_carries_every_byte() {
    let script = Script {
        writes: &[50_000, 3, 9_999],
        drops: &[10, 35],
        ..Script::default()
    };
    let mut capture = Capture::new(Vec::new(), script.is_whole);
    let outcome = run(&script, &mut capture);
    assert_eq!(outcome.dropped, 2);
    let blocks = blocks(&capture.writer.finish().unwrap());
    // The points `down.enq` and `down.deq`; retransmissions carry the same bytes again.
    let carried = [0, 2].map(|point| carried(&blocks, point));
    assert_eq!(carried[0], carried[1]);
    let mut next = DATA_START;
    for (seq, length) in &carried[0] {
        assert_eq!(*seq, next);
        next += length;
    }
    let bytes = u64::from(next - DATA_START);
    assert_eq!(bytes, outcome.receiver.delivered_bytes());
}

#[test]
fn numbers_stay_right_when_many_short_segments_have_been_acknowledged() {
    let mut connection = opened(1_448);
    for index in 0..20_000 {
        let sent = connection.send(Role::Data, &segment(index, 100, 0, ACK));
        assert_eq!(sent.seq, DATA_START + 100 * index);
        if index < 1_000 {
            continue;
        }
        // Everything but the last ten, and a duplicate of an old one.
        let (all, old) = (index - 10, index - 900);
        let mut header = segment(0, 0, all, ACK);
        header.sacks[0] = (old, old + 1);
        let answer = connection.send(Role::Ack, &header);
        let byte = |index: u32| DATA_START + 100 * index;
        assert_eq!(answer.ack, byte(all));
        assert_eq!(answer.sacks[0], (byte(old), byte(old + 1)));
    }
    // One for each of 20,000 would be 160 kB.
    let kept = format!("{connection:?}").matches("lack").count();
    assert!(kept < 5_000, "{kept}");
}
