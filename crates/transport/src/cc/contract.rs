//! The interface between a sender and its congestion controller.
//!
//! There are two kinds of controllers. [`WindowBased`] ones move a window: slow start, additive
//! increase, multiplicative decrease. [`ModelBased`] ones set window and pacing rate from a model of
//! the path. Neither knows of segments, timers or losses: the sender finds those.
//!
//! Quantities are in bytes, with the MSS in the [`Window`]. Counts of deliveries and losses are counts
//! of segments, as in Linux, since segments are what is delivered and lost.

use sojourn_net::Instant;

use super::progress::{Ack, EcnFeedback, LostSegment, Progress, Start};
use super::window::{Threshold, Window};

/// The retransmission timer expired.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// When.
    pub now: Instant,
    /// Next segment to be sent for the first time.
    pub snd_nxt: u32,
}

/// Sending resumes with nothing in flight.
#[derive(Clone, Copy, Debug)]
pub struct Resume {
    /// When.
    pub now: Instant,
    /// The host's 1 ms tick then.
    pub tick: u64,
    /// The tick of the last transmission.
    pub last_sent_tick: u64,
    /// Next segment to be sent for the first time.
    pub snd_nxt: u32,
}

/// The congestion state of a sender (Linux's names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No sign of trouble.
    Open,
    /// A segment was sacked or retransmitted, none is considered lost.
    Disorder,
    /// The window is being reduced for ECN.
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

/// The sender enters a congestion state.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// The state it enters.
    pub to: Phase,
    /// The host's 1 ms tick.
    pub tick: u64,
    /// Next segment to be sent for the first time.
    pub snd_nxt: u32,
}

/// Why a window is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// A reduction begins, for a loss or for an ECN mark.
    Begins,
    /// The congestion is a loss.
    Loss,
}

/// How many segments leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstSize {
    /// A burst takes 2^-`pacing_shift` s at the pacing rate (Linux: `sk_pacing_shift`).
    pub pacing_shift: u32,
    /// Least number of segments in a burst (Linux: `min_tso_segs`).
    pub min_tso_segs: u32,
    /// Bytes of headers that count with the payload of each segment.
    pub headers: u32,
}

impl BurstSize {
    /// Linux's: 1 ms, 2 segments.
    pub const DEFAULT: Self = Self {
        pacing_shift: 10,
        min_tso_segs: 2,
        headers: 0,
    };
}

/// A controller that moves a window.
///
/// The sender calls [`on_ack`](Self::on_ack) for each acknowledgement before anything changes,
/// [`grow`](Self::grow) when the window limited sending and no reduction is under way,
/// [`ssthresh`](Self::ssthresh) when congestion begins. How the window comes down to the threshold
/// (proportional rate reduction, time-outs) is the sender's business.
pub trait WindowBased {
    /// The handshake is over.
    fn on_start(&mut self, _window: &mut Window, _start: &Start) {}

    /// An acknowledgement arrived; the controller may end slow start here.
    fn on_ack(&mut self, _window: &mut Window, _ack: &Ack) {}

    /// With ECN, each acknowledgement before anything else changes.
    fn on_ecn_feedback(&mut self, _feedback: &EcnFeedback) {}

    /// Lets the window grow by what `acked` bytes earn.
    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64);

    /// An acknowledgement arrived at which [`grow`](Self::grow) is not called because the application, not the window,
    /// limits sending.
    fn on_unused(&mut self, _window: &Window, _ack: &Ack) {}

    /// The threshold after congestion that began at the 1 ms tick `tick` of the host, in bytes.
    fn ssthresh(&mut self, window: &Window, tick: u64) -> u64;

    /// The threshold after a loss, in bytes, if a loss is not answered like a mark.
    fn ssthresh_after_loss(&mut self, _window: &Window) -> Option<u64> {
        None
    }

    /// The threshold after a time-out, in bytes, if it is not that after other congestion. By default as after a loss.
    fn ssthresh_after_timeout(&mut self, window: &Window) -> Option<u64> {
        self.ssthresh_after_loss(window)
    }

    /// The sender enters a congestion state, perhaps the one that it is in.
    fn on_phase(&mut self, _transition: &Transition) {}

    /// A reduction is over: the window has come down to the threshold.
    fn on_reduced(&mut self, _window: &mut Window) {}

    /// The last reduction turned out to be spurious; the window is restored after this.
    fn on_undo(&mut self) {}

    /// The retransmission timer expired; [`ssthresh`](Self::ssthresh) was called before.
    fn on_timeout(&mut self, _timeout: &Timeout) {}

    /// Sending resumes after a pause.
    fn on_resume(&mut self, _resume: &Resume) {}

    /// A segment is retransmitted while nothing is in flight; `snd_nxt` is the next to be sent for the first time.
    fn on_lone_resend(&mut self, _snd_nxt: u32) {}
}

/// A controller that sets window and pacing rate from a model of the path.
///
/// The sender does not let its window grow; only [`update`](Self::update) and [`on_restart`](Self::on_restart)
/// change it.
pub trait ModelBased {
    /// The handshake is over.
    fn on_start(&mut self, window: &Window, start: &Start);

    /// An acknowledgement arrived: sets the window. Returns whether the controller holds sending down, so
    /// that the next delivery rates do not show the capacity of the path.
    fn update(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool;

    /// A segment was declared lost: on each of them, before the acknowledgement that showed the loss updates the
    /// model. Not called for a controller that does not use delivery rates.
    fn on_lost(&mut self, _window: &Window, _lost: &LostSegment) {}

    /// Congestion. Returns the slow-start threshold to report, if it changes.
    fn on_reduction(&mut self, window: &Window, reduction: Reduction) -> Option<Threshold>;

    /// The retransmission timer expired.
    fn on_timeout(&mut self);

    /// The last reduction turned out to be spurious.
    fn on_undo(&mut self);

    /// The application has data again, and nothing is in flight.
    fn on_restart(&mut self, _window: &mut Window, _resume: &Resume) {}

    /// The pacing rate in bytes/s; `None` until it is known. A controller that computes it from a window in
    /// segments takes these as `mss` bytes long.
    fn pacing_rate(&self, mss: u32) -> Option<u64>;

    /// Whether it uses [`Progress::sample`]. If not, the sender does not track when packets were sent for it.
    fn needs_delivery_rates(&self) -> bool {
        true
    }

    /// Whether a loss episode over QUIC ends only after a round trip without losses.
    fn needs_round_without_loss(&self) -> bool {
        false
    }

    /// How many segments leave together.
    fn burst_size(&self) -> BurstSize {
        BurstSize::DEFAULT
    }
}
