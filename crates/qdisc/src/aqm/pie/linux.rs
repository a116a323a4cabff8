//! The controller of Linux in its fixed-point arithmetic: 6.1, and 3.14 where it differs.
//!
//! Time is in the packet scheduler's ticks of 64 ns. A probability of 1 is `max_prob`.

use sojourn_net::{Bytes, Duration, Instant, Rng};

use super::PieParams;
use crate::contract::Statistic;
use crate::parameters::Profile;
use crate::parts::jiffies;

/// Both kernels mean to wait this long before the first update.
const FIRST_UPDATE: Duration = Duration::from_millis(500);

/// A tick is 2^6 ns.
const TICK_SHIFT: u32 = 6;
const TICKS_PER_SEC: u64 = 15_625_000;
/// Above this delay the probability rises by another 2 %.
const HIGH_DELAY: u64 = ticks(Duration::from_millis(250));
/// A departure rate is in bytes a tick, times 2^8.
const RATE_SHIFT: u32 = 8;

/// What differs between the kernels.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    max_prob: u64,
    burst: Duration,
    /// Number of bytes over which a rate is measured.
    dq_threshold: u64,
    derandomise: bool,
    /// `k(p)` reaches down to 1/2048 rather than to 1/8.
    many_gains: bool,
    /// Timers go off with the slots of a wheel.
    timer_wheel: bool,
}

const LINUX_6_1: Kernel = Kernel {
    max_prob: u64::MAX >> 8,
    burst: Duration::from_millis(150),
    dq_threshold: 16_384,
    derandomise: true,
    many_gains: true,
    timer_wheel: true,
};

const LINUX_3_14: Kernel = Kernel {
    max_prob: (1 << 32) - 1,
    burst: Duration::from_millis(100),
    dq_threshold: 10_000,
    derandomise: false,
    many_gains: false,
    timer_wheel: false,
};

/// What is set and does not change.
#[derive(Clone, Debug)]
pub(crate) struct Constants {
    kernel: Kernel,
    target: u64,
    alpha: u64,
    beta: u64,
    mtu: u64,
    bytemode: bool,
    /// The delay is estimated from the departure rate.
    estimating: bool,
}

impl Constants {
    pub(crate) fn new(params: &PieParams, mtu: Bytes) -> Self {
        let kernel = match params.profile {
            Profile::Linux314 => LINUX_3_14,
            Profile::Rfc
            | Profile::Paper
            | Profile::Linux
            | Profile::Linux612
            | Profile::Kernel => LINUX_6_1,
        };
        Self {
            kernel,
            target: ticks(params.target()),
            alpha: u64::from(params.alpha),
            beta: u64::from(params.beta),
            mtu: mtu.0,
            bytemode: params.bytemode,
            estimating: params.dq_rate_estimator || params.profile == Profile::Linux314,
        }
    }

    /// When the first update is due of a queue that was made at the origin of time.
    pub(crate) fn first_update(&self) -> Instant {
        self.update_after(Instant::ZERO, FIRST_UPDATE)
    }

    /// When an update is due that shall come `delay` after `now`.
    pub(crate) fn update_after(&self, now: Instant, delay: Duration) -> Instant {
        if self.kernel.timer_wheel {
            jiffies::timer(now, delay)
        } else {
            now + delay
        }
    }
}

/// The state of one queue, apart from the constants, so that FQ-PIE can keep one per flow.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    prob: u64,
    accu_prob: u64,
    qdelay: u64,
    qdelay_old: u64,
    burst_time: u64,
    /// The last departure, or when the measurement began.
    dq_tstamp: Option<u64>,
    /// Bytes that left since the measurement began.
    dq_count: Option<u64>,
    avg_dq_rate: u64,
}

impl Control {
    pub(crate) fn new(law: &Constants) -> Self {
        Self {
            prob: 0,
            accu_prob: 0,
            qdelay: 0,
            qdelay_old: 0,
            burst_time: ticks(law.kernel.burst),
            dq_tstamp: None,
            dq_count: None,
            avg_dq_rate: 0,
        }
    }

    /// The probability, and the delay in µs that it follows.
    pub(crate) fn numbers(&self, law: &Constants) -> Vec<Statistic> {
        vec![
            Statistic::real("prob", self.probability(law)),
            Statistic::count("delay", (self.qdelay << TICK_SHIFT) / 1_000),
        ]
    }

    /// The probability as a fraction.
    #[expect(clippy::cast_precision_loss, reason = "people read it as a fraction")]
    pub(crate) fn probability(&self, law: &Constants) -> f64 {
        self.prob as f64 / law.kernel.max_prob as f64
    }

    #[inline]
    pub(crate) fn drop_early(
        &mut self,
        law: &Constants,
        backlog: Bytes,
        size: Bytes,
        rng: &mut Rng,
    ) -> bool {
        let max_prob = law.kernel.max_prob;
        if self.burst_time > 0
            || (self.qdelay < law.target / 2 && self.prob < max_prob / 5)
            || backlog.0 < 2 * law.mtu
        {
            return false;
        }
        let local_prob = if law.bytemode && size.0 <= law.mtu {
            size.0 * (self.prob / law.mtu)
        } else {
            self.prob
        };
        if !law.kernel.derandomise {
            return u64::from(rng.next_u32()) < local_prob;
        }
        if local_prob == 0 {
            self.accu_prob = 0;
        } else {
            self.accu_prob = self.accu_prob.wrapping_add(local_prob);
        }
        if self.accu_prob < max_prob / 100 * 85 {
            return false;
        }
        if self.accu_prob >= max_prob / 2 * 17 {
            return true;
        }
        let drawn = rng.next_u64() >> 8 < local_prob;
        if drawn {
            self.accu_prob = 0;
        }
        drawn
    }

    /// The probability is at most `per_cent`.
    pub(crate) fn is_below(&self, law: &Constants, per_cent: u32) -> bool {
        self.prob <= law.kernel.max_prob / 100 * u64::from(per_cent)
    }

    pub(crate) fn on_drop(&mut self) {
        self.accu_prob = 0;
    }

    /// A packet of `size` left `backlog` behind.
    #[inline]
    pub(crate) fn on_dequeue(
        &mut self,
        law: &Constants,
        now: Instant,
        arrived: Instant,
        backlog: Bytes,
        size: Bytes,
    ) {
        let now = now.as_nanos() >> TICK_SHIFT;
        if law.estimating {
            return self.measure(law, now, backlog.0, size.0);
        }
        self.qdelay = match backlog {
            Bytes(0) => 0,
            _ => now - (arrived.as_nanos() >> TICK_SHIFT),
        };
        if let Some(previous) = self.dq_tstamp.replace(now) {
            self.burst_time = self.burst_time.saturating_sub(now - previous);
        }
    }

    /// One more departure for the estimate of the departure rate.
    fn measure(&mut self, law: &Constants, now: u64, backlog: u64, size: u64) {
        if backlog >= law.kernel.dq_threshold && self.dq_count.is_none() {
            self.dq_tstamp = Some(now);
            self.dq_count = Some(0);
        }
        let (Some(count), Some(began)) = (&mut self.dq_count, self.dq_tstamp) else {
            return;
        };
        *count += size;
        let lasted = now - began;
        if *count < law.kernel.dq_threshold || lasted == 0 {
            return;
        }
        let rate = (*count << RATE_SHIFT) / lasted;
        self.avg_dq_rate = match self.avg_dq_rate {
            0 => rate,
            average => average - (average >> 3) + (rate >> 3),
        };
        if backlog < law.kernel.dq_threshold {
            self.dq_count = None;
        } else {
            self.dq_count = Some(0);
            self.dq_tstamp = Some(now);
        }
        self.burst_time = self.burst_time.saturating_sub(lasted);
    }

    pub(crate) fn calculate_probability(&mut self, law: &Constants, backlog: Bytes) {
        let max_prob = law.kernel.max_prob;
        if law.estimating {
            self.qdelay_old = self.qdelay;
            self.qdelay = (backlog.0 << RATE_SHIFT)
                .checked_div(self.avg_dq_rate)
                .unwrap_or(0);
        }
        let (qdelay, qdelay_old) = (self.qdelay, self.qdelay_old);
        let (alpha, beta) = self.gains(law);
        let error = qdelay.cast_signed() - law.target.cast_signed();
        let trend = qdelay.cast_signed() - qdelay_old.cast_signed();
        let two_percent = (max_prob / 50).cast_signed();
        let mut delta = alpha
            .wrapping_mul(error)
            .wrapping_add(beta.wrapping_mul(trend));
        if delta > two_percent && self.prob >= max_prob / 10 {
            delta = (max_prob / 100 * 2).cast_signed();
        }
        if qdelay > HIGH_DELAY {
            delta = delta.wrapping_add(two_percent);
        }
        let overflowed = self.apply(law, delta);

        // No delay although packets wait: so few that the estimate says nothing.
        let unknown = qdelay == 0 && backlog.0 > 0;
        if qdelay == 0 && qdelay_old == 0 && !unknown && !overflowed {
            self.prob = if law.kernel.derandomise {
                self.prob - self.prob / 64
            } else {
                self.prob * 98 / 100
            };
        }
        let low = law.target / 2;
        if qdelay < low
            && qdelay_old < low
            && self.prob == 0
            && (!law.estimating || self.avg_dq_rate > 0)
        {
            self.restart(law);
        }
        if !law.estimating {
            self.qdelay_old = qdelay;
        }
    }

    /// Adds `delta` to the probability; says whether that overflowed.
    ///
    /// 6.1 notices an overflow of its 64 bits only, 256 times a probability of 1.
    fn apply(&mut self, law: &Constants, delta: i64) -> bool {
        let most = if law.kernel.derandomise {
            u64::MAX
        } else {
            law.kernel.max_prob
        };
        match self.prob.checked_add_signed(delta) {
            Some(prob) if prob <= most => {
                self.prob = prob;
                false
            }
            _ if delta > 0 => {
                self.prob = law.kernel.max_prob;
                true
            }
            _ => {
                self.prob = 0;
                false
            }
        }
    }

    /// `alpha` and `beta` a tick, tuned to the probability.
    fn gains(&self, law: &Constants) -> (i64, i64) {
        let max_prob = law.kernel.max_prob;
        let per_tick = max_prob / TICKS_PER_SEC;
        let shift = if law.kernel.many_gains {
            let steps = [10, 100, 1_000, 10_000, 100_000, 1_000_000];
            let passed = steps.iter().take_while(|&&s| self.prob < max_prob / s);
            // 1, then 1/2, 1/8, 1/32 … 1/2048.
            match passed.count() {
                0 => 0,
                n => 2 * n - 1,
            }
        } else if self.prob < max_prob / 100 {
            3
        } else {
            usize::from(self.prob < max_prob / 10)
        };
        let gain = |sixteenths: u64| {
            if law.kernel.many_gains {
                ((sixteenths * per_tick) >> 4 >> shift).cast_signed()
            } else {
                ((sixteenths * per_tick) >> (4 + shift)).cast_signed()
            }
        };
        (gain(law.alpha), gain(law.beta))
    }

    /// Congestion is over: the next burst is allowed again.
    fn restart(&mut self, law: &Constants) {
        self.burst_time = ticks(law.kernel.burst);
        self.dq_tstamp = None;
        self.accu_prob = 0;
        self.dq_count = None;
        self.avg_dq_rate = 0;
    }
}

/// The controller of one queue.
#[derive(Clone, Debug)]
pub(super) struct Linux {
    law: Constants,
    control: Control,
}

impl Linux {
    pub(super) fn new(params: &PieParams, mtu: Bytes) -> Self {
        let law = Constants::new(params, mtu);
        Self {
            control: Control::new(&law),
            law,
        }
    }

    /// Other parameters; the state stays.
    pub(super) fn change(&mut self, params: &PieParams, mtu: Bytes) {
        self.law = Constants::new(params, mtu);
    }

    pub(super) fn first_update(&self) -> Instant {
        self.law.first_update()
    }

    pub(super) fn update_after(&self, now: Instant, delay: Duration) -> Instant {
        self.law.update_after(now, delay)
    }

    #[inline]
    pub(super) fn drop_early(&mut self, backlog: Bytes, size: Bytes, rng: &mut Rng) -> bool {
        self.control.drop_early(&self.law, backlog, size, rng)
    }

    pub(super) fn may_mark(&self) -> bool {
        self.control.prob <= self.law.kernel.max_prob / 10
    }

    pub(super) fn on_drop(&mut self) {
        self.control.on_drop();
    }

    #[inline]
    pub(super) fn on_dequeue(
        &mut self,
        now: Instant,
        arrived: Instant,
        backlog: Bytes,
        size: Bytes,
    ) {
        self.control
            .on_dequeue(&self.law, now, arrived, backlog, size);
    }

    pub(super) fn calculate_probability(&mut self, backlog: Bytes) {
        self.control.calculate_probability(&self.law, backlog);
    }

    pub(super) fn statistics(&self) -> Vec<Statistic> {
        let per_sec = u128::from(self.control.avg_dq_rate) * u128::from(TICKS_PER_SEC);
        let bytes_per_sec = per_sec >> RATE_SHIFT;
        let mut all = self.control.numbers(&self.law);
        all.push(Statistic::count(
            "avg_dq_rate",
            u64::try_from(bytes_per_sec).unwrap_or(u64::MAX),
        ));
        all
    }

    #[cfg(test)]
    pub(super) fn probability(&self) -> f64 {
        self.control.probability(&self.law)
    }
}

#[cfg(test)]
impl Linux {
    pub(super) fn qdelay(&self) -> u64 {
        self.control.qdelay
    }

    pub(super) fn burst_time(&self) -> u64 {
        self.control.burst_time
    }

    #[expect(clippy::cast_precision_loss, reason = "a test wants seconds")]
    pub(super) fn target_secs(&self) -> f64 {
        self.law.target as f64 / TICKS_PER_SEC as f64
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a test sets a probability"
    )]
    pub(super) fn set_for_test(&mut self, prob: f64, qdelay: u64, burst: Duration) {
        self.control.prob = (self.law.kernel.max_prob as f64 * prob) as u64;
        self.control.qdelay = qdelay;
        self.control.qdelay_old = qdelay;
        self.control.burst_time = ticks(burst);
    }
}

const fn ticks(time: Duration) -> u64 {
    time.as_nanos() >> TICK_SHIFT
}
