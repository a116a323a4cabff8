use super::*;
use crate::aqm::codel::CodelParams;
use crate::registry::{AnyQdisc, QdiscSpec};
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Duration;
use std::collections::VecDeque;

/// A queue whose flows 0, 1, 2… each have a class of their own.
fn build(text: &str) -> (AnyQdisc<TestPacket>, Vec<u32>) {
    let spec = QdiscSpec::parse(text).expect("a queue");
    let queue = spec.build(&LinkFacts::default(), Rng::new(1));
    let AnyQdisc::Drr(drr) = &queue else {
        panic!("{text} is no drr");
    };
    let class_of = |flow: &u32| {
        let pkt = packet(0, *flow, 64);
        FlowId::scaled(pkt.flow().digest(drr.perturbation), drr.number).index()
    };
    let flows = (0..drr.places.len()).map(|class| (0..1_000).find(|flow| class_of(flow) == class));
    let flows = flows.map(|flow| flow.expect("each class has a flow"));
    let flows = flows.collect();
    (queue, flows)
}

fn packet(id: u64, flow: u32, size: u64) -> TestPacket {
    TestPacket {
        flow,
        size,
        ..TestPacket::mtu(id)
    }
}

/// Offers packets of (class, size); the order in which they leave.
fn order(text: &str, packets: &[(usize, u64)]) -> Vec<u64> {
    let (mut queue, flows) = build(text);
    let mut seen = Recorder::default();
    for (id, &(class, size)) in (0..).zip(packets) {
        queue.enqueue(Instant::ZERO, packet(id, flows[class], size), &mut seen);
    }
    std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut seen))
        .map(|pkt| pkt.id)
        .collect()
}

#[test]
fn classes_share_bytes_not_packets() {
    // Class 0 sends 1500 at once; class 1 sends two of 750 for each.
    let packets = [
        (0, 1_500),
        (0, 1_500),
        (1, 750),
        (1, 750),
        (1, 750),
        (1, 750),
    ];
    let text = "drr classes 2 quantum 1500";
    assert_eq!(order(text, &packets), [0, 2, 3, 1, 4, 5]);
}

#[test]
fn what_a_turn_leaves_over_is_kept_for_the_next() {
    // Class 0 may send 500 bytes a turn: 400; then 100 + 500 = 600; then 500 - 300 + 500.
    let packets = [
        (0, 400),
        (0, 600),
        (0, 700),
        (1, 500),
        (1, 500),
        (1, 500),
        (1, 500),
    ];
    let text = "drr classes 2 quantum 500";
    assert_eq!(order(text, &packets), [0, 3, 1, 4, 5, 2, 6]);
}

#[test]
fn an_idle_class_keeps_no_deficit() {
    let (mut queue, flows) = build("drr classes 2 quantum 1000");
    let mut seen = Recorder::default();
    let now = Instant::ZERO;
    queue.enqueue(now, packet(0, flows[0], 300), &mut seen);
    assert!(queue.dequeue(now, &mut seen).is_some());
    // With the 700 left over it would send 1600 in its first turn.
    for (id, class, size) in [(1, 0, 800), (2, 0, 800), (3, 1, 1_000)] {
        queue.enqueue(now, packet(id, flows[class], size), &mut seen);
    }
    let left = std::iter::from_fn(|| queue.dequeue(now, &mut seen));
    assert_eq!(left.map(|pkt| pkt.id).collect::<Vec<_>>(), [1, 3, 2]);
}

#[test]
fn what_a_leaf_drops_is_no_turn() {
    let (mut queue, flows) = build("drr classes 2 quantum 1514 leaf pfifo limit 1");
    let mut seen = Recorder::default();
    for (id, class) in [(0, 0), (1, 0), (2, 1)] {
        queue.enqueue(Instant::ZERO, packet(id, flows[class], 1_514), &mut seen);
    }
    assert_eq!(seen.drops.len(), 1);
    assert_eq!(queue.backlog().packets, 2);
    let drops = Statistic::count("drops", 1).within("classes", 0);
    assert!(queue.statistics().contains(&drops));
}

/// The paper's algorithm: the quantum is added when a turn begins.
#[derive(Default)]
struct Textbook {
    queues: Vec<VecDeque<TestPacket>>,
    deficits: Vec<u64>,
    active: VecDeque<usize>,
    /// Whether the first of `active` has begun its turn.
    begun: bool,
}

impl Textbook {
    fn enqueue(&mut self, class: usize, pkt: TestPacket) {
        if self.queues[class].is_empty() {
            self.active.push_back(class);
            self.deficits[class] = 0;
        }
        self.queues[class].push_back(pkt);
    }

    fn dequeue(&mut self, quantum: u64) -> Option<TestPacket> {
        loop {
            let class = *self.active.front()?;
            if !self.begun {
                self.deficits[class] += quantum;
                self.begun = true;
            }
            let next = self.queues[class].front().map_or(0, |pkt| pkt.size);
            if next <= self.deficits[class] {
                self.deficits[class] -= next;
                let pkt = self.queues[class].pop_front();
                if self.queues[class].is_empty() {
                    self.active.pop_front();
                    self.begun = false;
                }
                return pkt;
            }
            self.active.rotate_left(1);
            self.begun = false;
        }
    }
}

#[test]
fn packets_leave_in_the_order_of_the_paper() {
    let (mut queue, flows) = build("drr classes 5 quantum 700");
    let mut paper = Textbook {
        queues: vec![VecDeque::new(); 5],
        deficits: vec![0; 5],
        ..Textbook::default()
    };
    let mut rng = Rng::new(7);
    let mut seen = Recorder::default();
    let (now, mut left) = (Instant::ZERO, 0);
    for id in 0..200_000 {
        // Phases of rise and of fall, so that classes go idle and come back.
        let arrivals = if id / 500 % 2 == 0 { 60 } else { 40 };
        if rng.below(100) < arrivals {
            let class = usize::try_from(rng.below(5)).unwrap_or(0);
            let pkt = packet(id, flows[class], 40 + rng.below(1_475));
            queue.enqueue(now, pkt, &mut seen);
            paper.enqueue(class, pkt);
        } else {
            let sent = queue.dequeue(now, &mut seen);
            assert_eq!(sent, paper.dequeue(700), "packet {left}");
            left += usize::from(sent.is_some());
        }
    }
    assert!(left > 80_000 && seen.drops.is_empty(), "only {left} left");
}

#[test]
fn a_class_that_is_built_when_used_equals_one_that_is_built_at_the_start() {
    for kind in crate::catalogue() {
        let (mut late, flows) = build(&format!("drr classes 8 leaf {}", kind.name));
        let mut early = late.clone();
        let AnyQdisc::Drr(drr) = &mut early else {
            panic!("the same queue");
        };
        drr.use_first(8);
        let mut rng = Rng::new(3);
        let (mut seen_late, mut seen_early) = (Recorder::default(), Recorder::default());
        let mut now = Instant::ZERO;
        for id in 0..4_000 {
            now += Duration::from_micros(rng.below(400));
            // A class more from time to time, the last never.
            let class = usize::try_from(rng.below(1 + id / 600)).unwrap_or(0);
            let pkt = packet(id, flows[class], 40 + rng.below(1_475));
            late.enqueue(now, pkt, &mut seen_late);
            early.enqueue(now, pkt, &mut seen_early);
            if id == 2_500 {
                let rate = Rate::mbit(5);
                late.on_link_rate(now, rate);
                early.on_link_rate(now, rate);
            }
            assert_eq!(late.next_timer(), early.next_timer(), "{}", kind.name);
            if late.next_timer().is_some_and(|due| due <= now) {
                late.on_timer(now);
                early.on_timer(now);
            }
            if rng.below(5) < 4 {
                let (sent, same) = (
                    late.dequeue(now, &mut seen_late),
                    early.dequeue(now, &mut seen_early),
                );
                assert_eq!(sent, same, "{}: packet {id}", kind.name);
            }
            if id % 500 == 0 {
                assert_eq!(late.statistics(), early.statistics(), "{}", kind.name);
                assert_eq!(late.state(now), early.state(now), "{}", kind.name);
            }
        }
        assert_eq!(seen_late.drops, seen_early.drops, "{}", kind.name);
        assert_eq!(seen_late.marks, seen_early.marks, "{}", kind.name);
    }
}

#[test]
fn every_class_has_a_codel_of_its_own() {
    let (mut queue, flows) = build("drr classes 2 leaf codel");
    let mut seen = Recorder::default();
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    for n in 0..400 {
        queue.enqueue(ms(n), packet(2 * n, flows[0], 1_514), &mut seen);
        queue.enqueue(ms(n), packet(2 * n, flows[0], 1_514), &mut seen);
        if n % 4 == 0 {
            queue.enqueue(ms(n), packet(2 * n + 1, flows[1], 64), &mut seen);
        }
        queue.dequeue(ms(n), &mut seen);
    }
    assert_eq!(CodelParams::default().interval, Duration::from_millis(100));
    assert!(seen.drops.len() > 3, "{}", seen.drops.len());
    assert!(seen.drops.iter().all(|drop| drop.1.flow == flows[0]));
}

#[test]
fn a_round_in_which_none_may_send_leaves_the_order_as_it_was() {
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    let (mut queue, flows) = build("drr classes 3 leaf cake bandwidth 1mbit");
    let mut seen = Recorder::default();
    // Four times a class comes and goes before; the last three are held back for 12 ms then.
    for (at, class) in [(0, 0), (20, 0), (20, 1), (20, 2)] {
        queue.enqueue(ms(at), packet(0, flows[class], 1_514), &mut seen);
        assert!(queue.dequeue(ms(at), &mut seen).is_some());
    }
    for (id, class) in [(1, 0), (2, 1), (3, 2)] {
        queue.enqueue(ms(21), packet(id, flows[class], 1_514), &mut seen);
    }
    for _ in 0..4 {
        assert_eq!(queue.dequeue(ms(22), &mut seen), None);
    }
    let left = std::iter::from_fn(|| queue.dequeue(ms(100), &mut seen));
    assert_eq!(left.map(|pkt| pkt.id).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn timers_are_those_of_the_leaves() {
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    let (mut queue, flows) = build("drr classes 2 leaf fq maxrate 1mbit");
    let mut seen = Recorder::default();
    assert_eq!(queue.next_timer(), None);
    for id in 0..12 {
        queue.enqueue(ms(0), packet(id, flows[0], 1_514), &mut seen);
    }
    while queue.dequeue(ms(0), &mut seen).is_some() {}
    // A packet takes 12.112 ms at 1 Mbit/s.
    let due = queue.next_timer().expect("packets wait");
    assert!(due > ms(12), "{due:?}");
    queue.on_timer(due);
    assert!(queue.dequeue(due, &mut seen).is_some());
}
