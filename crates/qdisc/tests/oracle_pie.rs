//! PIE does what the pseudo-code of RFC 8033, Appendix A, does, packet for packet, alone and with
//! the de-randomisation of §5.4 and the cap of §5.5.
//!
//! Both draw from the same stream of random numbers. Where the text leaves a choice:
//!
//! | RFC 8033 | here |
//! |---|---|
//! | `MEAN_PKTSIZE` has no value | 1514 |
//! | whether `accu_prob` is reset by a drop for `TAIL_DROP` | yes, as Appendix B |
//! | §5.4 does not say whether it precedes the burst test | it follows, as Appendix A's lottery |

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::manual_clamp, reason = "the pseudo-code bounds so")]

use std::collections::VecDeque;

use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{
    Bytes, DropReason, Duration, Ecn, Instant, Pie, PieParams, Profile, Qdisc, Rng,
};

const QDELAY_REF: f64 = 0.015;
const MAX_BURST: f64 = 0.150;
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
const T_UPDATE: f64 = 0.015;
const MAX_ECNTH: f64 = 0.1;
const MEAN_PKTSIZE: u64 = 1_514;
const LIMIT: usize = 120;

struct Rfc8033 {
    queue: VecDeque<(u64, TestPacket)>,
    byte_length: u64,
    random: Rng,
    enhanced: bool,
    ecn: bool,
    current_qdelay: f64,
    qdelay_old: f64,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: f64,
    dropped: Vec<u64>,
    marked: Vec<u64>,
}

impl Rfc8033 {
    fn enque(&mut self, now: u64, mut packet: TestPacket) {
        if self.queue.len() >= LIMIT {
            self.dropped.push(packet.id);
            self.accu_prob = 0.0;
            return;
        }
        if self.drop_prob == 0.0
            && self.current_qdelay < QDELAY_REF / 2.0
            && self.qdelay_old < QDELAY_REF / 2.0
        {
            self.burst_allowance = MAX_BURST;
        }
        // The allowance shrinks by 0.015 ten times from 0.150; in binary not to 0 exactly.
        if self.burst_allowance < 1e-9 && self.drop_early() {
            self.accu_prob = 0.0;
            if self.ecn && packet.ecn != Ecn::NotEct && self.drop_prob < MAX_ECNTH {
                packet.ecn = Ecn::Ce;
                self.marked.push(packet.id);
            } else {
                self.dropped.push(packet.id);
                return;
            }
        }
        self.byte_length += packet.size;
        self.queue.push_back((now, packet));
    }

    fn drop_early(&mut self) -> bool {
        if (self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2)
            || self.byte_length <= 2 * MEAN_PKTSIZE
        {
            return false;
        }
        if self.enhanced {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        let u = self.random.uniform();
        u < self.drop_prob
    }

    fn deque(&mut self, now: u64) -> Option<TestPacket> {
        let (arrived, packet) = self.queue.pop_front()?;
        self.byte_length -= packet.size;
        self.current_qdelay = Duration::from_nanos(now - arrived).as_secs_f64();
        Some(packet)
    }

    fn calculate_drop_prob(&mut self) {
        let mut p = ALPHA * (self.current_qdelay - QDELAY_REF)
            + BETA * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000_001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.000_01 {
            p /= 512.0;
        } else if self.drop_prob < 0.000_1 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.enhanced && self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        if self.drop_prob < 0.0 {
            self.drop_prob = 0.0;
        }
        if self.drop_prob > 1.0 {
            self.drop_prob = 1.0;
        }
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = f64::max(0.0, self.burst_allowance - T_UPDATE);
    }
}

#[derive(Debug, Default)]
struct Coverage {
    drops: usize,
    marks: usize,
    overlimit: usize,
    tuned: [usize; 7],
    certain: usize,
}

fn compare(seed: u64, enhanced: bool, cov: &mut Coverage) {
    const TICK: u64 = 500_000;
    let mut rng = Rng::new(seed);
    let ecn = seed.is_multiple_of(2);
    let params = PieParams {
        limit: LIMIT,
        ecn,
        derandomise: enhanced,
        cap: enhanced,
        profile: Profile::Rfc,
        ..PieParams::default()
    };
    let own = rng.fork("queue");
    let mut ours = Pie::new(&params, Bytes(MEAN_PKTSIZE), own.clone());
    let mut rfc = Rfc8033 {
        queue: VecDeque::new(),
        byte_length: 0,
        random: own,
        enhanced,
        ecn,
        current_qdelay: 0.0,
        qdelay_old: 0.0,
        drop_prob: 0.0,
        accu_prob: 0.0,
        burst_allowance: MAX_BURST,
        dropped: Vec::new(),
        marked: Vec::new(),
    };
    let mut signals = Recorder::default();
    let mut ns = 0;
    let mut load_percent = 50;
    for id in 0..6_000 {
        if rng.below(300) == 0 {
            // From idle to twice what the queue can carry.
            load_percent = 35 + rng.below(35);
        }
        let until = ns
            + match rng.below(150) {
                0 => [7_500_000, 15_000_000, 150_000_000, 1_000_000_000]
                    [usize::try_from(rng.below(4)).unwrap()],
                _ => rng.below(3) * TICK,
            };
        while let Some(due) = ours.next_timer().filter(|t| t.as_nanos() <= until) {
            ours.on_timer(due);
            rfc.calculate_drop_prob();
            let steps = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1];
            cov.tuned[steps.iter().filter(|&&s| rfc.drop_prob >= s).count()] += 1;
            cov.certain += usize::from(rfc.drop_prob >= 1.0);
        }
        ns = until;
        let now = Instant::from_nanos(ns);
        if rng.below(100) < load_percent {
            let pkt = TestPacket {
                size: [64, 757, 1_514][usize::try_from(rng.below(3)).unwrap()],
                ecn: [Ecn::NotEct, Ecn::Ect0][usize::try_from(rng.below(2)).unwrap()],
                ..TestPacket::mtu(id)
            };
            ours.enqueue(now, pkt, &mut signals);
            rfc.enque(ns, pkt);
        } else {
            assert_eq!(
                ours.dequeue(now, &mut signals),
                rfc.deque(ns),
                "seed {seed}, step {id}"
            );
        }
        assert_eq!(
            ours.backlog().bytes,
            Bytes(rfc.byte_length),
            "seed {seed}, step {id}"
        );
    }
    let ids = |ours: Vec<&TestPacket>| ours.iter().map(|p| p.id).collect::<Vec<_>>();
    assert_eq!(
        ids(signals.drops.iter().map(|d| &d.1).collect()),
        rfc.dropped,
        "seed {seed}"
    );
    assert_eq!(
        ids(signals.marks.iter().map(|m| &m.1).collect()),
        rfc.marked,
        "seed {seed}"
    );
    cov.marks += rfc.marked.len();
    let overlimit = signals
        .drops
        .iter()
        .filter(|d| d.2 == DropReason::Overlimit);
    cov.overlimit += overlimit.count();
    cov.drops += rfc.dropped.len();
}

#[test]
fn agrees_with_the_rfc_on_random_traffic() {
    for enhanced in [false, true] {
        let mut cov = Coverage::default();
        for seed in 0..400 {
            compare(seed, enhanced, &mut cov);
        }
        assert!(cov.drops - cov.overlimit > 10_000, "{cov:?}");
        assert!(cov.marks > 200 && cov.overlimit > 1_000, "{cov:?}");
        assert!(cov.tuned.iter().all(|&n| n > 500), "{cov:?}");
    }
}
