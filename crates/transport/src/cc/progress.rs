//! What a model-based controller learns from acknowledgements.

use sojourn_net::Instant;

use super::contract::EcnFeedback;

/// Delivery-rate sample of the newest segment an acknowledgement delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Segments delivered when it was sent.
    pub prior_delivered: u64,
    /// Segments delivered since.
    pub delivered: u64,
    /// The time this took, in µs.
    pub interval_micros: u64,
    /// The application, not the path, was the limit.
    pub app_limited: bool,
    /// Segments in flight when it was sent, with it.
    pub in_flight_then: u32,
    /// Segments deemed lost since.
    pub lost_since: u64,
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
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// Segments in flight now.
    pub in_flight: u32,
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
            prior_in_flight: 0,
            in_flight: 0,
            next_departure: now,
            episode: Episode::None,
            ack_delayed: false,
            sample: None,
            ecn: None,
        }
    }
}
