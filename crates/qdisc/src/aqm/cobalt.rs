//! COBALT: CoDel combined with BLUE.
//!
//! # Source
//!
//! The AQM of CAKE, Linux 6.1 `net/sched/sch_cake.c`, here on a FIFO.
//!
//! # Algorithm
//!
//! CoDel responds to delay, BLUE to a full buffer. `drop_next` also replaces CoDel's
//! `first_above_time`, and `count` decays while the queue is not signalled. BLUE's `p` changes at
//! most once per `target`. The last packet may be marked, never dropped. The first gap of a queue
//! is 0, not an interval: CAKE starts with a square root of 0, which the first change of `count`
//! replaces.
//!
//! Pseudo-code: `docs/qdiscs/cobalt.md`.
//!
//! # Differences from CAKE
//!
//! | here | CAKE | effect |
//! |---|---|---|
//! | one FIFO, limited in packets, that drops what does not fit | a queue per flow; the longest loses its oldest when memory is out | without a scheduler all flows share one law |
//! | a gap of any length | an interval of 2^32 ns or more loses its high bits in a gap | none below 4.29 s |
//! | empty when a departure leaves nothing | when a flow is found empty at its turn | `p` falls one transmission sooner |

use sojourn_net::{Bytes, Comparison, Duration, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc, Statistic};
use crate::parameters::{Kind, LINUX, LinkFacts, Params, Retention, parameters};
use crate::parts::fifo::Fifo;

parameters! {
    /// Parameters of [`Cobalt`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CobaltParams {
        /// Maximum number of packets in the buffer.
        pub limit: usize = 1_000 => packets(1, 100_000_000),
            "Sojourn default, as in net/sched/sch_codel.c: DEFAULT_CODEL_LIMIT";
        /// Acceptable standing delay.
        pub target: Duration = Duration::from_millis(5) => time(1, LONGEST),
            "net/sched/sch_cake.c: cobalt_params.target";
        /// CoDel interval: slightly more than the longest expected round-trip time.
        pub interval: Duration = Duration::from_millis(100) => time(1, LONGEST),
            "net/sched/sch_cake.c: cobalt_params.interval";
        /// Increase of BLUE's probability when the buffer is full.
        pub increment: f64 = 1.0 / 256.0 => fraction(0, 1),
            "net/sched/sch_cake.c: cobalt_params.p_inc";
        /// Decrease of BLUE's probability when the buffer is empty.
        pub decrement: f64 = 1.0 / 4_096.0 => fraction(0, 1),
            "net/sched/sch_cake.c: cobalt_params.p_dec";
        /// Mark ECN-capable packets instead of dropping them when CoDel signals.
        pub ecn: bool = true => flag(),
            "net/sched/sch_cake.c: cobalt_should_drop always marks; noecn is a Sojourn addition";
    }
}

impl Params for CobaltParams {
    type Queue<P: Packet> = Cobalt<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "cobalt",
        class: Some("Cobalt"),
        summary: "CoDel for delay and BLUE for a full buffer, in one FIFO",
        source: "Linux 6.1 sch_cake",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::Partial("Linux 6.1, as the AQM of CAKE");

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Cobalt<P> {
        Cobalt::new(self, link.rate, link.mtu, rng)
    }

    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Ok(Retention::Keeps)
    }

    fn change<P: Packet>(
        &self,
        queue: &mut Cobalt<P>,
        now: Instant,
        link: &LinkFacts,
        obs: &mut dyn Observer<P>,
    ) {
        queue.limit = self.limit;
        queue.ecn = self.ecn;
        queue.law = Law::new(self, link.rate, link.mtu);
        queue.fifo.shrink(now, self.limit, obs);
    }
}

/// A FIFO governed by COBALT.
#[derive(Clone, Debug)]
pub struct Cobalt<P> {
    limit: usize,
    ecn: bool,
    law: Law,
    fifo: Fifo<P>,
    control: Control,
    rng: Rng,
}

impl<P: Packet> Cobalt<P> {
    /// An empty queue on a link of `rate`, if it is constant, for packets of up to `mtu` bytes.
    pub fn new(params: &CobaltParams, rate: Option<Rate>, mtu: Bytes, rng: Rng) -> Self {
        Self {
            limit: params.limit,
            ecn: params.ecn,
            law: Law::new(params, rate, mtu),
            fifo: Fifo::new(),
            control: Control::default(),
            rng,
        }
    }
}

impl<P: Packet> Qdisc<P> for Cobalt<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.fifo.backlog().packets < self.limit {
            self.fifo.push(now, pkt);
        } else {
            self.control.on_full(&self.law, now);
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        // Each turn removes a packet, so the loop ends with the queue.
        loop {
            let (mut pkt, sojourn) = self.fifo.pop(now)?;
            let signal = self.control.next_signal(&self.law, sojourn, 0, now);
            let marked = signal && self.ecn && pkt.mark_ce();
            if marked {
                obs.on_decision(&|| self.control.numbers(sojourn, true, now));
                obs.on_mark(now, &pkt, MarkReason::Aqm);
            }
            let unheard = signal && !marked;
            let dropped = self.control.settle(&self.law, unheard, now, &mut self.rng);
            let last = self.fifo.backlog().packets == 0;
            if last {
                self.control.on_empty(&self.law, now);
            }
            if last || !dropped {
                return Some(pkt);
            }
            obs.on_decision(&|| self.control.numbers(sojourn, unheard, now));
            obs.on_drop(now, pkt, DropReason::Aqm);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn statistics(&self) -> Vec<Statistic> {
        vec![
            Statistic::count("count", self.control.count.into()),
            Statistic::flag("dropping", self.control.dropping),
            Statistic::real(
                "blue_prob",
                f64::from(self.control.p_drop) / 4_294_967_296.0,
            ),
        ]
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        let Control {
            dropping,
            drop_next,
            ..
        } = self.control;
        let next = dropping.then(|| Statistic::micros_until("drop_next", now, drop_next));
        next.into_iter().collect()
    }
}

/// What the law does not change.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    pub(crate) target: Duration,
    pub(crate) interval: Duration,
    /// One transmission of the largest packet.
    pub(crate) mtu_time: Duration,
    /// Of 2^32, as is `decrement`.
    pub(crate) increment: u32,
    pub(crate) decrement: u32,
    /// 1 / sqrt(n), of 2^32.
    pub(crate) roots: &'static [u32; 16],
}

impl Law {
    fn new(params: &CobaltParams, rate: Option<Rate>, mtu: Bytes) -> Self {
        Self {
            target: params.target,
            interval: params.interval,
            mtu_time: rate.map_or(Duration::ZERO, |rate| rate.serialise(mtu)),
            increment: q32(params.increment),
            decrement: q32(params.decrement),
            roots: &ROOTS,
        }
    }
}

/// The state of both laws, apart from the buffer, so that CAKE can keep one per flow; the names are
/// CAKE's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    drop_next: Instant,
    /// When BLUE's probability last changed.
    blue_timer: Instant,
    count: u32,
    /// 1 / sqrt(count), of 2^32; 0 before the first change of `count`.
    rec_inv_sqrt: u32,
    /// BLUE's probability, of 2^32.
    p_drop: u32,
    dropping: bool,
    /// `now` was past `drop_next` when that was last compared.
    late: bool,
}

impl Control {
    /// CoDel: whether the packet that leaves is to carry a signal; `flows` share the buffer's delay.
    #[inline]
    pub(crate) fn next_signal(
        &mut self,
        law: &Law,
        sojourn: Duration,
        flows: u32,
        now: Instant,
    ) -> bool {
        let due = self.count > 0 && now >= self.drop_next;
        self.late = now > self.drop_next;
        let transmissions = 4.max(2 * u64::from(flows));
        if sojourn > law.target && sojourn > law.mtu_time.times(transmissions) {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.gap(law);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            self.advance(self.count.saturating_add(1), law, now);
            return true;
        }
        if due {
            while self.count > 0 && now >= self.drop_next {
                self.advance(self.count - 1, law, now);
            }
        }
        false
    }

    /// BLUE, and after its verdict: `drop_next` also tells how long the queue has been quiet.
    ///
    /// `unheard` is a signal that no mark could carry; returns whether to drop.
    #[inline]
    pub(crate) fn settle(&mut self, law: &Law, unheard: bool, now: Instant, rng: &mut Rng) -> bool {
        let dropped = unheard | (self.p_drop > 0 && rng.next_u32() < self.p_drop);
        if self.count == 0 {
            self.drop_next = now + law.interval;
        } else if self.late && !dropped {
            self.drop_next = now;
        }
        dropped
    }

    /// The buffer was full; says whether BLUE began.
    pub(crate) fn on_full(&mut self, law: &Law, now: Instant) -> bool {
        let quiet = self.p_drop == 0;
        if now.since(self.blue_timer) > law.target {
            self.p_drop = self.p_drop.saturating_add(law.increment);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        quiet && self.p_drop > 0
    }

    /// The buffer is empty; says whether BLUE ended.
    #[inline]
    pub(crate) fn on_empty(&mut self, law: &Law, now: Instant) -> bool {
        let active = self.p_drop > 0;
        if active && now.since(self.blue_timer) > law.target {
            self.p_drop = self.p_drop.saturating_sub(law.decrement);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.advance(self.count - 1, law, now);
        }
        active && self.p_drop == 0
    }

    /// Whether nothing is left of past congestion.
    #[inline]
    pub(crate) fn is_at_rest(&self, now: Instant) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// The numbers behind a signal about a packet that waited for `sojourn`: those of CoDel if the signal is `due`, else
    /// those of BLUE. Times are in µs.
    #[cold]
    pub(crate) fn numbers(&self, sojourn: Duration, due: bool, now: Instant) -> Vec<Statistic> {
        let mut all = vec![Statistic::micros("delay", sojourn)];
        if due {
            all.extend([
                Statistic::count("count", self.count.into()),
                Statistic::micros_until("drop_next", now, self.drop_next),
            ]);
        } else {
            let blue = f64::from(self.p_drop) / 4_294_967_296.0;
            all.push(Statistic::real("blue_prob", blue));
        }
        all
    }

    fn advance(&mut self, count: u32, law: &Law, now: Instant) {
        self.count = count;
        self.rec_inv_sqrt = match law.roots.get(count as usize) {
            Some(&exact) => exact,
            None => newton_step(self.rec_inv_sqrt, count),
        };
        self.drop_next += self.gap(law);
        self.late = now > self.drop_next;
    }

    /// Time to the next signal.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a part of a 64-bit interval"
    )]
    fn gap(&self, law: &Law) -> Duration {
        let interval = u128::from(law.interval.as_nanos());
        Duration::from_nanos(((interval * u128::from(self.rec_inv_sqrt)) >> 32) as u64)
    }
}

/// 1 / sqrt(n), of 2^32: from 16 on one Newton step a change is near enough. That of 2 is 0.06 % too small.
pub(crate) const ROOTS: [u32; 16] = roots(4);

/// The same after as many steps as change anything, as in Linux 7.3 (where that of 10 is larger by 1): within 1 of the
/// roots.
pub(crate) const EXACT_ROOTS: [u32; 16] = roots(8);

const fn roots(steps: u32) -> [u32; 16] {
    let mut table = [u32::MAX; 16];
    let mut n = 1;
    while n < 16 {
        let mut x = table[n - 1];
        let mut step = 0;
        while step < steps {
            #[expect(clippy::cast_possible_truncation, reason = "below 16")]
            let count = n as u32;
            x = newton_step(x, count);
            step += 1;
        }
        table[n] = x;
        n += 1;
    }
    table
}

/// x (3 - count x^2) / 2, of 2^32, rounded as Linux rounds it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "x and the result are below 1"
)]
const fn newton_step(x: u32, count: u32) -> u32 {
    let x = x as u64;
    let square = (x * x) >> 32;
    let rest = (3_u64 << 32).saturating_sub(count as u64 * square);
    (((rest >> 2) * x) >> 31) as u32
}

/// A probability in units of 2^-32.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; a probability is not negative"
)]
fn q32(probability: f64) -> u32 {
    (probability * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests;
