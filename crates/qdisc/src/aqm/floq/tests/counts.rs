//! What is counted as lost, marked or saved.

use super::*;

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
