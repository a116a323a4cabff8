#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and counts of a test are small"
)]

use super::*;
use crate::testing::{Recorder, TestPacket};
use sojourn_net::Ecn;

/// 10 µs: a packet of 1250 bytes at 1 Gbit/s.
const SLOT: u64 = 10_000;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn packet(id: u64, flow: u32) -> TestPacket {
    TestPacket {
        flow,
        size: 1_250,
        ..TestPacket::mtu(id)
    }
}

fn queue(params: &AfcdParams) -> (Afcd<TestPacket>, Recorder) {
    let q = Afcd::new(params, Some(Rate::mbit(1_000)), Rng::new(1));
    (q, Recorder::default())
}

/// The pseudo-code, line by line in its own names; flows have bins of their own.
struct Oracle {
    params: AfcdParams,
    sample: u64,
    queue: std::collections::VecDeque<(u64, TestPacket)>,
    n: u64,
    shadow: Vec<Option<usize>>,
    pos: usize,
    table: [i64; FLOWS],
    first_above: [u64; FLOWS],
    maxpacket: u64,
    dropping: bool,
    count: u64,
    lastcount: u64,
    drop_next: u64,
    dropped: Vec<u64>,
    marked: Vec<u64>,
}

const FLOWS: usize = 5;

impl Oracle {
    fn new(params: AfcdParams) -> Self {
        Self {
            params,
            sample: params.sample.unwrap().into(),
            queue: [].into(),
            n: 0,
            shadow: vec![None; params.shadow as usize],
            pos: 0,
            table: [0; FLOWS],
            first_above: [0; FLOWS],
            maxpacket: 0,
            dropping: false,
            count: 0,
            lastcount: 0,
            drop_next: 0,
            dropped: vec![],
            marked: vec![],
        }
    }

    fn enqueue(&mut self, now: u64, p: TestPacket) {
        self.n += 1;
        if self.queue.len() >= self.params.limit {
            self.dropped.push(p.id);
            return;
        }
        let h = p.flow as usize;
        if self.n.is_multiple_of(self.sample) {
            if let Some(old) = self.shadow[self.pos] {
                self.table[old] -= 1;
            }
            self.shadow[self.pos] = Some(h);
            self.pos = (self.pos + 1) % self.shadow.len();
            self.table[h] += 1;
        }
        self.maxpacket = self.maxpacket.max(p.size);
        self.queue.push_back((now, p));
    }

    fn droppable(&mut self, (t_in, p): (u64, TestPacket), now: u64) -> bool {
        let i = p.flow as usize;
        let flows = i64::try_from(self.table.iter().filter(|&&m| m > 0).count()).unwrap();
        let b = i64::from(self.params.shadow);
        let mf = if flows > 1 { b / flows } else { b };
        let mi = self.table[i];
        let t0 = self.params.target.as_nanos() as f64 * self.params.target_scale;
        let target = if mi > 0 {
            t0 * (mf as f64 / mi as f64).powi(self.params.exponent.try_into().unwrap())
        } else {
            f64::INFINITY
        };
        let backlog: u64 = self.queue.iter().map(|(_, p)| p.size).sum();
        if ((now - t_in) as f64) < target || backlog <= self.maxpacket {
            self.first_above[i] = 0;
            return false;
        }
        let w = self.params.persist.unwrap_or(self.params.interval);
        if self.first_above[i] == 0 {
            self.first_above[i] = now + w.as_nanos();
            return false;
        }
        now > self.first_above[i] && (!self.params.protect || mi >= mf)
    }

    fn pop(&mut self, now: u64) -> Option<(TestPacket, bool)> {
        let head = self.queue.pop_front()?;
        Some((head.1, self.droppable(head, now)))
    }

    fn gap(&self) -> u64 {
        (self.params.interval.as_nanos() as f64 / (self.count as f64).sqrt()).round() as u64
    }

    fn signal(&mut self, p: &mut TestPacket) -> bool {
        if self.params.ecn && p.ecn != Ecn::NotEct {
            p.ecn = Ecn::Ce;
            self.marked.push(p.id);
            return true;
        }
        self.dropped.push(p.id);
        false
    }

    fn dequeue(&mut self, now: u64) -> Option<TestPacket> {
        let Some((mut p, mut d)) = self.pop(now) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            if !d {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.signal(&mut p) {
                    self.drop_next += self.gap();
                    return Some(p);
                }
                let Some(next) = self.pop(now) else {
                    self.dropping = false;
                    return None;
                };
                (p, d) = next;
                if d {
                    self.drop_next += self.gap();
                } else {
                    self.dropping = false;
                }
            }
        } else if d {
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let recent = now < self.drop_next + 16 * self.params.interval.as_nanos();
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.lastcount = self.count;
            self.drop_next = now + self.gap();
            if !self.signal(&mut p) {
                let Some(next) = self.pop(now) else {
                    self.dropping = false;
                    return None;
                };
                p = next.0;
            }
        }
        Some(p)
    }
}

/// Drives both with the traffic of `seed`: five flows of different rates into a link that serves one
/// packet every 50 µs, with idle gaps. Returns how many were signalled.
fn compare(params: AfcdParams, seed: u64) -> usize {
    let (mut q, mut recorder) = queue(&params);
    let bins: std::collections::BTreeSet<_> = (0..u32::try_from(FLOWS).unwrap())
        .map(|flow| q.shares.shadow.bin(&packet(0, flow).flow()))
        .collect();
    assert_eq!(bins.len(), FLOWS, "two flows share a bin");
    let mut oracle = Oracle::new(params);
    let mut rng = Rng::new(seed);
    // A clock at 0 would not tell the oracle's 0, "not set", from a time.
    let mut now = 1_000_000;
    let load = 40 + rng.below(40);
    for id in 0..20_000 {
        now += match rng.below(2_000) {
            0 => 2_000_000_000,
            1 => 200_000_000,
            _ => 25_000 * rng.below(3),
        };
        if rng.below(100) < load {
            // Flow 0 sends half of the packets, flow 1 a quarter, and so on.
            let flow = (rng.next_u32() | 1 << (FLOWS - 1)).trailing_zeros();
            let ecn = [Ecn::NotEct, Ecn::Ect0][usize::try_from(rng.below(2)).unwrap()];
            let size = [64, 1_250, 1_514][usize::try_from(rng.below(3)).unwrap()];
            let pkt = TestPacket {
                flow,
                size,
                ecn,
                ..TestPacket::mtu(id)
            };
            q.enqueue(at(now), pkt, &mut recorder);
            oracle.enqueue(now, pkt);
        } else {
            assert_eq!(
                q.dequeue(at(now), &mut recorder),
                oracle.dequeue(now),
                "seed {seed}, step {id}"
            );
        }
        let dropped: Vec<_> = recorder.drops.iter().map(|d| d.1.id).collect();
        assert!(dropped == oracle.dropped, "seed {seed}, step {id}");
    }
    let marked: Vec<_> = recorder.marks.iter().map(|m| m.1.id).collect();
    assert_eq!(marked, oracle.marked, "seed {seed}");
    let signals = recorder
        .drops
        .iter()
        .filter(|d| d.2 == DropReason::Aqm)
        .count();
    signals + marked.len()
}

#[test]
fn agrees_with_the_pseudo_code_on_random_traffic() {
    for preset in [AfcdParams::default(), AfcdParams::kernel2012()] {
        let mut signals = 0;
        for seed in 0..24 {
            signals += compare(
                AfcdParams {
                    limit: 300,
                    shadow: 40,
                    sample: Some(3),
                    persist: preset.persist,
                    interval: Duration::from_millis(20),
                    ecn: seed % 2 == 0,
                    ..preset
                },
                seed,
            );
        }
        assert!(signals > 10_000, "only {signals} signals");
    }
}

/// Fills the shadow buffer with this many samples of flows 0, 1, …
fn sampled(q: &mut Afcd<TestPacket>, counts: &[u32]) {
    for (flow, &count) in (0..).zip(counts) {
        for _ in 0..count {
            q.shares.sample(&packet(0, flow).flow());
        }
    }
}

/// The target delay of `flow`, found by asking with ever longer sojourns, in µs.
fn target_micros(q: &mut Afcd<TestPacket>, flow: u32) -> u64 {
    let key = packet(0, flow).flow();
    let bin = q.shares.shadow.bin(&key);
    q.targets.maxpacket = Bytes(0);
    (0..1_000_000)
        .find(|&micros| {
            let sojourn = Duration::from_micros(micros);
            let (shares, now) = (&q.shares, at(1 << 40));
            q.targets.ok_to_drop(shares, &key, sojourn, Bytes(1), now);
            q.targets.flows[bin].first_above.take().is_some()
        })
        .unwrap()
}

#[test]
fn a_target_falls_with_the_third_power_of_the_share_and_in_the_module_with_the_fourth() {
    // Of 2000 samples, four flows have 1000, 500, 250 and 250: the fair share is 500.
    let (mut q, _) = queue(&AfcdParams::default());
    sampled(&mut q, &[1_000, 500, 250, 250]);
    let targets = [0, 1, 2].map(|flow| target_micros(&mut q, flow));
    assert_eq!(targets, [625, 5_000, 40_000]);

    let (mut q, _) = queue(&AfcdParams::kernel2012());
    sampled(&mut q, &[1_000, 500, 250, 250]);
    let targets = [0, 1, 2].map(|flow| target_micros(&mut q, flow));
    assert_eq!(targets, [4, 50, 800]);
}

/// Offers 1.25 packets for each that leaves, of flows `of`, for so long; then says what was
/// signalled when.
fn overload(q: &mut Afcd<TestPacket>, seen: &mut Recorder, millis: u64, of: impl Fn(u64) -> u32) {
    let mut id = 0;
    for slot in 0..millis * 1_000_000 / SLOT {
        let now = at(slot * SLOT);
        for _ in 0..=u64::from(slot % 4 == 0) {
            q.enqueue(now, packet(id, of(id)), seen);
            id += 1;
        }
        q.dequeue(now, seen);
    }
}

#[test]
fn a_flow_alone_is_not_signalled_by_the_module_until_all_samples_are_its() {
    // 2000 samples of one arrival in 50 are full after 100,000 arrivals: 80,000 slots, 800 ms.
    let (mut q, mut seen) = queue(&AfcdParams {
        limit: 1_000_000,
        ..AfcdParams::kernel2012()
    });
    overload(&mut q, &mut seen, 799, |_| 0);
    assert_eq!(q.backlog().packets, 19_975);
    assert!(seen.drops.is_empty(), "{:?}", seen.drops[0]);

    // Its target was exceeded for long then, so that the first signal comes at once.
    let (mut q, mut seen) = queue(&AfcdParams {
        limit: 1_000_000,
        ..AfcdParams::kernel2012()
    });
    overload(&mut q, &mut seen, 802, |_| 0);
    assert_eq!(
        q.shares
            .shadow
            .count(q.shares.shadow.bin(&packet(0, 0).flow())),
        2_000
    );
    assert!(!seen.drops.is_empty());
}

#[test]
fn a_flow_alone_has_a_long_target_in_the_paper_while_it_has_few_samples() {
    // With 1000 of 2000 samples the target is 5 ms * 2^3 = 40 ms.
    let (mut q, _) = queue(&AfcdParams::default());
    sampled(&mut q, &[1_000]);
    assert_eq!(target_micros(&mut q, 0), 40_000);
    sampled(&mut q, &[1_000]);
    assert_eq!(target_micros(&mut q, 0), 5_000);
}

#[test]
fn only_the_fast_flow_is_signalled() {
    // Flow 1 sends one packet in ten.
    for preset in [AfcdParams::default(), AfcdParams::kernel2012()] {
        let (mut q, mut seen) = queue(&AfcdParams {
            limit: 1_000_000,
            sample: Some(5),
            ..preset
        });
        overload(&mut q, &mut seen, 1_000, |id| u32::from(id % 10 == 0));
        assert!(seen.drops.len() > 100, "only {}", seen.drops.len());
        assert!(seen.drops.iter().all(|d| d.1.flow == 0));
    }
}

#[test]
fn a_target_must_be_exceeded_for_an_interval_and_in_the_module_for_a_tenth_of_it() {
    for (preset, millis) in [(AfcdParams::default(), 100), (AfcdParams::kernel2012(), 10)] {
        let (mut q, mut seen) = queue(&preset);
        sampled(&mut q, &[1_500, 500]);
        for id in 0..1_000 {
            q.enqueue(at(0), packet(id, 0), &mut seen);
        }
        let ms = 1_000_000;
        q.dequeue(at(50 * ms), &mut seen);
        q.dequeue(at((50 + millis) * ms), &mut seen);
        assert!(seen.drops.is_empty());
        q.dequeue(at((50 + millis) * ms + 1), &mut seen);
        assert_eq!(seen.drops.len(), 1);
    }
}

#[test]
fn equation_5_follows_the_backlog_and_a_new_flow_starts_it_anew() {
    let (mut q, mut seen) = queue(&AfcdParams {
        sample: Some(1),
        shadow: 1_000,
        average: true,
        ..AfcdParams::default()
    });
    sampled(&mut q, &[1, 1]);
    assert!((q.shares.fair() - 500.0).abs() < 1e-9);
    for id in 0..300 {
        q.enqueue(at(0), packet(id, 0), &mut seen);
    }
    // 500 + 1.7 (0 - 200) - 1.8 (300 - 200) = -20: at least 1. Then 1 + 1.7 * 100 - 1.8 * 100.
    let ticks = |q: &mut Afcd<_>| {
        let due = q.next_timer().unwrap();
        q.on_timer(due);
        q.shares.fair()
    };
    assert!((ticks(&mut q) - 1.0).abs() < 1e-9);
    assert!((ticks(&mut q) - 1.0).abs() < 1e-9);
    while q.backlog().packets > 100 {
        q.dequeue(at(10_000_000), &mut seen);
    }
    // 1 + 1.7 (300 - 200) - 1.8 (100 - 200) = 351; then + 0.1 * 100 each time.
    assert!((ticks(&mut q) - 351.0).abs() < 1e-9);
    assert!((ticks(&mut q) - 361.0).abs() < 1e-9);
    sampled(&mut q, &[0, 0, 1]);
    assert!((q.shares.fair() - 1_000.0 / 3.0).abs() < 1e-9);
}

#[test]
fn arrivals_that_find_no_room_count_for_the_sampling_and_are_not_sampled() {
    let (mut q, mut seen) = queue(&AfcdParams {
        limit: 3,
        sample: Some(2),
        ..AfcdParams::default()
    });
    for id in 0..4 {
        q.enqueue(at(0), packet(id, 0), &mut seen);
    }
    let bin = q.shares.shadow.bin(&packet(0, 0).flow());
    assert_eq!((q.shares.shadow.count(bin), seen.drops.len()), (1, 1));
    q.dequeue(at(0), &mut seen);
    q.enqueue(at(0), packet(4, 0), &mut seen);
    assert_eq!(q.shares.shadow.count(bin), 1);
    q.dequeue(at(0), &mut seen);
    q.enqueue(at(0), packet(5, 0), &mut seen);
    assert_eq!(q.shares.shadow.count(bin), 2);
}

#[test]
fn it_tells_of_itself_what_codel_tells_and_who_shares() {
    let (mut q, _) = queue(&AfcdParams::default());
    sampled(&mut q, &[3, 1]);
    let of = |name| {
        let all = q.statistics();
        all.iter().find(|s| s.name == name).unwrap().value
    };
    assert_eq!(of("flows"), crate::contract::Number::Count(2));
    assert_eq!(of("fair_share"), crate::contract::Number::Real(1_000.0));
    assert_eq!(of("dropping"), crate::contract::Number::Flag(false));
}
