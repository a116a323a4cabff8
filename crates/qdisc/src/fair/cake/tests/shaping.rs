//! The shaper, what it counts, and the tins.

use super::*;
use crate::parts::framing::Framing;

/// When each of `count` packets of `size` leaves.
fn departures(text: &str, size: u64, count: u64) -> Vec<u64> {
    let (mut q, mut seen) = (cake(text), Recorder::default());
    for id in 0..count {
        let pkt = TestPacket {
            size,
            ..TestPacket::mtu(id)
        };
        q.enqueue(ms(1_000), pkt, &mut seen);
    }
    let mut now = ms(1_000);
    let mut times = Vec::new();
    while q.backlog().packets > 0 {
        if q.dequeue(now, &mut seen).is_some() {
            times.push(now.since(ms(1_000)).as_micros());
        } else {
            now = q.next_timer().expect("packets are held back");
            q.on_timer(now);
            assert_eq!(q.next_timer(), None);
        }
    }
    times
}

#[test]
fn a_shaper_sends_at_its_rate_and_without_a_burst() {
    // 12.112 ms each.
    let times = departures("bandwidth 1mbit besteffort", 1_514, 4);
    assert_eq!(times, [0, 12_112, 24_224, 36_336]);
    assert_eq!(departures("unlimited", 1_514, 4), [0; 4]);
}

#[test]
fn framing_and_overhead_cost_what_the_link_needs() {
    let gap = |text: &str, size| departures(&format!("bandwidth 8mbit {text}"), size, 2)[1];
    // A microsecond is a byte. Raw: as it is, with its Ethernet header.
    assert_eq!(gap("", 114), 114);
    // Without it, and what was asked for.
    assert_eq!(gap("overhead 0", 114), 100);
    assert_eq!(gap("ethernet", 114), 138);
    assert_eq!(gap("ethernet", 54), 84);
    // 100 + 40 bytes: 3 cells; 100 + 44: 3; 100 + 45: 4.
    assert_eq!(gap("pppoe-llcsnap", 114), 3 * 53);
    assert_eq!(gap("atm overhead 44", 114), 3 * 53);
    assert_eq!(gap("atm overhead 45", 114), 4 * 53);
    // 64 bytes take 65, 65 take 67.
    assert_eq!(gap("ptm", 64), 65);
    assert_eq!(gap("ptm", 65), 67);
    assert_eq!(gap("mpu 200", 114), 200);
}

#[test]
fn time_that_was_not_used_is_lost() {
    let (mut q, mut seen) = (cake("bandwidth 1mbit besteffort"), Recorder::default());
    q.enqueue(ms(0), TestPacket::mtu(0), &mut seen);
    assert!(q.dequeue(ms(0), &mut seen).is_some());
    // Long after: one packet at once, the next 12.112 ms later.
    q.enqueue(ms(900), TestPacket::mtu(1), &mut seen);
    q.enqueue(ms(900), TestPacket::mtu(2), &mut seen);
    assert!(q.dequeue(ms(900), &mut seen).is_some());
    assert!(q.dequeue(ms(912), &mut seen).is_none());
    assert_eq!(
        q.next_timer(),
        Some(ms(900) + Duration::from_micros(12_112))
    );
    assert!(q.dequeue(ms(913), &mut seen).is_some());
}

#[test]
fn drops_at_the_ingress_cost_capacity_but_cannot_stop_the_link() {
    let count = |text: &str| {
        let (mut q, mut seen) = (cake(text), Recorder::default());
        let mut sent = 0;
        for n in 0..4_000 {
            q.enqueue(ms(n), TestPacket::mtu(n), &mut seen);
            sent += u64::from(q.dequeue(ms(n), &mut seen).is_some());
        }
        (sent, seen.drops.len())
    };
    let (egress, _) = count("bandwidth 1mbit besteffort memlimit 50kb");
    let (ingress, dropped) = count("bandwidth 1mbit besteffort memlimit 50kb ingress");
    // Twelve packets arrive in the time of one: at the egress it is sent each time.
    assert_eq!(egress, 331);
    // The failsafe: one in the time of one and a half, however many drops are to be paid for.
    assert_eq!(ingress, 221);
    assert!(dropped > 3_000, "{dropped}");
}

#[test]
fn code_points_go_to_the_tins_of_linux() {
    // LE, CS1, TOS2, TOS4, AF11, CS2, AF21, CS3, AF31, CS4, AF41, CS5, VA, EF, CS6, CS7, CS0, 63.
    let points = [
        1, 8, 2, 4, 10, 16, 18, 24, 26, 32, 34, 40, 44, 46, 48, 56, 0, 63,
    ];
    let tins = |text: &str| points.map(|point| cake(text).classes.tins[point]);
    assert_eq!(
        tins("diffserv3"),
        [1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 0, 0]
    );
    assert_eq!(
        tins("diffserv4"),
        [1, 1, 0, 2, 0, 2, 2, 2, 2, 3, 2, 3, 3, 3, 3, 3, 0, 0]
    );
    assert_eq!(
        tins("diffserv8"),
        [0, 1, 1, 4, 1, 5, 4, 3, 3, 6, 3, 6, 6, 6, 7, 7, 2, 2]
    );
    assert_eq!(
        tins("precedence"),
        [0, 1, 0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6, 7, 0, 7]
    );
    assert_eq!(tins("besteffort"), [0; 18]);
}

#[test]
fn a_slow_tin_has_a_longer_target() {
    let q = cake("bandwidth 1mbit diffserv3");
    let of = |name| [0, 1, 2].map(|tin| number(&q, tin, name));
    // Bulk first; 1.5 transmissions of an MTU: 18.2 ms at 1 Mbit/s, 16 times that at a sixteenth.
    assert_eq!(of("threshold_rate"), [7_812, 125_000, 31_250]);
    assert_eq!(of("target_us"), [290_706, 18_168, 72_672]);
    assert_eq!(of("interval_us"), [581_413, 113_168, 167_672]);
    assert_eq!(of("flow_quantum"), [300; 3]);
    // The quantum is the data of 1/4096 s, at least 300 bytes and at most an MTU.
    let quantum = |text: &str| number(&cake(text), 0, "flow_quantum");
    assert_eq!(quantum("bandwidth 20mbit besteffort"), 610);
    assert_eq!(quantum("bandwidth 1gbit besteffort"), 1_514);
}

#[test]
fn presets_are_round_trip_times() {
    let law = |text: &str| {
        let q = cake(&format!("{text} besteffort"));
        [number(&q, 0, "target_us"), number(&q, 0, "interval_us")]
    };
    assert_eq!(law(""), [5_000, 100_000]);
    assert_eq!(law("datacentre"), [5, 100]);
    assert_eq!(law("lan"), [50, 1_000]);
    assert_eq!(law("regional"), [1_500, 30_000]);
    assert_eq!(law("satellite"), [50_000, 1_000_000]);
    assert_eq!(law("rtt 105us"), [5, 105]);
}

/// How many of 400 packets each class gets while all of `points` always have some.
fn shares(text: &str, points: &[u8]) -> Vec<usize> {
    let (mut q, mut seen) = (cake(text), Recorder::default());
    let mut sent = vec![0; points.len()];
    let mut now = ms(0);
    for id in 0..100 {
        for &point in points {
            q.enqueue(now, of_class(point, id), &mut seen);
        }
    }
    for id in 100..500 {
        let pkt = loop {
            match q.dequeue(now, &mut seen) {
                Some(pkt) => break pkt,
                None => now = q.next_timer().expect("held back"),
            }
        };
        let class = points.iter().position(|&p| p == pkt.dscp.number());
        let class = class.expect("one of ours");
        sent[class] += 1;
        q.enqueue(now, of_class(points[class], id), &mut seen);
    }
    sent
}

#[test]
fn a_tin_has_priority_up_to_its_threshold_and_borrows_above() {
    // Long round trips, so that the law stays out of it. Voice is first for a quarter of the rate,
    // best effort for all that is left, bulk only for a sixteenth.
    let shares_of = |points: &[u8]| shares("bandwidth 10mbit diffserv3 interplanetary", points);
    let [best, voice] = shares_of(&[0, 46])[..] else {
        panic!("two");
    };
    assert!(
        (98..=104).contains(&voice),
        "{voice} voice, {best} best effort"
    );
    let [bulk, best] = shares_of(&[8, 0])[..] else {
        panic!("two");
    };
    assert!((24..=28).contains(&bulk), "{bulk} bulk, {best} best effort");
    // Alone, each gets everything.
    assert_eq!(shares_of(&[8]), [400]);
}

#[test]
fn tins_without_a_shaper_share_by_weight() {
    // 1024 : 64 : 256 of 1344.
    let sent = shares("unlimited diffserv3 interplanetary", &[0, 8, 46]);
    assert!((300..=310).contains(&sent[0]), "{sent:?}");
    assert!((17..=21).contains(&sent[1]), "{sent:?}");
    assert!((73..=79).contains(&sent[2]), "{sent:?}");
}

#[test]
fn washing_clears_the_class_after_it_chose_the_tin() {
    for (text, left) in [("wash", 0), ("nowash", 46)] {
        let (mut q, mut seen) = (cake(text), Recorder::default());
        let pkt = TestPacket {
            ecn: sojourn_net::Ecn::Ect0,
            ..of_class(46, 0)
        };
        q.enqueue(ms(0), pkt, &mut seen);
        assert_eq!(number(&q, 2, "sent_packets"), 1);
        let sent = q.dequeue(ms(0), &mut seen).expect("it waits");
        assert_eq!(sent.dscp.number(), left);
        assert_eq!(sent.ecn, sojourn_net::Ecn::Ect0);
    }
}

#[test]
fn each_of_eight_tins_gets_seven_eighths_of_the_one_before() {
    for mode in [Diffserv::Diffserv8, Diffserv::Precedence] {
        let shares = Classes::of(mode, 8_388_608).shares;
        assert_eq!(
            shares[..3],
            [(8_388_608, 256), (7_340_032, 224), (6_422_528, 196)]
        );
        assert_eq!(shares.len(), 8);
        assert_eq!(shares[7], (3_294_172, 98));
    }
}

#[test]
fn a_framing_is_named_as_it_is_read() {
    for &name in Framing::WORDS {
        assert_eq!(Framing::named(name).map(Framing::word), Some(name));
    }
    assert_eq!(Framing::named("cells"), None);
}
