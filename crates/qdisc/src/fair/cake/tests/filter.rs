//! Which acknowledgements are filtered.

use super::*;
use sojourn_net::{TcpHeader, Transport};

/// A pure acknowledgement of everything before `ack`.
fn ack(ack: u32) -> TcpHeader {
    TcpHeader {
        ack,
        flags: TcpHeader::ACK,
        timestamps: Some((ack, ack)),
        ..TcpHeader::default()
    }
}

/// What is left after these headers of one flow arrived, by place.
fn left(text: &str, headers: &[TcpHeader]) -> Vec<u64> {
    let (mut q, mut seen) = (cake(text), Recorder::default());
    for (id, &header) in (0..).zip(headers) {
        let pkt = TestPacket {
            size: 66,
            transport: Transport::Tcp(header),
            ..TestPacket::mtu(id)
        };
        q.enqueue(ms(0), pkt, &mut seen);
    }
    assert_eq!(number(&q, 1, "ack_drops"), seen.drops.len() as u64);
    let filtered = |drop: &(_, _, DropReason)| drop.2 == DropReason::AckFilter;
    assert!(seen.drops.iter().all(filtered));
    let sent = drain(&mut q, ms(0), Duration::from_micros(1), 100);
    sent.iter().map(|pkt| pkt.id).collect()
}

#[test]
fn two_acknowledgements_always_remain_or_one_if_aggressive() {
    let acks: Vec<_> = (1..7).map(ack).collect();
    assert_eq!(left("", &acks), [0, 1, 2, 3, 4, 5]);
    assert_eq!(left("ack-filter", &acks), [4, 5]);
    assert_eq!(left("ack-filter-aggressive", &acks), [5]);
}

#[test]
fn what_carries_more_than_an_acknowledgement_stays() {
    let with = |change: fn(&mut TcpHeader)| {
        let mut first = ack(1);
        change(&mut first);
        let headers = [first, ack(2), ack(3), ack(4)];
        left("ack-filter", &headers).contains(&0)
    };
    assert!(!with(|_| {}));
    assert!(with(|h| h.payload = 1));
    assert!(with(|h| h.flags |= TcpHeader::FIN));
    assert!(with(|h| h.flags |= TcpHeader::PSH));
    assert!(with(|h| h.other_options = true));
    // AE, and the reserved bits above it.
    for bit in [TcpHeader::AE, 512, 1_024, 2_048] {
        let kept = TcpHeader {
            flags: TcpHeader::ACK | bit,
            ..ack(1)
        };
        let headers = [kept, ack(2), ack(3), ack(4)];
        assert_eq!(left("ack-filter-aggressive", &headers), [0, 3], "{bit}");
    }
    assert!(with(|h| h.ack = 9));
    assert!(with(|h| h.timestamps = Some((9, 1))));
    assert!(with(|h| h.timestamps = Some((1, 9))));
    // Blocks that the later do not have.
    assert!(with(|h| h.sacks[0] = (10, 20)));
}

#[test]
fn a_change_of_the_ecn_flags_starts_the_search_again() {
    let echo = |n| TcpHeader {
        flags: TcpHeader::ACK | TcpHeader::ECE,
        ..ack(n)
    };
    let headers = [ack(1), echo(2), ack(3), ack(4)];
    assert_eq!(left("ack-filter", &headers), [0, 1, 2, 3]);
    assert_eq!(left("ack-filter-aggressive", &headers), [0, 1, 3]);
}

#[test]
fn blocks_must_be_covered_and_duplicates_stay() {
    let sack = |n, blocks: [(u32, u32); 4]| TcpHeader {
        sacks: blocks,
        ..ack(n)
    };
    let none = (0, 0);
    // The same number with more blocks: each covers the one before.
    let growing = [
        sack(5, [(10, 12), none, none, none]),
        sack(5, [(10, 14), none, none, none]),
        sack(5, [(10, 16), (20, 22), none, none]),
    ];
    assert_eq!(left("ack-filter", &growing), [1, 2]);
    // The same number with the same blocks: duplicates, which the sender counts.
    assert_eq!(left("ack-filter", &[growing[0]; 4]), [0, 1, 2, 3]);
    assert_eq!(left("ack-filter", &[ack(5); 4]), [0, 1, 2, 3]);
    // A block below the number reports a duplicate.
    let reported = sack(5, [(2, 3), none, none, none]);
    let headers = [reported, reported, sack(6, [(2, 3), (7, 8), none, none])];
    assert_eq!(left("ack-filter", &headers), [0, 1, 2]);
}

#[test]
fn only_a_packet_with_an_acknowledgement_filters_and_only_in_its_flow() {
    let syn = TcpHeader {
        flags: TcpHeader::ACK | TcpHeader::SYN,
        ..ack(9)
    };
    let silent = TcpHeader {
        flags: TcpHeader::PSH,
        ..ack(9)
    };
    for last in [syn, silent] {
        // The second filtered nothing, having but one before it.
        assert_eq!(left("ack-filter", &[ack(1), ack(2), last]), [0, 1, 2]);
    }
    let data = TcpHeader {
        payload: 1_448,
        ..ack(3)
    };
    assert_eq!(left("ack-filter", &[ack(1), ack(2), data]), [1, 2]);
    // Another flow in the same queue.
    let (mut q, mut seen) = (cake("besteffort flowblind ack-filter"), Recorder::default());
    for (id, flow) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        let pkt = TestPacket {
            transport: Transport::Tcp(ack(id)),
            ..of_flow(flow, id.into())
        };
        q.enqueue(ms(0), pkt, &mut seen);
    }
    assert!(seen.drops.is_empty());
}

#[test]
fn a_block_is_covered_from_its_start_to_its_end() {
    let with = |n, block| TcpHeader {
        sacks: [block, (0, 0), (0, 0), (0, 0)],
        ..ack(n)
    };
    // The newest has to say all that the older one said.
    let filtered = |newest| {
        let headers = [with(1, (100, 200)), with(2, newest)];
        left("ack-filter-aggressive", &headers) == [1]
    };
    assert!(filtered((100, 200)));
    assert!(filtered((50, 300)));
    assert!(!filtered((150, 300)), "its start is missing");
    assert!(!filtered((50, 150)), "its end is missing");
}

#[test]
fn what_is_filtered_no_longer_waits() {
    let (mut q, mut seen) = (cake("ack-filter-aggressive"), Recorder::default());
    for (id, n) in (0..).zip(1..6) {
        let pkt = TestPacket {
            size: 66,
            transport: Transport::Tcp(ack(n)),
            ..TestPacket::mtu(id)
        };
        q.enqueue(ms(0), pkt, &mut seen);
    }
    assert_eq!(seen.drops.len(), 4);
    assert_eq!(number(&q, 1, "backlog_bytes"), 66);
    assert_eq!(
        q.backlog(),
        Backlog {
            packets: 1,
            bytes: Bytes(66)
        }
    );
}
