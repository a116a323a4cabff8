//! LEDBAT: a scavenger that keeps the queue at a target delay and yields to others.
//!
//! # Source
//!
//! RFC 6817 §2.4.2 and §2.5.
//!
//! # Law
//!
//! With the one-way delay of each acknowledgement, *base* the least of ten minutes, *current* the
//! least of the last four samples not older than a round trip:
//!
//! ```text
//! off_target        = (target - (current - base)) / target      target 100 ms
//! acknowledgement   cwnd += gain off_target acked / cwnd        gain 1, at least 2 segments
//! allowed_increase  cwnd <= flight before the acknowledgement + allowed_increase     if it is set
//! loss              cwnd = max(cwnd / 2, 2)
//! ```
//!
//! The one-way delay is the peer's timestamp (RFC 7323) less the one it echoes: whole
//! milliseconds and an unknown constant, which the base takes away. What waits on the way back
//! does not count. QUIC has no timestamps: there the round trip is taken for it, and what waits on
//! the way back counts.
//!
//! # Differences from RFC 6817
//!
//! | here | RFC 6817 | effect |
//! |---|---|---|
//! | no slow start | may be used | ten segments more a second at 100 ms, as Reno in avoidance |
//! | begins with TCP's initial window | 2 segments SHOULD, no more than TCP's MUST | – |
//! | grows only while the window limits sending; no `allowed_increase` by default | grows on each ACK; `ALLOWED_INCREASE` SHOULD be 1 segment | none while a full window is in flight; see below |
//! | the echo of a delayed ACK is that of the first segment it covers | not TCP | up to a delayed ACK more in a sample; the least of four hides it |
//!
//! A sender that defers small bursts, as Linux does, or paces has less than a window in flight when an
//! acknowledgement arrives, though the window limits it: at 100 Mbit/s and 50 ms 73 % of the acknowledgements find
//! up to 8 segments less. The RFC's rule lowers the window to that flight, which defers the next burst again.
//! What the rule guards against, growth without use, the sender prevents: it calls `grow` only while the window
//! limits sending. An application that sends less keeps its window, over TCP until the policy `after_idle` lowers
//! it, where the RFC's falls to the flight. With `allowed_increase` the rule applies after each acknowledgement.

use std::num::NonZeroU16;

use sojourn_schema::parameters;

use super::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};
use super::progress::Echo;
use super::{Ack, Window, WindowBased};

parameters! {
    /// Parameters of [`Ledbat`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct LedbatParams {
        /// Target queueing delay.
        pub target: u32 = 100 => millis(1, 10_000),
            "RFC 6817 section 2.5, TARGET";
        /// Growth per round trip with an empty queue, in segments.
        pub gain: u32 = 1_000 => decimal(3, 1, 10_000),
            "RFC 6817 section 2.5, GAIN";
        /// Length of the base delay history.
        pub base_history: u8 = 10 => count(1, 60).of("minutes"),
            "RFC 6817 section 2.5, BASE_HISTORY";
        /// Number of delay samples over which the minimum is taken.
        pub current_filter: u8 = 4 => count(1, 64).of("samples"),
            "RFC 6817 section 2.5, CURRENT_FILTER";
        /// Minimum congestion window.
        pub min_cwnd: u8 = 2 => count(1, 100).of("segments"),
            "RFC 6817 section 2.5, MIN_CWND";
        /// Maximum congestion window in excess of the data in flight before an ACK.
        pub allowed_increase: Option<NonZeroU16> = None => count_or_off("segments", 1, 65_535),
            "RFC 6817 section 2.5, ALLOWED_INCREASE: 1";
    }
}

impl Control for LedbatParams {
    type Controller = Ledbat;

    const DECLARATION: Declaration = Declaration {
        name: "ledbat",
        summary: "Scavenger that keeps the queue at a target delay and yields to others",
        source: "RFC 6817",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        fills_buffers: false,
        comparison: Comparison::None,
    };

    fn build(&self, _setup: &Setup) -> Ledbat {
        Ledbat {
            params: *self,
            first: None,
            base: vec![NEVER; self.base_history.into()].into(),
            minute: 0,
            current: vec![Sample::default(); self.current_filter.into()].into(),
            next: 0,
            credit: 0,
            capped: None,
        }
    }

    fn least_window(&self) -> u32 {
        self.min_cwnd.into()
    }
}

/// `gain` of 1, as it is kept.
const UNIT_GAIN: i64 = 1_000;
/// The minimum of a minute without samples: the identity element of `min`.
const NEVER: i32 = i32::MAX;

/// One measured delay.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    tick: u64,
    /// `None` once it is out of date.
    delay: Option<i32>,
}

/// The LEDBAT congestion controller. Delays are in ms from the first one measured.
#[derive(Clone, Debug)]
pub struct Ledbat {
    params: LedbatParams,
    /// The first delay, with the unknown constant in it.
    first: Option<u32>,
    /// The least of each minute; the running one has the place `minute` modulo their number.
    base: Box<[i32]>,
    minute: u64,
    /// The last samples.
    current: Box<[Sample]>,
    next: usize,
    /// Growth not applied yet, in 1000ths of a segment times `target` times the window.
    credit: i64,
    /// What `allowed_increase` has changed at the current acknowledgement.
    capped: Option<Capped>,
}

/// A window that was larger than `allowed_increase` permits.
#[derive(Clone, Copy, Debug)]
struct Capped {
    cwnd: u32,
    credit: i64,
    /// The window since then.
    to: u32,
}

impl Default for Ledbat {
    fn default() -> Self {
        LedbatParams::default().build(&Setup::default())
    }
}

impl WindowBased for Ledbat {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.capped = self.cap(window, ack);
        let round_trip = ack.rtt_micros.map(|rtt| rtt / 1_000);
        let Some(delay) = ack.echo.map(Echo::one_way_ms).or(round_trip) else {
            return;
        };
        let first = *self.first.get_or_insert(delay);
        let delay = delay.wrapping_sub(first).cast_signed();
        self.forget_minutes(ack.tick / 60_000);
        let running = self.place(self.minute);
        let minute = &mut self.base[running];
        *minute = (*minute).min(delay);
        self.current[self.next] = Sample {
            tick: ack.tick,
            delay: Some(delay),
        };
        self.next = (self.next + 1) % self.current.len();
        // Samples older than a round trip are out of date.
        let round = ack
            .rtt_micros
            .map_or(u64::MAX, |rtt| u64::from(rtt) / 1_000);
        for sample in &mut self.current {
            if ack.tick.saturating_sub(sample.tick) > round {
                sample.delay = None;
            }
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        // The window moves from where it was, and is limited after that.
        if let Some(capped) = self.capped.take()
            && capped.to == window.cwnd
        {
            (window.cwnd, self.credit) = (capped.cwnd, capped.credit);
        }
        // There is no slow start.
        window.ssthresh.lower_to(window.cwnd);
        if let Some(queued) = self.queuing_delay() {
            self.follow(queued, window, acked);
        }
        self.cap(window, ack);
    }

    fn ssthresh(&mut self, window: &Window, _tick: u64) -> u64 {
        self.credit = 0;
        window.bytes_of((window.cwnd / 2).max(self.params.min_cwnd.into()))
    }
}

impl Ledbat {
    /// Moves the window by what `acked` bytes earn or cost at a queueing delay of `queued` ms.
    fn follow(&mut self, queued: i32, window: &mut Window, acked: u64) {
        let (target, gain) = (i64::from(self.params.target), i64::from(self.params.gain));
        let acked = i64::from(window.segments_of(acked));
        self.credit += (target - i64::from(queued)) * acked * gain;
        let step = |window: &Window| target * i64::from(window.cwnd) * UNIT_GAIN;
        while self.credit >= step(window) {
            self.credit -= step(window);
            window.cwnd += 1;
        }
        while self.credit <= -step(window) && window.cwnd > self.params.min_cwnd.into() {
            self.credit += step(window);
            window.cwnd -= 1;
        }
        // A window at its minimum accumulates no debt.
        self.credit = self.credit.max(-step(window));
    }

    /// Limits the window to `allowed_increase` more than was in flight before the acknowledgement; `None`: it
    /// was not larger.
    fn cap(&mut self, window: &mut Window, ack: &Ack) -> Option<Capped> {
        let allowed = self.params.allowed_increase?;
        let most = ack.prior_in_flight.saturating_add(allowed.get().into());
        let most = most.max(self.params.min_cwnd.into());
        // Credit is a part of a segment.
        if (window.cwnd, self.credit) <= (most, 0) {
            return None;
        }
        let capped = Capped {
            cwnd: window.cwnd,
            credit: self.credit,
            to: most,
        };
        window.cwnd = most;
        window.ssthresh.lower_to(most);
        self.credit = 0;
        Some(capped)
    }

    /// The minimum of minute `now` begins; those of minutes without samples are void.
    fn forget_minutes(&mut self, now: u64) {
        let gone = now.saturating_sub(self.minute);
        for n in 1..=gone.min(self.params.base_history.into()) {
            let place = self.place(self.minute + n);
            self.base[place] = NEVER;
        }
        self.minute = now;
    }

    /// Where the minimum of a minute lies.
    fn place(&self, minute: u64) -> usize {
        let place = minute % u64::from(self.params.base_history);
        usize::try_from(place).expect("below 60")
    }

    /// The queueing delay of the forward path, in ms; `None` before the first sample.
    fn queuing_delay(&self) -> Option<i32> {
        let base = self.base.iter().min()?;
        let current = self
            .current
            .iter()
            .filter_map(|sample| sample.delay)
            .min()?;
        Some(current.saturating_sub(*base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(tick: u64, one_way_ms: u32) -> Ack {
        Ack {
            rtt_micros: Some(50_000),
            echo: Some(Echo {
                ts_val: one_way_ms,
                ts_ecr: 0,
            }),
            ..Ack::at(tick)
        }
    }

    /// The window after a window's worth of acknowledgements of one segment with this delay, by
    /// clocks that are `offset` apart; the base is 30 ms.
    fn after_a_window(offset: u32, delay: u32) -> u32 {
        let (mut cc, mut w) = (Ledbat::default(), Window::new(100, 1));
        cc.on_ack(&mut w, &ack(0, offset.wrapping_add(30)));
        for n in 0..100 {
            let ack = ack(1_000 + n, offset.wrapping_add(delay));
            cc.on_ack(&mut w, &ack);
            cc.grow(&mut w, &ack, 1);
        }
        w.cwnd
    }

    #[test]
    fn growth_is_in_proportion_to_the_distance_from_the_target() {
        for offset in [0, 12_345, u32::MAX - 40] {
            let window = |delay| after_a_window(offset, delay);
            assert_eq!([30, 129, 130].map(window), [101, 100, 100], "{offset}");
            // Twice the target: as much down as up at the base; thrice: twice as much.
            assert_eq!([230, 330].map(window), [99, 98], "{offset}");
        }
    }

    #[test]
    fn the_window_does_not_fall_below_two() {
        let (mut cc, mut w) = (Ledbat::default(), Window::new(3, 1));
        cc.on_ack(&mut w, &ack(0, 10));
        for n in 0..1_000 {
            let ack = ack(1_000 + n, 5_000);
            cc.on_ack(&mut w, &ack);
            cc.grow(&mut w, &ack, 1);
        }
        assert_eq!((w.cwnd, cc.ssthresh(&Window::new(2, 1), 0)), (2, 2));
    }

    #[test]
    fn a_larger_base_is_learnt_after_ten_minutes() {
        let mut cc = Ledbat::default();
        let mut w = Window::new(10, 1);
        cc.on_ack(&mut w, &ack(0, 10));
        for second in 1..=700 {
            cc.on_ack(&mut w, &ack(1_000 * second, 70));
            let want = if second < 600 { 60 } else { 0 };
            assert_eq!(cc.queuing_delay(), Some(want), "after {second} s");
        }
    }

    #[test]
    fn one_late_sample_of_four_does_not_count() {
        let mut cc = Ledbat::default();
        let mut w = Window::new(10, 1);
        for (tick, delay) in [(0, 20), (1, 60), (2, 21), (3, 22)] {
            cc.on_ack(&mut w, &ack(tick, delay));
        }
        assert_eq!(cc.queuing_delay(), Some(0));
        // The first is older than a round trip of 50 ms now.
        cc.on_ack(&mut w, &ack(51, 90));
        assert_eq!(cc.queuing_delay(), Some(1));
    }

    /// A controller with the base 30 ms after these delays, 1 ms apart.
    fn after(params: LedbatParams, delays: &[u32]) -> Ledbat {
        let (mut cc, mut w) = (params.build(&Setup::default()), Window::new(100, 1));
        cc.on_ack(&mut w, &ack(0, 30));
        for (n, &delay) in delays.iter().enumerate() {
            cc.on_ack(&mut w, &ack(1_000 + n as u64, delay));
        }
        cc
    }

    #[test]
    fn target_and_gain_scale_the_growth() {
        let grown = |target, gain, delay| {
            let params = LedbatParams {
                target,
                gain,
                ..LedbatParams::default()
            };
            let (mut cc, mut w) = (after(params, &[delay]), Window::new(100, 1));
            cc.grow(&mut w, &ack(1_001, delay), 300);
            w.cwnd
        };
        assert_eq!(grown(100, 1_000, 30), 102);
        assert_eq!(grown(100, 2_000, 30), 105);
        // 50 ms queued: half the target of 100 ms, the whole of 50 ms, twice 25 ms.
        assert_eq!(
            [100, 50, 25].map(|target| grown(target, 1_000, 80)),
            [101, 100, 97]
        );
    }

    #[test]
    fn the_histories_have_the_lengths_asked_for() {
        let params = LedbatParams {
            base_history: 2,
            current_filter: 1,
            min_cwnd: 7,
            ..LedbatParams::default()
        };
        assert_eq!(after(params, &[60, 90]).queuing_delay(), Some(60));
        let longer = LedbatParams {
            current_filter: 3,
            ..params
        };
        assert_eq!(after(longer, &[60, 90]).queuing_delay(), Some(30));
        let (mut cc, mut w) = (after(params, &[]), Window::new(10, 1));
        cc.on_ack(&mut w, &ack(121_000, 70));
        assert_eq!(cc.queuing_delay(), Some(0), "two minutes later");
        assert_eq!(cc.ssthresh(&w, 0), 7);
    }

    /// The window after an acknowledgement of `acked` segments with this delay and flight before it; the base
    /// is 30 ms.
    fn with_flight(
        params: LedbatParams,
        limited: bool,
        acked: u64,
        delay: u32,
        flight: u32,
    ) -> u32 {
        let (mut cc, mut w) = (params.build(&Setup::default()), Window::new(100, 1));
        cc.on_ack(&mut w, &ack(0, 30));
        w.cwnd = 100;
        let ack = Ack {
            prior_in_flight: flight,
            ..ack(1_000, delay)
        };
        cc.on_ack(&mut w, &ack);
        if limited {
            cc.grow(&mut w, &ack, acked);
        }
        w.cwnd
    }

    #[test]
    fn allowed_increase_limits_the_window_to_the_flight_before_the_acknowledgement() {
        let of = |segments| LedbatParams {
            allowed_increase: NonZeroU16::new(segments),
            ..LedbatParams::default()
        };
        // RFC 6817 section 2.4.2: first the window moves, 300 acknowledged segments earn 2 and cost 5 at
        // 230 ms, then it is limited to the flight and `allowed_increase`, and to 2 at least.
        for (segments, delay, flight, window) in [
            (0, 30, 50, 102),
            (1, 30, 100, 101),
            (2, 30, 100, 102),
            (1, 30, 50, 51),
            (5, 30, 50, 55),
            (1, 230, 50, 51),
            (1, 230, 98, 97),
            (1, 30, 0, 2),
        ] {
            assert_eq!(
                with_flight(of(segments), true, 300, delay, flight),
                window,
                "{segments} of {flight}"
            );
        }
        // It applies as well when the window does not limit sending.
        assert_eq!(with_flight(of(3), false, 1, 30, 50), 53);
        assert_eq!(with_flight(of(0), false, 1, 30, 50), 100);
    }

    #[test]
    fn a_limited_window_keeps_no_part_of_a_segment() {
        let params = LedbatParams {
            allowed_increase: NonZeroU16::new(1),
            ..LedbatParams::default()
        };
        let (mut cc, mut w) = (after(params, &[]), Window::new(100, 1));
        let ack = Ack {
            prior_in_flight: 99,
            ..ack(1_000, 30)
        };
        for _ in 0..1_000 {
            cc.on_ack(&mut w, &ack);
            cc.grow(&mut w, &ack, 1);
        }
        assert_eq!((w.cwnd, cc.credit), (100, 0));
    }
}
