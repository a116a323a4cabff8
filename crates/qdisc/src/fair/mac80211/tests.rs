use super::*;
use crate::testing::TestPacket;

/// Reads the station of a packet from the receiving host, and keeps what is dropped.
#[derive(Default)]
struct Stations {
    drops: Vec<(u64, DropReason)>,
    marks: u64,
}

impl Observer<TestPacket> for Stations {
    fn station_of(&self, pkt: &TestPacket) -> u8 {
        (pkt.flow >> 16 & 0x7F) as u8
    }

    fn on_drop(&mut self, _now: Instant, pkt: TestPacket, reason: DropReason) {
        self.drops.push((pkt.id, reason));
    }

    fn on_mark(&mut self, _now: Instant, _pkt: &TestPacket, _reason: crate::MarkReason) {
        self.marks += 1;
    }
}

const BEST_EFFORT: usize = 1;
const FAST: Rate = Rate::mbit(144);
const SLOW: Rate = Rate::mbit(7);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A packet of a flow to a station.
fn packet(id: u64, station: u32, flow: u32) -> TestPacket {
    TestPacket {
        flow: station << 16 | flow,
        ..TestPacket::mtu(id)
    }
}

fn queue(text: &str) -> Mac80211<TestPacket> {
    let spec = crate::QdiscSpec::parse(text).expect(text);
    let crate::QdiscSpec::Mac80211(params) = spec else {
        panic!("{text} is mac80211");
    };
    Mac80211::new(&params, Rng::new(1))
}

/// Serves stations for `seconds` by aggregates of at most 4 ms or 32 packets, of which the driver holds one; gives the
/// airtime of stations 1 and 2, which always have packets, in µs.
fn airtime(mut queue: Mac80211<TestPacket>, rates: [Rate; 2], seconds: u64) -> [u64; 2] {
    queue.attach(true);
    queue.set_rate(1, rates[0], 1.0);
    queue.set_rate(2, rates[1], 1.0);
    let mut obs = Stations::default();
    let (mut now, mut id, mut air) = (Instant::ZERO, 0, [0, 0]);
    while now < at(seconds * 1_000) {
        for station in 1..=2_u8 {
            let txq = TxqId::new(station, 0);
            while queue.txqs[txq.index()].packets < 64 {
                queue.enqueue(now, packet(id, station.into(), 0), &mut obs);
                id += 1;
            }
        }
        let txq = queue.next_txq(now, BEST_EFFORT).expect("packets wait");
        let station = usize::from(txq.station()) - 1;
        let rate = rates[station];
        let (mut packets, mut expected) = (0, 0);
        while packets < 32
            && rate.serialise(Bytes(1_540 * (packets + 1))) < Duration::from_millis(4)
        {
            let Some(pkt) = queue.dequeue_from(now, txq, &mut obs) else {
                break;
            };
            expected += queue
                .expected_airtime(txq.station(), BEST_EFFORT, pkt.size())
                .as_micros();
            packets += 1;
        }
        let took = Duration::from_micros(150) + rate.serialise(Bytes(1_540 * packets));
        now += took;
        air[station] += took.as_micros();
        queue.complete(txq.station(), BEST_EFFORT, expected);
        queue.charge(now, txq.station(), BEST_EFFORT, took);
    }
    air
}

fn share(air: [u64; 2]) -> f64 {
    real(air[0]) / real(air[0] + air[1])
}

#[test]
fn stations_get_the_same_airtime_or_the_same_turns() {
    let fair = share(airtime(queue("mac80211"), [FAST, SLOW], 20));
    assert!((fair - 0.5).abs() < 0.01, "{fair}");
    // An aggregate of 32 packets and 150 µs are 2.89 ms, one of 2 are 3.67 ms.
    let turns = share(airtime(queue("mac80211 noairtime"), [FAST, SLOW], 20));
    assert!((turns - 2.89 / (2.89 + 3.67)).abs() < 0.01, "{turns}");
}

#[test]
fn airtime_is_proportional_to_weights() {
    let mut weighted = queue("mac80211");
    weighted.set_weight(1, 768);
    let share = share(airtime(weighted, [FAST, SLOW], 20));
    assert!((share - 0.75).abs() < 0.01, "{share}");
}

#[test]
fn aql_lets_a_station_have_the_high_limit_and_the_low_one_above_the_threshold() {
    let mut queue = queue("mac80211");
    queue.attach(true);
    let mut obs = Stations::default();
    let mut id = 0;
    for station in 1..=4 {
        queue.set_rate(station, Rate::mbit(13), 1.0);
        for _ in 0..100 {
            queue.enqueue(at(0), packet(id, station.into(), 0), &mut obs);
            id += 1;
        }
    }
    // 1,552 B at 13 Mbit/s are 955 µs, and 20 µs of overhead for one of two packets.
    let each = queue
        .expected_airtime(1, BEST_EFFORT, Bytes(1_514))
        .as_micros();
    assert_eq!(each, 975);
    let mut taken = [0; 5];
    for station in 1..=4_u8 {
        while queue
            .dequeue_from(at(0), TxqId::new(station, 0), &mut obs)
            .is_some()
        {
            taken[usize::from(station)] += 1;
        }
    }
    // The first reaches 12 ms with 13 packets; with 12 of the second the total is above 24 ms, and 5 ms apply.
    assert_eq!(taken, [0, 13, 12, 6, 6]);
    assert_eq!(queue.next_txq(at(0), BEST_EFFORT), None);
    queue.complete(3, BEST_EFFORT, 2 * each);
    let next = queue.next_txq(at(0), BEST_EFFORT).expect("below 5 ms");
    assert_eq!(next.station(), 3);
}

#[test]
fn the_limits_of_aql_are_per_category() {
    let mut queue = queue("mac80211");
    queue.attach(true);
    queue.set_rate(1, Rate::mbit(13), 1.0);
    let mut obs = Stations::default();
    let voice = crate::Dscp::new(48).expect("CS6");
    for id in 0..40 {
        queue.enqueue(at(0), packet(id, 1, 0), &mut obs);
        let urgent = TestPacket {
            dscp: voice,
            ..packet(100 + id, 1, 1)
        };
        queue.enqueue(at(0), urgent, &mut obs);
    }
    for (tid, class) in [(0, BEST_EFFORT), (6, 3)] {
        let txq = TxqId::new(1, tid);
        assert_eq!(queue.next_txq(at(0), class), Some(txq));
        while queue.dequeue_from(at(0), txq, &mut obs).is_some() {}
        assert_eq!(queue.next_txq(at(0), class), None);
    }
}

#[test]
fn a_station_is_slow_below_6_mbit_s_times_the_number_of_stations() {
    let mut queue = queue("mac80211");
    queue.attach(true);
    // 0.9 of 10 Mbit/s, less overhead: 8.6 Mbit/s.
    queue.set_rate(1, Rate::mbit(10), 1.0);
    queue.set_rate(2, FAST, 1.0);
    let mut obs = Stations::default();
    queue.enqueue(at(0), packet(0, 1, 0), &mut obs);
    assert!(!queue.stations[1].is_slow, "6 Mbit/s for one station");
    queue.enqueue(at(0), packet(1, 2, 0), &mut obs);
    assert!(queue.stations[1].is_slow, "12 Mbit/s for two");
    assert!(!queue.stations[2].is_slow);
}

/// When CoDel signals first, if a packet leaves every `gap` ms and more are always there.
fn first_drop(mut queue: Mac80211<TestPacket>, rate: Rate, gap: u64) -> u64 {
    queue.attach(true);
    queue.set_rate(1, rate, 1.0);
    let mut obs = Stations::default();
    for id in 0..500 {
        queue.enqueue(at(0), packet(id, 1, 0), &mut obs);
    }
    let mut ms = 0;
    while obs.drops.is_empty() {
        ms += gap;
        let txq = queue.next_txq(at(ms), BEST_EFFORT).expect("packets wait");
        queue.dequeue_from(at(ms), txq, &mut obs);
        queue.complete(1, BEST_EFFORT, 100_000);
    }
    ms
}

#[test]
fn codel_has_20_ms_and_100_ms_or_50_ms_and_300_ms() {
    assert_eq!(first_drop(queue("mac80211"), FAST, 1), 20 + 100 + 1);
    assert_eq!(
        first_drop(queue("mac80211"), Rate::mbit(6), 1),
        50 + 300 + 1
    );
}

#[test]
fn a_flow_that_hashes_to_the_queue_of_another_station_gets_the_one_of_its_txq() {
    let mut queue = queue("mac80211 flows 1");
    let mut obs = Stations::default();
    for id in 0..8 {
        queue.enqueue(at(0), packet(id, 1 + (id % 2) as u32, 7), &mut obs);
    }
    assert_eq!(queue.counted.collisions, 4);
    let order: Vec<_> = (0..8)
        .filter_map(|_| queue.dequeue(at(0), &mut obs))
        .map(|pkt| pkt.id)
        .collect();
    // Stations take turns, and each keeps its order.
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn overload_drops_half_of_the_fattest_flow_but_at_most_32() {
    let mut queue = queue("mac80211 limit 100");
    let mut obs = Stations::default();
    for id in 0..10 {
        queue.enqueue(at(0), packet(id, 2, 1), &mut obs);
    }
    for id in 10..101 {
        queue.enqueue(at(0), packet(id, 1, 0), &mut obs);
    }
    let want: Vec<_> = (10..42).map(|id| (id, DropReason::Overlimit)).collect();
    assert_eq!(obs.drops, want);
    assert_eq!(queue.backlog().packets, 69);
}

#[test]
fn memory_is_4_mib_with_802_11n_and_16_mib_otherwise() {
    let waiting = |is_ht_only| {
        let mut queue = queue("mac80211 limit 100000");
        queue.attach(is_ht_only);
        let mut obs = Stations::default();
        let mut id = 0;
        while obs.drops.is_empty() {
            queue.enqueue(at(0), packet(id, 1, 0), &mut obs);
            id += 1;
        }
        id - 1
    };
    // 2,304 B each.
    assert_eq!(waiting(true), (4 << 20) / 2_304);
    assert_eq!(waiting(false), (16 << 20) / 2_304);
}

#[test]
fn a_slow_station_is_not_marked() {
    let marked = |rate| {
        let mut queue = queue("mac80211");
        queue.attach(true);
        queue.set_rate(1, rate, 1.0);
        let mut obs = Stations::default();
        for id in 0..500 {
            let pkt = TestPacket {
                ecn: crate::Ecn::Ect0,
                ..packet(id, 1, 0)
            };
            queue.enqueue(at(0), pkt, &mut obs);
        }
        for ms in 1..450 {
            if let Some(txq) = queue.next_txq(at(ms), BEST_EFFORT) {
                queue.dequeue_from(at(ms), txq, &mut obs);
                queue.complete(1, BEST_EFFORT, 100_000);
            }
        }
        (obs.marks > 0, !obs.drops.is_empty())
    };
    assert_eq!(marked(FAST), (true, false));
    assert_eq!(marked(Rate::mbit(6)), (false, true));
}
