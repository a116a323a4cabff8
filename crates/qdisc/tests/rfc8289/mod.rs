//! The pseudo-code of RFC 8289 §5, line by line and in its own names: slow, ugly and easy to lay
//! beside the document. It is never optimised and never reused outside the oracles.
//!
//! Checked against the RFC's text, sections 5.2 to 5.6, statement by statement. Where the text
//! leaves a choice:
//!
//! | RFC 8289 | here |
//! |---|---|
//! | `maxpacket` is 512, SHOULD be the interface MTU (5.3) | 1514 |
//! | the rounding of `INTERVAL / sqrt(count)` (5.6) | to the nearest nanosecond, in integers |
//! | the sign of `now - drop_next_` (5.5) | signed; it is never negative there |
//! | no marking | no packet is ECN-capable |

use std::collections::VecDeque;

use sojourn_qdisc::testing::TestPacket;

pub(crate) const TARGET: u64 = 5_000_000;
pub(crate) const INTERVAL: u64 = 100_000_000;
pub(crate) const MAXPACKET: u64 = 1_514;

#[derive(Default)]
pub(crate) struct CodelQueue {
    pub(crate) queue: VecDeque<(u64, TestPacket)>, // (arrival time, packet)
    pub(crate) bytes: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    pub(crate) dropped: Vec<u64>,
}

impl CodelQueue {
    pub(crate) fn enqueue(&mut self, now: u64, p: TestPacket) {
        self.bytes += p.size;
        self.queue.push_back((now, p));
    }

    fn dodequeue(&mut self, now: u64) -> (Option<TestPacket>, bool) {
        let mut ok_to_drop = false;
        let Some((arrival, p)) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        self.bytes -= p.size;
        let sojourn_time = now - arrival;
        if sojourn_time < TARGET || self.bytes <= MAXPACKET {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    /// Shares no arithmetic with the code under test: `(isqrt(4x) + 1) / 2` rounds `sqrt(x)`.
    fn control_law(t: u64, count: u32) -> u64 {
        let four_x = 4 * u128::from(INTERVAL).pow(2) / u128::from(count);
        t + u64::try_from(four_x.isqrt().div_ceil(2)).unwrap()
    }

    pub(crate) fn dequeue(&mut self, now: u64) -> Option<TestPacket> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.push(p.unwrap().id);
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.dropped.push(p.unwrap().id);
            (p, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            let since_drop_next = now.wrapping_sub(self.drop_next).cast_signed();
            if delta > 1 && since_drop_next < (16 * INTERVAL).cast_signed() {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        p
    }
}
