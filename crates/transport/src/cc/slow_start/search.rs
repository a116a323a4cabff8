//! SEARCH: Slow start Exit At Right `CHokepoint`.
//!
//! # Source
//!
//! draft-chung-ccwg-search-09 (17 March 2026) §3, with the constants of that revision. The text of the drain phase was
//! not at hand: its steps and its constant 16 are facts of the authors' Linux module (version 4.0 of SEARCH), and [R].
//!
//! # Law
//!
//! Time is divided into bins of `initial RTT * window_factor / bins` (35 % of the initial RTT). When a bin ends:
//!
//! ```text
//! delivered   acknowledged in the last 10 bins
//! sent        sent in 10 bins that ended one RTT earlier, interpolated between bins
//! exit        (sent - delivered) / sent >= 0.26
//! drain       target = what was acknowledged in the last initial RTT, at least the initial window;
//!             until the flight has fallen to it, one segment leaves for each 16 acknowledged;
//!             then ssthresh = cwnd = target
//! ```
//!
//! Without a bottleneck, all that was sent is delivered one RTT later, and the difference is zero.
//!
//! # Differences from the draft
//!
//! | here | draft | effect |
//! |---|---|---|
//! | segments, over QUIC packets; a retransmission does not count as sent | bytes | none while full-sized segments are sent: the first loss ends slow start |
//! | starts anew when more than `search_bins` bins pass without an acknowledgement | an option | after a pause of 3.5 RTTs, old counts are not used |
//! | interpolates backwards | forwards, which Mozilla's implementation (neqo) calls an error that the authors confirm | the window of sent data ends one RTT ago |
//! | counts in 32 bits | may scale counts to 16 bits | – |

use sojourn_net::{Duration, Instant};

use super::SlowStartParams;
use crate::cc::{Ack, Window};

/// During the drain, one segment leaves for this many acknowledged.
const DRAIN_ACKED: u32 = 16;

/// SEARCH in the first slow start of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// In hundredths.
    window_factor: u16,
    /// In hundredths.
    thresh: u8,
    drains: bool,
    /// Bins per window.
    width: usize,
    /// An RTT must be shorter than this many bins.
    extra: usize,
    /// A ring: what was acknowledged and sent when each of the last bins ended.
    bins: Box<[Totals]>,
    /// The bins; `None` before the first acknowledgement with an RTT.
    clock: Option<BinClock>,
    initial_window: Option<u32>,
    drain: Option<Drain>,
}

/// Segments of a connection up to now.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    acked: u32,
    sent: u32,
}

#[derive(Clone, Copy, Debug)]
struct BinClock {
    /// Duration of a bin, in ns.
    duration: u64,
    /// Bins that have ended.
    current: usize,
    /// When the next one ends.
    end: Instant,
}

/// The drain phase.
#[derive(Clone, Copy, Debug)]
struct Drain {
    target: u32,
    acked: u32,
    /// Segments acknowledged towards the next one that leaves.
    credit: u32,
}

impl Search {
    /// A connection that has sent nothing.
    pub(super) fn new(params: &SlowStartParams) -> Self {
        let (width, extra) = (params.search_bins.into(), params.search_extra_bins.into());
        Self {
            window_factor: params.search_window_factor,
            thresh: params.search_thresh,
            drains: params.search_drain,
            width,
            extra,
            bins: vec![Totals::default(); width + extra + 1].into(),
            clock: None,
            initial_window: None,
            drain: None,
        }
    }

    /// An acknowledgement arrived in slow start, which may end here.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if window.ssthresh.is_set() {
            return;
        }
        if let Some(drain) = &mut self.drain {
            drain.step(window, ack);
            return;
        }
        let Some(rtt) = ack.rtt_micros else { return };
        let rtt = 1_000 * u64::from(rtt.max(1));
        self.initial_window.get_or_insert(window.cwnd);
        let Some(mut clock) = self.clock else {
            self.begin(ack, rtt);
            return;
        };
        if ack.now < clock.end {
            return;
        }
        let passed = ack.now.since(clock.end).as_nanos() / clock.duration + 1;
        let passed = usize::try_from(passed).unwrap_or(usize::MAX);
        if passed > self.width {
            self.begin(ack, rtt);
            return;
        }
        let last = *self.bin(clock.current);
        for skipped in 1..passed {
            *self.bin(clock.current + skipped) = last;
        }
        clock.current += passed;
        clock.end += Duration::from_nanos(clock.duration * passed as u64);
        self.clock = Some(clock);
        *self.bin(clock.current) = Totals::at(ack);
        if self.is_at_chokepoint(&clock, rtt) {
            self.leave(window, ack, &clock);
        }
    }

    /// How many of `acked` segments count for growth.
    pub(super) const fn counts(&self, acked: u32) -> u32 {
        if self.drain.is_some() { 0 } else { acked }
    }

    fn bin(&mut self, index: usize) -> &mut Totals {
        let at = index % self.bins.len();
        &mut self.bins[at]
    }

    /// What was acknowledged and sent in the `width` bins up to the end of bin `index`.
    fn window_to(&self, index: usize, width: usize) -> Totals {
        let len = self.bins.len();
        let (from, to) = (self.bins[(index - width) % len], self.bins[index % len]);
        Totals {
            acked: to.acked - from.acked,
            sent: to.sent - from.sent,
        }
    }

    /// The first bin begins.
    fn begin(&mut self, ack: &Ack, rtt: u64) {
        let window = rtt * u64::from(self.window_factor) / 100;
        let duration = (window / self.width as u64).max(1);
        self.clock = Some(BinClock {
            duration,
            current: 0,
            end: ack.now + Duration::from_nanos(duration),
        });
        *self.bin(0) = Totals::at(ack);
    }

    /// Whether too little of what was sent one RTT, in ns, earlier has been delivered.
    fn is_at_chokepoint(&self, clock: &BinClock, rtt: u64) -> bool {
        let back = usize::try_from(rtt / clock.duration).unwrap_or(usize::MAX);
        let Some(before) = clock.current.checked_sub(back) else {
            return false;
        };
        if back >= self.extra || before <= self.width {
            return false;
        }
        let rest = u128::from(rtt % clock.duration);
        let whole = u128::from(clock.duration);
        let [near, far] = [before, before - 1].map(|bin| self.window_to(bin, self.width).sent);
        let sent = u128::from(near) * (whole - rest) + u128::from(far) * rest;
        let delivered = whole * u128::from(self.window_to(clock.current, self.width).acked);
        let missing = sent.saturating_sub(delivered);
        sent > 0 && 100 * missing >= u128::from(self.thresh) * sent
    }

    /// Slow start ends, at once or after the drain.
    fn leave(&mut self, window: &mut Window, ack: &Ack, clock: &BinClock) {
        if !self.drains {
            window.end_slow_start();
            return;
        }
        // The factor is at least 1, so an initial RTT has no more bins than a window.
        let round = (100 * self.width).div_ceil(self.window_factor.into());
        let delivered = self.window_to(clock.current, round).acked;
        let least = self.initial_window.unwrap_or(0);
        self.drain = Some(Drain {
            target: delivered.max(least).min(window.cwnd),
            acked: ack.snd_una,
            credit: 0,
        });
    }
}

impl Totals {
    const fn at(ack: &Ack) -> Self {
        Self {
            acked: ack.snd_una,
            sent: ack.snd_nxt,
        }
    }
}

impl Drain {
    fn step(&mut self, window: &mut Window, ack: &Ack) {
        self.credit += ack.snd_una - self.acked;
        self.acked = ack.snd_una;
        let more = self.credit / DRAIN_ACKED;
        self.credit %= DRAIN_ACKED;
        let in_flight = ack.snd_nxt - ack.snd_una;
        window.cwnd = window.cwnd.min((in_flight + more).max(self.target));
        if window.cwnd == self.target {
            window.end_slow_start();
        }
    }
}

#[cfg(test)]
mod tests;
