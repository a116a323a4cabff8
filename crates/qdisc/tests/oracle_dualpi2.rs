//! DualPI2 does what the pseudo-code of RFC 9332, Appendix A does, packet for packet: Figures 2, 3,
//! 5, 7 and 8, with either scheduler.
//!
//! Where the text leaves a choice:
//!
//! | RFC 9332 | here |
//! |---|---|
//! | `lq.time()` and `lq.len()` follow `lq.dequeue(pkt)`, yet `Th_len` is to spare a queue of one packet | sojourn of `pkt`, and it counts |
//! | `p_CL = p' * k` may exceed 1, "probabilities from 0 to 1" | at most 1 |
//! | the round robin is not given | bytes of either weighed with the other's share; changes only while both hold packets, back to the start when both are empty (A.1) |

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::manual_clamp, reason = "the pseudo-code bounds so")]
#![expect(clippy::cast_precision_loss, reason = "sizes and times of a test")]

use std::collections::VecDeque;

use sojourn_qdisc::testing::{Recorder, TestPacket};
use sojourn_qdisc::{
    Bytes, DropReason, DualPi2, DualPi2Params, Duration, Ecn, Instant, MarkReason, Profile, Qdisc,
    Rng,
};

const MTU: u64 = 1_514;
const LIMIT: u64 = 40 * MTU;
const TARGET: f64 = 0.015;
const RTT_MAX: f64 = 0.1;
const TUPDATE: f64 = 0.015;
const MIN_TH: u64 = 800_000;
const RANGE: u64 = 400_000;
const TH_LEN: usize = 1;
const P_LMAX: f64 = 1.0;

#[derive(Default)]
struct Queue {
    packets: VecDeque<(u64, TestPacket)>,
    bytes: u64,
    count: f64,
}

impl Queue {
    fn enqueue(&mut self, now: u64, pkt: TestPacket) {
        self.bytes += pkt.size;
        self.packets.push_back((now, pkt));
    }

    fn dequeue(&mut self) -> (u64, TestPacket) {
        let (arrived, pkt) = self.packets.pop_front().unwrap();
        self.bytes -= pkt.size;
        (arrived, pkt)
    }

    fn time(&self, now: u64) -> u64 {
        self.packets.front().map_or(0, |head| now - head.0)
    }

    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }
}

/// A scheduler that Figure 7 calls.
enum Scheduler {
    /// Credit in MTU of L: below or at 0, L sends.
    Wrr {
        credit: f64,
    },
    TsFifo {
        tshift: u64,
    },
}

struct Rfc9332 {
    lq: Queue,
    cq: Queue,
    scheduler: Scheduler,
    k: f64,
    alpha: f64,
    beta: f64,
    p_cmax: f64,
    p: f64,
    p_cl: f64,
    p_c: f64,
    prevq: f64,
    dropped: Vec<u64>,
    marked: Vec<(u64, MarkReason)>,
    overlimit: usize,
    overload_drops: usize,
}

/// Weights of C and L: 1/16 of the link for C.
const WEIGHTS: (f64, f64) = (1.0, 15.0);

impl Rfc9332 {
    fn new(k: f64, tshift: Option<u64>) -> Self {
        Self {
            lq: Queue::default(),
            cq: Queue::default(),
            scheduler: match tshift {
                Some(tshift) => Scheduler::TsFifo { tshift },
                None => Scheduler::Wrr {
                    credit: MTU as f64 * (WEIGHTS.0 - WEIGHTS.1),
                },
            },
            k,
            alpha: 0.1 * TUPDATE / (RTT_MAX * RTT_MAX),
            beta: 0.3 / RTT_MAX,
            p_cmax: f64::min(1.0 / (k * k), 1.0),
            p: 0.0,
            p_cl: 0.0,
            p_c: 0.0,
            prevq: 0.0,
            dropped: Vec::new(),
            marked: Vec::new(),
            overlimit: 0,
            overload_drops: 0,
        }
    }

    fn enqueue(&mut self, now: u64, pkt: TestPacket) {
        if self.lq.bytes + self.cq.bytes + MTU > LIMIT {
            self.dropped.push(pkt.id);
            self.overlimit += 1;
            return;
        }
        if pkt.ecn.bits() % 2 == 1 {
            self.lq.enqueue(now, pkt);
        } else {
            self.cq.enqueue(now, pkt);
        }
    }

    /// True: L.
    fn schedule(&self, now: u64) -> bool {
        if self.lq.bytes == 0 || self.cq.bytes == 0 {
            return self.lq.bytes > 0;
        }
        match self.scheduler {
            Scheduler::Wrr { credit } => credit <= 0.0,
            Scheduler::TsFifo { tshift } => self.lq.time(now) + tshift >= self.cq.time(now),
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<TestPacket> {
        while self.lq.bytes + self.cq.bytes > 0 {
            let both = self.lq.bytes > 0 && self.cq.bytes > 0;
            let is_l = self.schedule(now);
            let mut pkt;
            if is_l {
                let len = self.lq.packets.len();
                let (arrived, head) = self.lq.dequeue();
                pkt = head;
                if self.p_cl < P_LMAX {
                    let native = if len > TH_LEN {
                        laqm(now - arrived)
                    } else {
                        0.0
                    };
                    let p_l = f64::max(native, self.p_cl);
                    if self.lq.recur(p_l) {
                        self.mark(&mut pkt, native > self.p_cl);
                    }
                } else {
                    let p_c = self.p_c;
                    if self.lq.recur(p_c) {
                        self.dropped.push(pkt.id);
                        self.overload_drops += 1;
                        continue;
                    }
                    let p_cl = self.p_cl;
                    if self.lq.recur(p_cl) {
                        self.mark(&mut pkt, false);
                    }
                }
            } else {
                pkt = self.cq.dequeue().1;
                let p_c = self.p_c;
                if self.cq.recur(p_c) {
                    if pkt.ecn == Ecn::NotEct || self.p_c >= self.p_cmax {
                        self.dropped.push(pkt.id);
                        continue;
                    }
                    self.mark(&mut pkt, false);
                }
            }
            if let (Scheduler::Wrr { credit }, true) = (&mut self.scheduler, both) {
                let size = pkt.size as f64;
                *credit += if is_l {
                    WEIGHTS.0 * size
                } else {
                    -WEIGHTS.1 * size
                };
            }
            return Some(pkt);
        }
        if let Scheduler::Wrr { credit } = &mut self.scheduler {
            *credit = MTU as f64 * (WEIGHTS.0 - WEIGHTS.1);
        }
        None
    }

    fn mark(&mut self, pkt: &mut TestPacket, native: bool) {
        pkt.ecn = Ecn::Ce;
        let reason = if native {
            MarkReason::CeThreshold
        } else {
            MarkReason::Aqm
        };
        self.marked.push((pkt.id, reason));
    }

    fn update(&mut self, now: u64) {
        let curq = seconds(u64::max(self.cq.time(now), self.lq.time(now)));
        self.p = self.p + self.alpha * (curq - TARGET) + self.beta * (curq - self.prevq);
        if self.p < 0.0 {
            self.p = 0.0;
        }
        if self.p > 1.0 {
            self.p = 1.0;
        }
        self.p_cl = f64::min(self.p * self.k, 1.0);
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }
}

fn laqm(qdelay: u64) -> f64 {
    if qdelay >= MIN_TH + RANGE {
        1.0
    } else if qdelay > MIN_TH {
        seconds(qdelay - MIN_TH) / seconds(RANGE)
    } else {
        0.0
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[derive(Debug, Default)]
struct Coverage {
    classic_drops: usize,
    overload_drops: usize,
    overlimit: usize,
    coupled_marks: usize,
    native_marks: usize,
    ramp: usize,
    calm: usize,
    overload: usize,
}

fn compare(seed: u64, cov: &mut Coverage) {
    const TICK: u64 = 100_000;
    let mut rng = Rng::new(seed);
    let k = [2, 2, 1, 3][usize::try_from(seed % 4).unwrap()];
    let tshift = (seed % 3 == 2).then_some(5_000_000);
    let params = DualPi2Params {
        memlimit: Some(Bytes(LIMIT)),
        coupling_factor: k,
        tshift: tshift.map(Duration::from_nanos),
        profile: Profile::Rfc,
        ..DualPi2Params::default()
    };
    let mut ours = DualPi2::new(&params, None, Bytes(MTU), rng.fork("queue"));
    let mut rfc = Rfc9332::new(f64::from(k), tshift);
    let mut signals = Recorder::default();
    let (mut ns, mut load_percent, mut l4s_percent) = (0, 50, 50);
    for id in 0..6_000 {
        if rng.below(250) == 0 {
            load_percent = 30 + rng.below(40);
            l4s_percent = [0, 10, 50, 90, 100][usize::try_from(rng.below(5)).unwrap()];
        }
        let until = ns
            + match rng.below(200) {
                0 => [7_500_000, 15_000_000, 1_000_000_000][usize::try_from(rng.below(3)).unwrap()],
                _ => rng.below(8) * TICK,
            };
        while let Some(due) = ours.next_timer().filter(|t| t.as_nanos() <= until) {
            ours.on_timer(due);
            rfc.update(due.as_nanos());
            cov.calm += usize::from(rfc.p > 0.0 && rfc.p_cl < P_LMAX);
            cov.overload += usize::from(rfc.p_cl >= P_LMAX);
        }
        ns = until;
        let now = Instant::from_nanos(ns);
        if rng.below(100) < load_percent {
            let ecn = match (rng.below(100) < l4s_percent, rng.below(2)) {
                (true, 0) => Ecn::Ect1,
                (true, _) => Ecn::Ce,
                (false, 0) => Ecn::Ect0,
                (false, _) => Ecn::NotEct,
            };
            let pkt = TestPacket {
                size: [64, 757, 1_514][usize::try_from(rng.below(3)).unwrap()],
                ecn,
                ..TestPacket::mtu(id)
            };
            ours.enqueue(now, pkt, &mut signals);
            rfc.enqueue(ns, pkt);
        } else {
            let waited = rfc.lq.time(ns);
            cov.ramp += usize::from(waited > MIN_TH && waited < MIN_TH + RANGE);
            let (got, want) = (ours.dequeue(now, &mut signals), rfc.dequeue(ns));
            assert_eq!(got, want, "seed {seed}, step {id}");
        }
        let bytes = Bytes(rfc.lq.bytes + rfc.cq.bytes);
        assert_eq!(ours.backlog().bytes, bytes, "seed {seed}, step {id}");
    }
    let drops: Vec<_> = signals.drops.iter().map(|d| d.1.id).collect();
    assert_eq!(drops, rfc.dropped, "seed {seed}");
    let marks: Vec<_> = signals.marks.iter().map(|m| (m.1.id, m.2)).collect();
    assert_eq!(marks, rfc.marked, "seed {seed}");
    let aqm = signals
        .drops
        .iter()
        .filter(|d| d.2 == DropReason::Aqm)
        .count();
    assert_eq!(aqm + rfc.overlimit, drops.len(), "seed {seed}");
    cov.classic_drops += aqm - rfc.overload_drops;
    cov.overload_drops += rfc.overload_drops;
    cov.overlimit += rfc.overlimit;
    let native = marks.iter().filter(|m| m.1 == MarkReason::CeThreshold);
    cov.native_marks += native.clone().count();
    cov.coupled_marks += marks.len() - native.count();
}

#[test]
fn agrees_with_the_rfc_on_random_traffic() {
    let mut cov = Coverage::default();
    for seed in 0..400 {
        compare(seed, &mut cov);
    }
    assert!(cov.classic_drops > 10_000, "{cov:?}");
    assert!(
        cov.overload_drops > 5_000 && cov.overlimit > 1_000,
        "{cov:?}"
    );
    assert!(
        cov.coupled_marks > 10_000 && cov.native_marks > 10_000,
        "{cov:?}"
    );
    assert!(cov.ramp > 1_000, "{cov:?}");
    assert!(cov.calm > 10_000 && cov.overload > 1_000, "{cov:?}");
}
