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
//! off_target        = (TARGET - (current - base)) / TARGET      TARGET 100 ms
//! acknowledgement   cwnd += GAIN off_target acked / cwnd        GAIN 1, at least 2 segments
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
//! | moves only while the window limits sending | never more than a segment above the flight | the same for bulk transfers |
//! | the echo of a delayed ACK is that of the first segment it covers | not TCP | up to a delayed ACK more in a sample; the least of four hides it |

use super::{Ack, Window, WindowBased};

/// Delay that LEDBAT adds, in ms.
const TARGET: i64 = 100;
/// Minima of so many minutes make the base.
const BASE_HISTORY: usize = 10;
/// So many samples make the current delay.
const CURRENT_FILTER: usize = 4;
/// The window falls no lower.
const MIN_CWND: u32 = 2;
/// A delay nobody measured.
const NEVER: i32 = i32::MAX;

/// The LEDBAT congestion controller. Delays are in ms from the first one measured.
#[derive(Clone, Debug)]
pub struct Ledbat {
    /// The first delay, with the unknown constant in it.
    first: Option<u32>,
    /// The least of each minute; the running one has the place `minute` modulo their number.
    base: [i32; BASE_HISTORY],
    minute: u64,
    /// Tick and delay of the last samples.
    current: [(u64, i32); CURRENT_FILTER],
    next: usize,
    /// Growth not applied yet, in segments times `TARGET` times the window.
    credit: i64,
}

impl Default for Ledbat {
    fn default() -> Self {
        Self {
            first: None,
            base: [NEVER; BASE_HISTORY],
            minute: 0,
            current: [(0, NEVER); CURRENT_FILTER],
            next: 0,
            credit: 0,
        }
    }
}

impl WindowBased for Ledbat {
    fn on_ack(&mut self, _window: &mut Window, ack: &Ack) {
        let round_trip = ack.rtt_micros.map(|rtt| rtt / 1_000);
        let Some(delay) = ack.one_way_ms.or(round_trip) else {
            return;
        };
        let first = *self.first.get_or_insert(delay);
        let delay = delay.wrapping_sub(first).cast_signed();
        self.forget_minutes(ack.tick / 60_000);
        let minute = &mut self.base[place(self.minute)];
        *minute = (*minute).min(delay);
        self.current[self.next] = (ack.tick, delay);
        self.next = (self.next + 1) % CURRENT_FILTER;
        // Samples older than a round trip tell of a queue that is gone.
        let round = ack
            .rtt_micros
            .map_or(u64::MAX, |rtt| u64::from(rtt) / 1_000);
        for sample in &mut self.current {
            if ack.tick.saturating_sub(sample.0) > round {
                sample.1 = NEVER;
            }
        }
    }

    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        // There is no slow start.
        window.ssthresh.lower_to(window.cwnd);
        let Some(queued) = self.queuing_delay() else {
            return;
        };
        self.credit += (TARGET - i64::from(queued)) * i64::from(window.segments_of(acked));
        let step = |window: &Window| TARGET * i64::from(window.cwnd);
        while self.credit >= step(window) {
            self.credit -= step(window);
            window.cwnd += 1;
        }
        while self.credit <= -step(window) && window.cwnd > MIN_CWND {
            self.credit += step(window);
            window.cwnd -= 1;
        }
        // What cannot be given up is not owed.
        self.credit = self.credit.max(-step(window));
    }

    fn ssthresh(&mut self, window: &Window) -> u64 {
        self.credit = 0;
        window.bytes_of((window.cwnd / 2).max(MIN_CWND))
    }
}

impl Ledbat {
    /// The minimum of minute `now` begins; those of minutes without samples are void.
    fn forget_minutes(&mut self, now: u64) {
        let gone = now.saturating_sub(self.minute);
        for n in 1..=gone.min(BASE_HISTORY as u64) {
            self.base[place(self.minute + n)] = NEVER;
        }
        self.minute = now;
    }

    /// What the queues of the way there add, in ms; `None` before the first sample.
    fn queuing_delay(&self) -> Option<i32> {
        let base = self.base.iter().min()?;
        let current = self.current.iter().map(|sample| sample.1).min()?;
        (current != NEVER).then(|| current.saturating_sub(*base))
    }
}

/// Where the minimum of a minute lies.
fn place(minute: u64) -> usize {
    usize::try_from(minute % BASE_HISTORY as u64).expect("less than ten")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Instant;

    fn ack(tick: u64, one_way_ms: u32) -> Ack {
        Ack {
            now: Instant::from_millis(tick),
            tick,
            rtt_micros: Some(50_000),
            one_way_ms: Some(one_way_ms),
            snd_una: 0,
            snd_nxt: 0,
            pacing_rate: 0,
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
        assert_eq!((w.cwnd, cc.ssthresh(&Window::new(2, 1))), (2, 2));
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
}
