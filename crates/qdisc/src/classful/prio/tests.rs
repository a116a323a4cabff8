use super::*;
use crate::registry::{AnyQdisc, QdiscSpec};
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Duration;

fn classed(id: u64, dscp: &str) -> TestPacket {
    TestPacket {
        dscp: dscp.parse().expect("a class"),
        ..TestPacket::mtu(id)
    }
}

fn build(text: &str) -> AnyQdisc<TestPacket> {
    let spec = QdiscSpec::parse(text).expect("a queue");
    spec.build(&LinkFacts::default(), Rng::new(1))
}

/// The order in which packets of these classes leave; what was dropped.
fn order(text: &str, classes: &[&str]) -> (Vec<u64>, Vec<u64>) {
    let mut queue = build(text);
    let mut seen = Recorder::default();
    for (id, class) in (0..).zip(classes) {
        queue.enqueue(Instant::ZERO, classed(id, class), &mut seen);
    }
    let mut left = Vec::new();
    while let Some(pkt) = queue.dequeue(Instant::ZERO, &mut seen) {
        left.push(pkt.id);
    }
    (left, seen.drops.iter().map(|drop| drop.1.id).collect())
}

#[test]
fn the_first_band_with_a_packet_sends() {
    // EF is no better than best effort; AF12 goes first, AF11 last.
    let classes = ["AF11", "EF", "BE", "AF12", "AF41", "CS5", "AF22"];
    for text in ["prio", "pfifo_fast"] {
        assert_eq!(order(text, &classes).0, [3, 6, 1, 2, 5, 0, 4], "{text}");
    }
}

#[test]
fn a_busy_band_starves_the_next() {
    let mut queue = build("prio");
    let mut seen = Recorder::default();
    queue.enqueue(Instant::ZERO, classed(0, "BE"), &mut seen);
    for id in 1..1_000 {
        queue.enqueue(Instant::ZERO, classed(id, "AF12"), &mut seen);
        let sent = queue.dequeue(Instant::ZERO, &mut seen);
        assert_eq!(sent.map(|pkt| pkt.id), Some(id));
    }
}

/// The kernel looks the byte of the header up in this table, at bits 1 to 4.
#[test]
fn the_priority_of_a_class_is_the_kernels() {
    const OF_TOS: [usize; 16] = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
    for dscp in 0..64_u8 {
        for ecn in 0..4 {
            let tos = dscp << 2 | ecn;
            assert_eq!(
                priority::priority(dscp),
                OF_TOS[usize::from((tos & 0x1E) >> 1)]
            );
        }
    }
}

#[test]
fn a_priority_goes_to_the_band_that_the_map_says() {
    let map = "prio bands 2 priomap 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1";
    assert_eq!(order(map, &["EF", "AF12", "BE"]).0, [2, 0, 1]);
}

#[test]
fn a_band_holds_the_limit_or_all_bands_together_do() {
    let classes = ["BE", "BE", "BE", "AF12", "AF11"];
    let now = "pfifo_fast limit 2";
    assert_eq!(order(now, &classes).1, [2]);
    let then = "pfifo_fast limit 2 profile linux-3.14";
    assert_eq!(order(then, &classes).1, [2, 3, 4]);
}

#[test]
fn the_places_of_sent_packets_become_free_16_at_a_time() {
    let mut queue = build("pfifo_fast limit 40");
    let mut seen = Recorder::default();
    let mut offer = |queue: &mut AnyQdisc<TestPacket>, packets: usize| {
        let before = queue.backlog().packets;
        for id in 0..packets {
            queue.enqueue(Instant::ZERO, TestPacket::mtu(id as u64), &mut seen);
        }
        queue.backlog().packets - before
    };
    assert_eq!(offer(&mut queue, 50), 40);
    let mut room_after = |sent: usize| {
        for _ in 0..sent {
            queue.dequeue(Instant::ZERO, &mut Recorder::default());
        }
        offer(&mut queue, 50)
    };
    assert_eq!([15, 1, 15, 1].map(&mut room_after), [0, 16, 0, 16]);
    // The ring starts anew with its 41st packet: 8 places become free early.
    assert_eq!([7, 1, 15, 1].map(room_after), [0, 8, 0, 16]);
}

#[test]
fn a_short_ring_frees_each_place_at_once() {
    let mut queue = build("pfifo_fast limit 31");
    let mut seen = Recorder::default();
    for id in 0..31 {
        queue.enqueue(Instant::ZERO, TestPacket::mtu(id), &mut seen);
    }
    queue.dequeue(Instant::ZERO, &mut seen);
    queue.enqueue(Instant::ZERO, TestPacket::mtu(31), &mut seen);
    assert!(seen.drops.is_empty());
}

#[test]
fn each_band_has_its_own_leaf_and_the_rest_a_pfifo() {
    let classes = ["AF12", "AF12", "BE", "BE", "AF11", "AF11"];
    let leaves = "prio leaf pfifo limit 1 / pfifo_head_drop limit 1";
    assert_eq!(order(leaves, &classes), (vec![0, 3, 4, 5], vec![1, 2]));
    let one = "prio leaf pfifo limit 1";
    assert_eq!(order(one, &classes), (vec![0, 2, 4], vec![1, 3, 5]));
}

#[test]
fn the_bands_count_what_they_did() {
    let mut queue = build("prio leaf codel limit 2");
    let mut seen = Recorder::default();
    for id in 0..3 {
        queue.enqueue(Instant::ZERO, classed(id, "BE"), &mut seen);
    }
    queue.dequeue(Instant::ZERO, &mut seen);
    let own = Statistic::count("qlen", 1).within("bands", 1);
    let statistics = queue.statistics();
    assert!(statistics.contains(&own), "{statistics:?}");
    for (name, count) in [
        ("packets", 1),
        ("bytes", 1_514),
        ("drops", 1),
        ("backlog", 1_514),
    ] {
        let counted = Statistic::count(name, count).within("bands", 1);
        assert!(statistics.contains(&counted), "{name}: {statistics:?}");
    }
}

/// A FIFO that sends nothing within a millisecond of its last packet.
#[derive(Clone, Debug)]
struct Shaped {
    fifo: DropTail<TestPacket>,
    free: Instant,
    wake: Option<Instant>,
}

impl Shaped {
    fn new() -> Self {
        Self {
            fifo: DropTail::new(DropTailParams::PFIFO),
            free: Instant::ZERO,
            wake: None,
        }
    }
}

impl Qdisc<TestPacket> for Shaped {
    fn enqueue(&mut self, now: Instant, pkt: TestPacket, obs: &mut dyn Observer<TestPacket>) {
        self.fifo.enqueue(now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<TestPacket>) -> Option<TestPacket> {
        self.wake = (now < self.free && self.backlog().packets > 0).then_some(self.free);
        if now < self.free {
            return None;
        }
        let pkt = self.fifo.dequeue(now, obs)?;
        self.free = now + Duration::from_millis(1);
        Some(pkt)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn next_timer(&self) -> Option<Instant> {
        self.wake
    }

    fn on_timer(&mut self, now: Instant) {
        self.wake = self.wake.filter(|&wake| wake > now);
    }
}

#[test]
fn a_band_that_holds_its_packets_back_lets_the_next_send() {
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut bands = Bands::new(vec![Shaped::new(), Shaped::new()], PRIOMAP);
    let mut seen = Recorder::default();
    for (id, class) in (0..).zip(["AF12", "AF12", "BE", "BE"]) {
        bands.enqueue(ms(0), classed(id, class), &mut seen);
    }
    let mut left = Vec::new();
    for at in [0, 1] {
        while let Some(pkt) = bands.dequeue(ms(at), &mut seen) {
            left.push((at, pkt.id));
        }
        if at == 0 {
            assert_eq!(bands.classes.next_timer(), Some(ms(1)));
            bands.classes.on_timer(ms(1));
            assert_eq!(bands.classes.next_timer(), None);
        }
    }
    assert_eq!(left, [(0, 0), (0, 2), (1, 1), (1, 3)]);
    assert_eq!(bands.classes.backlog(), Backlog::default());
}
