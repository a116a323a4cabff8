use super::super::{Fq, FqParams, Order};
use super::*;
use crate::QdiscSpec;
use crate::contract::{Number, Qdisc};
use crate::parameters::Profile;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::{Dscp, Ecn, Rate};

const MTU: Bytes = Bytes(1_514);
/// A class of priority 6, which is that of band 0.
const INTERACTIVE: u8 = 0b1_00;
/// A class of priority 2, which is that of band 2.
const BULK: u8 = 0b0_10;
/// A class of the router's own packets.
const OWN: u8 = 48;

fn queue(params: FqParams) -> (Fq<TestPacket>, Recorder) {
    let params = FqParams {
        profile: Profile::Linux612,
        ..params
    };
    (Fq::new(&params, MTU, Rng::new(1)), Recorder::default())
}

fn packet(id: u64, flow: u32, dscp: u8) -> TestPacket {
    TestPacket {
        flow,
        dscp: Dscp::new(dscp).expect("a class"),
        ..TestPacket::mtu(id)
    }
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// A queue whose fast path holds all that it may, of flow 99.
fn behind_fast_path(params: FqParams) -> (Fq<TestPacket>, Recorder) {
    let (mut q, mut seen) = queue(params);
    for id in 0..8 {
        q.enqueue(at_ms(0), packet(1_000 + id, 99, 0), &mut seen);
    }
    (q, seen)
}

fn flows_sent(q: &mut Fq<TestPacket>, packets: usize) -> Vec<u32> {
    let mut seen = Recorder::default();
    let sent = (0..packets).map_while(|_| q.dequeue(at_ms(0), &mut seen));
    sent.map(|p| p.flow).collect()
}

fn statistic(q: &Fq<TestPacket>, name: &str) -> u64 {
    match q.statistics().iter().find(|s| s.name == name) {
        Some(Statistic {
            value: Number::Count(n),
            ..
        }) => *n,
        other => panic!("{name}: {other:?}"),
    }
}

fn bands(q: &Fq<TestPacket>) -> &BandScheduler<TestPacket> {
    let Order::Bands(bands) = &q.order else {
        panic!("another profile")
    };
    bands
}

/// Packets of each of these flows among `total` that leave a queue in which all have a standing
/// backlog, after their first turns, which are in the first band.
fn shares(params: FqParams, flows: &[(u32, u8)], total: usize) -> Vec<usize> {
    let (mut q, mut seen) = behind_fast_path(FqParams {
        flow_limit: 100_000,
        limit: 100_000,
        ..params
    });
    let first = 60;
    for id in 0..(first + total) as u64 {
        for &(flow, dscp) in flows {
            q.enqueue(at_ms(0), packet(id, flow, dscp), &mut seen);
        }
    }
    assert!(seen.drops.is_empty());
    assert_eq!(flows_sent(&mut q, 8), [99; 8]);
    flows_sent(&mut q, first);
    let sent = flows_sent(&mut q, total);
    let count = |&(flow, _): &(u32, u8)| sent.iter().filter(|&&f| f == flow).count();
    flows.iter().map(count).collect()
}

/// A turn of each band is at most this long, and ends with a packet at most.
fn near(counts: &[usize], expected: &[usize], turn: usize) {
    for (count, expected) in counts.iter().zip(expected) {
        assert!(count.abs_diff(*expected) <= turn, "{counts:?}");
    }
}

#[test]
fn bands_share_the_link_by_weight_in_bytes() {
    let all = [(1, INTERACTIVE), (2, 0), (3, BULK)];
    // 9 : 3 : 1, in turns of 389.6, 129.9 and 43.3 packets.
    let counts = shares(FqParams::default(), &all, 13_000);
    near(&counts, &[9_000, 3_000, 1_000], 390);
    // 90 % beside the last band alone, 75 % beside the second.
    near(
        &shares(FqParams::default(), &[(1, INTERACTIVE), (3, BULK)], 10_000),
        &[9_000, 1_000],
        390,
    );
    near(
        &shares(FqParams::default(), &[(1, INTERACTIVE), (2, 0)], 10_000),
        &[7_500, 2_500],
        390,
    );
    let even = FqParams {
        weights: Some([1_514 * 20; 3]),
        ..FqParams::default()
    };
    // In turns of exactly 20 packets of each band, all of which are complete.
    assert_eq!(shares(even, &all, 6_000), [2_000; 3]);
}

#[test]
fn flows_of_a_band_share_what_the_band_has() {
    let three = [(1, INTERACTIVE), (2, INTERACTIVE), (3, 0)];
    near(
        &shares(FqParams::default(), &three, 8_000),
        &[3_000, 3_000, 2_000],
        390,
    );
}

#[test]
fn a_band_alone_has_the_whole_link() {
    assert_eq!(shares(FqParams::default(), &[(3, BULK)], 500), [500]);
}

#[test]
fn the_map_takes_a_class_to_another_band() {
    let mut priomap = PRIOMAP;
    priomap[2] = 1;
    let params = FqParams {
        priomap: Some(priomap),
        weights: Some([16_384, 32_768, 65_536]),
        ..FqParams::default()
    };
    // Both flows are of band 1 now, and the bulk no longer of band 2 with its larger weight.
    assert_eq!(shares(params, &[(1, 0), (2, BULK)], 600), [300, 300]);
    let (mut q, mut seen) = behind_fast_path(params);
    q.enqueue(at_ms(0), packet(0, 2, BULK), &mut seen);
    assert_eq!(statistic(&q, "band1_pkts"), 1);
}

#[test]
fn eight_packets_may_wait_in_the_fast_path_while_no_flow_has_packets() {
    let (mut q, mut seen) = queue(FqParams::default());
    for id in 0..10 {
        q.enqueue(at_ms(0), packet(id, 1, 0), &mut seen);
    }
    assert_eq!(statistic(&q, "fastpath"), 8);
    assert_eq!(statistic(&q, "band1_pkts"), 2);
    assert_eq!((statistic(&q, "flows"), statistic(&q, "inactive")), (1, 0));
    // The fast path is empty again, but flow 1 must not be overtaken.
    flows_sent(&mut q, 8);
    q.enqueue(at_ms(0), packet(10, 2, 0), &mut seen);
    assert_eq!(statistic(&q, "fastpath"), 8);
    assert_eq!(flows_sent(&mut q, 4), [1, 1, 2]);
    assert_eq!((statistic(&q, "flows"), statistic(&q, "inactive")), (2, 2));
    q.enqueue(at_ms(0), packet(11, 2, 0), &mut seen);
    assert_eq!(statistic(&q, "fastpath"), 9);
}

#[test]
fn with_maxrate_no_packet_takes_the_fast_path() {
    let (mut q, mut seen) = queue(FqParams {
        maxrate: Some(Rate::mbit(10)),
        initial_quantum: Some(Bytes(1_514)),
        ..FqParams::default()
    });
    for id in 0..2 {
        q.enqueue(at_ms(0), packet(id, 1, 0), &mut seen);
    }
    assert_eq!(statistic(&q, "fastpath"), 0);
    assert_eq!(flows_sent(&mut q, 2), [1]);
    assert_eq!(statistic(&q, "throttled"), 1);
    // A quantum of 3028 bytes at 10 Mbit/s.
    let due = q.next_timer().expect("flow 1 waits");
    assert_eq!(due, at_ms(0) + Duration::from_nanos(2_422_400));
    q.on_timer(due);
    assert_eq!(q.dequeue(due, &mut seen).map(|p| p.flow), Some(1));
}

#[test]
fn packets_of_the_fast_path_are_not_marked() {
    let (mut q, mut seen) = queue(FqParams {
        ce_threshold: Some(Duration::from_millis(5)),
        ..FqParams::default()
    });
    for id in 0..9 {
        let pkt = TestPacket {
            ecn: Ecn::Ect0,
            ..packet(id, 1, 0)
        };
        q.enqueue(at_ms(0), pkt, &mut seen);
    }
    while q.dequeue(at_ms(6), &mut seen).is_some() {}
    let marked: Vec<_> = seen.marks.iter().map(|m| m.1.id).collect();
    assert_eq!(marked, [8]);
}

#[test]
fn each_band_has_the_limit_and_the_fast_path_has_none() {
    let (mut q, mut seen) = behind_fast_path(FqParams {
        limit: 5,
        ..FqParams::default()
    });
    for id in 0..7 {
        q.enqueue(at_ms(0), packet(id, 1, 0), &mut seen);
        q.enqueue(at_ms(0), packet(100 + id, 2, BULK), &mut seen);
    }
    let lost: Vec<_> = seen.drops.iter().map(|d| d.1.id).collect();
    assert_eq!(lost, [5, 105, 6, 106]);
    assert_eq!(statistic(&q, "band1_drops"), 2);
    assert_eq!(statistic(&q, "band2_drops"), 2);
    assert_eq!(q.backlog().packets, 8 + 5 + 5);
    assert_eq!(flows_sent(&mut q, 99).len(), 18);
    assert_eq!(q.backlog(), Backlog::default());
}

#[test]
fn the_router_has_no_queue_of_its_own() {
    let (mut q, mut seen) = behind_fast_path(FqParams {
        flow_limit: 2,
        ..FqParams::default()
    });
    for id in 0..3 {
        q.enqueue(at_ms(0), packet(id, 7, OWN), &mut seen);
    }
    assert_eq!(statistic(&q, "band0_pkts"), 2);
    assert_eq!(statistic(&q, "flows_plimit"), 1);
    assert_eq!(seen.drops.len(), 1);
}

#[test]
fn a_flow_takes_its_first_turn_in_the_first_band_and_then_moves_to_its_own() {
    let (mut q, mut seen) = behind_fast_path(FqParams::default());
    for id in 0..20 {
        q.enqueue(at_ms(0), packet(id, 1, BULK), &mut seen);
    }
    let id = bands(&q).classify(&packet(0, 1, 0));
    assert_eq!(bands(&q).bands[0].new.first(), Some(id));
    assert_eq!(statistic(&q, "band2_pkts"), 20);
    // Ten packets spend the initial quantum.
    flows_sent(&mut q, 8 + 11);
    assert_eq!(bands(&q).bands[0].new.first(), None);
    assert_eq!(bands(&q).bands[2].old.first(), Some(id));
}

#[test]
fn an_emptied_new_flow_takes_a_turn_among_the_old_even_alone() {
    let (mut q, mut seen) = behind_fast_path(FqParams::default());
    q.enqueue(at_ms(0), packet(0, 1, 0), &mut seen);
    assert_eq!(flows_sent(&mut q, 9).last(), Some(&1));
    // Flow 2, which is sent next, finds flow 1 empty and moves it.
    for id in 0..9 {
        let flow = if id < 8 { 99 } else { 2 };
        q.enqueue(at_ms(0), packet(2_000 + id, flow, 0), &mut seen);
    }
    assert_eq!(flows_sent(&mut q, 9).last(), Some(&2));
    let first = bands(&q).classify(&packet(0, 1, 0));
    assert_eq!(bands(&q).flows[first.index()].place, Place::Listed);
    assert_eq!(bands(&q).bands[1].old.first(), Some(first));
}

#[test]
fn a_flow_keeps_its_place_while_nothing_is_queued() {
    let (mut q, mut seen) = behind_fast_path(FqParams::default());
    q.enqueue(at_ms(0), packet(0, 1, 0), &mut seen);
    assert_eq!(flows_sent(&mut q, 99).len(), 9);
    assert_eq!(q.dequeue(at_ms(100), &mut seen), None);
    let flow = &bands(&q).flows[bands(&q).classify(&packet(0, 1, 0)).index()];
    assert_eq!(flow.place, Place::Listed);
}

/// The credit of flow 1, which was found empty at 500 ms and comes back after `away`.
fn credit_on_return(away: u64) -> i64 {
    let (mut q, mut seen) = behind_fast_path(FqParams {
        initial_quantum: Some(Bytes(1_600)),
        ..FqParams::default()
    });
    q.enqueue(at_ms(0), packet(0, 1, 0), &mut seen);
    for id in 1..9 {
        q.enqueue(at_ms(0), packet(id, 2, 0), &mut seen);
    }
    while q.backlog().packets > 0 {
        q.dequeue(at_ms(500), &mut seen);
    }
    for id in 0..9 {
        let flow = if id < 8 { 99 } else { 1 };
        q.enqueue(at_ms(500 + away), packet(id, flow, 0), &mut seen);
    }
    let id = bands(&q).classify(&packet(0, 1, 0));
    bands(&q).flows[id.index()].credit
}

#[test]
fn a_long_absence_refills_the_credit() {
    assert_eq!(credit_on_return(40), 1_600 - 1_514);
    assert_eq!(credit_on_return(41), 3_028);
}

#[test]
fn a_packet_larger_than_the_weight_takes_several_turns() {
    let (mut q, mut seen) = behind_fast_path(FqParams {
        weights: Some([16_384; 3]),
        ..FqParams::default()
    });
    for id in 0..3 {
        let pkt = TestPacket {
            size: 60_000,
            ..packet(id, 1, BULK)
        };
        q.enqueue(at_ms(0), pkt, &mut seen);
    }
    assert_eq!(
        flows_sent(&mut q, 11).len(),
        11,
        "a backlog is never held back"
    );
}

#[test]
fn options_are_those_of_tc() {
    let canonical = |text: &str| QdiscSpec::parse(text).expect(text).to_string();
    let all = "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 weights 589824 196608 65536";
    let others = "fq limit 10000 flow_limit 100 refill_delay 40ms orphan_mask 1023";
    assert_eq!(
        canonical(&format!("fq profile linux-6.12 {all}")),
        format!("{others} {all} profile linux-6.12")
    );
    assert_eq!(
        canonical("fq weights 20000,30000,40000 profile linux-6.12"),
        format!("{others} weights 20000 30000 40000 profile linux-6.12")
    );
    for text in ["fq", "fq profile linux"] {
        assert_eq!(
            canonical(text),
            others,
            "nothing is new without the profile"
        );
    }
}

#[test]
fn options_out_of_range_or_of_the_other_profile_are_refused() {
    let refusal = |text: &str| QdiscSpec::parse(text).expect_err(text).to_string();
    for (options, message) in [
        ("bands 2", "bands 2 is out of range; expected 3"),
        (
            "weights 20000 20000",
            "weights needs 3 numbers, not 2; expected numbers from 16384 to 2147483647",
        ),
        (
            "weights 20000 20000 16383",
            "weights 16383 is out of range; expected numbers from 16384 to 2147483647",
        ),
        (
            "priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3",
            "priomap 3 is out of range; expected numbers from 0 to 2",
        ),
        (
            "priomap 0 0",
            "priomap needs 16 numbers, not 2; expected numbers from 0 to 2",
        ),
    ] {
        let text = format!("fq {options} profile linux-6.12");
        assert_eq!(refusal(&text), format!("fq: {message}"));
    }
    for (key, value) in [
        ("bands", "3"),
        ("priomap", "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
        ("weights", "20000 20000 20000"),
    ] {
        let message = format!("fq: {key} requires profile linux-6.12");
        assert_eq!(refusal(&format!("fq {key} {value}")), message);
        assert_eq!(refusal(&format!("fq {key} {value} profile linux")), message);
    }
}
