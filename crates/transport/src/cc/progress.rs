//! Acknowledgement data passed to a controller.
//!
//! [`Ack`] and [`EcnFeedback`] are for controllers of both kinds, [`Progress`] is for model-based ones.

use std::num::NonZeroU32;

use sojourn_net::Instant;

/// What an acknowledgement reports, beyond the window.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// The host's 1 ms tick then.
    pub tick: u64,
    /// RTT of the newest segment it acknowledged, in µs; `None` if only retransmitted data was.
    pub rtt_micros: Option<u32>,
    /// Its timestamps (RFC 7323); `None` without.
    pub echo: Option<Echo>,
    /// First segment not acknowledged.
    pub snd_una: u32,
    /// Next segment to be sent for the first time.
    pub snd_nxt: u32,
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// Segments it acknowledged in order, with those that were selectively acknowledged before.
    pub acked: u32,
    /// Eight times the smoothed RTT (Linux: `srtt_us`), in µs; 0 before the first sample.
    pub srtt8: u32,
    /// Pacing rate that corresponds to the window (Linux: `sk_pacing_rate`), in bytes/s.
    pub pacing_rate: u64,
}

/// The timestamps of an acknowledgement, in ms of the hosts' clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The peer's.
    pub ts_val: u32,
    /// The one that it echoes.
    pub ts_ecr: u32,
}

impl Echo {
    /// One-way delay to the peer plus an unknown constant, in ms.
    pub(super) const fn one_way_ms(self) -> u32 {
        self.ts_val.wrapping_sub(self.ts_ecr)
    }
}

#[cfg(test)]
impl Ack {
    /// An acknowledgement at `tick` ms that says nothing.
    pub(crate) const fn at(tick: u64) -> Self {
        Self {
            now: Instant::from_millis(tick),
            tick,
            rtt_micros: None,
            echo: None,
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: 0,
            acked: 0,
            srtt8: 0,
            pacing_rate: 0,
        }
    }
}

/// ECN feedback of an acknowledgement, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnFeedback {
    /// First segment not acknowledged.
    pub snd_una: u32,
    /// Next segment to be sent for the first time.
    pub snd_nxt: u32,
    /// Segments the acknowledgement delivered.
    pub delivered: u32,
    /// Delivered segments reported as CE-marked.
    pub marked: u32,
}

/// Delivery-rate sample of the newest segment an acknowledgement delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Segments delivered when it was sent.
    pub prior_delivered: u64,
    /// Segments delivered since.
    pub delivered: u64,
    /// The time this took, in µs.
    pub interval_micros: u64,
    /// The application, not the path, limited it.
    pub app_limited: bool,
    /// Segments in flight when it was sent, this one included.
    pub in_flight_then: u32,
    /// Segments declared lost since.
    pub lost_since: u64,
}

/// A segment just declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// When it was declared lost.
    pub now: Instant,
    /// Segments ever delivered.
    pub delivered: u64,
    /// Segments in flight when it was last sent, this one included.
    pub in_flight_then: u32,
    /// Segments declared lost since, this one included.
    pub lost_since: u64,
    /// The application, not the path, limited sending then.
    pub app_limited: bool,
}

/// Which losses are being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Episode {
    /// None.
    None,
    /// Those that acknowledgements reported.
    Recovery,
    /// Those of a time-out.
    Loss,
}

/// How a connection begins, after the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When.
    pub now: Instant,
    /// The host's 1 ms tick then.
    pub tick: u64,
    /// RTT of the handshake, in µs; with 0-RTT, before any was measured, an assumed one.
    pub rtt_micros: u32,
    /// It was measured.
    pub measured: bool,
    /// Segments delivered: the SYN.
    pub delivered: u64,
}

impl Start {
    /// The RTT from which BBR computes its first rate. Without a measurement it is short, as in Linux and in
    /// the draft of version 3, so that the first window does not wait.
    pub(super) const fn pacing_rtt_micros(&self) -> u32 {
        const NOMINAL: u32 = 1_000;
        match (self.measured, self.rtt_micros) {
            (false, _) => NOMINAL,
            (true, 0) => 1,
            (true, rtt) => rtt,
        }
    }
}

/// Where a connection stands after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Segments ever delivered.
    pub delivered: u64,
    /// Segments ever deemed lost.
    pub lost: u64,
    /// When a delivery was last acknowledged.
    pub delivered_at: Instant,
    /// Segments this acknowledgement delivered.
    pub newly_delivered: u32,
    /// Segments it showed to be lost.
    pub newly_lost: u32,
    /// Segments in flight now.
    pub in_flight: u32,
    /// The window, not the application, limited sending in the last round trip.
    pub cwnd_limited: bool,
    /// When pacing releases the next burst.
    pub next_departure: Instant,
    /// What is being repaired.
    pub episode: Episode,
    /// The acknowledgement may have been delayed: its RTT is not a minimum.
    pub ack_delayed: bool,
    /// The delivery rate, if the acknowledgement gives a valid sample.
    pub sample: Option<RateSample>,
    /// ECN feedback; `None` without ECN.
    pub ecn: Option<EcnFeedback>,
}

#[cfg(test)]
impl Progress {
    /// Nothing has happened until `now`.
    pub(crate) const fn at(now: Instant) -> Self {
        Self {
            delivered: 0,
            lost: 0,
            delivered_at: now,
            newly_delivered: 0,
            newly_lost: 0,
            in_flight: 0,
            cwnd_limited: false,
            next_departure: now,
            episode: Episode::None,
            ack_delayed: false,
            sample: None,
            ecn: None,
        }
    }
}

/// The smallest RTT of a period, in µs; none before the first sample.
///
/// An RTT below 1 µs counts as 1 µs, so that a minimum takes 4 bytes and can be divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MinRtt(Option<NonZeroU32>);

impl MinRtt {
    /// Before the first sample.
    pub(super) const NONE: Self = Self(None);

    /// A minimum of `micros`.
    pub(super) const fn of(micros: u32) -> Self {
        Self(Some(at_least_one(micros)))
    }

    /// The minimum in µs.
    #[inline]
    pub(super) fn micros(self) -> Option<u32> {
        self.0.map(NonZeroU32::get)
    }

    /// Whether `micros` would be a new minimum.
    #[inline]
    pub(super) fn is_above(self, micros: u32) -> bool {
        self.0.is_none_or(|min| at_least_one(micros) < min)
    }

    /// Takes a sample; returns the minimum with it.
    #[inline]
    pub(super) fn sample(&mut self, micros: u32) -> u32 {
        let sample = at_least_one(micros);
        let min = self.0.map_or(sample, |min| min.min(sample));
        self.0 = Some(min);
        min.get()
    }
}

const fn at_least_one(micros: u32) -> NonZeroU32 {
    match NonZeroU32::new(micros) {
        Some(micros) => micros,
        None => NonZeroU32::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_the_smallest_sample_and_at_least_1_us() {
        let mut min = MinRtt::NONE;
        assert!(min.is_above(u32::MAX) && min.micros().is_none());
        assert_eq!([50, 70, 40, 0].map(|rtt| min.sample(rtt)), [50, 50, 40, 1]);
        assert_eq!(min, MinRtt::of(1));
        assert!(!min.is_above(0));
        assert_eq!(size_of::<MinRtt>(), size_of::<u32>());
    }
}
