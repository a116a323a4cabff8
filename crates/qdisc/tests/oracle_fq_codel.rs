//! FQ-CoDel does what RFC 8290 §4 says, packet for packet, with the pseudo-code of RFC 8289 in
//! each queue.
//!
//! Where the text leaves a choice:
//!
//! | RFC 8290 | here |
//! |---|---|
//! | a queue leaves with credits "negative" (4.2) or at most 0 (3) | at most 0 |
//! | half the packets of a queue, which may be odd (4.1) | rounded down, at least one |
//! | which of several fattest queues | the first |
//! | the hash | [`sojourn_qdisc::FlowKey::digest`], scaled to the number of queues |

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod rfc8289;

use std::collections::VecDeque;

use rfc8289::{CodelQueue, INTERVAL, TARGET};
use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{Bytes, FqCodel, FqCodelParams, Instant, Packet, Profile, Qdisc, Rng};

const FLOWS: u64 = 8;
const QUANTUM: i64 = 1_514;
const LIMIT: usize = 150;

#[derive(Default)]
struct Queue {
    codel: CodelQueue,
    credits: i64,
}

struct Rfc8290 {
    salt: u64,
    queues: Vec<Queue>,
    new_queues: VecDeque<usize>,
    old_queues: VecDeque<usize>,
    dropped: Vec<u64>,
}

impl Rfc8290 {
    fn enqueue(&mut self, now: u64, p: TestPacket) {
        let digest = u64::from(p.flow().digest(self.salt));
        let q = usize::try_from((digest * FLOWS) >> 32).unwrap();
        self.queues[q].codel.enqueue(now, p);
        if !self.new_queues.contains(&q) && !self.old_queues.contains(&q) {
            self.new_queues.push_back(q);
            self.queues[q].credits = QUANTUM;
        }
        let total: usize = self.queues.iter().map(|q| q.codel.queue.len()).sum();
        if total > LIMIT {
            let most = self.queues.iter().map(|q| q.codel.bytes).max();
            let fat = self.queues.iter_mut().find(|q| Some(q.codel.bytes) == most);
            let codel = &mut fat.unwrap().codel;
            for _ in 0..(codel.queue.len() / 2).clamp(1, 64) {
                let (_, p) = codel.queue.pop_front().unwrap();
                codel.bytes -= p.size;
                self.dropped.push(p.id);
            }
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<TestPacket> {
        loop {
            let from_new = !self.new_queues.is_empty();
            let list = if from_new {
                &mut self.new_queues
            } else {
                &mut self.old_queues
            };
            let q = *list.front()?;
            let queue = &mut self.queues[q];
            if queue.credits <= 0 {
                queue.credits += QUANTUM;
                list.pop_front();
                self.old_queues.push_back(q);
                continue;
            }
            let p = queue.codel.dequeue(now);
            self.dropped.append(&mut queue.codel.dropped);
            match p {
                None if from_new => {
                    list.pop_front();
                    self.old_queues.push_back(q);
                }
                None => {
                    list.pop_front();
                }
                Some(p) => {
                    queue.credits -= i64::try_from(p.size).unwrap();
                    return Some(p);
                }
            }
        }
    }
}

#[derive(Default)]
struct Coverage {
    codel_drops: usize,
    overload_drops: usize,
    delivered: usize,
}

fn pick(rng: &mut Rng, from: &[u64]) -> u64 {
    from[usize::try_from(rng.below(from.len() as u64)).unwrap()]
}

fn compare(seed: u64, cov: &mut Coverage) {
    const TICK: u64 = 500_000;
    let mut rng = Rng::new(seed);
    let params = FqCodelParams {
        limit: LIMIT,
        flows: u32::try_from(FLOWS).unwrap(),
        ecn: false,
        profile: Profile::Rfc,
        ..FqCodelParams::default()
    };
    let own = rng.fork("queue");
    let mut ours = FqCodel::new(&params, Bytes(1_514), own.clone());
    let mut rfc = Rfc8290 {
        salt: own.clone().next_u64(),
        queues: (0..FLOWS).map(|_| Queue::default()).collect(),
        new_queues: VecDeque::new(),
        old_queues: VecDeque::new(),
        dropped: Vec::new(),
    };
    let mut signals = Recorder::default();
    let load_percent = 42 + rng.below(20);
    let flows = 1 + rng.below(10);
    let mut ns = 0;
    for id in 0..4_000 {
        ns += match rng.below(200) {
            0 => pick(&mut rng, &[TARGET, INTERVAL, 16 * INTERVAL]),
            _ => rng.below(5) * TICK,
        };
        let now = Instant::from_nanos(ns);
        let before = signals.drops.len();
        if rng.below(100) < load_percent {
            // Flow 0 is as fat as all others, so that there is a fattest one.
            let flow = rng.below(2) * rng.below(flows);
            let pkt = TestPacket {
                flow: u32::try_from(flow).unwrap(),
                size: pick(&mut rng, &[64, 757, 1_513, 1_514, 3_028]),
                ..TestPacket::mtu(id)
            };
            ours.enqueue(now, pkt, &mut signals);
            rfc.enqueue(ns, pkt);
            cov.overload_drops += signals.drops.len() - before;
        } else {
            let (got, want) = (ours.dequeue(now, &mut signals), rfc.dequeue(ns));
            assert_eq!(got, want, "delivered: seed {seed}, step {id}");
            cov.delivered += usize::from(got.is_some());
            cov.codel_drops += signals.drops.len() - before;
        }
        let dropped: Vec<_> = signals.drops[before..].iter().map(|d| d.1.id).collect();
        assert_eq!(dropped, rfc.dropped[before..], "seed {seed}, step {id}");
    }
}

#[test]
fn agrees_with_the_rfc_on_random_traffic() {
    let mut cov = Coverage::default();
    for seed in 0..400 {
        compare(seed, &mut cov);
    }
    assert!(cov.codel_drops > 5_000, "only {}", cov.codel_drops);
    assert!(cov.overload_drops > 5_000, "only {}", cov.overload_drops);
    assert!(cov.delivered > 400_000, "only {}", cov.delivered);
}
