//! What a congestion control of media decides, and what it learns from feedback.

use std::fmt::Debug;

use sojourn_net::{Duration, Instant};

/// Pacing rate relative to the target bit rate: `PACKET_PACING_HEADROOM` of SCReAMv2, for all controls. A pacer at
/// exactly the target rate would never empty its queue.
pub(super) const PACING_HEADROOM: f64 = 1.5;

/// The bit rates between which a control chooses, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) start: f64,
    /// Time between two frames.
    pub(super) frame_period: Duration,
}

/// A packet whose arrival is reported for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acked {
    pub(super) bytes: u64,
    pub(super) sent: Instant,
    pub(super) arrived: Instant,
    /// It arrived with a CE mark.
    pub(super) marked: bool,
}

/// What a report tells the sender that it did not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Feedback {
    /// Packets reported as received for the first time, by number.
    pub(super) acked: Vec<Acked>,
    /// Packets that are now considered lost.
    pub(super) lost: u64,
    /// Size of the packets up to the highest number acknowledged that were above it before, lost ones included.
    pub(super) newly_acked: u64,
    /// Size of those of them that arrived with a CE mark.
    pub(super) newly_acked_ce: u64,
    /// Size of the packets above the highest number acknowledged.
    pub(super) in_flight: u64,
}

/// A congestion control: rates in bit/s, sizes in bytes of RTP packets.
pub(super) trait RateControl: Debug {
    /// A packet was sent; `in_flight` includes it.
    fn on_sent(&mut self, _in_flight: u64) {}

    /// A report arrived.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback);

    /// The encoder produced a frame of this size while the oldest packet waited for so long at the sender.
    fn on_frame(&mut self, _bytes: u64, _waiting: Duration) {}

    /// Target bit rate of the encoder, RTP headers included.
    fn target(&self) -> f64;

    /// Bit rate of the pacer.
    fn pacing_rate(&self) -> f64 {
        self.target() * PACING_HEADROOM
    }

    /// How many bytes may be in flight.
    fn send_window(&self) -> u64 {
        u64::MAX
    }

    /// The window from which the target derives, in bytes; `None`: the control has none.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Smoothed round-trip time; `None`: not known.
    fn srtt(&self) -> Option<Duration> {
        None
    }
}
