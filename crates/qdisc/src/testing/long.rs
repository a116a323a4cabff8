//! Long random cases, in which averages, counters and flow tables reach the values of a long run.

use sojourn_net::{Duration, Rng};

use crate::registry::QdiscSpec;

use super::Op;
use super::fuzz::{Case, FLOWS, Reader, SIZES, Services, ecn_of, link, max_wait, with_parameters};

/// More flows than a table of the smallest size holds.
const MANY_FLOWS: u64 = 512;

/// CAKE has eight ways per set; with more flows, two may share a bucket, and a flow that moves to another bucket
/// overtakes its own packets in the shared one, as in Linux.
const FLOWS_OF_CAKE: u64 = 8;

/// Maximum sum of all waits of a case: about 73 years, which leaves time to drain the queue.
const LONGEST_CASE: u64 = 1 << 61;

/// Bytes for the choice of the parameters and the link.
const CHOICES: usize = 64;

impl Case {
    /// A random case of the discipline called `name`, of `calls` operations.
    ///
    /// # Panics
    /// If there is no such discipline.
    pub fn long(name: &str, seed: u64, calls: usize) -> Self {
        let mut rng = Rng::new(seed).fork(name);
        let choices: Vec<u8> = (0..CHOICES).map(|_| byte(&mut rng)).collect();
        let mut choices = Reader(&choices);
        let (kind, spec) = QdiscSpec::at_defaults(name).expect("a name of the catalogue");
        let spec = with_parameters(&kind, spec, &mut choices);
        let link = link(&mut choices);
        let ops = Traffic::new(&spec, rng).ops(calls);
        Self {
            spec,
            link,
            seed,
            ops,
        }
    }
}

fn byte(rng: &mut Rng) -> u8 {
    rng.next_u64().to_le_bytes()[7]
}

/// Generates operations in phases, each with its own load, sizes, flows and pauses.
struct Traffic {
    rng: Rng,
    services: Services,
    most_flows: u64,
    /// In nanoseconds.
    longest_wait_with_timers: u64,
    time_left: u64,
    /// Packets that may wait: arrivals less departures.
    waiting: usize,
    ops: Vec<Op>,
}

impl Traffic {
    fn new(spec: &QdiscSpec, rng: Rng) -> Self {
        let text = spec.to_string();
        Self {
            rng,
            services: Services::of(spec),
            most_flows: if text.contains("cake") {
                FLOWS_OF_CAKE
            } else {
                MANY_FLOWS
            },
            // Waits are more frequent than in a short case.
            longest_wait_with_timers: max_wait(spec) / 8,
            time_left: LONGEST_CASE,
            waiting: 0,
            ops: Vec::new(),
        }
    }

    fn ops(mut self, calls: usize) -> Vec<Op> {
        while self.ops.len() < calls {
            if self.rng.below(4) == 0 {
                let departures = self.waiting.min(calls - self.ops.len()) + 1;
                self.ops
                    .extend(std::iter::repeat_n(Op::Dequeue, departures));
                self.waiting -= departures.min(self.waiting);
                self.pause(51);
            } else {
                self.phase(calls);
            }
        }
        self.ops.truncate(calls);
        self.ops
    }

    fn phase(&mut self, calls: usize) {
        let length = 1_usize << self.rng.below(15);
        let arrivals = self.pick(&[1, 4, 7, 8, 9, 12, 16]);
        let flows = self.pick(&[1, 2, 8, self.most_flows]);
        let (size, mixed_sizes) = (self.pick(&SIZES), self.rng.below(2) == 0);
        let (choice, mixed_choices) = (byte(&mut self.rng), self.rng.below(2) == 0);
        let between_pauses = 1 << self.rng.below(10);
        let longest_pause = 1 + self.rng.below(45);
        for _ in 0..length.min(calls.saturating_sub(self.ops.len())) {
            if self.rng.below(between_pauses) == 0 {
                self.pause(longest_pause);
            }
            if self.rng.below(16) >= arrivals {
                self.ops.push(Op::Dequeue);
                self.waiting -= usize::from(self.waiting > 0);
                continue;
            }
            let index = self.rng.below(flows);
            let size = if mixed_sizes { self.pick(&SIZES) } else { size };
            let choice = if mixed_choices {
                byte(&mut self.rng)
            } else {
                choice
            };
            let flow = usize::try_from(index)
                .ok()
                .and_then(|index| FLOWS.get(index).copied())
                .unwrap_or_else(|| u32::try_from(index).unwrap_or(u32::MAX));
            let ecn = ecn_of(self.services, index % 2 == 1, choice >> 6);
            self.ops.push(Op::Enqueue(flow, size, ecn));
            self.waiting += 1;
        }
    }

    /// Lets up to `2^longest` nanoseconds pass; short times are as frequent as long ones.
    fn pause(&mut self, longest: u64) {
        let power = 1_u64 << self.rng.below(longest + 1);
        let time = (power + self.rng.below(power)).min(self.time_left);
        self.time_left -= time;
        self.ops.push(if self.rng.below(2) == 0 {
            Op::Wait(Duration::from_nanos(
                time.min(self.longest_wait_with_timers),
            ))
        } else {
            Op::WaitLate(Duration::from_nanos(time))
        });
    }

    fn pick(&mut self, all: &[u64]) -> u64 {
        let place = self.rng.below(all.len() as u64);
        usize::try_from(place).map_or(all[0], |place| all[place])
    }
}
