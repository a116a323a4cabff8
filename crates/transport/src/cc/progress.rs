//! What a controller that models the path is told.

use sojourn_net::Instant;

/// How fast the path delivered, of the newest segment an acknowledgement delivered.
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

/// What losses are being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Episode {
    /// None.
    None,
    /// Those that acknowledgements told of.
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
    /// RTT of the handshake, in µs; before any was measured, which 0-RTT is, what is assumed of it.
    pub rtt_micros: u32,
    /// It was measured.
    pub measured: bool,
    /// Segments delivered: the SYN.
    pub delivered: u64,
}

impl Start {
    /// What a control that models the path takes for the RTT when it first sets its rate: one that was not
    /// measured is taken for short, as in Linux and in the draft of version 3, lest the first window wait.
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
    /// When a segment was last heard to be delivered.
    pub delivered_at: Instant,
    /// Segments this acknowledgement delivered.
    pub newly_delivered: u32,
    /// Segments it showed to be lost.
    pub newly_lost: u32,
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// Segments in flight now.
    pub in_flight: u32,
    /// When pacing lets the next unit go.
    pub next_departure: Instant,
    /// What is being repaired.
    pub episode: Episode,
    /// The acknowledgement may have been delayed: its RTT shows no minimum.
    pub ack_delayed: bool,
    /// How fast the path delivered.
    pub sample: Option<RateSample>,
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
        }
    }
}
