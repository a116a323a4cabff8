//! The control law of CoDel, shared with FQ-CoDel and AFCD.

use sojourn_net::{Duration, Instant, Packet};

use super::CodelParams;
use crate::contract::{DropReason, MarkReason, Observer, Statistic};
use crate::parameters::Profile;
use crate::parts::fixed;

/// The packets that a [`Control`] watches over.
pub(crate) trait Source<P> {
    /// Removes the oldest packet and says when it arrived.
    fn pop(&mut self) -> Option<(P, Instant)>;

    /// Too little is left to signal about (RFC 8289: at most `maxpacket`).
    fn is_small(&self) -> bool;
}

/// The parameters of a [`Control`], in the units of its profile.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    target: Duration,
    interval: Duration,
    ce_threshold: Option<Duration>,
    /// The DSCP and ECN field to which the threshold applies, and the mask of the comparison; a mask of 0: all.
    ce_selector: (u8, u8),
    ecn: bool,
    /// Linux: ticks, and Newton steps towards square roots.
    fixed_point: bool,
    /// Profile `kernel`: integer square roots.
    integer: bool,
}

impl Law {
    pub(crate) fn new(params: &CodelParams) -> Self {
        let integer = params.profile == Profile::Kernel;
        let fixed_point = params.profile != Profile::Rfc && !integer;
        let rounded = |time: Duration| {
            if fixed_point {
                Duration::from_nanos(whole_ticks(time.as_nanos()))
            } else {
                time
            }
        };
        Self {
            target: rounded(params.target),
            interval: rounded(params.interval),
            ce_threshold: params.ce_threshold.map(rounded),
            ce_selector: (0, 0),
            ecn: params.ecn,
            fixed_point,
            integer,
        }
    }

    /// Applies the shallow threshold to packets with this field alone: 256 times the value plus the mask.
    pub(crate) const fn selecting(mut self, selector: Option<u16>) -> Self {
        if let Some(selector) = selector {
            let [value, mask] = selector.to_be_bytes();
            self.ce_selector = (value, mask);
        }
        self
    }

    /// Whether the shallow threshold applies to `pkt`.
    fn selects<P: Packet>(&self, pkt: &P) -> bool {
        let (value, mask) = self.ce_selector;
        mask == 0 || (pkt.dscp().number() << 2 | pkt.ecn().bits()) & mask == value
    }

    /// `time` in the resolution of the clock of this profile.
    #[inline]
    pub(super) fn clock(&self, time: Instant) -> Instant {
        if self.fixed_point {
            Instant::from_nanos(whole_ticks(time.as_nanos()))
        } else {
            time
        }
    }

    /// Marks `pkt` if it waited longer than the shallow threshold.
    #[inline]
    fn mark_late<P: Packet>(
        &self,
        pkt: &mut P,
        arrived: Instant,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) {
        let Some(most) = self.ce_threshold else {
            return;
        };
        let late = self.clock(now).since(self.clock(arrived)) > most;
        if late && self.selects(pkt) && pkt.mark_ce() {
            obs.on_mark(now, pkt, MarkReason::CeThreshold);
        }
    }

    /// Marks `pkt` if that is allowed and possible; says whether it did.
    fn marks<P: Packet>(&self, pkt: &mut P, now: Instant, obs: &mut dyn Observer<P>) -> bool {
        let marked = self.ecn && pkt.mark_ce();
        if marked {
            obs.on_mark(now, pkt, MarkReason::Aqm);
        }
        marked
    }
}

/// The control loop, apart from the buffer, so that FQ-CoDel can keep one per flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// When the delay will have been at or above target for an interval.
    first_above_time: Option<Instant>,
    pub(super) signals: Signals,
}

/// A packet, when it arrived, and whether the law wants a signal now.
pub(crate) type Popped<P> = (P, Instant, bool);

impl Control {
    /// RFC 8289 `dequeue`: takes the next packet, signalling congestion if it is due.
    #[inline]
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        law: &Law,
        source: &mut impl Source<P>,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let Some((mut pkt, arrived)) = source.pop() else {
            self.first_above_time = None;
            self.signals.dropping = false;
            return None;
        };
        if is_standing(&mut self.first_above_time, law, source, arrived, now) {
            let Self {
                first_above_time,
                signals,
            } = self;
            // A queue that is standing has been for an interval, and is at each further signal.
            let since = first_above_time.map(|at| (at, law.interval));
            let dodequeue = || Self::dodequeue(first_above_time, law, source, now);
            return signals.act(law, dodequeue, (pkt, arrived), since, now, obs);
        }
        self.signals.dropping = false;
        law.mark_late(&mut pkt, arrived, now, obs);
        Some(pkt)
    }

    /// RFC 8289 `dodequeue`: the next packet, and whether the queue is standing.
    #[inline(never)]
    fn dodequeue<P: Packet>(
        first_above_time: &mut Option<Instant>,
        law: &Law,
        source: &mut impl Source<P>,
        now: Instant,
    ) -> Option<Popped<P>> {
        let Some((pkt, arrived)) = source.pop() else {
            *first_above_time = None;
            return None;
        };
        let standing = is_standing(first_above_time, law, source, arrived, now);
        Some((pkt, arrived, standing))
    }

    /// Whether it is signalling.
    pub(crate) const fn is_dropping(&self) -> bool {
        self.signals.dropping
    }

    /// Counts `dropped` packets that the buffer lost as signals, as Linux's FQ-CoDel does.
    pub(crate) fn count_overload(&mut self, dropped: u32) {
        self.signals.count = self.signals.count.wrapping_add(dropped);
    }
}

/// The test in RFC 8289 `dodequeue`: whether the delay has stood at or above target for an
/// interval, now that the packet that came at `arrived` has left.
#[inline]
fn is_standing<P>(
    first_above_time: &mut Option<Instant>,
    law: &Law,
    source: &impl Source<P>,
    arrived: Instant,
    now: Instant,
) -> bool {
    let now = law.clock(now);
    if now.since(law.clock(arrived)) < law.target || source.is_small() {
        *first_above_time = None;
        return false;
    }
    match *first_above_time {
        None => {
            *first_above_time = Some(now + law.interval);
            false
        }
        Some(above_at) if law.fixed_point => now > above_at,
        Some(above_at) => now >= above_at,
    }
}

/// When signals follow each other, apart from what calls for them, so that other laws can use it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    /// When the next signal is due, or was due when we last stopped signalling.
    drop_next: Instant,
    /// Signals since signalling began.
    count: u32,
    /// `count` as signalling last began.
    lastcount: u32,
    /// `1 / sqrt(count)` in Q0.16, in the profiles that keep one.
    rec_inv_sqrt: u16,
    dropping: bool,
}

impl Signals {
    /// Takes the packet `first`, or one that `dodequeue` finds after it, signalling congestion if
    /// that is due.
    #[inline]
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        law: &Law,
        first: Option<Popped<P>>,
        dodequeue: impl FnMut() -> Option<Popped<P>>,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let Some((mut pkt, arrived, ok_to_drop)) = first else {
            self.dropping = false;
            return None;
        };
        if ok_to_drop {
            return self.act(law, dodequeue, (pkt, arrived), None, now, obs);
        }
        self.dropping = false;
        law.mark_late(&mut pkt, arrived, now, obs);
        Some(pkt)
    }

    /// A packet leaves a standing queue: signals if that is due. `above` is `first_above_time` and the interval before it.
    fn act<P: Packet>(
        &mut self,
        law: &Law,
        mut dodequeue: impl FnMut() -> Option<Popped<P>>,
        (mut pkt, mut arrived): (P, Instant),
        above: Option<(Instant, Duration)>,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        if !self.dropping {
            self.start(law, now);
            obs.on_decision(&|| self.numbers(law, arrived, above, self.drop_next, now));
            if !law.marks(&mut pkt, now, obs) {
                obs.on_drop(now, pkt, DropReason::Aqm);
                let Some(next) = dodequeue() else {
                    self.dropping = false;
                    return None;
                };
                (pkt, arrived, _) = next;
            }
        } else if self.drop_next <= law.clock(now) {
            (pkt, arrived) = self.signal(law, dodequeue, (pkt, arrived), above, now, obs)?;
        }
        law.mark_late(&mut pkt, arrived, now, obs);
        Some(pkt)
    }

    /// Sends the signals that have fallen due; gives the packet to send after them.
    fn signal<P: Packet>(
        &mut self,
        law: &Law,
        mut dodequeue: impl FnMut() -> Option<Popped<P>>,
        (mut pkt, mut arrived): (P, Instant),
        above: Option<(Instant, Duration)>,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<(P, Instant)> {
        // The backlog may be so large that several signals are due at once. Each turn
        // removes a packet, so the loop ends with the queue.
        while self.dropping && self.drop_next <= law.clock(now) {
            self.step(law, self.count.wrapping_add(1));
            let next = self.drop_next + self.gap(law);
            obs.on_decision(&|| self.numbers(law, arrived, above, next, now));
            if law.marks(&mut pkt, now, obs) {
                self.drop_next += self.gap(law);
                break;
            }
            obs.on_drop(now, pkt, DropReason::Aqm);
            let Some(next) = dodequeue() else {
                self.dropping = false;
                return None;
            };
            (pkt, arrived) = (next.0, next.1);
            if next.2 {
                self.drop_next += self.gap(law);
            } else {
                self.dropping = false;
            }
        }
        Some((pkt, arrived))
    }

    /// The numbers behind a signal about the packet that came at `arrived`: the time until the `next` signal and, if
    /// `target` decides, the delay and for how long it has been that large, in µs.
    #[cold]
    fn numbers(
        &self,
        law: &Law,
        arrived: Instant,
        above: Option<(Instant, Duration)>,
        next: Instant,
        now: Instant,
    ) -> Vec<Statistic> {
        let now = law.clock(now);
        let mut all = vec![
            Statistic::count("count", self.count.into()),
            Statistic::count("lastcount", self.lastcount.into()),
            Statistic::micros_until("drop_next", now, next),
        ];
        if let Some((at, interval)) = above {
            all.extend([
                Statistic::micros("delay", now.since(law.clock(arrived))),
                Statistic::micros("above", (now + interval).saturating_since(at)),
            ]);
        }
        all
    }

    /// What `tc` shows of it.
    pub(crate) const fn statistics(&self) -> [Statistic; 3] {
        [
            Statistic::count("count", self.count as u64),
            Statistic::count("lastcount", self.lastcount as u64),
            Statistic::flag("dropping", self.dropping),
        ]
    }

    /// The time to the next signal, while signalling.
    pub(crate) fn state(&self, now: Instant) -> Option<Statistic> {
        self.dropping
            .then(|| Statistic::micros_until("drop_next", now, self.drop_next))
    }

    /// Begins signalling at the rate that last held the queue, if that was recent.
    fn start(&mut self, law: &Law, now: Instant) {
        let now = law.clock(now);
        let delta = self.count.wrapping_sub(self.lastcount);
        // Overload may have counted before the first signal; then `drop_next` means nothing yet.
        let recent = self.lastcount > 0 && now < self.drop_next + law.interval.times(16);
        if delta > 1 && recent {
            self.step(law, delta);
        } else {
            self.count = 1;
            self.rec_inv_sqrt = u16::MAX;
        }
        self.lastcount = self.count;
        self.dropping = true;
        self.drop_next = now + self.gap(law);
    }

    /// Moves to `count`, and in fixed point one Newton step towards its square root.
    fn step(&mut self, law: &Law, count: u32) {
        self.count = count;
        if law.fixed_point {
            self.rec_inv_sqrt = newton_step(self.rec_inv_sqrt, count);
        }
    }

    /// The time from this signal to the next.
    fn gap(&self, law: &Law) -> Duration {
        if law.fixed_point {
            let ticks = law.interval.as_nanos() >> TICK_SHIFT;
            Duration::from_nanos(((ticks * u64::from(self.rec_inv_sqrt)) >> 16) << TICK_SHIFT)
        } else if law.integer {
            fixed::div_sqrt(law.interval, self.count)
        } else {
            div_sqrt(law.interval, self.count)
        }
    }
}

/// Linux keeps time in units of 2^10 ns, a shift of nanoseconds.
const TICK_SHIFT: u32 = 10;

#[inline]
const fn whole_ticks(nanos: u64) -> u64 {
    nanos >> TICK_SHIFT << TICK_SHIFT
}

/// Newton's iteration for `1 / sqrt(count)`, `x (3 - count x^2) / 2`, once, in Q0.16.
///
/// From a first guess far too large, as at `count` 2, the step may overshoot below zero in real
/// numbers; the kernel's 64-bit arithmetic then wraps, and so does this.
const fn newton_step(rec_inv_sqrt: u16, count: u32) -> u16 {
    let x = (rec_inv_sqrt as u64) << 16;
    let x_squared = (x * x) >> 32;
    let bracket = (3_u64 << 32).wrapping_sub((count as u64).wrapping_mul(x_squared)) >> 2;
    (bracket.wrapping_mul(x) >> 31 >> 16) as u16
}

/// `interval / sqrt(count)`, to the nearest nanosecond.
///
/// IEEE 754 fixes `sqrt` and division to the last bit, so every machine agrees.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "exact below 2^53 ns (104 days); the quotient is non-negative and no larger"
)]
pub(crate) fn div_sqrt(interval: Duration, count: u32) -> Duration {
    Duration::from_nanos((interval.as_nanos() as f64 / f64::from(count).sqrt()).round() as u64)
}

#[cfg(test)]
mod tests;
